//! NetFlow v5: one fixed record, so a message is a header and a set of a template that everybody knows.

use super::clock::ExportTime;
use super::domain::DomainKey;
use super::error::Fault;
use super::field::Field;
use super::reader::Reader;
use super::template::{Definition, Template};
use crate::flow_export::{Address, Format};
use crate::time::Timestamp;

/// Bytes of a record.
const RECORD_LENGTH: usize = 48;

/// A message whose header has been read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Message<'a> {
    pub(super) key: DomainKey,
    pub(super) export: ExportTime,
    /// Flows sent before this message.
    pub(super) sequence: u32,
    /// Flows in it.
    pub(super) flows: u16,
    /// 0: not told.
    pub(super) sampling_interval: u32,
    pub(super) records: Reader<'a>,
}

impl<'a> Message<'a> {
    /// Reads a header, and that the records are there which it announces. After them nothing but zeros.
    pub(super) fn read(bytes: &'a [u8], exporter: Address) -> Result<Message<'a>, Fault> {
        let mut reader = Reader::new("header of a NetFlow v5 message", bytes).whole(24)?;
        let _version = reader.u16()?;
        let flows = reader.u16()?;
        let uptime_ms = Some(reader.u32()?);
        let (seconds, nanoseconds) = (reader.u32()?, reader.u32()?);
        // Some exporters write microseconds or nothing sensible; a fraction of a second it is in any case.
        let unix_us = i64::from(seconds) * 1_000_000 + i64::from(nanoseconds % 1_000_000_000 / 1000);
        let sequence = reader.u32()?;
        let engine = u32::from(reader.u16()?);
        // Two bits of mode, 14 of interval.
        let sampling_interval = u32::from(reader.u16()? & 0x3FFF);
        reader.enter("records of a NetFlow v5 message");
        let records = reader.part("records of a NetFlow v5 message", usize::from(flows) * RECORD_LENGTH)?;
        if !reader.is_padding() {
            let (structure, offset) = ("count of records", 2);
            let expected = "as many as the message has";
            return Err(Fault::Length { structure, offset, claimed: flows.into(), expected });
        }
        let key = DomainKey { format: Format::NetFlow5, observation_domain_id: engine, exporter };
        let export = ExportTime { unix_us, uptime_ms };
        Ok(Message { key, export, sequence, flows, sampling_interval, records })
    }
}

/// The template of its records: the elements of IPFIX that mean the same, 0 for padding.
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
