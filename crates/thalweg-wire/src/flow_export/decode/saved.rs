//! What a decoder needs to continue after a restart of the collector: templates, and what options records reported.
//!
//! Exporters resend templates after minutes, or after thousands of records. A collector that starts without them would
//! have to hold or drop all data until then. Only sessions over UDP are saved, because a connection ends with its
//! collector.
//!
//! ```text
//! session  = address: u8 4 or 6, its bytes; u16 port; i64 received; u32 domains; domain*
//! domain   = u8 format, u32 id, u128 exporter, last message, i64 system init time, sampling, names, u32 templates, template*
//! template = u8 options, i64 received, u32 length, template record as received
//! ```
//!
//! Integers are in network byte order, times in nanoseconds since 1970. The first message of a restored domain shows
//! whether the exporter has restarted too: its uptime has not advanced as the clock has, or its sequence number has gone
//! back. Its templates may then have changed, so they are discarded, and data wait for new ones.

use std::net::{IpAddr, SocketAddr};

use super::clock::LastMessage;
use super::domain::DomainKey;
use super::error::DecodeErrorKind;
use super::limits::Limits;
use super::names::Names;
use super::reader::Reader;
use super::sampling::Sampling;
use super::template::SavedTemplate;
use crate::flow_export::{Address, Format};
use crate::time::Timestamp;

/// Whether saved sessions contain names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SavedNames {
    /// They do, as [`SavedSession::encode`] writes them.
    Present,
    /// They do not: an earlier version wrote them, which did not read names.
    None,
}

/// A session over UDP, as saved by [`Decoder::saved`](super::Decoder::saved).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SavedSession {
    pub(super) from: SocketAddr,
    pub(super) received: Timestamp,
    pub(super) domains: Vec<SavedDomain>,
}

/// An observation domain of NetFlow v9 or IPFIX.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SavedDomain {
    pub(super) key: DomainKey,
    pub(super) last: LastMessage,
    pub(super) system_init_ms: Option<i64>,
    pub(super) sampling: Sampling,
    pub(super) names: Names,
    pub(super) templates: Vec<SavedTemplate>,
}

impl SavedSession {
    /// The sender.
    pub fn from(&self) -> SocketAddr {
        self.from
    }

    /// Whether all templates have expired.
    pub fn is_expired(&self, now: Timestamp, limits: &Limits) -> bool {
        now.since(self.received) > limits.template_lifetime
    }

    /// The number of templates.
    pub fn templates(&self) -> usize {
        self.domains.iter().map(|domain| domain.templates.len()).sum()
    }

    /// Appends the encoded session.
    pub fn encode(&self, into: &mut Vec<u8>) {
        match self.from.ip() {
            IpAddr::V4(address) => {
                into.push(4);
                into.extend(address.octets());
            }
            IpAddr::V6(address) => {
                into.push(6);
                into.extend(address.octets());
            }
        }
        into.extend(self.from.port().to_be_bytes());
        into.extend(self.received.0.to_be_bytes());
        into.extend((self.domains.len() as u32).to_be_bytes());
        self.domains.iter().for_each(|domain| domain.encode(into));
    }

    /// Decodes sessions up to the end of `bytes`.
    ///
    /// # Errors
    /// If the bytes are not encoded sessions.
    pub fn decode_all(bytes: &[u8], names: SavedNames) -> Result<Vec<SavedSession>, DecodeErrorKind> {
        let mut reader = Reader::new("saved session", bytes);
        let mut sessions = Vec::new();
        while !reader.is_empty() {
            sessions.push(SavedSession::decode(&mut reader, names)?);
        }
        Ok(sessions)
    }

    fn decode(reader: &mut Reader<'_>, names: SavedNames) -> Result<SavedSession, DecodeErrorKind> {
        let offset = reader.offset();
        let address: IpAddr = match reader.u8()? {
            4 => reader.array::<4>()?.into(),
            6 => reader.array::<16>()?.into(),
            found => return Err(unexpected("address family", offset, found.into(), "4 or 6")),
        };
        let from = SocketAddr::new(address, reader.u16()?);
        let received = Timestamp(reader.u64()?);
        let domains =
            (0..reader.u32()?).map(|_| SavedDomain::decode(reader, names)).collect::<Result<_, _>>()?;
        Ok(SavedSession { from, received, domains })
    }
}

impl SavedDomain {
    fn encode(&self, into: &mut Vec<u8>) {
        into.push(self.key.format as u8);
        into.extend(self.key.observation_domain_id.to_be_bytes());
        into.extend(self.key.exporter.0.to_be_bytes());
        into.extend(self.last.received.0.to_be_bytes());
        into.push(u8::from(self.last.uptime_ms.is_some()));
        into.extend(self.last.uptime_ms.unwrap_or(0).to_be_bytes());
        into.extend(self.last.sequence.to_be_bytes());
        into.extend(self.system_init_ms.unwrap_or(0).to_be_bytes());
        self.sampling.encode(into);
        self.names.encode(into);
        into.extend((self.templates.len() as u32).to_be_bytes());
        self.templates.iter().for_each(|template| encode_template(template, into));
    }

    fn decode(reader: &mut Reader<'_>, names: SavedNames) -> Result<SavedDomain, DecodeErrorKind> {
        let offset = reader.offset();
        let format = match reader.u8()? {
            number if number == Format::NetFlow9 as u8 => Format::NetFlow9,
            number if number == Format::Ipfix as u8 => Format::Ipfix,
            found => return Err(unexpected("format", offset, found.into(), "NetFlow v9 or IPFIX")),
        };
        let key = DomainKey {
            format,
            observation_domain_id: reader.u32()?,
            exporter: Address(u128::from_be_bytes(reader.array()?)),
        };
        let received = Timestamp(reader.u64()?);
        let (has_uptime, uptime_ms) = (reader.u8()? > 0, reader.u32()?);
        let uptime_ms = has_uptime.then_some(uptime_ms);
        let last = LastMessage { received, uptime_ms, sequence: reader.u32()? };
        let system_init_ms = Some(i64::from_be_bytes(reader.array()?)).filter(|&ms| ms > 0);
        let sampling = Sampling::decode(reader)?;
        let names = match names {
            SavedNames::Present => Names::decode(reader)?,
            SavedNames::None => Names::default(),
        };
        let templates = (0..reader.u32()?).map(|_| decode_template(reader)).collect::<Result<_, _>>()?;
        Ok(SavedDomain { key, last, system_init_ms, sampling, names, templates })
    }
}

fn encode_template(template: &SavedTemplate, into: &mut Vec<u8>) {
    into.push(u8::from(template.options));
    into.extend(template.defined.0.to_be_bytes());
    into.extend((template.record.len() as u32).to_be_bytes());
    into.extend(&template.record);
}

fn decode_template(reader: &mut Reader<'_>) -> Result<SavedTemplate, DecodeErrorKind> {
    let (options, defined) = (reader.u8()? > 0, Timestamp(reader.u64()?));
    let length = reader.u32()? as usize;
    Ok(SavedTemplate { options, defined, record: reader.take(length)?.into() })
}

fn unexpected(structure: &'static str, offset: usize, found: u32, expected: &'static str) -> DecodeErrorKind {
    DecodeErrorKind::Number { structure, offset, found, expected }
}
