//! Records of sampled packets: their first bytes in an element (RFC 5477 section 8.5, RFC 7133 for Ethernet frames).
//!
//! | element | meaning |
//! |---|---|
//! | `dataLinkFrameSection` 315, `ipHeaderPacketSection` 313 | the first bytes, from the link or the IP header |
//! | `dataLinkFrameType` 408 | the link layer of the frame: 1 is Ethernet |
//! | `sectionExportedOctets` 410 | the number of bytes that the section has; the rest is padding |
//! | `dataLinkFrameSize` 312 | the length of the frame |
//! | `layer2packetSectionData` 104, `layer2packetSectionSize` 103 | their predecessors in NetFlow v9 (NetFlow-Lite) |
//! | `ipTotalLength` 224, `totalLengthIPv4` 190 | the length of the packet, if its header has none |
//!
//! A record gives one row: the packet's headers from the section, everything else from its other elements. Without
//! counters it is one packet, whose octets are those of its IP header, as in an sFlow sample.

use super::element::Column;
use super::field::Field;
use super::matrix::big_endian;
use super::packet_header::{self, NoPacket};
use super::place::Place;
use super::plan::Plan;
use crate::flow_export::Record;
use crate::time::Timestamp;
use crate::{Frame, LinkType};

const IP_HEADER_PACKET_SECTION: u16 = 313;
const DATA_LINK_FRAME_SECTION: u16 = 315;
const LAYER_2_PACKET_SECTION_DATA: u16 = 104;

/// `dataLinkFrameType` of Ethernet.
const ETHERNET: u64 = 1;

/// The packet sections of a template.
#[derive(Clone, Debug)]
pub(super) struct PacketSection {
    sections: Vec<Section>,
    frame_type: Place,
    exported_octets: Place,
    frame_size: Place,
    ip_length: Place,
}

/// An element with the first bytes of a packet.
#[derive(Clone, Copy, Debug)]
struct Section {
    is_frame: bool,
    bytes: SectionBytes,
}

/// The position of a section.
#[derive(Clone, Copy, Debug)]
enum SectionBytes {
    /// In a record without its variable-length fields.
    Fixed { offset: usize, length: usize },
    /// The number of the variable-length field.
    Variable { number: usize },
}

impl PacketSection {
    /// Returns the sections of a template; `None` if it has none.
    pub(super) fn of(fields: &[Field], is_variable: impl Fn(&Field) -> bool) -> Option<PacketSection> {
        let mut found = PacketSection {
            sections: Vec::new(),
            frame_type: Place::default(),
            exported_octets: Place::default(),
            frame_size: Place::default(),
            ip_length: Place::default(),
        };
        let (mut offset, mut number) = (0, 0);
        for field in fields {
            let length = usize::from(field.length);
            let bytes = match is_variable(field) {
                true => SectionBytes::Variable { number },
                false => SectionBytes::Fixed { offset, length },
            };
            found.add(field, bytes);
            match is_variable(field) {
                true => number += 1,
                false => offset += length,
            }
        }
        // Frames first, because they have more headers.
        found.sections.sort_by_key(|section| !section.is_frame);
        (!found.sections.is_empty()).then_some(found)
    }

    fn add(&mut self, field: &Field, bytes: SectionBytes) {
        if field.enterprise != 0 {
            return;
        }
        let is_frame = matches!(field.id, DATA_LINK_FRAME_SECTION | LAYER_2_PACKET_SECTION_DATA);
        if is_frame || field.id == IP_HEADER_PACKET_SECTION {
            self.sections.push(Section { is_frame, bytes });
        }
        let SectionBytes::Fixed { offset, length: length @ 1..=8 } = bytes else { return };
        let place = Place { offset: offset as u16, length: length as u8, ..Place::default() };
        match field.id {
            408 => self.frame_type = place,
            410 => self.exported_octets = place,
            103 | 312 => self.frame_size = place,
            190 | 224 => self.ip_length = place,
            _ => {}
        }
    }

