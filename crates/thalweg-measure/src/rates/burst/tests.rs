use proptest::prelude::*;

use thalweg_wire::{FlowKey, Fragment, PacketNotes, Timestamp};

use super::*;

/// The payload of a full-sized segment with timestamps.
const SEGMENT: u32 = 1_448;
const SECOND: u64 = 1_000_000_000;
/// A network of 100 Gbit/s links, where some packets are not sampled.
const CONTEXT: TrackContext =
    TrackContext { bytes_per_ns: 12.5, is_all: false, jitter_ns: 0, framing: Framing::PLAIN };

fn tcp(time: u64, sequence: u32, payload: u32, flags: TcpFlags) -> Packet {
    Packet {
        time: Timestamp(time),
        key: FlowKey::v4(1, 2, 40_000, 80, Protocol::TCP),
        ethernet: Default::default(),
        ip_length: payload + 52,
        payload_length: payload,
        identification: 0,
        tcp_sequence: sequence,
        tcp_flags: flags,
        fragment: Fragment::Whole,
        notes: PacketNotes::default(),
    }
}

fn data(time: u64, sequence: u32) -> Packet {
    tcp(time, sequence, SEGMENT, TcpFlags::ACK)
}

fn udp(time: u64) -> Packet {
    Packet { key: FlowKey::v4(1, 2, 9, 9, Protocol::UDP), ..tcp(time, 0, 1_000, TcpFlags::default()) }
}

fn sample(track: &mut Track, packet: &Packet, options: &BurstOptions, context: &TrackContext) -> Sampled {
    track.sample(packet, options, context, &mut UnseenBytes::default())
}

/// The spans of some packets.
fn spans(packets: impl IntoIterator<Item = Packet>) -> (Track, Vec<Span>) {
    let (mut track, mut spans) = (Track::zeroed(), Vec::new());
    for packet in packets {
        if let Sampled::Began(span) = sample(&mut track, &packet, &BurstOptions::default(), &CONTEXT) {
            spans.push(span);
            // The owner sets the rate.
            track.rate = 1;
        }
    }
    (track, spans)
}

fn rate(span: &Span) -> f64 {
    8e9 * f64::from(span.advance) / span.length as f64
}

