//! Change of a key's weight between two windows.
//!
//! The sketch of the difference is the difference of the sketches (Krishnamurthy et al. 2003, section 3.2), so a
//! row's error comes from the keys that changed, not from all traffic.
//!
//! At p = 1 the bound is that of [`crate::noise`] for the difference. In sampled windows, a key that did not change
//! still leaves noise in the difference, because its two counts were sampled independently. Symbols are those of
//! [`crate::noise`], with 1 and 2 for the two windows; N is the sum of a window's weights, and a the larger of a1 and
//! a2. The F2 of a row of the difference is E = L2^2 of the change + Q1 + Q2, still measured from its rows. Its relative variance is at most
//! r = 2/w + 6 q/E, where q = a (sqrt(E1) + sqrt(E2) + (N1 + N2)/w) bounds the sampling variance in one counter. A
//! key's sampling variance is a1 f1 + a2 f2, each f at most the upper bound of its estimate in its window. The
//! difference has converged if both windows have and sqrt(c r) <= 1/2. The confidence covers four medians: the key's
//! estimate and the F2, in each window.

use crate::digest::{Digest, Key};
use crate::estimate::Estimate;
use crate::merge::MergeError;
use crate::noise::Noise;
use crate::rows::RowSketch;

/// The change from one window to a later one.
#[derive(Clone, Debug)]
pub struct Change<'a, S> {
    now: &'a S,
    before: &'a S,
    noise_now: Noise,
    noise_before: Noise,
    difference: S,
    noise: Noise,
}

