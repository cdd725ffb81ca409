//! What a program in the kernel needs to sample as [`Nitro`](super::Nitro) does: the tables of the gaps, and the state of
//! the random generator. With the same seed it then updates the same pairs.

use super::sampler::Gaps;
use crate::probability::Probability;

/// The inverted distribution function of the gaps between sampled pairs, for one probability.
///
/// The gap of a uniform 64-bit `draw` is the smallest g with `draw <= below[g - 1]`. It is at least
/// `first[draw >> 54]`, the gap at the beginning of one of 1,024 equal parts of the draws.
#[derive(Clone, Copy, Debug)]
pub struct GapTables {
    /// `below[g - 1]` is P(gap <= g) as a share of 2^64; the last is all ones.
    pub below: &'static [u64],
    /// The gap at the beginning of each part.
    pub first: &'static [u16],
}

impl GapTables {
    /// Returns the tables of a probability.
    pub fn of(probability: Probability) -> GapTables {
        let gaps = Gaps::of(probability);
        GapTables { below: &gaps.below, first: &gaps.first }
    }
}

/// Returns the four words of the state of xoshiro256++ (Blackman and Vigna 2021) for a seed, and the first gap that
/// [`Nitro::new`](super::Nitro::new) draws with it; the state is the one after that draw.
pub fn first_gap(probability: Probability, seed: u64) -> ([u64; 4], u64) {
    let mut state = seeded(seed);
    let drawn = next(&mut state);
    let gap = Gaps::of(probability).look_up(drawn);
    (state, gap)
}

/// SplitMix64 (Steele, Lea and Flood 2014), by which xoshiro256++ is seeded.
fn seeded(mut seed: u64) -> [u64; 4] {
    [(); 4].map(|()| {
        seed = seed.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = seed;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    })
}

fn next(state: &mut [u64; 4]) -> u64 {
    let drawn = state[0].wrapping_add(state[3]).rotate_left(23).wrapping_add(state[0]);
    let shifted = state[1] << 17;
    state[2] ^= state[0];
    state[3] ^= state[1];
    state[1] ^= state[2];
    state[0] ^= state[3];
    state[2] ^= shifted;
    state[3] = state[3].rotate_left(45);
    drawn
}

#[cfg(test)]
mod tests {
    use rand_xoshiro::Xoshiro256PlusPlus;
    use rand_xoshiro::rand_core::{Rng as _, SeedableRng as _};

    use super::super::sampler::Sampler;
    use super::*;

    #[test]
    fn the_generator_is_the_one_of_the_sampler() {
        for seed in [0, 1, 0xDEAD_BEEF, u64::MAX] {
            let (mut ours, mut theirs) = (seeded(seed), Xoshiro256PlusPlus::seed_from_u64(seed));
            for _ in 0..1_000 {
                assert_eq!(next(&mut ours), theirs.next_u64());
            }
        }
    }

    #[test]
    fn the_first_gap_is_that_of_the_sampler() {
        for log2 in 0..=10 {
            let probability = Probability::new(log2).unwrap();
            let (_, gap) = first_gap(probability, 77);
            let mut position = 0;
            assert_eq!(Sampler::new(probability, 77).next(&mut position, u64::MAX / 2), Some(gap - 1));
        }
    }
}
