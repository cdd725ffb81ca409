//! How long to wait before connecting again.

use thalweg_wire::Nanos;

use super::config::BackOff;

/// The next wait, and those after it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waits {
    back_off: BackOff,
    next: Nanos,
}

impl Waits {
    pub(super) fn new(back_off: BackOff) -> Waits {
        Waits { back_off, next: back_off.first }
    }

    /// After an attempt that failed.
    pub(super) fn after_failure(&mut self) -> Nanos {
        let wait = self.next.min(self.back_off.longest);
        self.next = wait.saturating_add(wait);
        wait
    }

    /// After a connection that had come up: the first wait again.
    pub(super) fn after_success(&mut self) -> Nanos {
        *self = Waits::new(self.back_off);
        self.after_failure()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_the_longest_and_begin_anew_after_success() {
        let back_off = BackOff { first: Nanos(100), longest: Nanos(450) };
        let mut waits = Waits::new(back_off);
        let failures: Vec<_> = (0..5).map(|_| waits.after_failure().0).collect();
        assert_eq!(failures, [100, 200, 400, 450, 450]);
        assert_eq!([waits.after_success().0, waits.after_failure().0], [100, 200]);
    }
}
