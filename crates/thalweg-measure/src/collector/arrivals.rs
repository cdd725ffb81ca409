//! Path confirmation: counts the departures of observed address pairs at the source's switch, and reports the first
//! arrival at the destination's switch.
//!
//! A rerouted pair is observed at both switches. The collector of the source's switch reports when the requested
//! number of packets has departed; that of the destination's switch reports the first packet that arrives. Repeating
//! an observation returns the progress so far at once, including that [nothing has arrived](Progress::Awaiting), and
//! since when no arrival can have been missed. So the loss of a report proves nothing.
//!
//! **Cost.** None while nothing is observed: one test per batch. Otherwise a second pass over the packets of a batch,
//! which are in the cache: one test of a 64-byte filter per packet, and up to eight slots for those that pass it,
//! until everything has been reported. No allocation per packet.
//!
//! **Limit.** At most [`OBSERVATION_SLOTS`] observations; further ones are rejected and report nothing.

use thalweg_network::{RouterId, Topology};
use thalweg_wire::{EthernetAddresses, Packet, Timestamp};

/// The maximum number of concurrent observations.
pub const OBSERVATION_SLOTS: usize = 512;

/// The number of slots to probe, starting at the one that the hash selects.
const MAX_PROBES: usize = 8;

/// A request to observe packets with these addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Observation {
    /// The addresses of a host pair, including which address of the destination.
    pub ethernet: EthernetAddresses,
    /// An observation with the same number continues; another number restarts it.
    pub id: u64,
    /// Packets that depart before this time are not counted. A later time restarts the count.
    pub from: Timestamp,
    /// The number of departed packets to report; at least one.
    pub packets: u32,
    /// The observation ends when packet time passes this.
    pub until: Timestamp,
}

/// A collector's report on an observation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArrivalReport {
    /// The observed addresses.
    pub ethernet: EthernetAddresses,
    /// The progress.
    pub progress: Progress,
    /// The packet time of the progress.
    pub time: Timestamp,
}

/// The progress of an observation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// At the destination's switch nothing has arrived since then, up to the report's time.
    Awaiting {
        /// From this time on no arrival is missed.
        since: Timestamp,
    },
    /// The requested number of packets has departed at the source's switch, the last of them at the report's time.
    Departed {
        /// The time of the first of them.
        first: Timestamp,
        /// The number of packets.
        packets: u32,
    },
    /// The first packet arrived at the destination's switch at the report's time.
    Arrived,
}

#[derive(Clone, Copy, Debug)]
struct ObservationSlot {
    observation: Observation,
    /// The progress at the source's switch, if the source is attached to this one.
    source: Option<Source>,
    /// The progress at the destination's switch, if the destination is attached to this one.
    destination: Option<Destination>,
}

#[derive(Clone, Copy, Debug)]
struct Source {
    packets: u32,
    first: Timestamp,
    last: Timestamp,
}

#[derive(Clone, Copy, Debug)]
struct Destination {
    since: Timestamp,
    arrived: Option<Timestamp>,
}

impl ObservationSlot {
    /// Whether packets still need to be checked.
    fn is_open(&self) -> bool {
        let counts = self.source.is_some_and(|source| source.packets < self.observation.packets);
        counts || self.destination.is_some_and(|destination| destination.arrived.is_none())
    }

    fn report(&self, progress: Progress, time: Timestamp) -> ArrivalReport {
        ArrivalReport { ethernet: self.observation.ethernet, progress, time }
    }

    /// Returns the progress so far.
    fn reports(&self, now: Timestamp) -> impl Iterator<Item = ArrivalReport> + use<> {
        let departed = self.source.filter(|source| source.packets >= self.observation.packets);
        let departed = departed
            .map(|Source { packets, first, last }| self.report(Progress::Departed { first, packets }, last));
        let arrived = self.destination.map(|Destination { since, arrived }| match arrived {
            Some(time) => self.report(Progress::Arrived, time),
            None => self.report(Progress::Awaiting { since }, now),
        });
        departed.into_iter().chain(arrived)
    }
}

