//! The tag of traffic: its mean rate and its burstiness (dissertation, section 4.2).

use thalweg_wire::BitRate;

/// What two periods must have in common for one table to hold for both.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tag {
    /// The mean rate: r.
    pub mean_rate: BitRate,
    /// The burstiness: b, the standard deviation of the bytes in windows of T1, divided by their mean.
    pub burstiness: f64,
}

/// How far apart the tags of similar traffic may be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tolerance {
    /// Of the mean rate: eps_r.
    pub rate: BitRate,
    /// Of the burstiness: eps_b.
    pub burstiness: f64,
}

impl Tag {
    /// Returns the squared distance to another tag, in tolerances; `None` unless both parts are less than one tolerance apart.
    pub fn distance(&self, other: &Tag, tolerance: &Tolerance) -> Option<f64> {
        let rate = self.mean_rate.0.abs_diff(other.mean_rate.0) as f64 / tolerance.rate.0.max(1) as f64;
        let burstiness = (self.burstiness - other.burstiness).abs() / tolerance.burstiness;
        (rate < 1.0 && burstiness < 1.0).then_some(rate * rate + burstiness * burstiness)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_parts_must_be_close() {
        let tag = |rate, burstiness| Tag { mean_rate: BitRate(rate), burstiness };
        let tolerance = Tolerance { rate: BitRate(20), burstiness: 0.1 };
        let here = tag(200, 0.5);
        assert_eq!(here.distance(&tag(210, 0.5), &tolerance), Some(0.25));
        assert!((here.distance(&tag(190, 0.55), &tolerance).unwrap() - 0.5).abs() < 1e-9);
        assert_eq!(here.distance(&tag(220, 0.5), &tolerance), None);
        assert_eq!(here.distance(&tag(200, 0.61), &tolerance), None);
        assert_eq!(here.distance(&tag(200, f64::NAN), &tolerance), None);
    }
}
