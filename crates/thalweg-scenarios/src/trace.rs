//! What happened, and when: first packets, events, what hosts were told, what became of it.
//!
//! All times are of one clock, the wall clock: packets have that of the kernel when they came to the monitor port.

use std::collections::BTreeMap;

use thalweg_control::Pair;
use thalweg_network::{RouterId, Topology};
use thalweg_wire::{Nanos, Packet, Timestamp};

/// Bytes of payload from which on a packet is one of a transfer, and not of the connection that arranges it.
const TRANSFER: u32 = 1_000;

/// Most packets kept of a pair; what is more is not drawn.
const MOST_PACKETS: usize = 1 << 19;

/// A pair was told another way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Told {
    /// Whom.
    pub(super) pair: Pair,
    /// To which address of the destination it is to send.
    pub(super) address: u8,
    /// Packet time of the event that it was decided by.
    pub(super) event: Timestamp,
    /// When the controller turned to that event.
    pub(super) decided: Timestamp,
    /// When the frame, or the flow-mod, was sent.
    pub(super) sent: Timestamp,
}

/// A pair has been seen on another way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Moved {
    pub(super) pair: Pair,
    pub(super) address: u8,
    /// Packet time of the first packet with the new address.
    pub(super) time: Timestamp,
}

/// What happened since the trace was last taken.
#[derive(Clone, Debug, Default)]
pub(super) struct Trace {
    /// First full packet of each pair, at whichever switch it was seen first.
    pub(super) began: BTreeMap<Pair, Timestamp>,
    /// What hosts were told.
    pub(super) told: Vec<Told>,
    /// What was seen of that, each pair and address at the switch that saw it first.
    pub(super) moved: Vec<Moved>,
    /// Pairs and addresses by which packets set out and did not arrive.
    pub(super) astray: Vec<(Pair, u8)>,
    /// Full packets of each pair by the address that they had, at the switch of their source.
    pub(super) sent: BTreeMap<(Pair, u8), u64>,
    /// By pair, what arrived at the switch of its destination.
    pub(super) arrived: BTreeMap<Pair, Arrivals>,
}

/// Sequence numbers of a transfer over time.
#[derive(Clone, Debug, Default)]
pub(super) struct Arrivals {
    source_port: u16,
    /// Time, and bytes of the stream up to then.
    pub(super) points: Vec<(Timestamp, u64)>,
    last: u32,
    bytes: u64,
}

impl Trace {
    /// Takes packets that a switch has mirrored.
    pub(super) fn take(&mut self, topology: &Topology, router: RouterId, packets: &[Packet]) {
        for packet in packets.iter().filter(|packet| packet.payload_length >= TRANSFER) {
            let Some((pair, address)) = Pair::of(topology, &packet.ethernet) else { continue };
            let first = self.began.entry(pair).or_insert(packet.time);
            *first = packet.time.min(*first);
            if topology.router_of(pair.source) == router {
                *self.sent.entry((pair, address)).or_default() += 1;
            }
            if topology.router_of(pair.destination) == router {
                self.arrived.entry(pair).or_default().take(packet);
            }
        }
    }

    /// A pair was seen with this address. Only the first sight of it counts.
    pub(super) fn moved(&mut self, moved: Moved) {
        let last = self.moved.iter_mut().rev().find(|other| other.pair == moved.pair);
        match last {
            // The switches of a path see it one after another; queues may let a later one tell first.
            Some(last) if last.address == moved.address => last.time = last.time.min(moved.time),
            _ => self.moved.push(moved),
        }
    }
}

impl Arrivals {
    fn take(&mut self, packet: &Packet) {
        let port = packet.key.src_port;
        let end = packet.tcp_sequence.wrapping_add(packet.payload_length);
        if self.points.is_empty() || port != self.source_port {
            (self.source_port, self.last) = (port, packet.tcp_sequence);
        }
        // What is sent again lies behind, and adds nothing.
        let ahead = end.wrapping_sub(self.last);
        if ahead < 1 << 31 {
            (self.last, self.bytes) = (end, self.bytes + u64::from(ahead));
        }
        if self.points.len() < MOST_PACKETS {
            self.points.push((packet.time, self.bytes));
        }
    }

    /// Bits per second in steps of `step` from `begin` to `end`, each with the middle of its step, in nanoseconds
    /// from `origin`.
    pub(super) fn rates(
        &self,
        origin: Timestamp,
        (begin, end): (Timestamp, Timestamp),
        step: Nanos,
    ) -> Vec<(f64, f64)> {
        let steps = end.since(begin).0 / step.0.max(1);
        let at = |time: Timestamp| {
            let later = self.points.partition_point(|point| point.0 < time);
            // Between two packets the stream is taken to have gone on evenly: samples come with gaps.
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

    fn moved(address: u8, time: u64) -> Moved {
        Moved { pair: PAIR, address, time: Timestamp(time) }
    }

    #[test]
    fn a_pair_that_several_switches_see_has_moved_once_when_the_first_saw_it() {
        let mut trace = Trace::default();
        for sight in [moved(1, 20), moved(1, 10), moved(0, 50), moved(1, 90)] {
            trace.moved(sight);
        }
        let times: Vec<_> = trace.moved.iter().map(|moved| (moved.address, moved.time.0)).collect();
        assert_eq!(times, [(1, 10), (0, 50), (1, 90)]);
    }

    #[test]
    fn rates_come_from_sequence_numbers_whatever_was_sampled() {
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
