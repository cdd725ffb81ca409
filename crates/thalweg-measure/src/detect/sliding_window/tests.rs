use std::collections::VecDeque;

use proptest::prelude::*;

use super::*;

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

/// A flow of one direction, passed to the detector as by the flow table. Returns the index of the detecting packet.
fn detected(detector: &mut SlidingWindow, packets: &[(u64, u64)]) -> Option<(usize, Flight)> {
    let (mut count, mut track) = (0, NO_TRACK);
    packets.iter().enumerate().find_map(|(index, (time, bytes))| {
        let (before, after) = (count, count + bytes);
        count = after;
        let time = Timestamp(*time);
        let passes = detector.passes_milestone(before, after);
        let flight =
            passes.then(|| detector.observe(1, &mut track, Direction::Forward, (before, after), time));
        flight?.map(|flight| (index, flight))
    })
}

fn threshold(flight_ms: u64, rate: u64) -> CheetahThreshold {
    CheetahThreshold { flight_duration: Nanos::from_millis(flight_ms), rate_threshold: BitRate(rate) }
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

    /// The two guarantees of the module's doc, against the exact window: no flow missed, none reported later than the
    /// packet that makes it a cheetah, none reported below the slack.
    #[test]
    fn no_cheetah_is_missed_and_none_below_the_slack_reported(
        flow in any_flow(), flight_ms in prop_oneof![Just(100u64), Just(10), Just(1)], rate in 1_000_000u64..80_000_000,
    ) {
        let threshold = threshold(flight_ms, rate);
        let (volume, span) = (threshold.volume().0, threshold.flight_duration);
        let mut exact = Exact::default();
        let windows: Vec<u64> = flow.iter().map(|(time, bytes)| exact.add(*time, *bytes, span)).collect();
        let truth = windows.iter().position(|sum| *sum > volume);
        let mut detector = SlidingWindow::new(threshold, 4).unwrap();
        let found = detected(&mut detector, &flow);
        prop_assert_eq!(detector.untracked(), 0);
        if let Some(truth) = truth {
            prop_assert!(found.is_some_and(|(index, _)| index <= truth), "{found:?} {truth}");
        }
        if let Some((index, flight)) = found {
            let window = windows[index];
            prop_assert!(window > (detector.quanta - 1) * detector.quantum, "{window} of {volume}");
            prop_assert!(flight.rate >= BitRate::of(flight.bytes, span) && flight.rate.0 >= rate);
            prop_assert!(flight.bytes.0 > volume && flight.bytes.0 <= window + detector.quantum + 64);
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
            let (mut count, mut track, mut lonely) = (0u64, NO_TRACK, NO_TRACK);
            for (time, bytes) in &flow {
                let (before, time) = (count, Timestamp(start + time));
                count += bytes;
                if alone.passes_milestone(before, count) {
                    let a = alone.observe(9, &mut lonely, Direction::Forward, (before, count), time);
                    let b = shared.observe(owner, &mut track, Direction::Forward, (before, count), time);
                    prop_assert_eq!(a, b);
                }
            }
            alone.release(9, &mut lonely);
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
    let (index, flight) = detected(&mut detector, &flow).unwrap();
    assert!(flow[index].0 > 101_000_000 && flow[index].0 < 103_000_000);
    assert!(flight.rate >= BitRate(50_000_000));
}

#[test]
fn the_reported_rate_is_that_of_the_flow() {
    // 200 Mbit/s in packets of 1500 bytes: one every 60 us.
    let flow: Vec<_> = (0..1000).map(|n| (n * 60_000, 1500)).collect();
    let mut detector = SlidingWindow::new(CheetahThreshold::default(), 4).unwrap();
    let (index, flight) = detected(&mut detector, &flow).unwrap();
    assert!((24_000_000..26_000_000).contains(&flow[index].0));
    assert!((197_000_000..203_000_000).contains(&flight.rate.0), "{}", flight.rate);
}

#[test]
fn one_packet_can_exceed_the_threshold() {
    for tracks in [1, 4] {
        let mut detector = SlidingWindow::new(threshold(1, 1_000_000), tracks).unwrap();
        let mut other = NO_TRACK;
        detector.observe(7, &mut other, Direction::Forward, (0, 2), Timestamp(5));
        assert!(detected(&mut detector, &[(6, 1500)]).is_some());
    }
}

#[test]
fn events_for_flows_without_a_track_are_counted() {
    let mut detector = SlidingWindow::new(CheetahThreshold::default(), 1).unwrap();
    let quantum = detector.quantum;
    let mut tracks = [NO_TRACK; 2];
    for (owner, track) in tracks.iter_mut().enumerate() {
        detector.observe(owner as u32, track, Direction::Reverse, (quantum, quantum + 1), Timestamp(1 << 40));
    }
    assert_eq!(detector.untracked(), 1);
    detector.release(0, &mut tracks[0]);
    detector.observe(
        1,
        &mut tracks[1],
        Direction::Reverse,
        (2 * quantum, 2 * quantum + 1),
        Timestamp(1 << 40),
    );
    assert_eq!(detector.untracked(), 1);
}

#[test]
fn a_threshold_below_one_byte_is_rejected() {
    assert!(SlidingWindow::new(threshold(0, 1), 1).is_err());
}
