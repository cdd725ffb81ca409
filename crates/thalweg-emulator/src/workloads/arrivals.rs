//! When flows start.

use thalweg_wire::{BitRate, Timestamp};

use super::random::Random;
use super::{WorkloadError, checked_load};

/// The distribution of the times between arrivals.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Spacing {
    /// Independent and exponential: a Poisson process.
    #[default]
    Poisson,
    /// All equal. The first one comes after a uniformly drawn part.
    Constant,
}

/// An endless sequence of arrival times.
#[derive(Clone, Debug)]
pub struct Arrivals {
    spacing: Spacing,
    mean_gap_ns: f64,
    next: Timestamp,
    /// The nanoseconds by which `next` was rounded down, so that errors do not add up.
    fraction_ns: f64,
    random: Random,
}

impl Arrivals {
    /// Arrivals after `from` with a mean gap of `mean_gap_ns` nanoseconds.
    pub fn new(spacing: Spacing, mean_gap_ns: f64, from: Timestamp, random: Random) -> Arrivals {
        let mut arrivals = Arrivals { spacing, mean_gap_ns, next: from, fraction_ns: 0.0, random };
        let first = match spacing {
            Spacing::Poisson => arrivals.random.exponential(),
            Spacing::Constant => arrivals.random.unit(),
        };
        arrivals.advance(first);
        arrivals
    }

    /// The next arrival, without taking it.
    pub fn peek(&self) -> Timestamp {
        self.next
    }

    /// Takes the next arrival. At the end of time (year 2554) arrivals stop moving.
    pub fn take(&mut self) -> Timestamp {
        let taken = self.next;
        let gap = match self.spacing {
            Spacing::Poisson => self.random.exponential(),
            Spacing::Constant => 1.0,
        };
        self.advance(gap);
        taken
    }

    fn advance(&mut self, gaps: f64) {
        let nanos = self.fraction_ns + gaps * self.mean_gap_ns;
        self.next = Timestamp(self.next.0.saturating_add(nanos as u64));
        self.fraction_ns = nanos.fract();
    }
}

/// The mean gap in nanoseconds between arrivals of `mean_bytes` each that load `links` links of `rate` by `load`,
/// counting payload alone: `8e9 * mean_bytes / (load * rate * links)`.
///
/// # Errors
/// If the load, rate or size is invalid.
pub fn gap_for_load(load: f64, rate: BitRate, links: usize, mean_bytes: f64) -> Result<f64, WorkloadError> {
    let load = checked_load(load)?;
    if rate.0 == 0 {
        return Err(WorkloadError::Rate);
    }
    if !mean_bytes.is_finite() {
        return Err(WorkloadError::Endless);
    }
    Ok(8e9 * mean_bytes / (load * rate.0 as f64 * links as f64))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(spacing: Spacing, gap: f64, count: usize) -> Vec<u64> {
        let mut arrivals = Arrivals::new(spacing, gap, Timestamp(1000), Random::new(1, "arrivals", 0));
        (0..count).map(|_| arrivals.take().0).collect()
    }

    #[test]
    fn constant_arrivals_do_not_drift() {
        let times = times(Spacing::Constant, 0.3, 1_000_001);
        assert!((times[1_000_000] - times[0]).abs_diff(300_000) <= 1);
        assert!(times.is_sorted());
    }

    #[test]
    fn the_first_of_constant_arrivals_comes_within_one_gap() {
        let first = |seed| {
            let random = Random::new(seed, "arrivals", 0);
            Arrivals::new(Spacing::Constant, 1000.0, Timestamp(1000), random).peek().0
        };
        assert!((0..100).all(|seed| (1000..2000).contains(&first(seed))));
        assert_ne!(first(1), first(2));
    }

    /// 2^16 exponential gaps: mean and standard deviation are equal. The first is within 6/256 and the second within 6
    /// sqrt(2)/256 of 1, with a false alarm rate below 1e-8.
    #[test]
    fn the_standard_deviation_of_poisson_gaps_is_their_mean() {
        let times = times(Spacing::Poisson, 1e6, 1 + (1 << 16));
        let gaps: Vec<f64> = times.windows(2).map(|pair| (pair[1] - pair[0]) as f64 / 1e6).collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
        assert!((mean - 1.0).abs() < 6.0 / 256.0, "{mean}");
        assert!((variance.sqrt() - 1.0).abs() < 6.0 * 2f64.sqrt() / 256.0, "{variance}");
    }

    /// 1000-byte flows at half of two 8 Gbit/s links: one per microsecond on each would fill them.
    #[test]
    fn a_load_is_a_share_of_the_links() {
        assert_eq!(gap_for_load(0.5, BitRate(8_000_000_000), 2, 1000.0), Ok(1000.0));
        for load in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert!(matches!(gap_for_load(load, BitRate(1), 1, 1.0), Err(WorkloadError::Load(_))));
        }
        assert_eq!(gap_for_load(0.5, BitRate(0), 1, 1.0), Err(WorkloadError::Rate));
        assert_eq!(gap_for_load(0.5, BitRate(1), 1, f64::INFINITY), Err(WorkloadError::Endless));
    }
}
