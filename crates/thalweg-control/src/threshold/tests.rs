//! Tests of the adaptation as a whole.

use proptest::prelude::*;

use super::loss_curve::LossPoint;
use super::*;

const MBPS: u64 = 1_000_000;

fn options() -> ThresholdOptions {
    ThresholdOptions {
        link_rate: BitRate(1_000 * MBPS),
        acceptable_loss: 1e-3,
        tolerance: Tolerance { rate: BitRate(20 * MBPS), burstiness: 0.05 },
        fallback: BitRate(50 * MBPS),
        lowest: BitRate(10 * MBPS),
        alpha: 0.2,
        days: 14,
        curves: 8,
        waiting: 2,
    }
}

fn tag(mbps: u64) -> Tag {
    Tag { mean_rate: BitRate(mbps * MBPS), burstiness: 0.4 }
}

/// A curve on which loss is acceptable up to `rate`.
fn curve(mbps: u64, rate: u64) -> LossCurve {
    let point = |rate, loss| LossPoint { rate: BitRate(rate * MBPS), loss, error: 0.0 };
    LossCurve { tag: tag(mbps), points: vec![point(rate, 1e-4), point(rate + 100, 1e-2)], seconds: 3_600.0 }
}

fn commands(adaptation: &mut Adaptation) -> Vec<Command> {
    std::iter::from_fn(|| adaptation.next_command()).collect()
}

fn mbps(adaptation: &Adaptation) -> (u64, Reason) {
    (adaptation.decision().rate.0 / MBPS, adaptation.decision().reason)
}

/// The dissertation's example, figure 4.2: P of day 1 sets up a table, the tag of day 2 finds it, that of day 3 does not.
#[test]
fn a_tag_is_searched_and_sets_up_a_new_table_if_it_is_not_found() {
    let mut adaptation = Adaptation::new(options(), Period(240));
    assert_eq!(mbps(&adaptation), (50, Reason::Configured));
    adaptation.handle(Period(241), Input::Recorded(Period(240), tag(200)));
    assert_eq!(commands(&mut adaptation), [Command::Simulate(Period(240))]);
    // 0.2 / 0.4 of the headroom, until the simulation has finished.
    assert_eq!(mbps(&adaptation), (400, Reason::Equation(Period(240))));
    adaptation.handle(Period(241), Input::Simulated(Period(240), curve(200, 300)));
    assert_eq!(commands(&mut adaptation), [Command::Discard(Period(240))]);
    assert_eq!(mbps(&adaptation), (300, Reason::Latest(Period(240))));
    adaptation.handle(Period(264), Input::Tick);
    assert_eq!(mbps(&adaptation), (300, Reason::Days(1)));
    adaptation.handle(Period(265), Input::Recorded(Period(264), tag(210)));
    assert_eq!(
        commands(&mut adaptation),
        [Command::Simulate(Period(264))],
        "similar, but one curve is chance"
    );
    adaptation.handle(Period(265), Input::Simulated(Period(264), curve(210, 300)));
    assert_eq!(commands(&mut adaptation), [Command::Discard(Period(264))]);
    adaptation.handle(Period(288), Input::Tick);
    assert_eq!(mbps(&adaptation), (300, Reason::Days(2)));
    adaptation.handle(Period(289), Input::Recorded(Period(288), tag(400)));
    assert_eq!(commands(&mut adaptation), [Command::Simulate(Period(288))]);
    adaptation.handle(Period(289), Input::Simulated(Period(288), curve(400, 100)));
    adaptation.handle(Period(312), Input::Tick);
    let (rate, reason) = mbps(&adaptation);
    assert!((100..=300).contains(&rate) && reason == Reason::Days(3), "{rate}");
    let counters = adaptation.counters();
    assert_eq!((counters.recorded, counters.matched, counters.refined, counters.simulated), (3, 1, 1, 3));
}

