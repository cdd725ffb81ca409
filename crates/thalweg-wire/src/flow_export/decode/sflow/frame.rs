//! Parses the header of a sampled frame into a row.

use crate::flow_export::Record;
use crate::flow_export::decode::error::DecodeErrorKind;
use crate::flow_export::decode::reader::Reader;
use crate::parse::{Parser, Unparsed};
use crate::time::Timestamp;
use crate::{Frame, LinkType, Packet};

/// ICMP and ICMPv6.
const ICMP: [u8; 2] = [1, 58];

/// The reason why a frame gives no row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NoPacket {
    NotIp,
    Malformed,
}

/// `sampled_header`. Does not parse tunnels: the record describes the packet that the router forwarded.
pub(super) fn sampled_header(record: &mut Reader<'_>) -> Result<Result<Record, NoPacket>, DecodeErrorKind> {
    let link_type = match record.u32()? {
        1 => LinkType::Ethernet,
        11 => LinkType::Ipv4,
        12 => LinkType::Ipv6,
        other => LinkType::Other(other.min(u16::MAX.into()) as u16),
    };
    let (original_length, _stripped) = (record.u32()?, record.u32()?);
    let length = record.u32()? as usize;
    let bytes = record.take(length)?;
    let frame = Frame { time: Timestamp(0), bytes, original_length, link_type };
    Ok(match Parser::default().parse(&frame) {
        Ok(packet) => Ok(row(&packet, &frame)),
        Err(Unparsed::Malformed { .. }) => Err(NoPacket::Malformed),
        Err(_) => Err(NoPacket::NotIp),
    })
}

fn row(packet: &Packet, frame: &Frame<'_>) -> Record {
    let key = &packet.key;
    let protocol = key.protocol.0;
    let outer = Outer::of(frame);
    // Flow keys use the ICMP identifier as ports; records do not.
    let is_icmp = ICMP.contains(&protocol);
    Record {
        source_address: key.src().into(),
        destination_address: key.dst().into(),
        source_port: if is_icmp { 0 } else { key.src_port },
        destination_port: if is_icmp { 0 } else { key.dst_port },
        protocol,
        tcp_flags: packet.tcp_flags.0.into(),
        octets: packet.ip_length.into(),
        vlan_id: outer.vlan_id,
        class_of_service: outer.class_of_service,
        icmp_type_code: if is_icmp { outer.icmp_type_code } else { 0 },
        ..Record::default()
    }
}

/// Fields that a [`Packet`] does not contain, from an IP header directly after the link layer or its VLAN tags.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Outer {
    vlan_id: u16,
    class_of_service: u8,
    icmp_type_code: u16,
}

impl Outer {
    fn of(frame: &Frame<'_>) -> Outer {
        let mut outer = Outer::default();
        let mut offset = 0;
        let mut next = match frame.link_type {
            LinkType::Ipv4 => 0x0800,
            LinkType::Ipv6 => 0x86DD,
            _ => {
                offset = 14;
                u16_at(frame.bytes, 12)
            }
        };
        // Two tags, and one more.
        for tag in 0..3 {
            if !matches!(next, 0x8100 | 0x88A8 | 0x9100) {
                break;
            }
            if tag == 0 {
                outer.vlan_id = u16_at(frame.bytes, offset) & 0x0FFF;
            }
            next = u16_at(frame.bytes, offset + 2);
            offset += 4;
        }
        let ip = frame.bytes.get(offset..).unwrap_or_default();
        match (next, ip) {
            (0x0800, [version, class, ..]) => {
                outer.class_of_service = *class;
                let is_first = u16_at(ip, 6) & 0x1FFF == 0;
                if is_first {
                    outer.icmp_type_code = u16_at(ip, usize::from(version & 0x0F) * 4);
                }
            }
            (0x86DD, [version, class, ..]) => {
                outer.class_of_service = version << 4 | class >> 4;
                if ip.get(6) == Some(&58) {
                    outer.icmp_type_code = u16_at(ip, 40);
                }
            }
            _ => {}
        }
        outer
    }
}

/// Reads a number; 0 beyond the captured bytes.
fn u16_at(bytes: &[u8], offset: usize) -> u16 {
    bytes.get(offset..).and_then(|left| left.first_chunk()).map_or(0, |&bytes| u16::from_be_bytes(bytes))
}
