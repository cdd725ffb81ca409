//! IPFIX (RFC 7011), with bidirectional flows (RFC 5103) and the exporter's own statistics (RFC 7011 section 4).
//!
//! Two rows that follow each other and are the two directions of one flow (`biflow_direction` 1, then 2, the rest its mirror
//! image) become one record. Over UDP templates are sent again; over TCP and TLS once ([`Options::over_stream`]).
//!
//! The sampling interval is told as `samplingPacketInterval` 1 and `samplingPacketSpace` (RFC 5477 section 8.2), of the
//! observation domain.

mod statistics;

pub use statistics::{Exporting, Metering, Statistics};

use super::session::{Dialect, Draft, SAMPLING_TEMPLATE, Session};
use super::template::{Field, Kind};
use super::{Encoded, MESSAGE_LENGTH, Messages, Misfits, OptionsError, Refresh};
use crate::Timestamp;
use crate::flow_export::RecordBatch;

/// Number of a set of options templates (RFC 7011 section 3.3.2).
const OPTIONS_TEMPLATE_SET: u16 = 3;

/// `observationDomainId`, the scope of what is told of the session.
const OBSERVATION_DOMAIN_ID: Field = Field::new(149, 4);

/// `samplingPacketInterval` and `samplingPacketSpace` (RFC 5477 section 8.2).
const SAMPLING: [Field; 2] = [Field::new(305, 4), Field::new(306, 4)];

/// Seconds from the beginning of NTP's time, 1900, to 1970 (RFC 5905 figure 4).
const NTP_TO_UNIX: u64 = 2_208_988_800;

/// In what unit times are told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Times {
    /// `flowStartMicroseconds` (154), `flowEndMicroseconds` (155).
    #[default]
    Microseconds,
    /// `flowStartMilliseconds` (152), `flowEndMilliseconds` (153): for collectors that know no others, as nfdump 1.7.1.
    Milliseconds,
}

/// What an encoder is to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Names the observation domain.
    pub observation_domain_id: u32,
    /// In what unit times are told.
    pub times: Times,
    /// Most bytes of a message, 1,024 or more.
    pub message_length: u16,
    /// When templates are sent again; `None`: never.
    pub refresh: Option<Refresh>,
}

impl Default for Options {
    /// Domain 0, microseconds, messages of [`MESSAGE_LENGTH`], templates again as [`Refresh`] has it.
    fn default() -> Options {
        Options {
            observation_domain_id: 0,
            times: Times::default(),
            message_length: MESSAGE_LENGTH,
            refresh: Some(Refresh::default()),
        }
    }
}

impl Options {
    /// The same for a transport that loses nothing, where templates are sent once (RFC 7011 section 8).
    pub fn over_stream(self) -> Options {
        Options { refresh: None, ..self }
    }
}

/// Rows to messages, one observation domain of one transport session.
#[derive(Clone, Debug)]
pub struct Encoder(Session<Ipfix>);

impl Encoder {
    /// An encoder at the beginning of a session.
    ///
    /// # Errors
    /// If messages are to be shorter than templates need.
    pub fn new(options: Options) -> Result<Encoder, OptionsError> {
        let Options { observation_domain_id, times, message_length, refresh } = options;
        let dialect = Ipfix { observation_domain_id, times };
        Ok(Encoder(Session::new(dialect, message_length, refresh)?))
    }

    /// Puts all rows into messages, added to `into`; `now` is the time that their headers tell.
    pub fn encode(&mut self, rows: &RecordBatch, now: Timestamp, into: &mut Messages) {
        self.0.encode(rows, now, into);
    }

    /// Tells the collector what the metering and the exporting process have counted, in a message of its own.
    pub fn tell(&mut self, statistics: &Statistics, now: Timestamp, into: &mut Messages) {
        let domain = self.0.dialect.observation_domain_id;
        self.0.add_options(statistics::SENT, &statistics.exporting.sent_record(domain), now, into);
        self.0.add_options(statistics::NOT_SENT, &statistics.exporting.not_sent_record(), now, into);
        self.0.add_options(statistics::IGNORED, &statistics.metering.record(domain), now, into);
        self.0.finish(now, into);
    }

