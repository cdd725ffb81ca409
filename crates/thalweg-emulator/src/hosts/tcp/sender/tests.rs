use super::*;
use crate::hosts::segment::{SackBlock, SackBlocks};

const MSS: u64 = 100;
/// The time of events for which time does not matter.
const NOW: Timestamp = Timestamp(1_000_000);

fn sender(algorithm: Algorithm, segments: u64) -> Sender {
    let config = TcpConfig { ecn: true, ..TcpConfig::with(algorithm) };
    Sender::new(&config, segments * MSS, MSS, 1 << 30)
}

fn ack(segments: u64, sack: &[(u64, u64)]) -> Ack {
    let mut blocks = SackBlocks::default();
    for &(start, end) in sack.iter().rev() {
        blocks.put_first(SackBlock { start: start * MSS, end: end * MSS });
    }
    Ack { acknowledgement: segments * MSS, echo: NOW, sent_at: NOW, ece: false, sack: blocks }
}

/// Sends what may be sent. Returns the segment numbers.
fn send(sender: &mut Sender) -> Vec<u64> {
    std::iter::from_fn(|| sender.transmit(NOW)).map(|data| data.sequence / MSS).collect()
}

/// A sender in congestion avoidance with a window of `window` segments in flight, from segment 0 on.
fn with_window(algorithm: Algorithm, window: u64) -> Sender {
    let mut sender = sender(algorithm, 10_000);
    sender.window.cwnd = window * MSS;
    sender.window.ssthresh = window * MSS;
    assert_eq!(send(&mut sender), (0..window).collect::<Vec<_>>());
    sender
}

#[test]
fn the_initial_window_is_ten_segments_and_doubles_each_round() {
    let mut sender = sender(Algorithm::NewReno, 10_000);
    let mut acked = 0;
    send(&mut sender);
    for window in [10, 20, 40, 80] {
        assert_eq!(sender.window().cwnd, window * MSS);
        assert_eq!(sender.board.outstanding(), window);
        for _ in 0..window / 2 {
            acked += 2;
            sender.on_ack(&ack(acked, &[]), NOW);
            // Self-clocking: each acknowledgement releases what it acknowledged plus the window's growth.
            send(&mut sender);
        }
        sender.check_invariants();
    }
}

/// RFC 6675 with RFC 6937, segment 0 of 20 lost: limited transmit sends two new segments, the third block starts
/// recovery, half of the window is sent over the round, and half the window remains.
#[test]
fn one_loss_halves_the_window_and_sends_the_lost_segment_once() {
    let mut sender = with_window(Algorithm::NewReno, 20);
    let mut sent = Vec::new();
    for end in 2..=20 {
        sender.on_ack(&ack(0, &[(1, end)]), NOW);
        sent.push(send(&mut sender));
        sender.check_invariants();
    }
    assert_eq!(sent[..3], [vec![20], vec![21], vec![0]]);
    assert_eq!(sender.window().ssthresh, 10 * MSS);
    let in_recovery: usize = sent[2..].iter().map(Vec::len).sum();
    // Proportional: 10/22 for each of the 17 deliveries in recovery, including the retransmission.
    assert_eq!(in_recovery, (17.0f64 * 10.0 / 22.0).ceil() as usize);
    sender.on_ack(&ack(0, &[(1, 22)]), NOW);
    sender.on_ack(&ack(22, &[]), NOW);
    assert_eq!(sender.window().cwnd, 10 * MSS);
    assert!(!sender.is_recovering());
    assert_eq!((sender.events.retransmissions, sender.events.recoveries, sender.events.timeouts), (1, 1, 0));
}

#[test]
fn several_losses_in_a_window_are_one_congestion_event() {
    let mut sender = with_window(Algorithm::Cubic, 40);
    let lost = [0, 3, 10, 11, 12, 30];
    let mut next = [1, 2, 4, 5, 6, 7, 8, 9].to_vec();
    next.extend(13..30);
    next.extend(31..40);
    // The receiver's blocks: the latest three runs of arrived segments.
    let mut arrived: Vec<u64> = Vec::new();
    let mut again = Vec::new();
    for segment in next {
        arrived.push(segment);
        let mut runs: Vec<(u64, u64)> = Vec::new();
        for &segment in &arrived {
            match runs.last_mut() {
                Some(run) if run.1 == segment => run.1 += 1,
                _ => runs.push((segment, segment + 1)),
            }
        }
        runs.reverse();
        runs.truncate(3);
        sender.on_ack(&ack(0, &runs), NOW);
        again.extend(send(&mut sender).into_iter().filter(|&segment| segment < 40));
        sender.check_invariants();
    }
    assert_eq!(again, lost);
    assert_eq!((sender.window().ssthresh, sender.events.recoveries), (28 * MSS, 1));
}

