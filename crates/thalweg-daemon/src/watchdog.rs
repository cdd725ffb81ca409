//! Detects collector threads that hang, for the watchdog.

use super::collectors::CollectorHandle;
use super::event::CollectorState;

/// Heartbeats of collectors at the last check.
#[derive(Debug, Default)]
pub(super) struct Watchdog {
    beats: Vec<(String, u64)>,
}

impl Watchdog {
    /// Whether the heartbeat of every collector has advanced since the last check. Stopped collectors are ignored: a reload may take
    /// a while to replace them.
    pub(super) fn is_alive(&mut self, collectors: &[CollectorHandle]) -> bool {
        let active = collectors.iter().filter(|collector| collector.state() != CollectorState::Stopped);
        let beats = active.map(|collector| (collector.name().to_owned(), collector.heartbeat())).collect();
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
    fn one_hanging_thread_is_detected() {
        let ((a, works), (b, hangs)) = (collector("a"), collector("b"));
        let (mut watchdog, collectors) = (Watchdog::default(), [a, b]);
        assert!(watchdog.is_alive(&collectors), "the first check");
        works.beat();
        hangs.beat();
        assert!(watchdog.is_alive(&collectors));
        works.beat();
        assert!(!watchdog.is_alive(&collectors));
        // As after an uncaught panic.
        drop(hangs);
        works.beat();
        assert!(!watchdog.is_alive(&collectors));
    }

    #[test]
    fn a_stopped_collector_is_ignored() {
        let (a, mailbox) = collector("a");
        let (mut watchdog, collectors) = (Watchdog::default(), [a]);
        assert!(watchdog.is_alive(&collectors));
        mailbox.set_state(CollectorState::Stopped);
        assert!(watchdog.is_alive(&collectors));
    }
}
