use std::collections::HashMap;

use proptest::prelude::*;

use super::*;
use crate::detect::CheetahThreshold;
use thalweg_wire::{BitRate, Fragment, Nanos, PacketNotes, Protocol};

const SECOND: u64 = 1_000_000_000;

fn packet(time: u64, key: FlowKey, ip_length: u32, tcp_flags: TcpFlags) -> Packet {
    let (fragment, notes) = (Fragment::Whole, PacketNotes::default());
    let time = Timestamp(time);
    Packet {
        time,
        key,
        ethernet: Default::default(),
        ip_length,
        payload_length: 0,
        identification: 0,
        tcp_sequence: 0,
        tcp_flags,
        fragment,
        notes,
    }
}

/// Flow `n`: every third is IPv6.
fn key(n: u32) -> FlowKey {
    match n % 3 {
        0 => FlowKey::v6(u128::from(n) << 64 | 1, 2, 443, 50_000, Protocol::TCP),
        _ => FlowKey::v4(0x0A00_0000 + n, 0x0A00_FFFF, 443, 50_000, Protocol::TCP),
    }
}

fn options() -> FlowTableOptions {
    FlowTableOptions {
        capacity: 64,
        idle_timeout: Nanos(10 * SECOND),
        active_timeout: Nanos(60 * SECOND),
        linger: Nanos(SECOND),
    }
}

fn table(options: FlowTableOptions, seed: u64) -> FlowTable {
    FlowTable::new(options, None, HashSeed::new(seed)).unwrap()
}

/// All records of `packets`, passed to the table in batches of `batch`.
fn records_of(options: FlowTableOptions, seed: u64, packets: &[Packet], batch: usize) -> Vec<FlowRecord> {
    let (mut table, mut output) = (table(options, seed), Output::default());
    for batch in packets.chunks(batch) {
        table.update(batch, &mut output);
    }
    table.finish(&mut output);
    assert_eq!(table.live(), 0);
    output.records
}

/// A plain flow meter without a limit: one flow per key, ends decided at its next packet or at the end.
fn oracle(options: FlowTableOptions, packets: &[Packet]) -> Vec<FlowRecord> {
    let mut live: HashMap<FlowKey, (FlowRecord, bool)> = HashMap::new();
    let mut records = Vec::new();
    let closed = |record: &FlowRecord| {
        let (a, b) = (record.forward.tcp_flags, record.reverse.tcp_flags);
        let rst = (a | b).contains(TcpFlags::RST);
        (rst || a.contains(TcpFlags::FIN) && b.contains(TcpFlags::FIN)).then_some(match rst {
            true => EndReason::Rst,
            false => EndReason::Fin,
        })
    };
    let begin = |packet: &Packet| {
        let answers = packet.tcp_flags.contains(TcpFlags::SYN | TcpFlags::ACK);
        let key = if answers { packet.key.reversed() } else { packet.key };
        let (forward, reverse) = Default::default();
        FlowRecord {
            key,
            first: packet.time,
            last: packet.time,
            forward,
            reverse,
            end_reason: EndReason::Active,
        }
    };
    for packet in packets {
        let canonical = packet.key.canonical().0;
        if let Some((mut record, _)) = live.get(&canonical).copied() {
            let quiet = packet.time - record.last;
            let close = closed(&record);
            let over =
                close.is_some() && (packet.tcp_flags.contains(TcpFlags::SYN) || quiet > options.linger);
            if over || quiet > options.idle_timeout {
                record.end_reason = close.unwrap_or(EndReason::Idle);
                records.push(record);
                live.remove(&canonical);
            } else if packet.time - record.first >= options.active_timeout {
                records.push(record);
                let part = FlowRecord {
                    first: packet.time,
                    forward: Traffic { packets: 0, bytes: Bytes(0), ..record.forward },
                    reverse: Traffic { packets: 0, bytes: Bytes(0), ..record.reverse },
                    ..record
                };
                live.insert(canonical, (part, true));
            }
        }
        let (record, _) = live.entry(canonical).or_insert_with(|| (begin(packet), false));
        record.last = packet.time;
        let traffic = if packet.key == record.key { &mut record.forward } else { &mut record.reverse };
        traffic.packets += 1;
        traffic.bytes += Bytes(u64::from(packet.ip_length));
        traffic.tcp_flags |= packet.tcp_flags;
    }
    let clock = packets.iter().map(|packet| packet.time).max().unwrap_or_default();
    for (mut record, _) in live.into_values() {
        record.end_reason = closed(&record).unwrap_or(match clock - record.last > options.idle_timeout {
            true => EndReason::Idle,
            false => EndReason::EndOfInput,
        });
        records.push(record);
    }
    records
}

