//! The header of a datagram.

use super::cursor::Cursor;
use super::{DecodeError, HEADER_LENGTH, Sequence, Session, VERSION};

/// The flag of datagrams from the arbiter.
const FROM_ARBITER: u8 = 1 << 0;
/// The flag of datagrams that the receiver has to acknowledge.
const WANTS_ACKNOWLEDGEMENT: u8 = 1 << 1;
/// The flag of datagrams that acknowledge others.
const ACKNOWLEDGES: u8 = 1 << 2;

/// The direction of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From an endpoint to the arbiter: requests.
    ToArbiter,
    /// From the arbiter to an endpoint: answers.
    ToEndpoint,
}

/// Which datagrams of the peer have arrived: the highest number, and of the 32 numbers before it those whose bit is
/// set.
///
/// Every datagram repeats it, so an acknowledgement is lost only if all datagrams that have it are. There is no
/// cumulative number: a lost datagram is never sent again under its number, so that number would stand still.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Acknowledgement {
    /// The highest number that has arrived.
    pub highest: Sequence,
    /// Bit i is set if the number `highest - 1 - i` has arrived.
    pub before: u32,
}

impl Acknowledgement {
    /// Whether the datagram with this number has arrived. Of older ones than the bits describe, it is unknown: false.
    pub const fn covers(&self, sequence: Sequence) -> bool {
        match self.highest.distance_from(sequence) {
            0 => true,
            distance @ 1..=32 => self.before >> (distance - 1) & 1 == 1,
            _ => false,
        }
    }
}

/// The header of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// The direction.
    pub direction: Direction,
    /// Whether the receiver has to acknowledge the datagram. A datagram that only acknowledges others does not want
    /// to be.
    pub wants_acknowledgement: bool,
    /// The endpoint, in both directions.
    pub endpoint: u16,
    /// The session of the sender.
    pub session: Session,
    /// The session of the receiver as far as the sender knows.
    pub peer_session: Option<Session>,
    /// The number of the datagram in the sender's session.
    pub sequence: Sequence,
    /// What has arrived from the receiver in its session `peer_session`.
    pub acknowledgement: Option<Acknowledgement>,
}

impl Header {
    /// Decodes the header of a datagram without the rest and without the checksum, for instance to find the
    /// endpoint's state.
    ///
    /// # Errors
    /// If the header is truncated or invalid.
    pub fn decode(datagram: &[u8]) -> Result<Header, DecodeError> {
        Ok(Header::read(&mut Cursor::new(datagram))?.0)
    }

    /// Reads the header, and returns it with the checksum.
    pub(super) fn read(from: &mut Cursor<'_>) -> Result<(Header, u32), DecodeError> {
        match from.byte("version")? {
            VERSION => {}
            found => return Err(DecodeError::Version { found }),
        }
        let flags = from.byte("flags")?;
        if flags & !(FROM_ARBITER | WANTS_ACKNOWLEDGEMENT | ACKNOWLEDGES) != 0 {
            let (field, found, expected) = ("flags", flags.into(), "0 in bits 3 to 7");
            return Err(DecodeError::Value { field, offset: 1, found, expected });
        }
        let endpoint = from.u16("endpoint")?;
        let Some(session) = Session::new(from.u32("session")?) else {
            let (field, expected) = ("session", "1 or more");
            return Err(DecodeError::Value { field, offset: 4, found: 0, expected });
        };
        let peer_session = Session::new(from.u32("session of the receiver")?);
        let sequence = Sequence(from.u32("sequence number")?);
        let highest = from.u32("acknowledged sequence number")?;
        let before = from.u32("acknowledgement bits")?;
        let checksum = from.u32("checksum")?;
        let acknowledgement = match flags & ACKNOWLEDGES != 0 {
            true => Some(Acknowledgement { highest: Sequence(highest), before }),
            false if highest != 0 || before != 0 => {
                let found = u64::from(highest) << 32 | u64::from(before);
                let (field, expected) = ("acknowledgement", "0 without its flag");
                return Err(DecodeError::Value { field, offset: 16, found, expected });
            }
            false => None,
        };
        let direction = match flags & FROM_ARBITER != 0 {
            true => Direction::ToEndpoint,
            false => Direction::ToArbiter,
        };
        let wants_acknowledgement = flags & WANTS_ACKNOWLEDGEMENT != 0;
        let header = Header {
            direction,
            wants_acknowledgement,
            endpoint,
            session,
            peer_session,
            sequence,
            acknowledgement,
        };
        Ok((header, checksum))
    }

    /// Encodes the header with the checksum 0.
    pub(super) fn encode(&self) -> [u8; HEADER_LENGTH] {
        let flag = |is_set, flag| if is_set { flag } else { 0 };
        let flags = flag(self.direction == Direction::ToEndpoint, FROM_ARBITER)
            | flag(self.wants_acknowledgement, WANTS_ACKNOWLEDGEMENT)
            | flag(self.acknowledgement.is_some(), ACKNOWLEDGES);
        let (highest, before) = self.acknowledgement.map_or((0, 0), |seen| (seen.highest.0, seen.before));
        let mut bytes = [0; HEADER_LENGTH];
        bytes[0] = VERSION;
        bytes[1] = flags;
        bytes[2..4].copy_from_slice(&self.endpoint.to_be_bytes());
        let peer_session = self.peer_session.map_or(0, Session::number);
        for (word, number) in
            [self.session.number(), peer_session, self.sequence.0, highest, before].into_iter().enumerate()
        {
            bytes[4 + 4 * word..8 + 4 * word].copy_from_slice(&number.to_be_bytes());
        }
        bytes
    }
}
