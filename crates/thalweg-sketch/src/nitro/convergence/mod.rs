//! The convergence test of AlwaysCorrect, which decides when sampling may begin.
//!
//! Requirement: every estimate is within eps L2 of the truth at every moment, with the probability that the median of
//! d rows holds when each fails with probability 1/c. By `noise` that is true while
//!
//! > c ((L2^2 + Q) / w + a L2) <= eps^2 L2^2,
//!
//! since no key weighs more than L2, and so a f_x <= a L2. The statistics contain Q, the noise that sampling has added so
//! far. If n more packets of the heaviest weight v are sampled with probability p, the left side is at most
//!
//! > c ((L2^2 + Q + n v^2 (1/p - 1)) / w + max(a, v (1/p - 1)) L2),
//!
//! and L2 does not decrease while weights are not negative (after a negative weight, p stays 1). So the test takes
//! the smallest p for which this holds, with the L2 measured, for the next n packets, and then runs again. It uses a
//! low value of L2^2, the median row F2 divided by 1 + sqrt(c r), minus Q. If the condition holds for that, it holds
//! for any larger L2, as eps^2 > c/w and both sides grow with L2.
//!
//! The published test (Liu et al. 2019, section 5) runs once, and bounds L1 of the whole future by L2^2. For a given
//! shape that is the case L2 >= 2 c / (eps^2 p), w >= 2 c / (eps^2 p), which implies ours for eps up to 0.3 and n up
//! to L2^2/2. Repeating the test with the actual L1 lets sampling begin earlier on skewed traffic, and raises p again
//! when a flood of small flows increases Q faster than L2^2. A weight heavier than all before is counted exactly and
//! triggers another test, because the previous one did not cover it.

use crate::estimate::CHEBYSHEV_FACTOR;
use crate::noise::Noise;
use crate::stream_statistics::StreamStatistics;

use crate::probability::Probability;

/// The minimum number of packets between tests.
const INTERVAL: u64 = 1 << 15;

/// The error that AlwaysCorrect guarantees.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Target {
    /// The error of an estimate, as a share of L2.
    pub eps: f64,
    /// The lower limit of p.
    pub min_probability: Probability,
}

impl Target {
    /// A target of 1.5 times the error that rows of `width` have at p = 1; sampling may use the difference.
    pub fn for_width(width: usize) -> Target {
        Target {
            eps: 1.5 * (CHEBYSHEV_FACTOR / width as f64).sqrt(),
            min_probability: Probability::PAPER_MIN,
        }
    }

    /// Returns the number of packets until the next test: an eighth of those so far, so that the cost of tests, which
    /// read every counter, shrinks with time.
    pub(super) fn interval(&self, packets: u64) -> u64 {
        INTERVAL.max(packets / 8)
    }

    /// Returns the smallest p that keeps the error for the next `packets` packets.
    pub(crate) fn probability(
        &self,
        noise: &Noise,
        statistics: &StreamStatistics,
        packets: u64,
    ) -> Probability {
        let fits = |&probability: &Probability| self.holds(noise, statistics, packets, probability);
        let all = (0..=self.min_probability.log2_inverse()).rev().filter_map(Probability::new);
        all.clone().find(fits).unwrap_or(Probability::ONE)
    }

    /// Whether sampling the next `packets` packets with `probability` keeps the error.
    fn holds(
        &self,
        noise: &Noise,
        statistics: &StreamStatistics,
        packets: u64,
        probability: Probability,
    ) -> bool {
        if probability == Probability::ONE {
            return true;
        }
        if statistics.has_negative() {
            return false;
        }
        let max_weight = statistics.max_weight();
        let sampling_variance = statistics.sampling_variance().max(max_weight * probability.excess());
        let l2_squared = noise.row_f2_lower_bound(sampling_variance) - statistics.sampling_f2();
        let added = packets as f64 * max_weight * max_weight * probability.excess();
        let row_f2 = l2_squared + statistics.sampling_f2() + added;
        let variance = row_f2 / noise.effective_width() + sampling_variance * l2_squared.max(0.0).sqrt();
        l2_squared > 0.0 && CHEBYSHEV_FACTOR * variance <= self.eps * self.eps * l2_squared
    }
}

#[cfg(test)]
mod tests;
