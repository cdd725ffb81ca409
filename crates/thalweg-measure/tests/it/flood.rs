//! A flood of random 5-tuples, every packet a flow of its own: memory stays within its limit, accounting stays exact,
//! and exactly the planted cheetahs are found.

use std::collections::BTreeSet;

use thalweg_measure::detect::sliding_window::SlidingWindow;
use thalweg_measure::detect::{CheetahThreshold, Finding};
use thalweg_measure::meter::flow_table::{FlowTable, FlowTableOptions, Output};
use thalweg_measure::meter::record::EndReason;
use thalweg_wire::{
    BitRate, Bytes, FlowKey, Fragment, HashSeed, Nanos, Packet, PacketNotes, Protocol, TcpFlags, Timestamp,
};

const BEGIN: u64 = 1_700_000_000_000_000_000;
const MICROSECOND: u64 = 1_000;

/// Flows that the table holds: at one new flow per microsecond, 33 ms of the flood.
const CAPACITY: u32 = 32_768;
const TRACKS: usize = 256;
/// Ten times the table's capacity.
const FLOOD: u64 = 327_680;

/// The maximum memory of the table per flow, and of the detector per track with a chunk of its log, as documented; the index rounds its size
/// up to a power of two.
const BYTES_A_FLOW: u64 = 200;
const BYTES_A_TRACK: u64 = 1_152 + 1_600;
/// The fixed part: the heads of the orders of age.
const FIXED_BYTES: u64 = 64 << 10;

/// Bytes of every packet of a planted flow.
const LENGTH: u32 = 1_500;
/// 60 Mbit/s: more than R.
const CHEETAH_INTERVAL: u64 = 200 * MICROSECOND;
const CHEETAHS: u32 = 4;
/// 40 Mbit/s: less than R.
const NEAR_MISS_INTERVAL: u64 = 300 * MICROSECOND;

fn packet(time: u64, key: FlowKey, ip_length: u32) -> Packet {
    Packet {
        time: Timestamp(BEGIN + time),
        key,
        ip_length,
        payload_length: 0,
        identification: 0,
        tcp_sequence: 0,
        ethernet: Default::default(),
        tcp_flags: TcpFlags::default(),
        fragment: Fragment::Whole,
        notes: PacketNotes::default(),
    }
}

fn planted(number: u32) -> FlowKey {
    FlowKey::v4(0x0A00_0001 + number, 0x0A00_FFFF, 443, 50_000, Protocol::TCP)
}

/// A 5-tuple of the flood, half of them IPv6: SplitMix64 from a counter, so that every run is the same.
fn random_key(number: u64) -> FlowKey {
    let word = |step: u64| {
        let mut z = (number * 4 + step).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    };
    let (src_port, dst_port) = (word(0) as u16, (word(0) >> 16) as u16);
    match number % 2 {
        0 => FlowKey::v4(word(1) as u32, word(2) as u32, src_port, dst_port, Protocol::UDP),
        _ => FlowKey::v6(word(1).into(), u128::from(word(2)) << 64 | 1, src_port, dst_port, Protocol::UDP),
    }
}

/// The flood, one packet of 60 bytes per microsecond, and the planted flows between them.
fn trace() -> Vec<Packet> {
    let mut packets = Vec::new();
    for number in 0..FLOOD {
        let time = number * MICROSECOND;
        packets.push(packet(time, random_key(number), 60));
        for cheetah in 0..CHEETAHS {
            if time % CHEETAH_INTERVAL == u64::from(cheetah) * 7 * MICROSECOND {
                packets.push(packet(time, planted(cheetah), LENGTH));
            }
        }
        if time.is_multiple_of(NEAR_MISS_INTERVAL) {
            packets.push(packet(time, planted(CHEETAHS), LENGTH));
        }
    }
    packets
}

#[test]
fn a_flood_neither_grows_memory_nor_hides_cheetahs() {
    let flight_duration = Nanos::from_millis(100);
    let threshold = CheetahThreshold { flight_duration, rate_threshold: BitRate(50_000_000) };
    let detector = SlidingWindow::new(threshold, TRACKS).unwrap();
    let options = FlowTableOptions { capacity: CAPACITY, ..FlowTableOptions::default() };
    let mut table = FlowTable::new(options, Some(detector), HashSeed::new(7)).unwrap();

    let bound = table.bytes();
    let formula = u64::from(CAPACITY) * BYTES_A_FLOW + (TRACKS as u64 + 1) * BYTES_A_TRACK + FIXED_BYTES;
    assert!(
        bound <= Bytes(formula),
        "{bound} for {CAPACITY} flows and {TRACKS} tracks, expected {}",
        Bytes(formula)
    );

    let packets = trace();
    let (mut output, mut records, mut findings) = (Output::default(), Vec::new(), Vec::new());
    for batch in packets.chunks(256) {
        table.update(batch, &mut output);
        assert!(table.live() <= CAPACITY);
        records.append(&mut output.records);
        findings.append(&mut output.findings);
    }
    assert_eq!(table.bytes(), bound, "all memory is allocated at the beginning");
    assert_eq!(table.live(), CAPACITY, "the table is full");
    assert_eq!(table.detector().unwrap().untracked(), 0);
    table.finish(&mut output);
    records.append(&mut output.records);

    let counters = table.counters();
    let evicted = counters.ended(EndReason::Evicted);
    assert_eq!(evicted, FLOOD + u64::from(CHEETAHS) + 1 - u64::from(CAPACITY), "from the flood alone");
    assert_eq!(counters.flows, FLOOD + u64::from(CHEETAHS) + 1);
    let recorded: u64 = records.iter().map(|record| record.packets()).sum();
    assert_eq!(recorded, packets.len() as u64);
    let bytes = records.iter().fold(Bytes(0), |sum, record| sum + record.bytes());
    assert_eq!(bytes.0, packets.iter().map(|packet| u64::from(packet.ip_length)).sum::<u64>());

    let found: Vec<_> = findings
        .iter()
        .filter_map(|finding| match finding {
            Finding::Began(cheetah) => Some(cheetah),
            Finding::Ended(_) => None,
        })
        .collect();
    let keys: BTreeSet<_> = found.iter().map(|cheetah| cheetah.key).collect();
    assert_eq!(keys, (0..CHEETAHS).map(planted).collect(), "exactly the planted ones");
    assert_eq!(found.len(), keys.len(), "each once");
    for cheetah in found {
        assert!(cheetah.detected - cheetah.first <= flight_duration, "{cheetah:?}");
    }
}
