//! A first-order lag shared by many sums.
//!
//! The lagged value of a sum, with time constant `T`, is the sum minus the part that has not passed the lag yet. When
//! the sum jumps by `d`, that part grows by `d`, and it decays by `exp(-t / T)` in the time `t`. It need not be
//! updated at every read if it is stored relative to a common *base* time: a jump at `t` after the base adds `d exp(t
//! / T)` to it, and at `t` its value is `exp(-t / T)` of what is stored. Both exponentials depend on the time alone.
//! So a change of a flow's rate, which changes two sums, takes one pair of them and no division.

use thalweg_wire::{Nanos, Timestamp};

/// The base moves forward after this share of a time constant. Up to there four terms of the exponential's series are
/// accurate to 1e-6.
const STEP: f64 = 1.0 / 16.0;

/// The part of a sum that has not passed the lag yet, relative to the base.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Behind(f64);

/// The clock of a lag.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lag {
    /// Time constants per nanosecond; 0 without a lag.
    rate: f64,
    base: Timestamp,
    /// The current time of the clock.
    now: Timestamp,
    /// `exp(t / T)` and `exp(-t / T)`, where `t` is from the base to now; 0 without a lag.
    grown: f64,
    shrunk: f64,
}

impl Lag {
    /// Creates a lag with this time constant; none if it is 0.
    pub(super) fn new(time_constant: Nanos) -> Lag {
        let lags = if time_constant == Nanos::ZERO { 0.0 } else { 1.0 };
        let rate = lags / time_constant.0.max(1) as f64;
        Lag { rate, base: Timestamp(0), now: Timestamp(0), grown: lags, shrunk: lags }
    }

    /// Advances the time. If the base moves, it returns a factor by which all [`Behind`] values must be
    /// [scaled](Behind::scale).
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

    /// Sets the clock back to `now`; no lag decays.
    pub(super) fn rewind(&mut self, now: Timestamp) -> Option<f64> {
        let shrunk = self.shrunk;
        (self.base, self.now) = (now, now);
        (self.rate > 0.0).then(|| {
            (self.grown, self.shrunk) = (1.0, 1.0);
            shrunk
        })
    }

    /// Returns the lagged value of a sum at the clock's time.
    #[inline(always)]
    pub(super) fn smoothed(&self, sum: u64, behind: Behind) -> f64 {
        // As a signed number, which converts in one instruction; sums of rates are far below 2^63.
        sum as i64 as f64 - behind.0 * self.shrunk
    }

    /// Returns the lagged value at another time, which may be later than the clock's.
    pub(super) fn smoothed_at(&self, now: Timestamp, sum: u64, behind: Behind) -> f64 {
        let passed = (now - self.now).0 as f64 * self.rate;
        sum as f64 - behind.0 * self.shrunk * (-passed).exp()
    }
}

impl Behind {
    /// Everything has passed the lag.
    pub(super) const ZERO: Behind = Behind(0.0);

    /// Records that the sum changes from `old` to `new` at the clock's time.
    #[inline(always)]
    pub(super) fn jump(&mut self, old: u64, new: u64, lag: &Lag) {
        self.0 += (new as i64 - old as i64) as f64 * lag.grown;
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
        /// Compared with the recurrence that defines a first-order lag, updated at each change.
        #[test]
        fn sums_follow_a_first_order_lag(
            constant in 0u64..5_000_000,
            changes in prop::collection::vec((0u64..2_000_000, 0u64..100_000_000_000), 1..100),
        ) {
            let mut lag = Lag::new(Nanos(constant));
            let (mut time, mut sum, mut behind) = (1_000_000u64, 0u64, Behind::ZERO);
            lag.advance(Timestamp(time)).into_iter().for_each(|factor| behind.scale(factor));
            let mut expected = 0.0;
            for (pause, next) in changes {
                time += pause;
                lag.advance(Timestamp(time)).into_iter().for_each(|factor| behind.scale(factor));
                if constant > 0 {
                    let share = -(-(pause as f64) / constant as f64).exp_m1();
                    expected += (sum as f64 - expected) * share;
                }
                behind.jump(sum, next, &lag);
                sum = next;
                let expected = if constant == 0 { sum as f64 } else { expected };
                let found = lag.smoothed(sum, behind);
                prop_assert!((found - expected).abs() <= 1e-5 * 1e11, "{found} at {time}, expected {expected}");
            }
            let later = lag.smoothed_at(Timestamp(time + constant), sum, behind);
            let share = if constant == 0 { 1.0 } else { -(-1.0f64).exp_m1() };
            let expected = if constant == 0 { sum as f64 } else { expected };
            prop_assert!((later - (expected + (sum as f64 - expected) * share)).abs() <= 1e-5 * 1e11);
        }
    }

    #[test]
    fn time_going_backwards_decays_nothing() {
        let mut lag = Lag::new(Nanos::from_millis(1));
        let mut behind = Behind::ZERO;
        assert_eq!(lag.advance(Timestamp(10_000_000)), Some((-10.0f64).exp()));
        behind.jump(0, 1_000, &lag);
        assert_eq!(lag.advance(Timestamp(10_050_000)), None);
        let before = lag.smoothed(1_000, behind);
        lag.rewind(Timestamp(3_000_000)).into_iter().for_each(|factor| behind.scale(factor));
        assert!((lag.smoothed(1_000, behind) - before).abs() < 1e-9);
        lag.advance(Timestamp(4_000_000)).into_iter().for_each(|factor| behind.scale(factor));
        let expected = 1_000.0 - (1_000.0 - before) * (-1.0f64).exp();
        assert!((lag.smoothed(1_000, behind) - expected).abs() < 1e-9);
    }
}
