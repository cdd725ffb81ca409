//! Count-Min: estimates that are never too low and seldom much too high.
//!
//! Cormode and Muthukrishnan 2005, "An improved data stream summary: the count-min sketch and its applications". Each
//! key adds its weight to one counter of each row; the minimum of these counters is the estimate.
//!
//! **Guarantee** (their theorem 1), for non-negative weights and p = 1: the estimate is never below the truth, and
//! above it by more than eps L1, eps = e/w, with probability at most delta = exp(-d).
//!
//! With negative weights or sampled updates, the minimum is not an estimate. Then rows are read as in K-ary: the mean
//! of the other keys is subtracted from each counter. Each row is then unbiased. The median of the rows is the
//! estimate, with the bound of [`crate::noise`].
//!
//! Memory: d w counters of 4 or 8 bytes. An update touches d cache lines.

use crate::counters::{Counter, Reading};
use crate::digest::{Digest, Hasher};
use crate::estimate::{Bound, Estimate};
use crate::k_ary::mean_free;
use crate::noise::Noise;
use crate::rows::{RowSketch, Rows};
use crate::shape::{Shape, ShapeError, check_guarantee};

/// A Count-Min sketch with counters of type `C`.
#[derive(Clone, Debug, PartialEq)]
pub struct CountMin<C: Counter = i32> {
    pub(crate) rows: Rows<C>,
}

impl<C: Counter> CountMin<C> {
    /// Creates an empty sketch.
    pub fn new(shape: Shape, hasher: Hasher) -> CountMin<C> {
        CountMin { rows: Rows::new(shape, hasher) }
    }

    /// Returns the smallest shape that keeps the error below `eps` L1 with probability 1 - `delta`: w = e/eps, d =
    /// ln(1/delta).
    ///
    /// # Errors
    /// If `eps` or `delta` is not between 0 and 1, or the sketch would exceed the maximum size.
    pub fn shape_for(eps: f64, delta: f64) -> Result<Shape, ShapeError> {
        check_guarantee("eps", eps)?;
        check_guarantee("delta", delta)?;
        Shape::at_least(eps, delta, -delta.ln(), std::f64::consts::E / eps)
    }

    /// Returns (eps, delta) of a shape: the error is at most `eps` L1 with probability 1 - `delta`.
    pub fn guarantee(shape: Shape) -> (f64, f64) {
        (std::f64::consts::E / shape.width() as f64, (-(shape.rows() as f64)).exp())
    }

    fn has_minimum(&self) -> bool {
        !self.rows.statistics.is_sampled() && !self.rows.statistics.has_negative()
    }
}

impl<C: Counter> RowSketch for CountMin<C> {
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
        crate::k_ary::noise(&self.rows)
    }

    fn estimate(&self, digest: Digest, noise: &Noise) -> Estimate {
        if !self.has_minimum() {
            let estimate = noise.interval(mean_free(&self.rows.counters, digest, noise));
            return if self.rows.statistics.has_negative() { estimate } else { estimate.at_least_zero() };
        }
        let value = self.estimate_without_bound(digest) as f64;
        if self.saturations() > 0 {
            return Estimate { value, bound: Bound::Unknown };
        }
        let (eps, delta) = Self::guarantee(self.shape());
        // A decay of all weights (`Rows::scale`) rounds each counter.
        let rounding = self.rows.statistics.rounding();
        let lower = value - eps * self.rows.statistics.total() as f64 - rounding;
        Estimate::within(value, lower.max(0.0), value + rounding, 1.0 - delta)
    }

    #[inline(always)]
    fn reading(&self) -> Reading {
        if self.has_minimum() { Reading::Minimum } else { Reading::Median }
    }
}