fn sorted(mut records: Vec<FlowRecord>) -> Vec<FlowRecord> {
    records.sort_by_key(|record| (record.first, record.key, record.last));
    records
}

/// Idle at the end of input is known only to within a tick; both mean that the flow had stopped.
fn without_the_last_tick(mut records: Vec<FlowRecord>) -> Vec<FlowRecord> {
    for record in &mut records {
        if record.end_reason == EndReason::EndOfInput {
            record.end_reason = EndReason::Idle;
        }
    }
    sorted(records)
}

prop_compose! {
    /// Packets of some flows in both directions, with gaps around all the timeouts.
    fn any_packets(flows: u32, max: usize)(
        steps in prop::collection::vec(
            (
                prop_oneof![
                    4 => 0..SECOND / 10,
                    2 => SECOND / 2..SECOND * 3 / 2,
                    1 => 9 * SECOND..11 * SECOND,
                ],
                0..flows,
                any::<bool>(),
                20u32..70_000,
                prop_oneof![4 => Just(0x10), 1 => Just(0x11), 1 => Just(0x02), 1 => Just(0x12), 1 => Just(0x04)],
            ),
            0..max,
        )
    ) -> Vec<Packet> {
        let mut now = 1_000 * SECOND;
        steps.into_iter().map(|(gap, flow, reverse, length, flags)| {
            now += gap;
            let key = if reverse { key(flow).reversed() } else { key(flow) };
            packet(now, key, length, TcpFlags(flags))
        }).collect()
    }
}

proptest! {
    #[test]
    fn records_match_a_simple_reference_meter(packets in any_packets(6, 300), batch in 1usize..100, seed in 0u64..4) {
        let records = records_of(options(), seed, &packets, batch);
        prop_assert_eq!(without_the_last_tick(records), without_the_last_tick(oracle(options(), &packets)));
    }

    #[test]
    fn records_depend_neither_on_batches_nor_on_the_seed(packets in any_packets(6, 200), batch in 1usize..100) {
        let one = sorted(records_of(options(), 1, &packets, 1));
        prop_assert_eq!(sorted(records_of(options(), 2, &packets, batch)), one);
    }

    /// Even with a full table and unordered timestamps, nothing is lost or counted twice.
    #[test]
    fn records_account_for_all_packets_and_bytes(
        packets in any_packets(40, 300).prop_shuffle(), batch in 1usize..100, capacity in 1u32..20,
    ) {
        let records = records_of(FlowTableOptions { capacity, ..options() }, 1, &packets, batch);
        let shown: u64 = packets.iter().map(|packet| u64::from(packet.ip_length)).sum();
        prop_assert_eq!(records.iter().map(FlowRecord::packets).sum::<u64>(), packets.len() as u64);
        prop_assert_eq!(records.iter().map(|record| record.bytes().0).sum::<u64>(), shown);
        prop_assert!(records.iter().all(|record| record.packets() > 0 && record.first <= record.last));
    }

    #[test]
    fn a_full_table_evicts_the_least_recently_used_flow(flows in prop::collection::vec(0u32..30, 1..300)) {
        let options = FlowTableOptions { capacity: 8, ..options() };
        let (mut table, mut output) = (table(options, 1), Output::default());
        let mut last_use: Vec<FlowKey> = Vec::new();
        for (step, flow) in flows.into_iter().enumerate() {
            let time = 1_000 * SECOND + step as u64 * SECOND / 100;
            table.update(&[packet(time, key(flow), 100, TcpFlags::ACK)], &mut output);
            let canonical = key(flow).canonical().0;
            last_use.retain(|used| *used != canonical);
            let evicted = (last_use.len() == 8).then(|| last_use.remove(0));
            last_use.push(canonical);
            let exported: Vec<_> = output.records.drain(..).collect();
            prop_assert_eq!(exported.iter().map(|record| record.key.canonical().0).collect::<Vec<_>>(),
                evicted.into_iter().collect::<Vec<_>>());
            prop_assert!(exported.iter().all(|record| record.end_reason == EndReason::Evicted));
            prop_assert_eq!(table.live() as usize, last_use.len());
        }
    }
}

