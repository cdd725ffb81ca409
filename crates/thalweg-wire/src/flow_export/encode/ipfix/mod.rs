//! IPFIX (RFC 7011), with bidirectional flows (RFC 5103) and exporter statistics (RFC 7011 section 4).
//!
//! Two consecutive rows that are the two directions of one flow (`biflow_direction` 1, then 2, the other fields
//! mirrored) become one record. Templates are refreshed over UDP, and sent once over TCP and TLS
//! ([`Options::over_stream`]).
//!
//! The sampling interval of the observation domain is sent as `samplingPacketInterval` 1 and `samplingPacketSpace` (RFC
//! 5477 section 8.2).

mod statistics;

pub use statistics::{Exporting, Metering, Statistics};

use super::session::{Dialect, Draft, SAMPLING_TEMPLATE, Session};
use super::template::{Field, Kind};
use super::{DEFAULT_MESSAGE_LENGTH, Encoded, Messages, Misfits, OptionsError, Refresh};
use crate::Timestamp;
use crate::flow_export::RecordBatch;

/// The number of an options template set (RFC 7011 section 3.3.2).
const OPTIONS_TEMPLATE_SET: u16 = 3;

/// `observationDomainId`, the scope of options of the session.
const OBSERVATION_DOMAIN_ID: Field = Field::new(149, 4);

/// `samplingPacketInterval` and `samplingPacketSpace` (RFC 5477 section 8.2).
const SAMPLING: [Field; 2] = [Field::new(305, 4), Field::new(306, 4)];

/// Seconds from 1900, the start of NTP time, to 1970 (RFC 5905 figure 4).
const NTP_TO_UNIX: u64 = 2_208_988_800;

/// The unit of times.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Times {
    /// `flowStartMicroseconds` (154), `flowEndMicroseconds` (155).
    #[default]
    Microseconds,
    /// `flowStartMilliseconds` (152), `flowEndMilliseconds` (153): for collectors that support no others, such as
    /// nfdump 1.7.1.
    Milliseconds,
}

/// Options of an encoder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// The observation domain.
    pub observation_domain_id: u32,
    /// The unit of times.
    pub times: Times,
    /// The maximum length of a message in bytes, at least 1,024.
    pub message_length: u16,
    /// The refresh of templates; `None` to send them once.
    pub refresh: Option<Refresh>,
}

impl Default for Options {
    /// Domain 0, microseconds, [`DEFAULT_MESSAGE_LENGTH`], and the default [`Refresh`].
    fn default() -> Options {
        Options {
            observation_domain_id: 0,
            times: Times::default(),
            message_length: DEFAULT_MESSAGE_LENGTH,
            refresh: Some(Refresh::default()),
        }
    }
}

impl Options {
    /// Returns the options for a reliable transport, where templates are sent once (RFC 7011 section 8).
    pub fn over_stream(self) -> Options {
        Options { refresh: None, ..self }
    }
}

/// An encoder of one observation domain of one transport session.
#[derive(Clone, Debug)]
pub struct Encoder(Session<Ipfix>);

impl Encoder {
    /// Creates an encoder for a new session.
    ///
    /// # Errors
    /// If the message length is too short for templates.
    pub fn new(options: Options) -> Result<Encoder, OptionsError> {
        let Options { observation_domain_id, times, message_length, refresh } = options;
        let dialect = Ipfix { observation_domain_id, times };
        Ok(Encoder(Session::new(dialect, message_length, refresh)?))
    }

    /// Encodes all rows and appends the messages to `into`; `now` is the export time in their headers.
    pub fn encode(&mut self, rows: &RecordBatch, now: Timestamp, into: &mut Messages) {
        self.0.encode(rows, now, into);
    }

    /// Appends a message with the statistics of the metering and exporting processes.
    pub fn encode_statistics(&mut self, statistics: &Statistics, now: Timestamp, into: &mut Messages) {
        let domain = self.0.dialect.observation_domain_id;
        self.0.add_options(statistics::SENT, &statistics.exporting.sent_record(domain), now, into);
        self.0.add_options(statistics::NOT_SENT, &statistics.exporting.not_sent_record(), now, into);
        self.0.add_options(statistics::IGNORED, &statistics.metering.record(domain), now, into);
        self.0.finish(now, into);
    }

    /// The counters since the encoder was created.
    pub fn encoded(&self) -> Encoded {
        self.0.encoded
    }

    /// The misfits since the encoder was created: times before 1970.
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

    /// The sequence number counts data records, including options records (RFC 7011 section 3.1).
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

/// Writes an options template with one scope field (RFC 7011 section 3.4.2.2).
fn write_options_template(id: u16, scope: Field, fields: &[Field], draft: &mut Draft, to: &mut Messages) {
    draft.open_set(OPTIONS_TEMPLATE_SET, to);
    for number in [id, 1 + fields.len() as u16, 1] {
        to.bytes.extend_from_slice(&number.to_be_bytes());
    }
    scope.write(&mut to.bytes);
    fields.iter().for_each(|field| field.write(&mut to.bytes));
    draft.records += 1;
}

/// Encodes `dateTimeMicroseconds` (RFC 7011 section 6.1.9): NTP seconds and their binary fraction, whose lowest 11 bits
/// are below a microsecond and zero. Rounds up, so that decoders that round down or to the nearest restore the
/// microsecond. Seconds wrap in 2036.
#[inline]
fn ntp(since_1970_us: u64) -> u64 {
    let (seconds, us) = (since_1970_us / 1_000_000, since_1970_us % 1_000_000);
    let fraction = (us << 21).div_ceil(1_000_000) << 11;
    (seconds + NTP_TO_UNIX) << 32 | fraction
}
