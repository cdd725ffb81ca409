//! Encodes flow records to export messages: NetFlow v5, NetFlow v9 (RFC 3954), IPFIX (RFC 7011).
//!
//! Encoders take rows of a [`RecordBatch`](super::RecordBatch), and append messages of bounded length to [`Messages`].
//! One encoder is one session of one observation domain. The columns `received_us`, `exporter`, `observation_domain_id`
//! and `format` are not sent, because a collector derives them.
//!
//! | module | contents |
//! |---|---|
//! | [`netflow5`] | IPv4 in fixed records of 48 bytes, times in milliseconds of uptime |
//! | [`netflow9`] | templates, times in milliseconds of uptime |
//! | [`ipfix`] | templates, times in microseconds since 1900, bidirectional flows (RFC 5103), exporter statistics |
//!
//! # Fidelity
//! A standard decoder of v9 and IPFIX restores the rows, except:
//!
//! - v9 and v5 round times down to milliseconds, IPFIX optionally. An uptime of 32 bits cannot represent a time more
//!   than 24.8 days from that of the message.
//! - `sampling_interval` is sent whenever it changes. Zero (unknown) cannot be sent: rows with zero get the last
//!   interval.
//! - An IPv4 flow without next hop gets 0.0.0.0, as routers send it.
//! - Sparse columns (MAC addresses, MPLS labels, VRFs, ...) have templates of their own, which are sent when the first row has
//!   a value there. v5 has none of them. Names and countries are not sent, because a collector derives them.
//! - The packet in a tunnel (the `inner_` columns) is not sent, and counted ([`Misfits`]).
//! - v5 has no IPv6, VLANs, directions and end reasons, and narrower counters, interfaces, AS numbers and intervals.
//!   Losses are counted ([`Misfits`]); a 32-bit AS number becomes AS_TRANS.
//!
//! # Cost
//! No allocation once [`Messages`] has grown to the size of a batch.

pub mod ipfix;
pub mod netflow5;
pub mod netflow9;

mod session;
mod template;
#[cfg(test)]
mod tests;

use thiserror::Error;

use super::Record;
use crate::Nanos;

/// The default maximum length of a message in bytes: with IPv6 and UDP headers it fits a tunnel over Ethernet.
pub const DEFAULT_MESSAGE_LENGTH: u16 = 1_400;

/// The minimum of the configurable message length: all templates fit into one such message.
pub const MIN_MESSAGE_LENGTH: u16 = 1_024;

/// A reusable buffer of encoded messages.
#[derive(Clone, Debug, Default)]
pub struct Messages {
    bytes: Vec<u8>,
    /// The end of each message.
    ends: Vec<usize>,
    /// The contents of each message.
    contents: Vec<Contents>,
}

/// The flows in a message, which are lost if the message is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Contents {
    /// Flow records; a bidirectional flow counts as one.
    pub flow_records: u64,
    /// Packets of these flows in both directions, as counted (modulo 2^64).
    pub packets: u64,
    /// Bytes of these flows in both directions, as counted (modulo 2^64).
    pub octets: u64,
}

impl Contents {
    /// Adds the counts of a row.
    #[inline]
    fn count(&mut self, row: &Record) {
        self.packets = self.packets.wrapping_add(row.packets);
        self.octets = self.octets.wrapping_add(row.octets);
    }
}

impl Messages {
    /// Creates an empty buffer.
    pub fn new() -> Messages {
        Messages::default()
    }

    /// Removes all messages, and keeps the capacity.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
        self.contents.clear();
    }

    /// Completes the last message.
    fn end(&mut self, contents: Contents) {
        self.ends.push(self.bytes.len());
        self.contents.push(contents);
    }

    /// The number of messages.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether the buffer is empty.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// All messages as one byte stream, for IPFIX over TCP.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns the contents of a message.
    ///
    /// # Panics
    /// If the message does not exist.
    pub fn contents(&self, message: usize) -> Contents {
        self.contents[message]
    }

    /// Iterates over the messages in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        let mut start = 0;
        self.ends.iter().map(move |&end| &self.bytes[std::mem::replace(&mut start, end)..end])
    }
}

/// The refresh of templates and the sampling interval, because UDP loses messages (RFC 7011 section 8.1, RFC 3954
/// section 9). The first message after either limit contains them again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refresh {
    /// The time since the last refresh.
    pub interval: Nanos,
    /// The number of messages since the last refresh.
    pub messages: u32,
}

impl Default for Refresh {
    /// A minute or 1,000 messages. Collectors drop templates after three times the interval (RFC 7011 section 10.3.7).
    /// The RFC prescribes no interval; routers use 1 to 30 minutes.
    fn default() -> Refresh {
        Refresh { interval: Nanos::from_secs(60), messages: 1_000 }
    }
}

/// Counters of an encoder.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Encoded {
    /// Messages.
    pub messages: u64,
    /// Bytes of all messages.
    pub octets: u64,
    /// Flow records; a bidirectional flow counts as one.
    pub flow_records: u64,
}

/// Rows and values that the format cannot represent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Misfits {
    /// Rows that were not sent.
    pub rows: u64,
    /// Values that were replaced by the nearest valid one: counters and times out of range, interfaces (sent as 0),
    /// sampling intervals. Also packets in tunnels, which are not sent.
    pub values: u64,
}

/// The reason why options are invalid.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum OptionsError {
    /// The message length is too short for templates.
    #[error("invalid message length {length}: expected at least {MIN_MESSAGE_LENGTH} bytes, for templates")]
    MessageLength {
        /// The rejected length.
        length: u16,
    },
}

/// Validates the maximum message length.
fn check_message_length(length: u16) -> Result<usize, OptionsError> {
    match length < MIN_MESSAGE_LENGTH {
        true => Err(OptionsError::MessageLength { length }),
        false => Ok(length.into()),
    }
}

/// Returns the uptime in milliseconds at `time_us`, modulo 2^32, of a device that started at `boot_ms` since 1970, and
/// whether it is unambiguous for a message sent at `now_ms`.
#[inline]
fn uptime_ms(time_us: i64, boot_ms: i64, now_ms: i64) -> (u32, bool) {
    let time_ms = time_us.div_euclid(1_000);
    (time_ms.wrapping_sub(boot_ms) as u32, i32::try_from(time_ms.wrapping_sub(now_ms)).is_ok())
}
