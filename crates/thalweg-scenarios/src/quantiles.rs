//! Quantiles and distributions of measured times.

use std::fmt;

use serde::Serialize;
use thalweg_wire::Nanos;

/// Probability with which an [`Interval`] contains its quantile, at least.
pub const CONFIDENCE: f64 = 0.95;

/// An interval that contains a quantile of the distribution with a probability of at least [`CONFIDENCE`], whatever the
/// distribution: two of the measured times (David and Nagaraja, "Order Statistics", 2003, section 7.1). An end is `None` if
/// there are too few times: for the 99th percentile of 30, nothing bounds it from above.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Interval {
    /// The lower end, in nanoseconds.
    pub low_ns: Option<u64>,
    /// The upper end, in nanoseconds.
    pub high_ns: Option<u64>,
}

impl Interval {
    /// Computes the interval of the quantile `share`, 0 to 1, of independent `times`.
    pub fn of(times: &[Nanos], share: f64) -> Interval {
        let mut times: Vec<u64> = times.iter().map(|time| time.0).collect();
        times.sort_unstable();
        let (count, tail) = (times.len() as u32, (1.0 - CONFIDENCE) / 2.0);
        // The number of times below the quantile has a binomial distribution.
        let mut below = Vec::with_capacity(times.len() + 1);
        let mut sum = 0.0;
        for number in 0..=count {
            sum += binomial(count, number, share);
            below.push(sum);
        }
        // The time of rank r, from 1, exceeds the quantile if fewer than r times are below it.
        let low = (1..=times.len()).rev().find(|rank| below[rank - 1] <= tail);
        let high = (1..=times.len()).find(|rank| below[rank - 1] >= 1.0 - tail);
        let time = |rank: usize| times[rank - 1];
        Interval { low_ns: low.map(time), high_ns: high.map(time) }
    }
}

/// The probability of `number` successes in `count` attempts.
fn binomial(count: u32, number: u32, share: f64) -> f64 {
    let choose: f64 = (1..=number).map(|k| (f64::from(count - number + k) / f64::from(k)).ln()).sum();
    let ln = |share: f64, times: u32| if times == 0 { 0.0 } else { f64::from(times) * share.ln() };
    (choose + ln(share, number) + ln(1.0 - share, count - number)).exp()
}

/// `0.14 to 0.19 ms`, with `?` for an end that is not known.
impl fmt::Display for Interval {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let end = |end: Option<u64>| end.map_or("?".to_owned(), |ns| format!("{:.2}", ns as f64 / 1e6));
        f.pad(&format!("{} to {} ms", end(self.low_ns), end(self.high_ns)))
    }
}

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

/// Returns the mean; 0 of nothing.
pub(crate) fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let (sum, count) = values.fold((0.0, 0), |(sum, count), value| (sum + value, count + 1));
    if count == 0 { 0.0 } else { sum / f64::from(count) }
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
    fn intervals_are_order_statistics() {
        // Tables of the median: ranks 6 and 15 of 20, 10 and 21 of 30.
        let times = |count: u64| (1..=count).map(Nanos).collect::<Vec<_>>();
        let median = |count| Interval::of(&times(count), 0.5);
        assert_eq!(median(20), Interval { low_ns: Some(6), high_ns: Some(15) });
        assert_eq!(median(30), Interval { low_ns: Some(10), high_ns: Some(21) });
        assert_eq!(median(5), Interval::default(), "five times miss the median with a probability of 6 %");
        let high = Interval::of(&times(30), 0.99);
        assert_eq!(high, Interval { low_ns: Some(28), high_ns: None });
        assert_eq!(high.to_string(), "0.00 to ? ms");
        assert!(Interval::of(&times(400), 0.99).high_ns.is_some());
        assert_eq!(Interval::of(&[], 0.5), Interval::default());
    }

    #[test]
    fn distribution_rises_from_zero_to_one() {
        let points = cumulative([Nanos(30), Nanos(10)]);
        assert_eq!(points, [(0.0, 0.0), (10.0, 0.0), (10.0, 0.5), (30.0, 0.5), (30.0, 1.0)]);
    }
}
