//! sFlow interface counters in columns.

use super::Address;
use super::columns::columns;

columns! {
    /// The counters of an interface at one time (sFlow v5 section 5.3, `if_counters`; the objects are those of RFC
    /// 2863). A counter that the agent does not maintain has all bits set.
    CounterRecord in
    /// Interface counters in columns of equal length.
    CounterBatch;

    /// The time when the datagram was received, in microseconds since 1970 (UTC).
    received_us: i64 = 0,
    /// The sFlow agent.
    exporter: Address = Address::NONE,
    /// The sub-agent id.
    observation_domain_id: u32 = 0,
    /// `ifIndex`.
    interface: u32 = 0,
    /// `ifType`: 6 is Ethernet.
    interface_type: u32 = 0,
    /// `ifSpeed`, bit/s.
    speed_bps: u64 = 0,
    /// 0: unknown, 1: full duplex, 2: half duplex, 3: receive only, 4: send only.
    duplex: u8 = 0,
    /// `ifAdminStatus`: 1 up, 0 down.
    administratively_up: u8 = 0,
    /// `ifOperStatus`: 1 up, 0 down.
    operationally_up: u8 = 0,
    /// 1: promiscuous mode, 2: not promiscuous, 0: unknown.
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
