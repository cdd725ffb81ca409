//! The library of loss curves, and what those of similar traffic say together.
//!
//! A rare loss depends on a few bursts: that of one hour differs from the next hour's of the same tag by more than its mean. So
//! a curve does not stand for its tag alone. Those of similar traffic are pooled: the loss at a rate is
//!
//! ```text
//!   L = sum(w l) / sum(w),   w = similarity of the tags * bits replayed
//!   standard error = sqrt(k / (k - 1) * sum(w^2 (l - L)^2)) / sum(w),   k curves
//! ```
//!
//! the ratio of sums over a sample of clusters (Cochran 1977, *Sampling techniques*, section 6), with the weights of a kernel
//! regression over the tag (Nadaraya 1964, *Theory of Probability and its Applications* 9). So neighbouring tags are interpolated, too.
//!
//! Memory: `capacity` curves. A lookup visits all of them.

use thalweg_wire::BitRate;

use super::loss_curve::{LossCurve, LossPoint};
use super::period::Period;
use super::tag::{Tag, Tolerance};

/// Curves of similar traffic from which more would change little.
const ENOUGH: usize = 16;

/// Curves of similar traffic below which chance decides.
const FEW: usize = 8;

/// By how much a tolerance is widened at most to find [`FEW`] curves.
const WIDEST: u32 = 4;

/// Loss curves by tag. The least recently used one makes room for a new one.
#[derive(Clone, Debug, PartialEq)]
pub struct Library {
    curves: Vec<(LossCurve, Period)>,
    capacity: usize,
}

/// What the curves of similar traffic say together.
#[derive(Clone, Debug, PartialEq)]
pub struct Pool {
    /// The pooled curve.
    pub curve: LossCurve,
    /// The number of curves.
    pub curves: usize,
}

impl Pool {
    /// Returns whether another curve of such traffic would hardly change the threshold: there are enough, or a standard error
    /// more or less leads to the same.
    pub fn is_settled(&self, acceptable_loss: f64) -> bool {
        let threshold = |errors: f64| self.curve.shifted(errors).threshold(acceptable_loss);
        self.curves >= ENOUGH || (self.curves >= FEW && threshold(1.0) == threshold(-1.0))
    }
}

impl Library {
    /// Creates an empty library for at most `capacity` curves, at least one.
    pub fn new(capacity: usize) -> Library {
        Library { curves: Vec::new(), capacity: capacity.max(1) }
    }

    /// Pools the curves of traffic like `tag`; `None` if there is none within the tolerance. Neighbours help if there are
    /// only few. Notes that `period` uses those within the tolerance.
    pub fn find(&mut self, tag: &Tag, tolerance: &Tolerance, period: Period) -> Option<Pool> {
        let is_close = |curve: &LossCurve| tag.similarity(&curve.tag, tolerance) > 0.0;
        let mut is_known = false;
        for (_, used) in self.curves.iter_mut().filter(|(curve, _)| is_close(curve)) {
            *used = period.max(*used);
            is_known = true;
        }
        is_known.then(|| self.nearest(tag, tolerance)).flatten()
    }

    /// Pools the curves nearest to `tag`: those within the tolerance, or within up to four times of it if there are only few.
    pub fn nearest(&self, tag: &Tag, tolerance: &Tolerance) -> Option<Pool> {
        let pools = (1..=WIDEST).map(|factor| self.pool(tag, &tolerance.times(factor)));
        let mut widest = None;
        for pool in pools.flatten() {
            let is_enough = pool.curves >= FEW;
            widest = Some(pool);
            if is_enough {
                break;
            }
        }
        widest
    }

    /// Pools the curves within a tolerance. Those of other rates than the most similar one are left out.
    fn pool(&self, tag: &Tag, tolerance: &Tolerance) -> Option<Pool> {
        let curves = self.curves.iter().map(|(curve, _)| (curve, tag.similarity(&curve.tag, tolerance)));
        let mut similar: Vec<(&LossCurve, f64)> =
            curves.filter(|(_, similarity)| *similarity > 0.0).collect();
        let (model, _) = similar.iter().copied().max_by(|one, other| one.1.total_cmp(&other.1))?;
        similar.retain(|(curve, _)| curve.rates().eq(model.rates()));
        for (curve, weight) in &mut similar {
            *weight *= curve.seconds * curve.tag.mean_rate.0 as f64;
        }
        let points = model.rates().enumerate().map(|(place, rate)| {
            let values: Vec<(LossPoint, f64)> =
                similar.iter().map(|(curve, weight)| (curve.points[place], *weight)).collect();
            pooled(rate, &values)
        });
        let curve = LossCurve {
            tag: *tag,
            points: points.collect(),
            seconds: similar.iter().map(|(curve, _)| curve.seconds).sum(),
        };
        Some(Pool { curve, curves: similar.len() })
    }

    /// Adds a curve that `period` uses.
    pub fn add(&mut self, curve: LossCurve, period: Period) {
        if self.curves.len() >= self.capacity {
            let oldest = self.curves.iter().enumerate().min_by_key(|(_, (_, used))| *used);
            if let Some((index, _)) = oldest {
                self.curves.remove(index);
            }
        }
        self.curves.push((curve, period));
    }

