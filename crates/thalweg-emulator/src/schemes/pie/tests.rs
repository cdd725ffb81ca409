use proptest::prelude::*;
use thalweg_wire::BitRate;

use super::*;
use crate::packet::Ecn;
use crate::router::Router;
use crate::schemes::tests::harness::{Bench, CLOCK, request};

fn controller(config: &PieConfig) -> PieController {
    PieController::new(
        RouterPorts { clock: CLOCK, rates: &[BitRate(10_000_000_000)], longest: 1_500 },
        config,
    )
}

/// The number of slots of 1.2 us in `ms` milliseconds.
fn slots(ms: u64) -> u64 {
    ms * 2_500 / 3
}

/// A state with this drop probability, delay and delay before (in ms), after an update.
fn updated(drop_probability: f64, delay_ms: u64, before_ms: u64) -> PieState {
    let controller = controller(&PieConfig::default());
    let delay_before = before_ms as f64 / 1e3;
    let mut state = PieState { drop_probability, delay: slots(delay_ms), delay_before, ..controller.begin() };
    controller.update(&mut state);
    state
}

/// 18 ms after 15: 0.125 * 3 ms + 1.25 * 3 ms = 0.004125, scaled by the probability.
#[test]
fn steps_are_those_of_the_rfc() {
    for (probability, divisor) in [
        (0.0, 2_048.0),
        (0.000_002, 512.0),
        (0.000_02, 128.0),
        (0.000_2, 32.0),
        (0.002, 8.0),
        (0.02, 2.0),
        (0.2, 1.0),
    ] {
        let step = updated(probability, 18, 15).drop_probability - probability;
        assert!((step - 0.004_125 / divisor).abs() < 1e-15, "{probability}: {step}");
    }
    // Down as well as up: 12 ms after 15.
    assert!((updated(0.2, 12, 15).drop_probability - (0.2 - 0.004_125)).abs() < 1e-15);
}

#[test]
fn a_large_step_up_is_capped_where_the_probability_is_high() {
    assert!((updated(0.2, 300, 0).drop_probability - 0.22).abs() < 1e-15);
    // 0.125 * 0.285 + 1.25 * 0.3 = 0.410625, halved, below 0.1.
    assert!((updated(0.09, 300, 0).drop_probability - (0.09 + 0.205_312_5)).abs() < 1e-12);
}

#[test]
fn the_probability_stays_between_0_and_1_and_decays_in_quiet_times() {
    assert_eq!(updated(0.99, 300, 300).drop_probability, 1.0);
    assert_eq!(updated(0.000_000_1, 0, 3).drop_probability, 0.0);
    // -0.125 * 0.015, then minus 2 %.
    assert!((updated(0.5, 0, 0).drop_probability - (0.5 - 0.001_875) * 0.98).abs() < 1e-15);
    // 9 ms is more than half of the target.
    assert!((updated(0.5, 9, 9).drop_probability - (0.5 - 0.125 * 0.006)).abs() < 1e-15);
}

#[test]
fn bursts_pass_within_an_allowance_that_quiet_times_renew() {
    let controller = controller(&PieConfig::default());
    let mut state = controller.begin();
    assert_eq!(state.burst_allowance, slots(150));
    state.delay = slots(18);
    for updates in 1..=12 {
        controller.update(&mut state);
        assert_eq!(state.burst_allowance, slots(150u64.saturating_sub(15 * updates)));
    }
    state.delay = 0;
    for _ in 0..100 {
        controller.update(&mut state);
    }
    assert_eq!((state.drop_probability, state.burst_allowance), (0.0, slots(150)));
}

proptest! {
    /// The plain model updates in every slot, the other when it measures the delay, or after a long silence.
    #[test]
    fn deferred_updates_equal_timely_ones(
        measured in prop::collection::vec((0u64..2_000, 0u64..60), 1..40),
    ) {
        let nanos = |slots: u64| Nanos(slots * 1_200);
        let (target, update, max_burst) = (nanos(20), nanos(7), nanos(70));
        let controller = controller(&PieConfig { target, update, max_burst, ..PieConfig::for_rate(CLOCK.rate) });
        let (mut lazy, mut plain, mut now) = (controller.begin(), controller.begin(), 0);
        for (silence, delay) in measured {
            for slot in now..=now + silence {
                controller.catch_up(&mut plain, Slot(slot));
            }
            now += silence;
            controller.catch_up(&mut lazy, Slot(now));
            prop_assert_eq!(lazy, plain);
            (lazy.delay, plain.delay) = (delay, delay);
        }
    }
}

/// Twice the link's rate from an unresponsive sender: half is dropped, and the rest waits for the target. 20 ms to
/// settle, then 80 ms: the drop ratio of 133,000 arrivals has a standard error of 0.0014.
#[test]
fn overload_is_dropped_down_to_the_target_delay() {
    let config = PieConfig::for_rate(CLOCK.rate);
    let mut bench = Bench::new(1, |route, ports| pie(route, ports, &config));
    let (mut waits, mut sent, mut dropped_before) = (0, 0, 0);
    for slot in 0..slots(100) {
        bench.arrive((0..2).map(|half| request(0, 0, (2 * slot + half) as u32, 1_500)));
        for packet in bench.step_one() {
            if slot > slots(20) {
                waits += slot - u64::from(packet.id() / 2);
                sent += 1;
            } else {
                dropped_before = bench.dropped.len();
            }
        }
    }
    let share = (bench.dropped.len() - dropped_before) as f64 / (2 * sent) as f64;
    assert!((share - 0.5).abs() < 0.01, "dropped {share}");
    let wait_us = waits as f64 / f64::from(sent) * 1.2;
    assert!((80.0..125.0).contains(&wait_us), "waited {wait_us} us for a target of 100");
}

#[test]
fn an_emptied_or_flushed_queue_has_no_delay() {
    let config = PieConfig::for_rate(CLOCK.rate);
    for flushed in [false, true] {
        let mut bench = Bench::new(1, |route, ports| pie(route, ports, &config));
        for slot in 0..slots(3) {
            bench.arrive((0..2).map(|half| request(0, 0, (2 * slot + half) as u32, 1_500)));
            bench.step();
        }
        let probability = |bench: &Bench<Pie<_>>| bench.router.store.states[0].drop_probability;
        assert!(probability(&bench) > 0.0);
        if flushed {
            bench.with_context(|router, context| router.flush(PortIndex(0), context));
        } else {
            bench.drain();
        }
        bench.skip(slots(1_000));
        bench.arrive([request(0, 0, 0, 1_500)]);
        assert_eq!(probability(&bench), 0.0, "after a second of silence");
    }
}

#[test]
fn marks_replace_drops_up_to_the_ecn_threshold() {
    for (probability, marked, dropped) in [(0.1, true, false), (0.11, false, true)] {
        let config = PieConfig { ecn: true, ..PieConfig::default() };
        let mut bench = Bench::new(1, |route, ports| pie(route, ports, &config));
        // Until the burst allowance is used up and the delay exceeds the target.
        let quiet = bench.router.store.states[0];
        bench.router.store.states[0] =
            PieState { drop_probability: probability, delay_before: 1.0, burst_allowance: 0, ..quiet };
        let capable = |id| {
            let mut request = request(0, 0, id, 1_500);
            request.packet = request.packet.with_traffic_class(Ecn::Capable0 as u8);
            request
        };
        bench.arrive((0..500).map(capable));
        assert_eq!((bench.marked() > 0, bench.dropped_for(Reason::Early) > 0), (marked, dropped));
    }
}
