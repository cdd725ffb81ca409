//! Error bounds of row-wise estimates, measured from the sketch itself.
//!
//! Let f_y be the weight of key y, and F_y what a sketch has counted of it: each weight v enters as v/p with
//! probability p, row by row, so E\[F_y\] = f_y and Var\[F_y\] is the sum of v^2 (1/p - 1), at most a f_y with a =
//! max(v) (max(1/p) - 1). At p = 1, a is zero and F_y = f_y.
//!
//! **One row.** A row's estimate of x is F_x plus the colliding keys, each y with probability 1/w and with a random
//! sign (Count Sketch; Charikar, Chen, Farach-Colton 2002) or minus its mean (K-ary; Krishnamurthy et al. 2003). It
//! is unbiased, and with pairwise independent columns its variance is at most
//!
//! > V = E / w + a f_x,   E = sum over y of E\[F_y^2\] = L2^2 + Q,   Q = sum over all weights of v^2 (1/p - 1).
//!
//! (K-ary: w - 1 instead of w.) By Chebyshev's inequality the error of the row exceeds sqrt(c V) with probability at
//! most 1/c, and the median of d rows is wrong with the probability that half of them are ([`median_failure`]).
//!
//! **E is the expected sum of the row's squares**, because sampling noise shows in the counters just as collisions
//! do. So the bound needs no knowledge of the stream. The median of the rows' sums of squares has a relative variance
//! of at most
//!
//! > r = 2/w + 4 a/sqrt(E) + a^2/E
//!
//! per row (2/w for collisions, Alon, Matias, Szegedy 1996; for sampling: 4 a times the sum of f_y^3, at most 4 a
//! L2^3, over E^2; the kurtosis of the draws, at most Q a^2 over E^2). The sketch has **converged** when sqrt(c r) <=
//! 1/2, that is when its measurement of its own noise is accurate to a factor of two; before that it claims no bound.
//! E is then raised by 1/(1 - sqrt(c r)). (A lower bound of E is the measurement over 1 + sqrt(c r), with r at that
//! lower E, where it is larger.) Both medians hold together with probability at least 1 - 2 [`median_failure`]`(d,
//! 1/c)`: 0.968 for five rows with c = 8.
//!
//! **The interval.** (F - f)^2 <= c (E/w + a f) is solved for f, like Wilson's interval: with h = c a/2,
//!
//! > f in F + h +- sqrt(h^2 + c (E/w + a F)).
//!
//! **After scaling** counters are rounded to integers, each by at most 0.5, and by more if they were rounded before.
//! The error of sqrt(E) is then up to that times sqrt(w), and the error of an estimate up to that; both are added.
//!
//! This bound is per instance. The worst case over streams with unit weights follows from L1 <= L2^2: with w >= 2 c /
//! (eps^2 p) and L2 >= 2 c / (eps^2 p), V <= L2^2/(w p) + L2/p <= eps^2 L2^2 / c. With c = 4 that is the condition w
//! = 8 eps^-2 p^-1, L2 >= 8 eps^-2 p^-1 of NitroSketch (Liu et al. 2019); with c = 5.5 the one that its AlwaysCorrect
//! mode tests, 121 (1 + eps sqrt(p)) eps^-4 p^-2 for the sum of squares.

use crate::estimate::{Bound, CHEBYSHEV_FACTOR, Estimate, median_failure};
use crate::row_f2::RowF2;
use crate::shape::Shape;
use crate::stream_statistics::StreamStatistics;

/// The noise of a sketch at one moment; measured once for many estimates.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Noise {
    row_f2: RowF2,
    /// The divisor of E for collisions: w or w - 1.
    effective_width: f64,
    /// The variance of a row from collisions: an upper bound of E/w.
    collisions: f64,
    /// a: the variance of a key's own count, per unit of count.
    sampling_variance: f64,
    /// The maximum error of an estimate from scaling.
    pub(crate) rounding: f64,
    /// Whether estimates have bounds.
    quality: Quality,
    /// The mean of each row's counters, for rows without signs.
    pub(crate) means: [f64; Shape::MAX_ROWS],
}

/// Whether estimates have bounds.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Quality {
    /// They have, with this probability.
    Bounded(f64),
    /// Not yet.
    NotConverged,
    /// No bound: rows too narrow, counters saturated, or a sampled stream subtracted from another.
    Unbounded,
}

