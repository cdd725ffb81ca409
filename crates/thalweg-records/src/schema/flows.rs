//! The columns of `flows`: those of [`RecordBatch`], in its order.

use thalweg_wire::flow_export::RecordBatch;

use super::dataset::dataset;

dataset! {
    RecordBatch, "flows", version 1;
    received_us "received" Timestamp [collectionTimeMilliseconds 258] ""
        "When the message arrived at the collector, by its clock. Files are in the partition of this hour." ("");
    exporter "exporter" Address [exporterIPv4Address 130, exporterIPv6Address 131] ""
        "Who sent the message; with sFlow the agent." ("empty");
    observation_domain_id "observation_domain_id" U32 [observationDomainId 149] ""
        "The part of the exporter that saw the flow. NetFlow v9: source id; NetFlow v5: engine type times 256 plus engine id; sFlow: sub-agent id." ("0");
    format "format" Format [exportProtocolVersion 214] ""
        "What the record came in: `netflow5`, `netflow9`, `ipfix`, `sflow5`; `metered` if it was metered here." ("");
    sampling_interval "sampling_interval" U32 [samplingInterval 34, samplingPacketInterval 305, samplingPacketSpace 306] "packets"
        "One packet in so many was counted; 1: all of them. From the record, the exporter's options or the collector's configuration." ("0");
    flow_start_us "flow_start" Timestamp
        [flowStartSysUpTime 22, flowStartSeconds 150, flowStartMilliseconds 152, flowStartMicroseconds 154, flowStartNanoseconds 156, flowStartDeltaMicroseconds 158] ""
        "First packet of the record." ("1970-01-01");
    flow_end_us "flow_end" Timestamp
        [flowEndSysUpTime 21, flowEndSeconds 151, flowEndMilliseconds 153, flowEndMicroseconds 155, flowEndNanoseconds 157, flowEndDeltaMicroseconds 159] ""
        "Last packet of the record." ("1970-01-01");
    source_address "src" Address [sourceIPv4Address 8, sourceIPv6Address 27] ""
        "Who sent the packets." ("empty");
    destination_address "dst" Address [destinationIPv4Address 12, destinationIPv6Address 28] ""
        "Whom they were for." ("empty");
    source_port "src_port" U16 [sourceTransportPort 7] ""
        "Port at the source." ("0");
    destination_port "dst_port" U16 [destinationTransportPort 11] ""
        "Port at the destination." ("0");
    protocol "protocol" U8 [protocolIdentifier 4] ""
        "Protocol above IP: 1 ICMP, 6 TCP, 17 UDP, ..." ("0");
    tcp_flags "tcp_flags" U16 [tcpControlBits 6] ""
        "All TCP flags seen, as bits: 1 FIN, 2 SYN, 4 RST, 8 PSH, 16 ACK, 32 URG, 64 ECE, 128 CWR." ("0");
    class_of_service "tos" U8 [ipClassOfService 5] ""
        "Type of service or traffic class of IP." ("0");
    icmp_type_code "icmp_type_code" U16 [icmpTypeCodeIPv4 32, icmpTypeCodeIPv6 139] ""
        "ICMP type times 256 plus code." ("0");
    octets "bytes" U64 [octetDeltaCount 1, octetTotalCount 85] "bytes"
        "Bytes of the IP layer as counted, not scaled by sampling." ("0");
    packets "packets" U64 [packetDeltaCount 2, packetTotalCount 86] "packets"
        "Packets as counted, not scaled by sampling." ("0");
    ingress_interface "ingress_interface" U32 [ingressInterface 10] ""
        "Interface that the packets came in by, as SNMP numbers it." ("0");
    egress_interface "egress_interface" U32 [egressInterface 14] ""
        "Interface that they left by." ("0");
    source_as "src_as" U32 [bgpSourceAsNumber 16] ""
        "Autonomous system of the source, or the neighbour towards it: as the exporter is set." ("0");
    destination_as "dst_as" U32 [bgpDestinationAsNumber 17] ""
        "Autonomous system of the destination, or the neighbour towards it." ("0");
    next_hop "next_hop" Address [ipNextHopIPv4Address 15, ipNextHopIPv6Address 62] ""
        "Router that the packets were sent on to." ("empty");
    source_prefix_length "src_prefix_length" U8 [sourceIPv4PrefixLength 9, sourceIPv6PrefixLength 29] "bits"
        "Length of the route's prefix that the source is in." ("0");
    destination_prefix_length "dst_prefix_length" U8 [destinationIPv4PrefixLength 13, destinationIPv6PrefixLength 30] "bits"
        "Length of the route's prefix that the destination is in." ("0");
    vlan_id "vlan_id" U16 [vlanId 58] ""
        "VLAN that the packets came in on." ("0");
    flow_direction "flow_direction" U8 [flowDirection 61] ""
        "Where the exporter counted: 0 as packets came in, 1 as they left." ("255");
    flow_end_reason "flow_end_reason" U8 [flowEndReason 136] ""
        "Why the record ended: 1 idle timeout, 2 active timeout, 3 end of the flow, 4 forced, 5 lack of resources." ("0");
    biflow_direction "biflow_direction" U8 [biflowDirection 239] ""
        "Of a bidirectional flow (RFC 5103, two rows): 1 as the initiator sent it, 2 the reverse." ("0");
}
