//! Records queues at points in time and links over intervals. Compact until the end, and bounded by the plan, which
//! knows the number of rows.

use thalweg_emulator::ports::tally::PortTally;
use thalweg_emulator::{Network, Slot, SlotClock};
use thalweg_network::{EndpointId, Node, PortIndex, RouterId, Topology};
use thalweg_wire::{BitRate, Timestamp};

use super::plan::Measure;
use super::results::{LinkRow, LinkUse, QueueRow, QueueUse, Spread, per_second};

/// Samples queues and links.
pub(super) struct Recorder {
    clock: SlotClock,
    measure: Measure,
    directions: Vec<Direction>,
    /// Slots of the next queue sample, of the end of the interval, and of the end of the warm-up.
    next_queues: Slot,
    interval_began: Slot,
    warm: Slot,
    /// Counters of each direction at the start of the interval, and at the end of the warm-up.
    at_interval: Vec<PortTally>,
    at_warm: Vec<PortTally>,
    intervals: Vec<(Slot, Slot)>,
    /// By interval and direction.
    link_samples: Vec<Sent>,
    sampled_at: Vec<Slot>,
    /// By sample and port.
    queue_samples: Vec<Waiting>,
}

/// One direction of one link.
struct Direction {
    sender: Sender,
    receiver: Node,
    rate: BitRate,
}

#[derive(Clone, Copy)]
enum Sender {
    Interface(EndpointId),
    Port(RouterId, PortIndex),
}

/// The traffic of a port between two times.
#[derive(Clone, Copy)]
pub(super) struct Sent {
    pub(super) packets: u64,
    pub(super) bytes: u64,
    pub(super) marked: u64,
    pub(super) dropped: u64,
}

#[derive(Clone, Copy)]
struct Waiting {
    packets: u32,
    bytes: u32,
}

impl Recorder {
    /// A recorder that starts at slot 0.
    pub(super) fn new(
        topology: &Topology,
        clock: SlotClock,
        measure: &Measure,
        warm_up: Timestamp,
    ) -> Recorder {
        let directions = directions(topology);
        let nothing = vec![PortTally::default(); directions.len()];
        Recorder {
            clock,
            measure: measure.clone(),
            next_queues: Slot(measure.queue_slots),
            interval_began: Slot(0),
            warm: clock.slot_at(warm_up),
            at_interval: nothing.clone(),
            at_warm: nothing,
            directions,
            intervals: Vec::new(),
            link_samples: Vec::new(),
            sampled_at: Vec::new(),
            queue_samples: Vec::new(),
        }
    }

    /// The next slot with something to record.
    #[inline]
    pub(super) fn due(&self) -> Slot {
        let interval_ends = self.interval_began + self.measure.link_slots;
        self.next_queues.min(interval_ends).min(self.warm)
    }

    /// Records what is due in the current slot.
    pub(super) fn record(&mut self, network: &dyn Network) {
        let now = network.now();
        if now >= self.warm {
            self.at_warm = self.tallies(network);
            self.warm = Slot(u64::MAX);
        }
        if now >= self.next_queues {
            self.sample_queues(network, now);
            self.next_queues = now + self.measure.queue_slots;
        }
        if now >= self.interval_began + self.measure.link_slots {
            self.end_interval(network, now);
        }
    }

    /// Ends the current interval.
    pub(super) fn finish(&mut self, network: &dyn Network) {
        if network.now() > self.interval_began {
            self.end_interval(network, network.now());
        }
    }

    fn sample_queues(&mut self, network: &dyn Network, now: Slot) {
        self.sampled_at.push(now);
        self.queue_samples.extend(self.measure.ports.iter().map(|&(router, port)| {
            let waiting = network.port_backlog(router, port);
            Waiting { packets: waiting.packets, bytes: u32::try_from(waiting.bytes).unwrap_or(u32::MAX) }
        }));
    }

    fn end_interval(&mut self, network: &dyn Network, now: Slot) {
        let tallies = self.tallies(network);
        self.intervals.push((self.interval_began, now));
        let sent = tallies.iter().zip(&self.at_interval).map(|(after, before)| sent_between(before, after));
        self.link_samples.extend(sent);
        self.at_interval = tallies;
        self.interval_began = now;
    }

    fn tallies(&self, network: &dyn Network) -> Vec<PortTally> {
        let tally = |direction: &Direction| match direction.sender {
            Sender::Interface(endpoint) => network.interface_tally(endpoint),
            Sender::Port(router, port) => network.port_tally(router, port),
        };
        self.directions.iter().map(tally).collect()
    }

    /// Packets marked since the start.
    pub(super) fn marked(&self, network: &dyn Network) -> u64 {
        self.tallies(network).iter().map(|tally| tally.verdicts.marked).sum()
    }

    /// Bytes that routers sent to endpoints after the warm-up.
    pub(super) fn bytes_to_endpoints(&self) -> u64 {
        let directions = self.directions.iter().zip(self.after_warm_up());
        let delivering = directions.filter(|(direction, _)| matches!(direction.receiver, Node::Endpoint(_)));
        delivering.map(|(_, sent)| sent.bytes).sum()
    }

