//! Recent traffic by pair and link, and the rate that a pair can expect on a path.
//!
//! Events report only the traffic on congested links, so silence does not tell whether a pair has stopped: its last
//! report counts for a while ([`MEMORY`]; the paper's *timeout*, section 6.2, is shorter). Until a move has taken effect and the queues on the old path have
//! [drained](super::moves::DRAIN_TIME), the pair counts on its new path, even if a report names the old one.
//!
//! **The expected rate** of a path (DevoFlow's bottleneck, Curtis et al., SIGCOMM 2011, section 5) is the minimum
//! over its links, that of the source included. Each link gives what other pairs leave over, or a fair share if that is more, which is what TCP
//! takes on a full link. The pair itself is not counted on any link.

use std::collections::BTreeMap;

use thalweg_network::EndpointId;
use thalweg_wire::{BitRate, Nanos, Timestamp};

use super::moves::Moves;
use super::{Alternative, PairRate};
use crate::pair::Pair;
use crate::routes::{LinkNumber, Paths};

/// The known address and rate of a pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PairState {
    /// The number of the destination's address (0 base, others shadow) that its packets have, or will have once the decided
    /// move takes effect. It selects the path.
    pub address: u8,
    /// Its rate when last reported.
    pub rate: BitRate,
    /// Time of that report.
    pub seen: Timestamp,
    /// Time at which the measurement of that rate ended.
    pub measured: Timestamp,
}

/// The known load of one direction of a link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Load {
    rate: u64,
    /// The part of `rate` that [light](LIGHT_SHARE) pairs send.
    light: u64,
    /// Number of pairs that are not light.
    pairs: u32,
}

/// Share of a link's capacity below which a pair does not contend for it. A light pair already has the rate that it
/// needs, and as a contender it would claim half of the link. Hedera's elephants begin there (Al-Fares et al., NSDI
/// 2010, section 4). The acknowledgements of a flow that fills a link take 2.7 %, and 5.5 % if each answers one
/// segment.
pub const LIGHT_SHARE: f64 = 0.1;

impl Load {
    /// Returns the rate that one more pair can expect of a link, in bits per second.
    fn expected(self, capacity: BitRate) -> u64 {
        let residual = capacity.0.saturating_sub(self.rate);
        residual.max(capacity.0.saturating_sub(self.light) / (u64::from(self.pairs) + 1))
    }
}

/// Known loads of all pairs and links.
#[derive(Clone, Debug)]
pub struct Loads {
    known: BTreeMap<Pair, PairState>,
    loads: Vec<Load>,
    /// Loads of the links from hosts to their switches.
    sources: BTreeMap<EndpointId, Load>,
    report_timeout: Nanos,
    /// Pairs not reported for this time are removed.
    memory: Nanos,
    moves: Moves,
}

/// A pair that no event reports counts on its links for so many hold-down times, 25 ms by default. Events report only
/// congested links. When one of two colliding pairs has moved, the other needs a while to fill the link alone, and no
/// event reports it meanwhile. If it were forgotten, its link would look free to the next pair.
pub const MEMORY: u64 = 5;

impl Loads {
    /// Creates an empty state. A rate not reported for `report_timeout` may be replaced by a lower one from another path;
    /// pairs not reported for [`MEMORY`] hold-down times are removed. A moved pair is held down for `hold_down` or
    /// [longer](super::moves); reports within the longer of `hold_down` and [`DRAIN_TIME`](super::moves::DRAIN_TIME) may predate the move.
    pub fn new(report_timeout: Nanos, hold_down: Nanos) -> Loads {
        let memory = report_timeout.max(Nanos(hold_down.0.saturating_mul(MEMORY)));
        Loads {
            known: BTreeMap::new(),
            loads: Vec::new(),
            sources: BTreeMap::new(),
            report_timeout,
            memory,
            moves: Moves::new(hold_down, memory),
        }
    }

    /// Returns the state of a pair, if known.
    pub fn get(&self, pair: Pair) -> Option<PairState> {
        self.known.get(&pair).copied()
    }

    /// Returns the number of known pairs.
    pub fn len(&self) -> usize {
        self.known.len()
    }

    /// Returns whether no pair is known.
    pub fn is_empty(&self) -> bool {
        self.known.is_empty()
    }

    /// Returns the moves of all pairs and flows.
    pub fn moves(&self) -> &Moves {
        &self.moves
    }

    /// Returns whether a pair uses a link.
    pub fn uses(&self, pair: Pair, link: LinkNumber, paths: &mut Paths) -> bool {
        let links = self.get(pair).and_then(|known| paths.of(pair, known.address));
        links.is_some_and(|links| links.contains(&link))
    }

    /// Returns whether a pair's packets seem to be only the acknowledgements of the opposite pair.
    pub fn only_acknowledges(&self, pair: Pair) -> bool {
        let opposite = Pair { source: pair.destination, destination: pair.source };
        let rate = |pair| self.get(pair).map(|known| known.rate.0 as f64);
        matches!((rate(pair), rate(opposite)), (Some(own), Some(data)) if own < LIGHT_SHARE * data)
    }

    /// Records a reported rate. A report with another address is ignored if it was measured before the known rate, and,
    /// until the known rate has timed out, if its rate is lower: on a path that the pair left, a collector may still
    /// report a silent flow. Of any other report only the rate counts for a while after a move (see [`DRAIN_TIME`](super::moves::DRAIN_TIME)).
    pub fn observe(&mut self, observed: &PairRate, now: Timestamp, paths: &mut Paths) {
        let stays = |known: &PairState| {
            known.address != observed.address
                && (known.measured > observed.measured
                    || known.rate > observed.rate && now.since(known.seen) <= self.report_timeout)
        };
        if self.known.get(&observed.pair).is_some_and(stays) {
            return;
        }
        self.take(observed.pair, paths);
        self.moves.observe(observed, now);
        let &PairRate { pair, rate, measured, .. } = observed;
        let address = self.moves.expected_address(pair, now).unwrap_or(observed.address);
        self.put(pair, PairState { address, rate, seen: now, measured }, paths);
    }

