//! Flow records in columns: one flat vector per field.
//!
//! Columns have no gaps. A value that the exporter did not report is zero where zero has no other meaning (ports of
//! protocols without ports, AS 0 which RFC 7607 reserves, interface 0, end reason 0), [`Address::NONE`] for addresses,
//! and [`UNKNOWN_DIRECTION`] for the direction. Columns that few exporters send are [`Sparse`](super::Sparse). A bidirectional flow (RFC 5103) is two records, one per direction.

use super::columns::columns;
use super::{Address, LabelStack, Mac, Name};

/// An unreported direction: 0 is ingress, 1 is egress.
pub const UNKNOWN_DIRECTION: u8 = 255;

/// The export format of a record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Format {
    /// Metered locally, not received.
    #[default]
    Metered,
    /// NetFlow version 5.
    NetFlow5,
    /// NetFlow version 9 (RFC 3954).
    NetFlow9,
    /// IPFIX (RFC 7011).
    Ipfix,
    /// sFlow version 5.
    Sflow5,
}

impl Format {
    /// All formats by number.
    pub const ALL: [Format; 5] =
        [Format::Metered, Format::NetFlow5, Format::NetFlow9, Format::Ipfix, Format::Sflow5];

    /// The name in files and reports.
    pub const fn name(self) -> &'static str {
        match self {
            Format::Metered => "metered",
            Format::NetFlow5 => "netflow5",
            Format::NetFlow9 => "netflow9",
            Format::Ipfix => "ipfix",
            Format::Sflow5 => "sflow5",
        }
    }
}

