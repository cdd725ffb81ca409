//! The limit of rows of a host: a token bucket.

use std::time::Duration;

use thalweg_wire::Timestamp;

/// Seconds of the average rate that may arrive at once.
const BURST_SECONDS: u64 = 60;

/// The rows that a host may still report.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RowsLimit {
    /// Rows at `since`; `None` before the first report.
    left: Option<f64>,
    since: Timestamp,
}

impl RowsLimit {
    /// Takes rows at a maximum average rate.
    ///
    /// # Errors
    /// Returns how long to wait if there are too many.
    pub(super) fn take(&mut self, rows: u64, per_second: u64, now: Timestamp) -> Result<(), Duration> {
        let most = (per_second * BURST_SECONDS) as f64;
        // A clock that was set back adds nothing.
        let passed = now.0.saturating_sub(self.since.0) as f64 / 1e9;
        let left = self.left.map_or(most, |left| (left + passed * per_second as f64).min(most));
        self.since = now;
        // A report larger than the burst passes when the bucket is full.
        let needed = (rows as f64).min(most);
        let is_allowed = left >= needed;
        self.left = Some(if is_allowed { left - rows as f64 } else { left });
        match is_allowed {
            true => Ok(()),
            false => Err(Duration::from_secs_f64((needed - left) / per_second as f64)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_beyond_the_burst_wait_for_their_share() {
        let at = |seconds: u64| Timestamp(seconds * 1_000_000_000);
        let mut limit = RowsLimit::default();
        assert_eq!(limit.take(600, 10, at(100)), Ok(()));
        assert_eq!(limit.take(50, 10, at(102)), Err(Duration::from_secs(3)));
        assert_eq!(limit.take(50, 10, at(105)), Ok(()));
        assert_eq!(limit.take(1, 10, at(90)), Err(Duration::from_millis(100)), "the clock was set back");
        assert_eq!(limit.take(10_000, 10, at(1_000)), Ok(()), "larger than the burst");
        assert!(limit.take(1, 10, at(1_001)).is_err());
    }
}
