//! What a collector says of links and flows when it is asked, and of its own accord.

use thalweg_network::PortIndex;
use thalweg_sketch::Estimate;
use thalweg_wire::{BitRate, Bytes, EthernetAddresses, FlowKey, Timestamp};

use crate::rates::Basis;

/// Which way packets go through a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Way {
    /// Into the switch.
    Input,
    /// Out of the switch.
    Output,
}

/// One direction of the link at a port of the collector's switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkSide {
    /// The port.
    pub port: PortIndex,
    /// Which way.
    pub way: Way,
}

/// How much one direction of a link carries.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LinkReport {
    /// Which link, and which way.
    pub side: LinkSide,
    /// What it can carry.
    pub capacity: BitRate,
    /// Sum of the rates of its flows now, in bits per second on the wire, framing included. Its bound holds if those
    /// of all flows do; it is unknown if one of them is, and has no upper end if one of them has none.
    pub rate: Estimate,
    /// The sum of rates, smoothed, in bits per second; no more than the capacity.
    pub smoothed: f64,
    /// `smoothed` as a share of the capacity.
    pub utilisation: f64,
    /// Directions of flows with a rate above zero.
    pub flows: u32,
    /// When the sum last changed, in packet time.
    pub changed: Timestamp,
}

/// How fast one direction of a flow is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FlowRate {
    /// Its key, in its own direction.
    pub key: FlowKey,
    /// The addresses that its last packet had, which say what way it goes.
    pub ethernet: EthernetAddresses,
    /// Rate on the wire, framing included, in bits per second. Zero while it is idle.
    pub rate: Estimate,
    /// What the rate was derived from.
    pub basis: Basis,
    /// The span that the rate covers: from the first sample of one burst to the first sample of the next.
    pub span: (Timestamp, Timestamp),
}

/// One direction of a flow as the collector sees it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FlowReport {
    /// Its key, in its own direction.
    pub key: FlowKey,
    /// How fast it is; `None` before the first estimate.
    pub rate: Option<FlowRate>,
    /// Port by which it comes into the switch, if that can be inferred.
    pub input: Option<PortIndex>,
    /// Port by which it leaves the switch, if that can be inferred.
    pub output: Option<PortIndex>,
    /// Time of the first sample of the flow, either direction.
    pub first: Timestamp,
    /// Time of the last sample of the flow, either direction.
    pub last: Timestamp,
    /// Samples of this direction.
    pub samples: u64,
    /// Bytes of those, of the IP layer.
    pub sampled: Bytes,
    /// Payload that was seen twice: what was sent again at least (TCP).
    pub repeated: Bytes,
    /// Samples that came after later ones, and are not known to have been seen before: reordered, or sent again (TCP). At
    /// most 65,535.
    pub reordered: u64,
    /// Whether it is a cheetah now.
    pub is_cheetah: bool,
}

/// A link's utilisation has crossed a threshold.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkEvent {
    /// Upwards or downwards.
    pub crossing: Crossing,
    /// The link, with the rates that made it so.
    pub link: LinkReport,
    /// Which of the rules it was, by its place in the options.
    pub rule: usize,
    /// The threshold that was crossed, as a share of the capacity.
    pub threshold: f64,
    /// Version of the forwarding state at that time.
    pub version: u64,
    /// Time of the packet that gave it away.
    pub time: Timestamp,
    /// Flows on the link and their rates, the fastest first; as many as the rule asks for.
    pub flows: Vec<FlowRate>,
    /// Flows on the link that did not fit in.
    pub flows_left_out: u32,
}

/// Packets of a flow have other addresses than those before them: it has been sent another way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AddressChange {
    /// Its key, in its own direction.
    pub key: FlowKey,
    /// The addresses that it had.
    pub from: EthernetAddresses,
    /// The addresses that it has.
    pub to: EthernetAddresses,
    /// Time of the first packet with these.
    pub time: Timestamp,
}

/// Which way a threshold was crossed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Crossing {
    /// Utilisation rose to the upper threshold.
    Upwards,
    /// Utilisation fell to the lower threshold, having been above the upper one.
    Downwards,
    /// None: it has not fallen to the lower threshold since it was told, and is told again.
    Remains,
}
