//! The library of loss curves, found by the tag of traffic.

use super::loss_curve::LossCurve;
use super::period::Period;
use super::tag::{Tag, Tolerance};

/// Loss curves by tag. The least recently used one makes room for a new one.
#[derive(Clone, Debug, PartialEq)]
pub struct Library {
    curves: Vec<(LossCurve, Period)>,
    capacity: usize,
}

impl Library {
    /// Creates an empty library for at most `capacity` curves, at least one.
    pub fn new(capacity: usize) -> Library {
        Library { curves: Vec::new(), capacity: capacity.max(1) }
    }

    /// Returns the curve whose tag is closest to `tag`, among those within the tolerance. Notes that `period` uses it.
    pub fn find(&mut self, tag: &Tag, tolerance: &Tolerance, period: Period) -> Option<&LossCurve> {
        let distances = self.curves.iter().enumerate();
        let close =
            distances.filter_map(|(index, (curve, _))| Some((index, tag.distance(&curve.tag, tolerance)?)));
        let (index, _) = close.min_by(|(_, one), (_, other)| one.total_cmp(other))?;
        let (curve, used) = &mut self.curves[index];
        *used = period.max(*used);
        Some(curve)
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

#[cfg(test)]
mod tests {
    use thalweg_wire::BitRate;

    use super::*;

    fn curve(rate: u64) -> LossCurve {
        let tag = Tag { mean_rate: BitRate(rate), burstiness: 0.3 };
        LossCurve { tag, points: Vec::new(), seconds: 1.0 }
    }

    #[test]
    fn the_closest_is_found_and_the_least_recently_used_leaves() {
        let tolerance = Tolerance { rate: BitRate(50), burstiness: 0.1 };
        let mut library = Library::new(2);
        library.add(curve(100), Period(1));
        library.add(curve(140), Period(2));
        let find = |library: &mut Library, rate, period| {
            let tag = Tag { mean_rate: BitRate(rate), burstiness: 0.35 };
            library.find(&tag, &tolerance, Period(period)).map(|curve| curve.tag.mean_rate.0)
        };
        assert_eq!(find(&mut library, 115, 3), Some(100));
        assert_eq!(find(&mut library, 125, 2), Some(140));
        assert_eq!(find(&mut library, 10, 9), None);
        library.add(curve(300), Period(4));
        assert_eq!(find(&mut library, 140, 5), Some(100), "that of 140 was used longest ago");
    }
}
