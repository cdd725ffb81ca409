use thalweg_network::EndpointId;

use super::*;

const TIMING: Timing = Timing { target: 50, interval: 1_000, mtu: 1_500 };

fn packet(at: u64) -> Stamped {
    let packet = Packet::new(EndpointId(0), EndpointId(1), 0, at as u32, 1_500);
    Stamped { packet, at: Slot(at) }
}

/// Empties an endless queue, one packet in each of `slots`, each with a delay of `sojourn`. Returns when packets were
/// dropped or, with `ecn`, marked.
fn should_drop_or_mark(codel: &mut CoDel, slots: std::ops::Range<u64>, sojourn: u64, ecn: bool) -> Vec<u64> {
    let mut should_drop_or_mark = Vec::new();
    for now in slots {
        let strike = |_: &mut Packet| {
            should_drop_or_mark.push(now);
            ecn
        };
        let sent = codel.dequeue(Slot(now), &TIMING, || Some((packet(now - sojourn), 9_000)), strike);
        assert!(sent.is_some());
    }
    should_drop_or_mark
}

/// interval / sqrt(n), rounded, for an interval of 1,000.
const WAITS: [u64; 9] = [1_000, 707, 577, 500, 447, 408, 378, 354, 333];

#[test]
fn the_control_law_is_the_interval_over_the_square_root() {
    for (count, wait) in (1..).zip(WAITS) {
        assert_eq!(TIMING.control_law(Slot(5), count), Slot(5 + wait));
    }
    assert_eq!(TIMING.control_law(Slot(5), 10_000), Slot(15));
    assert_eq!(TIMING.control_law(Slot(5), u32::MAX), Slot(6), "time goes on");
}

#[test]
fn drops_start_after_an_interval_and_follow_the_control_law() {
    for ecn in [false, true] {
        let mut expected = vec![100 + 1_000];
        expected.extend(WAITS.iter().scan(1_100, |time, wait| {
            *time += wait;
            Some(*time)
        }));
        let mut codel = CoDel::IDLE;
        let should_drop_or_mark = should_drop_or_mark(&mut codel, 100..5_900, 50, ecn);
        assert_eq!(should_drop_or_mark, expected, "marks as drops");
    }
}

#[test]
fn codel_drops_nothing_at_short_delays_and_never_the_last_packet() {
    let mut codel = CoDel::IDLE;
    assert_eq!(should_drop_or_mark(&mut codel, 100..9_000, 49, false), [0; 0]);
    for now in 100..9_000 {
        let strike = |_: &mut Packet| panic!("a queue that holds no more than a packet was struck");
        codel.dequeue(Slot(now), &TIMING, || Some((packet(0), 1_500)), strike);
    }
}

#[test]
fn one_short_delay_ends_the_dropping_state() {
    let mut codel = CoDel::IDLE;
    assert_eq!(should_drop_or_mark(&mut codel, 100..1_500, 50, false), [1_100]);
    assert_eq!(should_drop_or_mark(&mut codel, 1_500..1_501, 0, false), [0; 0]);
    // The next series starts an interval later with one drop, since the last had no more.
    assert_eq!(should_drop_or_mark(&mut codel, 1_501..3_600, 50, false), [2_501, 3_501]);
}

#[test]
fn codel_resumes_the_drop_rate_after_a_short_pause() {
    // Ten drops, the last at 5,804; then short delays up to `pause`, and long ones.
    let again = |pause: u64| {
        let mut codel = CoDel::IDLE;
        assert_eq!(should_drop_or_mark(&mut codel, 100..5_900, 50, false).len(), 10);
        should_drop_or_mark(&mut codel, 5_900..pause, 0, false);
        let should_drop_or_mark = should_drop_or_mark(&mut codel, pause..pause + 3_000, 50, false);
        should_drop_or_mark[1] - should_drop_or_mark[0]
    };
    // Nine drops after the first of the series: count is 9.
    assert_eq!(again(6_000), 333);
    // More than 16 intervals after drop number 11 was due.
    assert_eq!(again(6_120 + 16_000), 1_000);
}

#[test]
fn an_empty_queue_ends_the_series() {
    let mut codel = CoDel::IDLE;
    should_drop_or_mark(&mut codel, 100..1_500, 50, false);
    assert!(codel.is_dropping);
    assert!(codel.dequeue(Slot(1_500), &TIMING, || None::<(Stamped, u32)>, |_| true).is_none());
    assert_eq!((codel.is_dropping, codel.first_above), (false, None));
}

#[test]
fn dequeue_returns_none_if_codel_drops_all_packets() {
    let mut codel = CoDel::IDLE;
    should_drop_or_mark(&mut codel, 100..1_100, 50, false);
    let mut queue = vec![(packet(0), 9_000)];
    let mut dropped = 0;
    let sent = codel.dequeue(
        Slot(1_100),
        &TIMING,
        || queue.pop(),
        |_| {
            dropped += 1;
            false
        },
    );
    assert_eq!((sent, dropped), (None, 1));
}
