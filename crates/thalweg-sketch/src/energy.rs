//! E, what the squares of a row's counters add up to, and how far a reading of it may be off.
//!
//! [`crate::noise`] derives what is computed here: the relative variance r of a reading, and the square root of E
//! being off by as much as scaling has moved counters, times sqrt(w).

use crate::account::Account;
use crate::estimate::CHEBYSHEV;

/// The median of the rows' sums of squares, with what tells how good it is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Energy {
    pub(crate) reading: f64,
    pub(crate) width: usize,
    /// a: variance that sampling adds to a key's count, for each unit of it.
    own: f64,
    /// What scaling may have moved a counter by.
    rounding: f64,
}

impl Energy {
    /// As rows of `width` counters have it that were fed what `account` says.
    pub(crate) fn new(reading: f64, width: usize, account: &Account) -> Energy {
        Energy { reading, width, own: account.own_variance(), rounding: account.rounding() }
    }

    /// The same reading, if updates had been sampled with this own variance.
    pub(crate) fn with_own_variance(self, own: f64) -> Energy {
        Energy { own, ..self }
    }

    /// sqrt(c r): the relative error that a row exceeds with probability 1/c at most.
    pub(crate) fn deviation(&self) -> f64 {
        self.deviation_at(self.reading)
    }

    fn deviation_at(&self, energy: f64) -> f64 {
        (CHEBYSHEV * energy_variance(energy, self.width, self.own)).sqrt()
    }

    /// Whether the reading is good to a factor of two.
    pub(crate) fn is_known(&self) -> bool {
        self.deviation() <= 0.5
    }

    /// A lower bound; zero if the reading is not good enough for one.
    pub(crate) fn least(&self) -> f64 {
        if !self.is_known() {
            return 0.0;
        }
        // A lower energy has a larger relative variance.
        let deviation = self.deviation_at(self.reading / (1.0 + self.deviation()));
        let norm = (self.reading / (1.0 + deviation)).sqrt() - self.rounded();
        norm.max(0.0).powi(2)
    }

    /// An upper bound, if the reading is good enough for one.
    pub(crate) fn most(&self) -> f64 {
        self.most_within(self.deviation())
    }

    /// The same with another relative error of the reading.
    pub(crate) fn most_within(&self, deviation: f64) -> f64 {
        ((self.reading / (1.0 - deviation.min(0.5))).sqrt() + self.rounded()).powi(2)
    }

    /// What scaling may have moved the root of E by.
    fn rounded(&self) -> f64 {
        self.rounding * (self.width as f64).sqrt()
    }
}

/// r: an upper bound of the relative variance of a row's sum of squares.
pub(crate) fn energy_variance(energy: f64, width: usize, own: f64) -> f64 {
    let sampling = if own > 0.0 { 4.0 * own / energy.sqrt() + own * own / energy } else { 0.0 };
    2.0 / width as f64 + sampling
}
