//! Converts registers to a number of keys with an interval.
//!
//! **Estimate.** Ertl 2017, section 4, the improved raw estimator: with C_k registers of rank k among m,
//!
//! > n = m^2 / (2 ln 2) / (m sigma(C_0/m) + sum over k = 1..=q of C_k 2^-k + m tau(1 - C_(q+1)/m) 2^-q),
//!
//! where sigma and tau correct for the registers of rank 0 and of the last rank, whose true rank may be lower or
//! higher. So one formula covers the whole range, from no key to as many as there are hashes, without a bias table
//! and without a switch to another formula at either end.
//!
//! **Error.** The denominator is a sum over registers, so n/estimate is close to normal. Its moments, for one
//! register and n well above m, are those of y 2^-rank under Poisson arrivals (Mellin transform, without the periodic
//! part, which is below 1e-4): E\[Y^s\] = Gamma(s) (1 - 2^-s) / ln 2. Hence a relative deviation of sqrt(3 ln 2 - 1)
//! = 1.0390 (Flajolet et al. 2007, theorem 1) and a skewness of 2.218 for one register; the mean of m registers
//! divides both by sqrt(m). Below m keys the error is smaller still.

use std::f64::consts::LN_2;

/// The standard deviation of truth/estimate for a single register: sqrt(3 ln 2 - 1).
pub(crate) const DEVIATION: f64 = 1.038_961_757;

/// The skewness of truth/estimate for a single register: m3/m2^1.5 of the moments in the module doc.
const SKEWNESS: f64 = 2.218;

/// The probability that truth/estimate is within [`Ratio::STANDARD_NORMAL`] deviations, with equal tails.
pub(crate) const CONFIDENCE: f64 = 0.99;

/// The number of ranks, including rank 0, at the lowest precision, which has the most.
const RANKS: usize = 64;

/// The range of truth/estimate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Ratio {
    pub(crate) low: f64,
    pub(crate) high: f64,
}

impl Ratio {
    /// The normal distribution's 99.5th percentile: each tail has half of 1 - [`CONFIDENCE`].
    const STANDARD_NORMAL: f64 = 2.575_829_303_548_901;

    /// The range that has probability [`CONFIDENCE`].
    pub(crate) fn of(precision: u8) -> Ratio {
        Ratio::deviations(precision, Self::STANDARD_NORMAL)
    }

    /// The range of `z` standard deviations to either side, shifted for the skewness by the first term of the
    /// Cornish-Fisher expansion.
    pub(crate) fn deviations(precision: u8, z: f64) -> Ratio {
        let root = f64::from(1u32 << precision).sqrt();
        let deviation = DEVIATION / root;
        let shift = (z * z - 1.0) * SKEWNESS / root / 6.0;
        Ratio { low: (1.0 + deviation * (shift - z)).max(0.0), high: 1.0 + deviation * (shift + z) }
    }

    /// The largest relative error of an estimate in this range.
    pub(crate) fn relative_error(self) -> f64 {
        (1.0 / self.low - 1.0).max(1.0 - 1.0 / self.high)
    }

    /// The lower bound of the truth.
    pub(crate) fn lower(self, value: f64) -> f64 {
        value * self.low
    }

    /// The upper bound of the truth. It adds one key to the ratio: among few keys the error is a whole number of keys
    /// that share a register, and one such collision can exceed the ratio's allowance.
    pub(crate) fn upper(self, value: f64) -> f64 {
        if value > 0.0 { value * self.high + 1.0 } else { 0.0 }
    }
}

/// Returns the z for which P(|Z| > z) = `delta` for a standard normal Z.
pub(crate) fn normal_quantile(delta: f64) -> f64 {
    let (mut low, mut high) = (0.0, 10.0);
    for _ in 0..60 {
        let middle = (low + high) / 2.0;
        if two_tails(middle) > delta { low = middle } else { high = middle }
    }
    high
}

