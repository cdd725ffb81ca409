//! Numbers in filters: `443`, `10k`, `0x1b`.

/// The largest value of a count or a rate: that of a signed 64-bit column.
pub(super) const MAX_COUNT: u64 = i64::MAX as u64;

/// Parses a lower-case number; above 64 bits, returns the largest. `None` if it is not a number.
pub(super) fn number(word: &str) -> Option<u64> {
    if let Some(digits) = word.strip_prefix("0x") {
        return value(digits, 16);
    }
    let (digits, scale) = match word.as_bytes().last()? {
        b'k' => (&word[..word.len() - 1], 1_000),
        b'm' => (&word[..word.len() - 1], 1_000_000),
        b'g' => (&word[..word.len() - 1], 1_000_000_000),
        b't' => (&word[..word.len() - 1], 1_000_000_000_000),
        _ => (word, 1),
    };
    value(digits, 10).map(|value| value.saturating_mul(scale))
}

fn value(digits: &str, base: u32) -> Option<u64> {
    let add = |sum: u64, digit: char| {
        digit.to_digit(base).map(|digit| sum.saturating_mul(base.into()).saturating_add(digit.into()))
    };
    if digits.is_empty() { None } else { digits.chars().try_fold(0, add) }
}

#[cfg(test)]
mod tests {
    use super::number;

    #[test]
    fn suffixes_of_numbers_are_powers_of_1000() {
        for (word, value) in [
            ("0", Some(0)),
            ("010", Some(10)),
            ("10k", Some(10_000)),
            ("3m", Some(3_000_000)),
            ("2g", Some(2_000_000_000)),
            ("1t", Some(1_000_000_000_000)),
            ("0x1b", Some(27)),
            ("0xg", None),
            ("0x", None),
            ("k", None),
            ("", None),
            ("1.5k", None),
            ("-1", None),
            ("1kk", None),
            ("\u{663}", None),
            ("99999999999999999999999", Some(u64::MAX)),
        ] {
            assert_eq!(number(word), value, "{word}");
        }
    }
}
