//! The one source of chance: xoshiro256++ (Blackman and Vigna 2019), seeded through SplitMix64.
//!
//! Both algorithms are published with reference values, so that a seed means the same trace on every machine.
//! Draws are integers wherever they can be; nothing here depends on a platform's mathematical library.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

/// A seeded stream of draws.
pub(super) struct Random(Xoshiro256PlusPlus);

impl Random {
    /// The stream of `seed`.
    pub(super) fn new(seed: u64) -> Random {
        Random(Xoshiro256PlusPlus::seed_from_u64(seed))
    }

    /// A stream of its own for item `number` of `seed`, so that the item can be drawn again later.
    pub(super) fn for_item(seed: u64, number: u64) -> Random {
        Random::new(seed.rotate_left(32) ^ (number + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15))
    }

    /// 64 even bits.
    #[inline]
    pub(super) fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// An integer of `0..bound`; zero if `bound` is zero. By multiplication: off from even by at most
    /// `bound / 2^64`.
    #[inline]
    pub(super) fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.bits()) * u128::from(bound)) >> 64) as u64
    }

    /// An integer of `low..=high`.
    #[inline]
    pub(super) fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.below(high - low + 1)
    }

    /// True with `probability`, to 53 bits.
    #[inline]
    pub(super) fn chance(&mut self, probability: f64) -> bool {
        ((self.bits() >> 11) as f64) < probability * (1u64 << 53) as f64
    }

    /// An integer of `1..2^octaves`, each octave `2^k..2^(k+1)` as likely as another: Zipf's law with
    /// exponent 1, by steps.
    #[inline]
    pub(super) fn octave(&mut self, octaves: u64) -> u64 {
        let low = 1 << self.below(octaves);
        low + self.below(low)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// First outputs of the authors' C code, state from SplitMix64 with seed 0.
    #[test]
    fn the_stream_is_that_of_the_published_algorithm() {
        let mut random = Random::new(0);
        assert_eq!(random.bits(), 0x53175D61490B23DF);
        assert_eq!(random.bits(), 0x61DA6F3DC380D507);
    }

    /// 2^16 draws of 8 octaves: each is drawn 8192 times but for a standard deviation of 85; six of them is
    /// a false alarm with probability below 2e-8.
    #[test]
    fn octaves_are_equally_likely() {
        let mut random = Random::new(1);
        let mut counts = [0i64; 8];
        for _ in 0..1 << 16 {
            counts[random.octave(8).ilog2() as usize] += 1;
        }
        assert!(counts.iter().all(|count| (count - 8192).abs() < 6 * 85), "{counts:?}");
    }
}
