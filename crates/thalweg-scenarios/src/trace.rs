//! The times of first packets, reroute requests and path changes.
//!
//! All times are wall-clock times; packets have the kernel's time of their arrival at the monitor port.

use std::collections::BTreeMap;

use thalweg_control::Pair;
use thalweg_network::{RouterId, Topology};
use thalweg_wire::{Nanos, Packet, Timestamp};

/// Minimum payload of a packet of a transfer, in bytes. Packets of iperf3's control connection are smaller.
const MIN_PAYLOAD: u32 = 1_000;

/// Maximum number of packets kept per pair; later ones are missing in the plot.
const MAX_PACKETS: usize = 1 << 19;

/// A request to move a pair to another address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RerouteRequest {
    /// The pair.
    pub(super) pair: Pair,
    /// Number of the destination's address to use.
    pub(super) address: u8,
    /// Packet time of the event that caused the decision.
    pub(super) event: Timestamp,
    /// When the controller handled that event.
    pub(super) decided: Timestamp,
    /// When the ARP request or flow-mod was sent.
    pub(super) sent: Timestamp,
}

/// The first packet of a pair on another path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PathChange {
    pub(super) pair: Pair,
    pub(super) address: u8,
    /// Packet time of the first packet with the new address.
    pub(super) time: Timestamp,
}

/// Everything observed since the trace was last taken.
#[derive(Clone, Debug, Default)]
pub(super) struct Trace {
    /// Time of the first full packet of each pair, at the switch that saw it first.
    pub(super) first_packets: BTreeMap<Pair, Timestamp>,
    /// Requests sent.
    pub(super) requests: Vec<RerouteRequest>,
    /// Number of reroutes of the flow that was rerouted most, as the controller counts.
    pub(super) most_flow_moves: u32,
    /// Path changes seen, each at the switch that saw it first.
    pub(super) path_changes: Vec<PathChange>,
    /// Pairs and addresses whose packets did not arrive.
    pub(super) broken_paths: Vec<(Pair, u8)>,
    /// Full packets of each pair and address, counted at the switch of their source.
    pub(super) sent: BTreeMap<(Pair, u8), u64>,
    /// Arrivals of each pair at the switch of its destination.
    pub(super) arrived: BTreeMap<Pair, Arrivals>,
}

/// Sequence numbers of a transfer over time.
#[derive(Clone, Debug, Default)]
pub(super) struct Arrivals {
    source_port: u16,
    /// Times, and the bytes of the stream up to them.
    pub(super) points: Vec<(Timestamp, u64)>,
    last: u32,
    bytes: u64,
}

impl Trace {
    /// Adds packets that a switch has mirrored.
    pub(super) fn add_packets(&mut self, topology: &Topology, router: RouterId, packets: &[Packet]) {
        for packet in packets.iter().filter(|packet| packet.payload_length >= MIN_PAYLOAD) {
            let Some((pair, address)) = Pair::of(topology, &packet.ethernet) else { continue };
            let first = self.first_packets.entry(pair).or_insert(packet.time);
            *first = packet.time.min(*first);
            if topology.router_of(pair.source) == router {
                *self.sent.entry((pair, address)).or_default() += 1;
            }
            if topology.router_of(pair.destination) == router {
                self.arrived.entry(pair).or_default().add(packet);
            }
        }
    }

    /// Records a path change; of several switches that see it, the earliest time counts.
    pub(super) fn add_path_change(&mut self, change: PathChange) {
        let last = self.path_changes.iter_mut().rev().find(|other| other.pair == change.pair);
        match last {
            // Switches of a path see a packet one after another; queues may let a later one report first.
            Some(last) if last.address == change.address => last.time = last.time.min(change.time),
            _ => self.path_changes.push(change),
        }
    }
}

impl Arrivals {
    fn add(&mut self, packet: &Packet) {
        let port = packet.key.src_port;
        let end = packet.tcp_sequence.wrapping_add(packet.payload_length);
        if self.points.is_empty() || port != self.source_port {
            (self.source_port, self.last) = (port, packet.tcp_sequence);
        }
        // Retransmissions lie behind, and add nothing.
        let ahead = end.wrapping_sub(self.last);
        if ahead < 1 << 31 {
            (self.last, self.bytes) = (end, self.bytes + u64::from(ahead));
        }
        if self.points.len() < MAX_PACKETS {
            self.points.push((packet.time, self.bytes));
        }
    }

    /// Returns the rates in bits per second in steps of `step` from `begin` to `end`. Each has the middle of its step,
    /// in nanoseconds from `origin`.
    pub(super) fn rates(
        &self,
        origin: Timestamp,
        (begin, end): (Timestamp, Timestamp),
        step: Nanos,
    ) -> Vec<(f64, f64)> {
        let steps = end.since(begin).0 / step.0.max(1);
        let at = |time: Timestamp| {
            let later = self.points.partition_point(|point| point.0 < time);
            // Samples have gaps: interpolate linearly between two packets.
            match (later.checked_sub(1).map(|last| self.points[last]), self.points.get(later)) {
                (Some((t, b)), Some(&(u, c))) if u > t => {
                    b as f64 + (c - b) as f64 * time.since(t).0 as f64 / u.since(t).0 as f64
                }
                (Some((_, bytes)), _) => bytes as f64,
                (None, first) => first.map_or(0.0, |&(_, bytes)| bytes as f64),
            }
        };
        let rate = |number: u64| {
            let from = begin + Nanos(number * step.0);
            let bits = 8.0 * (at(from + step) - at(from));
            let middle = from.0 as f64 + step.0 as f64 / 2.0 - origin.0 as f64;
            (middle, bits / step.as_secs_f64())
        };
        (0..steps).map(rate).collect()
    }
}

#[cfg(test)]
mod tests {
    use thalweg_network::EndpointId;

    use super::*;

    const PAIR: Pair = Pair { source: EndpointId(0), destination: EndpointId(1) };

    fn change(address: u8, time: u64) -> PathChange {
        PathChange { pair: PAIR, address, time: Timestamp(time) }
    }

    #[test]
    fn path_change_has_the_earliest_time_of_all_switches() {
        let mut trace = Trace::default();
        for change in [change(1, 20), change(1, 10), change(0, 50), change(1, 90)] {
            trace.add_path_change(change);
        }
        let times: Vec<_> = trace.path_changes.iter().map(|change| (change.address, change.time.0)).collect();
        assert_eq!(times, [(1, 10), (0, 50), (1, 90)]);
    }

    #[test]
    fn rates_follow_sequence_numbers_despite_missing_samples() {
        // 1,250 bytes every 100 us are 100 Mbit/s; two samples of three are missing.
        let points = (0..100).step_by(3).map(|n| (Timestamp(n * 100_000), n * 1_250)).collect();
        let arrivals = Arrivals { points, ..Arrivals::default() };
        let span = (Timestamp(1_000_000), Timestamp(9_000_000));
        let rates = arrivals.rates(Timestamp(0), span, Nanos::from_millis(1));
        assert_eq!(rates.len(), 8);
        for (_, rate) in rates {
            assert!((rate - 100e6).abs() < 1.0, "{rate}");
        }
    }
}