/// The observations of one collector.
#[derive(Clone, Debug, Default)]
pub(super) struct Arrivals {
    /// Empty until the first observation.
    slots: Vec<Option<ObservationSlot>>,
    /// A bit for each slot that the hash of an open observation selects.
    filter: [u64; OBSERVATION_SLOTS / 64],
    /// The number of observations that still need packets.
    open: usize,
    /// The earliest end of an observation.
    next_end: Timestamp,
    /// Reports to send with the next batch.
    waiting: Vec<ArrivalReport>,
}

impl Arrivals {
    /// Whether packets need to be checked, or reports are pending.
    #[inline(always)]
    pub(super) fn is_active(&self) -> bool {
        self.open > 0 || !self.waiting.is_empty()
    }

    /// Starts an observation at a switch at `now`, replacing one of the same addresses. Returns `false` if neither
    /// end is attached to the switch, or no slot is free.
    pub(super) fn observe(
        &mut self,
        observation: Observation,
        topology: &Topology,
        router: RouterId,
        now: Timestamp,
    ) -> bool {
        let is_attached = |mac| {
            topology
                .endpoint_with_mac(mac)
                .is_some_and(|(endpoint, _)| topology.router_of(endpoint) == router)
        };
        let ethernet = observation.ethernet;
        let (has_source, has_destination) = (is_attached(ethernet.source), is_attached(ethernet.destination));
        if !has_source && !has_destination {
            return false;
        }
        if self.slots.is_empty() {
            self.slots = vec![None; OBSERVATION_SLOTS];
        }
        self.remove_expired(now);
        let probes = probes(hash(&ethernet));
        let is_same = |slot: &ObservationSlot| slot.observation.ethernet == ethernet;
        let same = probes.clone().find(|&number| self.slots[number].as_ref().is_some_and(is_same));
        let Some(number) = same.or_else(|| probes.clone().find(|&number| self.slots[number].is_none()))
        else {
            return false;
        };
        let before = self.slots[number].filter(|before| before.observation.id == observation.id);
        let fresh = Source { packets: 0, first: now, last: now };
        let source = before
            .filter(|before| before.observation.from >= observation.from)
            .and_then(|before| before.source)
            .unwrap_or(fresh);
        let awaiting = Destination { since: now, arrived: None };
        let destination = before.and_then(|before| before.destination).unwrap_or(awaiting);
        let slot = ObservationSlot {
            observation,
            source: has_source.then_some(source),
            destination: has_destination.then_some(destination),
        };
        if self.waiting.len() < OBSERVATION_SLOTS {
            self.waiting.extend(slot.reports(now));
        }
        self.slots[number] = Some(slot);
        self.refresh();
        true
    }

    /// Checks packets in order, and appends reports.
    #[inline(never)]
    pub(super) fn process(&mut self, packets: &[Packet], reports: &mut Vec<ArrivalReport>) {
        reports.append(&mut self.waiting);
        for packet in packets {
            let hash = hash(&packet.ethernet);
            if self.filter[hash / 64] >> (hash % 64) & 1 == 1 {
                self.check_packet(hash, packet, reports);
            }
        }
        if let Some(last) = packets.last() {
            self.remove_expired(last.time);
        }
    }

    /// Advances the time without packets, and appends reports.
    pub(super) fn advance(&mut self, now: Timestamp, reports: &mut Vec<ArrivalReport>) {
        reports.append(&mut self.waiting);
        self.remove_expired(now);
    }

    fn check_packet(&mut self, hash: usize, packet: &Packet, reports: &mut Vec<ArrivalReport>) {
        let (ethernet, time) = (packet.ethernet, packet.time);
        let is_it = |slot: &ObservationSlot| slot.observation.ethernet == ethernet;
        let Some(number) = probes(hash).find(|&number| self.slots[number].as_ref().is_some_and(is_it)) else {
            return;
        };
        let slot = self.slots[number].as_mut().expect("found");
        let Observation { from, packets, .. } = slot.observation;
        if let Some(source) = slot.source.as_mut().filter(|source| source.packets < packets && time >= from) {
            if source.packets == 0 {
                source.first = time;
            }
            (source.packets, source.last) = (source.packets + 1, time);
            if source.packets == packets {
                let progress = Progress::Departed { first: source.first, packets };
                reports.push(ArrivalReport { ethernet, progress, time });
            }
        }
        if let Some(destination) = slot.destination.as_mut().filter(|it| it.arrived.is_none()) {
            destination.arrived = Some(time);
            reports.push(ArrivalReport { ethernet, progress: Progress::Arrived, time });
        }
        if !slot.is_open() {
            self.refresh();
        }
    }