    /// What was encoded since the encoder was made.
    pub fn encoded(&self) -> Encoded {
        self.0.encoded
    }

    /// What did not fit since the encoder was made: times before 1970.
    pub fn misfits(&self) -> Misfits {
        self.0.misfits
    }
}

#[derive(Clone, Debug)]
struct Ipfix {
    observation_domain_id: u32,
    times: Times,
}

impl Dialect for Ipfix {
    const HEADER_LENGTH: usize = 16;
    const TEMPLATE_SET: u16 = 2;
    const KINDS: &[Kind] =
        &[Kind::V4, Kind::V6, Kind::RoutedV4, Kind::RoutedV6, Kind::BiflowV4, Kind::BiflowV6];
    const SAMPLING_LENGTH: usize = 12;
    const HAS_BIFLOWS: bool = true;

    #[inline]
    fn times(&self) -> [Field; 2] {
        match self.times {
            Times::Microseconds => [Field::new(154, 8), Field::new(155, 8)],
            Times::Milliseconds => [Field::new(152, 8), Field::new(153, 8)],
        }
    }

    #[inline]
    fn write_time(&self, time_us: i64, _: Timestamp, to: &mut Vec<u8>) -> bool {
        let since_1970_us = u64::try_from(time_us).unwrap_or(0);
        let value = match self.times {
            Times::Microseconds => ntp(since_1970_us),
            Times::Milliseconds => since_1970_us / 1_000,
        };
        to.extend_from_slice(&value.to_be_bytes());
        time_us >= 0
    }

    fn write_header(&self, draft: &Draft, sequence: u32, now: Timestamp, header: &mut [u8]) {
        header[0..2].copy_from_slice(&10u16.to_be_bytes());
        header[2..4].copy_from_slice(&draft.length.to_be_bytes());
        header[4..8].copy_from_slice(&(now.seconds() as u32).to_be_bytes());
        header[8..12].copy_from_slice(&sequence.to_be_bytes());
        header[12..16].copy_from_slice(&self.observation_domain_id.to_be_bytes());
    }

    /// Records that templates describe are counted, those of options too (RFC 7011 section 3.1).
    fn sequence_step(draft: &Draft) -> u32 {
        draft.data_records.into()
    }

    fn write_options_templates(&self, draft: &mut Draft, to: &mut Messages) {
        write_options_template(SAMPLING_TEMPLATE, OBSERVATION_DOMAIN_ID, &SAMPLING, draft, to);
        for (id, scope, fields) in statistics::TEMPLATES {
            write_options_template(id, scope, fields, draft, to);
        }
    }

    fn write_sampling(&self, interval: u32, to: &mut Vec<u8>) {
        for value in [self.observation_domain_id, 1, interval.saturating_sub(1)] {
            to.extend_from_slice(&value.to_be_bytes());
        }
    }
}

/// An options template with one field of scope (RFC 7011 section 3.4.2.2).
fn write_options_template(id: u16, scope: Field, fields: &[Field], draft: &mut Draft, to: &mut Messages) {
    draft.open_set(OPTIONS_TEMPLATE_SET, to);
    for number in [id, 1 + fields.len() as u16, 1] {
        to.bytes.extend_from_slice(&number.to_be_bytes());
    }
    scope.write(&mut to.bytes);
    fields.iter().for_each(|field| field.write(&mut to.bytes));
    draft.records += 1;
}

/// `dateTimeMicroseconds` (RFC 7011 section 6.1.9): NTP's seconds and their binary fraction, whose lowest 11 bits say less
/// than a microsecond and are zero. Rounded up, so that rounding down and to the nearest both give the microsecond back. Seconds
/// go round in 2036.
#[inline]
fn ntp(since_1970_us: u64) -> u64 {
    let (seconds, us) = (since_1970_us / 1_000_000, since_1970_us % 1_000_000);
    let fraction = (us << 21).div_ceil(1_000_000) << 11;
    (seconds + NTP_TO_UNIX) << 32 | fraction
}