impl<'a, S: RowSketch + Clone> Change<'a, S> {
    /// Subtracts `before` from `now`.
    ///
    /// # Errors
    /// If shapes or seeds differ.
    pub fn between(now: &'a S, before: &'a S) -> Result<Change<'a, S>, MergeError> {
        let mut difference = now.clone();
        difference.subtract(before)?;
        let (noise_now, noise_before) = (now.noise(), before.noise());
        let noise = difference.noise().of_difference(
            &noise_now,
            &noise_before,
            [now.statistics(), before.statistics()],
        );
        let noise = if difference.saturations() > 0 { noise.without_bound() } else { noise };
        Ok(Change { now, before, noise_now, noise_before, difference, noise })
    }

    /// Estimates the increase of the weight of the key of `digest`; negative for a decrease.
    pub fn estimate(&self, digest: Digest) -> Estimate {
        let value = self.difference.estimate(digest, &self.noise).value;
        let key_variance = |sketch: &S, noise: &Noise| match noise.sampling_variance() {
            0.0 => 0.0,
            sampling_variance => {
                sampling_variance * sketch.estimate(digest, noise).upper().unwrap_or(f64::INFINITY).max(0.0)
            }
        };
        let variance =
            key_variance(self.now, &self.noise_now) + key_variance(self.before, &self.noise_before);
        self.noise.difference_interval(value, variance)
    }

    /// Estimates the increase of a key's weight; negative for a decrease.
    pub fn estimate_key(&self, key: &impl Key) -> Estimate {
        self.estimate(self.now.hasher().digest(key.as_bytes()))
    }

    /// Returns the total that shares of change refer to: the sum of both windows. The sum of the magnitudes of all
    /// changes is at most this; a sketch does not know which weights stayed the same.
    pub fn total_bound(&self) -> u64 {
        self.now.statistics().magnitude().saturating_add(self.before.statistics().magnitude())
    }

    /// Returns the sketch of the difference.
    pub fn difference(&self) -> &S {
        &self.difference
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nitro::RowWise;
    use crate::{CountSketch, Hasher, KAry, Mode, Nitro, Probability, Shape, WithTopK};

    fn window<S: RowSketch>(mut sketch: S, size: impl Fn(u32) -> i64) -> S {
        (0..2000u32).for_each(|key| sketch.add(&key.to_be_bytes(), size(key)));
        sketch
    }

    fn before(key: u32) -> i64 {
        10_000 / (i64::from(key) + 1)
    }

    fn now(key: u32) -> i64 {
        match key {
            3 => 0,
            1999 => 4000,
            _ => before(key),
        }
    }

    #[test]
    fn changes_are_estimated_with_their_sign() {
        let new = || KAry::<i32>::new(Shape::new(5, 4096).unwrap(), Hasher::new(1));
        let (now, before) = (window(new(), now), window(new(), before));
        let change = Change::between(&now, &before).unwrap();
        for (key, expected) in [(3u32, -2500.0), (1999, 3995.0), (0, 0.0), (7, 0.0)] {
            let estimate = change.estimate_key(&key.to_be_bytes());
            assert_eq!(estimate.contains(expected), Some(true), "{key}: {estimate}");
            // Only two keys changed, so only they cause noise.
            assert!((estimate.value - expected).abs() < 10.0, "{key}: {estimate}");
        }
    }

    /// 200 seeds with 4 keys each give 800 intervals, each wrong with probability at most 0.066 if independent. More
    /// than 90 wrong ones (0.1125) happen by chance less than once in a million.
    #[test]
    fn bounds_of_the_change_between_sampled_windows_hold_with_their_confidence() {
        let (mut wrong, mut bounded) = (0, 0);
        for seed in 0..200 {
            let sampled = |size: fn(u32) -> i64, draws| {
                let sketch = CountSketch::<i32>::new(Shape::new(5, 1024).unwrap(), Hasher::new(seed));
                let mut nitro = Nitro::new(sketch, Mode::Fixed(Probability::new(2).unwrap()), draws);
                let packets: Vec<[u8; 4]> =
                    (0..200u32).flat_map(|key| (0..size(key)).map(move |_| key.to_be_bytes())).collect();
                nitro.update(packets.as_slice());
                assert!(RowWise::<[u8; 4]>::noise(nitro.sketch()).is_converged());
                nitro.into_sketch()
            };
            let growing = |key| if key == 5 { 9000 } else { before(key) };
            let (later, earlier) = (sampled(growing, 2 * seed), sampled(before, 2 * seed + 1));
            let change = Change::between(&later, &earlier).unwrap();
            for (key, expected) in [(0u32, 0.0), (1, 0.0), (5, 9000.0 - 1666.0), (150, 0.0)] {
                if let Some(holds) = change.estimate_key(&key.to_be_bytes()).contains(expected) {
                    bounded += 1;
                    wrong += u32::from(!holds);
                }
            }
        }
        assert!(bounded >= 400, "{bounded} of 800 had a bound");
        assert!(wrong <= 90, "{wrong} of {bounded} were wrong");
    }

    /// Counters grow with all traffic, 500,000 packets over 1,024 counters. An early burst must not look small beside
    /// keys that arrive later.
    #[test]
    fn an_early_key_stays_among_the_largest() {
        let sketch = KAry::<i32>::new(Shape::new(5, 1024).unwrap(), Hasher::new(1));
        let mut nitro = Nitro::new(WithTopK::new(sketch, 64), Mode::Fixed(Probability::ONE), 1);
        let packets: Vec<[u8; 4]> =
            (0..400).map(|_| [0xFF; 4]).chain((0..500_000u32).map(u32::to_be_bytes)).collect();
        nitro.update(packets.as_slice());
        assert!(nitro.sketch().top.candidates().iter().any(|candidate| candidate.key == [0xFF; 4]));
    }

    #[test]
    fn f2_has_no_bound_after_subtracting_sampled_windows() {
        let sampled = |seed| {
            let sketch = CountSketch::<i32>::new(Shape::new(5, 1024).unwrap(), Hasher::new(1));
            let mut nitro = Nitro::new(sketch, Mode::Fixed(Probability::new(1).unwrap()), seed);
            nitro.update([[1u8; 4]; 40_000].as_slice());
            nitro.into_sketch()
        };
        let (mut now, before) = (sampled(1), sampled(2));
        assert!(now.f2().lower().is_some());
        now.subtract(&before).unwrap();
        assert_eq!(now.f2().bound, crate::Bound::Unknown);
    }

    #[test]
    fn windows_with_different_seeds_cannot_be_compared() {
        let new = |seed| CountSketch::<i64>::new(Shape::new(3, 64).unwrap(), Hasher::new(seed));
        assert!(matches!(Change::between(&new(1), &new(2)), Err(MergeError::Seed { .. })));
    }
}
