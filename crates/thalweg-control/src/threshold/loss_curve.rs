//! Loss of the background traffic by the rate of a cheetah flow: what a setup finds (dissertation, section 4.2).

use thalweg_wire::BitRate;

use super::tag::Tag;

/// The loss that the simulation found for one rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LossPoint {
    /// The rate to which the cheetah flow was limited: r_CF.
    pub rate: BitRate,
    /// Dropped background packets, divided by all.
    pub loss: f64,
    /// The standard error of the loss; 0 if all packets of the period were replayed.
    pub error: f64,
}

/// Loss by rate, for traffic with a tag. Of the longest round-trip time, which loses most.
#[derive(Clone, Debug, PartialEq)]
pub struct LossCurve {
    /// The traffic.
    pub tag: Tag,
    /// In ascending order of rates. At least one.
    pub points: Vec<LossPoint>,
    /// How much traffic was replayed, in seconds.
    pub seconds: f64,
}

/// A threshold from a curve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Threshold {
    /// R.
    pub rate: BitRate,
    /// Whether loss is acceptable up to this rate. Otherwise even the lowest rate of the curve loses too much.
    pub is_acceptable: bool,
}

impl LossCurve {
    /// Returns the largest rate up to which no rate exceeds the acceptable loss. The lowest rate, if that already does.
    pub fn threshold(&self, acceptable_loss: f64) -> Threshold {
        let accepted = self.points.iter().take_while(|point| point.loss <= acceptable_loss).last();
        let lowest = self.points.first().map_or(BitRate(0), |point| point.rate);
        Threshold { rate: accepted.map_or(lowest, |point| point.rate), is_acceptable: accepted.is_some() }
    }

    /// Returns its rates.
    pub fn rates(&self) -> impl ExactSizeIterator<Item = BitRate> {
        self.points.iter().map(|point| point.rate)
    }

    /// Returns the curve with so many standard errors more loss.
    pub fn shifted(&self, errors: f64) -> LossCurve {
        let points = self.points.iter();
        let points = points.map(|point| LossPoint { loss: point.loss + errors * point.error, ..*point });
        LossCurve { points: points.collect(), ..self.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_threshold_is_the_largest_rate_up_to_which_loss_is_acceptable() {
        let points = [(1, 0.001), (2, 0.003), (3, 0.002), (4, 0.005)];
        let points = points.map(|(rate, loss)| LossPoint { rate: BitRate(rate), loss, error: 0.0 });
        let tag = Tag { mean_rate: BitRate(1), burstiness: 1.0 };
        let curve = LossCurve { tag, points: points.to_vec(), seconds: 1.0 };
        let threshold = |loss| (curve.threshold(loss).rate.0, curve.threshold(loss).is_acceptable);
        assert_eq!(threshold(0.003), (3, true));
        assert_eq!(threshold(0.002), (1, true), "a rate in between loses more");
        assert_eq!(threshold(0.0005), (1, false));
    }
}
