use std::collections::VecDeque;

use proptest::prelude::*;

use super::*;
use thalweg_wire::HashSeed;

/// Every packet within the last `T`, and their sum: exact, in unbounded memory.
#[derive(Default)]
struct Exact {
    window: VecDeque<(u64, u64)>,
    sum: u64,
}

impl Exact {
    /// Returns the bytes in `(time - span, time]` including this packet.
    fn add(&mut self, time: u64, bytes: u64, span: Nanos) -> u64 {
        self.window.push_back((time, bytes));
        self.sum += bytes;
        while self.window.front().is_some_and(|(begin, _)| time - begin >= span.0) {
            self.sum -= self.window.pop_front().unwrap().1;
        }
        self.sum
    }
}

/// A flow of one direction, passed to the detector as by the flow table.
struct Flow {
    owner: u32,
    track: u32,
    count: u64,
    start: Option<u64>,
}

impl Flow {
    fn new(owner: u32) -> Flow {
        Flow { owner, track: NO_TRACK, count: 0, start: None }
    }

    fn add(&mut self, detector: &mut SlidingWindow, time: u64, bytes: u64) -> Option<Flight> {
        let (before, after) = (self.count, self.count + bytes);
        self.count = after;
        let start = Timestamp(*self.start.get_or_insert(time));
        let (owner, direction) = (self.owner, Direction::Forward);
        let packet = Counted { owner, direction, before, after, time: Timestamp(time), start };
        let was_watched = detector.watches(owner, self.track);
        let passes = detector.passes_milestone(before, after);
        let flight = passes.then(|| detector.observe(&mut self.track, &packet)).flatten();
        match flight {
            None if was_watched => match detector.verify(self.track, &packet) {
                Verified::Flight(flight) => Some(flight),
                Verified::Unremarkable | Verified::Unwatched => None,
            },
            flight => flight,
        }
    }
}

/// Returns the index of the detecting packet, and the number of undecided directions at the end of the flow.
fn detected(detector: &mut SlidingWindow, packets: &[(u64, u64)]) -> (Option<(usize, Flight)>, u64) {
    let mut flow = Flow::new(1);
    let found = packets
        .iter()
        .enumerate()
        .find_map(|(index, (time, bytes))| flow.add(detector, *time, *bytes).map(|flight| (index, flight)));
    let before = detector.undecided();
    detector.release(1, &mut flow.track);
    (found, detector.undecided() - before)
}

fn threshold(flight_ms: u64, rate: u64) -> CheetahThreshold {
    CheetahThreshold { flight_duration: Nanos::from_millis(flight_ms), rate_threshold: BitRate(rate) }
}

/// Returns the exact sum of each window that ends with a packet.
fn windows(flow: &[(u64, u64)], span: Nanos) -> Vec<u64> {
    let mut exact = Exact::default();
    flow.iter().map(|(time, bytes)| exact.add(*time, *bytes, span)).collect()
}