/// SplitMix64, to drop random packets.
fn random(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mut z = *state;
    z = (z ^ z >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ z >> 31
}

proptest! {
    /// A steady flow, from 1 Mbit/s to 100 Gbit/s, of which some packets are sampled, some of these late by one
    /// place, from any initial sequence number. The advances of all spans add up to what passed, and each rate is
    /// accurate to within the two packets at its ends.
    #[test]
    fn steady_flows_are_measured_under_any_sampling(
        rate_exponent in 6.0f64..11.0, kept in 1u64..=16, swapped in 0u64..8, first: u32, seed: u64,
    ) {
        let bits = 10f64.powf(rate_exponent);
        let spacing = f64::from(SEGMENT) * 8e9 / bits;
        let mut state = seed;
        let mut order: Vec<u64> = (0..20_000).filter(|_| random(&mut state) % 16 < kept).collect();
        for place in 1..order.len() {
            if random(&mut state) % 64 < swapped {
                order.swap(place - 1, place);
            }
        }
        // A late packet gets the time of its place, as in a queue that was overtaken.
        let mut times = order.clone();
        times.sort_unstable();
        let packets = order.iter().zip(&times).map(|(number, place)| {
            let sequence = first.wrapping_add((*number as u32).wrapping_mul(SEGMENT));
            data(SECOND + (*place as f64 * spacing) as u64, sequence)
        });
        let (track, spans) = spans(packets);
        prop_assert!(spans.len() > 1);
        for span in &spans {
            // A swap moves a sample by the distance to its neighbour, on average at most 16 packets.
            let slack = if swapped == 0 { 2.0 } else { 2.0 * spacing * 400.0 / kept as f64 };
            let error = (rate(span) / bits - 1.0).abs();
            prop_assert!(error * span.length as f64 <= slack + 2.0, "{span:?} {bits}");
        }
        let advance: u64 = spans.iter().map(|span| u64::from(span.advance)).sum();
        let begun = first.wrapping_add((order[0] as u32).wrapping_mul(SEGMENT));
        let reached = u64::from(track.burst_sequence.wrapping_sub(begun));
        prop_assert_eq!(advance % (1 << 32), reached, "spans follow each other without a gap");
        prop_assert_eq!(track.repeated(), 0);
    }

    /// For any packets, nothing panics, and spans never overlap.
    #[test]
    fn spans_of_arbitrary_packets_never_overlap(
        steps in prop::collection::vec((0u64..3_000_000, any::<u32>(), 0u32..70_000, any::<u8>(), any::<bool>()), 1..200),
    ) {
        let mut now = SECOND;
        let (mut track, mut covered) = (Track::zeroed(), 0);
        for (gap, sequence, payload, flags, is_back) in steps {
            now = if is_back { now.saturating_sub(gap) } else { now + gap };
            let packet = tcp(now, sequence % 100_000, payload, TcpFlags(flags));
            if let Sampled::Began(span) = sample(&mut track, &packet, &BurstOptions::default(), &CONTEXT) {
                covered += span.length;
            }
        }
        prop_assert!(covered <= 200 * 3_000_000);
    }
}

/// Windows of 10, 20, 40... segments at 10 Gbit/s, one per round trip of 400 us: the rate is window over round trip.
#[test]
fn slow_start_is_not_measured_as_line_rate() {
    let (mut packets, mut sequence) = (Vec::new(), u32::MAX - 20_000);
    for (trip, window) in [10u32, 20, 40, 80].into_iter().enumerate() {
        for place in 0..window {
            packets.push(data(SECOND + trip as u64 * 400_000 + u64::from(place) * 1_230, sequence));
            sequence = sequence.wrapping_add(SEGMENT);
        }
    }
    let (_, spans) = spans(packets);
    let windows: Vec<u32> = spans.iter().map(|span| span.advance / SEGMENT).collect();
    assert_eq!(windows, [10, 20, 40]);
    assert!(spans.iter().all(|span| span.length == 400_000));
    assert!((rate(&spans[0]) - 289.6e6).abs() < 1e6, "289.6 Mbit/s, at a line rate of 10 Gbit/s");
}

#[test]
fn a_span_ends_at_the_maximum_burst_duration() {
    let (_, spans) = spans((0..10_000).map(|n| data(SECOND + u64::from(n) * 1_230, n * SEGMENT)));
    assert!((200_000..202_000).contains(&spans[0].length), "the first ends after a gap");
    assert!(spans[1..].iter().all(|span| (700_000..702_000).contains(&span.length)), "{spans:?}");
    assert!(spans.iter().all(|span| span.samples * SEGMENT == span.payload && span.payload == span.advance));
    assert!(spans.iter().all(|span| span.wire == span.samples * 1_538));
}

/// A flow of 50 Gbit/s moves to a path with a shorter queue: 20 MB are still in the longer one and pass later.
#[test]
fn a_flow_whose_sequence_numbers_jump_is_measured_again() {
    const QUEUED: u32 = 20_000_000;
    let time = |n: u32| SECOND + u64::from(n) * 232;
    let before = (0..20_000).map(|n| data(time(n), n * SEGMENT));
    let after = (20_000..60_000).flat_map(|n| {
        let queued = data(time(n), n * SEGMENT);
        let is_queued = (n - 20_000) * SEGMENT < QUEUED;
        [Some(data(time(n), n * SEGMENT + QUEUED)), is_queued.then_some(queued)].into_iter().flatten()
    });
    let (track, spans) = spans(before.chain(after));
    assert!(time(60_000) - track.burst_time < 1_000_000, "measured to the end");
    for span in &spans[spans.len() - 5..] {
        assert!((rate(span) / 50e9 - 1.0).abs() < 0.01, "{span:?}");
    }
}

#[test]
fn the_first_pause_does_not_raise_the_idle_timeout() {
    let burst =
        |start: u64, first: u32| (0..10).map(move |n| data(start + u64::from(n), (first + n) * SEGMENT));
    let pause = 69_000_000;
    let options = BurstOptions::default();
    let (once, _) = spans(burst(SECOND, 0).chain(burst(SECOND + pause, 10)));
    assert_eq!(once.idle_timeout(&options), 2 * options.gap.0);
    let (twice, _) =
        spans(burst(SECOND, 0).chain(burst(SECOND + pause, 10)).chain(burst(SECOND + 2 * pause, 20)));
    assert!(twice.idle_timeout(&options) >= 2 * pause - 2 * PAUSE, "{}", twice.idle_timeout(&options));
}

#[test]
fn repeated_and_late_samples_are_distinguished() {
    let mut track = Track::zeroed();
    let mut sample = |time, sequence| {
        sample(&mut track, &data(SECOND + time, sequence), &BurstOptions::default(), &CONTEXT)
    };
    assert_eq!(sample(0, 0), Sampled::First);
    assert_eq!(sample(1, SEGMENT), Sampled::Within);
    assert_eq!(sample(2, 4 * SEGMENT), Sampled::Within);
    assert_eq!(sample(3, SEGMENT), Sampled::Repeated);
    assert_eq!(sample(4, 2 * SEGMENT), Sampled::Late, "not seen before");
    assert_eq!(sample(5, 2 * SEGMENT), Sampled::Repeated);
    assert_eq!(sample(6, 400 * SEGMENT), Sampled::Within);
    assert_eq!(sample(7, SEGMENT), Sampled::Late, "too long ago to be remembered");
    assert_eq!((track.repeated(), track.reordered()), (2 * SEGMENT, 2));
}

#[test]
fn keep_alives_and_acknowledgments_are_neither_late_nor_data() {
    let mut track = Track::zeroed();
    let options = BurstOptions::default();
    sample(&mut track, &data(SECOND, 1_000), &options, &CONTEXT);
    let next = 1_000 + SEGMENT;
    let keep_alive = sample(&mut track, &tcp(SECOND + 50, next - 1, 1, TcpFlags::ACK), &options, &CONTEXT);
    let acknowledgment = sample(&mut track, &tcp(SECOND + 60, next, 0, TcpFlags::ACK), &options, &CONTEXT);
    assert_eq!([keep_alive, acknowledgment], [Sampled::Within; 2]);
    assert_eq!((track.repeated(), track.reordered(), track.next_sequence), (0, 0, next));
}

#[test]
fn syn_and_fin_take_a_sequence_number() {
    let mut track = Track::zeroed();
    let options = BurstOptions::default();
    sample(&mut track, &tcp(SECOND, 99, 0, TcpFlags::SYN), &options, &CONTEXT);
    assert_eq!(track.next_sequence, 100);
    sample(&mut track, &tcp(SECOND + 1, 100, 10, TcpFlags::FIN | TcpFlags::ACK), &options, &CONTEXT);
    assert_eq!(track.next_sequence, 111);
}

#[test]
fn a_new_connection_with_lower_sequence_numbers_is_accepted() {
    let mut track = Track::zeroed();
    let options = BurstOptions::default();
    sample(&mut track, &data(SECOND, 3_000_000_000), &options, &CONTEXT);
    let soon = sample(&mut track, &data(SECOND + 1_000, 2_000_000_000), &options, &CONTEXT);
    assert_eq!(soon, Sampled::Late);
    let later = sample(&mut track, &data(SECOND + 200_000_000, 2_000_000_000), &options, &CONTEXT);
    assert_eq!((later, track.next_sequence), (Sampled::First, 2_000_000_000 + SEGMENT));
}

#[test]
fn udp_spans_end_at_a_minimum_number_of_samples() {
    // 10 us apart: 700 us have 70 samples, so that 128 take 1.28 ms.
    let (_, dense) = spans((0..1_000).map(|n| udp(SECOND + n * 10_000)));
    assert!(dense.iter().all(|span| span.samples == 128 && span.length == 1_280_000), "{dense:?}");
    let (_, sparse) = spans((0..100).map(|n| udp(SECOND + n * 1_000_000)));
    assert!(sparse.iter().all(|span| span.samples == 20 && span.length == 20_000_000), "{sparse:?}");
    let mut track = Track::zeroed();
    let all = (0..200).map(|n| {
        sample(
            &mut track,
            &udp(SECOND + n * 10_000),
            &BurstOptions::default(),
            &TrackContext { is_all: true, ..CONTEXT },
        )
    });
    assert_eq!(
        all.filter(|sampled| matches!(sampled, Sampled::Began(_))).count(),
        2,
        "700 us are enough if nothing is lost"
    );
}
