//! Named random number streams: a seed, a name and an index determine a generator.
//!
//! The generator is xoshiro256++ (Blackman and Vigna 2019), seeded by SplitMix64 from a digest of the three. Streams
//! with different names or indices share only the seed: two of `n` streams coincide with probability `n^2 / 2^65`. So a
//! part of an emulation that draws more, or a core that takes over a rack, does not affect others.

use libm::{log, pow};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

/// The generator for item `index` of `name`.
pub fn stream(seed: u64, name: &str, index: u64) -> Xoshiro256PlusPlus {
    // FNV-1a, 64 bits. The names are a few short words, which any sound digest tells apart.
    let digest = name.bytes().fold(0xCBF2_9CE4_8422_2325, |digest: u64, byte| {
        (digest ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01B3)
    });
    Xoshiro256PlusPlus::seed_from_u64(mixed(mixed(mixed(seed) ^ digest) ^ index))
}

/// One step of SplitMix64 (Steele, Lea, Flood 2014): a bijection that leaves no pattern.
fn mixed(value: u64) -> u64 {
    let value = value.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let value = (value ^ (value >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    value ^ (value >> 31)
}

/// `floor(bits / 2^64 * bound)`, and the remaining bits, which are uniform again and can be scaled once more. The
/// deviation from uniform is at most the product of all bounds / 2^64.
#[inline(always)]
pub(super) const fn scaled(bits: u64, bound: u64) -> (u64, u64) {
    let product = bits as u128 * bound as u128;
    ((product >> 64) as u64, product as u64)
}

/// Random numbers of a stream.
#[derive(Clone, Debug)]
pub struct Random(Xoshiro256PlusPlus);

impl Random {
    /// Random numbers of the [`stream`] of these three.
    pub fn new(seed: u64, name: &str, index: u64) -> Random {
        Random(stream(seed, name, index))
    }

    /// 64 uniform bits.
    #[inline]
    pub fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// A uniform integer of `0..bound`; 0 if `bound` is 0. The deviation from uniform is at most `bound / 2^64`.
    #[inline]
    pub fn below(&mut self, bound: u64) -> u64 {
        scaled(self.bits(), bound).0
    }

    /// [`below`](Self::below) for an index.
    #[inline]
    pub fn index(&mut self, length: usize) -> usize {
        self.below(length as u64) as usize
    }

    /// A uniform number in [0, 1), in steps of 2^-53.
    #[inline]
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// Exponential with mean 1; at most 36.8.
    pub fn exponential(&mut self) -> f64 {
        -log(1.0 - self.unit())
    }

    /// Pareto: exceeds `x >= scale` with probability `(scale / x)^shape`.
    pub fn pareto(&mut self, shape: f64, scale: f64) -> f64 {
        scale * pow(1.0 - self.unit(), -1.0 / shape)
    }

    /// Shuffles `items` uniformly (Fisher and Yates).
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.index(last + 1));
        }
    }

    /// A uniform permutation of `0..length` without fixed points. Shuffles until there is one, e times on average.
    ///
    /// # Panics
    /// If `length` is less than 2.
    pub fn derangement(&mut self, length: usize) -> Vec<usize> {
        assert!(length >= 2, "one thing alone stays in its place");
        let mut order: Vec<usize> = (0..length).collect();
        loop {
            self.shuffle(&mut order);
            if order.iter().enumerate().all(|(place, &item)| place != item) {
                return order;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_name_and_index_has_its_own_stream() {
        let first = |seed, name, index| Random::new(seed, name, index).bits();
        let mut all =
            vec![first(1, "a", 0), first(2, "a", 0), first(1, "b", 0), first(1, "a", 1), first(0, "", 0)];
        assert_eq!(first(1, "a", 0), all[0], "the same three, the same stream");
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), 5);
    }

    /// Streams are part of the meaning of a seed: a change here changes every published result.
    #[test]
    fn a_stream_never_changes() {
        assert_eq!(Random::new(7, "sizes", 3).bits(), 9_740_288_442_648_127_678);
    }

    #[test]
    fn scaled_bits_remain_uniform() {
        // Three digits of 0.375 in base 10.
        let bits = 3 << 61;
        let (tenths, rest) = scaled(bits, 10);
        let (hundredths, rest) = scaled(rest, 10);
        let (thousandths, rest) = scaled(rest, 10);
        assert_eq!([tenths, hundredths, thousandths, rest], [3, 7, 5, 0]);
    }

    /// 2^16 draws: the standard error of the mean is 1/256 for the exponential distribution, and sqrt(2)/256 for
    /// Pareto(4, 3), which has mean 4 and variance 2. Six standard errors have a false alarm rate below 4e-9.
    #[test]
    fn draws_have_their_means() {
        let mut random = Random::new(1, "means", 0);
        let n = 1 << 16;
        let mean = |draw: &mut dyn FnMut() -> f64| (0..n).map(|_| draw()).sum::<f64>() / f64::from(n);
        assert!((mean(&mut || random.exponential()) - 1.0).abs() < 6.0 / 256.0);
        assert!((mean(&mut || random.pareto(4.0, 3.0)) - 4.0).abs() < 6.0 * 2f64.sqrt() / 256.0);
    }

    /// All 9 derangements of 4 from 9000 draws: each 1000 times with a standard deviation of 30. Six of them have a
    /// false alarm rate below 2e-8.
    #[test]
    fn derangements_are_equally_likely() {
        let mut random = Random::new(5, "derangements", 0);
        let mut counts = std::collections::BTreeMap::new();
        for _ in 0..9000 {
            *counts.entry(random.derangement(4)).or_insert(0i32) += 1;
        }
        assert_eq!(counts.len(), 9);
        assert!(counts.values().all(|count| (count - 1000).abs() < 180), "{counts:?}");
    }
}
