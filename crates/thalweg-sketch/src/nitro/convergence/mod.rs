//! When sampling may begin: the test of AlwaysCorrect.
//!
//! Wanted: every estimate within eps L2 of the truth at every moment, with the probability that the median of d
//! rows holds when each fails with 1/c. By `noise` that is so while
//!
//! > c ((L2^2 + Q) / w + a L2) <= eps^2 L2^2,
//!
//! since no key weighs more than L2, and a f_x <= a L2. Q, what sampling has added so far, is in the account. Before
//! n more packets of the heaviest weight v are sampled with probability p, the left side is at most
//!
//! > c ((L2^2 + Q + n v^2 (1/p - 1)) / w + max(a, v (1/p - 1)) L2),
//!
//! and L2 does not fall while weights are not negative (once one was, p stays 1). So the test takes the smallest p
//! for which this holds, from the L2 measured, for as long as n packets; then it is asked again. L2^2 is taken low,
//! as the median energy divided by 1 + sqrt(c r), less Q; what holds for it holds for more, as eps^2 > c/w and both
//! sides grow with L2.
//!
//! The published test (Liu et al. 2019, section 5) asks once, and bounds L1 of all the future by L2^2; for a given shape
//! that is the case L2 >= 2 c / (eps^2 p), w >= 2 c / (eps^2 p), which implies ours for eps up to 0.3 and n up to L2^2/2.
//! Asking again, with the L1 that came, lets sampling begin earlier on skewed traffic, and takes p back when a flood of
//! small flows drives Q up faster than L2^2. A weight heavier than all before is counted exactly, and the test asked
//! again: it did not speak of such.

use crate::account::Account;
use crate::estimate::CHEBYSHEV;
use crate::noise::Noise;

use crate::probability::Probability;

/// Packets between tests, at least.
const INTERVAL: u64 = 1 << 15;

/// The error that AlwaysCorrect keeps.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Target {
    /// Error of an estimate, as a share of L2.
    pub eps: f64,
    /// p does not fall below this.
    pub least: Probability,
}

impl Target {
    /// Half as much error again as rows of `width` have at p = 1: sampling may take the difference.
    pub fn for_width(width: usize) -> Target {
        Target { eps: 1.5 * (CHEBYSHEV / width as f64).sqrt(), least: Probability::PAPER_LEAST }
    }

    /// Packets until the next test: as many as an eighth of those seen, so that tests, which look at every counter,
    /// cost less and less.
    pub(super) fn interval(&self, packets: u64) -> u64 {
        INTERVAL.max(packets / 8)
    }

    /// The smallest p that keeps the error for `packets` more packets.
    pub(crate) fn probability(&self, noise: &Noise, account: &Account, packets: u64) -> Probability {
        let fits = |&probability: &Probability| self.holds(noise, account, packets, probability);
        let all = (0..=self.least.log2_inverse()).rev().filter_map(Probability::new);
        all.clone().find(fits).unwrap_or(Probability::ONE)
    }

    /// Whether sampling `packets` more with `probability` keeps the error.
    fn holds(&self, noise: &Noise, account: &Account, packets: u64, probability: Probability) -> bool {
        if probability == Probability::ONE {
            return true;
        }
        if account.has_negative() {
            return false;
        }
        let heaviest = account.heaviest();
        let own = account.own_variance().max(heaviest * probability.excess());
        let l2_squared = noise.least_energy(own) - account.sampling_energy();
        let added = packets as f64 * heaviest * heaviest * probability.excess();
        let energy = l2_squared + account.sampling_energy() + added;
        let variance = energy / noise.spread() + own * l2_squared.max(0.0).sqrt();
        l2_squared > 0.0 && CHEBYSHEV * variance <= self.eps * self.eps * l2_squared
    }
}

#[cfg(test)]
mod tests;
