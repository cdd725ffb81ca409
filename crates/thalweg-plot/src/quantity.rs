//! Quantities as labels of axes and notes have them.

/// A number with as many digits as it needs, at most four that say something; thousands set apart. A dash if it is
/// no number.
pub fn number(value: f64) -> String {
    if !value.is_finite() {
        return "\u{2013}".to_owned();
    }
    let decimals = match value.abs() {
        0.0 => 0,
        small if small < 0.1 => 4,
        small if small < 1.0 => 3,
        small if small < 10.0 => 2,
        small if small < 100.0 => 1,
        _ => 0,
    };
    let text = format!("{value:.decimals$}");
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false if value.abs() < 1e15 => grouped(&text),
        false => format!("{value:.1e}"),
    }
}

fn grouped(digits: &str) -> String {
    let (sign, digits) = digits.strip_prefix('-').map_or(("", digits), |digits| ("-", digits));
    match digits.parse() {
        Ok(whole) => format!("{sign}{}", thousands(whole)),
        Err(_) => format!("{sign}{digits}"),
    }
}

/// A number with its thousands set apart by commas.
fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A share in percent, as `12.5 %`.
pub fn percent(share: f64) -> String {
    format!("{} %", number(100.0 * share))
}

/// A time with its unit, as `250 ns`, `1.2 ms`.
pub fn duration(nanoseconds: f64) -> String {
    let (unit, name) = duration_unit(nanoseconds);
    format!("{} {name}", number(nanoseconds / unit))
}

/// The largest unit of time that `nanoseconds` has at least one of, in nanoseconds, and its name.
pub fn duration_unit(nanoseconds: f64) -> (f64, &'static str) {
    // Ticks at powers of ten may be a little less than what they stand for.
    match nanoseconds * (1.0 + 1e-9) {
        short if short < 1e3 => (1.0, "ns"),
        short if short < 1e6 => (1e3, "\u{b5}s"),
        short if short < 1e9 => (1e6, "ms"),
        _ => (1e9, "s"),
    }
}

/// A size in bytes with its decimal unit, as `100 kB`.
pub fn size(bytes: f64) -> String {
    let (unit, name) = match bytes {
        few if few < 1e3 => (1.0, "B"),
        few if few < 1e6 => (1e3, "kB"),
        few if few < 1e9 => (1e6, "MB"),
        _ => (1e9, "GB"),
    };
    format!("{} {name}", number(bytes / unit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_the_digits_that_they_need() {
        let texts =
            [0.0, 0.1, 0.05, 0.6000000000000001, 1.0, 2.5, 12.34, 100.4, 12_345.0, -1_000.0].map(number);
        assert_eq!(texts, ["0", "0.1", "0.05", "0.6", "1", "2.5", "12.3", "100", "12,345", "-1,000"]);
        assert_eq!([1e18, f64::NAN].map(number), ["1.0e18", "\u{2013}"]);
    }

    #[test]
    fn times_and_sizes_have_the_unit_that_fits() {
        let texts = [0.0, 250.0, 1_000.0, 999_999_999.0 * 0.01, 1.2e6, 1e9, 3.6e12].map(duration);
        assert_eq!(texts, ["0 ns", "250 ns", "1 \u{b5}s", "10 ms", "1.2 ms", "1 s", "3,600 s"]);
        assert_eq!([64.0, 100_000.0, 1e7].map(size), ["64 B", "100 kB", "10 MB"]);
    }
}
