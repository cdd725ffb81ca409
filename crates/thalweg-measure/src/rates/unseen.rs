//! How much a flow can send without a sample.
//!
//! A flow without samples has stopped, or the monitor port has dropped all of its packets. Drops are not independent:
//! a full buffer accepts one frame each time that it has sent one, so flows can lock each other out for dozens of
//! packets. The sequence numbers of TCP flows show how long this lasts: between two samples they advance by exactly
//! the bytes that were not sampled. This is their distribution, weighted by bytes: [`UnseenBytes::bound`] is what a
//! byte's run of unsampled bytes exceeds with a probability of at most [`EXCEEDED`].
//!
//! **Memory:** 1 KiB; **cost:** one addition per TCP sample with unsampled bytes before it.

/// The probability with which a run exceeds the bound, per byte.
const EXCEEDED: f64 = 0.005;
/// The interval at which older runs lose an eighth of their weight.
const DECAY: u64 = 50_000_000;
/// The minimum number of samples for a bound.
const MIN_SAMPLES: u64 = 64;
/// Four buckets for each power of two.
const BUCKETS: usize = 4 * 32;

/// The runs of unsampled bytes of all TCP flows at a monitor port.
#[derive(Clone, Debug)]
pub(crate) struct UnseenBytes {
    /// Bytes in runs, by the length of the run.
    bytes: [u64; BUCKETS],
    samples: u64,
    /// When weights decay next.
    next: u64,
    bound: Option<u32>,
}

impl Default for UnseenBytes {
    fn default() -> UnseenBytes {
        UnseenBytes { bytes: [0; BUCKETS], samples: 0, next: 0, bound: None }
    }
}

impl UnseenBytes {
    /// Adds a sample of a TCP flow with this many unsampled bytes before it.
    #[inline(always)]
    pub(crate) fn add(&mut self, run: u32) {
        self.samples += 1;
        if run > 0 {
            self.bytes[bucket(run)] += u64::from(run);
        }
    }

    /// Advances the time.
    pub(crate) fn advance(&mut self, now: u64) {
        if now < self.next && self.next - now <= DECAY {
            return;
        }
        self.next = now.saturating_add(DECAY);
        if self.samples >= MIN_SAMPLES {
            self.bound = Some(self.quantile());
        }
        self.samples -= self.samples / 8;
        self.bytes.iter_mut().for_each(|bytes| *bytes -= (*bytes).div_ceil(8));
    }

    /// Returns the bound of a run in bytes of payload, as of the last time with enough TCP samples; `None` before.
    pub(crate) fn bound(&self) -> Option<u32> {
        self.bound
    }

    /// Returns the upper end of the bucket above which at most [`EXCEEDED`] of all bytes are.
    fn quantile(&self) -> u32 {
        let allowed = (EXCEEDED * self.bytes.iter().sum::<u64>() as f64) as u64;
        let mut above = 0;
        for bucket in (0..BUCKETS).rev() {
            above += self.bytes[bucket];
            if above > allowed {
                return upper_end(bucket);
            }
        }
        0
    }
}

/// Returns the bucket of a run: its power of two, and the two bits after the first.
#[inline(always)]
fn bucket(run: u32) -> usize {
    let power = run.ilog2();
    let next_bits = (u64::from(run) << 2 >> power & 3) as usize;
    4 * power as usize + next_bits
}

/// Returns the largest run of a bucket.
fn upper_end(bucket: usize) -> u32 {
    let (power, next_bits) = (bucket as u32 / 4, bucket as u64 % 4);
    let end = ((5 + next_bits) << power).div_ceil(4) - 1;
    u32::try_from(end).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn runs_are_in_their_bucket(run in 1u32..) {
            let bucket = bucket(run);
            prop_assert!(run <= upper_end(bucket));
            prop_assert!(bucket == 0 || run > upper_end(bucket - 1) || upper_end(bucket - 1) == upper_end(bucket));
        }
    }

    #[test]
    fn the_bound_is_exceeded_by_few_bytes_and_follows_the_traffic() {
        let mut unseen = UnseenBytes::default();
        unseen.advance(DECAY);
        assert_eq!(unseen.bound(), None);
        for _ in 0..1_000 {
            (0..9).for_each(|_| unseen.add(1_448));
            unseen.add(14_480);
        }
        unseen.advance(2 * DECAY);
        assert_eq!(unseen.bound(), Some(16_383));
        // Two in a thousand bytes are in longer runs.
        unseen.add(40_000);
        unseen.advance(3 * DECAY);
        assert_eq!(unseen.bound(), Some(16_383));
        for step in 4..200 {
            unseen.add(1_448);
            (0..99).for_each(|_| unseen.add(0));
            unseen.advance(step * DECAY);
        }
        assert_eq!(unseen.bound(), Some(1_535));
    }

    #[test]
    fn nothing_is_unseen_where_everything_is_sampled() {
        let mut unseen = UnseenBytes::default();
        (0..100).for_each(|_| unseen.add(0));
        unseen.advance(DECAY);
        assert_eq!(unseen.bound(), Some(0));
    }
}
