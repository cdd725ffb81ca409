//! Whether the threads of collectors still do their work, for the watchdog.

use super::collectors::CollectorHandle;
use super::event::CollectorState;

/// Heartbeats of collectors, as they were at the last look.
#[derive(Debug, Default)]
pub(super) struct Watchdog {
    beats: Vec<(String, u64)>,
}

impl Watchdog {
    /// Whether every collector has done something since the last look, but for those that were told to stop and have:
    /// a reload may take a while to put others in their place.
    pub(super) fn is_alive(&mut self, collectors: &[CollectorHandle]) -> bool {
        let at_work = collectors.iter().filter(|collector| collector.state() != CollectorState::Stopped);
        let beats = at_work.map(|collector| (collector.name().to_owned(), collector.heartbeat())).collect();
        let before = std::mem::replace(&mut self.beats, beats);
        !self.beats.iter().any(|beat| before.contains(beat))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collectors::{Description, Mailbox};

    fn collector(name: &str) -> (CollectorHandle, Mailbox) {
        let (name, switch, source) = (name.into(), "tor0".into(), "eth1".to_owned());
        CollectorHandle::new(Description { name, switch, source, is_live: true })
    }

    #[test]
    fn one_thread_that_hangs_is_noticed_though_others_work() {
        let ((a, works), (b, hangs)) = (collector("a"), collector("b"));
        let (mut watchdog, collectors) = (Watchdog::default(), [a, b]);
        assert!(watchdog.is_alive(&collectors), "nothing is known of the time before");
        works.beat();
        hangs.beat();
        assert!(watchdog.is_alive(&collectors));
        works.beat();
        assert!(!watchdog.is_alive(&collectors));
        // As after a panic that nobody has caught.
        drop(hangs);
        works.beat();
        assert!(!watchdog.is_alive(&collectors));
    }

    #[test]
    fn one_that_has_stopped_is_not_missed() {
        let (a, mailbox) = collector("a");
        let (mut watchdog, collectors) = (Watchdog::default(), [a]);
        assert!(watchdog.is_alive(&collectors));
        mailbox.set_state(CollectorState::Stopped);
        assert!(watchdog.is_alive(&collectors));
    }
}