columns! {
    /// A flow record.
    Record in
    /// Flow records in columns of equal length.
    RecordBatch;

    /// The time when the message was received, in microseconds since 1970 (UTC).
    received_us: i64 = 0,
    /// The sender of the message (`exporterIPv4Address` 130, `exporterIPv6Address` 131); sFlow: the agent.
    exporter: Address = Address::NONE,
    /// IPFIX `observationDomainId` (149), NetFlow v9 source id, NetFlow v5 engine type times 256 plus engine id,
    /// sFlow sub-agent id.
    observation_domain_id: u32 = 0,
    /// The export format.
    format: Format = Format::Metered,
    /// The sampling interval N of 1-in-N sampling (`samplingInterval` 34, `samplingPacketInterval` 305 and 306); 1: no
    /// sampling; 0: unknown.
    sampling_interval: u32 = 0,
    /// The time of the first packet, in microseconds since 1970 (`flowStartMicroseconds` 154 and similar elements).
    flow_start_us: i64 = 0,
    /// The time of the last packet, in microseconds since 1970 (`flowEndMicroseconds` 155 and similar elements).
    flow_end_us: i64 = 0,
    /// `sourceIPv4Address` (8), `sourceIPv6Address` (27).
    source_address: Address = Address::NONE,
    /// `destinationIPv4Address` (12), `destinationIPv6Address` (28).
    destination_address: Address = Address::NONE,
    /// `sourceTransportPort` (7).
    source_port: u16 = 0,
    /// `destinationTransportPort` (11).
    destination_port: u16 = 0,
    /// `protocolIdentifier` (4).
    protocol: u8 = 0,
    /// `tcpControlBits` (6): all flags seen.
    tcp_flags: u16 = 0,
    /// `ipClassOfService` (5).
    class_of_service: u8 = 0,
    /// `icmpTypeCodeIPv4` (32), `icmpTypeCodeIPv6` (139): type times 256 plus code.
    icmp_type_code: u16 = 0,
    /// Bytes of the IP layer as counted, not scaled by sampling (`octetDeltaCount` 1, else `octetTotalCount` 85).
    octets: u64 = 0,
    /// Packets as counted, not scaled by sampling (`packetDeltaCount` 2, else `packetTotalCount` 86).
    packets: u64 = 0,
    /// `ingressInterface` (10).
    ingress_interface: u32 = 0,
    /// `egressInterface` (14).
    egress_interface: u32 = 0,
    /// `bgpSourceAsNumber` (16).
    source_as: u32 = 0,
    /// `bgpDestinationAsNumber` (17).
    destination_as: u32 = 0,
    /// `ipNextHopIPv4Address` (15), `ipNextHopIPv6Address` (62).
    next_hop: Address = Address::NONE,
    /// `sourceIPv4PrefixLength` (9), `sourceIPv6PrefixLength` (29).
    source_prefix_length: u8 = 0,
    /// `destinationIPv4PrefixLength` (13), `destinationIPv6PrefixLength` (30).
    destination_prefix_length: u8 = 0,
    /// `vlanId` (58).
    vlan_id: u16 = 0,
    /// `flowDirection` (61): 0 ingress, 1 egress, [`UNKNOWN_DIRECTION`].
    flow_direction: u8 = UNKNOWN_DIRECTION,
    /// `flowEndReason` (136): 1 idle, 2 active timeout, 3 end of flow, 4 forced, 5 lack of resources; 0: unknown.
    flow_end_reason: u8 = 0,
    /// `biflowDirection` (239): 1 initiator, 2 reverse; 0: unknown, or not part of a biflow.
    biflow_direction: u8 = 0,
    /// The source of the packet in a tunnel, if the record describes both headers: the second occurrence of an element, or
    /// the inner header of a sampled packet. [`RecordBatch::source_address`] and the others are of the outer header.
    inner_source_address: Address = Address::NONE,
    /// The destination of the packet in a tunnel.
    inner_destination_address: Address = Address::NONE,
    /// The source port of the packet in a tunnel.
    inner_source_port: u16 = 0,
    /// The destination port of the packet in a tunnel.
    inner_destination_port: u16 = 0,
    /// The protocol of the packet in a tunnel.
    inner_protocol: u8 = 0,
    /// The TCP flags of the packet in a tunnel.
    inner_tcp_flags: u16 = 0,
    /// The class of service of the packet in a tunnel; 0 for sampled packets.
    inner_class_of_service: u8 = 0,
    /// The length of the inner source's prefix.
    inner_source_prefix_length: u8 = 0,
    /// The length of the inner destination's prefix.
    inner_destination_prefix_length: u8 = 0,

    ;
    /// `sourceMacAddress` (56).
    source_mac: Mac,
    /// `destinationMacAddress` (80).
    destination_mac: Mac,
    /// `postSourceMacAddress` (81): of the packet that leaves.
    post_source_mac: Mac,
    /// `postDestinationMacAddress` (57).
    post_destination_mac: Mac,
    /// `postVlanId` (59), `postDot1qVlanId` (254): of the packet that leaves.
    post_vlan_id: u16,
    /// `dot1qCustomerVlanId` (245): the inner of two tags.
    customer_vlan_id: u16,
    /// `minimumTTL` (52), `ipTTL` (192): also the hop limit of IPv6.
    minimum_ttl: u8,
    /// `maximumTTL` (53), `ipTTL` (192).
    maximum_ttl: u8,
    /// `forwardingStatus` (89, RFC 7270): two bits of status, six of the reason.
    forwarding_status: u8,
    /// `postIpClassOfService` (55): of the packet that leaves.
    post_class_of_service: u8,
    /// `mplsTopLabelStackSection` (70) to `mplsLabelStackSection10` (79).
    mpls_labels: LabelStack,
    /// `ingressVRFID` (234).
    ingress_vrf_id: u32,
    /// `egressVRFID` (235).
    egress_vrf_id: u32,
    /// `bgpNextHopIPv4Address` (18), `bgpNextHopIPv6Address` (63).
    bgp_next_hop: Address,
    /// `bgpNextAdjacentAsNumber` (128): the next AS towards the destination.
    next_as: u32,
    /// `bgpPrevAdjacentAsNumber` (129): the previous AS, towards the source.
    previous_as: u32,
    /// `observationPointId` (138).
    observation_point_id: u64,
    /// The name of the exporter (`observationDomainName` 300 in options records).
    exporter_name: Name,
    /// The name of the ingress interface (`interfaceName` 82, else `interfaceDescription` 83 in options records).
    ingress_interface_name: Name,
    /// The name of the egress interface.
    egress_interface_name: Name,
    /// The name of the ingress VRF (`VRFname` 236 in options records).
    ingress_vrf_name: Name,
    /// The name of the egress VRF.
    egress_vrf_name: Name,
    /// The country of the source, two letters of ISO 3166-1; from a local database.
    source_country: Name,
    /// The country of the destination.
    destination_country: Name,
}

