//! Accuracy of the collector at an emulated monitor port, against the targets of the experiments. Errors are means over
//! all estimates of 20 ms with one seed; results are deterministic, so there are no false alarms.

use thalweg_wire::{BitRate, Nanos};

use super::error::{Errors, Traffic};
use super::rack::{Control, MIN_BUFFER, PAPER_BUFFER, Rack};
use super::timeline::{Timeline, joining};
use crate::statistics::{mean, quantile};

const DURATION: Nanos = Nanos::from_millis(20);
const FACTORS: [u16; 4] = [1, 2, 7, 16];
const LINE_RATE: BitRate = BitRate(10_000_000_000);

fn errors(traffic: Traffic, control: Control, factor: u16) -> Errors {
    let errors = Errors::measure(traffic, control, factor, 1, DURATION).unwrap();
    assert!(errors.steady.len() > 10 && errors.links.len() > 50, "there are estimates to check");
    errors
}

#[test]
fn flows_are_within_three_percent_at_any_oversubscription() {
    for (control, factor) in
        Control::ALL.into_iter().flat_map(|control| FACTORS.map(|factor| (control, factor)))
    {
        let Errors { starting, steady, links, of_late, held, oversubscription, .. } =
            errors(Traffic::Disjoint, control, factor);
        let about = (control.name(), factor);
        assert!(
            (oversubscription[0] / f64::from(factor) - 1.0).abs() < 0.06,
            "{about:?} {oversubscription:?}"
        );
        assert!(mean(&steady) < 0.03 && mean(&starting) < 0.03, "{about:?}");
        assert!(quantile(&steady, 1.0) < 0.03, "{about:?}");
        assert!(mean(&of_late) < 0.03 && mean(&links) < 0.03, "{about:?}");
        assert_eq!(mean(&held[0]), 1.0, "{about:?}: bounds hold");
    }
}

#[test]
fn competing_flows_are_within_three_percent_after_recovery() {
    for control in Control::ALL {
        let Errors { steady, links, .. } =
            Errors::measure(Traffic::Congested, control, 4, 4, Nanos::from_millis(60)).unwrap();
        assert!(steady.len() > 100 && mean(&steady) < 0.03, "{}", control.name());
        assert!(mean(&links) < 0.03, "{}: {}", control.name(), mean(&links));
    }
}

#[test]
fn udp_rates_have_small_errors_next_to_tcp() {
    for factor in [1, 16] {
        let Errors { udp, held, .. } =
            Errors::measure(Traffic::Mixed, Control::Cubic, factor, 4, DURATION).unwrap();
        assert!(udp.len() >= 3 && mean(&udp) < 0.1, "{factor}: {} of {}", mean(&udp), udp.len());
        assert!(mean(&held[1]) > 0.85, "{factor}: bounds of 95 % hold in {}", mean(&held[1]));
    }
}

#[test]
fn stable_estimate_is_as_fast_as_in_the_paper() {
    for (control, factor) in
        Control::ALL.into_iter().flat_map(|control| [1, 16].map(|factor| (control, factor)))
    {
        let line = |buffer| {
            let rack = joining(LINE_RATE, buffer, control, factor, 1, Nanos::from_millis(30));
            Timeline::of(&rack).unwrap().unwrap()
        };
        let least = line(MIN_BUFFER);
        assert!(least.stable <= 850.0, "{factor}: {least:?}");
        assert!(least.estimation() >= 190.0 && least.estimation() <= 700.0, "{factor}: {least:?}");
        let paper = line(PAPER_BUFFER);
        assert!(paper.stable <= 4_300.0 + 100.0 * f64::from(factor), "{factor}: {paper:?}");
    }
}

#[test]
fn runs_depend_only_on_the_seed() {
    let times = |seed| {
        let rack = Rack { receivers: 3, seed, duration: Nanos::from_millis(2), ..Rack::default() };
        let run = rack.run().unwrap();
        run.samples.iter().map(|sample| (sample.packet.time, sample.pair)).collect::<Vec<_>>()
    };
    assert_eq!(times(1), times(1));
    assert_ne!(times(1), times(2));
}
