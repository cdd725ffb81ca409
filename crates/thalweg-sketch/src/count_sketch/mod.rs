//! Count Sketch: unbiased estimates with an error proportional to the L2 norm.
//!
//! Charikar, Chen, Farach-Colton 2002, "Finding frequent items in data streams". Each key adds its weight, with its
//! own sign in each row, to one counter of each row. The estimate is the median of these counters, signs undone.
//! Collisions cancel instead of adding up.
//!
//! **Guarantee**: the interval of [`crate::noise`]. A priori, with d rows of w counters and c = 8: the error of one
//! row exceeds sqrt(c/w) L2 with probability at most 1/c (their lemma 4), and that of the median only if at
//! least half of the rows do. The sum of a row's squares estimates F2 (Alon, Matias, Szegedy 1996), with relative variance 2/w.
//!
//! Memory: d w counters of 4 or 8 bytes. An update touches d cache lines.

use crate::counters::{Counter, Counters};
use crate::digest::{Digest, Hasher};
use crate::estimate::{Bound, CHEBYSHEV_FACTOR, Estimate, median_failure};
use crate::noise::Noise;
use crate::row_f2::RowF2;
use crate::rows::{RowSketch, Rows, median_over_rows, signed_row_f2};
use crate::shape::{Shape, ShapeError, check_guarantee};
use crate::stream_statistics::StreamStatistics;

/// A Count Sketch with counters of type `C`.
#[derive(Clone, Debug, PartialEq)]
pub struct CountSketch<C: Counter = i32> {
    pub(crate) rows: Rows<C>,
}

impl<C: Counter> CountSketch<C> {
    /// Creates an empty sketch.
    pub fn new(shape: Shape, hasher: Hasher) -> CountSketch<C> {
        CountSketch { rows: Rows::new(shape, hasher) }
    }

    /// Returns the smallest shape that keeps the error below `eps` L2 with probability 1 - `delta`.
    ///
    /// # Errors
    /// If `eps` or `delta` is not between 0 and 1, or the sketch would exceed the maximum size.
    pub fn shape_for(eps: f64, delta: f64) -> Result<Shape, ShapeError> {
        shape_for(eps, delta, |effective_width| effective_width)
    }

    /// Returns (eps, delta) of a shape: the error is at most `eps` L2 with probability 1 - `delta`.
    pub fn guarantee(shape: Shape) -> (f64, f64) {
        guarantee(shape, shape.width() as f64)
    }

    /// Estimates F2 = L2^2, the sum of the squares of all keys' weights.
    pub fn f2(&self) -> Estimate {
        f2(&self.rows, signed_row_f2(&self.rows.counters))
    }
}

impl<C: Counter> RowSketch for CountSketch<C> {
    type Counter = C;
    const SIGNED: bool = true;

    fn rows(&self) -> &Rows<C> {
        &self.rows
    }

    #[inline(always)]
    fn rows_mut(&mut self) -> &mut Rows<C> {
        &mut self.rows
    }

    fn noise(&self) -> Noise {
        let row_f2 = signed_row_f2(&self.rows.counters);
        noise(row_f2, self.shape(), &self.rows.statistics, self.saturations())
    }

    fn estimate(&self, digest: Digest, noise: &Noise) -> Estimate {
        estimate(&self.rows.counters, digest, noise, &self.rows.statistics)
    }
}

/// Returns the smallest odd number of rows whose median fails with probability at most `delta`, each wide enough for
/// `eps`. `width_for(x)` is the row width at which the variance from collisions is F2 / x; here x = c/eps^2.
pub(crate) fn shape_for(eps: f64, delta: f64, width_for: impl Fn(f64) -> f64) -> Result<Shape, ShapeError> {
    check_guarantee("eps", eps)?;
    check_guarantee("delta", delta)?;
    let meets_delta = |&rows: &usize| median_failure(rows, 1.0 / CHEBYSHEV_FACTOR) <= delta;
    let rows = (1..).step_by(2).take(100).find(meets_delta).map_or(f64::INFINITY, |rows| rows as f64);
    Shape::at_least(eps, delta, rows, width_for(CHEBYSHEV_FACTOR / (eps * eps)))
}

pub(crate) fn guarantee(shape: Shape, effective_width: f64) -> (f64, f64) {
    ((CHEBYSHEV_FACTOR / effective_width).sqrt(), median_failure(shape.rows(), 1.0 / CHEBYSHEV_FACTOR))
}

/// Estimates F2 from the median sum of squares, minus the variance that sampling adds.
pub(crate) fn f2<C: Counter>(rows: &Rows<C>, row_f2: f64) -> Estimate {
    f2_from(row_f2, rows.counters.shape(), &rows.statistics, rows.counters.saturations())
}

pub(crate) fn f2_from(
    row_f2: f64,
    shape: Shape,
    statistics: &StreamStatistics,
    saturations: u64,
) -> Estimate {
    let row_f2 = RowF2::new(row_f2, shape.width(), statistics);
    let added = statistics.sampling_f2();
    let value = (row_f2.measured - added).max(0.0);
    if saturations > 0 || (statistics.has_negative() && statistics.is_sampled()) {
        return Estimate { value, bound: Bound::Unknown };
    }
    if !row_f2.is_known() {
        let bound = if statistics.is_sampled() { Bound::NotConverged } else { Bound::Unknown };
        return Estimate { value, bound };
    }
    let confidence = 1.0 - median_failure(shape.rows(), 1.0 / CHEBYSHEV_FACTOR);
    Estimate::within(value, row_f2.lower_bound() - added, row_f2.upper_bound() - added, confidence)
        .at_least_zero()
}

/// The noise of rows with signs, whose median sum of squares is `row_f2`.
pub(crate) fn noise(row_f2: f64, shape: Shape, statistics: &StreamStatistics, saturations: u64) -> Noise {
    Noise::new(row_f2, shape.rows(), shape.width(), shape.width() as f64, statistics, saturations)
}

/// Estimates the weight of a key from rows with signs.
pub(crate) fn estimate<C: Counter>(
    counters: &Counters<C>,
    digest: Digest,
    noise: &Noise,
    statistics: &StreamStatistics,
) -> Estimate {
    let estimate = noise.interval(median_over_rows(counters, |row| {
        let column = counters.column(row, digest);
        column.signed(counters.get(row, column)) as f64
    }));
    if statistics.has_negative() { estimate } else { estimate.at_least_zero() }
}
