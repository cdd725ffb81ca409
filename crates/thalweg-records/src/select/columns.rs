//! The columns that a flow filter compares, and the fields of a record for it.

use std::net::{IpAddr, Ipv6Addr};

use thalweg_measure::filter::{Field, FlowFields, FlowFilter, Totals};
use thalweg_wire::flow_export::{Address, LabelStack, Mac, Name};
use thalweg_wire::{Bytes, Nanos};

use crate::read::{BLOCK, Column, ReadError, RowGroup, field};

/// Declares the columns, each with the fields that are computed from it.
macro_rules! columns {
    ($($name:ident: $type:ty = $column:ident for $($field:ident)|+;)*) => {
        /// The columns of a row group that a filter uses, at a read position.
        pub(super) struct FilterColumns {
            $($name: Option<Column<$type>>,)*
        }

        impl FilterColumns {
            /// Opens the columns that `filter` uses.
            pub(super) fn open(group: &RowGroup<'_>, filter: &FlowFilter) -> Result<FilterColumns, ReadError> {
                Ok(FilterColumns {
                    $($name: match [$(Field::$field),+].into_iter().any(|field| filter.uses(field)) {
                        true => Some(group.column(&field::$column)?),
                        false => None,
                    },)*
                })
            }

            /// Reads the next rows.
            pub(super) fn read(&mut self, block: &mut FilterBlock, rows: usize) -> Result<(), ReadError> {
                $(if let Some(column) = &mut self.$name {
                    column.read(&mut block.$name[..rows])?;
                })*
                Ok(())
            }
        }

        /// Values of these columns.
        pub(super) struct FilterBlock {
            $($name: Box<[$type]>,)*
        }

        impl FilterBlock {
            pub(super) fn new() -> FilterBlock {
                FilterBlock { $($name: vec![<$type>::default(); BLOCK].into(),)* }
            }
        }
    };
}

columns! {
    exporter: Address = EXPORTER for Exporter;
    observation_domain_id: i64 = OBSERVATION_DOMAIN_ID for ObservationDomainId;
    sampling_interval: i64 = SAMPLING_INTERVAL
        for Bytes | Packets | InBytes | InPackets | BitRate | PacketRate | PacketSize;
    flow_start: i64 = FLOW_START for Duration | BitRate | PacketRate;
    flow_end: i64 = FLOW_END for Duration | BitRate | PacketRate;
    source_address: Address = SRC for SrcAddress;
    destination_address: Address = DST for DstAddress;
    source_port: i32 = SRC_PORT for SrcPort;
    destination_port: i32 = DST_PORT for DstPort;
    protocol: i32 = PROTOCOL for Protocol;
    tcp_flags: i32 = TCP_FLAGS for TcpFlags;
    tos: i32 = TOS for Tos;
    icmp_type_code: i32 = ICMP_TYPE_CODE for IcmpType | IcmpCode;
    octets: i64 = BYTES for Bytes | InBytes | BitRate | PacketSize;
    packets: i64 = PACKETS for Packets | InPackets | PacketRate | PacketSize;
    ingress_interface: i64 = INGRESS_INTERFACE for IngressInterface;
    egress_interface: i64 = EGRESS_INTERFACE for EgressInterface;
    source_as: i64 = SRC_AS for SrcAs;
    destination_as: i64 = DST_AS for DstAs;
    next_hop: Address = NEXT_HOP for NextHop;
    source_prefix_length: i32 = SRC_PREFIX_LENGTH for SrcPrefixLength;
    destination_prefix_length: i32 = DST_PREFIX_LENGTH for DstPrefixLength;
    vlan_id: i32 = VLAN_ID for VlanId;
    post_vlan_id: i32 = POST_VLAN_ID for PostVlanId;
    customer_vlan_id: i32 = CUSTOMER_VLAN_ID for CustomerVlanId;
    source_mac: Mac = SRC_MAC for SrcMac;
    destination_mac: Mac = DST_MAC for DstMac;
    post_source_mac: Mac = POST_SRC_MAC for PostSrcMac;
    post_destination_mac: Mac = POST_DST_MAC for PostDstMac;
    minimum_ttl: i32 = MIN_TTL for MinTtl;
    maximum_ttl: i32 = MAX_TTL for MaxTtl;
    forwarding_status: i32 = FORWARDING_STATUS for ForwardingStatus;
    post_tos: i32 = POST_TOS for PostTos;
    mpls_labels: LabelStack = MPLS_LABELS for MplsBottom;
    ingress_vrf_id: i64 = INGRESS_VRF_ID for IngressVrfId;
    egress_vrf_id: i64 = EGRESS_VRF_ID for EgressVrfId;
    bgp_next_hop: Address = BGP_NEXT_HOP for BgpNextHop;
    next_as: i64 = NEXT_AS for NextAs;
    previous_as: i64 = PREVIOUS_AS for PreviousAs;
    observation_point_id: i64 = OBSERVATION_POINT_ID for ObservationPointId;
    exporter_name: Name = EXPORTER_NAME for ExporterName;
    ingress_interface_name: Name = INGRESS_INTERFACE_NAME for IngressInterfaceName;
    egress_interface_name: Name = EGRESS_INTERFACE_NAME for EgressInterfaceName;
    ingress_vrf_name: Name = INGRESS_VRF_NAME for IngressVrfName;
    egress_vrf_name: Name = EGRESS_VRF_NAME for EgressVrfName;
    source_country: Name = SRC_COUNTRY for SrcCountry;
    destination_country: Name = DST_COUNTRY for DstCountry;
    flow_direction: i32 = FLOW_DIRECTION for FlowDirection;
}

