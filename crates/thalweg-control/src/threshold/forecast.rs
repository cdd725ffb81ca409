//! The forecast of a period's traffic, from that of earlier periods (dissertation, section 4.2, which leaves the method open).
//!
//! Each part of the [tag](super::tag) is forecast on its own, in logarithms, because it spans an order of magnitude. Four simple
//! forecasts are combined:
//!
//! ```text
//!   level      weighted mean of the same period on earlier days, weights WEIGHT^(days ago)
//!   deviation  the level, plus half of what the previous period was above its own (Taylor 2003, section 3)
//!   yesterday  the same period of the day before
//!   latest     the previous period, or the latest one of the last day that is known
//!   forecast = sum(w f) / sum(w),   w = 1 / MSE^2
//!   MSE      = (PRIOR + sum of squared errors) / (1 + their number), over the last RECENT periods
//! ```
//!
//! On usual days the level is best, because it averages the noise of single days, with the deviation if some persists. After
//! a change of the pattern the latest period is best, and a day later yesterday. Weights by recent errors (Bates and Granger 1969, *Operational Research Quarterly* 20)
//! need no knowledge of which it is; squared, they decide faster. Without an earlier day, the forecast is the latest value.
//!
//! The mean error over seeded fortnights is below that of the previous period's value, and of yesterday's: see the tests.

use super::period::{PERIODS_PER_DAY, Period};

/// The weight of a day relative to the day after it.
const WEIGHT: f64 = 0.7;

/// The share of a deviation from the level that persists for a period.
const PERSISTENCE: f64 = 0.5;

/// Simple forecasts.
const CANDIDATES: usize = 4;

/// Periods whose errors count.
const RECENT: u64 = 12;

/// A squared error, in logarithms, that every forecast begins with: of 14 %.
const PRIOR: f64 = 0.02;

/// Where a forecast comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Basis {
    /// The same period on so many earlier days.
    Days(usize),
    /// The latest period of the last day; there is none of earlier days.
    Latest(Period),
}

/// A forecast.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Forecast {
    /// The value.
    pub value: f64,
    /// Where it comes from.
    pub basis: Basis,
}

/// Forecasts the value of `period` from `values`, which returns those of earlier periods, above 0, over at most `days` days.
/// Returns `None` without any.
pub fn forecast(period: Period, days: u64, values: impl Fn(Period) -> Option<f64>) -> Option<Forecast> {
    let known = Known { days, logarithm: |period| values(period).filter(|value| *value > 0.0).map(f64::ln) };
    let (candidates, basis) = known.candidates(period)?;
    let (mut errors, mut counts) = ([PRIOR; CANDIDATES], [1.0; CANDIDATES]);
    for ago in 1..=RECENT {
        let Some(earlier) = period.0.checked_sub(ago).map(Period) else { break };
        let (Some(value), Some((forecasts, _))) = ((known.logarithm)(earlier), known.candidates(earlier))
        else {
            continue;
        };
        for (place, forecast) in forecasts.into_iter().enumerate() {
            if let Some(forecast) = forecast {
                errors[place] += (forecast - value).powi(2);
                counts[place] += 1.0;
            }
        }
    }
    let (mut sum, mut weights) = (0.0, 0.0);
    for (place, candidate) in candidates.into_iter().enumerate() {
        if let Some(candidate) = candidate {
            let weight = (counts[place] / errors[place]).powi(2);
            (sum, weights) = (sum + weight * candidate, weights + weight);
        }
    }
    Some(Forecast { value: (sum / weights).exp(), basis })
}

/// What is known of earlier periods.
struct Known<F> {
    days: u64,
    logarithm: F,
}

impl<F: Fn(Period) -> Option<f64>> Known<F> {
    /// The simple forecasts; `None` without any.
    fn candidates(&self, period: Period) -> Option<([Option<f64>; CANDIDATES], Basis)> {
        let (level, count) = self.level(period).map_or((None, 0), |(level, count)| (Some(level), count));
        let previous = period.previous();
        let deviation = || Some((self.logarithm)(previous)? - self.level(previous)?.0);
        let deviated = level.and_then(|level| Some(level + PERSISTENCE * deviation()?));
        let yesterday = period.days_before(1).and_then(&self.logarithm);
        let ago = (1..=PERIODS_PER_DAY).filter_map(|ago| period.0.checked_sub(ago).map(Period));
        let latest = ago.into_iter().find_map(|period| Some((period, (self.logarithm)(period)?)));
        let basis = match (count, latest) {
            (0, Some((period, _))) => Basis::Latest(period),
            (0, None) => return None,
            _ => Basis::Days(count),
        };
        Some(([level, deviated, yesterday, latest.map(|(_, value)| value)], basis))
    }