    /// Returns all curves, each with the last period that used it.
    pub fn curves(&self) -> impl ExactSizeIterator<Item = (&LossCurve, Period)> {
        self.curves.iter().map(|(curve, used)| (curve, *used))
    }
}

/// Returns the weighted mean of points. The error of a single one is its own.
fn pooled(rate: BitRate, values: &[(LossPoint, f64)]) -> LossPoint {
    let sum = |of: &dyn Fn(&LossPoint, f64) -> f64| {
        values.iter().map(|(point, weight)| of(point, *weight)).sum::<f64>()
    };
    let weights = sum(&|_, weight| weight);
    let loss = sum(&|point, weight| weight * point.loss) / weights;
    let count = values.len() as f64;
    let error = match values {
        [(only, _)] => only.error,
        _ => {
            (sum(&|point, weight| (weight * (point.loss - loss)).powi(2)) * count / (count - 1.0)).sqrt()
                / weights
        }
    };
    LossPoint { rate, loss, error }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tag(rate: u64) -> Tag {
        Tag { mean_rate: BitRate(rate), burstiness: 0.3 }
    }

    fn curve(rate: u64, loss: f64) -> LossCurve {
        let point = LossPoint { rate: BitRate(500), loss, error: 0.01 };
        LossCurve { tag: tag(rate), points: vec![point], seconds: 1.0 }
    }

    const TOLERANCE: Tolerance = Tolerance { rate: BitRate(50), burstiness: 0.1 };

    #[test]
    fn similar_curves_are_pooled_by_their_bits_and_the_spread_is_the_error() {
        let mut library = Library::new(8);
        let losses = [0.0, 0.0, 0.0, 0.4, 0.0, 0.0, 0.0, 0.4];
        losses.into_iter().for_each(|loss| library.add(curve(100, loss), Period(1)));
        let pool = library.nearest(&tag(100), &TOLERANCE).unwrap();
        let point = pool.curve.points[0];
        // The variance of the eight is (6 * 0.01 + 2 * 0.09) / 7.
        let error = (0.24f64 / 7.0 / 8.0).sqrt();
        assert!((point.loss - 0.1).abs() < 1e-9 && (point.error - error).abs() < 1e-9, "{point:?}");
        assert_eq!((pool.curves, pool.curve.seconds), (8, 8.0));
        assert!(pool.is_settled(0.5) && !pool.is_settled(0.15), "0.07 more or less decides");
        // Half-way between two tags of equal weight; the one with 120 has a fifth more bits.
        let mut library = Library::new(8);
        library.add(curve(100, 0.1), Period(1));
        library.add(curve(120, 0.2), Period(1));
        let between = library.nearest(&tag(110), &TOLERANCE).unwrap().curve.points[0].loss;
        assert!((between - (0.1 + 1.2 * 0.2) / 2.2).abs() < 1e-9, "{between}");
    }

    #[test]
    fn one_curve_is_itself_and_neighbours_help_only_known_traffic() {
        let mut library = Library::new(8);
        library.add(curve(100, 0.1), Period(1));
        let pool = library.find(&tag(120), &TOLERANCE, Period(2)).unwrap();
        assert_eq!(pool.curve, LossCurve { tag: tag(120), ..curve(100, 0.1) });
        assert!(!pool.is_settled(0.5));
        assert_eq!(library.find(&tag(180), &TOLERANCE, Period(2)), None, "a new table is set up");
        assert_eq!(library.nearest(&tag(180), &TOLERANCE).unwrap().curves, 1, "until then, the nearest one");
        assert_eq!(library.nearest(&tag(301), &TOLERANCE), None);
        library.add(curve(180, 0.3), Period(1));
        assert_eq!(library.find(&tag(180), &TOLERANCE, Period(2)).unwrap().curves, 2);
        (0..7).for_each(|_| library.add(curve(180, 0.3), Period(1)));
        assert_eq!(library.find(&tag(180), &TOLERANCE, Period(2)).unwrap().curves, 8, "no neighbour");
    }

    #[test]
    fn the_least_recently_used_leaves() {
        let mut library = Library::new(2);
        library.add(curve(100, 0.1), Period(1));
        library.add(curve(200, 0.2), Period(2));
        assert!(library.find(&tag(115), &TOLERANCE, Period(3)).is_some());
        library.add(curve(300, 0.3), Period(3));
        let left: Vec<u64> = library.curves().map(|(curve, _)| curve.tag.mean_rate.0).collect();
        assert_eq!(left, [100, 300]);
    }

    #[test]
    fn curves_of_other_rates_are_not_mixed() {
        let mut library = Library::new(2);
        library.add(curve(100, 0.1), Period(1));
        let point = LossPoint { rate: BitRate(600), loss: 0.5, error: 0.0 };
        library.add(LossCurve { tag: tag(130), points: vec![point], seconds: 1.0 }, Period(1));
        assert_eq!(library.nearest(&tag(100), &TOLERANCE).unwrap().curve, curve(100, 0.1));
    }
}