#[test]
fn a_timeout_halves_the_threshold_and_restarts_slow_start() {
    let mut sender = with_window(Algorithm::NewReno, 20);
    let first = sender.deadline();
    assert_eq!(first, NOW + Nanos::from_secs(1));
    sender.on_timer(first);
    assert_eq!((sender.window().cwnd, sender.window().ssthresh), (MSS, 10 * MSS));
    assert_eq!(sender.deadline(), first + Nanos::from_secs(2));
    assert_eq!(send(&mut sender), [0]);
    sender.on_timer(sender.deadline());
    assert_eq!((sender.window().cwnd, sender.window().ssthresh), (MSS, 10 * MSS), "RFC 5681, section 3.1");
    assert_eq!(send(&mut sender), [0]);
    for (acked, again) in [(1, vec![1, 2]), (3, vec![3, 4, 5, 6])] {
        sender.on_ack(&ack(acked, &[]), NOW);
        assert_eq!(send(&mut sender), again);
    }
    assert_eq!(sender.events.timeouts, 2);
    // Late packets arrive: the whole first window, and nothing is retransmitted.
    sender.on_ack(&ack(20, &[]), NOW);
    assert!(!sender.is_recovering() && send(&mut sender).iter().all(|&segment| segment >= 20));
    sender.check_invariants();
}

#[test]
fn the_timer_runs_while_data_are_in_flight() {
    let mut sender = sender(Algorithm::NewReno, 4);
    assert_eq!(sender.deadline(), NEVER);
    send(&mut sender);
    let later = NOW + Nanos::from_millis(5);
    sender.on_ack(&ack(2, &[]), later);
    assert_eq!(sender.deadline(), later + Nanos::from_millis(200));
    sender.on_timer(later);
    assert_eq!(sender.events.timeouts, 0, "not yet");
    sender.on_ack(&ack(4, &[]), later);
    assert_eq!((sender.deadline(), sender.is_done()), (NEVER, true));
}

#[test]
fn ece_reduces_the_congestion_window_once_per_round_trip_and_is_answered_by_one_cwr() {
    let mut sender = with_window(Algorithm::NewReno, 20);
    let marked = |segments| Ack { ece: true, ..ack(segments, &[]) };
    sender.on_ack(&marked(1), NOW);
    assert_eq!(sender.window().cwnd, 19 * MSS / 2, "half of what is under way");
    for segments in 2..20 {
        sender.on_ack(&marked(segments), NOW);
    }
    assert_eq!(sender.window().cwnd, 19 * MSS / 2, "the same window of data");
    let sent: Vec<bool> = std::iter::from_fn(|| sender.transmit(NOW)).map(|data| data.cwr).collect();
    assert_eq!(sent.iter().filter(|&&cwr| cwr).count(), 1);
    assert!(sent[0]);
    sender.on_ack(&marked(20), NOW);
    assert_eq!(sender.window().cwnd, 4 * MSS, "the next window of data");
}

#[test]
fn the_loss_of_a_retransmission_is_a_congestion_event() {
    let mut sender = with_window(Algorithm::NewReno, 20);
    for end in 2..=4 {
        sender.on_ack(&ack(0, &[(1, end)]), NOW);
    }
    assert_eq!(send(&mut sender), [0]);
    assert_eq!(sender.window().ssthresh, 10 * MSS);
    let mut again = Vec::new();
    for end in 5..=26 {
        sender.on_ack(&ack(0, &[(1, end)]), NOW);
        again.extend(send(&mut sender).into_iter().filter(|&segment| segment == 0));
    }
    assert_eq!(again, [0], "once more");
    assert_eq!(sender.window().ssthresh, 5 * MSS);
    sender.check_invariants();
}

