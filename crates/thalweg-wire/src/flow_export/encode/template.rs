//! The templates of v9 and IPFIX: the fields of a record and their encoding.
//!
//! A template consists of groups. Each group declares its fields once, as element, type and value, for both templates
//! and records. Most flows have no routing information, so there are templates without it. The values of a row
//! determine its template, so nothing is lost.
//!
//! Element numbers are IANA's (RFC 7012), which equal those of v9 where v9 has them.

use super::super::{Address, Mac, Record};

/// The number of the first template (RFC 7011 section 3.4.1).
const FIRST_TEMPLATE: u16 = 256;

/// The enterprise number of reverse elements (RFC 5103 section 6.1).
const REVERSE_PEN: u32 = 29_305;

/// The bit of an element number that precedes an enterprise number (RFC 7011 section 3.2).
const ENTERPRISE_BIT: u16 = 0x8000;

/// A field of a template.
#[derive(Clone, Copy, Debug)]
pub(super) struct Field {
    pub element: u16,
    pub length: u16,
    /// Whether it is a reverse element (RFC 5103).
    pub is_reverse: bool,
}

impl Field {
    /// Creates a field of the forward direction.
    pub(super) const fn new(element: u16, length: u16) -> Field {
        Field { element, length, is_reverse: false }
    }

    /// Writes the field specifier (RFC 7011 section 3.2).
    pub(super) fn write(self, to: &mut Vec<u8>) {
        let bit = if self.is_reverse { ENTERPRISE_BIT } else { 0 };
        to.extend_from_slice(&(self.element | bit).to_be_bytes());
        to.extend_from_slice(&self.length.to_be_bytes());
        if self.is_reverse {
            to.extend_from_slice(&REVERSE_PEN.to_be_bytes());
        }
    }
}

/// Declares a group: its fields in the template, and their encoding in a record.
macro_rules! group {
    ($(#[$meta:meta])* $name:ident of $record:ident {
        $($element:literal: $type:ty = $value:expr,)+
    }) => {
        $(#[$meta])*
        pub(super) struct $name;

        impl $name {
            const FIELDS: &[Field] = &[$(Field::new($element, size_of::<$type>() as u16),)+];
            const LENGTH: usize = 0 $(+ size_of::<$type>())+;

            #[inline(always)]
            fn bytes($record: &Record) -> [u8; $name::LENGTH] {
                let mut bytes = [0; $name::LENGTH];
                let mut at = 0;
                $(
                    let value: $type = $value;
                    bytes[at..at + size_of::<$type>()].copy_from_slice(&value.to_be_bytes());
                    at += size_of::<$type>();
                )+
                debug_assert_eq!(at, $name::LENGTH);
                bytes
            }
        }
    };
}

group! {
    /// IPv4 addresses.
    EndsV4 of record {
        8: u32 = number_v4(record.source_address),
        12: u32 = number_v4(record.destination_address),
        32: u16 = record.icmp_type_code,
    }
}

group! {
    /// IPv6 addresses. [`Address::NONE`] is sent as all ones, which is no valid address.
    EndsV6 of record {
        27: u128 = record.source_address.0,
        28: u128 = record.destination_address.0,
        139: u16 = record.icmp_type_code,
    }
}

group! {
    /// The fields of every flow.
    Traffic of record {
        7: u16 = record.source_port,
        11: u16 = record.destination_port,
        4: u8 = record.protocol,
        5: u8 = record.class_of_service,
        6: u16 = record.tcp_flags,
        1: u64 = record.octets,
        2: u64 = record.packets,
        58: u16 = record.vlan_id,
        136: u8 = record.flow_end_reason,
        239: u8 = record.biflow_direction,
    }
}

group! {
    /// Routing information of an IPv4 flow.
    RoutingV4 of record {
        10: u32 = record.ingress_interface,
        14: u32 = record.egress_interface,
        16: u32 = record.source_as,
        17: u32 = record.destination_as,
        15: u32 = number_v4(record.next_hop),
        9: u8 = record.source_prefix_length,
        13: u8 = record.destination_prefix_length,
        61: u8 = record.flow_direction,
    }
}

group! {
    /// Routing information of an IPv6 flow. An unknown direction is sent as 255, which has no other meaning.
    RoutingV6 of record {
        10: u32 = record.ingress_interface,
        14: u32 = record.egress_interface,
        16: u32 = record.source_as,
        17: u32 = record.destination_as,
        62: u128 = record.next_hop.0,
        29: u8 = record.source_prefix_length,
        30: u8 = record.destination_prefix_length,
        61: u8 = record.flow_direction,
    }
}

/// An entry of a stack of MPLS labels, as it is sent.
#[derive(Clone, Copy)]
struct LabelBytes([u8; 3]);

impl LabelBytes {
    const fn to_be_bytes(self) -> [u8; 3] {
        self.0
    }
}

group! {
    /// Columns that few flows have a value in, except names and countries. A column without a value is sent as zeros.
    Details of record {
        56: Mac = record.source_mac,
        80: Mac = record.destination_mac,
        81: Mac = record.post_source_mac,
        57: Mac = record.post_destination_mac,
        59: u16 = record.post_vlan_id,
        245: u16 = record.customer_vlan_id,
        52: u8 = record.minimum_ttl,
        53: u8 = record.maximum_ttl,
        89: u8 = record.forwarding_status,
        55: u8 = record.post_class_of_service,
        70: LabelBytes = LabelBytes(record.mpls_labels.0[0]),
        71: LabelBytes = LabelBytes(record.mpls_labels.0[1]),
        72: LabelBytes = LabelBytes(record.mpls_labels.0[2]),
        73: LabelBytes = LabelBytes(record.mpls_labels.0[3]),
        74: LabelBytes = LabelBytes(record.mpls_labels.0[4]),
        75: LabelBytes = LabelBytes(record.mpls_labels.0[5]),
        76: LabelBytes = LabelBytes(record.mpls_labels.0[6]),
        77: LabelBytes = LabelBytes(record.mpls_labels.0[7]),
        78: LabelBytes = LabelBytes(record.mpls_labels.0[8]),
        79: LabelBytes = LabelBytes(record.mpls_labels.0[9]),
        234: u32 = record.ingress_vrf_id,
        235: u32 = record.egress_vrf_id,
        128: u32 = record.next_as,
        129: u32 = record.previous_as,
        138: u64 = record.observation_point_id,
    }
}

group! {
    /// The next hop in BGP of an IPv4 flow.
    BgpV4 of record {
        18: u32 = number_v4(record.bgp_next_hop),
    }
}

group! {
    /// The next hop in BGP of an IPv6 flow.
    BgpV6 of record {
        63: u128 = record.bgp_next_hop.0,
    }
}

group! {
    /// The reverse direction of a biflow (RFC 5103): the fields that do not mirror the forward direction.
    Reverse of record {
        5: u8 = record.class_of_service,
        6: u16 = record.tcp_flags,
        1: u64 = record.octets,
        2: u64 = record.packets,
    }
}

fn number_v4(address: Address) -> u32 {
    address.as_v4().unwrap_or(0)
}

/// The template of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Kind {
    V4,
    V6,
    RoutedV4,
    RoutedV6,
    BiflowV4,
    BiflowV6,
    /// With [`Details`]. The templates before have numbers up to 265.
    DetailedV4 = 44,
    DetailedV6,
}

