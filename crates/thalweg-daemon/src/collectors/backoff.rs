//! Retry delays of failed sources.

use std::time::Duration;

/// Exponential backoff.
#[derive(Clone, Copy, Debug)]
pub(super) struct Backoff {
    next: Duration,
}

impl Backoff {
    /// The first delay.
    pub(super) const SHORTEST: Duration = Duration::from_millis(500);

    /// The longest delay. A source that ran at least this long starts with the shortest again.
    pub(super) const LONGEST: Duration = Duration::from_secs(30);

    /// Returns the delay after a source that ran for `ran`.
    pub(super) fn after(&mut self, ran: Duration) -> Duration {
        if ran >= Self::LONGEST {
            *self = Backoff::default();
        }
        let wait = self.next;
        self.next = (wait * 2).min(Self::LONGEST);
        wait
    }
}

impl Default for Backoff {
    fn default() -> Self {
        Backoff { next: Self::SHORTEST }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_double_and_reset_after_a_long_run() {
        let mut backoff = Backoff::default();
        let waits: Vec<u128> = (0..8).map(|_| backoff.after(Duration::from_secs(1)).as_millis()).collect();
        assert_eq!(waits, [500, 1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000]);
        assert_eq!(backoff.after(Duration::from_secs(30)), Backoff::SHORTEST);
        assert_eq!(backoff.after(Duration::ZERO), 2 * Backoff::SHORTEST);
    }
}
