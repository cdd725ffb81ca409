//! Flow records to the messages of an exporter: NetFlow v5, NetFlow v9 (RFC 3954), IPFIX (RFC 7011).
//!
//! Rows of a [`RecordBatch`](super::RecordBatch) go in, messages of bounded length come out, one after the other in
//! [`Messages`]. One encoder is one session of one observation domain: the columns `received_us`, `exporter`,
//! `observation_domain_id` and `format` say what a collector finds out by itself, and are not sent.
//!
//! | module | what it has |
//! |---|---|
//! | [`netflow5`] | IPv4 in fixed records of 48 bytes, times in milliseconds of up-time |
//! | [`netflow9`] | templates, times in milliseconds of up-time |
//! | [`ipfix`] | templates, times in microseconds since 1900, bidirectional flows (RFC 5103), the exporter's own statistics |
//!
//! # What comes back
//! A decoder that obeys the standards finds in v9 and IPFIX what was in the rows, but for this:
//!
//! - v9 and v5 round times down to milliseconds, IPFIX does if it is told to; up-time of 32 bits cannot say a time
//!   farther than 24.8 days from that of the message.
//! - `sampling_interval` is told when a row has another one than was last told. Zero, which is not told, cannot be
//!   told: after an interval was, rows with zero take that.
//! - No next hop of an IPv4 flow is 0.0.0.0, as routers send it.
//! - v5 has no room for IPv6, for counters, interfaces, autonomous systems and intervals beyond its widths, nor for
//!   VLANs, directions and reasons. What is lost is counted ([`Misfits`]); an autonomous system becomes AS_TRANS.
//!
//! # Cost
//! Nothing is allocated once [`Messages`] has grown to a batch.

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

/// Bytes of a message unless told otherwise: with the headers of IPv6 and UDP it fits a tunnel over Ethernet.
pub const MESSAGE_LENGTH: u16 = 1_400;

/// The shortest bound on messages that can be set: all templates fit into one such message.
pub const LEAST_MESSAGE_LENGTH: u16 = 1_024;

/// Encoded messages, one after the other; cleared and used again.
#[derive(Clone, Debug, Default)]
pub struct Messages {
    bytes: Vec<u8>,
    /// Where each message ends.
    ends: Vec<usize>,
    /// What each tells.
    contents: Vec<Contents>,
}

/// What one message tells of flows: what is lost with it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Contents {
    /// Flow records; a bidirectional flow is one.
    pub flow_records: u64,
    /// Packets of these flows, both ways, as counted (modulo 2^64).
    pub packets: u64,
    /// Bytes of these flows, both ways, as counted (modulo 2^64).
    pub octets: u64,
}

impl Contents {
    /// Adds what a row counted.
    #[inline]
    fn count(&mut self, row: &Record) {
        self.packets = self.packets.wrapping_add(row.packets);
        self.octets = self.octets.wrapping_add(row.octets);
    }
}

impl Messages {
    /// No messages.
    pub fn new() -> Messages {
        Messages::default()
    }

    /// Drops all messages and keeps the memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
        self.contents.clear();
    }

    /// The message whose bytes came last is complete.
    fn end(&mut self, contents: Contents) {
        self.ends.push(self.bytes.len());
        self.contents.push(contents);
    }

    /// Messages.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// All messages as one run of bytes, as a stream (IPFIX over TCP) has them.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// What a message tells of flows.
    ///
    /// # Panics
    /// If there is no such message.
    pub fn contents(&self, message: usize) -> Contents {
        self.contents[message]
    }

    /// The messages in their order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        let mut start = 0;
        self.ends.iter().map(move |&end| &self.bytes[std::mem::replace(&mut start, end)..end])
    }
}

/// When templates, and the sampling interval, are sent again, as UDP loses messages (RFC 7011 section 8.1, RFC 3954
/// section 9): with the first message that is begun after either has passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refresh {
    /// Time since they were last sent.
    pub interval: Nanos,
    /// Messages since they were last sent.
    pub messages: u32,
}

impl Default for Refresh {
    /// A minute or 1,000 messages. Collectors forget templates after three times the interval (RFC 7011 section
    /// 10.3.7); no interval is prescribed, and routers have 1 to 30 minutes.
    fn default() -> Refresh {
        Refresh { interval: Nanos::from_secs(60), messages: 1_000 }
    }
}

/// What was put into messages since the encoder was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Encoded {
    /// Messages.
    pub messages: u64,
    /// Their bytes.
    pub octets: u64,
    /// Flow records; a bidirectional flow is one.
    pub flow_records: u64,
}

/// What did not fit the format.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Misfits {
    /// Rows that were not sent.
    pub rows: u64,
    /// Values that were sent as the nearest that fits: counters and times out of range, interfaces (sent as 0),
    /// sampling intervals.
    pub values: u64,
}

/// Why there can be no encoder of these options.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum OptionsError {
    /// Templates would not fit into a message.
    #[error(
        "messages of at most {asked} bytes are too short for templates: expected {LEAST_MESSAGE_LENGTH} or more"
    )]
    MessageLength {
        /// The bound that was asked for.
        asked: u16,
    },
}

/// Checks a bound on the length of messages.
fn check_message_length(asked: u16) -> Result<usize, OptionsError> {
    match asked < LEAST_MESSAGE_LENGTH {
        true => Err(OptionsError::MessageLength { asked }),
        false => Ok(asked.into()),
    }
}

/// Milliseconds of up-time at `time_us`, modulo 2^32, for a device that started `boot_ms` after 1970; and whether a
/// collector can tell which time is meant, being told that it is `now_ms` now.
#[inline]
fn uptime_ms(time_us: i64, boot_ms: i64, now_ms: i64) -> (u32, bool) {
    let time_ms = time_us.div_euclid(1_000);
    (time_ms.wrapping_sub(boot_ms) as u32, i32::try_from(time_ms.wrapping_sub(now_ms)).is_ok())
}
