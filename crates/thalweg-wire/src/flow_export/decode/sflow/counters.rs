//! Counter samples (section 5.3).

use super::{data_source, structure};
use crate::flow_export::decode::domain::{Domain, DomainKey};
use crate::flow_export::decode::error::DecodeErrorKind;
use crate::flow_export::decode::reader::Reader;
use crate::flow_export::decode::sample_sequences::DataSource;
use crate::flow_export::{CounterBatch, CounterRecord};

/// Appends a row for the interface counters of a sample, and counts other blocks.
pub(super) fn sample(
    mut sample: Reader<'_>,
    expanded: bool,
    key: DomainKey,
    received_us: i64,
    domain: &mut Domain,
    into: &mut CounterBatch,
) -> Result<(), DecodeErrorKind> {
    let number = sample.u32()?;
    let source: DataSource = data_source(&mut sample, expanded, true)?;
    domain.samples.observe(source, number, None, &mut domain.counts);
    for _ in 0..sample.u32()? {
        let (format, mut block) = structure(&mut sample, "sFlow counter block")?;
        if format == 1 {
            let record = CounterRecord {
                received_us,
                exporter: key.exporter,
                observation_domain_id: key.observation_domain_id,
                ..if_counters(&mut block)?
            };
            into.push(&record);
        } else {
            domain.counts.dropped_unknown_sample += 1;
        }
    }
    Ok(())
}

/// `if_counters`, format 1 of enterprise 0.
fn if_counters(block: &mut Reader<'_>) -> Result<CounterRecord, DecodeErrorKind> {
    let (interface, interface_type, speed_bps) = (block.u32()?, block.u32()?, block.u64()?);
    let (duplex, status) = (block.u32()?, block.u32()?);
    Ok(CounterRecord {
        interface,
        interface_type,
        speed_bps,
        duplex: duplex.min(u8::MAX.into()) as u8,
        administratively_up: (status & 1) as u8,
        operationally_up: (status >> 1 & 1) as u8,
        in_octets: block.u64()?,
        in_unicast_packets: block.u32()?,
        in_multicast_packets: block.u32()?,
        in_broadcast_packets: block.u32()?,
        in_discards: block.u32()?,
        in_errors: block.u32()?,
        in_unknown_protocols: block.u32()?,
        out_octets: block.u64()?,
        out_unicast_packets: block.u32()?,
        out_multicast_packets: block.u32()?,
        out_broadcast_packets: block.u32()?,
        out_discards: block.u32()?,
        out_errors: block.u32()?,
        promiscuous: block.u32()?.min(u8::MAX.into()) as u8,
        ..CounterRecord::default()
    })
}