#[test]
fn the_receive_window_limits_the_data_in_flight() {
    let mut sender = Sender::new(&TcpConfig::default(), 1000 * MSS, MSS, 7 * MSS + 50);
    assert_eq!(send(&mut sender).len(), 7);
}

#[test]
fn the_last_segment_is_as_long_as_what_is_left() {
    let mut sender = Sender::new(&TcpConfig::default(), 2 * MSS + 1, MSS, 1 << 20);
    let lengths: Vec<u16> = std::iter::from_fn(|| sender.transmit(NOW)).map(|data| data.length).collect();
    assert_eq!(lengths, [100, 100, 1]);
    sender.on_ack(&Ack { acknowledgement: 2 * MSS + 1, ..ack(0, &[]) }, NOW);
    assert!(sender.is_done());
    assert_eq!(sender.acknowledged(), 2 * MSS + 1);
}

/// A sender that moved to a shorter path after segment 9 of 20: 10 to 12 arrived first, and segment 0 was
/// retransmitted.
fn overtaken(config: &TcpConfig) -> Sender {
    let mut sender = Sender::new(config, 10_000 * MSS, MSS, 1 << 30);
    (sender.window.cwnd, sender.window.ssthresh) = (20 * MSS, 20 * MSS);
    send(&mut sender);
    sender.on_ack(&ack(0, &[(10, 13)]), NOW);
    let again = sender.transmit(LATER).unwrap();
    assert_eq!((again.sequence, again.is_retransmission, sender.is_recovering()), (0, true, true));
    sender
}

/// The time of the retransmission, and the round trip of the segments sent first.
const LATER: Timestamp = Timestamp(NOW.0 + 1_000);
const ROUND_TRIP: Nanos = Nanos(5_000);

#[test]
fn recovery_from_late_segments_is_undone() {
    let mut sender = overtaken(&TcpConfig::default());
    let now = NOW + ROUND_TRIP;
    sender.on_ack(&ack(1, &[(10, 13)]), now);
    assert!(!sender.is_recovering());
    assert_eq!((sender.window().ssthresh, sender.events.undone), (20 * MSS, 1));
    assert!(sender.window().cwnd >= 20 * MSS);
    sender.on_ack(&ack(1, &[(10, 20)]), now);
    assert!(send(&mut sender).iter().all(|&segment| segment >= 20), "nothing is sent again");
    sender.check_invariants();
    // Segment 1 never arrives: it is lost a smoothed round trip after the last progress.
    assert_eq!(sender.deadline(), now + ROUND_TRIP);
    sender.on_timer(sender.deadline());
    assert!(sender.is_recovering());
    assert_eq!(sender.transmit(now + ROUND_TRIP).unwrap().sequence, MSS);
    sender.check_invariants();
}

#[test]
fn reordering_tolerance_ends_when_the_data_in_flight_is_acknowledged() {
    let mut sender = overtaken(&TcpConfig::default());
    sender.on_ack(&ack(1, &[(10, 13)]), NOW + ROUND_TRIP);
    sender.on_ack(&ack(20, &[]), NOW + ROUND_TRIP);
    assert!(send(&mut sender).len() > 4);
    sender.on_ack(&ack(20, &[(21, 24)]), NOW + ROUND_TRIP);
    assert!(sender.is_recovering(), "three above it have arrived");
}

#[test]
fn recovery_is_not_undone_if_the_retransmission_filled_the_hole_or_reordering_is_not_tolerated() {
    let mut sender = overtaken(&TcpConfig::default());
    sender.on_ack(&Ack { echo: LATER, ..ack(1, &[(10, 13)]) }, NOW + ROUND_TRIP);
    sender.on_ack(&ack(2, &[(10, 13)]), NOW + ROUND_TRIP);
    assert!(sender.is_recovering(), "the first acknowledgement decides");
    let strict = TcpConfig { tolerates_reordering: false, ..TcpConfig::default() };
    let mut sender = overtaken(&strict);
    sender.on_ack(&ack(1, &[(10, 13)]), NOW + ROUND_TRIP);
    assert!(sender.is_recovering());
    assert_eq!(sender.events.undone, 0);
}
