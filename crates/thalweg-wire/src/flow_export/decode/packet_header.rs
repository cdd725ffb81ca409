//! Parses the first bytes of a sampled packet into a row: of sFlow's raw headers, and of IPFIX packet sections.

use crate::flow_export::{LabelStack, Mac, Record};
use crate::packet::PacketNotes;
use crate::parse::{Parser, Unparsed, is_udp_tunnel};
use crate::protocol::Protocol;
use crate::{Frame, LinkType, Packet};

/// ICMP and ICMPv6.
const ICMP: [u8; 2] = [1, 58];

/// The protocols of tunnels except overlays over UDP: IPv4 and IPv6 in IP, GRE.
const TUNNELS: [Protocol; 3] = [Protocol(4), Protocol(41), Protocol::GRE];

/// The reason why a packet gives no row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NoPacket {
    NotIp,
    Malformed,
}

/// Returns the header fields of a packet, and its octets. The row describes the packet that the router forwarded. The
/// innermost packet of a tunnel is in the inner columns, or, with `decapsulate`, replaces the tunnel's.
#[inline]
pub(super) fn row(frame: &Frame<'_>, decapsulate: bool) -> Result<Record, NoPacket> {
    let packet = Parser::default().parse(frame).map_err(|unparsed| match unparsed {
        Unparsed::Malformed { .. } => NoPacket::Malformed,
        _ => NoPacket::NotIp,
    })?;
    let outer = forwarded(&packet, frame);
    let inner = match may_be_tunnel(&packet) {
        true => Parser { decapsulate: true }.parse(frame).ok().filter(is_decapsulated),
        false => None,
    };
    Ok(match inner {
        None => outer,
        Some(inner) if decapsulate => Record {
            vlan_id: outer.vlan_id,
            customer_vlan_id: outer.customer_vlan_id,
            source_mac: outer.source_mac,
            destination_mac: outer.destination_mac,
            mpls_labels: outer.mpls_labels,
            ..flow(&inner)
        },
        Some(inner) => with_inner(outer, &flow(&inner)),
    })
}

#[inline]
fn may_be_tunnel(packet: &Packet) -> bool {
    match packet.key.protocol {
        Protocol::TCP => false,
        Protocol::UDP => is_udp_tunnel(packet.key.src_port, packet.key.dst_port),
        other => TUNNELS.contains(&other),
    }
}

#[inline]
fn is_decapsulated(packet: &Packet) -> bool {
    packet.notes.contains(PacketNotes::DECAPSULATED)
}

/// Returns the fields of a packet directly after the link layer.
#[inline]
fn forwarded(packet: &Packet, frame: &Frame<'_>) -> Record {
    let outer = Outer::of(frame);
    let is_icmp = ICMP.contains(&packet.key.protocol.0);
    Record {
        vlan_id: outer.vlan_id,
        customer_vlan_id: outer.customer_vlan_id,
        source_mac: outer.source_mac,
        destination_mac: outer.destination_mac,
        mpls_labels: outer.mpls_labels,
        minimum_ttl: outer.ttl,
        maximum_ttl: outer.ttl,
        class_of_service: outer.class_of_service,
        icmp_type_code: if is_icmp { outer.icmp_type_code } else { 0 },
        ..flow(packet)
    }
}

/// Returns the fields that every [`Packet`] contains.
#[inline]
fn flow(packet: &Packet) -> Record {
    let key = &packet.key;
    // Flow keys use the ICMP identifier as ports; records do not.
    let is_icmp = ICMP.contains(&key.protocol.0);
    Record {
        source_address: key.src().into(),
        destination_address: key.dst().into(),
        source_port: if is_icmp { 0 } else { key.src_port },
        destination_port: if is_icmp { 0 } else { key.dst_port },
        protocol: key.protocol.0,
        tcp_flags: packet.tcp_flags.0.into(),
        octets: packet.ip_length.into(),
        ..Record::default()
    }
}

#[inline]
fn with_inner(outer: Record, inner: &Record) -> Record {
    Record {
        inner_source_address: inner.source_address,
        inner_destination_address: inner.destination_address,
        inner_source_port: inner.source_port,
        inner_destination_port: inner.destination_port,
        inner_protocol: inner.protocol,
        inner_tcp_flags: inner.tcp_flags,
        ..outer
    }
}

/// EtherTypes.
const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86DD;
const TAGS: [u16; 3] = [0x8100, 0x88A8, 0x9100];
const MPLS: [u16; 2] = [0x8847, 0x8848];