prop_compose! {
    /// A flow near the threshold of 50 Mbit/s over 100 ms: packets of all sizes, in bursts and with pauses.
    fn any_flow()(
        pace in 5_000u64..400_000,
        steps in prop::collection::vec(
            (prop_oneof![6 => 0u64..4, 2 => Just(0), 1 => 50u64..600], prop_oneof![4 => 1400u64..1501, 2 => 40u64..200, 1 => 9_000u64..65_000]),
            1..1500,
        ),
    ) -> Vec<(u64, u64)> {
        let mut now = 7_000_000_000;
        steps.into_iter().map(|(gap, bytes)| { now += gap * pace; (now, bytes) }).collect()
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    /// The guarantees of the module's doc, against the exact window: none is reported that is no cheetah, none before it is
    /// one, and none is missed or reported late that is not undecided.
    #[test]
    fn exactly_the_cheetahs_are_reported(
        flow in any_flow(), flight_ms in prop_oneof![Just(100u64), Just(10), Just(1)], rate in 1_000_000u64..80_000_000,
        tracks in 1usize..3,
    ) {
        let threshold = threshold(flight_ms, rate);
        let (volume, span) = (threshold.volume().0, threshold.flight_duration);
        let windows = windows(&flow, span);
        let truth = windows.iter().position(|sum| *sum > volume);
        let mut detector = SlidingWindow::new(threshold, tracks).unwrap();
        let (found, undecided) = detected(&mut detector, &flow);
        prop_assert_eq!(detector.untracked(), 0);
        if let Some((index, flight)) = found {
            prop_assert!(windows[index] > volume, "{} of {volume}", windows[index]);
            prop_assert!(flight.bytes.0 > volume && flight.bytes.0 <= windows[index]);
            prop_assert!(flight.rate >= BitRate::of(flight.bytes, span) && flight.rate.0 >= rate);
            prop_assert_eq!(undecided, 0);
        }
        if truth.is_some() && found.is_none() {
            prop_assert_eq!(undecided, 1);
        }
    }

    #[test]
    fn counting_quanta_matches_integer_division(
        volume in prop_oneof![1u64..1000, 1u64..1 << 40], bytes in any::<u64>(), shift in 0u32..64, near in 0u64..3,
    ) {
        let flight_duration = Nanos(8_000_000_000);
        let detector = SlidingWindow::new(CheetahThreshold { flight_duration, rate_threshold: BitRate(volume) }, 1);
        let detector = detector.unwrap();
        let bytes = bytes >> shift;
        let edge = (bytes / detector.quantum * detector.quantum).saturating_add(near).saturating_sub(1);
        for bytes in [bytes, edge, detector.exact_below.saturating_add(near).saturating_sub(1)] {
            prop_assert_eq!(detector.quanta_in(bytes), bytes / detector.quantum);
        }
    }

    /// Taking a track from a quiet flow leaves no gap when that flow resumes.
    #[test]
    fn flows_that_share_a_track_are_detected(flow in any_flow()) {
        let threshold = threshold(100, 50_000_000);
        let mut alone = SlidingWindow::new(threshold, 2).unwrap();
        let mut shared = SlidingWindow::new(threshold, 2).unwrap();
        let wake = flow.last().unwrap().0 + 200_000_000;
        for (owner, start) in [(1, 0u64), (2, wake), (1, 2 * wake), (3, 3 * wake)] {
            let (mut single, mut other) = (Flow::new(9), Flow::new(owner));
            for (time, bytes) in &flow {
                let a = single.add(&mut alone, start + time, *bytes);
                let b = other.add(&mut shared, start + time, *bytes);
                prop_assert_eq!(a, b);
            }
            alone.release(9, &mut single.track);
        }
    }
}

#[test]
fn a_burst_across_two_flights_is_detected() {
    // 0.8 of the threshold just before the end of the first flight, 0.8 just after the beginning of the second.
    let mut flow = vec![(0, 100)];
    flow.extend((0..333).map(|n| (90_000_000 + n * 20_000, 1500)));
    flow.extend((0..333).map(|n| (101_000_000 + n * 20_000, 1500)));
    let mut detector = SlidingWindow::new(CheetahThreshold::default(), 4).unwrap();
    let (index, flight) = detected(&mut detector, &flow).0.unwrap();
    assert!(flow[index].0 > 101_000_000 && flow[index].0 < 103_000_000);
    assert!(flight.rate >= BitRate(50_000_000));
}

#[test]
fn the_reported_rate_is_that_of_the_flow() {
    // 200 Mbit/s in packets of 1500 bytes: one every 60 us.
    let flow: Vec<_> = (0..1000).map(|n| (n * 60_000, 1500)).collect();
    let mut detector = SlidingWindow::new(CheetahThreshold::default(), 4).unwrap();
    let (index, flight) = detected(&mut detector, &flow).0.unwrap();
    assert!((24_000_000..26_000_000).contains(&flow[index].0));
    assert!((197_000_000..203_000_000).contains(&flight.rate.0), "{}", flight.rate);
}

#[test]
fn one_packet_can_exceed_the_threshold() {
    for tracks in [1, 4] {
        let mut detector = SlidingWindow::new(threshold(1, 1_000_000), tracks).unwrap();
        Flow::new(7).add(&mut detector, 5, 2);
        assert!(detected(&mut detector, &[(6, 1500)]).0.is_some());
    }
}

#[test]
fn events_for_flows_without_a_track_are_counted() {
    let mut detector = SlidingWindow::new(CheetahThreshold::default(), 1).unwrap();
    let quantum = detector.quantum;
    let mut flows = [Flow::new(0), Flow::new(1)];
    for flow in &mut flows {
        flow.add(&mut detector, 1 << 40, quantum + 1);
    }
    assert_eq!(detector.untracked(), 1);
    detector.release(0, &mut flows[0].track);
    flows[1].add(&mut detector, 1 << 40, quantum);
    assert_eq!(detector.untracked(), 1);
}

/// Flows that peak between 0.98 and 1.02 of the threshold: at a constant rate, with jitter, in bursts with pauses, as a ramp, and
/// in packets of all sizes.
#[test]
fn near_misses_are_told_from_cheetahs() {
    let (seed, mut step) = (HashSeed::new(22), 0);
    let mut uniform = |from: f64, to: f64| {
        step += 1;
        from + (to - from) * (seed.hash_words(step, 0) >> 11) as f64 / (1u64 << 53) as f64
    };
    let threshold = CheetahThreshold::default();
    let (volume, span) = (threshold.volume().0, threshold.flight_duration);
    let (mut cheetahs, mut others, mut undecided, mut missed) = (0, 0, 0, 0);
    for case in 0..160u64 {
        let share = uniform(0.98, 1.02);
        let length = [1500, 1500, 576, 200][case as usize % 4];
        let pace = 1e9 * length as f64 / (volume as f64 * share * 10.0);
        let mut now = 1_000_000_000.0;
        let mut flow = Vec::new();
        while flow.iter().map(|(_, bytes)| bytes).sum::<u64>() < 3 * volume {
            let step = match case % 5 {
                0 => 1.0,
                1 => uniform(0.5, 1.5),
                2 => -f64::ln(uniform(1e-9, 1.0)),
                3 if (flow.len() as u64).is_multiple_of(volume / length) => 700.0,
                3 => 0.99,
                _ => (400.0 / (1.0 + flow.len() as f64)).max(1.0),
            };
            now += pace * step;
            let bytes =
                if case % 7 == 0 { uniform(0.5 * length as f64, 1.5 * length as f64) as u64 } else { length };
            flow.push((now as u64, bytes));
        }
        let truth = windows(&flow, span).iter().position(|sum| *sum > volume);
        let mut detector = SlidingWindow::new(threshold, 4).unwrap();
        let (found, unknown) = detected(&mut detector, &flow);
        assert!(found.is_none() || truth.is_some(), "case {case} is no cheetah");
        missed += u32::from(truth.is_some() && found.is_none());
        undecided += unknown;
        match truth {
            Some(_) => cheetahs += 1,
            None => others += 1,
        }
    }
    assert!(cheetahs > 50 && others > 50, "{cheetahs} {others}");
    assert_eq!(missed, 0);
    assert!(undecided < others / 2, "{undecided}");
}

#[test]
fn a_threshold_below_one_byte_is_rejected() {
    assert!(SlidingWindow::new(threshold(0, 1), 1).is_err());
}