    /// Returns the header fields of a record's packet, and its octets. `variable` are the record's variable-length
    /// fields.
    pub(super) fn packet(
        &self,
        record: &[u8],
        variable: &[&[u8]],
        decapsulate: bool,
    ) -> Result<Record, NoPacket> {
        let bytes_of = |section: &Section| match section.bytes {
            SectionBytes::Fixed { offset, length } => &record[offset..offset + length],
            SectionBytes::Variable { number } => variable[number],
        };
        let section = self.sections.iter().find(|section| !bytes_of(section).is_empty());
        let section = section.ok_or(NoPacket::Malformed)?;
        let frame = self.frame(section.is_frame, bytes_of(section), record);
        packet_header::row(&frame, decapsulate)
    }

    fn frame<'a>(&self, is_frame: bool, bytes: &'a [u8], record: &[u8]) -> Frame<'a> {
        let stated = |place: Place| Some(big_endian(place.of(record))).filter(|&number| number > 0);
        let link_type = match (is_frame, stated(self.frame_type).unwrap_or(ETHERNET), bytes) {
            (true, ETHERNET, _) => LinkType::Ethernet,
            (true, other, _) => LinkType::Other(other.min(u16::MAX.into()) as u16),
            (false, _, [version, ..]) if version >> 4 == 6 => LinkType::Ipv6,
            (false, ..) => LinkType::Ipv4,
        };
        let on_the_wire = stated(if is_frame { self.frame_size } else { self.ip_length });
        let exported = stated(self.exported_octets).or(on_the_wire).unwrap_or(u64::MAX);
        let bytes = &bytes[..exported.min(bytes.len() as u64) as usize];
        let original_length = on_the_wire.unwrap_or(0).clamp(bytes.len() as u64, u32::MAX.into()) as u32;
        Frame { time: Timestamp(0), bytes, original_length, link_type }
    }
}

/// Returns a reported value, or else that of the packet.
fn or<T: Default + PartialEq>(reported: T, of_packet: T) -> T {
    if reported == T::default() { of_packet } else { reported }
}

/// Adds the headers of a sampled packet to a row of its template's other elements.
pub(super) fn join(row: Record, packet: &Record, plan: &Plan) -> Record {
    Record {
        received_us: row.received_us,
        exporter: row.exporter,
        observation_domain_id: row.observation_domain_id,
        format: row.format,
        sampling_interval: row.sampling_interval,
        flow_start_us: row.flow_start_us,
        flow_end_us: row.flow_end_us,
        octets: if plan.has(Column::Octets) { row.octets } else { packet.octets },
        packets: if plan.has(Column::Packets) { row.packets } else { 1 },
        ingress_interface: row.ingress_interface,
        egress_interface: row.egress_interface,
        source_as: row.source_as,
        destination_as: row.destination_as,
        next_hop: row.next_hop,
        source_prefix_length: row.source_prefix_length,
        destination_prefix_length: row.destination_prefix_length,
        vlan_id: or(row.vlan_id, packet.vlan_id),
        flow_direction: row.flow_direction,
        flow_end_reason: row.flow_end_reason,
        customer_vlan_id: or(row.customer_vlan_id, packet.customer_vlan_id),
        source_mac: or(row.source_mac, packet.source_mac),
        destination_mac: or(row.destination_mac, packet.destination_mac),
        mpls_labels: or(row.mpls_labels, packet.mpls_labels),
        minimum_ttl: or(row.minimum_ttl, packet.minimum_ttl),
        maximum_ttl: or(row.maximum_ttl, packet.maximum_ttl),
        post_source_mac: row.post_source_mac,
        post_destination_mac: row.post_destination_mac,
        post_vlan_id: row.post_vlan_id,
        post_class_of_service: row.post_class_of_service,
        forwarding_status: row.forwarding_status,
        ingress_vrf_id: row.ingress_vrf_id,
        egress_vrf_id: row.egress_vrf_id,
        bgp_next_hop: row.bgp_next_hop,
        next_as: row.next_as,
        previous_as: row.previous_as,
        observation_point_id: row.observation_point_id,
        ..*packet
    }
}