/// The maximum number of VLAN tags and of MPLS labels, as of [`Parser`].
const MAX_TAGS: usize = 8;
const MAX_LABELS: usize = 16;

/// Fields that a [`Packet`] does not contain, from the link layer and the first IP header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Outer {
    source_mac: Mac,
    destination_mac: Mac,
    vlan_id: u16,
    customer_vlan_id: u16,
    mpls_labels: LabelStack,
    ttl: u8,
    class_of_service: u8,
    icmp_type_code: u16,
}

impl Outer {
    fn of(frame: &Frame<'_>) -> Outer {
        let (ethertype, offset) = match frame.link_type {
            LinkType::Ipv4 => (IPV4, 0),
            LinkType::Ipv6 => (IPV6, 0),
            _ => (u16_at(frame.bytes, 12), 14),
        };
        let (destination_mac, source_mac) = match offset {
            0 => (Mac::NONE, Mac::NONE),
            _ => (mac_at(frame.bytes, 0), mac_at(frame.bytes, 6)),
        };
        let ([vlan_id, customer_vlan_id], ethertype, offset) = skip_tags(frame.bytes, ethertype, offset);
        let (mpls_labels, ethertype, offset) = skip_labels(frame.bytes, ethertype, offset);
        let ip = frame.bytes.get(offset..).unwrap_or_default();
        let byte = |offset: usize| ip.get(offset).copied().unwrap_or(0);
        let (class_of_service, ttl, icmp_type_code) = match (ethertype, ip) {
            (IPV4, [version, class, ..]) => {
                let is_first = u16_at(ip, 6) & 0x1FFF == 0;
                (*class, byte(8), if is_first { u16_at(ip, usize::from(version & 0x0F) * 4) } else { 0 })
            }
            (IPV6, [version, class, ..]) => {
                let is_icmp = ip.get(6) == Some(&58);
                (version << 4 | class >> 4, byte(7), if is_icmp { u16_at(ip, 40) } else { 0 })
            }
            _ => (0, 0, 0),
        };
        Outer {
            source_mac,
            destination_mac,
            vlan_id,
            customer_vlan_id,
            mpls_labels,
            ttl,
            class_of_service,
            icmp_type_code,
        }
    }
}

/// Skips VLAN tags. Returns the two outermost VLANs, the EtherType after the tags, and the offset after that.
fn skip_tags(bytes: &[u8], mut ethertype: u16, mut offset: usize) -> ([u16; 2], u16, usize) {
    let mut vlan_ids = [0; 2];
    for tag in 0..MAX_TAGS {
        if !TAGS.contains(&ethertype) {
            break;
        }
        if let Some(vlan_id) = vlan_ids.get_mut(tag) {
            *vlan_id = u16_at(bytes, offset) & 0x0FFF;
        }
        ethertype = u16_at(bytes, offset + 2);
        offset += 4;
    }
    (vlan_ids, ethertype, offset)
}

/// Skips MPLS labels (RFC 3032). Returns them, the EtherType of the IP version after them, and its offset.
fn skip_labels(bytes: &[u8], ethertype: u16, mut offset: usize) -> (LabelStack, u16, usize) {
    let mut labels = LabelStack::default();
    if !MPLS.contains(&ethertype) {
        return (labels, ethertype, offset);
    }
    for position in 0..MAX_LABELS {
        let entry = bytes.get(offset..).and_then(|left| left.first_chunk::<3>());
        if let (Some(slot), Some(entry)) = (labels.0.get_mut(position), entry) {
            *slot = *entry;
        }
        offset += 4;
        if entry.is_none_or(|[.., low]| low & 1 != 0) {
            break;
        }
    }
    match bytes.get(offset).map(|version| version >> 4) {
        Some(4) => (labels, IPV4, offset),
        Some(6) => (labels, IPV6, offset),
        _ => (labels, 0, offset),
    }
}

fn mac_at(bytes: &[u8], offset: usize) -> Mac {
    bytes.get(offset..).and_then(|left| left.first_chunk()).map_or(Mac::NONE, |&bytes| Mac(bytes))
}

/// Reads a number; 0 beyond the captured bytes.
fn u16_at(bytes: &[u8], offset: usize) -> u16 {
    bytes.get(offset..).and_then(|left| left.first_chunk()).map_or(0, |&bytes| u16::from_be_bytes(bytes))
}
