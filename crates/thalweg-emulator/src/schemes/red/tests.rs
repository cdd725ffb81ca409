use proptest::prelude::*;

use super::*;
use crate::packet::Ecn;
use crate::schemes::tests::harness::{Bench, request};

/// Ten packets of 1,500 bytes for the port, with the sender's ECN field.
fn ten(ecn: Ecn) -> impl Iterator<Item = crate::outcome::Request> {
    (0..10).map(move |id| {
        let mut request = request(0, 0, id, 1_500);
        request.packet = request.packet.with_traffic_class(ecn as u8);
        request
    })
}

fn bench(config: RedConfig) -> Bench<Red<crate::schemes::tests::harness::ByDestination>> {
    Bench::new(1, |route, ports| red(route, ports, &config))
}

proptest! {
    /// The plain model uses the formula of each case, with powers by the standard library.
    #[test]
    fn average_queue_matches_the_red_formula(
        weight in 0u8..=8,
        slots in prop::collection::vec((0usize..4, 0u64..80), 1..60),
    ) {
        let mut bench = bench(RedConfig { weight, ..RedConfig::default() });
        let gain = 0.5f64.powi(weight.into());
        let (mut average, mut empty_since) = (0.0, 0);
        for (arrivals, idle) in slots {
            for id in 0..arrivals {
                let waiting = bench.waiting();
                if waiting == 0 {
                    average *= (1.0 - gain).powf((bench.now.0 - empty_since) as f64);
                } else {
                    average = (1.0 - gain) * average + gain * waiting as f64;
                }
                bench.arrive([request(0, 0, id as u32, 1_500)]);
            }
            let kept = bench.router.store.states[0].length;
            prop_assert!((kept - average).abs() <= 1e-9 * average.max(1.0), "{kept}, not {average}");
            let was_empty = bench.waiting() == 0;
            bench.step();
            if bench.waiting() == 0 {
                if !was_empty {
                    empty_since = bench.now.0 - 1;
                }
                bench.skip(idle);
            }
        }
    }
}

#[test]
fn gentle_red_ramps_to_one_above_the_maximum_and_plain_red_jumps() {
    let probability = |gentle: bool, length: f64| {
        let bench = bench(RedConfig { gentle, ..RedConfig::default() });
        bench.router.enqueue.base_probability(length)
    };
    for (length, harsh, gentle) in [
        (0.0, 0.0, 0.0),
        (149.9, 0.0, 0.0),
        (150.0, 0.0, 0.0),
        (225.0, 0.05, 0.05),
        (270.0, 0.08, 0.08),
        (300.0, 1.0, 0.1),
        (450.0, 1.0, 0.55),
        (600.0, 1.0, 1.0),
        (601.0, 1.0, 1.0),
        (9e9, 1.0, 1.0),
    ] {
        assert!((probability(false, length) - harsh).abs() < 1e-12, "{length}");
        assert!((probability(true, length) - gentle).abs() < 1e-12, "{length}, gentle");
    }
}

/// With p_b = 1/20, p_a of the arrivals after a mark is 1/19, 1/18, ..., 1: a gap is 1 to 19 with equal probability.
/// 19,000 gaps: chi-squared with 18 degrees of freedom exceeds 60 with probability 2e-6.
#[test]
fn gaps_between_marks_are_uniform() {
    let mut bench = bench(RedConfig::default());
    let detection = bench.router.enqueue.clone();
    let mut average = Average { count: 0, ..Average::default() };
    let mut gaps = [0u32; 19];
    bench.with_context(|_, context| {
        for _ in 0..19_000 {
            let gap =
                (1..).take_while(|_| !detection.should_drop_or_mark(&mut average, 0.05, context)).count();
            gaps[gap] += 1;
        }
    });
    let chi_squared: f64 = gaps.iter().map(|&n| (f64::from(n) - 1_000.0).powi(2) / 1_000.0).sum();
    assert!(chi_squared < 60.0, "{gaps:?}");
}

/// w = 1: the average is the length that an arrival finds, and p_b = 1 / 2 at 6 of 4 to 8.
fn quick(ecn: bool) -> RedConfig {
    RedConfig {
        min_threshold: 4,
        max_threshold: 8,
        max_probability: 1.0,
        weight: 0,
        gentle: false,
        ecn,
        buffer: 9,
    }
}

#[test]
fn ecn_replaces_early_drops_below_the_upper_threshold() {
    for (ecn, field) in [(true, Ecn::Capable0), (true, Ecn::NotCapable), (false, Ecn::Capable0)] {
        let mut bench = bench(quick(ecn));
        for _ in 0..50 {
            bench.arrive(ten(field));
            bench.step();
        }
        let is_marked = ecn && field == Ecn::Capable0;
        assert_eq!(bench.marked() > 0, is_marked, "{ecn} {field:?}");
        assert!(bench.dropped_for(Reason::Early) > 0);
        // With marks the queue reaches the upper threshold, where everything is dropped; without marks, rarely.
        assert_eq!(bench.dropped_for(Reason::Full), 0, "below the buffer");
        assert!(bench.waiting() <= 8);
    }
}

#[test]
fn nothing_is_dropped_below_the_lower_threshold() {
    let mut bench = bench(RedConfig { min_threshold: 10, max_threshold: 12, buffer: 12, ..quick(false) });
    bench.arrive(ten(Ecn::NotCapable));
    assert!(bench.dropped.is_empty());
}

#[test]
fn a_full_buffer_drops_whatever_the_average() {
    let mut bench = bench(RedConfig { weight: 16, buffer: 8, ..quick(true) });
    bench.arrive(ten(Ecn::Capable0));
    assert_eq!((bench.dropped_for(Reason::Full), bench.dropped_for(Reason::Early)), (2, 0));
}
