//! A secondary arbiter answers nobody while the primary lives (Ousterhout et al., *Flexplane*, NSDI 2017, section 4).
//!
//! The secondary asks the primary at its address every [`WatchdogOptions::interval`]. The primary returns the question as an answer, and needs no
//! configuration. If no answer has come for [`WatchdogOptions::silence`], the secondary takes over, and stays active. The silence is
//! shorter than that of endpoints, so that they find an arbiter that answers. The state of an arbiter is soft: endpoints send pending requests again.

use std::net::SocketAddr;

use thalweg_wire::{Nanos, Timestamp};

/// The question of a secondary. No datagram of the emulation protocol begins like this: its first byte is the version.
pub const QUESTION: &[u8] = b"thalweg-watchdog?";

/// The answer of an active arbiter.
pub const ANSWER: &[u8] = b"thalweg-watchdog!";

/// The times of a watchdog.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WatchdogOptions {
    /// The time between questions. Default: 5 ms.
    pub interval: Nanos,
    /// The primary has failed if it does not answer for so long. Default: 25 ms, half of the silence of endpoints.
    pub silence: Nanos,
}

impl Default for WatchdogOptions {
    fn default() -> WatchdogOptions {
        WatchdogOptions { interval: Nanos::from_millis(5), silence: Nanos::from_millis(25) }
    }
}

/// The watchdog of a secondary.
#[derive(Clone, Debug)]
pub struct Watchdog {
    options: WatchdogOptions,
    primary: SocketAddr,
    asked_at: Option<Timestamp>,
    /// When the primary was last heard, or asked for the first time.
    heard_at: Option<Timestamp>,
    /// Questions since the primary was heard.
    unanswered: u32,
    took_over_at: Option<Timestamp>,
    /// Datagrams of endpoints before.
    pub ignored: u64,
}

/// The smallest number of questions without an answer: a secondary that was stopped itself has heard nothing either.
const MIN_QUESTIONS: u32 = 3;

impl Watchdog {
    /// A secondary of the arbiter at this address.
    pub fn new(primary: SocketAddr, options: WatchdogOptions) -> Watchdog {
        Watchdog {
            options,
            primary,
            asked_at: None,
            heard_at: None,
            unanswered: 0,
            took_over_at: None,
            ignored: 0,
        }
    }

    /// Takes a datagram. Returns whether the arbiter is active, so that the datagram is for it.
    pub fn receive(&mut self, now: Timestamp, from: SocketAddr, bytes: &[u8]) -> bool {
        if bytes == ANSWER {
            if from == self.primary {
                (self.heard_at, self.unanswered) = (Some(now), 0);
            }
            return false;
        }
        let is_active = self.took_over_at.is_some();
        self.ignored += u64::from(!is_active);
        is_active
    }

    /// Returns the address of the primary if it is to be asked now. Takes over if it has been silent. Hand over all datagrams that have
    /// arrived before.
    pub fn tick(&mut self, now: Timestamp) -> Option<SocketAddr> {
        if self.took_over_at.is_some() {
            return None;
        }
        let heard_at = *self.heard_at.get_or_insert(now);
        if self.unanswered >= MIN_QUESTIONS && now >= heard_at + self.options.silence {
            self.took_over_at = Some(now);
            return None;
        }
        if self.asked_at.is_some_and(|asked| now < asked + self.options.interval) {
            return None;
        }
        self.asked_at = Some(now);
        self.unanswered += 1;
        Some(self.primary)
    }

    /// When it took over.
    pub fn took_over_at(&self) -> Option<Timestamp> {
        self.took_over_at
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Timestamp {
        Timestamp(millis * 1_000_000)
    }

    #[test]
    fn the_secondary_takes_over_when_the_primary_is_silent() {
        let primary = ([10, 0, 0, 1], 7).into();
        let mut watchdog = Watchdog::new(primary, WatchdogOptions::default());
        let mut questions = 0;
        for millis in 0..100 {
            if watchdog.tick(at(millis)).is_some() {
                questions += 1;
                watchdog.receive(at(millis), primary, ANSWER);
                // An answer from elsewhere does not count.
            }
        }
        assert_eq!((questions, watchdog.took_over_at()), (20, None));
        assert!(!watchdog.receive(at(100), ([10, 0, 0, 9], 7).into(), b"request"));
        for millis in 100..200 {
            watchdog.tick(at(millis));
            watchdog.receive(at(millis), ([10, 0, 0, 9], 7).into(), ANSWER);
        }
        assert_eq!(watchdog.took_over_at(), Some(at(95 + 25)));
        assert!(watchdog.receive(at(200), ([10, 0, 0, 9], 7).into(), b"request"));
        assert_eq!(watchdog.ignored, 1);
    }

    #[test]
    fn a_secondary_that_was_stopped_itself_asks_first() {
        let primary = ([10, 0, 0, 1], 7).into();
        let mut watchdog = Watchdog::new(primary, WatchdogOptions::default());
        watchdog.tick(at(0));
        watchdog.receive(at(0), primary, ANSWER);
        assert_eq!(watchdog.tick(at(10_000)), Some(primary));
        watchdog.receive(at(10_000), primary, ANSWER);
        assert_eq!((watchdog.tick(at(10_001)), watchdog.took_over_at()), (None, None));
    }
}
