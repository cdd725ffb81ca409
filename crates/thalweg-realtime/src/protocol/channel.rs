//! What both sides do with headers: sessions, numbers, acknowledgements.

use thalweg_wire::emulation_protocol::{Acknowledgement, Direction, Header, Sequence, Session};
use thalweg_wire::{Nanos, Timestamp};

use super::LinkOptions;

/// An acknowledgement is sent at the latest after this number of datagrams: half of the numbers that it covers, so
/// that each is acknowledged at least twice.
const MAX_UNACKNOWLEDGED: u32 = 16;

/// The header fields of one side.
pub(super) struct Channel {
    direction: Direction,
    endpoint: u16,
    session: Session,
    peer_session: Option<Session>,
    next: Sequence,
    /// Which datagrams of the peer's session have arrived.
    arrived: Option<Acknowledgement>,
    /// When the oldest datagram arrived that has not been acknowledged and wants to be.
    waiting_since: Option<Timestamp>,
    /// The number of such datagrams.
    waiting: u32,
    delay: Nanos,
}

impl Channel {
    pub(super) fn new(
        direction: Direction,
        endpoint: u16,
        session: Session,
        options: &LinkOptions,
    ) -> Channel {
        Channel {
            direction,
            endpoint,
            session,
            peer_session: None,
            next: Sequence(1),
            arrived: None,
            waiting_since: None,
            waiting: 0,
            delay: options.acknowledgement_delay,
        }
    }

    pub(super) fn session(&self) -> Session {
        self.session
    }

    pub(super) fn set_session(&mut self, session: Session) {
        self.session = session;
    }

    pub(super) fn peer_session(&self) -> Option<Session> {
        self.peer_session
    }

    /// The peer is another one, or unknown: nothing of it has arrived.
    pub(super) fn set_peer_session(&mut self, session: Option<Session>) {
        self.peer_session = session;
        self.arrived = None;
        self.acknowledged();
    }

    /// The header of the next datagram.
    pub(super) fn header(&self, wants_acknowledgement: bool) -> Header {
        Header {
            direction: self.direction,
            wants_acknowledgement,
            endpoint: self.endpoint,
            session: self.session,
            peer_session: self.peer_session,
            sequence: self.next,
            acknowledgement: self.arrived,
        }
    }

    /// The datagram of [`Channel::header`] is sent.
    pub(super) fn sent(&mut self) {
        self.next = self.next.next();
        self.acknowledged();
    }

    fn acknowledged(&mut self) {
        (self.waiting_since, self.waiting) = (None, 0);
    }

    /// A datagram that has arrived before, or so long ago that it is unknown.
    pub(super) fn is_duplicate(&self, sequence: Sequence) -> bool {
        self.arrived.is_some_and(|arrived| {
            !sequence.is_after(arrived.highest)
                && (arrived.covers(sequence) || arrived.highest.distance_from(sequence) > u32::BITS)
        })
    }

    /// A datagram has arrived that is no duplicate.
    pub(super) fn arrived(&mut self, sequence: Sequence) {
        self.arrived = Some(match self.arrived {
            None => Acknowledgement { highest: sequence, before: 0 },
            Some(Acknowledgement { highest, before }) if sequence.is_after(highest) => {
                let distance = sequence.distance_from(highest);
                let before = before.checked_shl(distance).unwrap_or(0);
                let previous = 1_u32.checked_shl(distance - 1).unwrap_or(0);
                Acknowledgement { highest: sequence, before: before | previous }
            }
            Some(Acknowledgement { highest, before }) => {
                Acknowledgement { highest, before: before | 1 << (highest.distance_from(sequence) - 1) }
            }
        });
    }

    /// The peer wants an acknowledgement.
    pub(super) fn acknowledge(&mut self, now: Timestamp) {
        self.waiting_since.get_or_insert(now);
        self.waiting += 1;
    }

    /// The time at which an acknowledgement is sent alone.
    pub(super) fn acknowledgement_time(&self) -> Option<Timestamp> {
        let since = self.waiting_since?;
        Some(if self.waiting >= MAX_UNACKNOWLEDGED { since } else { since + self.delay })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrivals_out_of_order_are_remembered_for_32_numbers() {
        let session = Session::new(1).unwrap();
        let mut channel = Channel::new(Direction::ToEndpoint, 0, session, &LinkOptions::default());
        assert!(!channel.is_duplicate(Sequence(7)));
        let numbers = [10, 12, 11, 44, 43, 13, 12 + 1_000];
        for sequence in numbers.map(Sequence) {
            assert!(!channel.is_duplicate(sequence), "{sequence:?}");
            channel.arrived(sequence);
            assert!(channel.is_duplicate(sequence), "{sequence:?}");
        }
        assert!(channel.is_duplicate(Sequence(1_012 - 33)) && !channel.is_duplicate(Sequence(1_012 - 32)));
    }
}