#[test]
fn forecasts_are_compared_with_the_previous_period() {
    let mut adaptation = Adaptation::new(options(), Period(240));
    for (day, rates) in [(10, [300, 100]), (11, [300, 100])] {
        for (hour, rate) in rates.into_iter().enumerate() {
            let period = Period(24 * day + hour as u64);
            adaptation.handle(period, Input::Tick);
            adaptation.handle(period.next(), Input::Recorded(period, tag(rate)));
            adaptation.handle(period.next(), Input::Simulated(period, curve(rate, rate)));
        }
    }
    let errors = adaptation.forecast_errors().unwrap();
    assert_eq!(errors.periods, 2);
    // 300 instead of 100 twice, by the previous period; once by the forecast, on the first day.
    assert!((errors.previous - 2.0).abs() < 1e-9 && (errors.forecast - 1.0).abs() < 1e-9, "{errors:?}");
}

#[test]
fn too_many_waiting_periods_are_skipped_the_oldest_first() {
    let mut adaptation = Adaptation::new(options(), Period(1));
    for period in 1..=5 {
        adaptation.handle(Period(period + 1), Input::Recorded(Period(period), tag(100 * period)));
    }
    let skipped: Vec<Command> = [2, 3].map(|period| Command::Discard(Period(period))).to_vec();
    assert_eq!(commands(&mut adaptation), [vec![Command::Simulate(Period(1))], skipped].concat());
    assert_eq!((adaptation.counters().skipped, adaptation.waiting()), (2, 3));
    // A failure is not repeated, and the next begins.
    adaptation.handle(Period(6), Input::NotSimulated(Period(1)));
    assert_eq!(commands(&mut adaptation), [Command::Discard(Period(1)), Command::Simulate(Period(4))]);
    // The curve of one serves another that waits.
    adaptation.handle(Period(7), Input::Recorded(Period(6), tag(405)));
    adaptation.handle(Period(7), Input::Simulated(Period(4), curve(400, 200)));
    let discarded = [4, 6].map(|period| Command::Discard(Period(period))).to_vec();
    assert_eq!(commands(&mut adaptation), [discarded, vec![Command::Simulate(Period(5))]].concat());
}

#[test]
fn an_unusable_period_changes_nothing() {
    let mut adaptation = Adaptation::new(options(), Period(240));
    adaptation.handle(Period(241), Input::Recorded(Period(240), tag(200)));
    adaptation.handle(Period(241), Input::Simulated(Period(240), curve(200, 300)));
    commands(&mut adaptation);
    for (place, reason) in Unusable::ALL.into_iter().enumerate() {
        let period = Period(241 + place as u64);
        adaptation.handle(period.next(), Input::Unusable(period, reason));
        assert_eq!(commands(&mut adaptation), [Command::Discard(period)]);
        assert_eq!(mbps(&adaptation), (300, Reason::Latest(Period(240))));
        assert_eq!(adaptation.counters().unusable[place], 1, "{}", reason.name());
    }
}

#[test]
fn a_restart_knows_what_was_known_and_a_new_acceptable_loss_applies_at_once() {
    let mut before = Adaptation::new(options(), Period(240));
    before.handle(Period(241), Input::Recorded(Period(240), tag(200)));
    before.handle(Period(241), Input::Simulated(Period(240), curve(200, 300)));
    before.handle(Period(242), Input::Recorded(Period(241), tag(500)));
    let restore = |options| {
        let curves: Vec<_> = before.curves().map(|(curve, used)| (curve.clone(), used)).collect();
        Adaptation::restore(options, Period(242), curves, before.observations())
    };
    let mut after = restore(options());
    assert_eq!(mbps(&after), mbps(&before));
    after.handle(Period(242), Input::Tick);
    assert_eq!(commands(&mut after), [Command::Simulate(Period(241))], "what waited waits again");
    let relaxed = restore(ThresholdOptions { acceptable_loss: 0.5, ..options() });
    let (_, first) = relaxed.observations().next().unwrap();
    assert_eq!(first.outcome.threshold().unwrap().rate, BitRate(400 * MBPS));
}

