//! How R is chosen, and what follows over all hours.

use std::collections::BTreeMap;

use thalweg_control::threshold::equation;
use thalweg_control::threshold::period::Period;
use thalweg_control::threshold::regulator::{Measurement, Regulator, RegulatorOptions};
use thalweg_control::threshold::tag::Tolerance;
use thalweg_control::threshold::{
    Adaptation, Command, ForecastErrors, Input, ThresholdCounters, ThresholdOptions,
};
use thalweg_wire::BitRate;

use super::super::PORT;
use super::hour::{Hour, Outcome, PARTS, RATES, place_of, rate};
use super::traffic::Kind;

/// The first hour of the study as a period: midnight, long after 1970.
const FIRST: u64 = 24_000;

/// R by hour and part, as places.
pub(super) type Choices = Vec<[usize; PARTS]>;

/// What a policy led to over all hours.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Total {
    /// Share of background packets that were dropped.
    pub(super) loss: f64,
    /// Share of cheetah flows that were moved.
    pub(super) moved: f64,
    /// Mean rate of cheetah flows, in Mbit/s.
    pub(super) mbps: f64,
}

impl Total {
    pub(super) fn of(hours: &[Hour], choices: &Choices) -> Total {
        let (mut offered, mut dropped, mut flows, mut moved, mut packets, mut lasted_ms) = (0, 0, 0, 0, 0, 0);
        for (hour, places) in hours.iter().zip(choices) {
            for (part, &place) in places.iter().enumerate() {
                let outcome = &hour.outcomes[place];
                offered += outcome.offered[part];
                dropped += outcome.dropped[part];
                flows += outcome.flows[part];
                moved += outcome.moved[part];
                packets += outcome.packets[part];
                lasted_ms += outcome.lasted_ms[part];
            }
        }
        let share = |part: u64, all: u64| part as f64 / all.max(1) as f64;
        // Packets of 12,000 bits per millisecond are 12 Mbit/s.
        Total {
            loss: share(dropped, offered),
            moved: share(moved, flows),
            mbps: 12.0 * share(packets, lasted_ms),
        }
    }
}

/// The same threshold at all times.
pub(super) fn fixed(hours: &[Hour], place: usize) -> Choices {
    vec![[place; PARTS]; hours.len()]
}

/// R = alpha (C - r), with the traffic of the hour before.
pub(super) fn by_equation(hours: &[Hour], scale: f64) -> Choices {
    let of = |hour: &Hour| [place_of(equation::threshold(&hour.tag(), PORT, scale)); PARTS];
    let first = hours.iter().take(1);
    first.chain(hours).take(hours.len()).map(of).collect()
}

/// What the daemon's adaptation chose.
pub(super) struct Forecasts {
    /// R for each hour.
    pub(super) rates: Vec<BitRate>,
    /// How far forecasts were off.
    pub(super) errors: Option<ForecastErrors>,
    /// Hours that were simulated, and others.
    pub(super) counters: ThresholdCounters,
}

/// The daemon's adaptation: each hour is recorded, and simulated unless it has a known tag whose curves settle R; the next is
/// forecast.
pub(super) fn forecasts(hours: &[Hour], acceptable_loss: f64, seconds: f64) -> Forecasts {
    let options = ThresholdOptions {
        link_rate: PORT,
        acceptable_loss,
        tolerance: Tolerance { rate: BitRate(20_000_000), burstiness: 0.05 },
        fallback: rate(0),
        lowest: rate(0),
        alpha: 0.1,
        days: 14,
        curves: 256,
        waiting: 6,
    };
    let mut adaptation = Adaptation::new(options, Period(FIRST));
    let mut rates = Vec::new();
    for (number, hour) in (0..).zip(hours) {
        let period = Period(FIRST + number);
        adaptation.handle(period, Input::Tick);
        rates.push(adaptation.decision().rate);
        adaptation.handle(period.next(), Input::Recorded(period, hour.tag()));
        while let Some(command) = adaptation.next_command() {
            if command == Command::Simulate(period) {
                adaptation.handle(period.next(), Input::Simulated(period, hour.curve(seconds)));
            }
        }
    }
    Forecasts { rates, errors: adaptation.forecast_errors(), counters: adaptation.counters() }
}

/// The forecast R for each hour as a whole.
pub(super) fn by_forecast(forecasts: &Forecasts) -> Choices {
    forecasts.rates.iter().map(|rate| [place_of(*rate); PARTS]).collect()
}

