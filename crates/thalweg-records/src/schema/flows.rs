//! The columns of `flows`: those of [`RecordBatch`], in its order.

use thalweg_wire::flow_export::RecordBatch;

use super::dataset::dataset;

dataset! {
    RecordBatch, "flows", version 3, earlier &[(2, 37)];
    received_us "received" Timestamp [collectionTimeMilliseconds 258] ""
        "Time at which the collector received the message. Files are partitioned by its hour." ("");
    exporter "exporter" Address [exporterIPv4Address 130, exporterIPv6Address 131] ""
        "Address of the exporter; with sFlow, of the agent." ("empty");
    observation_domain_id "observation_domain_id" U32 [observationDomainId 149] ""
        "Part of the exporter that observed the flow. NetFlow v9: source ID; NetFlow v5: engine type times 256 plus engine ID; sFlow: sub-agent ID." ("0");
    format "format" Format [exportProtocolVersion 214] ""
        "Export format: `netflow5`, `netflow9`, `ipfix`, `sflow5`; `metered` for flows metered locally." ("");
    sampling_interval "sampling_interval" U32 [samplingInterval 34, samplingPacketInterval 305, samplingPacketSpace 306] "packets"
        "One in this many packets was counted; 1: all. From the record, the exporter's options, or the collector's configuration." ("0");
    flow_start_us "flow_start" Timestamp
        [flowStartSysUpTime 22, flowStartSeconds 150, flowStartMilliseconds 152, flowStartMicroseconds 154, flowStartNanoseconds 156, flowStartDeltaMicroseconds 158] ""
        "Time of the first packet." ("1970-01-01");
    flow_end_us "flow_end" Timestamp
        [flowEndSysUpTime 21, flowEndSeconds 151, flowEndMilliseconds 153, flowEndMicroseconds 155, flowEndNanoseconds 157, flowEndDeltaMicroseconds 159] ""
        "Time of the last packet." ("1970-01-01");
    source_address "src" Address [sourceIPv4Address 8, sourceIPv6Address 27] ""
        "Source address." ("empty");
    destination_address "dst" Address [destinationIPv4Address 12, destinationIPv6Address 28] ""
        "Destination address." ("empty");
    source_port "src_port" U16 [sourceTransportPort 7] ""
        "Source port." ("0");
    destination_port "dst_port" U16 [destinationTransportPort 11] ""
        "Destination port." ("0");
    protocol "protocol" U8 [protocolIdentifier 4] ""
        "IP protocol number: 1 ICMP, 6 TCP, 17 UDP, ..." ("0");
    tcp_flags "tcp_flags" U16 [tcpControlBits 6] ""
        "Union of all TCP flags: 1 FIN, 2 SYN, 4 RST, 8 PSH, 16 ACK, 32 URG, 64 ECE, 128 CWR." ("0");
    class_of_service "tos" U8 [ipClassOfService 5] ""
        "Type of service (IPv4) or traffic class (IPv6)." ("0");
    icmp_type_code "icmp_type_code" U16 [icmpTypeCodeIPv4 32, icmpTypeCodeIPv6 139] ""
        "ICMP type times 256 plus code." ("0");
    octets "bytes" U64 [octetDeltaCount 1, octetTotalCount 85] "bytes"
        "Bytes including the IP header, as counted, not scaled by the sampling interval." ("0");
    packets "packets" U64 [packetDeltaCount 2, packetTotalCount 86] "packets"
        "Packets as counted, not scaled by the sampling interval." ("0");
    ingress_interface "ingress_interface" U32 [ingressInterface 10] ""
        "Input interface (SNMP `ifIndex`)." ("0");
    egress_interface "egress_interface" U32 [egressInterface 14] ""
        "Output interface (SNMP `ifIndex`)." ("0");
    source_as "src_as" U32 [bgpSourceAsNumber 16] ""
        "AS number of the source, or of the neighbour towards it, as the exporter is configured." ("0");
    destination_as "dst_as" U32 [bgpDestinationAsNumber 17] ""
        "AS number of the destination, or of the neighbour towards it." ("0");
    next_hop "next_hop" Address [ipNextHopIPv4Address 15, ipNextHopIPv6Address 62] ""
        "Address of the next hop." ("empty");
    source_prefix_length "src_prefix_length" U8 [sourceIPv4PrefixLength 9, sourceIPv6PrefixLength 29] "bits"
        "Prefix length of the route to the source." ("0");
    destination_prefix_length "dst_prefix_length" U8 [destinationIPv4PrefixLength 13, destinationIPv6PrefixLength 30] "bits"
        "Prefix length of the route to the destination." ("0");
    vlan_id "vlan_id" U16 [vlanId 58, dot1qVlanId 243] ""
        "VLAN of the incoming packets; of two tags, the outer." ("0");
    flow_direction "flow_direction" U8 [flowDirection 61] ""
        "Direction observed: 0 ingress, 1 egress." ("255");
    flow_end_reason "flow_end_reason" U8 [flowEndReason 136] ""
        "Why the record ended: 1 idle timeout, 2 active timeout, 3 end of the flow, 4 forced, 5 lack of resources." ("0");
    biflow_direction "biflow_direction" U8 [biflowDirection 239] ""
        "Direction of a row of a bidirectional flow (RFC 5103, two rows): 1 from the initiator, 2 reverse." ("0");
    inner_source_address "inner_src" Address [] ""
        "Source address of the packet in a tunnel, if the exporter sends both headers: as the second occurrence of an element, or in a sampled packet. `src` and the columns after it are of the tunnel." ("empty");
    inner_destination_address "inner_dst" Address [] ""
        "Destination address of the packet in a tunnel." ("empty");
    inner_source_port "inner_src_port" U16 [] ""
        "Source port of the packet in a tunnel." ("0");
    inner_destination_port "inner_dst_port" U16 [] ""
        "Destination port of the packet in a tunnel." ("0");
    inner_protocol "inner_protocol" U8 [] ""
        "IP protocol number of the packet in a tunnel." ("0");
    inner_tcp_flags "inner_tcp_flags" U16 [] ""
        "TCP flags of the packet in a tunnel." ("0");
    inner_class_of_service "inner_tos" U8 [] ""
        "Type of service or traffic class of the packet in a tunnel; not read from sampled packets." ("0");
    inner_source_prefix_length "inner_src_prefix_length" U8 [] "bits"
        "Prefix length of the route to the source of the packet in a tunnel." ("0");
    inner_destination_prefix_length "inner_dst_prefix_length" U8 [] "bits"
        "Prefix length of the route to the destination of the packet in a tunnel." ("0");
    source_mac "src_mac" Mac [sourceMacAddress 56] ""
        "Source MAC address of the incoming packets, such as `02:00:00:00:00:01`. Since version 3 of the columns, as all that follow." ("empty");
    destination_mac "dst_mac" Mac [destinationMacAddress 80] ""
        "Destination MAC address of the incoming packets." ("empty");
    post_source_mac "post_src_mac" Mac [postSourceMacAddress 81] ""
        "Source MAC address of the outgoing packets." ("empty");
    post_destination_mac "post_dst_mac" Mac [postDestinationMacAddress 57] ""
        "Destination MAC address of the outgoing packets." ("empty");
    post_vlan_id "post_vlan_id" U16 [postVlanId 59, postDot1qVlanId 254] ""
        "VLAN of the outgoing packets." ("0");
    customer_vlan_id "customer_vlan_id" U16 [dot1qCustomerVlanId 245] ""
        "Inner VLAN of incoming packets with two tags (IEEE 802.1ad)." ("0");
    minimum_ttl "min_ttl" U8 [minimumTTL 52, ipTTL 192] ""
        "Smallest TTL or hop limit of the packets." ("0");
    maximum_ttl "max_ttl" U8 [maximumTTL 53, ipTTL 192] ""
        "Largest TTL or hop limit of the packets." ("0");
    forwarding_status "forwarding_status" U8 [forwardingStatus 89] ""
        "What became of the packets (RFC 7270): 64 to 127 forwarded, 128 to 191 dropped, 192 to 255 consumed; the lower six bits are the reason." ("0");
    post_class_of_service "post_tos" U8 [postIpClassOfService 55] ""
        "Type of service or traffic class of the outgoing packets." ("0");
    mpls_labels "mpls_labels" Labels [mplsTopLabelStackSection 70, mplsLabelStackSection10 79] ""
        "Top ten MPLS labels, top first, each as label, experimental bits, and whether it is the bottom of the stack: `16-0-0 100-5-1`." ("empty");
    ingress_vrf_id "ingress_vrf_id" U32 [ingressVRFID 234] ""
        "Number of the VRF of the incoming packets." ("0");
    egress_vrf_id "egress_vrf_id" U32 [egressVRFID 235] ""
        "Number of the VRF of the outgoing packets." ("0");
    bgp_next_hop "bgp_next_hop" Address [bgpNextHopIPv4Address 18, bgpNextHopIPv6Address 63] ""
        "Address of the next hop in BGP." ("empty");
    next_as "next_as" U32 [bgpNextAdjacentAsNumber 128] ""
        "AS number of the next AS towards the destination." ("0");
    previous_as "previous_as" U32 [bgpPrevAdjacentAsNumber 129] ""
        "AS number of the previous AS, towards the source." ("0");
    observation_point_id "observation_point_id" U64 [observationPointId 138] ""
        "Place in the exporter that observed the packets." ("0");
    exporter_name "exporter_name" Name [observationDomainName 300] ""
        "Name of the exporter, from its options records." ("empty");
    ingress_interface_name "ingress_interface_name" Name [interfaceName 82, interfaceDescription 83] ""
        "Name of the input interface, from options records: as known when the record arrived." ("empty");
    egress_interface_name "egress_interface_name" Name [interfaceName 82, interfaceDescription 83] ""
        "Name of the output interface." ("empty");
    ingress_vrf_name "ingress_vrf_name" Name [VRFname 236] ""
        "Name of the VRF of the incoming packets, from options records." ("empty");
    egress_vrf_name "egress_vrf_name" Name [VRFname 236] ""
        "Name of the VRF of the outgoing packets." ("empty");
    source_country "src_country" Name [] ""
        "Country of the source, two letters of ISO 3166-1, from a database in MMDB format." ("empty");
    destination_country "dst_country" Name [] ""
        "Country of the destination." ("empty");
}
