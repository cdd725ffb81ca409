//! Flow samples (sections 5.2 and 5.3): one packet with its routing information.

use super::{address, data_source, structure};
use crate::flow_export::decode::domain::{Domain, DomainKey};
use crate::flow_export::decode::error::DecodeErrorKind;
use crate::flow_export::decode::packet_header::{self, NoPacket};
use crate::flow_export::decode::place::is_unspecified;
use crate::flow_export::decode::reader::Reader;
use crate::flow_export::decode::statistics::Counts;
use crate::flow_export::{Address, Mac, Record, RecordBatch};
use crate::time::Timestamp;
use crate::{Frame, LinkType};

/// The interface number of packets from or to the device itself.
const INTERNAL: u32 = 0x3FFF_FFFF;

/// Appends a row for the packet of a sample, if it is IP.
pub(super) fn sample(
    mut sample: Reader<'_>,
    expanded: bool,
    key: DomainKey,
    received_us: i64,
    decapsulate: bool,
    domain: &mut Domain,
    into: &mut RecordBatch,
) -> Result<(), DecodeErrorKind> {
    let number = sample.u32()?;
    let source = data_source(&mut sample, expanded, false)?;
    let (sampling_interval, _pool, drops) = (sample.u32()?, sample.u32()?, sample.u32()?);
    domain.samples.observe(source, number, Some(drops), &mut domain.counts);
    domain.sampling_interval = sampling_interval;
    let ingress_interface = interface(&mut sample, expanded)?;
    let egress_interface = interface(&mut sample, expanded)?;
    let mut row = Record {
        received_us,
        exporter: key.exporter,
        observation_domain_id: key.observation_domain_id,
        format: key.format,
        sampling_interval,
        flow_start_us: received_us,
        flow_end_us: received_us,
        packets: 1,
        ingress_interface,
        egress_interface,
        ..Record::default()
    };
    // The sampling interface is the input or the output interface of the packet.
    if source.class == 0 && source.index > 0 {
        if source.index == ingress_interface {
            row.flow_direction = 0;
        } else if source.index == egress_interface {
            row.flow_direction = 1;
        }
    }
    let records = sample.u32()?;
    if flow_records(records, &mut sample, decapsulate, &mut row, &mut domain.counts)? {
        into.push(&row);
    }
    Ok(())
}

/// Reads an interface: 2 bits of format and 30 of value, or 32 bits each; 0 if the packet had none or several.
fn interface(sample: &mut Reader<'_>, expanded: bool) -> Result<u32, DecodeErrorKind> {
    let first = sample.u32()?;
    let (format, value) = if expanded { (first, sample.u32()?) } else { (first >> 30, first & 0x3FFF_FFFF) };
    Ok(if format == 0 && value != INTERNAL { value } else { 0 })
}

/// Reads the records of a sample into `row`. Returns whether the packet is IP.
fn flow_records(
    records: u32,
    sample: &mut Reader<'_>,
    decapsulate: bool,
    row: &mut Record,
    counts: &mut Counts,
) -> Result<bool, DecodeErrorKind> {
    // Raw headers take precedence over the agent's parsed fields.
    let mut header = None;
    let mut fields = None;
    for _ in 0..records {
        let (format, mut record) = structure(sample, "sFlow flow record")?;
        match format {
            1 => header = Some(packet_header::row(&sampled_header(&mut record)?, decapsulate)),
            2 => sampled_ethernet(&mut record, row)?,
            3 => fields = Some(sampled_ip(&mut record, false)?),
            4 => fields = Some(sampled_ip(&mut record, true)?),
            1001 => extended_switch(&mut record, row)?,
            1002 => extended_router(&mut record, row)?,
            1003 => extended_gateway(&mut record, row)?,
            _ => {}
        }
    }
    let packet = match (header, fields) {
        (Some(Ok(packet)), _) | (_, Some(packet)) => packet,
        (Some(Err(NoPacket::NotIp)), None) => {
            counts.dropped_not_ip += 1;
            return Ok(false);
        }
        (Some(Err(NoPacket::Malformed)), None) => {
            counts.dropped_bad_frame += 1;
            return Ok(false);
        }
        (None, None) => {
            counts.dropped_unknown_sample += 1;
            return Ok(false);
        }
    };
    *row = Record {
        source_address: packet.source_address,
        destination_address: packet.destination_address,
        source_port: packet.source_port,
        destination_port: packet.destination_port,
        protocol: packet.protocol,
        tcp_flags: packet.tcp_flags,
        class_of_service: packet.class_of_service,
        icmp_type_code: packet.icmp_type_code,
        octets: packet.octets,
        vlan_id: if row.vlan_id == 0 { packet.vlan_id } else { row.vlan_id },
        customer_vlan_id: packet.customer_vlan_id,
        source_mac: if packet.source_mac.is_some() { packet.source_mac } else { row.source_mac },
        destination_mac: if packet.destination_mac.is_some() {
            packet.destination_mac
        } else {
            row.destination_mac
        },
        mpls_labels: packet.mpls_labels,
        minimum_ttl: packet.minimum_ttl,
        maximum_ttl: packet.maximum_ttl,
        inner_source_address: packet.inner_source_address,
        inner_destination_address: packet.inner_destination_address,
        inner_source_port: packet.inner_source_port,
        inner_destination_port: packet.inner_destination_port,
        inner_protocol: packet.inner_protocol,
        inner_tcp_flags: packet.inner_tcp_flags,
        ..*row
    };
    Ok(true)
}

