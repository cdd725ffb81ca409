//! Window traces compared with the formulas of the RFCs.

use super::*;

const MSS: u64 = 1000;

/// A window of `segments` in congestion avoidance.
fn avoiding(segments: u64) -> Window {
    Window { cwnd: segments * MSS, ssthresh: segments * MSS, mss: MSS }
}

fn ack(now: Timestamp, segments: u64) -> AckSample {
    AckSample {
        now,
        acked: segments * MSS,
        marked: false,
        rtt: None,
        srtt: Nanos::ZERO,
        una: 0,
        next: 0,
        may_grow: true,
    }
}

/// Acknowledges a window, two segments at a time, at one instant.
fn one_round(control: &mut Congestion, window: &mut Window, now: Timestamp) {
    let segments = window.cwnd / MSS;
    (0..segments / 2).for_each(|_| control.on_ack(window, &ack(now, 2)));
    (0..segments % 2).for_each(|_| control.on_ack(window, &ack(now, 1)));
}

#[test]
fn slow_start_doubles_the_window_for_all_algorithms() {
    for algorithm in Algorithm::ALL {
        let mut control = Congestion::new(algorithm);
        let mut window = Window::new(MSS, 10);
        for segments in [20, 40, 80, 160] {
            one_round(&mut control, &mut window, Timestamp(0));
            assert_eq!(window.cwnd, segments * MSS, "{algorithm:?}");
        }
    }
}

#[test]
fn slow_start_stops_at_the_threshold() {
    let mut control = Congestion::new(Algorithm::NewReno);
    let mut window = Window { ssthresh: 25 * MSS, ..Window::new(MSS, 10) };
    one_round(&mut control, &mut window, Timestamp(0));
    one_round(&mut control, &mut window, Timestamp(0));
    assert_eq!(window.cwnd, 25 * MSS);
}

#[test]
fn new_reno_adds_a_segment_a_round_and_halves() {
    let mut control = Congestion::new(Algorithm::NewReno);
    let mut window = avoiding(20);
    for segments in 21..25 {
        one_round(&mut control, &mut window, Timestamp(0));
        assert_eq!(window.cwnd, segments * MSS);
    }
    assert_eq!(control.on_congestion(&window, Signal::Loss, 24 * MSS, Timestamp(0)), 12 * MSS);
    assert_eq!(control.on_congestion(&window, Signal::Loss, 3 * MSS, Timestamp(0)), 2 * MSS, "RFC 5681 (4)");
}

#[test]
fn an_unused_window_does_not_grow() {
    for algorithm in Algorithm::ALL {
        let mut control = Congestion::new(algorithm);
        for mut window in [avoiding(20), Window::new(MSS, 10)] {
            let before = window;
            for n in 0..1000 {
                control
                    .on_ack(&mut window, &AckSample { may_grow: false, ..ack(Timestamp(n * 1_000_000), 2) });
            }
            assert_eq!(window.cwnd, before.cwnd, "{algorithm:?}");
        }
    }
}

/// Rounds of 100 ms over 20 s after a loss at 1000 segments: W_max 1000, cwnd 700, K = cbrt(300 / 0.4) = 9.086 s. At
/// the end of each round the window is W_cubic of that time, since the target looks one round trip ahead. In between it
/// approaches the target by (target - cwnd) / cwnd per segment, so it covers 1 - (1 - 1/cwnd)^cwnd, about 63 %, of the
/// way and lags by a fraction of a round: within 1 %.
#[test]
fn cubic_follows_its_curve() {
    let mut control = Congestion::new(Algorithm::Cubic);
    let mut window = avoiding(1000);
    let threshold = control.on_congestion(&window, Signal::Loss, window.cwnd, Timestamp(0));
    assert_eq!(threshold, 700 * MSS);
    (window.cwnd, window.ssthresh) = (threshold, threshold);
    let k = (300.0f64 / 0.4).cbrt();
    let mut checked = 0;
    for round in 0..200u64 {
        let start = round * 100_000_000;
        let acks = window.cwnd / MSS / 2;
        for number in 0..acks {
            let now = Timestamp(start + number * 100_000_000 / acks);
            let sample = AckSample { srtt: Nanos::from_millis(100), ..ack(now, 2) };
            control.on_ack(&mut window, &sample);
        }
        let seconds = (round + 1) as f64 / 10.0;
        let curve = 0.4 * (seconds - k).powi(3) + 1000.0;
        assert!((window.segments() / curve - 1.0).abs() < 0.01, "{seconds} s: {} {curve}", window.segments());
        checked += 1;
    }
    assert_eq!(checked, 200);
}

