//! Formats quantities with a width that does not change from frame to frame.

use thalweg_wire::{Bytes, Nanos, Timestamp};

pub(crate) use crate::figures::grouped;

/// Maximum width of [`short`].
pub(crate) const SHORT_WIDTH: u16 = 5;
/// Maximum width of [`age`].
pub(crate) const AGE_WIDTH: u16 = 4;

/// Formats with three significant digits and a decimal prefix: `0`, `999`, `1.23k`, `45.6M`, `789G`.
pub(crate) fn short(value: u64) -> String {
    scaled(value, "").replacen(' ', "", 1)
}

/// Formats with three significant digits, a decimal prefix and a unit: `81.2 kpkt/s`.
pub(crate) fn scaled(value: u64, unit: &str) -> String {
    let text = Bytes(value).to_string();
    format!("{}{unit}", text.trim_end_matches('B')).trim_end().to_owned()
}

/// Formats packets per second: `81.2 kpkt/s`.
pub(crate) fn packet_rate(packets_per_second: f64) -> String {
    scaled(packets_per_second.round() as u64, "pkt/s")
}

/// Formats a duration in at most four columns, rounded down: `0.4s`, `59s`, `12m`, `36h`, `9d`, `3y`.
pub(crate) fn age(span: Nanos) -> String {
    let seconds = span.0 / 1_000_000_000;
    match seconds {
        0..10 => format!("{seconds}.{}s", span.0 / 100_000_000 % 10),
        10..100 => format!("{seconds}s"),
        100..6_000 => format!("{}m", seconds / 60),
        6_000..360_000 => format!("{}h", seconds / 3_600),
        360_000..86_400_000 => format!("{}d", seconds / 86_400),
        _ => format!("{}y", seconds / 31_557_600),
    }
}

/// Formats the time of day in UTC: `10:00:12.345`.
pub(crate) fn clock(time: Timestamp) -> String {
    time.to_string()[11..23].to_owned()
}

/// Formats the time of day in UTC with microseconds: `10:00:12.345678`.
pub(crate) fn clock_us(time: Timestamp) -> String {
    time.to_string()[11..26].to_owned()
}

/// Formats date and time: `2026-11-21 10:00:12.345 UTC`.
pub(crate) fn date_and_clock(time: Timestamp) -> String {
    format!("{} {} UTC", &time.to_string()[..10], clock(time))
}

/// Returns the share of `part` in `whole`, 0 to 1; 0 if `whole` is 0.
pub(crate) fn fraction(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { (part as f64 / whole as f64).min(1.0) }
}

/// Formats a percentage in five columns, rounded down: `43 %`.
pub(crate) fn percent(fraction: f64) -> String {
    format!("{:>3.0} %", (fraction * 100.0).floor())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn quantities_are_formatted() {
        let short: Vec<String> = [0, 999, 1_000, 45_600_000, 789_000_000_000].map(short).into();
        assert_eq!(short, ["0", "999", "1.00k", "45.6M", "789G"]);
        assert_eq!([0, 999, 1_000, 1_234_567].map(grouped), ["0", "999", "1,000", "1,234,567"]);
        assert_eq!([0.4, 999.0, 81_249.0].map(packet_rate), ["0 pkt/s", "999 pkt/s", "81.2 kpkt/s"]);
        let ages = [450, 59_999, 720_000, 129_600_000, 950_400_000].map(|ms| age(Nanos::from_millis(ms)));
        assert_eq!(ages, ["0.4s", "59s", "12m", "36h", "11d"]);
        let time = Timestamp::new(1_795_255_212, 345_678_901);
        assert_eq!(date_and_clock(time), "2026-11-21 10:00:12.345 UTC");
        assert_eq!(clock_us(time), "10:00:12.345678");
        assert_eq!([0.0, 0.999, 1.0].map(percent), ["  0 %", " 99 %", "100 %"]);
    }

    proptest! {
        #[test]
        fn every_value_fits_its_columns(value: u64) {
            prop_assert!(short(value).len() <= usize::from(SHORT_WIDTH));
            prop_assert!(age(Nanos(value)).len() <= usize::from(AGE_WIDTH));
        }
    }
}