    /// Records that a pair was moved.
    pub fn record_move(&mut self, pair: Pair, address: u8, now: Timestamp, paths: &mut Paths) {
        self.moves.record_move(pair, address, now);
        self.place(pair, address, paths);
    }

    /// Records that the last move of a pair was refused or withheld: the pair is still at `address`.
    pub fn record_refusal(&mut self, pair: Pair, address: u8, now: Timestamp, paths: &mut Paths) {
        self.moves.record_refusal(pair, address, now);
        self.place(pair, address, paths);
    }

    /// Forgets that moves were refused or withheld.
    pub fn forget_refusals(&mut self) {
        self.moves.forget_refusals();
    }

    /// Records that a pair is where the decider did not move it: a user pinned it, it was moved back to a working path, or
    /// a move had no effect. It is held down as after a move, but this one does not count.
    pub fn record_placement(&mut self, pair: Pair, address: u8, now: Timestamp, paths: &mut Paths) {
        self.moves.record_placement(pair, address, now);
        self.place(pair, address, paths);
    }

    /// Changes the path on which a pair counts. To evaluate a path without moving the pair, call it again with the old address.
    pub fn place(&mut self, pair: Pair, address: u8, paths: &mut Paths) {
        if let Some(known) = self.take(pair, paths) {
            self.put(pair, PairState { address, ..known }, paths);
        }
    }

    /// Returns the pairs that contend for a link.
    pub fn contenders(&self, link: LinkNumber, paths: &mut Paths) -> Vec<Pair> {
        let capacity = paths.capacity(link);
        let mut contends = |(pair, known): &(&Pair, &PairState)| {
            let uses = |links: &[LinkNumber]| links.contains(&link);
            !is_light(known.rate, capacity) && paths.of(**pair, known.address).is_some_and(uses)
        };
        self.known.iter().filter(|known| contends(known)).map(|(&pair, _)| pair).collect()
    }

    /// Removes pairs that were not reported within the timeout, except those moved within the base hold-down time.
    pub fn expire(&mut self, now: Timestamp, paths: &mut Paths) {
        let is_old = |(pair, known): &(&Pair, &PairState)| {
            now.since(known.seen) > self.memory && !self.moves.moved_recently(**pair, now)
        };
        let old: Vec<Pair> = self.known.iter().filter(is_old).map(|(&pair, _)| pair).collect();
        for pair in old {
            self.take(pair, paths);
        }
        self.moves.expire(now);
    }

    /// Removes everything, for example after a change of the network.
    pub fn clear(&mut self) {
        self.known.clear();
        self.loads.clear();
        self.sources.clear();
        self.moves.clear();
    }

    /// Returns the expected rate by each address that leads to the destination, without counting the pair itself. No path
    /// offers more than what other pairs leave of the source's own link.
    pub fn alternatives(&mut self, pair: Pair, paths: &mut Paths) -> Vec<Alternative> {
        let known = self.take(pair, paths);
        let source = self.sources.get(&pair.source).copied().unwrap_or_default();
        let limit = source.expected(paths.access_capacity(pair.source));
        let alternatives = (0..paths.addresses()).filter_map(|address| {
            let links: Vec<LinkNumber> = paths.of(pair, address)?.to_vec();
            let expected = links.into_iter().map(|link| (self.expected(link, paths), link));
            let (expected, tightest) = expected.min()?;
            Some(Alternative { address, expected: BitRate(expected.min(limit)), tightest })
        });
        let alternatives = alternatives.collect();
        if let Some(known) = known {
            self.put(pair, known, paths);
        }
        alternatives
    }

    /// Returns the rate that one more pair can expect of a link, in bits per second.
    fn expected(&self, link: LinkNumber, paths: &Paths) -> u64 {
        self.loads.get(link.0 as usize).copied().unwrap_or_default().expected(paths.capacity(link))
    }

    fn take(&mut self, pair: Pair, paths: &mut Paths) -> Option<PairState> {
        let known = self.known.remove(&pair)?;
        self.change(pair, &known, paths, |load, contends| {
            load.rate -= known.rate.0;
            load.light -= if contends { 0 } else { known.rate.0 };
            load.pairs -= u32::from(contends);
        });
        Some(known)
    }

    fn put(&mut self, pair: Pair, known: PairState, paths: &mut Paths) {
        self.known.insert(pair, known);
        self.change(pair, &known, paths, |load, contends| {
            load.rate += known.rate.0;
            load.light += if contends { 0 } else { known.rate.0 };
            load.pairs += u32::from(contends);
        });
    }

    fn change(&mut self, pair: Pair, known: &PairState, paths: &mut Paths, change: impl Fn(&mut Load, bool)) {
        self.loads.resize(paths.links(), Load::default());
        let links: Vec<LinkNumber> = paths.of(pair, known.address).unwrap_or_default().to_vec();
        for link in links {
            let contends = !is_light(known.rate, paths.capacity(link));
            change(&mut self.loads[link.0 as usize], contends);
        }
        let contends = !is_light(known.rate, paths.access_capacity(pair.source));
        change(self.sources.entry(pair.source).or_default(), contends);
    }
}

/// Returns whether a pair of this rate is too small to contend for a link.
pub fn is_light(rate: BitRate, capacity: BitRate) -> bool {
    (rate.0 as f64) < LIGHT_SHARE * capacity.0 as f64
}
