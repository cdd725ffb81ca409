//! A histogram of times with a relative error of at most 1/16.

use thalweg_wire::Nanos;

/// Buckets per power of two.
const PARTS: u32 = 16;
const PART_BITS: u32 = PARTS.ilog2();
const BUCKETS: usize = ((u64::BITS - PART_BITS + 1) * PARTS) as usize;

/// A histogram of times.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimeHistogram {
    buckets: Box<[u64]>,
    count: u64,
    sum: u128,
    min: Nanos,
    max: Nanos,
}

impl Default for TimeHistogram {
    fn default() -> TimeHistogram {
        TimeHistogram {
            buckets: vec![0; BUCKETS].into(),
            count: 0,
            sum: 0,
            min: Nanos(u64::MAX),
            max: Nanos::ZERO,
        }
    }
}

impl TimeHistogram {
    /// Adds a time.
    #[inline]
    pub(super) fn add(&mut self, time: Nanos) {
        self.buckets[bucket_of(time.0)] += 1;
        self.count += 1;
        self.sum += u128::from(time.0);
        self.min = self.min.min(time);
        self.max = self.max.max(time);
    }

    /// The number of times.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The shortest time; `None` without any.
    pub fn min(&self) -> Option<Nanos> {
        (self.count > 0).then_some(self.min)
    }

    /// The longest time; `None` without any.
    pub fn max(&self) -> Option<Nanos> {
        (self.count > 0).then_some(self.max)
    }

    /// The mean; `None` without any.
    pub fn mean(&self) -> Option<Nanos> {
        (self.count > 0).then(|| Nanos((self.sum / u128::from(self.count)) as u64))
    }

    /// The time that this share of all times does not exceed, 0 to 1, at most 1/16 too long; `None` without any.
    pub fn quantile(&self, share: f64) -> Option<Nanos> {
        let rank = ((share * self.count as f64).ceil() as u64).clamp(1, self.count.max(1));
        let mut below = 0;
        let found = self.buckets.iter().position(|count| {
            below += count;
            below >= rank
        });
        found.map(|bucket| Nanos(last_of(bucket)).min(self.max))
    }
}

/// The bucket of a number: numbers less than `PARTS` have their own, others share one with those of equal leading bits.
#[inline]
fn bucket_of(number: u64) -> usize {
    match number.checked_ilog2() {
        Some(bits) if bits >= PART_BITS => {
            let shift = bits - PART_BITS;
            ((shift + 1) * PARTS) as usize + (number >> shift) as usize - PARTS as usize
        }
        _ => number as usize,
    }
}

/// The largest number of a bucket.
fn last_of(bucket: usize) -> u64 {
    let (group, part) = (bucket as u64 / u64::from(PARTS), bucket as u64 % u64::from(PARTS));
    match group.checked_sub(1) {
        None => part,
        Some(shift) => ((u128::from(u64::from(PARTS) + part + 1) << shift) - 1) as u64,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_bucket_is_narrow_and_buckets_are_in_order(number: u64) {
            let bucket = bucket_of(number);
            prop_assert!(bucket < BUCKETS);
            let last = last_of(bucket);
            prop_assert!(last >= number && last - number <= number / 16);
            prop_assert!(bucket == 0 || last_of(bucket - 1) < number);
        }
    }

    #[test]
    fn quantiles_bound_the_shares() {
        let mut times = TimeHistogram::default();
        assert_eq!((times.min(), times.mean(), times.quantile(0.5)), (None, None, None));
        (1..=1_000).for_each(|micros| times.add(Nanos::from_micros(micros)));
        let extremes = (times.count(), times.min(), times.max(), times.mean());
        let micros = |micros| Some(Nanos::from_micros(micros));
        assert_eq!(extremes, (1_000, micros(1), micros(1_000), Some(Nanos(500_500))));
        for (share, exact) in [(0.0, 1_000), (0.5, 500_000), (0.99, 990_000), (1.0, 1_000_000)] {
            let Nanos(found) = times.quantile(share).unwrap();
            assert!((exact..=exact + exact / 16).contains(&found), "{share}: {found}");
        }
    }
}
