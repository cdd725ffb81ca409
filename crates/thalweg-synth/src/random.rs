//! The random number generator: xoshiro256++ (Blackman and Vigna 2019), seeded through SplitMix64.
//!
//! Both algorithms are published with reference values. Logarithms and powers come from the `libm` crate; the rest are
//! integers or single IEEE 754 operations. A seed therefore gives the same trace and the same records on every machine.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

/// A seeded stream of random numbers.
#[derive(Clone, Debug)]
pub(crate) struct Random(Xoshiro256PlusPlus);

impl Random {
    /// Returns the stream for `seed`.
    pub(crate) fn new(seed: u64) -> Random {
        Random(Xoshiro256PlusPlus::seed_from_u64(seed))
    }

    /// Returns a separate stream for item `number` of `seed`, so that the item can be drawn again later.
    pub(crate) fn for_item(seed: u64, number: u64) -> Random {
        Random::new(seed.rotate_left(32) ^ (number + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15))
    }

    /// Returns 64 uniform random bits.
    #[inline]
    pub(crate) fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// Returns a uniform integer in `0..bound`; zero if `bound` is zero. Multiplies instead of dividing, so probabilities
    /// deviate from uniform by at most `bound / 2^64`.
    #[inline]
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.bits()) * u128::from(bound)) >> 64) as u64
    }

    /// Returns a uniform integer in `low..=high`.
    #[inline]
    pub(crate) fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.below(high - low + 1)
    }

    /// Returns a uniform number above 0 and at most 1, in steps of 2^-53.
    #[inline]
    pub(crate) fn unit(&mut self) -> f64 {
        ((self.bits() >> 11) + 1) as f64 / (1u64 << 53) as f64
    }

    /// Returns true with `probability`, to 53 bits.
    #[inline]
    pub(crate) fn chance(&mut self, probability: f64) -> bool {
        ((self.bits() >> 11) as f64) < probability * (1u64 << 53) as f64
    }

    /// Returns an integer in `1..2^octaves`, each octave `2^k..2^(k+1)` equally likely: a stepwise Zipf's law with
    /// exponent 1.
    #[inline]
    pub(crate) fn octave(&mut self, octaves: u64) -> u64 {
        let low = 1 << self.below(octaves);
        low + self.below(low)
    }

    /// Returns a number from `low` to `high`, uniform on a logarithmic scale.
    pub(crate) fn log_even(&mut self, low: f64, high: f64) -> f64 {
        low * libm::pow(high / low, self.unit())
    }

    /// Returns a standard normal number, by the polar form of Box and Muller (Marsaglia and Bray 1964).
    fn normal(&mut self) -> f64 {
        loop {
            let (x, y) = (2.0 * self.unit() - 1.0, 2.0 * self.unit() - 1.0);
            let square = x * x + y * y;
            if square > 0.0 && square < 1.0 {
                return x * (-2.0 * libm::log(square) / square).sqrt();
            }
        }
    }

    /// Returns a log-normal number with this median; `sigma` is the standard deviation of its logarithm.
    pub(crate) fn log_normal(&mut self, median: f64, sigma: f64) -> f64 {
        median * libm::exp(sigma * self.normal())
    }

    /// Returns an integer in `0..items`, by a stepwise Zipf's law with exponent 1: `1..=items` is divided into octaves
    /// `2^k..2^(k+1)`, all equally likely.
    #[inline]
    pub(crate) fn zipf(&mut self, items: u64) -> u64 {
        loop {
            let low = 1 << self.below(u64::from(items.ilog2()) + 1);
            let number = low + self.below(low);
            if number <= items {
                return number - 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// First outputs of the authors' C code, with the state from SplitMix64 and seed 0.
    #[test]
    fn the_stream_matches_the_reference_implementation() {
        let mut random = Random::new(0);
        assert_eq!(random.bits(), 0x53175D61490B23DF);
        assert_eq!(random.bits(), 0x61DA6F3DC380D507);
    }

    /// 2^16 draws of 8 octaves: 8192 draws of each are expected, with a standard deviation of 85. A deviation of six
    /// standard deviations is a false alarm with probability below 2e-8.
    #[test]
    fn octaves_are_equally_likely() {
        let mut random = Random::new(1);
        let mut counts = [0i64; 8];
        for _ in 0..1 << 16 {
            counts[random.octave(8).ilog2() as usize] += 1;
        }
        assert!(counts.iter().all(|count| (count - 8192).abs() < 6 * 85), "{counts:?}");
    }

    /// 2^16 draws: the standard deviation of the mean is 1/256, that of the mean square 1/181. A deviation of six standard
    /// deviations is a false alarm with probability below 2e-8.
    #[test]
    fn normal_numbers_have_zero_mean_and_unit_variance() {
        let mut random = Random::new(1);
        let draws: Vec<f64> = (0..1 << 16).map(|_| random.normal()).collect();
        let mean = |power| draws.iter().map(|x: &f64| x.powi(power)).sum::<f64>() / draws.len() as f64;
        assert!(mean(1).abs() < 6.0 / 256.0, "{}", mean(1));
        assert!((mean(2) - 1.0).abs() < 6.0 / 181.0, "{}", mean(2));
    }

    #[test]
    fn zipf_covers_all_items_and_none_beyond() {
        let mut random = Random::new(1);
        let draws: Vec<u64> = (0..10_000).map(|_| random.zipf(5)).collect();
        assert!((0..5).all(|item| draws.contains(&item)));
        assert!(draws.iter().all(|&item| item < 5));
    }
}
