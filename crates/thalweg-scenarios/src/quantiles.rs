//! Quantiles and distributions of measured times.

use serde::Serialize;
use thalweg_wire::Nanos;

/// Quantiles of times. Each is a measured value: the smallest one that at least this share does not exceed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Quantiles {
    /// The number of times.
    pub count: usize,
    /// The median.
    pub p50_ns: u64,
    /// The 99th percentile; of fewer than 100 times, the maximum.
    pub p99_ns: u64,
    /// The maximum.
    pub max_ns: u64,
}

impl Quantiles {
    /// Computes the quantiles of `times`; all zero if empty.
    pub fn of(times: impl IntoIterator<Item = Nanos>) -> Quantiles {
        let mut times: Vec<u64> = times.into_iter().map(|time| time.0).collect();
        times.sort_unstable();
        let quantile = |percent: usize| {
            let place = (times.len() * percent).div_ceil(100).max(1) - 1;
            times.get(place).copied().unwrap_or(0)
        };
        Quantiles { count: times.len(), p50_ns: quantile(50), p99_ns: quantile(99), max_ns: quantile(100) }
    }
}

/// Returns the cumulative distribution of `times` as points: nanoseconds, and the share that does not exceed them, 0 to
/// 1.
pub(super) fn cumulative(times: impl IntoIterator<Item = Nanos>) -> Vec<(f64, f64)> {
    let mut times: Vec<u64> = times.into_iter().map(|time| time.0).collect();
    times.sort_unstable();
    let count = times.len() as f64;
    let steps = times.iter().zip(1..).flat_map(|(&time, rank)| {
        [(time as f64, f64::from(rank - 1) / count), (time as f64, f64::from(rank) / count)]
    });
    std::iter::once((0.0, 0.0)).chain(steps).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_measured_values() {
        let spread = Quantiles::of((1..=200).rev().map(Nanos));
        assert_eq!(spread, Quantiles { count: 200, p50_ns: 100, p99_ns: 198, max_ns: 200 });
        assert_eq!(Quantiles::of([Nanos(7)]), Quantiles { count: 1, p50_ns: 7, p99_ns: 7, max_ns: 7 });
        assert_eq!(Quantiles::of([]), Quantiles::default());
    }

    #[test]
    fn distribution_rises_from_zero_to_one() {
        let points = cumulative([Nanos(30), Nanos(10)]);
        assert_eq!(points, [(0.0, 0.0), (10.0, 0.0), (10.0, 0.5), (30.0, 0.5), (30.0, 1.0)]);
    }
}
