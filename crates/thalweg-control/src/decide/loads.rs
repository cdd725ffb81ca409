//! What is known of flows and links, and what a flow may expect of a path.
//!
//! Events tell of the traffic on congested links only, so what is known is what has been told of late: whatever has not
//! been for a *time-out* is forgotten (Planck, section 6.2). A pair that has been moved is where it was sent, whatever is
//! seen of it, until that has had time to take effect.
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
    /// When it was last sent another way.
    pub moved: Option<Timestamp>,
}

/// What a link carries, as far as is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Load {
    rate: u64,
    pairs: u32,
}

/// All that is known of flows and links.
#[derive(Clone, Debug)]
pub struct Loads {
    known: BTreeMap<Pair, Known>,
    loads: Vec<Load>,
    timeout: Nanos,
    settle: Nanos,
}

impl Loads {
    /// Nothing is known. What is not seen for `timeout` is forgotten; what is seen of a pair within `settle` of its
    /// move may be from before it.
    pub fn new(timeout: Nanos, settle: Nanos) -> Loads {
        Loads { known: BTreeMap::new(), loads: Vec::new(), timeout, settle }
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

    /// Whether a pair was moved so short a time ago that what it did is not known yet.
    pub fn settles(&self, known: &Known, now: Timestamp) -> bool {
        known.moved.is_some_and(|moved| now.since(moved) < self.settle)
    }

    /// Takes in what was seen of a pair.
    pub fn see(&mut self, observed: &Observed, now: Timestamp, paths: &mut Paths) {
        let before = self.take(observed.pair, paths);
        let settles = before.is_some_and(|known| self.settles(&known, now));
        let address = match before {
            Some(known) if settles => known.address,
            _ => observed.address,
        };
        let moved = before.and_then(|known| known.moved);
        self.put(observed.pair, Known { address, rate: observed.rate, seen: now, moved }, paths);
    }

    /// Takes in that a pair has been sent another way.
    pub fn send(&mut self, pair: Pair, address: u8, now: Timestamp, paths: &mut Paths) {
        if let Some(known) = self.take(pair, paths) {
            self.put(pair, Known { address, moved: Some(now), ..known }, paths);
        }
    }

    /// Forgets what has not been seen for too long.
    pub fn forget(&mut self, now: Timestamp, paths: &mut Paths) {
        let is_old = |known: &Known| now.since(known.seen) > self.timeout && !self.settles(known, now);
        let old: Vec<Pair> =
            self.known.iter().filter(|(_, known)| is_old(known)).map(|(&pair, _)| pair).collect();
        for pair in old {
            self.take(pair, paths);
        }
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
        let Load { rate, pairs } = self.loads.get(link.0 as usize).copied().unwrap_or_default();
        capacity.saturating_sub(rate).max(capacity / (u64::from(pairs) + 1))
    }

    fn take(&mut self, pair: Pair, paths: &mut Paths) -> Option<Known> {
        let known = self.known.remove(&pair)?;
        self.change(pair, &known, paths, |load| {
            load.rate -= known.rate.0;
            load.pairs -= 1;
        });
        Some(known)
    }

    fn put(&mut self, pair: Pair, known: Known, paths: &mut Paths) {
        self.known.insert(pair, known);
        self.change(pair, &known, paths, |load| {
            load.rate += known.rate.0;
            load.pairs += 1;
        });
    }

    fn change(&mut self, pair: Pair, known: &Known, paths: &mut Paths, change: impl Fn(&mut Load)) {
        self.loads.resize(paths.links(), Load::default());
        for link in paths.of(pair, known.address).unwrap_or_default() {
            change(&mut self.loads[link.0 as usize]);
        }
    }
}