#[test]
fn a_clock_that_steps_back_forgets_what_is_later() {
    let mut adaptation = Adaptation::new(options(), Period(240));
    adaptation.handle(Period(241), Input::Recorded(Period(240), tag(200)));
    adaptation.handle(Period(241), Input::Simulated(Period(240), curve(200, 300)));
    adaptation.handle(Period(200), Input::Tick);
    assert_eq!((mbps(&adaptation).1, adaptation.observations().len()), (Reason::Configured, 0));
    assert_eq!(adaptation.curves().len(), 1, "a curve holds for traffic, not for a time");
}

/// The first simulation of a tag loses nothing by chance. Others lose 2e-4 on average at 300 Mbit/s, 1e-2 at 600.
#[test]
fn the_noise_of_one_hour_does_not_persist() {
    let mut adaptation = Adaptation::new(options(), Period(240));
    let noisy = |hour: u64| {
        let chance = [0.0, 0.5, 1.5][if hour == 0 { 0 } else { 1 + hour as usize % 2 }];
        let point =
            |rate, loss: f64| LossPoint { rate: BitRate(rate * MBPS), loss: loss * chance, error: 0.0 };
        let points = vec![point(300, 2e-4), point(600, 1e-2)];
        LossCurve { tag: tag(200 + hour % 10), points, seconds: 3_600.0 }
    };
    let mut thresholds = Vec::new();
    for hour in 0..200 {
        let period = Period(240 + hour);
        adaptation.handle(period.next(), Input::Recorded(period, tag(200 + hour % 10)));
        while let Some(command) = adaptation.next_command() {
            if command == Command::Simulate(period) {
                adaptation.handle(period.next(), Input::Simulated(period, noisy(hour)));
            }
        }
        thresholds.push(mbps(&adaptation).0);
    }
    assert_eq!(thresholds[0], 600, "all that is known");
    assert!(thresholds[16..].iter().all(|rate| *rate == 300), "{thresholds:?}");
    let simulated = adaptation.counters().simulated;
    assert!((8..=16).contains(&simulated), "bounded: {simulated}");
}

fn inputs() -> impl Strategy<Value = (u64, u8, u64)> {
    (0u64..60, 0u8..5, 1u64..9)
}

proptest! {
    /// Whatever happens: R stays in range, everything is bounded, and each recording is discarded once it is of no more use.
    #[test]
    fn it_is_bounded_and_discards_what_it_does_not_need(steps in prop::collection::vec(inputs(), 1..200)) {
        let options = ThresholdOptions { days: 1, curves: 3, ..options() };
        let mut adaptation = Adaptation::new(options.clone(), Period(100));
        let mut stored: Vec<Period> = Vec::new();
        let mut running = None;
        for (step, kind, rate) in steps {
            let now = Period(100 + step);
            let input = match (kind, running) {
                (0, _) => Input::Tick,
                (1, _) if !stored.contains(&now) => {
                    stored.push(now);
                    Input::Recorded(now, tag(50 * rate))
                }
                (2, _) if !stored.contains(&now) => Input::Unusable(now, Unusable::Lost),
                (3, Some(period)) => Input::Simulated(period, curve(50 * rate, 100 * rate)),
                (4, Some(period)) => Input::NotSimulated(period),
                _ => Input::Tick,
            };
            if matches!(input, Input::Simulated(..) | Input::NotSimulated(..)) {
                running = None;
            }
            adaptation.handle(now, input);
            for command in commands(&mut adaptation) {
                match command {
                    Command::Simulate(period) => {
                        prop_assert!(running.is_none() && stored.contains(&period));
                        running = Some(period);
                    }
                    Command::Discard(period) => stored.retain(|other| *other != period),
                }
            }
            let rate = adaptation.decision().rate;
            prop_assert!(rate >= options.lowest && rate <= options.link_rate);
            prop_assert!(adaptation.waiting() <= options.waiting + 2);
            prop_assert!(adaptation.curves().len() <= options.curves);
            prop_assert!(adaptation.observations().len() <= 25 + options.waiting + 2);
            prop_assert_eq!(stored.len(), adaptation.waiting());
        }
    }
}
