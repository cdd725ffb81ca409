//! The fields of a flow that a filter compares.

use std::net::IpAddr;

use thalweg_wire::{Bytes, FlowKey, Nanos};

/// A value of a flow that a filter can compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Field {
    /// The source address.
    SrcAddress,
    /// The destination address.
    DstAddress,
    /// The address of the next hop.
    NextHop,
    /// The address of the exporter.
    Exporter,
    /// The source port.
    SrcPort,
    /// The destination port.
    DstPort,
    /// The IP protocol.
    Protocol,
    /// All observed TCP flags (`tcpControlBits`).
    TcpFlags,
    /// Bytes.
    Bytes,
    /// Packets.
    Packets,
    /// Bytes from the source.
    InBytes,
    /// Packets from the source.
    InPackets,
    /// Bytes to the source.
    OutBytes,
    /// Packets to the source.
    OutPackets,
    /// Number of flows that this row combines.
    Flows,
    /// Whole milliseconds from the first to the last packet.
    Duration,
    /// Bits per second, rounded down.
    BitRate,
    /// Packets per second, rounded down.
    PacketRate,
    /// Bytes per packet, rounded down.
    PacketSize,
    /// 1 if the flow is a cheetah, 0 if not.
    Cheetah,
    /// The type of ICMP messages.
    IcmpType,
    /// The code of ICMP messages.
    IcmpCode,
    /// The type of service.
    Tos,
    /// The autonomous system of the source.
    SrcAs,
    /// The autonomous system of the destination.
    DstAs,
    /// The length of the source's prefix.
    SrcPrefixLength,
    /// The length of the destination's prefix.
    DstPrefixLength,
    /// The ingress interface.
    IngressInterface,
    /// The egress interface.
    EgressInterface,
    /// The VLAN.
    VlanId,
    /// 0 for ingress, 1 for egress.
    FlowDirection,
    /// The observation domain.
    ObservationDomainId,
    /// The observation point.
    ObservationPointId,
    /// The VLAN of outgoing packets.
    PostVlanId,
    /// The inner of two VLAN tags.
    CustomerVlanId,
    /// The source MAC address of incoming packets, as a number.
    SrcMac,
    /// The destination MAC address of incoming packets.
    DstMac,
    /// The source MAC address of outgoing packets.
    PostSrcMac,
    /// The destination MAC address of outgoing packets.
    PostDstMac,
    /// The smallest TTL.
    MinTtl,
    /// The largest TTL.
    MaxTtl,
    /// The forwarding status (RFC 7270).
    ForwardingStatus,
    /// The type of service of outgoing packets.
    PostTos,
    /// The MPLS label at a position, from 1.
    MplsLabel(u8),
    /// The experimental bits of the MPLS label at a position, from 1.
    MplsExperimental(u8),
    /// The MPLS label at the bottom of the stack.
    MplsBottom,
    /// The ingress VRF.
    IngressVrfId,
    /// The egress VRF.
    EgressVrfId,
    /// The address of the next hop in BGP.
    BgpNextHop,
    /// The next autonomous system.
    NextAs,
    /// The previous autonomous system.
    PreviousAs,
    /// The name of the exporter, a text.
    ExporterName,
    /// The name of the ingress interface, a text.
    IngressInterfaceName,
    /// The name of the egress interface, a text.
    EgressInterfaceName,
    /// The name of the ingress VRF, a text.
    IngressVrfName,
    /// The name of the egress VRF, a text.
    EgressVrfName,
    /// The country of the source, a text.
    SrcCountry,
    /// The country of the destination, a text.
    DstCountry,
}

impl Field {
    /// Returns a field of the same column: every entry of the stack of MPLS labels is in one.
    pub(super) fn of_column(self) -> Field {
        match self {
            Field::MplsLabel(_) | Field::MplsExperimental(_) => Field::MplsBottom,
            other => other,
        }
    }
}

impl Field {
    /// Whether the values of several flows add up, or are computed from sums: traffic, number, duration, rates.
    pub fn is_amount(self) -> bool {
        use Field::{BitRate, Bytes, Duration, Flows, InBytes, InPackets};
        use Field::{OutBytes, OutPackets, PacketRate, PacketSize, Packets};
        matches!(
            self,
            Bytes
                | Packets
                | InBytes
                | InPackets
                | OutBytes
                | OutPackets
                | Flows
                | Duration
                | BitRate
                | PacketRate
                | PacketSize
        )
    }
}

/// A flow that a filter can select.
///
/// All methods return `None` for a field that this kind of flow does not have.
pub trait FlowFields {
    /// Returns the value of a numeric field.
    fn number(&self, field: Field) -> Option<u64>;

    /// Returns the value of an address field.
    fn address(&self, field: Field) -> Option<IpAddr>;

    /// Returns whether the stack of MPLS labels has a label, at any position.
    fn has_mpls_label(&self, _label: u64) -> Option<bool> {
        None
    }

    /// Returns the value of a text field; empty if the flow has none.
    fn text(&self, _field: Field) -> Option<&str> {
        None
    }
}

/// Returns the value of a numeric field of a flow key.
pub fn key_number(key: &FlowKey, field: Field) -> Option<u64> {
    match field {
        Field::SrcPort => Some(key.src_port.into()),
        Field::DstPort => Some(key.dst_port.into()),
        Field::Protocol => Some(key.protocol.0.into()),
        _ => None,
    }
}

/// Returns the value of an address field of a flow key.
pub fn key_address(key: &FlowKey, field: Field) -> Option<IpAddr> {
    match field {
        Field::SrcAddress => Some(key.src()),
        Field::DstAddress => Some(key.dst()),
        _ => None,
    }
}

/// A flow that is part of a row: without amounts.
pub(super) struct PartOfRow<'a, F>(pub(super) &'a F);

impl<F: FlowFields> FlowFields for PartOfRow<'_, F> {
    fn number(&self, field: Field) -> Option<u64> {
        if field.is_amount() { None } else { self.0.number(field) }
    }

    fn address(&self, field: Field) -> Option<IpAddr> {
        self.0.address(field)
    }
}

/// Totals of a flow, from which other fields are computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Totals {
    /// Bytes.
    pub bytes: Bytes,
    /// Packets.
    pub packets: u64,
    /// From the first to the last packet.
    pub duration: Nanos,
}

impl Totals {
    /// Returns bytes, packets, duration or one of their ratios. As in nfdump, ratios are rounded down,
    /// and 0 if the divisor is 0.
    pub fn number(&self, field: Field) -> Option<u64> {
        match field {
            Field::Bytes => Some(self.bytes.0),
            Field::Packets => Some(self.packets),
            Field::Duration => Some(self.duration.0 / 1_000_000),
            Field::BitRate => Some(per_second(u128::from(self.bytes.0) * 8, self.duration)),
            Field::PacketRate => Some(per_second(self.packets.into(), self.duration)),
            Field::PacketSize => Some(self.bytes.0.checked_div(self.packets).unwrap_or(0)),
            _ => None,
        }
    }
}

fn per_second(amount: u128, duration: Nanos) -> u64 {
    let rate = (amount * 1_000_000_000).checked_div(duration.0.into()).unwrap_or(0);
    rate.try_into().unwrap_or(u64::MAX)
}
