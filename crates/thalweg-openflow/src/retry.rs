//! Delays between connection attempts.

use thalweg_wire::Nanos;

use crate::config::BackOff;

/// Exponential back-off.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RetryDelays {
    back_off: BackOff,
    next: Nanos,
}

impl RetryDelays {
    pub(crate) fn new(back_off: BackOff) -> RetryDelays {
        RetryDelays { back_off, next: back_off.first }
    }

    /// Returns the delay after a failed attempt.
    pub(crate) fn after_failure(&mut self) -> Nanos {
        let wait = self.next.min(self.back_off.longest);
        self.next = wait.saturating_add(wait);
        wait
    }

    /// Returns the delay after an established connection ended: the first one again.
    pub(crate) fn after_success(&mut self) -> Nanos {
        *self = RetryDelays::new(self.back_off);
        self.after_failure()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_double_up_to_the_longest_and_reset_after_success() {
        let back_off = BackOff { first: Nanos(100), longest: Nanos(450) };
        let mut delays = RetryDelays::new(back_off);
        let failures: Vec<_> = (0..5).map(|_| delays.after_failure().0).collect();
        assert_eq!(failures, [100, 200, 400, 450, 450]);
        assert_eq!([delays.after_success().0, delays.after_failure().0], [100, 200]);
    }
}
