//! The counters of an interface at one time.

use std::net::IpAddr;

use thalweg_wire::{BitRate, Nanos, Timestamp};

/// A counter that increases until it wraps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counter {
    /// Its value.
    pub value: u64,
    /// Its width.
    pub width: Width,
}

/// The width of a counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Width {
    /// 32 bits: wraps, a counter of bytes at 1 Gbit/s every 34 s.
    Bits32,
    /// 64 bits: does not wrap in practice (RFC 2863, section 3.1.6), so a lower value is a reset.
    Bits64,
    /// Sent in 64 bits, and perhaps counted in 32: a lower value is a wrap at 2^32 if both are below.
    UpTo64,
}

/// The counters of an interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InterfaceReading {
    /// Time at which the counters had these values, by the clock that the source was given. An agent that caches its
    /// counters answers with older values; this is the time of the cache, as far as the source can tell.
    pub time: Timestamp,
    /// Address of the router or switch, if it is known; `None` for this host.
    pub agent: Option<IpAddr>,
    /// Maximum error of `time`, in both directions.
    pub time_error: Nanos,
    /// Name of the interface.
    pub name: String,
    /// The vendor's description of the interface (`ifDescr`), if there is one. It tells that an interface was renamed.
    pub description: Option<String>,
    /// Whether the interface is operational (`ifOperStatus`); also if that is unknown. net-snmp shows an interface that was
    /// removed for five minutes, as down and with its last counters.
    pub is_up: bool,
    /// Index of the interface (`ifIndex`). It may change when the router or the interface restarts.
    pub index: u32,
    /// Rate of the interface, if known.
    pub speed: Option<BitRate>,
    /// Time since the agent started, in hundredths of a second (`sysUpTime`), or since the port exists (OpenFlow). Wraps after
    /// 497 days. `None` if the source has no such time.
    pub uptime_ticks: Option<u32>,
    /// When the counters were last reset, in ticks of `uptime_ticks` (`ifCounterDiscontinuityTime`); `None` if unknown.
    pub discontinuity_ticks: Option<u32>,
    /// Received traffic.
    pub input: PortCounters,
    /// Sent traffic.
    pub output: PortCounters,
    /// The primary queue, if it is read.
    pub primary: Option<QueueCounters>,
    /// The scavenger queue, if it is read.
    pub scavenger: Option<QueueCounters>,
    /// What the dropped packets of the output count.
    pub scope: Scope,
}

/// The counters of one direction of an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortCounters {
    /// Packets. In the output of IF-MIB they include those that were dropped; a Linux host counts only those that it sent.
    pub packets: Counter,
    /// Bytes.
    pub bytes: Counter,
    /// Packets with errors; `None` if they are not counted.
    pub errors: Option<Counter>,
    /// Packets that were dropped though they had no error; `None` if they are not counted.
    pub discards: Option<Counter>,
}

/// The counters of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueCounters {
    /// Packets that left the queue.
    pub sent_packets: Counter,
    /// Bytes that left the queue, if they are counted.
    pub sent_bytes: Option<Counter>,
    /// Packets that the queue dropped.
    pub dropped_packets: Counter,
    /// Time for which the queue has existed, if known. A queue that is younger than expected was created again.
    pub age: Option<Nanos>,
}

/// What the dropped packets of an interface count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// The primary queue is read.
    PrimaryQueue,
    /// The scavenger queue is read, and is subtracted from the port.
    PortLessScavenger,
    /// The port has one queue.
    OneQueue,
    /// All queues together: the loss of the primary queue is unknown.
    AllQueues,
}

impl Scope {
    /// Returns the name, as in the API: `primary_queue`.
    pub const fn name(self) -> &'static str {
        match self {
            Scope::PrimaryQueue => "primary_queue",
            Scope::PortLessScavenger => "port_less_scavenger",
            Scope::OneQueue => "one_queue",
            Scope::AllQueues => "all_queues",
        }
    }
}

impl Counter {
    /// Creates a counter of 32 bits.
    pub const fn bits32(value: u32) -> Counter {
        Counter { value: value as u64, width: Width::Bits32 }
    }

    /// Creates a counter of 64 bits.
    pub const fn bits64(value: u64) -> Counter {
        Counter { value, width: Width::Bits64 }
    }

    /// Creates a counter that is sent in 64 bits, and perhaps counted in 32.
    pub const fn up_to_64(value: u64) -> Counter {
        Counter { value, width: Width::UpTo64 }
    }

    /// Adds another counter of the same traffic. The sum is as wide as the narrower one.
    pub fn plus(self, other: Counter) -> Counter {
        let sum = self.value.wrapping_add(other.value);
        match (self.width, other.width) {
            (Width::Bits64, Width::Bits64) => Counter::bits64(sum),
            (Width::Bits32, _) | (_, Width::Bits32) => Counter::bits32(sum as u32),
            _ => Counter::up_to_64(sum),
        }
    }
}

impl Width {
    /// Returns the number of bits; the largest if it is not known.
    pub const fn bits(self) -> u32 {
        match self {
            Width::Bits32 => 32,
            Width::Bits64 | Width::UpTo64 => 64,
        }
    }
}
