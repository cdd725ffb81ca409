//! A first-order lag that many sums share.
//!
//! What a sum has been of late, by a lag of time constant `T`, is the sum less what has not got through yet; and that, when
//! the sum jumps by `d`, grows by `d`, and falls by `exp(-t / T)` in the time `t`. So it need not be brought forward at
//! every look if it is kept as of one *base* time, common to all: a jump at `t` after the base adds `d exp(t / T)` to it, and
//! at `t` it has come down to `exp(-t / T)` of what is kept. Both exponentials belong to the time alone. A change
//! of a flow's rate, which changes two sums, takes one pair of them and no division.

use thalweg_wire::{Nanos, Timestamp};

/// The base is brought forward after this share of a time constant. Up to there four terms of the exponential's series are right
/// to within 1e-6.
const STEP: f64 = 1.0 / 16.0;

/// The part of a sum that has not got through the lag yet, as of the base.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Behind(f64);

/// The clock of a lag.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lag {
    /// Time constants in a nanosecond; 0 if nothing lags.
    rate: f64,
    base: Timestamp,
    /// Where the clock stands.
    now: Timestamp,
    /// `exp(t / T)` and `exp(-t / T)`, where `t` is from the base to now; 0 if nothing lags.
    grown: f64,
    shrunk: f64,
}

impl Lag {
    /// A lag of this time constant; none if it is 0.
    pub(super) fn new(time_constant: Nanos) -> Lag {
        let lags = if time_constant == Nanos::ZERO { 0.0 } else { 1.0 };
        let rate = lags / time_constant.0.max(1) as f64;
        Lag { rate, base: Timestamp(0), now: Timestamp(0), grown: lags, shrunk: lags }
    }

    /// Lets time pass. From time to time the base has to come along: then this gives a factor by which all that is
    /// behind is to be [scaled](Behind::scale).
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

    /// Time has been turned back: the clock stands at `now`, and nothing has come closer.
    pub(super) fn turn_back(&mut self, now: Timestamp) -> Option<f64> {
        let shrunk = self.shrunk;
        (self.base, self.now) = (now, now);
        (self.rate > 0.0).then(|| {
            (self.grown, self.shrunk) = (1.0, 1.0);
            shrunk
        })
    }

    /// What a sum has been of late, as of where the clock stands.
    #[inline(always)]
    pub(super) fn smoothed(&self, sum: u64, behind: Behind) -> f64 {
        // As a signed number, which is one instruction to convert; sums of rates are far below 2^63.
        sum as i64 as f64 - behind.0 * self.shrunk
    }

    /// As of another time, which may be later than where the clock stands.
    pub(super) fn smoothed_at(&self, now: Timestamp, sum: u64, behind: Behind) -> f64 {
        let passed = (now - self.now).0 as f64 * self.rate;
        sum as f64 - behind.0 * self.shrunk * (-passed).exp()
    }
}

impl Behind {
    /// Everything has got through.
    pub(super) const NOTHING: Behind = Behind(0.0);

    /// The sum jumps from `old` to `new` where the clock stands.
    #[inline(always)]
    pub(super) fn jump(&mut self, old: u64, new: u64, lag: &Lag) {
        self.0 += (new as i64 - old as i64) as f64 * lag.grown;
    }

    /// The base has come along.
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
        /// Against the recurrence that defines a first-order lag, brought forward at each change.
        #[test]
        fn sums_lag_as_an_exponential_does(
            constant in 0u64..5_000_000,
            changes in prop::collection::vec((0u64..2_000_000, 0u64..100_000_000_000), 1..100),
        ) {
            let mut lag = Lag::new(Nanos(constant));
            let (mut time, mut sum, mut behind) = (1_000_000u64, 0u64, Behind::NOTHING);
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
                prop_assert!((found - expected).abs() <= 1e-5 * 1e11, "{found} at {time}, not {expected}");
            }
            let later = lag.smoothed_at(Timestamp(time + constant), sum, behind);
            let way = if constant == 0 { 1.0 } else { -(-1.0f64).exp_m1() };
            let expected = if constant == 0 { sum as f64 } else { expected };
            prop_assert!((later - (expected + (sum as f64 - expected) * way)).abs() <= 1e-5 * 1e11);
        }
    }

    #[test]
    fn time_that_is_turned_back_brings_nothing_closer() {
        let mut lag = Lag::new(Nanos::from_millis(1));
        let mut behind = Behind::NOTHING;
        assert_eq!(lag.advance(Timestamp(10_000_000)), Some((-10.0f64).exp()));
        behind.jump(0, 1_000, &lag);
        assert_eq!(lag.advance(Timestamp(10_050_000)), None);
        let before = lag.smoothed(1_000, behind);
        lag.turn_back(Timestamp(3_000_000)).into_iter().for_each(|factor| behind.scale(factor));
        assert!((lag.smoothed(1_000, behind) - before).abs() < 1e-9);
        lag.advance(Timestamp(4_000_000)).into_iter().for_each(|factor| behind.scale(factor));
        let expected = 1_000.0 - (1_000.0 - before) * (-1.0f64).exp();
        assert!((lag.smoothed(1_000, behind) - expected).abs() < 1e-9);
    }
}
