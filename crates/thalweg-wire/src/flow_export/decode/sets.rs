//! Messages of NetFlow v9 and IPFIX, and their sets (RFC 7011 section 3.3, RFC 3954 section 5).

use super::clock::ExportTime;
use super::domain::DomainKey;
use super::error::DecodeErrorKind;
use super::reader::Reader;
use super::template::{FIRST_TEMPLATE, definitions};
use crate::flow_export::{Address, Format};

/// A message with a decoded header.
#[derive(Clone, Copy, Debug)]
pub(super) struct Message<'a> {
    pub(super) key: DomainKey,
    pub(super) export: ExportTime,
    pub(super) sequence: u32,
    sets: Reader<'a>,
}

/// A set of a message.
#[derive(Clone, Copy, Debug)]
pub(super) struct Set<'a> {
    pub(super) id: u16,
    pub(super) content: Reader<'a>,
}

/// The content of a set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Content {
    Templates { options: bool },
    Data,
    Unknown,
}

impl<'a> Message<'a> {
    /// Decodes the header of a NetFlow v9 message (RFC 3954 section 5.1). Ignores its record count, which many
    /// exporters set incorrectly.
    pub(super) fn netflow9(bytes: &'a [u8], exporter: Address) -> Result<Message<'a>, DecodeErrorKind> {
        let mut reader = Reader::new("header of a NetFlow v9 message", bytes).whole(20)?;
        let _version_and_count = reader.u32()?;
        let uptime_ms = Some(reader.u32()?);
        let unix_us = i64::from(reader.u32()?) * 1_000_000;
        let sequence = reader.u32()?;
        let key = DomainKey { format: Format::NetFlow9, observation_domain_id: reader.u32()?, exporter };
        Ok(Message { key, export: ExportTime { unix_us, uptime_ms }, sequence, sets: reader })
    }

    /// Decodes the header of an IPFIX message (RFC 7011 section 3.1). Zeros may follow the message, because some
    /// exporters pad datagrams.
    pub(super) fn ipfix(bytes: &'a [u8], exporter: Address) -> Result<Message<'a>, DecodeErrorKind> {
        let mut header = Reader::new("header of an IPFIX message", bytes).whole(16)?;
        let _version = header.u16()?;
        let length = usize::from(header.u16()?);
        let unix_us = i64::from(header.u32()?) * 1_000_000;
        let sequence = header.u32()?;
        let key = DomainKey { format: Format::Ipfix, observation_domain_id: header.u32()?, exporter };
        let structure = "IPFIX message";
        let expected = "at least the header, and all received bytes except padding";
        let kind = DecodeErrorKind::Length { structure, offset: 0, claimed: length, expected };
        header.enter("sets of an IPFIX message");
        let sets = header.part("set", length.checked_sub(16).ok_or(kind)?)?;
        match header.is_padding() {
            true => Ok(Message { key, export: ExportTime { unix_us, uptime_ms: None }, sequence, sets }),
            false => Err(kind),
        }
    }

    /// Iterates over the sets, up to the first error. NetFlow v9 exporters may pad messages with zeros.
    pub(super) fn sets(&self) -> impl Iterator<Item = Result<Set<'a>, DecodeErrorKind>> + use<'a> {
        let mut left = self.sets;
        let may_be_padded = self.key.format == Format::NetFlow9;
        std::iter::from_fn(move || {
            if left.is_empty() || may_be_padded && left.bytes()[0] == 0 && left.is_padding() {
                return None;
            }
            let set = next_set(&mut left);
            if set.is_err() {
                left = Reader::new("", &[]);
            }
            Some(set)
        })
    }

    /// Validates all sets and templates. RFC 7011 section 9.1 requires dropping a malformed message as a whole, so this
    /// runs before anything is used.
    pub(super) fn check(&self) -> Result<(), DecodeErrorKind> {
        let format = self.key.format;
        for set in self.sets() {
            let set = set?;
            if let Content::Templates { options } = set.content(format) {
                definitions(format, options, set.content).try_for_each(|definition| definition.map(drop))?;
            }
        }
        Ok(())
    }
}

fn next_set<'a>(left: &mut Reader<'a>) -> Result<Set<'a>, DecodeErrorKind> {
    left.enter("set");
    let offset = left.offset();
    let (id, length) = (left.u16()?, usize::from(left.u16()?));
    let Some(content) = length.checked_sub(4) else {
        let expected = "4 bytes or more";
        return Err(DecodeErrorKind::Length { structure: "set", offset, claimed: length, expected });
    };
    Ok(Set { id, content: left.part("set", content)? })
}

impl Set<'_> {
    /// Returns the kind of content, from the set's number.
    pub(super) fn content(&self, format: Format) -> Content {
        match (format, self.id) {
            (_, FIRST_TEMPLATE..) => Content::Data,
            (Format::NetFlow9, 0) | (Format::Ipfix, 2) => Content::Templates { options: false },
            (Format::NetFlow9, 1) | (Format::Ipfix, 3) => Content::Templates { options: true },
            _ => Content::Unknown,
        }
    }
}

impl<'a> Reader<'a> {
    /// Returns the reader, if it has at least `length` bytes.
    pub(super) fn whole(self, length: usize) -> Result<Reader<'a>, DecodeErrorKind> {
        let mut probe = self;
        probe.take(length).map(|_| self)
    }
}