/// An attacker who knows the seed could make IPv6 flows whose hashes collide; they are still distinguished.
#[test]
fn ipv6_flows_with_the_same_hash_are_two_flows() {
    let seed = HashSeed::from_words([5, 6, 7]);
    let key = |host: u64| FlowKey::v6(5 << 64 | u128::from(host), 9 << 64, 1, 2, Protocol::UDP);
    assert_eq!(key(1).symmetric_hash(&seed), key(2).symmetric_hash(&seed));
    let mut table = FlowTable::new(options(), None, seed).unwrap();
    let mut output = Output::default();
    for host in [1, 2, 1, 2, 1] {
        table.update(&[packet(SECOND, key(host), 100, TcpFlags::default())], &mut output);
    }
    assert_eq!([1, 2].map(|host| table.get(&key(host)).unwrap().packets()), [3, 2]);
}

/// Many concurrent flows near the threshold, some ended and restarted by TCP, from time zero on: each that moves more
/// than `R * T` within a window is found, and none that stays 1/64 below.
#[test]
fn interleaved_flows_are_detected_independently() {
    let threshold =
        CheetahThreshold { flight_duration: Nanos::from_millis(10), rate_threshold: BitRate(8_000_000) };
    let volume = threshold.volume().0;
    for start in [0, 1_000 * SECOND] {
        let detector = SlidingWindow::new(threshold, 64).unwrap();
        let options = FlowTableOptions { capacity: 100, ..options() };
        let mut table = FlowTable::new(options, Some(detector), HashSeed::new(3)).unwrap();
        let (mut output, mut expected) = (Output::default(), Vec::new());
        let mut packets = Vec::new();
        for flow in 0..40 {
            // Flow n moves n * 5 % of the volume within 9 ms, twice with a RST between: 20 % more only with both.
            let fast = u64::from(flow) * volume / 20 > volume;
            for (round, flags) in [(0, TcpFlags::SYN), (1, TcpFlags::SYN)] {
                for n in 0..10 {
                    let time = start + round * 9_500_000 + n * 900_000;
                    let flags = match n {
                        0 => flags,
                        9 if round == 0 => TcpFlags::RST,
                        _ => TcpFlags::ACK,
                    };
                    packets.push(packet(time, key(flow), flow * volume as u32 / 200 + 1, flags));
                }
                if fast {
                    expected.push(key(flow));
                }
            }
        }
        packets.sort_by_key(|packet| packet.time);
        table.update(&packets, &mut output);
        let mut found: Vec<FlowKey> = output
            .findings
            .iter()
            .filter_map(|finding| match finding {
                Finding::Began(cheetah) => Some(cheetah.key),
                Finding::Ended(_) => None,
            })
            .collect();
        found.sort();
        expected.sort();
        // Exactly at the threshold plus ten bytes: within the slack, found or not.
        found.retain(|found| *found != key(20));
        assert_eq!(found, expected.into_iter().filter(|flow| *flow != key(20)).collect::<Vec<_>>());
        assert_eq!(table.detector().unwrap().untracked(), 0);
    }
}

