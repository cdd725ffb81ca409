//! A limit of changes per second.

use thalweg_wire::Timestamp;

/// A token bucket: allows as many changes per second, and as many at once after a pause of a second.
#[derive(Clone, Debug)]
pub(super) struct ChangeLimiter {
    per_second: u64,
    /// Changes that are allowed now, in billionths.
    allowed: u64,
    updated: Timestamp,
}

/// One change.
const CHANGE: u64 = 1_000_000_000;

impl ChangeLimiter {
    pub(super) fn new(per_second: u32, now: Timestamp) -> ChangeLimiter {
        let per_second = u64::from(per_second.max(1));
        ChangeLimiter { per_second, allowed: per_second * CHANGE, updated: now }
    }

    /// Takes one change at `now`. Returns whether it is allowed.
    pub(super) fn take(&mut self, now: Timestamp) -> bool {
        // The time since the last update is in billionths of a second, too.
        let earned = now.since(self.updated).0.saturating_mul(self.per_second);
        self.allowed = self.allowed.saturating_add(earned).min(self.per_second * CHANGE);
        self.updated = self.updated.max(now);
        let is_allowed = self.allowed >= CHANGE;
        if is_allowed {
            self.allowed -= CHANGE;
        }
        is_allowed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_earns_the_changes_of_a_second() {
        let second = |count: u64| Timestamp(count * 1_000_000_000);
        let mut limiter = ChangeLimiter::new(3, second(1));
        let count = |limiter: &mut ChangeLimiter, now| (0..10).filter(|_| limiter.take(now)).count();
        assert_eq!(count(&mut limiter, second(1)), 3);
        assert_eq!(count(&mut limiter, second(1)), 0);
        assert_eq!(count(&mut limiter, Timestamp(1_400_000_000)), 1);
        assert_eq!(count(&mut limiter, second(9)), 3, "no more than after one second");
        assert_eq!(count(&mut limiter, second(2)), 0, "a time before the last earns nothing");
    }
}
