//! Liveness of a switch by echo requests (section 6.3.3 leaves their timing open).

use thalweg_wire::{Nanos, Timestamp};

/// Tracks the last message of a switch and the pending echo request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KeepAlive {
    interval: Nanos,
    timeout: Nanos,
    last_received: Timestamp,
    probed: Option<Timestamp>,
}

/// The liveness of a switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PeerState {
    /// Messages arrive; nothing to do.
    Alive,
    /// Silent: send an echo request.
    Probe,
    /// Dead: close the connection.
    Dead,
}

impl KeepAlive {
    /// Sends an echo request after `interval` of silence, and gives up `timeout` later.
    pub(crate) fn new(interval: Nanos, timeout: Nanos, now: Timestamp) -> KeepAlive {
        KeepAlive { interval, timeout, last_received: now, probed: None }
    }

    /// Records that any message arrived.
    pub(crate) fn received(&mut self, now: Timestamp) {
        (self.last_received, self.probed) = (now, None);
    }

    /// Returns the liveness; call it periodically. Returns [`PeerState::Probe`] once per silence.
    pub(crate) fn check(&mut self, now: Timestamp) -> PeerState {
        match self.probed {
            Some(probed) if now - probed >= self.timeout => PeerState::Dead,
            None if now - self.last_received >= self.interval => {
                self.probed = Some(now);
                PeerState::Probe
            }
            _ => PeerState::Alive,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_silent_switch_is_probed_once_and_then_is_dead() {
        let mut alive = KeepAlive::new(Nanos(10), Nanos(20), Timestamp(100));
        assert_eq!(alive.check(Timestamp(109)), PeerState::Alive);
        assert_eq!(alive.check(Timestamp(112)), PeerState::Probe);
        assert_eq!(alive.check(Timestamp(131)), PeerState::Alive);
        assert_eq!(alive.check(Timestamp(132)), PeerState::Dead);
    }

    #[test]
    fn an_answer_keeps_a_switch_alive_for_another_interval() {
        let mut alive = KeepAlive::new(Nanos(10), Nanos(20), Timestamp(100));
        assert_eq!(alive.check(Timestamp(110)), PeerState::Probe);
        alive.received(Timestamp(125));
        assert_eq!(alive.check(Timestamp(134)), PeerState::Alive);
        assert_eq!(alive.check(Timestamp(135)), PeerState::Probe);
    }
}