/// A new detector knows nothing of the windows before it, not even of the flow in slot 0 whose track number it never gave.
#[test]
fn a_replaced_detector_checks_flows_from_then_on() {
    let flight_duration = Nanos::from_millis(10);
    let detector = |mbps: u64| {
        let rate_threshold = BitRate(1_000_000 * mbps);
        SlidingWindow::new(CheetahThreshold { flight_duration, rate_threshold }, 64).unwrap()
    };
    let mut table = FlowTable::new(options(), Some(detector(100)), HashSeed::new(3)).unwrap();
    let mut output = Output::default();
    // Three flows of 20, 40 and 60 Mbit/s: 25, 50 and 75 kB in 10 ms, as packets of 1,250 bytes.
    let send = |table: &mut FlowTable, output: &mut Output, from_ms: u64, to_ms: u64| {
        let mut packets = Vec::new();
        for flow in 1..=3u32 {
            let gap = 500_000 / u64::from(flow);
            let times = (1_000_000 * from_ms..1_000_000 * to_ms).step_by(gap as usize);
            packets.extend(times.map(|time| packet(SECOND + time, key(flow), 1_250, TcpFlags::ACK)));
        }
        packets.sort_by_key(|packet| packet.time);
        table.update(&packets, output);
    };
    let found = |output: &mut Output| -> Vec<FlowKey> {
        let began = std::mem::take(&mut output.findings).into_iter().filter_map(|finding| match finding {
            Finding::Began(cheetah) => Some(cheetah.key),
            Finding::Ended(_) => None,
        });
        let mut keys: Vec<FlowKey> = began.collect();
        keys.sort();
        keys
    };
    send(&mut table, &mut output, 0, 100);
    assert_eq!(found(&mut output), []);
    let before = table.replace_detector(detector(50)).unwrap().unwrap();
    assert_eq!(before.threshold().rate_threshold, BitRate(100_000_000));
    send(&mut table, &mut output, 100, 108);
    assert_eq!(found(&mut output), [], "the window that ends here began before");
    send(&mut table, &mut output, 108, 200);
    assert_eq!(found(&mut output), [key(3)]);
    // Flow 3 stays a cheetah, and is not reported again.
    table.replace_detector(detector(30)).unwrap();
    send(&mut table, &mut output, 200, 300);
    assert_eq!(found(&mut output), [key(2)]);
    table.replace_detector(detector(200)).unwrap();
    send(&mut table, &mut output, 300, 400);
    assert_eq!(found(&mut output), []);
    table.finish(&mut output);
    assert_eq!(output.findings.len(), 2, "both cheetahs end");
}

#[test]
fn a_new_connection_inherits_no_state_from_the_previous_one() {
    let detector = SlidingWindow::new(CheetahThreshold::default(), 4).unwrap();
    let mut table = FlowTable::new(options(), Some(detector), HashSeed::new(1)).unwrap();
    let mut output = Output::default();
    let mut connection = |start: u64, bytes: u32| {
        let flags = [TcpFlags::SYN, TcpFlags::ACK, TcpFlags::RST];
        let packets = flags.map(|flags| packet(SECOND + start, key(1), bytes / 3, flags));
        table.update(&packets, &mut output);
    };
    connection(0, 1_200_000);
    connection(1_000, 60_000);
    connection(2_000, 1_200_000);
    table.finish(&mut output);
    let ends = output.findings.iter().filter_map(|finding| match finding {
        Finding::Ended(end) => Some((end.packets, end.bytes.0, end.first.0 - SECOND)),
        Finding::Began(_) => None,
    });
    assert_eq!(ends.collect::<Vec<_>>(), [(3, 1_200_000, 0), (3, 1_200_000, 2_000)]);
    assert_eq!(
        output.records.iter().map(|record| record.bytes().0).collect::<Vec<_>>(),
        [1_200_000, 60_000, 1_200_000]
    );
}

#[test]
fn advancing_time_ends_idle_flows() {
    let (mut table, mut output) = (table(options(), 1), Output::default());
    table.update(&[packet(1_000 * SECOND, key(1), 100, TcpFlags::ACK)], &mut output);
    table.advance(Timestamp(1_009 * SECOND), &mut output);
    assert_eq!(output.records, []);
    table.advance(Timestamp(1_011 * SECOND), &mut output);
    assert_eq!(output.records[0].end_reason, EndReason::Idle);
    assert_eq!(table.live(), 0);
}

#[test]
fn the_acknowledgment_of_the_last_fin_begins_no_flow() {
    let fin = TcpFlags::FIN | TcpFlags::ACK;
    let packets = [
        packet(SECOND, key(1), 60, TcpFlags::SYN),
        packet(SECOND + 1, key(1), 60, fin),
        packet(SECOND + 2, key(1).reversed(), 60, fin),
        packet(SECOND + 3, key(1), 52, TcpFlags::ACK),
        packet(SECOND + 4, key(1), 60, TcpFlags::SYN),
    ];
    let records = records_of(options(), 1, &packets, 1);
    let ends: Vec<_> = records.iter().map(|record| (record.packets(), record.end_reason)).collect();
    assert_eq!(ends, [(4, EndReason::Fin), (1, EndReason::EndOfInput)]);
}