/// With 10 segments and rounds of 100 us the curve is flat, and the window is Reno's of equal mean: 0.529 segments per
/// round (RFC 9438, section 4.3) up to the window before the reduction, then one per round.
#[test]
fn cubic_is_no_slower_than_reno_on_a_short_path() {
    let mut control = Congestion::new(Algorithm::Cubic);
    let mut window = avoiding(20);
    window.cwnd = control.on_congestion(&window, Signal::Loss, 20 * MSS, Timestamp(0));
    window.ssthresh = window.cwnd;
    let mut rounds_to_20 = 0;
    while window.cwnd < 20 * MSS {
        rounds_to_20 += 1;
        one_round(&mut control, &mut window, Timestamp(rounds_to_20 * 100_000));
    }
    // 6 segments at 0.529 per round: 11.3 rounds, and a window that grows by less than a segment within a round.
    assert!((11..=13).contains(&rounds_to_20), "{rounds_to_20}");
    let before = window.segments();
    (0..10).for_each(|round| one_round(&mut control, &mut window, Timestamp((20 + round) * 100_000)));
    let growth = window.segments() - before;
    assert!((9.0..=10.1).contains(&growth), "{growth}");
}

#[test]
fn cubic_converges_fast_when_the_maximum_shrinks() {
    let mut control = Cubic::default();
    control.on_congestion(&avoiding(1000), Signal::Loss, 1000 * MSS, Timestamp(0));
    let mut window = avoiding(800);
    window.cwnd = control.on_congestion(&window, Signal::Loss, 800 * MSS, Timestamp(0));
    window.ssthresh = window.cwnd;
    // W_max is 800 * (1 + 0.7) / 2 = 680, and the window reaches it after K seconds.
    let k = ((680.0f64 - 560.0) / 0.4).cbrt();
    for step in 0..=200 {
        let now = Timestamp((k * 1e9 * f64::from(step) / 200.0) as u64);
        (0..window.cwnd / MSS / 2).for_each(|_| control.on_ack(&mut window, &ack(now, 2)));
    }
    assert!((window.segments() / 680.0 - 1.0).abs() < 0.01, "{}", window.segments());
}

/// One window per round with a fixed part of it marked: alpha approaches that part, by 1/16 of the difference per
/// round.
#[test]
fn dctcps_alpha_follows_the_marked_fraction() {
    let mut control = Dctcp::default();
    let mut window = avoiding(100);
    let mut expected = 1.0;
    for round in 0..100u64 {
        for segment in 0..100 {
            let sample = AckSample {
                marked: segment < 25,
                may_grow: false,
                una: (round * 100 + segment + 1) * MSS,
                next: (round * 100 + segment + 100) * MSS,
                ..ack(Timestamp(0), 1)
            };
            control.on_ack(&mut window, &sample);
        }
        // The first segment of each round ends the previous one: the first round is that one marked segment.
        let marked = if round == 0 { 1.0 } else { 0.25 };
        expected = expected * 15.0 / 16.0 + marked / 16.0;
        assert!((control.alpha() - expected).abs() < 1e-9, "round {round}: {} {expected}", control.alpha());
    }
    assert!((control.alpha() - 0.25).abs() < 0.002);
    let cut = control.on_congestion(&window, Signal::Mark, 100 * MSS, Timestamp(0)) as f64;
    assert!((cut / (100_000.0 * (1.0 - control.alpha() / 2.0)) - 1.0).abs() < 1e-4, "{cut}");
    assert_eq!(control.on_congestion(&window, Signal::Loss, 100 * MSS, Timestamp(0)), 50 * MSS);
}

/// 2 (1 - beta) (1 + 10 d + (d/2)^2) segments per round, where d is the seconds since congestion minus one; beta 0.5.
#[test]
fn h_tcp_speeds_up_with_the_time_since_congestion() {
    for (seconds, alpha) in [(0.5, 1.0), (1.0, 1.0), (2.0, 11.25), (5.0, 45.0)] {
        let mut control = Congestion::new(Algorithm::HTcp);
        let mut window = avoiding(1000);
        control.on_congestion(&window, Signal::Loss, window.cwnd, Timestamp(0));
        one_round(&mut control, &mut window, Timestamp((seconds * 1e9) as u64));
        let growth = window.segments() - 1000.0;
        assert!((growth / alpha - 1.0).abs() < 0.03, "{seconds} s: {growth} {alpha}");
    }
}

