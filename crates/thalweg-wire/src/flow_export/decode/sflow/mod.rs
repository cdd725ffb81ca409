//! sFlow version 5 (sflow.org, "sFlow Version 5", July 2004): datagrams of samples in XDR.
//!
//! A flow sample is one sampled packet and gives one row: its headers, its length above the link layer, and the
//! sampling interval. A counter sample gives a row of interface counters.

mod counters;
mod flow;

use super::domain::{Domain, DomainKey};
use super::error::DecodeErrorKind;
use super::reader::Reader;
use super::sample_sequences::DataSource;
use crate::flow_export::{Address, Decoded, Format};

/// A datagram with a decoded header.
#[derive(Clone, Copy, Debug)]
pub(super) struct Datagram<'a> {
    pub(super) key: DomainKey,
    pub(super) sequence: u32,
    pub(super) uptime_ms: u32,
    samples: u32,
    left: Reader<'a>,
}

impl<'a> Datagram<'a> {
    /// Decodes the header (section 5.1).
    pub(super) fn read(bytes: &'a [u8]) -> Result<Datagram<'a>, DecodeErrorKind> {
        let mut reader = Reader::new("header of an sFlow datagram", bytes);
        let _version = reader.u32()?;
        let exporter = address(&mut reader)?;
        let key = DomainKey { format: Format::Sflow5, observation_domain_id: reader.u32()?, exporter };
        let (sequence, uptime_ms, samples) = (reader.u32()?, reader.u32()?, reader.u32()?);
        Ok(Datagram { key, sequence, uptime_ms, samples, left: reader })
    }

    /// Decodes the samples and appends their rows.
    pub(super) fn decode(
        mut self,
        received_us: i64,
        decapsulate: bool,
        domain: &mut Domain,
        into: &mut Decoded,
    ) -> Result<(), DecodeErrorKind> {
        for _ in 0..self.samples {
            let (format, sample) = structure(&mut self.left, "sFlow sample")?;
            match format {
                1 | 3 => {
                    let (is_expanded, flows) = (format == 3, &mut into.flows);
                    flow::sample(sample, is_expanded, self.key, received_us, decapsulate, domain, flows)?;
                }
                2 | 4 => {
                    counters::sample(sample, format == 4, self.key, received_us, domain, &mut into.counters)?;
                }
                _ => domain.counts.dropped_unknown_sample += 1,
            }
        }
        Ok(())
    }
}

/// Reads the next structure with its format. Formats of enterprises other than 0 are unsupported.
fn structure<'a>(left: &mut Reader<'a>, name: &'static str) -> Result<(u32, Reader<'a>), DecodeErrorKind> {
    left.enter(name);
    let format = left.u32()?;
    let length = left.u32()? as usize;
    Ok((format, left.part(name, length)?))
}

/// Reads the data source: 8 bits of class and 24 of index, or 32 bits each.
fn data_source(
    sample: &mut Reader<'_>,
    expanded: bool,
    is_counters: bool,
) -> Result<DataSource, DecodeErrorKind> {
    let first = sample.u32()?;
    let (class, index) = if expanded { (first, sample.u32()?) } else { (first >> 24, first & 0x00FF_FFFF) };
    Ok(DataSource { is_counters, class, index })
}

/// Reads an address with its type: 1 is IPv4, 2 is IPv6, 0 is none.
fn address(reader: &mut Reader<'_>) -> Result<Address, DecodeErrorKind> {
    let offset = reader.offset();
    match reader.u32()? {
        0 => Ok(Address::NONE),
        1 => reader.u32().map(Address::v4),
        2 => Ok(Address(u128::from(reader.u64()?) << 64 | u128::from(reader.u64()?))),
        found => {
            let (structure, expected) = ("address type", "0, 1 (IPv4) or 2 (IPv6)");
            Err(DecodeErrorKind::Number { structure, offset, found, expected })
        }
    }
}
