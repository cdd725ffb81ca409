//! NetFlow version 9 (RFC 3954).
//!
//! Times are milliseconds of uptime (`FIRST_SWITCHED` 22, `LAST_SWITCHED` 21). The header has the time in whole seconds
//! only, so it contains the next whole second and the uptime at that time. So a collector computes the same start time
//! of the device for every message, and no flow is after its message.

use super::session::{Dialect, Draft, SAMPLING_TEMPLATE, Session};
use super::template::{Field, Kind};
use super::{DEFAULT_MESSAGE_LENGTH, Encoded, Messages, Misfits, OptionsError, Refresh, uptime_ms};
use crate::Timestamp;
use crate::flow_export::RecordBatch;

/// The number of an options template FlowSet (RFC 3954 section 6.1).
const OPTIONS_TEMPLATE_SET: u16 = 1;

/// The scope of an option: the whole device (RFC 3954 section 6.1).
const SCOPE_SYSTEM: u16 = 1;

/// `SAMPLING_INTERVAL` and `SAMPLING_ALGORITHM` (RFC 3954 section 8).
const SAMPLING: [Field; 2] = [Field::new(34, 4), Field::new(35, 1)];

/// `SAMPLING_ALGORITHM`: deterministic (RFC 3954 section 8; 2 is random, which rows do not distinguish).
const DETERMINISTIC: u8 = 1;

/// Options of an encoder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// The observation domain.
    pub source_id: u32,
    /// The start time of the device, the origin of its uptime; rounded down to milliseconds.
    pub boot: Timestamp,
    /// The maximum length of a message in bytes, at least 1,024.
    pub message_length: u16,
    /// The refresh of templates; `None` to send them once.
    pub refresh: Option<Refresh>,
}

impl Options {
    /// Source 0, [`DEFAULT_MESSAGE_LENGTH`] and the default [`Refresh`], for a device that started at `boot`.
    pub fn new(boot: Timestamp) -> Options {
        Options {
            source_id: 0,
            boot,
            message_length: DEFAULT_MESSAGE_LENGTH,
            refresh: Some(Refresh::default()),
        }
    }
}

/// An encoder of one observation domain.
#[derive(Clone, Debug)]
pub struct Encoder(Session<NetFlow9>);

impl Encoder {
    /// Creates an encoder for a new session.
    ///
    /// # Errors
    /// If the message length is too short for templates.
    pub fn new(options: Options) -> Result<Encoder, OptionsError> {
        let boot_ms = (options.boot.0 / 1_000_000) as i64;
        let dialect = NetFlow9 { source_id: options.source_id, boot_ms };
        Ok(Encoder(Session::new(dialect, options.message_length, options.refresh)?))
    }

    /// Encodes all rows and appends the messages to `into`; `now` is the export time in their headers.
    pub fn encode(&mut self, rows: &RecordBatch, now: Timestamp, into: &mut Messages) {
        self.0.encode(rows, now, into);
    }

    /// The counters since the encoder was created.
    pub fn encoded(&self) -> Encoded {
        self.0.encoded
    }

    /// The misfits since the encoder was created: times more than 24.8 days from that of their message.
    pub fn misfits(&self) -> Misfits {
        self.0.misfits
    }
}

#[derive(Clone, Debug)]
struct NetFlow9 {
    source_id: u32,
    boot_ms: i64,
}

/// Returns the seconds for a header: the next whole second.
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

    /// The sequence number counts messages (RFC 3954 section 5.1).
    fn sequence_step(_: &Draft) -> u32 {
        1
    }

    fn write_options_templates(&self, draft: &mut Draft, to: &mut Messages) {
        draft.open_set(OPTIONS_TEMPLATE_SET, to);
        let scope = Field::new(SCOPE_SYSTEM, 4);
        // Lengths in bytes; a field specifier has four.
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
