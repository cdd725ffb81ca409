//! NetFlow version 9 (RFC 3954).
//!
//! Times are milliseconds of up-time (`FIRST_SWITCHED` 22, `LAST_SWITCHED` 21). The header says the time of day in whole
//! seconds only, so it is given the next whole second and the up-time there: what a collector takes for the start of
//! the device is then the same for every message, and no flow lies after its message.

use super::session::{Dialect, Draft, SAMPLING_TEMPLATE, Session};
use super::template::{Field, Kind};
use super::{Encoded, MESSAGE_LENGTH, Messages, Misfits, OptionsError, Refresh, uptime_ms};
use crate::Timestamp;
use crate::flow_export::RecordBatch;

/// Number of a FlowSet of options templates (RFC 3954 section 6.1).
const OPTIONS_TEMPLATE_SET: u16 = 1;

/// Scope of an option: the whole device (RFC 3954 section 6.1).
const SCOPE_SYSTEM: u16 = 1;

/// `SAMPLING_INTERVAL` and `SAMPLING_ALGORITHM` (RFC 3954 section 8).
const SAMPLING: [Field; 2] = [Field::new(34, 4), Field::new(35, 1)];

/// `SAMPLING_ALGORITHM`: one packet in every so many (RFC 3954 section 8; 2 is random, which rows do not tell apart).
const DETERMINISTIC: u8 = 1;

/// What an encoder is to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Names the observation domain.
    pub source_id: u32,
    /// When the device started: the zero of up-time, rounded down to milliseconds.
    pub boot: Timestamp,
    /// Most bytes of a message, 1,024 or more.
    pub message_length: u16,
    /// When templates are sent again; `None`: never.
    pub refresh: Option<Refresh>,
}

impl Options {
    /// Source 0, messages of [`MESSAGE_LENGTH`], templates again as [`Refresh`] has it, for a device that started at
    /// `boot`.
    pub fn new(boot: Timestamp) -> Options {
        Options { source_id: 0, boot, message_length: MESSAGE_LENGTH, refresh: Some(Refresh::default()) }
    }
}

/// Rows to messages, one observation domain.
#[derive(Clone, Debug)]
pub struct Encoder(Session<NetFlow9>);

impl Encoder {
    /// An encoder at the beginning of a session.
    ///
    /// # Errors
    /// If messages are to be shorter than templates need.
    pub fn new(options: Options) -> Result<Encoder, OptionsError> {
        let boot_ms = (options.boot.0 / 1_000_000) as i64;
        let dialect = NetFlow9 { source_id: options.source_id, boot_ms };
        Ok(Encoder(Session::new(dialect, options.message_length, options.refresh)?))
    }

    /// Puts all rows into messages, added to `into`; `now` is the time that their headers tell.
    pub fn encode(&mut self, rows: &RecordBatch, now: Timestamp, into: &mut Messages) {
        self.0.encode(rows, now, into);
    }

    /// What was encoded since the encoder was made.
    pub fn encoded(&self) -> Encoded {
        self.0.encoded
    }

    /// What did not fit since the encoder was made: times, more than 24.8 days from that of their message.
    pub fn misfits(&self) -> Misfits {
        self.0.misfits
    }
}

#[derive(Clone, Debug)]
struct NetFlow9 {
    source_id: u32,
    boot_ms: i64,
}

/// The whole second that a header tells: the next one.
fn header_seconds(now: Timestamp) -> u64 {
    now.seconds() + u64::from(now.subsec_nanos() > 0)
}

impl Dialect for NetFlow9 {
    const HEADER_LENGTH: usize = 20;
    const TEMPLATE_SET: u16 = 0;
    const KINDS: &[Kind] = &Kind::ONE_WAY;
    const SAMPLING_LENGTH: usize = 9;
    const HAS_BIFLOWS: bool = false;

    #[inline]
    fn times(&self) -> [Field; 2] {
        [Field::new(22, 4), Field::new(21, 4)]
    }

    #[inline]
    fn write_time(&self, time_us: i64, now: Timestamp, to: &mut Vec<u8>) -> bool {
        let (uptime, fits) = uptime_ms(time_us, self.boot_ms, 1_000 * header_seconds(now) as i64);
        to.extend_from_slice(&uptime.to_be_bytes());
        fits
    }

    fn write_header(&self, draft: &Draft, sequence: u32, now: Timestamp, header: &mut [u8]) {
        let seconds = header_seconds(now);
        let uptime = (1_000 * seconds as i64).wrapping_sub(self.boot_ms) as u32;
        header[0..2].copy_from_slice(&9u16.to_be_bytes());
        header[2..4].copy_from_slice(&draft.records.to_be_bytes());
        header[4..8].copy_from_slice(&uptime.to_be_bytes());
        header[8..12].copy_from_slice(&(seconds as u32).to_be_bytes());
        header[12..16].copy_from_slice(&sequence.to_be_bytes());
        header[16..20].copy_from_slice(&self.source_id.to_be_bytes());
    }

    /// Messages are counted (RFC 3954 section 5.1).
    fn sequence_step(_: &Draft) -> u32 {
        1
    }

    fn write_options_templates(&self, draft: &mut Draft, to: &mut Messages) {
        draft.open_set(OPTIONS_TEMPLATE_SET, to);
        let scope = Field::new(SCOPE_SYSTEM, 4);
        // Of a field specifier: four bytes.
        for number in [SAMPLING_TEMPLATE, 4, 4 * SAMPLING.len() as u16] {
            to.bytes.extend_from_slice(&number.to_be_bytes());
        }
        for field in [scope].into_iter().chain(SAMPLING) {
            field.write(&mut to.bytes);
        }
        draft.records += 1;
    }

    fn write_sampling(&self, interval: u32, to: &mut Vec<u8>) {
        to.extend_from_slice(&self.source_id.to_be_bytes());
        to.extend_from_slice(&interval.to_be_bytes());
        to.push(DETERMINISTIC);
    }
}