impl Kind {
    /// The templates of unidirectional flows.
    pub(super) const ONE_WAY: [Kind; 4] = [Kind::V4, Kind::V6, Kind::RoutedV4, Kind::RoutedV6];

    /// The templates of rows with [`Details`], which are sent when the first such row is.
    pub(super) const DETAILED: [Kind; 2] = [Kind::DetailedV4, Kind::DetailedV6];

    /// Returns the template for a single row.
    #[inline]
    pub(super) fn of(record: &Record) -> Kind {
        if record.has_sparse_values() {
            return if is_v4(record) { Kind::DetailedV4 } else { Kind::DetailedV6 };
        }
        match (is_v4(record), is_routed(record)) {
            (true, false) => Kind::V4,
            (false, false) => Kind::V6,
            (true, true) => Kind::RoutedV4,
            (false, true) => Kind::RoutedV6,
        }
    }

    /// Returns the template for two rows, the second of which is the [`reverse`](is_reverse) of the first.
    pub(super) fn of_biflow(forward: &Record) -> Kind {
        if is_v4(forward) { Kind::BiflowV4 } else { Kind::BiflowV6 }
    }

    pub(super) const fn template_id(self) -> u16 {
        FIRST_TEMPLATE + self as u16
    }

    /// Returns the groups after the times, without the reverse direction.
    const fn groups(self) -> &'static [&'static [Field]] {
        match self {
            Kind::V4 | Kind::BiflowV4 => &[EndsV4::FIELDS, Traffic::FIELDS],
            Kind::V6 | Kind::BiflowV6 => &[EndsV6::FIELDS, Traffic::FIELDS],
            Kind::RoutedV4 => &[EndsV4::FIELDS, Traffic::FIELDS, RoutingV4::FIELDS],
            Kind::RoutedV6 => &[EndsV6::FIELDS, Traffic::FIELDS, RoutingV6::FIELDS],
            Kind::DetailedV4 => {
                &[EndsV4::FIELDS, Traffic::FIELDS, RoutingV4::FIELDS, Details::FIELDS, BgpV4::FIELDS]
            }
            Kind::DetailedV6 => {
                &[EndsV6::FIELDS, Traffic::FIELDS, RoutingV6::FIELDS, Details::FIELDS, BgpV6::FIELDS]
            }
        }
    }

    /// Whether it is one of [`Kind::DETAILED`].
    #[inline]
    pub(super) const fn is_detailed(self) -> bool {
        matches!(self, Kind::DetailedV4 | Kind::DetailedV6)
    }

    const fn is_biflow(self) -> bool {
        matches!(self, Kind::BiflowV4 | Kind::BiflowV6)
    }

    /// Returns the length of a record in bytes, whose two times have `times` bytes.
    pub(super) const fn record_length(self, times: usize) -> usize {
        times
            + match self {
                Kind::V4 => EndsV4::LENGTH + Traffic::LENGTH,
                Kind::V6 => EndsV6::LENGTH + Traffic::LENGTH,
                Kind::RoutedV4 => EndsV4::LENGTH + Traffic::LENGTH + RoutingV4::LENGTH,
                Kind::RoutedV6 => EndsV6::LENGTH + Traffic::LENGTH + RoutingV6::LENGTH,
                Kind::DetailedV4 => Kind::RoutedV4.record_length(0) + Details::LENGTH + BgpV4::LENGTH,
                Kind::DetailedV6 => Kind::RoutedV6.record_length(0) + Details::LENGTH + BgpV6::LENGTH,
                Kind::BiflowV4 => EndsV4::LENGTH + Traffic::LENGTH + times + Reverse::LENGTH,
                Kind::BiflowV6 => EndsV6::LENGTH + Traffic::LENGTH + times + Reverse::LENGTH,
            }
    }

    /// Returns all fields, beginning with the two times.
    pub(super) fn fields(self, times: [Field; 2]) -> impl Iterator<Item = Field> {
        let reverse: &[Field] = if self.is_biflow() { Reverse::FIELDS } else { &[] };
        let reverse_times = times.into_iter().take(if self.is_biflow() { times.len() } else { 0 });
        let reverse =
            reverse_times.chain(reverse.iter().copied()).map(|field| Field { is_reverse: true, ..field });
        times.into_iter().chain(self.groups().iter().copied().flatten().copied()).chain(reverse)
    }

    /// Writes the fields after the times.
    #[inline]
    pub(super) fn write(self, record: &Record, to: &mut Vec<u8>) {
        match self {
            Kind::V4 | Kind::RoutedV4 | Kind::BiflowV4 | Kind::DetailedV4 => {
                to.extend_from_slice(&EndsV4::bytes(record))
            }
            Kind::V6 | Kind::RoutedV6 | Kind::BiflowV6 | Kind::DetailedV6 => {
                to.extend_from_slice(&EndsV6::bytes(record))
            }
        }
        to.extend_from_slice(&Traffic::bytes(record));
        match self {
            Kind::RoutedV4 => to.extend_from_slice(&RoutingV4::bytes(record)),
            Kind::RoutedV6 => to.extend_from_slice(&RoutingV6::bytes(record)),
            Kind::DetailedV4 => {
                to.extend_from_slice(&RoutingV4::bytes(record));
                to.extend_from_slice(&Details::bytes(record));
                to.extend_from_slice(&BgpV4::bytes(record));
            }
            Kind::DetailedV6 => {
                to.extend_from_slice(&RoutingV6::bytes(record));
                to.extend_from_slice(&Details::bytes(record));
                to.extend_from_slice(&BgpV6::bytes(record));
            }
            _ => {}
        }
    }

    /// Writes the reverse fields after the reverse times.
    pub(super) fn write_reverse(reverse: &Record, to: &mut Vec<u8>) {
        to.extend_from_slice(&Reverse::bytes(reverse));
    }
}

