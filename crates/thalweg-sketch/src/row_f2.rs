//! E, the F2 of a row (the sum of the squares of its counters), and the error of its measurement.
//!
//! [`crate::noise`] derives the formulas: the relative variance r of a measurement, and the error of sqrt(E) from
//! scaling, the rounding error of a counter times sqrt(w).

use crate::estimate::CHEBYSHEV_FACTOR;
use crate::stream_statistics::StreamStatistics;

/// The median of the rows' sums of squares, with the inputs for its error bounds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct RowF2 {
    pub(crate) measured: f64,
    pub(crate) width: usize,
    /// a: the variance that sampling adds to a key's count, per unit of count.
    sampling_variance: f64,
    /// The maximum rounding error of a counter from scaling.
    rounding: f64,
}

impl RowF2 {
    /// The F2 of rows of `width` counters that counted the stream of `statistics`.
    pub(crate) fn new(measured: f64, width: usize, statistics: &StreamStatistics) -> RowF2 {
        RowF2 {
            measured,
            width,
            sampling_variance: statistics.sampling_variance(),
            rounding: statistics.rounding(),
        }
    }

    /// The same measurement as if updates had been sampled with this sampling variance.
    pub(crate) fn with_sampling_variance(self, sampling_variance: f64) -> RowF2 {
        RowF2 { sampling_variance, ..self }
    }

    /// sqrt(c r): the relative error that a row exceeds with probability at most 1/c.
    pub(crate) fn deviation(&self) -> f64 {
        self.deviation_at(self.measured)
    }

    fn deviation_at(&self, row_f2: f64) -> f64 {
        (CHEBYSHEV_FACTOR * row_f2_variance(row_f2, self.width, self.sampling_variance)).sqrt()
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
        // A lower F2 has a larger relative variance.
        let deviation = self.deviation_at(self.measured / (1.0 + self.deviation()));
        let norm = (self.measured / (1.0 + deviation)).sqrt() - self.rounded();
        norm.max(0.0).powi(2)
    }

    /// Returns an upper bound, if the measurement is accurate enough for one.
    pub(crate) fn upper_bound(&self) -> f64 {
        self.upper_bound_within(self.deviation())
    }

    /// Returns the upper bound for another relative error of the measurement.
    pub(crate) fn upper_bound_within(&self, deviation: f64) -> f64 {
        ((self.measured / (1.0 - deviation.min(0.5))).sqrt() + self.rounded()).powi(2)
    }

    /// The maximum error of sqrt(E) from scaling.
    fn rounded(&self) -> f64 {
        self.rounding * (self.width as f64).sqrt()
    }
}

/// r: an upper bound of the relative variance of a row's sum of squares.
pub(crate) fn row_f2_variance(row_f2: f64, width: usize, sampling_variance: f64) -> f64 {
    let sampling = if sampling_variance > 0.0 {
        4.0 * sampling_variance / row_f2.sqrt() + sampling_variance * sampling_variance / row_f2
    } else {
        0.0
    };
    2.0 / width as f64 + sampling
}
