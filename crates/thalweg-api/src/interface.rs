//! Interface counters of routers, switches and this host, and the losses of their primary queues.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::UtcTime;

/// Polls of interface counters.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct Interfaces {
    /// All polls, in the order of the configuration.
    pub interfaces: Vec<PolledInterface>,
}

/// A poll of the counters of an interface.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct PolledInterface {
    /// Name of the poll.
    pub name: String,
    /// What is read: `SNMP v3 authPriv of 192.0.2.1:161, ifName wan0`, or
    /// `OpenFlow of switch 00000000000000d1 (at 192.0.2.1:6654), port wan0, queue 0`.
    pub source: String,
    /// Name of the interface.
    pub interface: String,
    /// Time of the latest poll, by the machine's clock; null before the first.
    pub polled: Option<UtcTime>,
    /// Why the latest poll failed; null if it did not.
    pub error: Option<String>,
    /// The latest counters; null before the first.
    pub counters: Option<InterfaceCounters>,
    /// The latest interval between two readings; null before the first reading.
    pub interval: Option<InterfaceInterval>,
    /// The loss of the primary queue over the latest usable intervals; null if there is none.
    pub average: Option<AverageLoss>,
    /// Counts since the daemon started.
    pub counts: InterfaceCounts,
}

/// The counters of an interface. They increase until they wrap or are reset.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub struct InterfaceCounters {
    /// Index of the interface.
    pub index: u32,
    /// Whether the interface is operational.
    pub up: bool,
    /// Rate of the interface in bits per second; null if unknown.
    pub speed_bps: Option<u64>,
    /// Width of the counters of packets in bits: 32 or 64.
    pub packet_bits: u32,
    /// What the dropped packets count.
    pub scope: CounterScope,
    /// Received traffic.
    pub input: PortTraffic,
    /// Sent traffic.
    pub output: PortTraffic,
    /// The primary queue; null if it is not read.
    pub primary: Option<PolledQueue>,
    /// The scavenger queue; null if it is not read.
    pub scavenger: Option<PolledQueue>,
}

/// What the dropped packets of an interface count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CounterScope {
    /// The primary queue is read.
    PrimaryQueue,
    /// The scavenger queue is read, and subtracted from the port.
    PortLessScavenger,
    /// The port has one queue.
    OneQueue,
    /// All queues together: the loss of the primary queue is unknown.
    AllQueues,
}

/// Counters of one direction of an interface.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub struct PortTraffic {
    /// Packets.
    pub packets: u64,
    /// Bytes.
    pub bytes: u64,
    /// Packets with errors; null if they are not counted.
    pub errors: Option<u64>,
    /// Packets that were dropped though they had no error; null if they are not counted.
    pub discards: Option<u64>,
}

/// Counters of a queue that a poll reads.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub struct PolledQueue {
    /// Packets that left the queue.
    pub sent_packets: u64,
    /// Packets that the queue dropped.
    pub dropped_packets: u64,
}

/// The time between two readings.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct InterfaceInterval {
    /// Its length in seconds; 0 before the second reading.
    pub seconds: f64,
    /// Why the loss of the primary queue is unknown: `first`, `restarted`, `reset`, `went_back`, `reindexed`, `renamed`,
    /// `scope_changed`, `bad_time`, `sum_of_queues` or `not_counted`; null if it is known.
    pub unusable: Option<String>,
    /// Packets that arrived at the primary queue; null if unknown.
    pub packets: Option<u64>,
    /// Packets that the primary queue dropped; null if unknown.
    pub drops: Option<u64>,
    /// Received bits per second of the port; null if unknown.
    pub input_bps: Option<f64>,
    /// Sent bits per second of the port; null if unknown.
    pub output_bps: Option<f64>,
    /// Dropped packets of the port, of all queues; null if unknown.
    pub port_drops: Option<u64>,
    /// Packets that the scavenger queue dropped; null if it is not read.
    pub scavenger_drops: Option<u64>,
}

/// A loss over some intervals.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct AverageLoss {
    /// The number of intervals.
    pub intervals: usize,
    /// Their length together in seconds.
    pub seconds: f64,
    /// Packets that arrived at the primary queue.
    pub packets: u64,
    /// Packets that it dropped.
    pub drops: u64,
    /// `drops` divided by `packets`; null without packets.
    pub loss: Option<f64>,
}

/// Counts of a poll since the daemon started.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub struct InterfaceCounts {
    /// Polls that read counters.
    pub succeeded: u64,
    /// Polls that failed.
    pub failed: u64,
    /// Intervals without a loss of the primary queue.
    pub unusable: u64,
    /// Rows of counters that were not stored because the disk was too slow.
    pub rows_lost: u64,
}