/// The forecast R, lowered by the daemon's regulator while the losses of the primary queue are above the acceptable one. The
/// queue is polled after each part of an hour; a window of the regulator has so many `polls`.
pub(super) fn by_regulator(
    hours: &[Hour],
    forecasts: &Forecasts,
    acceptable_loss: f64,
    polls: usize,
) -> anyhow::Result<Choices> {
    let options = RegulatorOptions {
        acceptable_loss,
        step: rate(0),
        floor: rate(0),
        ceiling: PORT,
        intervals: polls,
        ..RegulatorOptions::default()
    };
    let mut regulator = Regulator::new(options, rate(0))?;
    let mut choices = Choices::new();
    for (hour, base) in hours.iter().zip(&forecasts.rates) {
        regulator.set_base(*base);
        choices.push(std::array::from_fn(|part| {
            let place = place_of(regulator.rate_threshold());
            let outcome = &hour.outcomes[place];
            regulator
                .observe(Measurement::Loss { packets: outcome.offered[part], drops: outcome.dropped[part] });
            place
        }));
    }
    Ok(choices)
}

/// For each kind of hour, the greatest threshold whose mean loss over other hours of that kind is acceptable.
pub(super) fn by_oracle(
    kinds: &[Kind],
    others: &BTreeMap<Kind, Vec<Vec<Outcome>>>,
    acceptable_loss: f64,
) -> Choices {
    let mean_loss = |kind: &Kind, place: usize| {
        let runs = &others[kind];
        let loss = |outcomes: &Vec<Outcome>| {
            let sum = |values: &[u64; PARTS]| values.iter().sum::<u64>() as f64;
            sum(&outcomes[place].dropped) / sum(&outcomes[place].offered).max(1.0)
        };
        runs.iter().map(loss).sum::<f64>() / runs.len().max(1) as f64
    };
    let best =
        |kind: &Kind| (0..RATES).rev().find(|&place| mean_loss(kind, place) <= acceptable_loss).unwrap_or(0);
    kinds.iter().map(|kind| [best(kind); PARTS]).collect()
}

/// The share of flows that a policy moves at a total loss, interpolated between settings by the logarithm of loss. `None` if no two
/// settings enclose it.
pub(super) fn moved_at(totals: &[Total], loss: f64) -> Option<f64> {
    let mut sorted: Vec<Total> = totals.iter().copied().filter(|total| total.loss > 0.0).collect();
    sorted.sort_by(|one, other| one.loss.total_cmp(&other.loss));
    let after = sorted.iter().position(|total| total.loss >= loss)?;
    let (low, high) = (sorted.get(after.checked_sub(1)?)?, sorted[after]);
    let share = (loss / low.loss).ln() / (high.loss / low.loss).ln();
    Some(low.moved + share * (high.moved - low.moved))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_share_at_a_loss_is_interpolated() {
        let total = |loss, moved| Total { loss, moved, mbps: 0.0 };
        let totals = [total(1e-3, 0.2), total(1e-5, 0.6), total(0.0, 1.0)];
        assert!((moved_at(&totals, 1e-4).unwrap() - 0.4).abs() < 1e-9);
        assert_eq!((moved_at(&totals, 1e-6), moved_at(&totals, 1e-2)), (None, None));
    }

    /// 40 hours in which every R above 400 Mbit/s loses three times the acceptable loss.
    #[test]
    fn the_regulator_lowers_r_to_where_losses_are_acceptable_and_hardly_tries_more() {
        let outcome = |place| Outcome {
            offered: [1_000_000; PARTS],
            dropped: [if place > 7 { 3_000 } else { 0 }; PARTS],
            ..Outcome::default()
        };
        let outcomes: Vec<Outcome> = (0..RATES).map(outcome).collect();
        let hour = Hour { mean_rate: 200_000_000, burstiness: 0.4, losses: Vec::new(), outcomes };
        let forecasts =
            Forecasts { rates: vec![rate(11); 40], errors: None, counters: ThresholdCounters::default() };
        let choices = by_regulator(&vec![hour; 40], &forecasts, 1e-3, 1).unwrap().concat();
        assert_eq!(choices[..5], [11, 10, 9, 8, 7]);
        let tries = choices[5..].iter().filter(|place| **place > 7).count();
        assert!((1..=4).contains(&tries) && choices.iter().all(|place| *place >= 7), "{choices:?}");
    }

    #[test]
    fn the_oracle_takes_the_greatest_acceptable_threshold() {
        let outcome =
            |dropped| Outcome { offered: [1_000; PARTS], dropped: [dropped; PARTS], ..Outcome::default() };
        let outcomes: Vec<Outcome> = (0..RATES as u64).map(outcome).collect();
        let kind = Kind::of(3);
        let others = BTreeMap::from([(kind, vec![outcomes.clone(), outcomes])]);
        assert_eq!(by_oracle(&[kind], &others, 0.004)[0], [4; PARTS]);
        assert_eq!(by_oracle(&[kind], &others, 1.0)[0], [RATES - 1; PARTS]);
    }
}
