//! The state of a running arbiter, for a tool on the same machine that asks it.
//!
//! Like the question of a [`watchdog`](super::watchdog), the question is a datagram that cannot be one of the emulation protocol, and costs a comparison per
//! datagram while nobody asks. It is as long as the answer: an arbiter that is asked with a forged address sends no more than it received.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::time::Duration;

use thalweg_wire::Nanos;

/// The first bytes of an answer.
const NAME: &[u8; 16] = b"thalweg-status-1";

/// The numbers of an answer, 8 bytes each.
const NUMBERS: usize = 8;

/// The length of question and answer in bytes.
const LENGTH: usize = NAME.len() + 8 * NUMBERS;

/// The question.
pub const QUESTION: &[u8; LENGTH] = &{
    let mut question = [b'?'; LENGTH];
    let (name, _) = question.split_at_mut(NAME.len());
    name.copy_from_slice(NAME);
    question
};

/// Bits of the first number.
const ACTIVE: u64 = 1;
const VALID: u64 = 2;

/// The state of an arbiter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LiveStatus {
    /// Whether it decides on packets: it is no secondary, or has taken over.
    pub is_active: bool,
    /// Whether few enough slots were late so far.
    pub is_valid: bool,
    /// Slots that were due and not skipped.
    pub slots: u64,
    /// Slots that started late.
    pub late_slots: u64,
    /// Slots of pauses.
    pub skipped_slots: u64,
    /// The longest delay of a slot.
    pub worst: Nanos,
    /// Requests.
    pub requests: u64,
    /// Answers.
    pub answers: u64,
    /// Endpoints that have been heard within [`Options::leave_after`](super::Options::leave_after).
    pub endpoints: u64,
}

impl LiveStatus {
    /// Encodes an answer.
    pub fn encode(&self) -> [u8; LENGTH] {
        let flags = u64::from(self.is_active) * ACTIVE + u64::from(self.is_valid) * VALID;
        let numbers: [u64; NUMBERS] = [
            flags,
            self.slots,
            self.late_slots,
            self.skipped_slots,
            self.worst.0,
            self.requests,
            self.answers,
            self.endpoints,
        ];
        let mut bytes = [0; LENGTH];
        let (name, rest) = bytes.split_at_mut(NAME.len());
        name.copy_from_slice(NAME);
        rest.copy_from_slice(numbers.map(u64::to_be_bytes).as_flattened());
        bytes
    }

    /// Decodes an answer; `None` if the bytes are none.
    pub fn decode(bytes: &[u8]) -> Option<LiveStatus> {
        if bytes.len() != LENGTH || bytes == QUESTION {
            return None;
        }
        let numbers = bytes.strip_prefix(NAME)?.as_chunks::<8>().0;
        let number = |place: usize| u64::from_be_bytes(numbers[place]);
        Some(LiveStatus {
            is_active: number(0) & ACTIVE != 0,
            is_valid: number(0) & VALID != 0,
            slots: number(1),
            late_slots: number(2),
            skipped_slots: number(3),
            worst: Nanos(number(4)),
            requests: number(5),
            answers: number(6),
            endpoints: number(7),
        })
    }

    /// The share of late and skipped slots, 0 to 1.
    pub fn late_share(&self) -> f64 {
        let bad = self.late_slots + self.skipped_slots;
        bad as f64 / (self.slots + self.skipped_slots).max(1) as f64
    }

    /// Asks the arbiter at an address of this machine. Returns `None` if nobody answers within `timeout`.
    ///
    /// # Errors
    /// If the kernel refuses a socket.
    pub fn ask(arbiter: SocketAddr, timeout: Duration) -> io::Result<Option<LiveStatus>> {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
        socket.connect(arbiter)?;
        socket.set_read_timeout(Some(timeout))?;
        let mut answer = [0; LENGTH + 1];
        // Refused, or no answer in time.
        let received = socket.send(QUESTION).and_then(|_| socket.recv(&mut answer));
        Ok(received.ok().and_then(|length| LiveStatus::decode(&answer[..length])))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use thalweg_wire::emulation_protocol::Header;

    use super::*;

    proptest! {
        #[test]
        fn any_bytes_decode_without_panic(bytes in proptest::collection::vec(any::<u8>(), 0..100)) {
            if let Some(status) = LiveStatus::decode(&bytes) {
                prop_assert_eq!(LiveStatus::decode(&status.encode()), Some(status));
            }
        }
    }

    #[test]
    fn an_answer_is_decoded_and_no_question_or_datagram_of_the_protocol() {
        let status = LiveStatus {
            is_active: true,
            is_valid: false,
            slots: 900,
            late_slots: 10,
            skipped_slots: 100,
            worst: Nanos(5),
            requests: 6,
            answers: 7,
            endpoints: 8,
        };
        let answer = status.encode();
        assert_eq!(LiveStatus::decode(&answer), Some(status));
        assert_eq!(status.late_share(), 0.11);
        for other in [&QUESTION[..], &answer[1..], &[&answer[..], b"?"].concat(), b""] {
            assert_eq!(LiveStatus::decode(other), None);
        }
        assert!(Header::decode(QUESTION).is_err());
    }
}
