//! How measured times lie.

use serde::Serialize;
use thalweg_wire::Nanos;

/// Quantiles of some times: the least value that as large a share is not above.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Spread {
    /// How many there are.
    pub count: usize,
    /// Half are at most this.
    pub p50_ns: u64,
    /// 99 % are at most this; of fewer than a hundred, the longest.
    pub p99_ns: u64,
    /// The longest.
    pub most_ns: u64,
}

impl Spread {
    /// Of these; zeros if there are none.
    pub fn of(times: impl IntoIterator<Item = Nanos>) -> Spread {
        let mut times: Vec<u64> = times.into_iter().map(|time| time.0).collect();
        times.sort_unstable();
        let quantile = |percent: usize| {
            let place = (times.len() * percent).div_ceil(100).max(1) - 1;
            times.get(place).copied().unwrap_or(0)
        };
        Spread { count: times.len(), p50_ns: quantile(50), p99_ns: quantile(99), most_ns: quantile(100) }
    }
}

/// The distribution of some times: nanoseconds, and the share that is not above them, from 0 to 1.
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
    fn quantiles_are_values_that_were_measured() {
        let spread = Spread::of((1..=200).rev().map(Nanos));
        assert_eq!(spread, Spread { count: 200, p50_ns: 100, p99_ns: 198, most_ns: 200 });
        assert_eq!(Spread::of([Nanos(7)]), Spread { count: 1, p50_ns: 7, p99_ns: 7, most_ns: 7 });
        assert_eq!(Spread::of([]), Spread::default());
    }

    #[test]
    fn a_distribution_rises_from_nothing_to_all() {
        let points = cumulative([Nanos(30), Nanos(10)]);
        assert_eq!(points, [(0.0, 0.0), (10.0, 0.0), (10.0, 0.5), (30.0, 0.5), (30.0, 1.0)]);
    }
}
