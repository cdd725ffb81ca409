//! Interface counters in columns, as sFlow agents send them.

use super::Address;
use super::columns::columns;

columns! {
    /// What an interface's counters say at one time (sFlow v5 section 5.3, `if_counters`; the objects are those of
    /// RFC 2863). A counter that the agent does not keep has all bits set on the wire, and here.
    CounterRecord in
    /// Interface counters, a column for each; all columns have one length between calls.
    CounterBatch;

    /// When the datagram arrived at the collector, microseconds since 1970 (UTC).
    received_us: i64 = 0,
    /// The sFlow agent.
    exporter: Address = Address::NONE,
    /// Its sub-agent id.
    observation_domain_id: u32 = 0,
    /// `ifIndex`.
    interface: u32 = 0,
    /// `ifType`: 6 is Ethernet.
    interface_type: u32 = 0,
    /// `ifSpeed`, bit/s.
    speed_bps: u64 = 0,
    /// 0: not known, 1: full duplex, 2: half duplex, 3: receives only, 4: sends only.
    duplex: u8 = 0,
    /// `ifAdminStatus`: 1 up, 0 down.
    administratively_up: u8 = 0,
    /// `ifOperStatus`: 1 up, 0 down.
    operationally_up: u8 = 0,
    /// 1 where the interface takes frames that are for others, 2 where not, 0 if it is not known.
    promiscuous: u8 = 0,
    /// `ifInOctets` (64 bits).
    in_octets: u64 = 0,
    /// `ifInUcastPkts`.
    in_unicast_packets: u32 = 0,
    /// `ifInMulticastPkts`.
    in_multicast_packets: u32 = 0,
    /// `ifInBroadcastPkts`.
    in_broadcast_packets: u32 = 0,
    /// `ifInDiscards`.
    in_discards: u32 = 0,
    /// `ifInErrors`.
    in_errors: u32 = 0,
    /// `ifInUnknownProtos`.
    in_unknown_protocols: u32 = 0,
    /// `ifOutOctets` (64 bits).
    out_octets: u64 = 0,
    /// `ifOutUcastPkts`.
    out_unicast_packets: u32 = 0,
    /// `ifOutMulticastPkts`.
    out_multicast_packets: u32 = 0,
    /// `ifOutBroadcastPkts`.
    out_broadcast_packets: u32 = 0,
    /// `ifOutDiscards`.
    out_discards: u32 = 0,
    /// `ifOutErrors`.
    out_errors: u32 = 0,
}