/// A record of a block, with the fields of [`thalweg_measure::filter::RECORDS`].
pub(super) struct FilterRow<'a> {
    pub(super) block: &'a FilterBlock,
    pub(super) row: usize,
}

impl FilterRow<'_> {
    /// Returns a count, scaled by the sampling interval.
    fn scaled(&self, count: i64) -> u64 {
        let interval = self.block.sampling_interval[self.row].max(1);
        count.checked_mul(interval).unwrap_or(i64::MAX) as u64
    }

    fn totals(&self) -> Totals {
        let FilterRow { block, row } = *self;
        let duration_us = (block.flow_end[row] - block.flow_start[row]).max(0) as u64;
        Totals {
            bytes: Bytes(self.scaled(block.octets[row])),
            packets: self.scaled(block.packets[row]),
            duration: Nanos(duration_us.saturating_mul(1000)),
        }
    }
}

impl FlowFields for FilterRow<'_> {
    fn number(&self, field: Field) -> Option<u64> {
        let FilterRow { block, row } = *self;
        Some(match field {
            Field::SrcPort => block.source_port[row] as u64,
            Field::DstPort => block.destination_port[row] as u64,
            Field::Protocol => block.protocol[row] as u64,
            Field::TcpFlags => block.tcp_flags[row] as u64,
            Field::InBytes => self.totals().bytes.0,
            Field::InPackets => self.totals().packets,
            Field::Flows => 1,
            Field::IcmpType => block.icmp_type_code[row] as u64 / 256,
            Field::IcmpCode => block.icmp_type_code[row] as u64 % 256,
            Field::Tos => block.tos[row] as u64,
            Field::SrcAs => block.source_as[row] as u64,
            Field::DstAs => block.destination_as[row] as u64,
            Field::SrcPrefixLength => block.source_prefix_length[row] as u64,
            Field::DstPrefixLength => block.destination_prefix_length[row] as u64,
            Field::IngressInterface => block.ingress_interface[row] as u64,
            Field::EgressInterface => block.egress_interface[row] as u64,
            Field::VlanId => block.vlan_id[row] as u64,
            Field::FlowDirection => block.flow_direction[row] as u64,
            Field::ObservationDomainId => block.observation_domain_id[row] as u64,
            Field::ObservationPointId => block.observation_point_id[row] as u64,
            Field::PostVlanId => block.post_vlan_id[row] as u64,
            Field::CustomerVlanId => block.customer_vlan_id[row] as u64,
            Field::SrcMac => block.source_mac[row].number(),
            Field::DstMac => block.destination_mac[row].number(),
            Field::PostSrcMac => block.post_source_mac[row].number(),
            Field::PostDstMac => block.post_destination_mac[row].number(),
            Field::MinTtl => block.minimum_ttl[row] as u64,
            Field::MaxTtl => block.maximum_ttl[row] as u64,
            Field::ForwardingStatus => block.forwarding_status[row] as u64,
            Field::PostTos => block.post_tos[row] as u64,
            Field::MplsLabel(position) => {
                block.mpls_labels[row].entry(usize::from(position).wrapping_sub(1)).label.into()
            }
            Field::MplsExperimental(position) => {
                block.mpls_labels[row].entry(usize::from(position).wrapping_sub(1)).experimental.into()
            }
            Field::MplsBottom => block.mpls_labels[row].bottom().into(),
            Field::IngressVrfId => block.ingress_vrf_id[row] as u64,
            Field::EgressVrfId => block.egress_vrf_id[row] as u64,
            Field::NextAs => block.next_as[row] as u64,
            Field::PreviousAs => block.previous_as[row] as u64,
            _ => return self.totals().number(field),
        })
    }

    fn address(&self, field: Field) -> Option<IpAddr> {
        let FilterRow { block, row } = *self;
        let address = match field {
            Field::SrcAddress => block.source_address[row],
            Field::DstAddress => block.destination_address[row],
            Field::NextHop => block.next_hop[row],
            Field::BgpNextHop => block.bgp_next_hop[row],
            Field::Exporter => block.exporter[row],
            _ => return None,
        };
        // No address is that of all ones, which no host has. The filter has no other value that differs from all addresses.
        Some(address.ip().unwrap_or_else(|| Ipv6Addr::from(address.0).into()))
    }

    fn has_mpls_label(&self, label: u64) -> Option<bool> {
        Some(self.block.mpls_labels[self.row].has(label as u32))
    }

    fn text(&self, field: Field) -> Option<&str> {
        let FilterRow { block, row } = *self;
        let name = match field {
            Field::ExporterName => block.exporter_name[row],
            Field::IngressInterfaceName => block.ingress_interface_name[row],
            Field::EgressInterfaceName => block.egress_interface_name[row],
            Field::IngressVrfName => block.ingress_vrf_name[row],
            Field::EgressVrfName => block.egress_vrf_name[row],
            Field::SrcCountry => block.source_country[row],
            Field::DstCountry => block.destination_country[row],
            _ => return None,
        };
        Some(name.text())
    }
}
