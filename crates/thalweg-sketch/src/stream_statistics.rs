//! Exact totals of the weights that a sketch counted, and how they were sampled.
//!
//! Counters alone do not show how accurate they are. With these statistics, a sketch that was saved, merged or
//! decayed still knows which bounds hold.

use crate::probability::Probability;

/// The sum of all weights, the largest one, and the variance that sampling added.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct StreamStatistics {
    pub(crate) total: i64,
    pub(crate) magnitude: u64,
    pub(crate) max_weight: f64,
    pub(crate) has_negative: bool,
    pub(crate) min_probability: Probability,
    pub(crate) sampling_f2: f64,
    pub(crate) sampling_variance: f64,
    pub(crate) rounding: f64,
}

/// Totals of a batch of weights.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sums {
    /// Sum of the weights.
    pub total: i64,
    /// Sum of their magnitudes.
    pub magnitude: u64,
    /// The largest magnitude.
    pub max_weight: u64,
    /// Sum of their squares.
    pub squares: f64,
    /// Whether a weight was negative.
    pub has_negative: bool,
}

impl Sums {
    /// Totals of `count` weights of one.
    #[inline(always)]
    pub const fn ones(count: usize) -> Sums {
        let max_weight = if count > 0 { 1 } else { 0 };
        let (total, magnitude, squares) = (count as i64, count as u64, count as f64);
        Sums { total, magnitude, max_weight, squares, has_negative: false }
    }

    /// Totals of these weights; sums saturate.
    #[inline(always)]
    pub fn of(weights: impl IntoIterator<Item = i64>) -> Sums {
        let mut sums = Sums::default();
        for weight in weights {
            let magnitude = weight.unsigned_abs();
            sums.total = sums.total.saturating_add(weight);
            sums.magnitude = sums.magnitude.saturating_add(magnitude);
            sums.max_weight = sums.max_weight.max(magnitude);
            sums.squares += magnitude as f64 * magnitude as f64;
            sums.has_negative |= weight < 0;
        }
        sums
    }
}

impl StreamStatistics {
    /// Returns the sum of all weights, the stream's L1 norm if none was negative. Saturates at the limits of an
    /// `i64`.
    pub const fn total(&self) -> i64 {
        self.total
    }

    /// Returns the sum of the magnitudes of all weights; saturates.
    pub const fn magnitude(&self) -> u64 {
        self.magnitude
    }

    /// Returns the largest magnitude of a single weight.
    pub const fn max_weight(&self) -> f64 {
        self.max_weight
    }

    /// Whether a weight was negative, or another stream was subtracted.
    pub const fn has_negative(&self) -> bool {
        self.has_negative
    }

    /// Returns the smallest probability with which updates were sampled.
    pub const fn min_probability(&self) -> Probability {
        self.min_probability
    }

    /// Whether updates were sampled with p < 1.
    pub const fn is_sampled(&self) -> bool {
        self.min_probability.log2_inverse() > 0
    }

    /// Returns Q, the sum of v^2 (1/p - 1) over all weights v: the increase that sampling adds to the expected sum of
    /// squares of a row.
    pub const fn sampling_f2(&self) -> f64 {
        self.sampling_f2
    }

    /// Returns a, the variance that sampling adds to a key's own count, per unit of that count: the maximum of v (1/p
    /// - 1), with the largest v of each batch and its p.
    pub const fn sampling_variance(&self) -> f64 {
        self.sampling_variance
    }

    /// Returns the maximum error of a counter from scaling: counters are integers, so each scaling adds at most 0.5.
    pub const fn rounding(&self) -> f64 {
        self.rounding
    }

    /// Adds a batch that was sampled with `probability`.
    #[inline(always)]
    pub(crate) fn record(&mut self, sums: &Sums, probability: Probability) {
        self.total = self.total.saturating_add(sums.total);
        self.magnitude = self.magnitude.saturating_add(sums.magnitude);
        self.max_weight = self.max_weight.max(sums.max_weight as f64);
        self.has_negative |= sums.has_negative;
        if sums.magnitude > 0 {
            self.min_probability = self.min_probability.min(probability);
            self.sampling_f2 += sums.squares * probability.excess();
            self.sampling_variance =
                self.sampling_variance.max(sums.max_weight as f64 * probability.excess());
        }
    }

    /// Subtracts the weight of packets that were recorded but not counted.
    pub(crate) fn withdraw(&mut self, weight: u64) {
        self.total = self.total.saturating_sub_unsigned(weight);
        self.magnitude = self.magnitude.saturating_sub(weight);
    }

    pub(crate) fn merge(&mut self, other: &StreamStatistics) {
        self.total = self.total.saturating_add(other.total);
        self.join(other);
        self.has_negative |= other.has_negative;
    }

    pub(crate) fn subtract(&mut self, other: &StreamStatistics) {
        self.total = self.total.saturating_sub(other.total);
        self.join(other);
        self.has_negative |= other.magnitude > 0;
    }

    fn join(&mut self, other: &StreamStatistics) {
        self.magnitude = self.magnitude.saturating_add(other.magnitude);
        self.max_weight = self.max_weight.max(other.max_weight);
        self.min_probability = self.min_probability.min(other.min_probability);
        self.sampling_f2 += other.sampling_f2;
        self.sampling_variance = self.sampling_variance.max(other.sampling_variance);
        self.rounding += other.rounding;
    }

    /// Records that all counters were multiplied by `factor` and then rounded by at most `moved`.
    pub(crate) fn scale(&mut self, factor: f64, moved: f64) {
        self.total = (self.total as f64 * factor).round() as i64;
        self.magnitude = (self.magnitude as f64 * factor.abs()).round() as u64;
        self.max_weight *= factor.abs();
        self.has_negative |= factor < 0.0 && self.magnitude > 0;
        self.sampling_f2 *= factor * factor;
        self.sampling_variance *= factor.abs();
        self.rounding = self.rounding * factor.abs() + moved;
    }
}
