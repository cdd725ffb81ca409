//! E, the sum of the squares of a row's counters, and the error of its measurement.
//!
//! [`crate::noise`] derives the formulas: the relative variance r of a measurement, and the error of sqrt(E) from
//! scaling, the rounding error of a counter times sqrt(w).

use crate::account::Account;
use crate::estimate::CHEBYSHEV_FACTOR;

/// The median of the rows' sums of squares, with the inputs for its error bounds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Energy {
    pub(crate) reading: f64,
    pub(crate) width: usize,
    /// a: the variance that sampling adds to a key's count, per unit of count.
    own: f64,
    /// The maximum rounding error of a counter from scaling.
    rounding: f64,
}

impl Energy {
    /// The energy of rows of `width` counters that counted the stream of `account`.
    pub(crate) fn new(reading: f64, width: usize, account: &Account) -> Energy {
        Energy { reading, width, own: account.own_variance(), rounding: account.rounding() }
    }

    /// The same measurement as if updates had been sampled with this own variance.
    pub(crate) fn with_own_variance(self, own: f64) -> Energy {
        Energy { own, ..self }
    }

    /// sqrt(c r): the relative error that a row exceeds with probability at most 1/c.
    pub(crate) fn deviation(&self) -> f64 {
        self.deviation_at(self.reading)
    }

    fn deviation_at(&self, energy: f64) -> f64 {
        (CHEBYSHEV_FACTOR * energy_variance(energy, self.width, self.own)).sqrt()
    }

    /// Whether the measurement is accurate to a factor of two.
    pub(crate) fn is_known(&self) -> bool {
        self.deviation() <= 0.5
    }

    /// Returns a lower bound; zero if the measurement is too inaccurate for one.
    pub(crate) fn lower_bound(&self) -> f64 {
        if !self.is_known() {
            return 0.0;
        }
        // A lower energy has a larger relative variance.
        let deviation = self.deviation_at(self.reading / (1.0 + self.deviation()));
        let norm = (self.reading / (1.0 + deviation)).sqrt() - self.rounded();
        norm.max(0.0).powi(2)
    }

    /// Returns an upper bound, if the measurement is accurate enough for one.
    pub(crate) fn upper_bound(&self) -> f64 {
        self.upper_bound_within(self.deviation())
    }

    /// Returns the upper bound for another relative error of the measurement.
    pub(crate) fn upper_bound_within(&self, deviation: f64) -> f64 {
        ((self.reading / (1.0 - deviation.min(0.5))).sqrt() + self.rounded()).powi(2)
    }

    /// The maximum error of sqrt(E) from scaling.
    fn rounded(&self) -> f64 {
        self.rounding * (self.width as f64).sqrt()
    }
}

/// r: an upper bound of the relative variance of a row's sum of squares.
pub(crate) fn energy_variance(energy: f64, width: usize, own: f64) -> f64 {
    let sampling = if own > 0.0 { 4.0 * own / energy.sqrt() + own * own / energy } else { 0.0 };
    2.0 / width as f64 + sampling
}
