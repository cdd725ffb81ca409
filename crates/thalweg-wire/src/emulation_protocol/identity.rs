//! Sessions, sequence numbers and flows.

use std::num::NonZeroU32;

use crate::time::Timestamp;

/// Whether `a` follows `b` in serial number arithmetic (RFC 1982, section 3.2): by less than half of all numbers.
const fn follows(a: u32, b: u32) -> bool {
    a != b && a.wrapping_sub(b) < 1 << 31
}

/// One run of an endpoint or of an arbiter. A restart has a later session, so that its peers forget what the earlier
/// run knew, and refuse what it still has on the way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Session(NonZeroU32);

impl Session {
    /// The session with this number; 0 is reserved for an unknown session.
    pub const fn new(number: u32) -> Option<Session> {
        match NonZeroU32::new(number) {
            Some(number) => Some(Session(number)),
            None => None,
        }
    }

    /// The session of a node that starts now: the time in tenths of a second, modulo 2^32 (13.6 years). A node that
    /// restarts within a tenth of a second waits for the next one. If its clock was set back, its peers know a later
    /// session and the node continues from that.
    pub const fn started_at(now: Timestamp) -> Session {
        match Session::new((now.0 / 100_000_000) as u32) {
            Some(session) => session,
            None => Session(NonZeroU32::MIN),
        }
    }

    /// The number.
    pub const fn number(self) -> u32 {
        self.0.get()
    }

    /// Whether this session began after `other`, by serial number arithmetic: correct for runs less than 6.8 years
    /// apart.
    pub const fn is_later_than(self, other: Session) -> bool {
        follows(self.number(), other.number())
    }

    /// The next session.
    pub const fn next(self) -> Session {
        match self.0.checked_add(1) {
            Some(next) => Session(next),
            None => Session(NonZeroU32::MIN),
        }
    }
}

/// The number of a datagram within the session of its sender. No number is used twice: a retransmission has a number
/// of its own, so an acknowledgement says exactly which datagram arrived. Numbers wrap around and are compared by
/// serial number arithmetic.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Sequence(pub u32);

impl Sequence {
    /// The next number.
    pub const fn next(self) -> Sequence {
        Sequence(self.0.wrapping_add(1))
    }

    /// Whether this number follows `other`.
    pub const fn is_after(self, other: Sequence) -> bool {
        follows(self.0, other.0)
    }

    /// How many numbers this one is after `other`, which is not after it.
    pub const fn distance_from(self, other: Sequence) -> u32 {
        self.0.wrapping_sub(other.0)
    }
}

/// A flow of an emulated network.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Flow {
    /// The endpoint that sends.
    pub source: u16,
    /// The endpoint that receives.
    pub destination: u16,
    /// The flow between them. Small numbers take fewer bytes.
    pub number: u32,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sessions_and_sequence_numbers_wrap_around() {
        let session = |number| Session::new(number).unwrap();
        assert!(session(1).is_later_than(session(u32::MAX)) && !session(u32::MAX).is_later_than(session(1)));
        assert!(!session(5).is_later_than(session(5)));
        assert_eq!(session(u32::MAX).next(), session(1));
        assert!(Sequence(u32::MAX).next().is_after(Sequence(u32::MAX)));
        assert_eq!(Sequence(2).distance_from(Sequence(u32::MAX)), 3);
    }

    #[test]
    fn a_session_is_its_start_in_tenths_of_a_second() {
        assert_eq!(Session::started_at(Timestamp(1_250_000_000)).number(), 12);
        assert_eq!(Session::started_at(Timestamp(0)).number(), 1);
    }
}
