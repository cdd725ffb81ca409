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
//! **Limit.** At most [`PLACES`] observations; further ones are rejected and report nothing.

use thalweg_network::{RouterId, Topology};
use thalweg_wire::{EthernetAddresses, Packet, Timestamp};

/// The maximum number of concurrent observations.
pub const PLACES: usize = 512;

/// The number of slots to probe, starting at the one that the hash selects.
const PROBES: usize = 8;

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
    SetOut {
        /// The time of the first of them.
        first: Timestamp,
        /// The number of packets.
        packets: u32,
    },
    /// The first packet arrived at the destination's switch at the report's time.
    Arrived,
}

#[derive(Clone, Copy, Debug)]
struct Place {
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

impl Place {
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
        let set_out = self.source.filter(|source| source.packets >= self.observation.packets);
        let set_out = set_out
            .map(|Source { packets, first, last }| self.report(Progress::SetOut { first, packets }, last));
        let arrived = self.destination.map(|Destination { since, arrived }| match arrived {
            Some(time) => self.report(Progress::Arrived, time),
            None => self.report(Progress::Awaiting { since }, now),
        });
        set_out.into_iter().chain(arrived)
    }
}

/// The observations of one collector.
#[derive(Clone, Debug, Default)]
pub(super) struct Arrivals {
    /// Empty until the first observation.
    places: Vec<Option<Place>>,
    /// A bit for each slot that the hash of an open observation selects.
    filter: [u64; PLACES / 64],
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
        let is_here = |mac| {
            topology
                .endpoint_with_mac(mac)
                .is_some_and(|(endpoint, _)| topology.router_of(endpoint) == router)
        };
        let ethernet = observation.ethernet;
        let (has_source, has_destination) = (is_here(ethernet.source), is_here(ethernet.destination));
        if !has_source && !has_destination {
            return false;
        }
        if self.places.is_empty() {
            self.places = vec![None; PLACES];
        }
        self.end_late(now);
        let probes = probes(hash(&ethernet));
        let is_same = |place: &Place| place.observation.ethernet == ethernet;
        let same = probes.clone().find(|&number| self.places[number].as_ref().is_some_and(is_same));
        let Some(number) = same.or_else(|| probes.clone().find(|&number| self.places[number].is_none()))
        else {
            return false;
        };
        let before = self.places[number].filter(|before| before.observation.id == observation.id);
        let fresh = Source { packets: 0, first: now, last: now };
        let source = before
            .filter(|before| before.observation.from >= observation.from)
            .and_then(|before| before.source)
            .unwrap_or(fresh);
        let awaiting = Destination { since: now, arrived: None };
        let destination = before.and_then(|before| before.destination).unwrap_or(awaiting);
        let place = Place {
            observation,
            source: has_source.then_some(source),
            destination: has_destination.then_some(destination),
        };
        if self.waiting.len() < PLACES {
            self.waiting.extend(place.reports(now));
        }
        self.places[number] = Some(place);
        self.refresh();
        true
    }

    /// Checks packets in order, and appends reports.
    #[inline(never)]
    pub(super) fn take(&mut self, packets: &[Packet], reports: &mut Vec<ArrivalReport>) {
        reports.append(&mut self.waiting);
        for packet in packets {
            let hash = hash(&packet.ethernet);
            if self.filter[hash / 64] >> (hash % 64) & 1 == 1 {
                self.see(hash, packet, reports);
            }
        }
        if let Some(last) = packets.last() {
            self.end_late(last.time);
        }
    }

    /// Advances the time without packets, and appends reports.
    pub(super) fn advance(&mut self, now: Timestamp, reports: &mut Vec<ArrivalReport>) {
        reports.append(&mut self.waiting);
        self.end_late(now);
    }

    fn see(&mut self, hash: usize, packet: &Packet, reports: &mut Vec<ArrivalReport>) {
        let (ethernet, time) = (packet.ethernet, packet.time);
        let is_it = |place: &Place| place.observation.ethernet == ethernet;
        let Some(number) = probes(hash).find(|&number| self.places[number].as_ref().is_some_and(is_it))
        else {
            return;
        };
        let place = self.places[number].as_mut().expect("found");
        let Observation { from, packets, .. } = place.observation;
        if let Some(source) = place.source.as_mut().filter(|source| source.packets < packets && time >= from)
        {
            if source.packets == 0 {
                source.first = time;
            }
            (source.packets, source.last) = (source.packets + 1, time);
            if source.packets == packets {
                let progress = Progress::SetOut { first: source.first, packets };
                reports.push(ArrivalReport { ethernet, progress, time });
            }
        }
        if let Some(destination) = place.destination.as_mut().filter(|it| it.arrived.is_none()) {
            destination.arrived = Some(time);
            reports.push(ArrivalReport { ethernet, progress: Progress::Arrived, time });
        }
        if !place.is_open() {
            self.refresh();
        }
    }

    /// Removes expired observations.
    fn end_late(&mut self, now: Timestamp) {
        if now < self.next_end {
            return;
        }
        for place in &mut self.places {
            *place = place.take_if(|place| place.observation.until > now);
        }
        self.refresh();
    }

    /// Recomputes filter, count and next end after a change.
    fn refresh(&mut self) {
        (self.filter, self.open, self.next_end) = ([0; PLACES / 64], 0, Timestamp(u64::MAX));
        for place in self.places.iter().flatten() {
            self.next_end = self.next_end.min(place.observation.until);
            if place.is_open() {
                let hash = hash(&place.observation.ethernet);
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
    (mixed >> (64 - PLACES.ilog2())) as usize
}

fn probes(first: usize) -> impl Iterator<Item = usize> + Clone {
    (first..first + PROBES).map(|place| place % PLACES)
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
                tcp_sequence: 0,
                tcp_flags: TcpFlags::default(),
                fragment: Fragment::Whole,
                notes: PacketNotes::default(),
            };
            times.iter().map(packet).collect()
        }
    }

    fn taken(arrivals: &mut Arrivals, packets: &[Packet]) -> Vec<(Progress, u64)> {
        let mut reports = Vec::new();
        arrivals.take(packets, &mut reports);
        reports.iter().map(|report| (report.progress, report.time.0)).collect()
    }

    const AWAITING: Progress = Progress::Awaiting { since: Timestamp(5) };

    fn set_out(first: u64) -> Progress {
        Progress::SetOut { first: Timestamp(first), packets: 3 }
    }

    #[test]
    fn the_source_switch_reports_enough_departures() {
        let mut its = Watched::new();
        let packets = its.packets(1, &[10, 11]);
        assert_eq!(taken(&mut its.source, &packets), []);
        let other = its.packets(0, &[12]);
        assert_eq!(taken(&mut its.source, &other), [], "another address is another path");
        let packets = its.packets(1, &[13, 14]);
        assert_eq!(taken(&mut its.source, &packets), [(set_out(10), 13)]);
        assert!(!its.source.is_active(), "finished");
    }

    #[test]
    fn the_destination_switch_reports_the_first_arrival() {
        let mut its = Watched::new();
        let packets = its.packets(1, &[20, 21]);
        assert_eq!(taken(&mut its.destination, &packets), [(AWAITING, 5), (Progress::Arrived, 20)]);
        assert!(!its.destination.is_active());
    }

    #[test]
    fn a_repeated_observation_reports_progress() {
        let mut its = Watched::new();
        let again = observation(&its.topology);
        taken(&mut its.destination, &[]);
        its.observe(again, 50);
        assert_eq!(taken(&mut its.destination, &[]), [(AWAITING, 50)], "nothing has arrived up to now");
        let packets = its.packets(1, &[60, 61, 62]);
        assert_eq!(taken(&mut its.source, &packets), [(set_out(60), 62)]);
        assert_eq!(taken(&mut its.destination, &packets), [(Progress::Arrived, 60)]);
        its.observe(again, 70);
        assert_eq!(taken(&mut its.source, &[]), [(set_out(60), 62)]);
        assert_eq!(taken(&mut its.destination, &[]), [(Progress::Arrived, 60)]);
    }

    #[test]
    fn a_new_number_or_later_time_restarts_the_count() {
        let mut its = Watched::new();
        let packets = its.packets(1, &[10, 11, 12]);
        taken(&mut its.source, &packets);
        taken(&mut its.destination, &packets);
        let later = Observation { from: Timestamp(20), ..observation(&its.topology) };
        its.observe(later, 15);
        let packets = its.packets(1, &[16, 21, 22, 23]);
        assert_eq!(taken(&mut its.source, &packets), [(set_out(21), 23)]);
        assert_eq!(taken(&mut its.destination, &packets), [(Progress::Arrived, 10)]);
        its.observe(Observation { id: 2, ..later }, 30);
        let waits = Progress::Awaiting { since: Timestamp(30) };
        assert_eq!(taken(&mut its.destination, &[]), [(waits, 30)]);
    }

    #[test]
    fn an_observation_ends_at_its_time_limit() {
        let mut its = Watched::new();
        let packets = its.packets(0, &[999, 1_000]);
        taken(&mut its.source, &packets);
        assert!(!its.source.is_active() && its.source.places.iter().flatten().next().is_none());
    }

    #[test]
    fn a_switch_without_either_end_observes_nothing() {
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
        assert!((PLACES / 2..=PLACES).contains(&accepted), "{accepted} of {PLACES}");
        assert_eq!(arrivals.open, accepted);
    }
}
