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
    /// Returns how similar another tag is: 1 if equal, falling to 0 where either part is a tolerance apart (the product of
    /// two Epanechnikov kernels).
    pub fn similarity(&self, other: &Tag, tolerance: &Tolerance) -> f64 {
        let rate = self.mean_rate.0.abs_diff(other.mean_rate.0) as f64 / tolerance.rate.0.max(1) as f64;
        let burstiness = (self.burstiness - other.burstiness).abs() / tolerance.burstiness;
        match rate < 1.0 && burstiness < 1.0 {
            true => (1.0 - rate * rate) * (1.0 - burstiness * burstiness),
            false => 0.0,
        }
    }
}

impl Tolerance {
    /// Returns a tolerance that is `factor` times as wide.
    pub fn times(&self, factor: u32) -> Tolerance {
        Tolerance {
            rate: BitRate(self.rate.0.saturating_mul(u64::from(factor))),
            burstiness: self.burstiness * f64::from(factor),
        }
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
        let similarity = |rate, burstiness| here.similarity(&tag(rate, burstiness), &tolerance);
        assert_eq!((similarity(200, 0.5), similarity(210, 0.5)), (1.0, 0.75));
        assert!((similarity(190, 0.55) - 0.75 * 0.75).abs() < 1e-9);
        assert_eq!((similarity(220, 0.5), similarity(200, 0.61), similarity(200, f64::NAN)), (0.0, 0.0, 0.0));
        let wide = tolerance.times(2);
        assert!((here.similarity(&tag(220, 0.5), &wide) - 0.75).abs() < 1e-9);
    }
}