    /// Removes expired observations.
    fn remove_expired(&mut self, now: Timestamp) {
        if now < self.next_end {
            return;
        }
        for slot in &mut self.slots {
            *slot = slot.take_if(|slot| slot.observation.until > now);
        }
        self.refresh();
    }

    /// Recomputes filter, count and next end after a change.
    fn refresh(&mut self) {
        (self.filter, self.open, self.next_end) = ([0; OBSERVATION_SLOTS / 64], 0, Timestamp(u64::MAX));
        for slot in self.slots.iter().flatten() {
            self.next_end = self.next_end.min(slot.observation.until);
            if slot.is_open() {
                let hash = hash(&slot.observation.ethernet);
                self.filter[hash / 64] |= 1 << (hash % 64);
                self.open += 1;
            }
        }
    }
}

/// The first slot to probe for the addresses.
#[inline(always)]
fn hash(ethernet: &EthernetAddresses) -> usize {
    let [a, b, c, d, e, f] = ethernet.destination.0;
    let [g, h, i, j, k, l] = ethernet.source.0;
    let destination = u64::from_le_bytes([a, b, c, d, e, f, 0, 0]);
    let source = u64::from_le_bytes([0, 0, g, h, i, j, k, l]);
    // Fibonacci hashing (Knuth, TAOCP 3, section 6.4): the upper bits depend on all of them.
    let mixed = (destination ^ source.rotate_left(23)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> (64 - OBSERVATION_SLOTS.ilog2())) as usize
}

fn probes(first: usize) -> impl Iterator<Item = usize> + Clone {
    (first..first + MAX_PROBES).map(|slot| slot % OBSERVATION_SLOTS)
}

#[cfg(test)]
mod tests {
    use thalweg_network::EndpointId;
    use thalweg_network::topology::shapes::{Tiers, leaf_spine};
    use thalweg_wire::{FlowKey, Fragment, PacketNotes, Protocol, TcpFlags};

    use super::*;

    const ENDS: [EndpointId; 2] = [EndpointId(0), EndpointId(2)];

    struct Watched {
        topology: Topology,
        source: Arrivals,
        destination: Arrivals,
    }

    fn topology() -> Topology {
        leaf_spine(2, 2, 2, Tiers::default()).unwrap()
    }

    fn ethernet(topology: &Topology, address: u8) -> EthernetAddresses {
        let [source, destination] = ENDS;
        EthernetAddresses { destination: topology.mac(destination, address), source: topology.mac(source, 0) }
    }

    fn observation(topology: &Topology) -> Observation {
        let (from, until) = (Timestamp(0), Timestamp(1_000));
        Observation { ethernet: ethernet(topology, 1), id: 1, from, packets: 3, until }
    }

    impl Watched {
        fn new() -> Watched {
            let (source, destination) = (Arrivals::default(), Arrivals::default());
            assert!(!source.is_active());
            let mut watched = Watched { topology: topology(), source, destination };
            watched.observe(observation(&watched.topology), 5);
            watched
        }

        /// At both switches.
        fn observe(&mut self, observation: Observation, now: u64) {
            let Watched { topology, source, destination } = self;
            for (arrivals, end) in [source, destination].into_iter().zip(ENDS) {
                assert!(arrivals.observe(observation, topology, topology.router_of(end), Timestamp(now)));
            }
        }

        fn packets(&self, address: u8, times: &[u64]) -> Vec<Packet> {
            let ethernet = ethernet(&self.topology, address);
            let packet = |&time: &u64| Packet {
                time: Timestamp(time),
                key: FlowKey::v4(0, 0, 0, 0, Protocol::TCP),
                ethernet,
                ip_length: 1_500,
                payload_length: 1_460,
                identification: 0,
                tcp_sequence: 0,
                tcp_flags: TcpFlags::default(),
                fragment: Fragment::Whole,
                notes: PacketNotes::default(),
            };
            times.iter().map(packet).collect()
        }
    }

    fn reported(arrivals: &mut Arrivals, packets: &[Packet]) -> Vec<(Progress, u64)> {
        let mut reports = Vec::new();
        arrivals.process(packets, &mut reports);
        reports.iter().map(|report| (report.progress, report.time.0)).collect()
    }

