//! Prints and parses numbers with units.

/// Prints a value from 1 to 999 with three significant digits.
pub(crate) fn three_digits(value: f64) -> String {
    let decimals = if value < 9.995 { 2 } else { usize::from(value < 99.95) };
    format!("{value:.decimals$}")
}

/// Splits `1.5 ms` into number and unit; `None` without a finite number of at least zero.
pub(crate) fn split_unit(text: &str) -> Option<(f64, &str)> {
    let text = text.trim();
    let end = text.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(text.len());
    let number: f64 = text[..end].parse().ok()?;
    Some((number, text[end..].trim_start()))
}
