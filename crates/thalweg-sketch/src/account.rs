//! What a sketch was fed: the weights, exactly, and how coarsely they were sampled.
//!
//! Counters alone do not tell how good they are. With the account beside them a sketch that was saved, merged or
//! decayed still knows which bounds hold.

use crate::probability::Probability;

/// Sum of the weights, the heaviest of them, and the variance that sampling added.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Account {
    pub(crate) total: i64,
    pub(crate) magnitude: u64,
    pub(crate) heaviest: f64,
    pub(crate) has_negative: bool,
    pub(crate) coarsest: Probability,
    pub(crate) sampling_energy: f64,
    pub(crate) own_variance: f64,
    pub(crate) rounding: f64,
}

/// What a batch of weights adds up to.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sums {
    /// Sum of the weights.
    pub total: i64,
    /// Sum of their magnitudes.
    pub magnitude: u64,
    /// The largest magnitude.
    pub heaviest: u64,
    /// Sum of their squares.
    pub squares: f64,
    /// Whether one was below zero.
    pub has_negative: bool,
}

impl Sums {
    /// `count` weights of one.
    #[inline(always)]
    pub const fn ones(count: usize) -> Sums {
        let heaviest = if count > 0 { 1 } else { 0 };
        let (total, magnitude, squares) = (count as i64, count as u64, count as f64);
        Sums { total, magnitude, heaviest, squares, has_negative: false }
    }

    /// The sums of these weights; those out of range saturate.
    #[inline(always)]
    pub fn of(weights: impl IntoIterator<Item = i64>) -> Sums {
        let mut sums = Sums::default();
        for weight in weights {
            let magnitude = weight.unsigned_abs();
            sums.total = sums.total.saturating_add(weight);
            sums.magnitude = sums.magnitude.saturating_add(magnitude);
            sums.heaviest = sums.heaviest.max(magnitude);
            sums.squares += magnitude as f64 * magnitude as f64;
            sums.has_negative |= weight < 0;
        }
        sums
    }
}

impl Account {
    /// Sum of all weights: the stream's L1 norm if none was negative. Saturates at the ends of an `i64`.
    pub const fn total(&self) -> i64 {
        self.total
    }

    /// Sum of the magnitudes of all weights; saturates.
    pub const fn magnitude(&self) -> u64 {
        self.magnitude
    }

    /// The largest magnitude of one weight.
    pub const fn heaviest(&self) -> f64 {
        self.heaviest
    }

    /// Whether a weight was below zero, or another stream was subtracted.
    pub const fn has_negative(&self) -> bool {
        self.has_negative
    }

    /// The smallest probability with which updates were sampled.
    pub const fn coarsest(&self) -> Probability {
        self.coarsest
    }

    /// Whether some updates were left to chance.
    pub const fn is_sampled(&self) -> bool {
        self.coarsest.log2_inverse() > 0
    }

    /// Q, the sum of v^2 (1/p - 1) over all weights v: what sampling adds to the expected sum of squares of a row.
    pub const fn sampling_energy(&self) -> f64 {
        self.sampling_energy
    }

    /// a, the variance that sampling adds to a key's own count, for each unit of that count: the most that
    /// v (1/p - 1) came to, with the heaviest v of a batch and its p.
    pub const fn own_variance(&self) -> f64 {
        self.own_variance
    }

    /// What scaling may have moved a counter by, as counters are whole numbers: up to half of one each time.
    pub const fn rounding(&self) -> f64 {
        self.rounding
    }

    /// Enters a batch that was sampled with `probability`.
    #[inline(always)]
    pub(crate) fn enter(&mut self, sums: &Sums, probability: Probability) {
        self.total = self.total.saturating_add(sums.total);
        self.magnitude = self.magnitude.saturating_add(sums.magnitude);
        self.heaviest = self.heaviest.max(sums.heaviest as f64);
        self.has_negative |= sums.has_negative;
        if sums.magnitude > 0 {
            self.coarsest = self.coarsest.min(probability);
            self.sampling_energy += sums.squares * probability.excess();
            self.own_variance = self.own_variance.max(sums.heaviest as f64 * probability.excess());
        }
    }

    pub(crate) fn merge(&mut self, other: &Account) {
        self.total = self.total.saturating_add(other.total);
        self.join(other);
        self.has_negative |= other.has_negative;
    }

    pub(crate) fn subtract(&mut self, other: &Account) {
        self.total = self.total.saturating_sub(other.total);
        self.join(other);
        self.has_negative |= other.magnitude > 0;
    }

    fn join(&mut self, other: &Account) {
        self.magnitude = self.magnitude.saturating_add(other.magnitude);
        self.heaviest = self.heaviest.max(other.heaviest);
        self.coarsest = self.coarsest.min(other.coarsest);
        self.sampling_energy += other.sampling_energy;
        self.own_variance = self.own_variance.max(other.own_variance);
        self.rounding += other.rounding;
    }

    /// All counters were multiplied by `factor`, and moved by `moved` at most to be whole again.
    pub(crate) fn scale(&mut self, factor: f64, moved: f64) {
        self.total = (self.total as f64 * factor).round() as i64;
        self.magnitude = (self.magnitude as f64 * factor.abs()).round() as u64;
        self.heaviest *= factor.abs();
        self.has_negative |= factor < 0.0 && self.magnitude > 0;
        self.sampling_energy *= factor * factor;
        self.own_variance *= factor.abs();
        self.rounding = self.rounding * factor.abs() + moved;
    }
}