    const AWAITING: Progress = Progress::Awaiting { since: Timestamp(5) };

    fn departed(first: u64) -> Progress {
        Progress::Departed { first: Timestamp(first), packets: 3 }
    }

    #[test]
    fn the_source_switch_reports_a_departure_after_enough_packets() {
        let mut its = Watched::new();
        let packets = its.packets(1, &[10, 11]);
        assert_eq!(reported(&mut its.source, &packets), []);
        let other = its.packets(0, &[12]);
        assert_eq!(reported(&mut its.source, &other), [], "another address is another path");
        let packets = its.packets(1, &[13, 14]);
        assert_eq!(reported(&mut its.source, &packets), [(departed(10), 13)]);
        assert!(!its.source.is_active(), "finished");
    }

    #[test]
    fn the_destination_switch_reports_the_first_arrival() {
        let mut its = Watched::new();
        let packets = its.packets(1, &[20, 21]);
        assert_eq!(reported(&mut its.destination, &packets), [(AWAITING, 5), (Progress::Arrived, 20)]);
        assert!(!its.destination.is_active());
    }

    #[test]
    fn a_repeated_observation_reports_progress() {
        let mut its = Watched::new();
        let again = observation(&its.topology);
        reported(&mut its.destination, &[]);
        its.observe(again, 50);
        assert_eq!(reported(&mut its.destination, &[]), [(AWAITING, 50)], "nothing has arrived up to now");
        let packets = its.packets(1, &[60, 61, 62]);
        assert_eq!(reported(&mut its.source, &packets), [(departed(60), 62)]);
        assert_eq!(reported(&mut its.destination, &packets), [(Progress::Arrived, 60)]);
        its.observe(again, 70);
        assert_eq!(reported(&mut its.source, &[]), [(departed(60), 62)]);
        assert_eq!(reported(&mut its.destination, &[]), [(Progress::Arrived, 60)]);
    }

    #[test]
    fn a_newer_observation_restarts_the_packet_count() {
        let mut its = Watched::new();
        let packets = its.packets(1, &[10, 11, 12]);
        reported(&mut its.source, &packets);
        reported(&mut its.destination, &packets);
        let later = Observation { from: Timestamp(20), ..observation(&its.topology) };
        its.observe(later, 15);
        let packets = its.packets(1, &[16, 21, 22, 23]);
        assert_eq!(reported(&mut its.source, &packets), [(departed(21), 23)]);
        assert_eq!(reported(&mut its.destination, &packets), [(Progress::Arrived, 10)]);
        its.observe(Observation { id: 2, ..later }, 30);
        let waits = Progress::Awaiting { since: Timestamp(30) };
        assert_eq!(reported(&mut its.destination, &[]), [(waits, 30)]);
    }

    #[test]
    fn an_observation_ends_at_its_time_limit() {
        let mut its = Watched::new();
        let packets = its.packets(0, &[999, 1_000]);
        reported(&mut its.source, &packets);
        assert!(!its.source.is_active() && its.source.slots.iter().flatten().next().is_none());
    }

    #[test]
    fn a_switch_with_neither_source_nor_destination_observes_nothing() {
        let topology = topology();
        let mut arrivals = Arrivals::default();
        assert!(!arrivals.observe(observation(&topology), &topology, RouterId(2), Timestamp(0)), "a spine");
        assert!(!arrivals.is_active());
    }

    #[test]
    fn observations_beyond_the_limit_are_rejected() {
        let topology = leaf_spine(2, 2, 40, Tiers::default()).unwrap();
        let mut arrivals = Arrivals::default();
        let mut accepted = 0;
        for destination in 40..80u16 {
            for address in 0..32 {
                let ethernet = EthernetAddresses {
                    destination: topology.mac(EndpointId(destination), address),
                    source: topology.mac(EndpointId(0), 0),
                };
                let observation = Observation { ethernet, ..observation(&topology) };
                accepted += usize::from(arrivals.observe(observation, &topology, RouterId(0), Timestamp(0)));
            }
        }
        assert!(
            (OBSERVATION_SLOTS / 2..=OBSERVATION_SLOTS).contains(&accepted),
            "{accepted} of {OBSERVATION_SLOTS}"
        );
        assert_eq!(arrivals.open, accepted);
    }
}