#[test]
fn a_syn_ack_seen_first_keeps_the_client_as_initiator() {
    let syn_ack = packet(SECOND, key(1).reversed(), 60, TcpFlags::SYN | TcpFlags::ACK);
    let records = records_of(options(), 1, &[syn_ack], 1);
    assert_eq!(records[0].key, key(1));
    assert_eq!((records[0].forward.packets, records[0].reverse.packets), (0, 1));
}

#[test]
fn options_out_of_range_are_rejected() {
    let refused = |options| FlowTable::new(options, None, HashSeed::new(1)).unwrap_err().to_string();
    assert!(refused(FlowTableOptions { capacity: 0, ..options() }).contains("expected 1 to 2^31"));
    assert!(refused(FlowTableOptions { linger: Nanos::ZERO, ..options() }).contains("linger"));
    let short = FlowTableOptions { idle_timeout: Nanos::from_millis(50), ..options() };
    let detector = SlidingWindow::new(Default::default(), 1).unwrap();
    let error = FlowTable::new(short, Some(detector), HashSeed::new(1)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "idle timeout 50.0 ms is shorter than the flight duration 100 ms: expected at least that"
    );
}

/// A slow flow, 29 bytes every 5 ms: if all its packets counted for one moment, it would be a cheetah after 43 of them.
fn slow(times: impl IntoIterator<Item = u64>) -> Vec<Packet> {
    times.into_iter().map(|time| packet(time, key(1), 29, TcpFlags::default())).collect()
}

fn live(is_live: bool) -> FlowTable {
    let threshold =
        CheetahThreshold { flight_duration: Nanos::from_millis(100), rate_threshold: BitRate(100_000) };
    let detector = SlidingWindow::new(threshold, 64).unwrap();
    FlowTable::new(options(), Some(detector), HashSeed::new(1)).unwrap().with_live_clock(is_live)
}

#[test]
fn a_live_clock_that_is_set_back_makes_no_cheetahs() {
    const STEP: u64 = 5_000_000;
    let start = 10_000 * SECOND;
    let ahead = slow((0..40).map(|number| start + 3_600 * SECOND + number * STEP));
    let after = slow((0..100).map(|number| start + number * STEP));
    for batch in [1, 7, 32, 100] {
        for (is_live, flows, cheetahs) in [(true, 2, 0), (false, 1, 1)] {
            let (mut table, mut output) = (live(is_live), Output::default());
            ahead
                .chunks(batch)
                .chain(after.chunks(batch))
                .for_each(|packets| table.update(packets, &mut output));
            let counters = table.counters();
            assert_eq!(
                (counters.flows, counters.cheetahs, table.live()),
                (flows, cheetahs, 1),
                "batches of {batch}"
            );
            let by = Nanos(3_600 * SECOND + 39 * STEP);
            assert_eq!(output.set_back, is_live.then_some(by));
            if is_live {
                assert_eq!(output.records[0].end_reason, EndReason::EndOfInput);
                assert_eq!(table.clock(), after[99].time);
                // Timeouts follow the new time.
                table.advance(after[99].time + Nanos(11 * SECOND), &mut output);
                assert_eq!((table.live(), output.records[1].end_reason), (0, EndReason::Idle));
            }
            let packets: u64 = output.records.iter().map(FlowRecord::packets).sum();
            assert_eq!(packets, if is_live { 140 } else { 0 }, "none is lost");
        }
    }
}

#[test]
fn packets_of_two_clocks_end_flows_only_every_ten_seconds() {
    let (mut table, mut output) = (live(true), Output::default());
    let start = 10_000 * SECOND;
    for tenth in 0..300 {
        let now = start + tenth * SECOND / 10;
        table.update(&slow([now + 3_600 * SECOND]), &mut output);
        table.update(&slow([now]), &mut output);
    }
    let ended = table.counters().ended(EndReason::EndOfInput);
    assert!((1..=3).contains(&ended), "{ended}");
    // Time that is unknown, and a short step back, change nothing.
    let clock = table.clock();
    table.advance(Timestamp::default(), &mut output);
    table.update(&slow([clock.0 - SECOND]), &mut output);
    assert_eq!((table.clock(), table.counters().ended(EndReason::EndOfInput)), (clock, ended));
}