    /// The level of a period, and from how many days it is.
    fn level(&self, period: Period) -> Option<(f64, usize)> {
        let before = |day| (self.logarithm)(period.days_before(day)?);
        let values = (1..=self.days).filter_map(|day| Some((day, before(day)?)));
        let (mut sum, mut weights, mut count) = (0.0, 0.0, 0);
        for (day, value) in values {
            let weight = WEIGHT.powi(day as i32);
            (sum, weights, count) = (sum + weight * value, weights + weight, count + 1);
        }
        (count > 0).then(|| (sum / weights, count))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    #[test]
    fn without_days_the_latest_threshold_is_used_and_without_any_none() {
        let known = HashMap::from([(Period(98), 300.0)]);
        let at = |period| {
            let forecast = forecast(Period(period), 14, |period| known.get(&period).copied())?;
            Some(Forecast { value: forecast.value.round(), ..forecast })
        };
        assert_eq!(at(100), Some(Forecast { value: 300.0, basis: Basis::Latest(Period(98)) }));
        assert_eq!(at(98), None);
        assert_eq!(at(122).unwrap().basis, Basis::Days(1));
        assert_eq!(at(122 + 1), None, "more than a day ago, and another period");
    }

    #[test]
    fn what_was_right_lately_counts() {
        // Three days that alternate between 100 and 400, and twelve periods of a fourth.
        let forecast = |fourth: fn(u64) -> f64| {
            let value = |period: Period| match period.0 {
                0..72 => Some(if period.0.is_multiple_of(2) { 100.0 } else { 400.0 }),
                72..84 => Some(fourth(period.0)),
                _ => None,
            };
            forecast(Period(84), 14, value).unwrap().value
        };
        let usual = forecast(|period| if period.is_multiple_of(2) { 100.0 } else { 400.0 });
        assert!((100.0..101.0).contains(&usual), "{usual}");
        let changed = forecast(|_| 800.0);
        assert!((750.0..800.0).contains(&changed), "{changed}");
    }

    /// A deterministic generator, splitmix64 (Steele et al. 2014), with normal deviates as sums of twelve.
    struct Random(u64);

    impl Random {
        fn uniform(&mut self) -> f64 {
            self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
            let mut mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
            mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
            ((mixed ^ (mixed >> 31)) >> 11) as f64 / (1u64 << 53) as f64
        }

        fn normal(&mut self) -> f64 {
            (0..12).map(|_| self.uniform()).sum::<f64>() - 6.0
        }
    }

    /// Mean errors |ln(forecast / value)| over days 3 to 14: of the forecast, of the previous period, of yesterday.
    ///
    /// Values follow a daily wave by a factor of 2 either way, with deviations of 20 % of which `persistence` lasts for the
    /// next period, and noise of 10 %; 20 % of the periods are unusable. On one day a flash crowd doubles six of them; from
    /// day 11 on the pattern is six periods later and a fifth more.
    fn errors(seed: u64, persistence: f64) -> [f64; 3] {
        let mut random = Random(seed);
        let mut known: HashMap<u64, f64> = HashMap::new();
        let (mut deviation, mut sums, mut count) = (0.0, [0.0; 3], 0.0);
        for period in 0..14 * 24 {
            let (later, more) = if period < 240 { (0, 0.0) } else { (6, 1.2f64.ln()) };
            let phase = std::f64::consts::TAU * (period - later.min(period)) as f64 / 24.0;
            deviation =
                persistence * deviation + 0.2 * (1.0 - persistence * persistence).sqrt() * random.normal();
            let crowd = if (200..206).contains(&period) { 2.0f64.ln() } else { 0.0 };
            let value = 19.0 + 2.0f64.ln() * phase.sin() + more + deviation + crowd + 0.1 * random.normal();
            let of = |period: Period| known.get(&period.0).map(|value| value.exp());
            let forecasts = [
                forecast(Period(period), 14, of).map(|forecast| forecast.value.ln()),
                period.checked_sub(1).and_then(|period| known.get(&period).copied()),
                period.checked_sub(24).and_then(|period| known.get(&period).copied()),
            ];
            if let [Some(ours), Some(previous), Some(yesterday)] = forecasts
                && period >= 48
            {
                count += 1.0;
                for (sum, forecast) in sums.iter_mut().zip([ours, previous, yesterday]) {
                    *sum += (forecast - value).abs();
                }
            }
            if random.uniform() > 0.2 {
                known.insert(period, value);
            }
        }
        sums.map(|sum| sum / count)
    }

    /// 20 seeds each, with deviations at random and with some that persist.
    #[test]
    fn the_forecast_is_better_than_the_previous_period_and_than_yesterday() {
        for (persistence, bound) in [(0.0, 0.9), (0.7, 0.97)] {
            let (mut sums, mut worst) = ([0.0; 3], 0.0f64);
            for seed in 0..20 {
                let of_seed = errors(seed, persistence);
                sums = std::array::from_fn(|place| sums[place] + of_seed[place]);
                worst = worst.max(of_seed[0] / of_seed[1].min(of_seed[2]));
            }
            let [ours, previous, yesterday] = sums;
            assert!(ours < bound * previous.min(yesterday) && worst < 1.1, "{persistence}: {sums:?} {worst}");
        }
    }
}