/// `sampled_header`.
fn sampled_header<'a>(record: &mut Reader<'a>) -> Result<Frame<'a>, DecodeErrorKind> {
    let link_type = match record.u32()? {
        1 => LinkType::Ethernet,
        11 => LinkType::Ipv4,
        12 => LinkType::Ipv6,
        other => LinkType::Other(other.min(u16::MAX.into()) as u16),
    };
    let (original_length, _stripped) = (record.u32()?, record.u32()?);
    let length = record.u32()? as usize;
    Ok(Frame { time: Timestamp(0), bytes: record.take(length)?, original_length, link_type })
}

/// `sampled_ethernet`: the MAC addresses, each padded to eight bytes.
fn sampled_ethernet(record: &mut Reader<'_>, row: &mut Record) -> Result<(), DecodeErrorKind> {
    let _length = record.u32()?;
    row.source_mac = Mac::from_number(record.u64()? >> 16);
    row.destination_mac = Mac::from_number(record.u64()? >> 16);
    Ok(())
}

/// `sampled_ipv4` and `sampled_ipv6`.
fn sampled_ip(record: &mut Reader<'_>, is_v6: bool) -> Result<Record, DecodeErrorKind> {
    let (length, protocol) = (record.u32()?, record.u32()?);
    let mut address = || match is_v6 {
        false => record.u32().map(Address::v4),
        true => Ok(Address(u128::from(record.u64()?) << 64 | u128::from(record.u64()?))),
    };
    let (source_address, destination_address) = (address()?, address()?);
    let (source_port, destination_port) = (record.u32()?, record.u32()?);
    let (tcp_flags, class_of_service) = (record.u32()?, record.u32()?);
    Ok(Record {
        octets: length.into(),
        protocol: protocol as u8,
        source_address,
        destination_address,
        source_port: source_port as u16,
        destination_port: destination_port as u16,
        tcp_flags: tcp_flags as u16,
        class_of_service: class_of_service as u8,
        ..Record::default()
    })
}

/// Returns a VLAN id of 12 bits; agents write all ones for none.
fn vlan(number: u32) -> u16 {
    if number < 0x0FFF { number as u16 } else { 0 }
}

/// `extended_switch`: VLAN and priority of the packet that arrived, and of the one that leaves.
fn extended_switch(record: &mut Reader<'_>, row: &mut Record) -> Result<(), DecodeErrorKind> {
    row.vlan_id = vlan(record.u32()?);
    if !record.is_empty() {
        let _priority = record.u32()?;
        row.post_vlan_id = vlan(record.u32()?);
    }
    Ok(())
}

/// Reads an address; all zeros mean none.
fn next_hop(record: &mut Reader<'_>) -> Result<Address, DecodeErrorKind> {
    let next_hop = address(record)?;
    Ok(if is_unspecified(next_hop) { Address::NONE } else { next_hop })
}

/// `extended_router`.
fn extended_router(record: &mut Reader<'_>, row: &mut Record) -> Result<(), DecodeErrorKind> {
    row.next_hop = next_hop(record)?;
    row.source_prefix_length = record.u32()?.min(128) as u8;
    row.destination_prefix_length = record.u32()?.min(128) as u8;
    Ok(())
}

/// `extended_gateway`: the first AS of the path is the next one, the last that of the destination.
fn extended_gateway(record: &mut Reader<'_>, row: &mut Record) -> Result<(), DecodeErrorKind> {
    row.bgp_next_hop = next_hop(record)?;
    let _router_as = record.u32()?;
    row.source_as = record.u32()?;
    row.previous_as = record.u32()?;
    for _ in 0..record.u32()? {
        let _segment_type = record.u32()?;
        for _ in 0..record.u32()? {
            row.destination_as = record.u32()?;
            if row.next_as == 0 {
                row.next_as = row.destination_as;
            }
        }
    }
    Ok(())
}
