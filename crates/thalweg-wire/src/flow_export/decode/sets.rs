//! Sets: what messages of NetFlow v9 and IPFIX are made of (RFC 7011 section 3.3, RFC 3954 section 5).

use super::clock::ExportTime;
use super::domain::DomainKey;
use super::error::Fault;
use super::reader::Reader;
use super::template::{FIRST_TEMPLATE, definitions};
use crate::flow_export::{Address, Format};

/// A message whose header has been read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Message<'a> {
    pub(super) key: DomainKey,
    pub(super) export: ExportTime,
    pub(super) sequence: u32,
    sets: Reader<'a>,
}

/// One set of a message.
#[derive(Clone, Copy, Debug)]
pub(super) struct Set<'a> {
    pub(super) id: u16,
    pub(super) content: Reader<'a>,
}

/// What a set has in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Content {
    Templates { options: bool },
    Data,
    Unknown,
}

impl<'a> Message<'a> {
    /// Reads the header of a NetFlow v9 message (RFC 3954 section 5.1). Its count of records is not looked at: many
    /// exporters count something else.
    pub(super) fn netflow9(bytes: &'a [u8], exporter: Address) -> Result<Message<'a>, Fault> {
        let mut reader = Reader::new("header of a NetFlow v9 message", bytes).whole(20)?;
        let _version_and_count = reader.u32()?;
        let uptime_ms = Some(reader.u32()?);
        let unix_us = i64::from(reader.u32()?) * 1_000_000;
        let sequence = reader.u32()?;
        let key = DomainKey { format: Format::NetFlow9, observation_domain_id: reader.u32()?, exporter };
        Ok(Message { key, export: ExportTime { unix_us, uptime_ms }, sequence, sets: reader })
    }

    /// Reads the header of an IPFIX message (RFC 7011 section 3.1). Beyond the length that it says there may be zeros:
    /// some exporters fill datagrams up.
    pub(super) fn ipfix(bytes: &'a [u8], exporter: Address) -> Result<Message<'a>, Fault> {
        let mut header = Reader::new("header of an IPFIX message", bytes).whole(16)?;
        let _version = header.u16()?;
        let length = usize::from(header.u16()?);
        let unix_us = i64::from(header.u32()?) * 1_000_000;
        let sequence = header.u32()?;
        let key = DomainKey { format: Format::Ipfix, observation_domain_id: header.u32()?, exporter };
        let structure = "IPFIX message";
        let expected = "at least its header, and all but zeros that came";
        let fault = Fault::Length { structure, offset: 0, claimed: length, expected };
        header.enter("sets of an IPFIX message");
        let sets = header.part("set", length.checked_sub(16).ok_or(fault)?)?;
        match header.is_padding() {
            true => Ok(Message { key, export: ExportTime { unix_us, uptime_ms: None }, sequence, sets }),
            false => Err(fault),
        }
    }

    /// Its sets, to the end or to the first fault. Exporters of NetFlow v9 fill messages up with zeros.
    pub(super) fn sets(&self) -> impl Iterator<Item = Result<Set<'a>, Fault>> + use<'a> {
        let mut left = self.sets;
        let may_be_filled = self.key.format == Format::NetFlow9;
        std::iter::from_fn(move || {
            if left.is_empty() || may_be_filled && left.bytes()[0] == 0 && left.is_padding() {
                return None;
            }
            let set = next_set(&mut left);
            if set.is_err() {
                left = Reader::new("", &[]);
            }
            Some(set)
        })
    }

    /// Whether its sets and templates keep to their format. RFC 7011 section 9.1 has a malformed message dropped as a
    /// whole, so this is asked before any of it is used.
    pub(super) fn check(&self) -> Result<(), Fault> {
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

fn next_set<'a>(left: &mut Reader<'a>) -> Result<Set<'a>, Fault> {
    left.enter("set");
    let offset = left.offset();
    let (id, length) = (left.u16()?, usize::from(left.u16()?));
    let Some(content) = length.checked_sub(4) else {
        let expected = "4 bytes or more";
        return Err(Fault::Length { structure: "set", offset, claimed: length, expected });
    };
    Ok(Set { id, content: left.part("set", content)? })
}

impl Set<'_> {
    /// What its number says that it has.
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
    /// Itself, if it has `length` bytes at least.
    pub(super) fn whole(self, length: usize) -> Result<Reader<'a>, Fault> {
        let mut probe = self;
        probe.take(length).map(|_| self)
    }
}
