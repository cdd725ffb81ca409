//! A distribution of flow sizes, defined by points of its cumulative distribution function.
//!
//! The function is linear between points, as in the papers' generators. Two points with the same size are a step: that
//! size has the difference as its probability. Two points with the same probability are a gap without flows. Memory: 16
//! bytes per point. A draw is a binary search.

use thiserror::Error;

/// The probability that flows have at most this size.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// Size in bytes.
    pub bytes: u64,
    /// The share of flows with at most this size, 0 to 1.
    pub probability: f64,
}

/// The largest valid size, 1 PB: exact as a floating-point number.
pub const MAX_SIZE: u64 = 1_000_000_000_000_000;

/// The largest valid number of points.
pub const MAX_POINTS: usize = 65_536;

/// Why points are invalid. Points are numbered from 0.
#[derive(Clone, Debug, Error, PartialEq)]
#[non_exhaustive]
pub enum PointsError {
    /// There are no points.
    #[error("expected at least one size with its probability")]
    None,
    /// There are too many points.
    #[error("expected at most {MAX_POINTS} points")]
    TooMany,
    /// A size is too large.
    #[error("a size of {bytes} bytes: expected at most {MAX_SIZE}")]
    Size {
        /// The point.
        point: usize,
        /// Its size.
        bytes: u64,
    },
    /// A probability is not between 0 and 1.
    #[error("a probability of {probability}: expected 0 to 1")]
    Probability {
        /// The point.
        point: usize,
        /// Its probability.
        probability: f64,
    },
    /// A point is not above and to the right of the one before.
    #[error(
        "{bytes} bytes with probability {probability}: expected the size or the probability to rise, and neither to fall"
    )]
    Order {
        /// The point.
        point: usize,
        /// Its size.
        bytes: u64,
        /// Its probability.
        probability: f64,
    },
    /// The last probability is not 1.
    #[error(
        "the last probability is {probability}: expected 1, since all flows have at most the largest size"
    )]
    Last {
        /// The point.
        point: usize,
        /// Its probability.
        probability: f64,
    },
}

/// A distribution of flow sizes.
#[derive(Clone, Debug, PartialEq)]
pub struct SizeDistribution {
    points: Box<[Point]>,
    mean: f64,
}

impl SizeDistribution {
    /// A distribution through `points` in increasing order, up to the probability 1. A first probability above 0 is
    /// that of the first size alone.
    ///
    /// # Errors
    /// The first invalid point.
    pub fn new(points: Vec<Point>) -> Result<SizeDistribution, PointsError> {
        check(&points)?;
        let mut mean = points[0].bytes as f64 * points[0].probability;
        for pair in points.windows(2) {
            let middle = (pair[0].bytes + pair[1].bytes) as f64 / 2.0;
            mean += middle * (pair[1].probability - pair[0].probability);
        }
        Ok(SizeDistribution { points: points.into(), mean: mean.max(1.0) })
    }

    /// The points.
    pub fn points(&self) -> &[Point] {
        &self.points
    }

    /// The mean size in bytes: the integral of the linear pieces, at least one. Rounding to whole bytes changes a draw
    /// by at most half a byte.
    pub fn mean(&self) -> f64 {
        self.mean
    }

    /// The largest size in bytes.
    pub fn max(&self) -> u64 {
        self.points[self.points.len() - 1].bytes.max(1)
    }

    /// The size in bytes that a share `probability` of flows does not exceed; the smallest size below the first point,
    /// the largest from 1 on.
    pub fn quantile(&self, probability: f64) -> f64 {
        let above = self.points.partition_point(|point| point.probability < probability);
        let Some(high) = self.points.get(above) else { return self.max() as f64 };
        let high_bytes = high.bytes as f64;
        match above.checked_sub(1) {
            None => high_bytes,
            Some(below) => {
                let low = self.points[below];
                let part = (probability - low.probability) / (high.probability - low.probability);
                // From the upper end, so that a point's own probability gives its exact size.
                high_bytes - (1.0 - part) * (high_bytes - low.bytes as f64)
            }
        }
    }

    /// The share of flows with at most `bytes`.
    pub fn cumulative(&self, bytes: f64) -> f64 {
        let above = self.points.partition_point(|point| point.bytes as f64 <= bytes);
        let Some(below) = above.checked_sub(1) else { return 0.0 };
        let low = self.points[below];
        let Some(high) = self.points.get(above) else { return 1.0 };
        let part = (bytes - low.bytes as f64) / (high.bytes - low.bytes) as f64;
        low.probability + part * (high.probability - low.probability)
    }

    /// The size for a uniform number `u` in [0, 1): the quantile, rounded to whole bytes, at least one.
    pub fn sample(&self, u: f64) -> u64 {
        (self.quantile(u).round() as u64).max(1)
    }
}

fn check(points: &[Point]) -> Result<(), PointsError> {
    if points.len() > MAX_POINTS {
        return Err(PointsError::TooMany);
    }
    let mut before: Option<Point> = None;
    for (number, &point) in points.iter().enumerate() {
        let Point { bytes, probability } = point;
        if bytes > MAX_SIZE {
            return Err(PointsError::Size { point: number, bytes });
        }
        if !(0.0..=1.0).contains(&probability) {
            return Err(PointsError::Probability { point: number, probability });
        }
        if before.is_some_and(|low| bytes < low.bytes || probability < low.probability || point == low) {
            return Err(PointsError::Order { point: number, bytes, probability });
        }
        before = Some(point);
    }
    match before {
        None => Err(PointsError::None),
        Some(Point { probability: 1.0, .. }) => Ok(()),
        Some(Point { probability, .. }) => Err(PointsError::Last { point: points.len() - 1, probability }),
    }
}
