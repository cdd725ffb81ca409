//! Latency histograms of events.
//!
//! Each power of two has 16 buckets, so values from 16 ns to 18 minutes have a relative error of at most 1/16. One thread writes;
//! any number may read. There are no locks.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Buckets per power of two.
const STEPS: u64 = 16;

/// Number of buckets: those below 2^41 ns, and an overflow bucket.
const BUCKETS: usize = ((40 - 4) * STEPS + 2 * STEPS + 1) as usize;

/// A histogram of latencies.
#[derive(Debug)]
pub struct LatencyHistogram {
    buckets: Box<[AtomicU64]>,
    sum_ns: AtomicU64,
}

/// A snapshot of a [`LatencyHistogram`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Latency {
    buckets: Box<[u64]>,
    /// Sum of all latencies, in nanoseconds.
    pub sum_ns: u64,
}

impl Default for LatencyHistogram {
    fn default() -> Self {
        LatencyHistogram {
            buckets: (0..BUCKETS).map(|_| AtomicU64::new(0)).collect(),
            sum_ns: AtomicU64::new(0),
        }
    }
}

impl LatencyHistogram {
    /// Counts a latency.
    #[inline]
    pub fn record(&self, latency: Duration) {
        let nanos = u64::try_from(latency.as_nanos()).unwrap_or(u64::MAX);
        self.buckets[bucket_of(nanos)].fetch_add(1, Ordering::Relaxed);
        self.sum_ns.fetch_add(nanos, Ordering::Relaxed);
    }

    /// Returns a snapshot.
    pub fn read(&self) -> Latency {
        Latency {
            buckets: self.buckets.iter().map(|bucket| bucket.load(Ordering::Relaxed)).collect(),
            sum_ns: self.sum_ns.load(Ordering::Relaxed),
        }
    }
}

impl Latency {
    /// Returns the number of latencies.
    pub fn count(&self) -> u64 {
        self.buckets.iter().sum()
    }

    /// Returns the number of latencies in buckets that end at or below `limit`.
    pub fn at_most(&self, limit: Duration) -> u64 {
        let nanos = u64::try_from(limit.as_nanos()).unwrap_or(u64::MAX);
        let whole = self.buckets.iter().enumerate().take_while(|(bucket, _)| end_of(*bucket) <= nanos);
        whole.map(|(_, count)| count).sum()
    }

    /// Returns a quantile: the end of its bucket. `None` if the histogram is empty, or the quantile is in the overflow bucket.
    pub fn quantile(&self, share: f64) -> Option<Duration> {
        let rank = (share * self.count() as f64).ceil().max(1.0) as u64;
        let mut seen = 0;
        let bucket = self.buckets.iter().position(|count| {
            seen += count;
            seen >= rank
        })?;
        (bucket + 1 < BUCKETS).then(|| Duration::from_nanos(end_of(bucket)))
    }
}

/// Returns the bucket of a value.
#[inline]
fn bucket_of(nanos: u64) -> usize {
    if nanos < STEPS {
        return nanos as usize;
    }
    let power = u64::from(nanos.ilog2()) - 4;
    let bucket = power * STEPS + (nanos >> power);
    (bucket as usize).min(BUCKETS - 1)
}

/// Returns the largest value of a bucket.
fn end_of(bucket: usize) -> u64 {
    let bucket = bucket as u64;
    if bucket as usize == BUCKETS - 1 {
        return u64::MAX;
    }
    if bucket < STEPS {
        return bucket;
    }
    let power = bucket / STEPS - 1;
    let first = (STEPS + bucket % STEPS) << power;
    first + (1 << power) - 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn buckets_have_neither_gaps_nor_overlaps() {
        let mut next = 0;
        for bucket in 0..BUCKETS - 1 {
            assert_eq!(bucket_of(next), bucket, "{next} ns");
            assert_eq!(bucket_of(end_of(bucket)), bucket);
            next = end_of(bucket) + 1;
        }
        assert_eq!(next, 1 << 41, "18 minutes and more");
        assert_eq!(bucket_of(next), BUCKETS - 1);
        assert_eq!(bucket_of(u64::MAX), BUCKETS - 1);
    }

    #[test]
    fn quantile_of_the_overflow_bucket_is_none() {
        let histogram = LatencyHistogram::default();
        assert_eq!(histogram.read().quantile(0.5), None);
        histogram.record(Duration::from_secs(3600));
        assert_eq!(histogram.read().quantile(0.5), None);
        assert_eq!(histogram.read().count(), 1);
        assert_eq!(histogram.read().at_most(Duration::from_secs(60)), 0);
    }

    proptest! {
        #[test]
        fn quantiles_are_exact_to_one_sixteenth(
            values in prop::collection::vec(0u64..1 << 36, 1..200),
            share in 0.0..=1.0f64,
        ) {
            let histogram = LatencyHistogram::default();
            let mut values = values;
            values.iter().for_each(|&nanos| histogram.record(Duration::from_nanos(nanos)));
            values.sort_unstable();
            let rank = (share * values.len() as f64).ceil().max(1.0) as usize;
            let exact = values[rank - 1];
            let estimate = histogram.read().quantile(share).unwrap().as_nanos() as u64;
            prop_assert!(estimate >= exact && estimate - exact <= exact / 16 + 1, "{} for {}", estimate, exact);
            prop_assert_eq!(histogram.read().sum_ns, values.iter().sum::<u64>());
            let read = histogram.read();
            let at_most = read.at_most(Duration::from_nanos(estimate));
            prop_assert!(at_most >= rank as u64);
        }
    }
}