/// P(|Z| > z), by the series of Marsaglia 2004: P(|Z| <= z) is 2 phi(z) (z + z^3/3 + z^5/15 + ...).
fn two_tails(z: f64) -> f64 {
    let (mut term, mut sum, mut divisor) = (z, z, 1.0);
    while term > sum * f64::EPSILON {
        divisor += 2.0;
        term *= z * z / divisor;
        sum += term;
    }
    (1.0 - 2.0 * sum * (-z * z / 2.0).exp() / (2.0 * std::f64::consts::PI).sqrt()).max(0.0)
}

/// Estimates the number of keys from the registers of a counter of `precision`: zero if all are zero, infinite if all
/// have the last rank. Never less than the number of nonzero registers.
pub(crate) fn keys(registers: &[u8], precision: u8) -> f64 {
    let mut counts = [0u32; RANKS];
    for &register in registers {
        counts[usize::from(register) % RANKS] += 1;
    }
    let registers = registers.len() as f64;
    let last = usize::from(super::last_rank(precision));
    let mut sum = registers * tau(1.0 - f64::from(counts[last]) / registers);
    for rank in (1..last).rev() {
        sum = (sum + f64::from(counts[rank])) / 2.0;
    }
    let zeros = f64::from(counts[0]);
    sum += registers * sigma(zeros / registers);
    (numerator(registers) / sum).max(registers - zeros)
}

/// The numerator of the estimate; the denominator is the sum over registers.
pub(crate) fn numerator(registers: f64) -> f64 {
    registers * registers / (2.0 * LN_2)
}

/// sigma(x) = x + sum over k >= 1 of x^(2^k) 2^(k-1): the term of registers of rank 0, a share x.
pub(crate) fn sigma(share: f64) -> f64 {
    if share >= 1.0 {
        return f64::INFINITY;
    }
    let (mut power, mut weight, mut sum) = (share, 1.0, share);
    loop {
        power *= power;
        let longer = sum + power * weight;
        if longer == sum {
            return sum;
        }
        sum = longer;
        weight *= 2.0;
    }
}

/// tau(x) = (1 - x - sum over k >= 1 of (1 - x^(2^-k))^2 2^-k) / 3: the term of registers of the last rank, a share 1
/// - x.
fn tau(share: f64) -> f64 {
    if share <= 0.0 || share >= 1.0 {
        return 0.0;
    }
    let (mut root, mut weight, mut sum) = (share, 1.0, 1.0 - share);
    loop {
        root = root.sqrt();
        weight /= 2.0;
        let longer = sum - (1.0 - root) * (1.0 - root) * weight;
        if longer == sum {
            return sum / 3.0;
        }
        sum = longer;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn published_constants_follow_from_the_moments_of_the_distribution() {
        // Gamma(s) (1 - 2^-s) / ln 2 for s = 1, 2, 3.
        let [first, second, third] = [0.5, 0.75, 2.0 * 0.875].map(|moment: f64| moment / LN_2);
        let variance = second - first * first;
        assert!((variance.sqrt() / first - DEVIATION).abs() < 1e-8);
        let skewness = (third - 3.0 * first * second + 2.0 * first.powi(3)) / variance.powf(1.5);
        assert!((skewness - SKEWNESS).abs() < 1e-3, "{skewness}");
    }

    #[test]
    fn quantiles_match_the_normal_distribution() {
        for (delta, z) in [(0.317_310_507_86, 1.0), (0.05, 1.959_963_984_5), (0.01, Ratio::STANDARD_NORMAL)] {
            assert!((normal_quantile(delta) - z).abs() < 1e-9, "{delta}: {}", normal_quantile(delta));
        }
    }

    #[test]
    fn sigma_and_tau_are_exact_at_zero_and_one() {
        assert_eq!((sigma(0.0), sigma(1.0)), (0.0, f64::INFINITY));
        assert!((sigma(0.5) - (0.5 + 0.25 + 2.0 / 16.0 + 4.0 / 256.0 + 8.0 / 65_536.0)).abs() < 1e-8);
        assert_eq!((tau(0.0), tau(1.0)), (0.0, 0.0));
        let by_hand: f64 =
            (1..50).map(|k| (1.0 - 0.3f64.powf(0.5f64.powi(k))).powi(2) * 0.5f64.powi(k)).sum();
        assert!((tau(0.3) - (1.0 - 0.3 - by_hand) / 3.0).abs() < 1e-12);
    }
}
