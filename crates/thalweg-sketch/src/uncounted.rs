//! Packets that were sampled but could not be counted, because they have no key: frames without IP, damaged headers.
//!
//! A switch parses sampled packets only. It learns that a packet has no key when one of its (packet, row) pairs is
//! sampled, so it knows of such packets from a sample too. Their pairs number d M for M packets of d rows, and each is
//! sampled with probability p, so U sampled pairs stand for U/(d p) packets. At p = 1 that is exact.
//!
//! **Bound**: U is binomial with mean mu = d p M. By Chernoff's inequality, with L = ln(1/delta) (Mitzenmacher and
//! Upfal 2005, theorem 4.4), mu <= U + L + sqrt(L^2 + 2 U L) and mu >= U - sqrt(2 U L), each with probability 1 - delta.

use crate::estimate::Estimate;
use crate::probability::Probability;

/// The number of probabilities.
const PROBABILITIES: usize = Probability::MIN.log2_inverse() as usize + 1;

/// Sampled pairs without a key, for each probability of sampling.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Uncounted {
    pairs: [u64; PROBABILITIES],
}

impl Uncounted {
    /// The probability that an estimate's interval holds.
    pub const CONFIDENCE: f64 = 0.99;

    /// Records `pairs` that were sampled with `probability`.
    #[inline(always)]
    pub fn record(&mut self, pairs: u64, probability: Probability) {
        let sum = &mut self.pairs[usize::from(probability.log2_inverse())];
        *sum = sum.saturating_add(pairs);
    }

    /// Returns the sampled pairs without a key.
    pub fn pairs(&self) -> u64 {
        self.pairs.iter().fold(0, |sum, &pairs| sum.saturating_add(pairs))
    }

    /// Returns the estimated number of packets for a sketch of `rows` rows, rounded down.
    pub fn packets(&self, rows: usize) -> u64 {
        let weighted = self.pairs.iter().enumerate().map(|(log2, &pairs)| u128::from(pairs) << log2);
        u64::try_from(weighted.sum::<u128>() / rows.max(1) as u128).unwrap_or(u64::MAX)
    }

    /// Estimates the number of packets without a key among those that a sketch of `rows` rows saw with `probabilities`.
    ///
    /// A probability that sampled no such pair widens the interval too, so name those only that were in use.
    pub fn estimate(&self, rows: usize, probabilities: &[Probability]) -> Estimate {
        let sampled = probabilities.iter().filter(|&&p| p != Probability::ONE).count();
        let log_inverse_delta = (2.0 * sampled.max(1) as f64 / (1.0 - Self::CONFIDENCE)).ln();
        let (mut value, mut lower, mut upper) = (0.0, 0.0, 0.0);
        for (log2, &pairs) in self.pairs.iter().enumerate() {
            let (pairs, packets_per_pair) = (pairs as f64, f64::from(1u32 << log2) / rows.max(1) as f64);
            let is_used = probabilities.iter().any(|p| usize::from(p.log2_inverse()) == log2);
            let (below, above) = match log2 {
                _ if pairs == 0.0 && !is_used => (0.0, 0.0),
                0 => (pairs, pairs),
                _ => {
                    let l = log_inverse_delta;
                    (
                        (pairs - (2.0 * pairs * l).sqrt()).max(0.0),
                        pairs + l + (l * l + 2.0 * pairs * l).sqrt(),
                    )
                }
            };
            value += pairs * packets_per_pair;
            lower += below * packets_per_pair;
            upper += above * packets_per_pair;
        }
        let confidence = if lower == upper { 1.0 } else { Self::CONFIDENCE };
        Estimate::within(value, lower, upper, confidence)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sampled(log2: u8) -> Probability {
        Probability::new(log2).unwrap()
    }

    #[test]
    fn without_sampling_the_number_is_exact() {
        let mut uncounted = Uncounted::default();
        uncounted.record(5 * 1234, Probability::ONE);
        assert_eq!(uncounted.estimate(5, &[Probability::ONE]), Estimate::exact(1234.0));
        assert_eq!(uncounted.packets(5), 1234);
    }

    /// Of 400 streams, 4 may be outside an interval that holds with 99 %; more than 12 happen once in 4,000 times.
    #[test]
    fn the_interval_has_the_true_number_as_often_as_it_says() {
        use rand_xoshiro::Xoshiro256PlusPlus;
        use rand_xoshiro::rand_core::{Rng as _, SeedableRng as _};
        let mut draws = Xoshiro256PlusPlus::seed_from_u64(3);
        for (log2, packets) in [(4u8, 1000u64), (6, 40), (7, 20_000)] {
            let mut outside = 0;
            let mut sum = 0.0;
            for _ in 0..400 {
                let mut uncounted = Uncounted::default();
                let pairs = (0..5 * packets).filter(|_| draws.next_u64() >> (64 - log2) == 0).count() as u64;
                uncounted.record(pairs, sampled(log2));
                let estimate = uncounted.estimate(5, &[sampled(log2)]);
                outside += u32::from(estimate.contains(packets as f64) == Some(false));
                sum += estimate.value;
            }
            assert!(outside <= 12, "{log2}: {outside}");
            let mean = sum / 400.0;
            let deviation = (packets as f64 * f64::from(1u32 << log2) / 5.0 / 400.0).sqrt();
            assert!((mean - packets as f64).abs() < 4.0 * deviation, "{log2}: {mean}");
        }
    }

    #[test]
    fn no_sampled_pair_still_leaves_room_for_some_packets() {
        let estimate = Uncounted::default().estimate(5, &[Probability::ONE, sampled(6)]);
        assert_eq!((estimate.value, estimate.lower()), (0.0, Some(0.0)));
        assert!(estimate.upper() > Some(64.0 / 5.0));
    }
}
