//! What is known of flows and links, and what a flow may expect of a path.
//!
//! Events tell of the traffic on congested links only, so what is known is what has been told of late: whatever has not
//! been for a *time-out* is forgotten (Planck, section 6.2). A pair that has been moved is where it was sent, whatever is
//! seen of it, until that has had time to take effect and the queues on its old way to [drain](DRAIN).
//!
//! **What a pair can expect** of a path (DevoFlow's bottleneck, Curtis et al., SIGCOMM 2011, section 5): the least, over the
//! links of the path, of what each would give it: what others leave over, or a fair share if that is more. The second
//! is what TCP takes from those who have all. The pair itself counts on none of the links.

use std::collections::BTreeMap;

use thalweg_wire::{BitRate, Nanos, Timestamp};

use super::{Alternative, Observed};
use crate::pair::Pair;
use crate::routes::{LinkNumber, Paths};

/// Where a pair is, and how fast.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Known {
    /// The address that its packets have, or will have as soon as what was decided takes effect.
    pub address: u8,
    /// How fast it was when it was last seen.
    pub rate: BitRate,
    /// When that was.
    pub seen: Timestamp,
}

/// Where a pair was sent.
#[derive(Clone, Copy, Debug)]
struct Sent {
    address: u8,
    at: Timestamp,
    /// Moves in a row, this one included, of which none was long after the one before.
    moves: u32,
}

impl Sent {
    /// How long the pair settles: the longer, the more often it has been moved in a row, as route flaps are damped (RFC
    /// 2439). Whoever finds every other way better than the one it has would go round for ever otherwise: traffic that
    /// congests no link is not known, so that a way that was left looks free again after a while.
    fn settling(&self, settle: Nanos) -> Nanos {
        let doublings = self.moves.saturating_sub(FREE_MOVES).min(DOUBLINGS);
        Nanos(settle.0.saturating_mul(1 << doublings))
    }

    /// Whether a move at `now` would be one in a row with this.
    fn leads_on(&self, settle: Nanos, now: Timestamp) -> bool {
        now.since(self.at).0 < IN_A_ROW.saturating_mul(self.settling(settle).0)
    }

    /// Whether what is seen of the pair may be from before this move.
    fn drains(&self, settle: Nanos, now: Timestamp) -> bool {
        now.since(self.at) < settle.max(DRAIN)
    }
}

/// What a link carries, as far as is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Load {
    rate: u64,
    /// Of that, what pairs have that are [light](LIGHT).
    light: u64,
    /// Pairs that are not.
    pairs: u32,
}

/// Share of a link's capacity below which a pair does not contend for it: it has what it asks for, and would count as a
/// competitor with a claim to half of the link otherwise. Hedera's elephants begin there (Al-Fares et al., NSDI 2010, section
/// 4); acknowledgements of a flow that fills a link take 2.7 %, and 5.5 % while each answers one segment.
pub const LIGHT: f64 = 0.1;

/// All that is known of flows and links.
#[derive(Clone, Debug)]
pub struct Loads {
    known: BTreeMap<Pair, Known>,
    loads: Vec<Load>,
    timeout: Nanos,
    settle: Nanos,
    /// Where pairs were sent of late.
    sent: BTreeMap<Pair, Sent>,
}

/// For so long after a move packets with the old address tell nothing: queues on the old way hold them yet, while those with the
/// new one have long arrived. Three full buffers of 3.5 ms (Planck, section 5.1) and as long as the move takes.
pub const DRAIN: Nanos = Nanos::from_millis(15);

/// Moves in a row before the time that a pair settles doubles with each.
const FREE_MOVES: u32 = 2;

/// The time that a pair settles doubles so often at most: from 5 ms to 1.28 s.
const DOUBLINGS: u32 = 8;

/// A move is one in a row with the one before if it comes within so many settling times of that.
const IN_A_ROW: u64 = 8;

impl Loads {
    /// Nothing is known. What is not seen for `timeout` is forgotten; what is seen of a pair within `settle` of its
    /// move may be from before it.
    pub fn new(timeout: Nanos, settle: Nanos) -> Loads {
        Loads { known: BTreeMap::new(), loads: Vec::new(), timeout, settle, sent: BTreeMap::new() }
    }

    /// A pair, if it is known.
    pub fn get(&self, pair: Pair) -> Option<Known> {
        self.known.get(&pair).copied()
    }

    /// Pairs that are known.
    pub fn len(&self) -> usize {
        self.known.len()
    }

    /// Whether nothing is known.
    pub fn is_empty(&self) -> bool {
        self.known.is_empty()
    }

    /// Whether a pair was moved so short a time ago that it is left alone: what the move did is not known yet, or it was one
    /// of many in a row.
    pub fn settles(&self, pair: Pair, now: Timestamp) -> bool {
        self.sent.get(&pair).is_some_and(|sent| now.since(sent.at) < sent.settling(self.settle))
    }

