//! Selects the (packet, row) pairs to update: geometric gaps over the flattened sequence.
//!
//! NitroSketch (Liu et al. 2019, algorithm 1) treats a stream as the sequence of pairs (packet 0, row 0), (packet 0,
//! row 1), ... and draws the distance to the next pair to update, instead of tossing a coin for each. The distance is
//! geometric, P(g) = p (1-p)^(g-1) for g = 1, 2, ..., so each pair is updated with probability p, independently of
//! all others. Only sampled pairs cost time.
//!
//! A draw is a uniform 64-bit number, looked up in the distribution function, which is stored with 64 bits. A table
//! of 1,024 entries gives the starting point, seldom more than one step from the result. A short table of precomputed
//! draws would be as fast but biases the rate; here a gap's probability is accurate to 2^-64. The tables are built
//! when a probability is first used, and shared by all samplers ([`table_bytes`]).

use std::sync::OnceLock;

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

use crate::probability::Probability;

/// Draws the pairs to update.
#[derive(Clone, Debug)]
pub(crate) struct Sampler {
    probability: Probability,
    draws: Xoshiro256PlusPlus,
    gaps: &'static Gaps,
    /// Pairs to skip before the next one to update.
    skip: u64,
}

impl Sampler {
    pub(crate) fn new(probability: Probability, seed: u64) -> Sampler {
        let mut sampler = Sampler {
            probability,
            draws: Xoshiro256PlusPlus::seed_from_u64(seed),
            gaps: Gaps::of(probability),
            skip: 0,
        };
        sampler.skip = sampler.gap() - 1;
        sampler
    }

    #[inline(always)]
    pub(crate) fn probability(&self) -> Probability {
        self.probability
    }

    /// Samples with another probability from the next pair on. The current gap is drawn again, which does not bias
    /// the following pairs: geometric gaps have no memory.
    pub(crate) fn set_probability(&mut self, probability: Probability) {
        if probability != self.probability {
            self.probability = probability;
            self.gaps = Gaps::of(probability);
            self.skip = self.gap() - 1;
        }
    }

    /// Returns how many pairs come before the next one to update.
    #[inline(always)]
    pub(crate) fn skip(&self) -> u64 {
        self.skip
    }

    /// Passes `pairs` that come before the next one to update: at most [`Sampler::skip`].
    #[inline(always)]
    pub(crate) fn pass(&mut self, pairs: u64) {
        self.skip -= pairs;
    }

    /// Returns the next pair to update, as an index in a sequence of `pairs`, or `None` if it lies beyond the end.
    /// Call it with the same sequence until `None`: the rest of the gap then carries over to the next sequence.
    #[inline(always)]
    pub(crate) fn next(&mut self, position: &mut u64, pairs: u64) -> Option<u64> {
        let pair = *position + self.skip;
        if pair >= pairs {
            self.skip = pair - pairs;
            return None;
        }
        *position = pair + 1;
        self.skip = self.gap() - 1;
        Some(pair)
    }

    #[inline(always)]
    fn gap(&mut self) -> u64 {
        self.gaps.look_up(self.draws.next_u64())
    }
}

/// The geometric distribution function, inverted.
#[derive(Clone, Debug)]
pub(super) struct Gaps {
    /// `below[g - 1]` is P(gap <= g) as a share of 2^64; the last is all ones.
    pub(super) below: Vec<u64>,
    /// The gap at the beginning of each of 1,024 equal parts of the draws.
    pub(super) first: Vec<u16>,
}

const PARTS_LOG2: u32 = 10;

/// Returns the memory of the tables for sampling with probabilities down to `min_probability`, in bytes; all samplers share
/// them.
pub fn table_bytes(min_probability: Probability) -> u64 {
    let used = (0..=min_probability.log2_inverse()).filter_map(Probability::new);
    used.map(|probability| Gaps::of(probability).bytes()).sum()
}

