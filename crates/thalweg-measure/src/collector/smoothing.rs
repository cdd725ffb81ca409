//! Exponential smoothing of many sums with one time constant (a first-order low-pass filter).
//!
//! The smoothed value of a sum, with time constant `T`, is the sum minus its *pending* changes. When the sum changes by
//! `d`, they grow by `d`, and they decay by `exp(-t / T)` in the time `t`. They need not be updated at every read if
//! they are stored relative to a common *base* time: a change at `t` after the base adds `d exp(t / T)`, and at `t` the
//! pending changes are `exp(-t / T)` times the stored number. Both exponentials depend on the time alone. So a change of a flow's rate, which changes two sums, takes one pair of them and no division.

use thalweg_wire::{Nanos, Timestamp};

/// The base moves forward after this share of a time constant. Up to there four terms of the exponential's series are
/// accurate to 1e-6.
const STEP: f64 = 1.0 / 16.0;

/// The changes of a sum that its smoothed value does not include yet, relative to the base.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Pending(f64);

/// The time constant and the clock of all sums.
#[derive(Clone, Copy, Debug)]
pub(super) struct Smoothing {
    /// Time constants per nanosecond; 0 without smoothing.
    rate: f64,
    base: Timestamp,
    /// The current time of the clock.
    now: Timestamp,
    /// `exp(t / T)` and `exp(-t / T)`, where `t` is from the base to now; 0 without smoothing.
    grown: f64,
    shrunk: f64,
}

impl Smoothing {
    /// Creates a clock at time zero. A time constant of 0 disables smoothing.
    pub(super) fn new(time_constant: Nanos) -> Smoothing {
        let enabled = if time_constant == Nanos::ZERO { 0.0 } else { 1.0 };
        let rate = enabled / time_constant.0.max(1) as f64;
        Smoothing { rate, base: Timestamp(0), now: Timestamp(0), grown: enabled, shrunk: enabled }
    }

    /// Advances the time. If the base moves, it returns a factor by which all [`Pending`] values must be
    /// [scaled](Pending::scale).
    #[inline(always)]
    pub(super) fn advance(&mut self, now: Timestamp) -> Option<f64> {
        if now <= self.now || self.rate == 0.0 {
            return None;
        }
        self.now = now;
        let x = (now - self.base).0 as f64 * self.rate;
        if x > STEP {
            (self.base, self.grown, self.shrunk) = (now, 1.0, 1.0);
            return Some((-x).exp());
        }
        let (even, odd) = (1.0 + x * x * 0.5, x * (1.0 + x * x * (1.0 / 6.0)));
        (self.grown, self.shrunk) = (even + odd, even - odd);
        None
    }

    /// Sets the clock back to `now`; nothing decays.
    pub(super) fn rewind(&mut self, now: Timestamp) -> Option<f64> {
        let shrunk = self.shrunk;
        (self.base, self.now) = (now, now);
        (self.rate > 0.0).then(|| {
            (self.grown, self.shrunk) = (1.0, 1.0);
            shrunk
        })
    }

    /// Returns the smoothed value of a sum at the clock's time.
    #[inline(always)]
    pub(super) fn smoothed(&self, sum: u64, pending: Pending) -> f64 {
        // As a signed number, which converts in one instruction; sums of rates are far below 2^63.
        sum as i64 as f64 - pending.0 * self.shrunk
    }

    /// Returns the smoothed value at another time, which may be later than the clock's.
    pub(super) fn smoothed_at(&self, now: Timestamp, sum: u64, pending: Pending) -> f64 {
        let passed = (now - self.now).0 as f64 * self.rate;
        sum as f64 - pending.0 * self.shrunk * (-passed).exp()
    }
}

impl Pending {
    /// The smoothed value equals the sum.
    pub(super) const ZERO: Pending = Pending(0.0);

    /// Records that the sum changes from `old` to `new` at the clock's time.
    #[inline(always)]
    pub(super) fn change(&mut self, old: u64, new: u64, smoothing: &Smoothing) {
        self.0 += (new as i64 - old as i64) as f64 * smoothing.grown;
    }

    /// Adjusts to a new base.
    #[inline(always)]
    pub(super) fn scale(&mut self, factor: f64) {
        self.0 *= factor;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Compared with the recurrence that defines exponential smoothing, updated at each change.
        #[test]
        fn smoothed_sums_match_the_defining_recurrence(
            constant in 0u64..5_000_000,
            changes in prop::collection::vec((0u64..2_000_000, 0u64..100_000_000_000), 1..100),
        ) {
            let mut smoothing = Smoothing::new(Nanos(constant));
            let (mut time, mut sum, mut pending) = (1_000_000u64, 0u64, Pending::ZERO);
            smoothing.advance(Timestamp(time)).into_iter().for_each(|factor| pending.scale(factor));
            let mut expected = 0.0;
            for (pause, next) in changes {
                time += pause;
                smoothing.advance(Timestamp(time)).into_iter().for_each(|factor| pending.scale(factor));
                if constant > 0 {
                    let share = -(-(pause as f64) / constant as f64).exp_m1();
                    expected += (sum as f64 - expected) * share;
                }
                pending.change(sum, next, &smoothing);
                sum = next;
                let expected = if constant == 0 { sum as f64 } else { expected };
                let found = smoothing.smoothed(sum, pending);
                prop_assert!((found - expected).abs() <= 1e-5 * 1e11, "{found} at {time}, expected {expected}");
            }
            let later = smoothing.smoothed_at(Timestamp(time + constant), sum, pending);
            let share = if constant == 0 { 1.0 } else { -(-1.0f64).exp_m1() };
            let expected = if constant == 0 { sum as f64 } else { expected };
            prop_assert!((later - (expected + (sum as f64 - expected) * share)).abs() <= 1e-5 * 1e11);
        }
    }

    #[test]
    fn backward_time_does_not_decay_the_sum() {
        let mut smoothing = Smoothing::new(Nanos::from_millis(1));
        let mut pending = Pending::ZERO;
        assert_eq!(smoothing.advance(Timestamp(10_000_000)), Some((-10.0f64).exp()));
        pending.change(0, 1_000, &smoothing);
        assert_eq!(smoothing.advance(Timestamp(10_050_000)), None);
        let before = smoothing.smoothed(1_000, pending);
        smoothing.rewind(Timestamp(3_000_000)).into_iter().for_each(|factor| pending.scale(factor));
        assert!((smoothing.smoothed(1_000, pending) - before).abs() < 1e-9);
        smoothing.advance(Timestamp(4_000_000)).into_iter().for_each(|factor| pending.scale(factor));
        let expected = 1_000.0 - (1_000.0 - before) * (-1.0f64).exp();
        assert!((smoothing.smoothed(1_000, pending) - expected).abs() < 1e-9);
    }
}
