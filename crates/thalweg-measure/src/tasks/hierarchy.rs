//! Hierarchical heavy hitters: prefixes with much traffic of their own.
//!
//! A host above the threshold lifts every network around it above the threshold too. So a prefix is listed only if
//! its traffic *beyond* the longer prefixes that are listed, its conditioned count, is at least the share
//! (Mitzenmacher, Steinke, Thaler 2012, "Hierarchical heavy hitters with the Space Saving algorithm", section 2).
//! Only the closest listed descendants are subtracted: they contain the others.
//!
//! Prefixes end at bytes: /32, /24, /16, /8 for IPv4. For IPv6 the four are /128, /64, /48, /32: a host, a subnet, a
//! site, a provider (RFC 6177; the allocations of registries).
//!
//! Each length has a Count Sketch with its largest keys. Instead of updating all of them for each packet, Ben Basat
//! et al. 2017 ("Constant time updates in hierarchical heavy hitters") update at most a random one. Sampling the rows
//! of all with probability p ([`thalweg_sketch::Nitro`]) costs as little and is unbiased in the same way.
//!
//! **Guarantee.** An estimate has the interval of its sketch. Its conditioned count has the interval that follows if
//! all intervals in the subtraction hold, with one minus the sum of their failure probabilities; if that is zero or
//! less, it has none. Values decide what is listed: a prefix within its error of the threshold may be on either side.

use std::collections::BTreeMap;

use thalweg_sketch::{
    Bound, CountSketch, Counter, Estimate, Hasher, Key, MergeError, RowSketch, Shape, WithTopK,
};

use super::flow_bytes::{FlowBytes, Ranked};
use super::prefix::PrefixLengths;

/// Prefix lengths, longest first.
pub const LEVELS: [PrefixLengths; 4] = {
    const fn level(v4: u8, v6: u8) -> PrefixLengths {
        match PrefixLengths::new(v4, v6) {
            Some(lengths) => lengths,
            None => panic!("a length that no prefix has"),
        }
    }
    [level(32, 128), level(24, 64), level(16, 48), level(8, 32)]
};

/// A Count Sketch and its largest keys for each length of [`LEVELS`].
#[derive(Clone, Debug, PartialEq)]
pub struct Levels<C: Counter> {
    levels: [Ranked<CountSketch<C>>; LEVELS.len()],
}

impl<C: Counter> Levels<C> {
    /// Creates empty sketches of `shape`, each with up to `k` keys.
    pub fn new(shape: Shape, k: usize, hasher: Hasher) -> Levels<C> {
        Levels { levels: std::array::from_fn(|_| WithTopK::new(CountSketch::new(shape, hasher), k)) }
    }

    /// Creates the hierarchy from sketches in the order of [`LEVELS`].
    pub fn from_levels(levels: [Ranked<CountSketch<C>>; LEVELS.len()]) -> Levels<C> {
        Levels { levels }
    }

    /// Returns the sketches in the order of [`LEVELS`].
    pub fn levels(&self) -> &[Ranked<CountSketch<C>>; LEVELS.len()] {
        &self.levels
    }

    /// Returns the sketches, consuming the hierarchy.
    pub fn into_levels(self) -> [Ranked<CountSketch<C>>; LEVELS.len()] {
        self.levels
    }

    /// Returns the memory in bytes.
    pub fn bytes(&self) -> u64 {
        self.levels.iter().map(|level| level.sketch.bytes() + level.top.bytes()).sum()
    }

    /// Merges `other` into this hierarchy.
    ///
    /// # Errors
    /// If shapes or seeds differ.
    pub fn merge(&mut self, other: &Levels<C>) -> Result<(), MergeError> {
        self.levels.iter_mut().zip(&other.levels).try_for_each(|(ours, theirs)| ours.merge(theirs))
    }

    /// Returns the prefixes with at least `threshold` beyond longer listed ones: longest first, then largest first.
    pub fn above(&self, threshold: f64) -> Vec<AbovePrefix> {
        let mut above: Vec<AbovePrefix> = Vec::new();
        // The topmost listed prefixes, by the prefix that contains them at the current level.
        let mut topmost: BTreeMap<FlowBytes, Vec<Estimate>> = BTreeMap::new();
        for (level, lengths) in LEVELS.into_iter().enumerate() {
            let mut inside: BTreeMap<FlowBytes, Vec<Estimate>> = BTreeMap::new();
            for (key, estimates) in topmost {
                inside.entry(key.within(lengths)).or_default().extend(estimates);
            }
            for (key, estimate) in self.levels[level].largest() {
                let beyond = beyond(estimate, inside.get(&key).map_or(&[], Vec::as_slice));
                if beyond.value >= threshold {
                    above.push(AbovePrefix { level, key, estimate, beyond });
                    inside.insert(key, vec![estimate]);
                }
            }
            topmost = inside;
        }
        above
    }
}

/// A prefix of [`Levels::above`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AbovePrefix {
    /// The index in [`LEVELS`].
    pub level: usize,
    /// The address, host bits zero.
    pub key: FlowBytes,
    /// The total weight.
    pub estimate: Estimate,
    /// The weight beyond that of longer prefixes that are listed.
    pub beyond: Estimate,
}

/// Returns the weight of a prefix minus that of parts of it.
fn beyond(whole: Estimate, parts: &[Estimate]) -> Estimate {
    let value = whole.value - parts.iter().map(|part| part.value).sum::<f64>();
    Estimate { value, bound: bound_beyond(whole, parts) }.at_least_zero()
}

fn bound_beyond(whole: Estimate, parts: &[Estimate]) -> Bound {
    let Bound::Interval { mut lower, mut upper, mut confidence } = whole.bound else { return whole.bound };
    for part in parts {
        let Bound::Interval { lower: min, upper: max, confidence: holds } = part.bound else {
            return part.bound;
        };
        lower -= max;
        upper -= min;
        confidence -= 1.0 - holds;
    }
    if confidence > 0.0 { Bound::Interval { lower, upper, confidence } } else { Bound::Unknown }
}

impl FlowBytes {
    /// Returns the address with host bits zero.
    fn within(&self, lengths: PrefixLengths) -> FlowBytes {
        let bytes = self.as_bytes();
        let mut network = [0; 16];
        network[..bytes.len()].copy_from_slice(bytes);
        let bits = if bytes.len() == 4 { lengths.v4() } else { lengths.v6() };
        let network = u128::from_be_bytes(network) & u128::MAX << (128 - bits);
        FlowBytes::from_bytes(&network.to_be_bytes()[..bytes.len()]).expect("an address is short enough")
    }
}
