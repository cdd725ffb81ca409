//! The columns of `interface-counters`: those of [`CounterBatch`], in its order.

use thalweg_wire::flow_export::CounterBatch;

use super::dataset::dataset;

dataset! {
    CounterBatch, "interface-counters", version 1;
    received_us "received" Timestamp [] ""
        "Time at which the counters were received. Files are partitioned by its hour." ("");
    exporter "exporter" Address [] "" "Address of the sFlow agent, or of the SNMP agent of a `[[poll]]`." ("empty");
    observation_domain_id "observation_domain_id" U32 [] "" "Sub-agent ID." ("0");
    interface "interface" U32 [] "" "`ifIndex`." ("");
    interface_type "interface_type" U32 [] "" "`ifType`: 6 is Ethernet." ("0");
    speed_bps "speed_bps" U64 [] "bit/s" "`ifSpeed`." ("");
    duplex "duplex" U8 [] "" "1 full duplex, 2 half duplex, 3 receives only, 4 sends only." ("0");
    administratively_up "administratively_up" U8 [] "" "`ifAdminStatus`: 1 up, 0 down." ("");
    operationally_up "operationally_up" U8 [] "" "`ifOperStatus`: 1 up, 0 down." ("");
    promiscuous "promiscuous" U8 [] "" "1 promiscuous mode on, 2 off." ("0");
    in_octets "in_bytes" U64 [] "bytes" "`ifHCInOctets`." ("2^63 - 1");
    in_unicast_packets "in_unicast_packets" U32 [] "packets" "`ifInUcastPkts`; of a `[[poll]]`, all packets." ("2^32 - 1");
    in_multicast_packets "in_multicast_packets" U32 [] "packets" "`ifInMulticastPkts`." ("2^32 - 1");
    in_broadcast_packets "in_broadcast_packets" U32 [] "packets" "`ifInBroadcastPkts`." ("2^32 - 1");
    in_discards "in_discards" U32 [] "packets" "`ifInDiscards`." ("2^32 - 1");
    in_errors "in_errors" U32 [] "packets" "`ifInErrors`." ("2^32 - 1");
    in_unknown_protocols "in_unknown_protocols" U32 [] "packets" "`ifInUnknownProtos`." ("2^32 - 1");
    out_octets "out_bytes" U64 [] "bytes" "`ifHCOutOctets`." ("2^63 - 1");
    out_unicast_packets "out_unicast_packets" U32 [] "packets" "`ifOutUcastPkts`; of a `[[poll]]`, all packets." ("2^32 - 1");
    out_multicast_packets "out_multicast_packets" U32 [] "packets" "`ifOutMulticastPkts`." ("2^32 - 1");
    out_broadcast_packets "out_broadcast_packets" U32 [] "packets" "`ifOutBroadcastPkts`." ("2^32 - 1");
    out_discards "out_discards" U32 [] "packets" "`ifOutDiscards`." ("2^32 - 1");
    out_errors "out_errors" U32 [] "packets" "`ifOutErrors`." ("2^32 - 1");
}