impl Gaps {
    /// Returns the shared table of a probability.
    pub(super) fn of(probability: Probability) -> &'static Gaps {
        static ALL: [OnceLock<Gaps>; Probability::MIN.log2_inverse() as usize + 1] =
            [const { OnceLock::new() }; Probability::MIN.log2_inverse() as usize + 1];
        ALL[usize::from(probability.log2_inverse())].get_or_init(|| Gaps::new(probability))
    }

    fn bytes(&self) -> u64 {
        (size_of_val(&*self.below) + size_of_val(&*self.first)) as u64
    }

    fn new(probability: Probability) -> Gaps {
        let mut below = Vec::new();
        // P(gap > g) = (1 - p)^g, in units of 2^-64, by exact steps: rest -= rest / 2^k, rounded up so that it
        // reaches zero.
        let mut rest = 1u128 << 64;
        while rest > 1 {
            rest -= rest.div_ceil(u128::from(probability.inverse()));
            below.push(((1u128 << 64) - rest - 1) as u64);
        }
        below.pop();
        below.push(u64::MAX);
        below.shrink_to_fit();
        let mut first = Vec::with_capacity(1 << PARTS_LOG2);
        let mut gap = 1;
        for part in 0..1u64 << PARTS_LOG2 {
            while below[gap - 1] < part << (u64::BITS - PARTS_LOG2) {
                gap += 1;
            }
            first.push(gap as u16);
        }
        Gaps { below, first }
    }

    /// Returns the gap for a uniform draw.
    #[inline(always)]
    pub(super) fn look_up(&self, draw: u64) -> u64 {
        let mut gap = usize::from(self.first[(draw >> (u64::BITS - PARTS_LOG2)) as usize]);
        // One step without a branch, which would be unpredictable; more steps are rare.
        gap += usize::from(self.below[gap - 1] < draw);
        while self.below[gap - 1] < draw {
            gap += 1;
        }
        gap as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distribution_function_is_geometric_to_sixty_bits() {
        for log2 in 0..=10 {
            let probability = Probability::new(log2).unwrap();
            let gaps = Gaps::new(probability);
            for gap in [1usize, 2, 3, 10, 100, 1000] {
                let Some(&below) = gaps.below.get(gap - 1) else { continue };
                let expected = 1.0 - (1.0 - probability.get()).powi(gap as i32);
                let found = (below as f64 + 1.0) / 2f64.powi(64);
                assert!((found - expected).abs() < 1e-12, "p = {probability}, gap {gap}: {found} {expected}");
            }
            assert_eq!(*gaps.below.last().unwrap(), u64::MAX);
        }
    }

    #[test]
    fn a_random_number_selects_the_gap_of_its_interval() {
        let gaps = Gaps::new(Probability::PAPER_MIN);
        let mut draws = Xoshiro256PlusPlus::seed_from_u64(1);
        for draw in (0..10_000).map(|_| draws.next_u64()).chain([0, 1, u64::MAX, u64::MAX - 1]) {
            let slow = gaps.below.iter().position(|&below| draw <= below).unwrap() as u64 + 1;
            assert_eq!(gaps.look_up(draw), slow);
        }
    }

    /// Counts of 2,000,000 p pairs: each is outside five standard deviations once in 1.7 million.
    #[test]
    fn sampling_rate_is_independent_of_batch_size() {
        for log2 in 0..=10 {
            let probability = Probability::new(log2).unwrap();
            for piece in [1u64, 7, 160, 5000] {
                let mut sampler = Sampler::new(probability, 9);
                let (mut seen, mut sampled) = (0u64, 0u64);
                while seen < 2_000_000 {
                    let mut position = 0;
                    while sampler.next(&mut position, piece).is_some() {
                        sampled += 1;
                    }
                    seen += piece;
                }
                let expected = seen as f64 * probability.get();
                let deviation = (expected * (1.0 - probability.get())).sqrt();
                assert!((sampled as f64 - expected).abs() <= 5.0 * deviation, "{probability}, {piece}");
            }
        }
    }
}