impl Record {
    /// Whether a tunnel carried the packets, so that the `inner_` columns have a value.
    #[inline]
    pub fn has_inner_packet(&self) -> bool {
        self.inner_source_address.is_some() || self.inner_destination_address.is_some()
    }
}

impl Record {
    /// Whether a sparse column has a value, except names and countries, which collectors derive.
    pub fn has_sparse_values(&self) -> bool {
        self.source_mac.is_some()
            || self.destination_mac.is_some()
            || self.post_source_mac.is_some()
            || self.post_destination_mac.is_some()
            || self.post_vlan_id | self.customer_vlan_id != 0
            || self.minimum_ttl | self.maximum_ttl | self.forwarding_status | self.post_class_of_service != 0
            || self.ingress_vrf_id | self.egress_vrf_id | self.next_as | self.previous_as != 0
            || self.observation_point_id != 0
            || self.bgp_next_hop.is_some()
            || self.mpls_labels.is_some()
    }
}

impl RecordBatch {
    /// Resizes the columns of the packet in a tunnel to `rows` rows; new rows have none.
    pub(super) fn resize_inner(&mut self, rows: usize) {
        self.inner_source_address.resize(rows, Address::NONE);
        self.inner_destination_address.resize(rows, Address::NONE);
        self.inner_source_port.resize(rows, 0);
        self.inner_destination_port.resize(rows, 0);
        self.inner_protocol.resize(rows, 0);
        self.inner_tcp_flags.resize(rows, 0);
        self.inner_class_of_service.resize(rows, 0);
        self.inner_source_prefix_length.resize(rows, 0);
        self.inner_destination_prefix_length.resize(rows, 0);
    }

    /// Replaces the outer headers of rows from `first` by the inner ones, where there are any.
    pub(super) fn decapsulate(&mut self, first: usize) {
        for row in first..self.len() {
            if !self.inner_source_address[row].is_some() && !self.inner_destination_address[row].is_some() {
                continue;
            }
            self.source_address[row] = std::mem::take(&mut self.inner_source_address[row]);
            self.destination_address[row] = std::mem::take(&mut self.inner_destination_address[row]);
            self.source_port[row] = std::mem::take(&mut self.inner_source_port[row]);
            self.destination_port[row] = std::mem::take(&mut self.inner_destination_port[row]);
            self.protocol[row] = std::mem::take(&mut self.inner_protocol[row]);
            self.tcp_flags[row] = std::mem::take(&mut self.inner_tcp_flags[row]);
            self.class_of_service[row] = std::mem::take(&mut self.inner_class_of_service[row]);
            self.source_prefix_length[row] = std::mem::take(&mut self.inner_source_prefix_length[row]);
            self.destination_prefix_length[row] =
                std::mem::take(&mut self.inner_destination_prefix_length[row]);
            self.icmp_type_code[row] = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_with_and_without_sparse_values_join() {
        let plain = Record { octets: 1, ..Record::default() };
        let tagged = Record { post_vlan_id: 7, source_mac: Mac([2, 0, 0, 0, 0, 1]), ..plain };
        let mut batch = RecordBatch::default();
        batch.push(&plain);
        assert_eq!(batch.post_vlan_id.values(), None);
        batch.push(&tagged);
        let mut both = batch.clone();
        both.resize(3);
        both.append(&batch);
        both.check_invariants();
        let rows: Vec<Record> = (0..both.len()).map(|row| both.record(row)).collect();
        assert_eq!(rows, [plain, tagged, Record::default(), plain, tagged]);
    }

    #[test]
    fn pushed_rows_are_returned_and_new_rows_are_default() {
        let record = Record { octets: 1500, source_port: 443, flow_direction: 1, ..Record::default() };
        let mut batch = RecordBatch::with_capacity(2);
        batch.push(&record);
        batch.resize(2);
        batch.check_invariants();
        assert_eq!(batch.record(0), record);
        assert_eq!(batch.record(1), Record::default());
        batch.truncate(1);
        let mut both = batch.clone();
        both.append(&batch);
        assert_eq!((both.len(), both.record(1)), (2, record));
    }
}