/// The part of the window that H-TCP keeps is at least a half and at most 0.8, and alpha is then 2 (1 - 0.8) = 0.4 of the
/// growth with beta 0.5, but at least one segment per round trip.
#[test]
fn h_tcp_keeps_a_half_to_four_fifths_of_the_window() {
    for (shortest, kept, alpha) in [(20, 50, 11.25), (75, 75, 11.25 * 0.5), (95, 80, 11.25 * 0.4)] {
        let mut control = Congestion::new(Algorithm::HTcp);
        let mut window = avoiding(100);
        let mut cut = 0;
        for round in 1..=20u64 {
            let rtt = Nanos::from_millis(if round % 2 == 0 { shortest } else { 100 });
            let (una, next) = (round * 100 * MSS, (round + 1) * 100 * MSS - 1);
            let at = Timestamp(round * 100_000_000);
            let sample = AckSample { rtt: Some(rtt), una, next, may_grow: false, ..ack(at, 100) };
            control.on_ack(&mut window, &sample);
            if round % 10 == 0 {
                cut = control.on_congestion(&window, Signal::Loss, 100 * MSS, at);
            }
        }
        assert_eq!(cut, kept * MSS, "shortest round trip {shortest} ms");
        // Two seconds after congestion: one beyond low speed.
        let mut window = avoiding(1000);
        one_round(&mut control, &mut window, Timestamp(4_000_000_000));
        let growth = window.segments() - 1000.0;
        assert!((growth / alpha - 1.0).abs() < 0.03, "{shortest} ms: {growth} {alpha}");
    }
}

/// At a steady throughput H-TCP keeps the part of the window that fills the path without its queue.
#[test]
fn h_tcp_backs_off_to_the_ratio_of_round_trip_times() {
    let mut control = HTcp::default();
    let mut window = avoiding(100);
    let mut cuts = Vec::new();
    for epoch in 0..3u64 {
        for round in 0..10u64 {
            let number = epoch * 10 + round + 1;
            let rtt = Nanos::from_millis(if round < 5 { 70 } else { 100 });
            let (una, next) = (number * 100 * MSS, (number + 1) * 100 * MSS - 1);
            let sample = AckSample {
                rtt: Some(rtt),
                una,
                next,
                may_grow: false,
                ..ack(Timestamp(number * 100_000_000), 100)
            };
            control.on_ack(&mut window, &sample);
        }
        cuts.push(control.on_congestion(&window, Signal::Loss, 100 * MSS, Timestamp(epoch)));
    }
    // No throughput to compare with the first time; then 70/100.
    assert_eq!(cuts, [50 * MSS, 70 * MSS, 70 * MSS]);
}

/// Rounds whose round-trip time jumps from 10 to 20 ms: five rounds of conservative slow start, a quarter as fast.
#[test]
fn hystart_leaves_slow_start_when_the_round_trip_grows() {
    let mut hystart = HyStart::default();
    let mut window = Window::new(MSS, 10);
    let mut sent = 0;
    let mut sizes = Vec::new();
    for round in 0..10 {
        let rtt = Nanos::from_millis(if round < 2 { 10 } else { 20 });
        let segments = window.cwnd / MSS;
        let end = sent + window.cwnd;
        for number in 1..=segments / 2 {
            let una = sent + 2 * number * MSS;
            let sample = AckSample { rtt: Some(rtt), una, next: end + 1, ..ack(Timestamp(0), 2) };
            hystart.on_ack(&mut window, &sample);
        }
        sent = end;
        sizes.push(window.cwnd / MSS);
        if !window.in_slow_start() {
            break;
        }
    }
    assert_eq!(sizes[..2], [20, 40]);
    let growth = |round: usize| sizes[round] as f64 / sizes[round - 1] as f64;
    assert!((3..sizes.len()).all(|round| growth(round) < 1.26), "{sizes:?}");
    assert!(!window.in_slow_start() && window.ssthresh == window.cwnd, "{sizes:?}");
    assert!((6..=9).contains(&sizes.len()), "{sizes:?}");
}
