//! K-ary: rows without signs, each read minus its mean; made for the difference of two windows.
//!
//! Krishnamurthy, Sen, Zhang, Chen 2003, "Sketch-based change detection". With S the sum of a row, the row's estimate
//! of x is (C\[h(x)\] - S/w) / (1 - 1/w), unbiased with variance at most F2/(w - 1) (section 3.1); the median of the
//! rows is the estimate. Being linear, the sketch of a difference is the difference of the sketches.
//!
//! **Guarantee**: the interval of [`crate::noise`] with w - 1 for w. Before any data, the error exceeds eps L2, eps =
//! sqrt(c/(w - 1)), with the probability that the median of d rows fails when each row fails with probability 1/c.
//!
//! Memory: d w counters of 4 or 8 bytes. An update touches d cache lines.

use crate::count_sketch;
use crate::counters::{Counter, Counters};
use crate::digest::{Digest, Hasher};
use crate::estimate::Estimate;
use crate::noise::Noise;
use crate::rows::{RowSketch, Rows, median_over_rows, unsigned_row_f2};
use crate::shape::{Shape, ShapeError};

/// A K-ary sketch with counters of type `C`.
#[derive(Clone, Debug, PartialEq)]
pub struct KAry<C: Counter = i32> {
    pub(crate) rows: Rows<C>,
}

impl<C: Counter> KAry<C> {
    /// Creates an empty sketch.
    pub fn new(shape: Shape, hasher: Hasher) -> KAry<C> {
        KAry { rows: Rows::new(shape, hasher) }
    }

    /// Returns the smallest shape that keeps the error below `eps` L2 with probability 1 - `delta`.
    ///
    /// # Errors
    /// If `eps` or `delta` is not between 0 and 1, or the sketch would exceed the maximum size.
    pub fn shape_for(eps: f64, delta: f64) -> Result<Shape, ShapeError> {
        count_sketch::shape_for(eps, delta, |effective_width| effective_width + 1.0)
    }

    /// Returns (eps, delta) of a shape: the error is at most `eps` L2 with probability 1 - `delta`.
    pub fn guarantee(shape: Shape) -> (f64, f64) {
        count_sketch::guarantee(shape, shape.width() as f64 - 1.0)
    }

    /// Estimates F2 = L2^2, the sum of the squares of all keys' weights.
    pub fn f2(&self) -> Estimate {
        count_sketch::f2(&self.rows, unsigned_row_f2(&self.rows.counters))
    }
}

impl<C: Counter> RowSketch for KAry<C> {
    type Counter = C;
    const SIGNED: bool = false;

    fn rows(&self) -> &Rows<C> {
        &self.rows
    }

    #[inline(always)]
    fn rows_mut(&mut self) -> &mut Rows<C> {
        &mut self.rows
    }

    fn noise(&self) -> Noise {
        noise(&self.rows)
    }

    fn estimate(&self, digest: Digest, noise: &Noise) -> Estimate {
        let counters = &self.rows.counters;
        let estimate = noise.interval(mean_free(counters, digest, noise));
        if self.rows.statistics.has_negative() { estimate } else { estimate.at_least_zero() }
    }
}

/// The noise of rows without signs.
pub(crate) fn noise<C: Counter>(rows: &Rows<C>) -> Noise {
    let shape = rows.counters.shape();
    let width = shape.width() as f64;
    let row_f2 = unsigned_row_f2(&rows.counters);
    let saturations = rows.counters.saturations();
    let mut noise =
        Noise::new(row_f2, shape.rows(), shape.width(), width - 1.0, &rows.statistics, saturations);
    for (row, mean) in noise.means[..shape.rows()].iter_mut().enumerate() {
        *mean = rows.counters.sum(row) / width;
    }
    // The mean may be off by as much as the counter.
    noise.rounding *= 2.0 / (1.0 - 1.0 / width);
    noise
}

/// Returns the median of a key's row estimates, each minus the mean of the colliding keys.
pub(crate) fn mean_free<C: Counter>(counters: &Counters<C>, digest: Digest, noise: &Noise) -> f64 {
    let width = counters.shape().width() as f64;
    median_over_rows(counters, |row| {
        let counter = counters.get(row, counters.column(row, digest)) as f64;
        (counter - noise.means[row]) / (1.0 - 1.0 / width)
    })
}
