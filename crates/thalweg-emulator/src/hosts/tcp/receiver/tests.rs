use super::*;

const MSS: u64 = 100;

fn data(segment: u64, sent_at: u64) -> Data {
    let sent_at = Timestamp(sent_at);
    Data { sequence: segment * MSS, sent_at, length: MSS as u16, is_retransmission: false, cwr: false }
}

fn receiver(echo: Echo) -> Receiver {
    Receiver::new(1000 * MSS, AckPolicy::default(), echo)
}

/// Delivers a segment, sent at its arrival, and collects (acknowledged segments, ECE).
fn take(receiver: &mut Receiver, segment: u64, marked: bool, now: u64) -> Vec<(u64, bool)> {
    let mut acks = Vec::new();
    receiver.on_data(&data(segment, now), marked, Timestamp(now), |ack| {
        acks.push((ack.acknowledgement / MSS, ack.ece));
    });
    acks
}

#[test]
fn gaps_are_acknowledged_at_once_and_the_rest_every_second_segment() {
    let mut receiver = receiver(Echo::Never);
    let numbers = [0, 1, 2, 3, 5, 6, 4, 7, 8, 8];
    let acks = numbers.map(|segment| take(&mut receiver, segment, false, 0).first().map(|ack| ack.0));
    let expected = [Some(1), None, Some(3), None, Some(4), Some(4), Some(7), None, Some(9), Some(9)];
    assert_eq!(acks, expected);
}

#[test]
fn an_acknowledgement_is_delayed_up_to_its_timeout() {
    let mut receiver = receiver(Echo::Never);
    take(&mut receiver, 0, false, 1000);
    assert_eq!(take(&mut receiver, 1, false, 2000), []);
    let deadline = Timestamp(2000) + AckPolicy::default().timeout;
    assert_eq!(receiver.deadline(), deadline);
    assert_eq!(receiver.on_timer(Timestamp(3000)), None);
    let ack = receiver.on_timer(deadline).unwrap();
    assert_eq!((ack.acknowledgement, ack.echo), (2 * MSS, Timestamp(2000)));
    assert_eq!(receiver.on_timer(deadline), None);
}

#[test]
fn after_a_silence_one_segment_alone_is_acknowledged_at_once() {
    let mut receiver = receiver(Echo::Never);
    take(&mut receiver, 0, false, 0);
    assert_eq!(take(&mut receiver, 1, false, 40_000_000), [(2, false)]);
    assert_eq!(take(&mut receiver, 2, false, 79_999_999), []);
}

#[test]
fn the_last_segment_is_acknowledged_at_once() {
    let mut receiver = Receiver::new(3 * MSS, AckPolicy::default(), Echo::Never);
    take(&mut receiver, 0, false, 0);
    take(&mut receiver, 1, false, 0);
    let mut acks = 0;
    let received = receiver.on_data(&data(2, 0), false, Timestamp(0), |_| acks += 1);
    assert_eq!((received.completes, acks), (true, 1));
    let received = receiver.on_data(&data(2, 0), false, Timestamp(0), |_| acks += 1);
    assert_eq!((received.is_duplicate, received.completes, acks), (true, false, 2));
}

#[test]
fn blocks_beyond_a_gap_are_reported_most_recent_first() {
    let mut receiver = receiver(Echo::Never);
    let mut reported = Vec::new();
    for segment in [0, 2, 4, 6, 8, 5, 1, 3] {
        receiver.on_data(&data(segment, 0), false, Timestamp(0), |ack| {
            let block = |block: &SackBlock| (block.start / MSS, block.end / MSS);
            reported.push(ack.sack.as_slice().iter().map(block).collect::<Vec<_>>());
        });
    }
    let expected: [&[(u64, u64)]; 8] = [
        &[],
        &[(2, 3)],
        &[(4, 5), (2, 3)],
        &[(6, 7), (4, 5), (2, 3)],
        &[(8, 9), (6, 7), (4, 5)],
        &[(4, 7), (8, 9)],
        &[(4, 7), (8, 9)],
        &[(8, 9)],
    ];
    assert_eq!(reported, expected);
}

/// RFC 7323, section 4.3: the timestamp of the segment that advanced the window, or of the first pending one.
#[test]
fn the_echoed_time_is_that_of_the_earliest_segment_acknowledged() {
    let mut receiver = receiver(Echo::Never);
    let mut echoes = Vec::new();
    for (segment, sent_at) in [(0, 10), (1, 20), (2, 30), (4, 50), (5, 60), (3, 70)] {
        receiver.on_data(&data(segment, sent_at), false, Timestamp(sent_at), |ack| echoes.push(ack.echo.0));
    }
    assert_eq!(echoes, [10, 20, 20, 20, 70]);
}

/// RFC 8257, figure 1.
#[test]
fn dctcp_receiver_echoes_mark_changes_immediately() {
    let mut receiver = receiver(Echo::Exact);
    let marks = [false, false, true, true, true, true, false, false];
    let acks: Vec<Vec<(u64, bool)>> =
        (0..).zip(marks).map(|(segment, marked)| take(&mut receiver, segment, marked, 0)).collect();
    let expected: [&[(u64, bool)]; 8] = [
        &[(1, false)],
        &[],
        // Segment 1 was pending, unmarked.
        &[(2, false)],
        &[(4, true)],
        &[],
        &[(6, true)],
        &[],
        &[(8, false)],
    ];
    assert_eq!(acks, expected);
}

#[test]
fn the_echo_of_rfc_3168_lasts_until_cwr() {
    let mut receiver = receiver(Echo::UntilReduced);
    let mut echoes = Vec::new();
    for (segment, marked, cwr) in [
        (0, false, false),
        (1, true, false),
        (2, false, false),
        (3, false, false),
        (4, false, true),
        (5, false, false),
    ] {
        receiver.on_data(&Data { cwr, ..data(segment, 0) }, marked, Timestamp(0), |ack| echoes.push(ack.ece));
    }
    assert_eq!(echoes, [false, true, false]);
}

#[test]
fn a_probe_is_answered_and_changes_nothing() {
    let mut receiver = receiver(Echo::Never);
    let mut acks = Vec::new();
    receiver.on_data(&Data { length: 0, ..data(0, 7) }, false, Timestamp(9), |ack| acks.push(ack));
    assert_eq!((acks.len(), acks[0].acknowledgement, receiver.delivered()), (1, 0, 0));
}