impl Noise {
    /// Computes the noise from E, the median sum of squares of `rows` rows, whose collisions divide it by `effective_width`
    /// (w or w - 1). Estimates have no bound after a counter was saturated.
    pub(crate) fn new(
        row_f2: f64,
        rows: usize,
        width: usize,
        effective_width: f64,
        statistics: &StreamStatistics,
        saturations: u64,
    ) -> Noise {
        let row_f2 = RowF2::new(row_f2, width, statistics);
        let narrow = !row_f2.with_sampling_variance(0.0).is_known();
        let quality = if narrow || saturations > 0 || (statistics.has_negative && statistics.is_sampled()) {
            Quality::Unbounded
        } else if row_f2.is_known() {
            Quality::Bounded(1.0 - 2.0 * median_failure(rows, 1.0 / CHEBYSHEV_FACTOR))
        } else {
            Quality::NotConverged
        };
        let (sampling_variance, rounding) = (statistics.sampling_variance(), statistics.rounding());
        let collisions = row_f2.upper_bound() / effective_width;
        Noise {
            row_f2,
            effective_width,
            collisions,
            sampling_variance,
            rounding,
            quality,
            means: [0.0; Shape::MAX_ROWS],
        }
    }

    /// Removes the bound, because a counter was saturated.
    pub(crate) fn without_bound(self) -> Noise {
        Noise { quality: Quality::Unbounded, ..self }
    }

    /// Returns an upper bound of the standard deviation of one row, without the sampling of the key itself.
    pub fn deviation(&self) -> f64 {
        self.collisions.sqrt()
    }

    /// Whether enough updates were sampled for bounds to hold.
    pub fn is_converged(&self) -> bool {
        self.quality != Quality::NotConverged
    }

    pub(crate) fn effective_width(&self) -> f64 {
        self.effective_width
    }

    /// Returns a lower bound of E as if sampling had the variance `sampling_variance`; zero if it has no bound.
    pub(crate) fn row_f2_lower_bound(&self, sampling_variance: f64) -> f64 {
        self.row_f2.with_sampling_variance(sampling_variance).lower_bound()
    }

    /// a, the sampling variance of a key per unit of its count.
    pub(crate) fn sampling_variance(&self) -> f64 {
        self.sampling_variance
    }

    /// Combines the noise of a difference, which is `self`, with that of its two windows (see [`crate::change`]).
    pub(crate) fn of_difference(
        &self,
        now: &Noise,
        before: &Noise,
        windows: [&StreamStatistics; 2],
    ) -> Noise {
        let sampling_variance = now.sampling_variance.max(before.sampling_variance);
        let width = self.row_f2.width as f64;
        let mean_counters: f64 = windows.iter().map(|window| window.magnitude() as f64 / width).sum();
        let root_f2 = now.row_f2.measured.sqrt() + before.row_f2.measured.sqrt();
        // q: a bound of the sampling variance in one counter.
        let counter_variance = sampling_variance * (root_f2 + mean_counters);
        let sampling =
            if counter_variance > 0.0 { 6.0 * counter_variance / self.row_f2.measured } else { 0.0 };
        let variance = 2.0 / width + sampling;
        let deviation = (CHEBYSHEV_FACTOR * variance).sqrt();
        let quality = match (self.quality, now.quality, before.quality) {
            (_, Quality::Bounded(one), Quality::Bounded(other)) if deviation <= 0.5 => {
                Quality::Bounded(1.0 - (1.0 - one) - if sampling_variance > 0.0 { 1.0 - other } else { 0.0 })
            }
            (_, Quality::Unbounded, _) | (_, _, Quality::Unbounded) => Quality::Unbounded,
            _ if sampling_variance > 0.0 => Quality::NotConverged,
            _ => Quality::Unbounded,
        };
        Noise {
            sampling_variance,
            quality,
            collisions: self.row_f2.upper_bound_within(deviation) / self.effective_width,
            ..*self
        }
    }

    /// Returns the interval around the median of the rows.
    pub(crate) fn interval(&self, value: f64) -> Estimate {
        self.with_variance(
            value,
            CHEBYSHEV_FACTOR * self.sampling_variance / 2.0,
            self.sampling_variance * value.max(0.0),
        )
    }

    /// Returns the interval around the median of the rows, for a key whose sampling variance is known.
    pub(crate) fn difference_interval(&self, value: f64, sampling_variance: f64) -> Estimate {
        self.with_variance(value, 0.0, sampling_variance)
    }

    fn with_variance(&self, value: f64, shift: f64, sampling_variance: f64) -> Estimate {
        let bound = match self.quality {
            Quality::Bounded(confidence) => {
                let variance = self.collisions + sampling_variance;
                let half = (shift * shift + CHEBYSHEV_FACTOR * variance).sqrt() + self.rounding;
                Bound::Interval { lower: value + shift - half, upper: value + shift + half, confidence }
            }
            Quality::NotConverged => Bound::NotConverged,
            Quality::Unbounded => Bound::Unknown,
        };
        Estimate { value, bound }
    }
}

#[cfg(test)]
mod tests;
