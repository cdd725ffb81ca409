//! Whether a switch is still there: echoes (section 6.3.3 leaves their timing to us).

use thalweg_wire::{Nanos, Timestamp};

/// When a switch was last heard, and asked.
#[derive(Clone, Copy, Debug)]
pub(super) struct KeepAlive {
    interval: Nanos,
    timeout: Nanos,
    heard: Timestamp,
    asked: Option<Timestamp>,
}

/// What is to be done about a switch now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Nothing.
    Well,
    /// It is to be asked for an echo.
    Ask,
    /// It is to be given up.
    Gone,
}

impl KeepAlive {
    /// To ask after `interval` without a word, and to give up `timeout` after that.
    pub(super) fn new(interval: Nanos, timeout: Nanos, now: Timestamp) -> KeepAlive {
        KeepAlive { interval, timeout, heard: now, asked: None }
    }

    /// Something came, whatever it was.
    pub(super) fn heard(&mut self, now: Timestamp) {
        (self.heard, self.asked) = (now, None);
    }

    /// To be called again and again. Says [`Verdict::Ask`] once for each silence.
    pub(super) fn check(&mut self, now: Timestamp) -> Verdict {
        match self.asked {
            Some(asked) if now - asked >= self.timeout => Verdict::Gone,
            None if now - self.heard >= self.interval => {
                self.asked = Some(now);
                Verdict::Ask
            }
            _ => Verdict::Well,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_silent_switch_is_asked_once_and_then_given_up() {
        let mut alive = KeepAlive::new(Nanos(10), Nanos(20), Timestamp(100));
        assert_eq!(alive.check(Timestamp(109)), Verdict::Well);
        assert_eq!(alive.check(Timestamp(112)), Verdict::Ask);
        assert_eq!(alive.check(Timestamp(131)), Verdict::Well);
        assert_eq!(alive.check(Timestamp(132)), Verdict::Gone);
    }

    #[test]
    fn a_switch_that_answers_is_well_for_another_interval() {
        let mut alive = KeepAlive::new(Nanos(10), Nanos(20), Timestamp(100));
        assert_eq!(alive.check(Timestamp(110)), Verdict::Ask);
        alive.heard(Timestamp(125));
        assert_eq!(alive.check(Timestamp(134)), Verdict::Well);
        assert_eq!(alive.check(Timestamp(135)), Verdict::Ask);
    }
}
