//! Periods: the times T2 for which traffic is summarised and a threshold holds, one hour by default.

use thalweg_wire::{Nanos, Timestamp};

/// Periods per day. A period of the dissertation is an hour.
pub const PERIODS_PER_DAY: u64 = 24;

/// A period, counted from 1970 in UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Period(pub u64);

impl Period {
    /// Returns the period of `length` that contains `time`.
    pub fn at(time: Timestamp, length: Nanos) -> Period {
        Period(time.0 / length.0.max(1))
    }

    /// Returns its beginning.
    pub fn start(self, length: Nanos) -> Timestamp {
        Timestamp(self.0.saturating_mul(length.0))
    }

    /// Returns its place in the day, 0 to 23: the hour if periods are hours.
    pub fn of_day(self) -> u64 {
        self.0 % PERIODS_PER_DAY
    }

    /// Returns the period before it.
    pub fn previous(self) -> Period {
        Period(self.0.saturating_sub(1))
    }

    /// Returns the period after it.
    pub fn next(self) -> Period {
        Period(self.0 + 1)
    }

    /// Returns the same period `days` days before; `None` before 1970.
    pub fn days_before(self, days: u64) -> Option<Period> {
        self.0.checked_sub(days * PERIODS_PER_DAY).map(Period)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_hour_has_a_number_and_a_place_in_the_day() {
        let hour = Nanos::from_secs(3_600);
        // 1970-01-03 05:59:59.
        let period = Period::at(Timestamp((2 * 86_400 + 6 * 3_600 - 1) * 1_000_000_000), hour);
        assert_eq!((period.0, period.of_day()), (53, 5));
        assert_eq!(period.next().start(hour), Timestamp((2 * 86_400 + 6 * 3_600) * 1_000_000_000));
        assert_eq!((period.days_before(2), period.days_before(3)), (Some(Period(5)), None));
    }
}
