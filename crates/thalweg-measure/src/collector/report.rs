//! Reports and events of a collector on links and flows.

use thalweg_network::PortIndex;
use thalweg_sketch::{Bound, Estimate};
use thalweg_wire::{BitRate, Bytes, EthernetAddresses, FlowKey, Protocol, Timestamp};

use crate::rates::Basis;

/// The direction of packets at a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PortDirection {
    /// Into the switch.
    Input,
    /// Out of the switch.
    Output,
}

/// One direction of the link at a port of the collector's switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkDirection {
    /// The port.
    pub port: PortIndex,
    /// The direction.
    pub direction: PortDirection,
}

/// The load of one link direction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LinkReport {
    /// The link direction.
    pub side: LinkDirection,
    /// The capacity.
    pub capacity: BitRate,
    /// The current sum of the rates of its flows, in bits per second on the wire, framing included; at most the
    /// capacity. Its bound holds if those of all flows do, and includes the flows that have become silent. It is unknown
    /// if one of them is.
    pub rate: Estimate,
    /// The smoothed sum of rates, in bits per second; at most the capacity.
    pub smoothed: f64,
    /// The greatest smoothed sum within the last one to two minutes of packet time, so that a reader who comes once a minute misses none; at most the
    /// capacity.
    pub peak: f64,
    /// `smoothed` as a share of the capacity.
    pub utilisation: f64,
    /// The number of flow directions with a rate above zero.
    pub flows: u32,
    /// The packet time of the last change of the sum.
    pub changed: Timestamp,
}

/// The rate of one direction of a flow.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FlowRate {
    /// The key, in its own direction.
    pub key: FlowKey,
    /// The addresses of its last packet, which select its path.
    pub ethernet: EthernetAddresses,
    /// The rate on the wire, framing included, in bits per second; at most the capacity of the flow's links. Zero while
    /// the flow is silent, with an upper bound for what it may have sent without a sample.
    pub rate: Estimate,
    /// The source of the rate.
    pub basis: Basis,
    /// The span that the rate covers: from the first sample of one burst to the first sample of the next; if the flow is
    /// silent, from its last sample to now. Times are those of samples, after the queue of the monitor port.
    pub span: (Timestamp, Timestamp),
}

impl FlowRate {
    /// The largest ratio of upper to lower bound at which a rate from samples is a value, and not only an interval.
    pub const WIDEST: f64 = 8.0;

    /// Returns the rate in bits per second; `None` if only its bounds are known.
    ///
    /// That is so for a protocol without sequence numbers whose packets cannot be counted, at a monitor port that drops
    /// most of them, because the sampling ratio of other flows may be twice its own, or half of it.
    pub fn known_value(&self) -> Option<f64> {
        let is_wide = match self.rate.bound {
            Bound::Interval { lower, upper, .. } => upper > Self::WIDEST * lower,
            _ => false,
        };
        let is_unknown = self.basis == Basis::SamplingRatio && self.key.protocol != Protocol::TCP && is_wide;
        (!is_unknown).then_some(self.rate.value)
    }
}

/// One direction of a flow as the collector sees it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FlowReport {
    /// The key, in its own direction.
    pub key: FlowKey,
    /// The rate; `None` before the first estimate.
    pub rate: Option<FlowRate>,
    /// The port at which it enters the switch, if that can be inferred.
    pub input: Option<PortIndex>,
    /// The port at which it leaves the switch, if that can be inferred.
    pub output: Option<PortIndex>,
    /// The time of the first sample of the flow, either direction.
    pub first: Timestamp,
    /// The time of the last sample of the flow, either direction.
    pub last: Timestamp,
    /// The samples of this direction.
    pub samples: u64,
    /// The bytes of these samples, of the IP layer.
    pub sampled: Bytes,
    /// The payload that was seen twice: a lower bound of what was retransmitted (TCP).
    pub repeated: Bytes,
    /// Samples that arrived after later ones, and are not known to have been seen before: reordered or retransmitted
    /// (TCP). At most 65,535.
    pub reordered: u64,
    /// Whether it is currently a cheetah.
    pub is_cheetah: bool,
}

/// The congestion of a link began or cleared, or is repeated.
#[derive(Clone, Debug, PartialEq)]
pub struct CongestionEvent {
    /// What changed.
    pub change: CongestionChange,
    /// The link, with its rates at that time.
    pub link: LinkReport,
    /// The index of the rule in the options.
    pub rule: usize,
    /// The threshold of that change, as a share of the capacity.
    pub threshold: f64,
    /// The version of the forwarding state at that time.
    pub version: u64,
    /// The time of the packet that revealed it.
    pub time: Timestamp,
    /// The flows on the link with their rates, the fastest first; at most as many as the rule allows.
    pub flows: Vec<FlowRate>,
    /// The number of flows on the link that are not listed.
    pub flows_left_out: u32,
}

/// The addresses of a flow's packets have changed: it was rerouted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AddressChange {
    /// The key, in its own direction.
    pub key: FlowKey,
    /// The previous addresses.
    pub from: EthernetAddresses,
    /// The new addresses.
    pub to: EthernetAddresses,
    /// The time of the first packet with the new addresses.
    pub time: Timestamp,
}

/// A change of a link's congestion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CongestionChange {
    /// Utilisation rose to the upper threshold.
    Began,
    /// Utilisation fell below the lower threshold.
    Cleared,
    /// The link is still congested: a reminder.
    Repeated,
}