    /// Takes in what was seen of a pair.
    pub fn see(&mut self, observed: &Observed, now: Timestamp, paths: &mut Paths) {
        self.take(observed.pair, paths);
        let sent = self.sent.get(&observed.pair).filter(|sent| sent.drains(self.settle, now));
        let address = sent.map_or(observed.address, |sent| sent.address);
        self.put(observed.pair, Known { address, rate: observed.rate, seen: now }, paths);
    }

    /// Takes in that a pair has been sent another way.
    pub fn send(&mut self, pair: Pair, address: u8, now: Timestamp, paths: &mut Paths) {
        let before = self.sent.get(&pair).filter(|sent| sent.leads_on(self.settle, now));
        let moves = before.map_or(0, |sent| sent.moves).saturating_add(1);
        self.sent.insert(pair, Sent { address, at: now, moves });
        self.suppose(pair, address, paths);
    }

    /// Places a pair elsewhere, to see what would come of it.
    pub fn suppose(&mut self, pair: Pair, address: u8, paths: &mut Paths) {
        if let Some(known) = self.take(pair, paths) {
            self.put(pair, Known { address, ..known }, paths);
        }
    }

    /// Pairs that contend for a link.
    pub fn rivals(&self, link: LinkNumber, paths: &mut Paths) -> Vec<Pair> {
        let capacity = paths.capacity(link);
        let mut contends = |(pair, known): &(&Pair, &Known)| {
            let takes = |links: &[LinkNumber]| links.contains(&link);
            !is_light(known.rate, capacity) && paths.of(**pair, known.address).is_some_and(takes)
        };
        self.known.iter().filter(|known| contends(known)).map(|(&pair, _)| pair).collect()
    }

    /// Forgets what has not been seen for too long.
    pub fn forget(&mut self, now: Timestamp, paths: &mut Paths) {
        let moves = |pair: &Pair| self.sent.get(pair).is_some_and(|sent| now.since(sent.at) < self.settle);
        let is_old = |(pair, known): &(&Pair, &Known)| now.since(known.seen) > self.timeout && !moves(pair);
        let old: Vec<Pair> = self.known.iter().filter(is_old).map(|(&pair, _)| pair).collect();
        for pair in old {
            self.take(pair, paths);
        }
        let settle = self.settle;
        self.sent.retain(|_, sent| sent.drains(settle, now) || sent.leads_on(settle, now));
    }

    /// Forgets everything: the network is another.
    pub fn clear(&mut self) {
        self.known.clear();
        self.loads.clear();
        self.sent.clear();
    }

    /// What a pair could expect of each address that leads to its destination, if it were not there itself.
    pub fn alternatives(&mut self, pair: Pair, paths: &mut Paths) -> Vec<Alternative> {
        let known = self.take(pair, paths);
        let ways = (0..paths.addresses()).filter_map(|address| {
            let links: Vec<LinkNumber> = paths.of(pair, address)?.to_vec();
            let expected = links.into_iter().map(|link| (self.expected(link, paths), link));
            let (expected, tightest) = expected.min()?;
            Some(Alternative { address, expected: BitRate(expected), tightest })
        });
        let alternatives = ways.collect();
        if let Some(known) = known {
            self.put(pair, known, paths);
        }
        alternatives
    }

    /// What one more pair could expect of a link, in bits per second.
    fn expected(&self, link: LinkNumber, paths: &Paths) -> u64 {
        let capacity = paths.capacity(link).0;
        let Load { rate, light, pairs } = self.loads.get(link.0 as usize).copied().unwrap_or_default();
        capacity.saturating_sub(rate).max(capacity.saturating_sub(light) / (u64::from(pairs) + 1))
    }

    fn take(&mut self, pair: Pair, paths: &mut Paths) -> Option<Known> {
        let known = self.known.remove(&pair)?;
        self.change(pair, &known, paths, |load, contends| {
            load.rate -= known.rate.0;
            load.light -= if contends { 0 } else { known.rate.0 };
            load.pairs -= u32::from(contends);
        });
        Some(known)
    }

    fn put(&mut self, pair: Pair, known: Known, paths: &mut Paths) {
        self.known.insert(pair, known);
        self.change(pair, &known, paths, |load, contends| {
            load.rate += known.rate.0;
            load.light += if contends { 0 } else { known.rate.0 };
            load.pairs += u32::from(contends);
        });
    }

    fn change(&mut self, pair: Pair, known: &Known, paths: &mut Paths, change: impl Fn(&mut Load, bool)) {
        self.loads.resize(paths.links(), Load::default());
        let links: Vec<LinkNumber> = paths.of(pair, known.address).unwrap_or_default().to_vec();
        for link in links {
            let contends = !is_light(known.rate, paths.capacity(link));
            change(&mut self.loads[link.0 as usize], contends);
        }
    }
}

/// Whether a pair of this rate leaves a link to others.
pub fn is_light(rate: BitRate, capacity: BitRate) -> bool {
    (rate.0 as f64) < LIGHT * capacity.0 as f64
}
