//! The columns that a flow filter compares, and the fields of a record for it.

use std::net::{IpAddr, Ipv6Addr};

use thalweg_measure::filter::{Field, FlowFields, FlowFilter, Totals};
use thalweg_wire::flow_export::Address;
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
            _ => return self.totals().number(field),
        })
    }

    fn address(&self, field: Field) -> Option<IpAddr> {
        let FilterRow { block, row } = *self;
        let address = match field {
            Field::SrcAddress => block.source_address[row],
            Field::DstAddress => block.destination_address[row],
            Field::NextHop => block.next_hop[row],
            Field::Exporter => block.exporter[row],
            _ => return None,
        };
        // No address is that of all ones, which no host has. The filter has no other value that differs from all addresses.
        Some(address.ip().unwrap_or_else(|| Ipv6Addr::from(address.0).into()))
    }
}
