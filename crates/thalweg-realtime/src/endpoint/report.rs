//! What an endpoint reports.

use thalweg_wire::Nanos;

use super::time_histogram::TimeHistogram;
use crate::protocol::{Arbiter, EndpointCounters};

/// Packets of an endpoint's process.
///
/// Every packet read is in one of `listed`, `unlisted_passed`, `unlisted_dropped`, `unparsed_passed`, `local_passed` and
/// `too_long`. Listed packets are submitted or refused, see [`EndpointCounters`]; those with a decision to send become `released`,
/// `release_refused`, or wait for their release.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PacketCounters {
    /// Packets read from the TAP interface.
    pub intercepted: u64,
    /// Bytes of them, from the Ethernet header on.
    pub intercepted_bytes: u64,
    /// Packets for an endpoint of the host table.
    pub listed: u64,
    /// Packets for other addresses, sent at once.
    pub unlisted_passed: u64,
    /// Packets for other addresses, dropped.
    pub unlisted_dropped: u64,
    /// Packets whose headers cannot be parsed, sent at once.
    pub unparsed_passed: u64,
    /// Packets for an address of this endpoint, sent at once.
    pub local_passed: u64,
    /// Packets longer than the largest MTU, dropped.
    pub too_long: u64,
    /// Packets that the kernel took after a decision to send.
    pub released: u64,
    /// Bytes of them, from the Ethernet header on.
    pub released_bytes: u64,
    /// Packets that the kernel refused after a decision to send, or that were passed: the interface is down, its queue is full, or the
    /// packet exceeds its MTU.
    pub release_refused: u64,
    /// Packets released before they had the [overhead](super::ProcessOptions::overhead), because too many waited.
    pub released_early: u64,
    /// Packets whose answer came when the overhead was exceeded.
    pub above_overhead: u64,
    /// Packets with congestion experienced set.
    pub marked: u64,
    /// Packets to be marked whose transport has no ECN, sent unmarked.
    pub marks_ignored: u64,
    /// Packets whose traffic class was replaced by scheme bytes.
    pub rewritten: u64,
    /// Packets with scheme bytes that this endpoint cannot apply, sent unchanged.
    pub scheme_bytes_ignored: u64,
    /// TCP packets for which the remaining bytes of the flow were unknown.
    pub remaining_unknown: u64,
    /// Frames without IP that were not intercepted, such as ARP.
    pub not_ip: u64,
    /// Messages of neighbour discovery that were not intercepted.
    pub neighbour_discovery: u64,
    /// Packets lost because the endpoint did not read them in time.
    pub overflow: u64,
    /// Packets that the queue of the link had no room for, with a [link rate](super::ProcessOptions::link_rate): a real interface would have dropped them
    /// too.
    pub queue_full: u64,
}

/// Packets that were lost in an endpoint: the emulated network has not decided on them, or its decision was not carried out. A run with them
/// does not show what the network does to all packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Losses {
    /// See [`PacketCounters::overflow`].
    pub overflow: u64,
    /// See [`PacketCounters::too_long`].
    pub too_long: u64,
    /// See [`PacketCounters::release_refused`].
    pub release_refused: u64,
    /// See [`EndpointCounters::refused_packets`].
    pub refused_packets: u64,
    /// See [`EndpointCounters::refused_flows`].
    pub refused_flows: u64,
    /// See [`EndpointCounters::refused_window`].
    pub refused_window: u64,
    /// See [`EndpointCounters::expired`].
    pub expired: u64,
}

impl Losses {
    /// Those among all packets.
    pub fn of(packets: &PacketCounters, decisions: &EndpointCounters) -> Losses {
        let PacketCounters { overflow, too_long, release_refused, .. } = *packets;
        let EndpointCounters { refused_packets, refused_flows, refused_window, expired, .. } = *decisions;
        Losses {
            overflow,
            too_long,
            release_refused,
            refused_packets,
            refused_flows,
            refused_window,
            expired,
        }
    }

    /// All of them, with the names of the counters.
    pub fn named(&self) -> [(&'static str, u64); 7] {
        [
            ("overflow", self.overflow),
            ("too_long", self.too_long),
            ("release_refused", self.release_refused),
            ("refused_packets", self.refused_packets),
            ("refused_flows", self.refused_flows),
            ("refused_window", self.refused_window),
            ("expired", self.expired),
        ]
    }

    /// Their number.
    pub fn total(&self) -> u64 {
        self.named().iter().map(|(_, packets)| packets).sum()
    }
}

/// Datagrams for arbiters, beyond those of [`EndpointCounters`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ControlCounters {
    /// Datagrams that the kernel refused to send.
    pub send_refused: u64,
    /// Errors reported by the network: nobody listens at the arbiter's address, or no route leads there.
    pub unreachable: u64,
    /// Datagrams of another version of the protocol.
    pub other_version: u64,
}

/// The state of an endpoint.
#[derive(Clone, Debug)]
pub struct Report {
    /// Time since the start.
    pub elapsed: Nanos,
    /// The arbiter in use.
    pub arbiter: Arbiter,
    /// How long it has not answered.
    pub silence: Nanos,
    /// The smoothed round-trip time to it, from datagram to acknowledgement; `None` before the first one. It includes the time
    /// that the arbiter waits for others to acknowledge.
    pub round_trip: Option<Nanos>,
    /// Packets held now.
    pub held: u32,
    /// Packets.
    pub packets: PacketCounters,
    /// Decisions.
    pub protocol: EndpointCounters,
    /// Datagrams.
    pub control: ControlCounters,
    /// From interception to the answer, for packets that were answered, dropped ones included: the emulated delay and the overhead.
    pub hold_times: TimeHistogram,
    /// The same times without the emulated delay: what the way to the arbiter and all waiting has added.
    pub overheads: TimeHistogram,
    /// From interception to the release, without the emulated delay, for packets that were sent after their answer.
    pub release_overheads: TimeHistogram,
}