/// Whether all addresses of a row are IPv4.
#[inline]
fn is_v4(record: &Record) -> bool {
    let is_v4_or_none = |address: Address| address.as_v4().is_some() || !address.is_some();
    record.source_address.as_v4().is_some()
        && record.destination_address.as_v4().is_some()
        && is_v4_or_none(record.next_hop)
        && is_v4_or_none(record.bgp_next_hop)
}

/// Whether a row has routing information.
#[inline]
fn is_routed(record: &Record) -> bool {
    let unreported = Record::default();
    record.ingress_interface | record.egress_interface | record.source_as | record.destination_as != 0
        || record.source_prefix_length | record.destination_prefix_length != 0
        || record.flow_direction != unreported.flow_direction
        || record.next_hop != unreported.next_hop
}

/// Whether `second` is the reverse of `first`, and all fields that a biflow template omits are mirrored.
#[inline]
pub(super) fn is_reverse(first: &Record, second: &Record) -> bool {
    let mirrored = Record {
        source_address: first.destination_address,
        destination_address: first.source_address,
        source_port: first.destination_port,
        destination_port: first.source_port,
        biflow_direction: 2,
        // Fields that are sent for each direction, or never.
        received_us: second.received_us,
        flow_start_us: second.flow_start_us,
        flow_end_us: second.flow_end_us,
        class_of_service: second.class_of_service,
        tcp_flags: second.tcp_flags,
        octets: second.octets,
        packets: second.packets,
        ..*first
    };
    first.biflow_direction == 1 && !is_routed(first) && !first.has_sparse_values() && *second == mirrored
}
