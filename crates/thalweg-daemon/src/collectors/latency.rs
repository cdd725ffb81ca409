//! How long it takes from a packet to the event that it gives rise to.
//!
//! Buckets grow with what they hold, 16 to each power of two, so that a value is known to within 1/16 of itself from
//! 16 ns to 18 minutes. One thread writes and any number read; nobody waits.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Buckets of each power of two.
const STEPS: u64 = 16;

/// Buckets: those below 2^41 ns, and one for all beyond.
const BUCKETS: usize = ((40 - 4) * STEPS + 2 * STEPS + 1) as usize;

/// Counts of latencies, by length.
#[derive(Debug)]
pub struct LatencyHistogram {
    buckets: Box<[AtomicU64]>,
    sum_ns: AtomicU64,
}

/// What a [`LatencyHistogram`] held at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Latency {
    buckets: Box<[u64]>,
    /// Sum of all, in nanoseconds.
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
    /// Counts one.
    #[inline]
    pub fn record(&self, latency: Duration) {
        let nanos = u64::try_from(latency.as_nanos()).unwrap_or(u64::MAX);
        self.buckets[bucket_of(nanos)].fetch_add(1, Ordering::Relaxed);
        self.sum_ns.fetch_add(nanos, Ordering::Relaxed);
    }

    /// What was counted so far.
    pub fn read(&self) -> Latency {
        Latency {
            buckets: self.buckets.iter().map(|bucket| bucket.load(Ordering::Relaxed)).collect(),
            sum_ns: self.sum_ns.load(Ordering::Relaxed),
        }
    }
}

impl Latency {
    /// How many were counted.
    pub fn count(&self) -> u64 {
        self.buckets.iter().sum()
    }

    /// How many took at most `limit`, as far as buckets tell: those whose bucket ends there or before.
    pub fn at_most(&self, limit: Duration) -> u64 {
        let nanos = u64::try_from(limit.as_nanos()).unwrap_or(u64::MAX);
        let whole = self.buckets.iter().enumerate().take_while(|(bucket, _)| end_of(*bucket) <= nanos);
        whole.map(|(_, count)| count).sum()
    }

    /// What a share of all took at most: the end of the bucket that the share falls in. `None` if nothing was
    /// counted, or it took longer than there are buckets for.
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

/// The bucket that a value falls in.
#[inline]
fn bucket_of(nanos: u64) -> usize {
    if nanos < STEPS {
        return nanos as usize;
    }
    let power = u64::from(nanos.ilog2()) - 4;
    let bucket = power * STEPS + (nanos >> power);
    (bucket as usize).min(BUCKETS - 1)
}

/// The largest value that falls in a bucket.
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
    fn buckets_follow_each_other_without_gap_or_overlap() {
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
    fn what_is_beyond_all_buckets_has_no_quantile() {
        let histogram = LatencyHistogram::default();
        assert_eq!(histogram.read().quantile(0.5), None);
        histogram.record(Duration::from_secs(3600));
        assert_eq!(histogram.read().quantile(0.5), None);
        assert_eq!(histogram.read().count(), 1);
        assert_eq!(histogram.read().at_most(Duration::from_secs(60)), 0);
    }

    proptest! {
        #[test]
        fn quantiles_are_those_of_the_sorted_values_to_one_sixteenth(
            values in prop::collection::vec(0u64..1 << 36, 1..200),
            share in 0.0..=1.0f64,
        ) {
            let histogram = LatencyHistogram::default();
            let mut values = values;
            values.iter().for_each(|&nanos| histogram.record(Duration::from_nanos(nanos)));
            values.sort_unstable();
            let rank = (share * values.len() as f64).ceil().max(1.0) as usize;
            let exact = values[rank - 1];
            let told = histogram.read().quantile(share).unwrap().as_nanos() as u64;
            prop_assert!(told >= exact && told - exact <= exact / 16 + 1, "{} for {}", told, exact);
            prop_assert_eq!(histogram.read().sum_ns, values.iter().sum::<u64>());
            let read = histogram.read();
            let at_most = read.at_most(Duration::from_nanos(told));
            prop_assert!(at_most >= rank as u64);
        }
    }
}