    fn after_warm_up(&self) -> impl Iterator<Item = Sent> + '_ {
        self.at_interval.iter().zip(&self.at_warm).map(|(after, before)| sent_between(before, after))
    }

    /// The links with the highest utilisation after the warm-up.
    pub(super) fn busiest_links(&self, topology: &Topology, seconds: f64, most: usize) -> Vec<LinkUse> {
        let mut uses: Vec<(f64, usize, Sent)> = (self.after_warm_up().enumerate())
            .filter(|(_, sent)| sent.packets + sent.dropped > 0)
            .map(|(index, sent)| (self.utilisation(index, sent.bytes, seconds), index, sent))
            .collect();
        uses.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        let shown = uses.into_iter().take(most).map(|(utilisation, index, sent)| LinkUse {
            from: self.directions[index].from(topology).to_owned(),
            to: topology.name(self.directions[index].receiver).to_owned(),
            packets: sent.packets,
            rate_bps: per_second(sent.bytes, seconds),
            utilisation,
            marked_packets: sent.marked,
            dropped_packets: sent.dropped,
        });
        shown.collect()
    }

    fn utilisation(&self, index: usize, bytes: u64, seconds: f64) -> f64 {
        per_second(bytes, seconds) / self.directions[index].rate.0 as f64
    }

    /// The ports with the longest mean queues, over the samples from `from` on.
    pub(super) fn longest_queues(&self, topology: &Topology, from: Timestamp, most: usize) -> Vec<QueueUse> {
        let first = self.sampled_at.partition_point(|&look| self.clock.start_of(look) < from);
        let ports = self.measure.ports.len();
        let samples = &self.queue_samples[first * ports..];
        let sampled_at = self.sampled_at.len() - first;
        if sampled_at == 0 {
            return Vec::new();
        }
        let sum = |port: usize| -> u64 {
            samples.iter().skip(port).step_by(ports).map(|waiting| u64::from(waiting.bytes)).sum()
        };
        let mut sums: Vec<(u64, usize)> =
            (0..ports).map(|port| (sum(port), port)).filter(|&(sum, _)| sum > 0).collect();
        sums.sort_by(|a, b| b.0.cmp(&a.0).then(a.1.cmp(&b.1)));
        let of = |port: usize, of: fn(&Waiting) -> u32| {
            let mut values: Vec<f64> =
                samples.iter().skip(port).step_by(ports).map(|waiting| f64::from(of(waiting))).collect();
            Spread::of(&mut values)
        };
        let shown = sums.into_iter().take(most).map(|(_, index)| {
            let (router, port) = self.measure.ports[index];
            QueueUse {
                router: topology.name(Node::Router(router)).to_owned(),
                port: port.0,
                to: topology.name(topology.peer(router, port).node).to_owned(),
                packets: of(index, |waiting| waiting.packets),
                bytes: of(index, |waiting| waiting.bytes),
            }
        });
        shown.collect()
    }

    /// All queue samples as rows.
    pub(super) fn queue_rows(&self, topology: &Topology) -> Vec<QueueRow> {
        let sampled_at =
            self.sampled_at.iter().zip(self.queue_samples.chunks(self.measure.ports.len().max(1)));
        let rows = sampled_at.flat_map(|(&look, samples)| {
            self.measure.ports.iter().zip(samples).map(move |(&(router, port), waiting)| QueueRow {
                time_ns: self.clock.start_of(look).0,
                router: topology.name(Node::Router(router)).to_owned(),
                port: port.0,
                to: topology.name(topology.peer(router, port).node).to_owned(),
                packets: waiting.packets,
                bytes: u64::from(waiting.bytes),
            })
        });
        rows.collect()
    }

    /// All link intervals as rows.
    pub(super) fn link_rows(&self, topology: &Topology) -> Vec<LinkRow> {
        let intervals = self.intervals.iter().zip(self.link_samples.chunks(self.directions.len().max(1)));
        let rows = intervals.flat_map(|(&(began, ended), samples)| {
            let (time_ns, end_ns) = (self.clock.start_of(began).0, self.clock.start_of(ended).0);
            let interval_ns = end_ns - time_ns;
            self.directions.iter().enumerate().zip(samples).map(move |((index, direction), sent)| LinkRow {
                time_ns,
                interval_ns,
                from: direction.from(topology).to_owned(),
                to: topology.name(direction.receiver).to_owned(),
                packets: sent.packets,
                bytes: sent.bytes,
                utilisation: self.utilisation(index, sent.bytes, interval_ns as f64 / 1e9),
                marked_packets: sent.marked,
                dropped_packets: sent.dropped,
            })
        });
        rows.collect()
    }
}

impl Direction {
    fn from<'a>(&self, topology: &'a Topology) -> &'a str {
        match self.sender {
            Sender::Interface(endpoint) => topology.name(Node::Endpoint(endpoint)),
            Sender::Port(router, _) => topology.name(Node::Router(router)),
        }
    }
}

/// The endpoints' interfaces, then the ports of routers.
fn directions(topology: &Topology) -> Vec<Direction> {
    let interfaces = topology.endpoint_ids().map(|endpoint| Direction {
        sender: Sender::Interface(endpoint),
        receiver: Node::Router(topology.router_of(endpoint)),
        rate: topology.links()[topology.endpoint_link(endpoint).index()].rate,
    });
    let ports = topology.router_ids().flat_map(|router| {
        (0..).map(PortIndex).zip(topology.peers(router)).map(move |(port, peer)| Direction {
            sender: Sender::Port(router, port),
            receiver: peer.node,
            rate: topology.links()[topology.link_at(router, port).index()].rate,
        })
    });
    interfaces.chain(ports).collect()
}

/// The traffic of a port between two readings of its counters.
pub(super) fn sent_between(before: &PortTally, after: &PortTally) -> Sent {
    Sent {
        packets: after.sent.packets - before.sent.packets,
        bytes: after.sent.bytes - before.sent.bytes,
        marked: after.verdicts.marked - before.verdicts.marked,
        dropped: after.verdicts.drops() - before.verdicts.drops(),
    }
}
