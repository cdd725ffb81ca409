//! NetFlow v5: a header and a data set with a fixed template.

use super::clock::ExportTime;
use super::domain::DomainKey;
use super::error::DecodeErrorKind;
use super::field::Field;
use super::reader::Reader;
use super::template::{Definition, Template};
use crate::flow_export::{Address, Format};
use crate::time::Timestamp;

/// The length of a record in bytes.
const RECORD_LENGTH: usize = 48;

/// A message with a decoded header.
#[derive(Clone, Copy, Debug)]
pub(super) struct Message<'a> {
    pub(super) key: DomainKey,
    pub(super) export: ExportTime,
    /// The number of flows sent before this message.
    pub(super) sequence: u32,
    /// The number of flows in this message.
    pub(super) flows: u16,
    /// 0: unknown.
    pub(super) sampling_interval: u32,
    pub(super) records: Reader<'a>,
}

impl<'a> Message<'a> {
    /// Decodes the header, and checks that the message contains the announced records and then only zeros.
    pub(super) fn read(bytes: &'a [u8], exporter: Address) -> Result<Message<'a>, DecodeErrorKind> {
        let mut reader = Reader::new("header of a NetFlow v5 message", bytes).whole(24)?;
        let _version = reader.u16()?;
        let flows = reader.u16()?;
        let uptime_ms = Some(reader.u32()?);
        let (seconds, nanoseconds) = (reader.u32()?, reader.u32()?);
        // Some exporters write microseconds or garbage: limit it to a fraction of a second.
        let unix_us = i64::from(seconds) * 1_000_000 + i64::from(nanoseconds % 1_000_000_000 / 1000);
        let sequence = reader.u32()?;
        let engine = u32::from(reader.u16()?);
        // Two bits of mode, 14 of interval.
        let sampling_interval = u32::from(reader.u16()? & 0x3FFF);
        reader.enter("records of a NetFlow v5 message");
        let records = reader.part("records of a NetFlow v5 message", usize::from(flows) * RECORD_LENGTH)?;
        if !reader.is_padding() {
            let (structure, offset) = ("count of records", 2);
            let expected = "the number of records in the message";
            return Err(DecodeErrorKind::Length { structure, offset, claimed: flows.into(), expected });
        }
        let key = DomainKey { format: Format::NetFlow5, observation_domain_id: engine, exporter };
        let export = ExportTime { unix_us, uptime_ms };
        Ok(Message { key, export, sequence, flows, sampling_interval, records })
    }
}

/// Returns the template of the records: the equivalent IPFIX elements, 0 for padding.
pub(super) fn template() -> Template {
    let fields: [(u16, u16); 20] = [
        (8, 4),
        (12, 4),
        (15, 4),
        (10, 2),
        (14, 2),
        (2, 4),
        (1, 4),
        (22, 4),
        (21, 4),
        (7, 2),
        (11, 2),
        (0, 1),
        (6, 1),
        (4, 1),
        (5, 1),
        (16, 2),
        (17, 2),
        (9, 1),
        (13, 1),
        (0, 2),
    ];
    let fields = fields.map(|(id, length)| Field { enterprise: 0, id, length }).to_vec();
    let definition = Definition { id: 0, options: false, fields, bytes: &[] };
    Template::new(&definition, usize::MAX, Timestamp(0)).expect("its records have a length")
}
