//! Accounting of a whole meter: for any input, every frame is in exactly one flow record or in exactly one counter,
//! with its bytes.

use std::collections::BTreeMap;

use proptest::prelude::*;
use proptest::sample::Index;
use thalweg_measure::meter::flow_table::{FlowTable, FlowTableOptions, Output};
use thalweg_measure::meter::intake::{Intake, IntakeCounters, Tally};
use thalweg_wire::parse::Parser;
use thalweg_wire::{
    Batch, Bytes, FlowKey, FrameRef, HashSeed, Interface, LinkType, Nanos, Packet, Timestamp,
};

const LINK_TYPES: [LinkType; 4] =
    [LinkType::Ethernet, LinkType::RawIp, LinkType::LinuxSll2, LinkType::Other(147)];

/// A frame before it is put into a batch.
#[derive(Clone, Debug)]
struct Draft {
    time: u64,
    bytes: Vec<u8>,
    beyond_captured: u32,
    interface: u32,
}

/// Ethernet around IPv4 or IPv6, around UDP, TCP, fragments or a tunnel; few hosts and ports, so that flows have
/// several packets.
fn sound() -> impl Strategy<Value = Vec<u8>> {
    let addresses = (0..3u8, 0..3u8);
    let ports = (0..3u16, 0..3u16);
    let kinds = (any::<bool>(), prop_oneof![Just(6u8), Just(17), Just(1), Just(4), Just(47)]);
    let fragment = prop_oneof![4 => Just(0u16), 1 => Just(0x2000), 1 => Just(0x0010)];
    let length = 0..40usize;
    (addresses, ports, kinds, fragment, length, any::<u8>()).prop_map(
        |((src, dst), (src_port, dst_port), (is_v6, protocol), fragment, length, flags)| {
            let [s0, s1] = src_port.to_be_bytes();
            let [d0, d1] = dst_port.to_be_bytes();
            let transport = [s0, s1, d0, d1, 0, 0, 0, 1, 0, 0, 0, 0, 0x50, flags, 0, 0, 0, 0, 0, 0];
            let payload = [&transport[..], &vec![0; length]].concat();
            let address = |last| [0x20, 1, 0x0D, 0xB8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, last];
            let ip = if is_v6 {
                let [high, low] = (payload.len() as u16).to_be_bytes();
                [&[0x60, 0, 0, 0, high, low, protocol, 64][..], &address(src), &address(dst), &payload]
                    .concat()
            } else {
                let [high, low] = (20 + payload.len() as u16).to_be_bytes();
                let [f0, f1] = fragment.to_be_bytes();
                let header =
                    [0x45, 0, high, low, 0, 7, f0, f1, 64, protocol, 0, 0, 10, 0, 0, src, 10, 0, 0, dst];
                [&header[..], &payload].concat()
            };
            let ethertype = if is_v6 { [0x86, 0xDD] } else { [0x08, 0x00] };
            [&[2; 12][..], &ethertype, &ip].concat()
        },
    )
}

/// Valid, or with some bytes overwritten or cut off, or random.
fn bytes() -> impl Strategy<Value = Vec<u8>> {
    let damaged = (sound(), prop::collection::vec((any::<Index>(), any::<u8>()), 1..4)).prop_map(
        |(mut bytes, changes)| {
            for (place, byte) in changes {
                let place = place.index(bytes.len());
                bytes[place] = byte;
            }
            bytes
        },
    );
    let cut = (sound(), any::<Index>()).prop_map(|(mut bytes, end)| {
        bytes.truncate(end.index(bytes.len()));
        bytes
    });
    let noise = prop::collection::vec(any::<u8>(), 0..80);
    prop_oneof![6 => sound(), 2 => damaged, 2 => cut, 1 => noise]
}

/// Most are on Ethernet; time advances by up to 3 s per frame, and sometimes goes back.
fn drafts() -> impl Strategy<Value = Vec<Draft>> {
    let step = prop_oneof![8 => 0..3_000_000_000i64, 1 => -5_000_000_000..0i64];
    let interface = prop_oneof![12 => Just(0u32), 1 => Just(1), 1 => Just(2), 1 => Just(3)];
    let beyond = prop_oneof![3 => Just(0u32), 1 => 0..2000u32];
    prop::collection::vec((step, bytes(), beyond, interface), 0..300).prop_map(|frames| {
        let mut time = 1_000_000_000_000i64;
        frames
            .into_iter()
            .map(|(step, bytes, beyond_captured, interface)| {
                time += step;
                Draft { time: time as u64, bytes, beyond_captured, interface }
            })
            .collect()
    })
}

/// A table so small that it evicts, with timeouts so short that they expire.
fn options() -> FlowTableOptions {
    FlowTableOptions {
        capacity: 8,
        idle_timeout: Nanos::from_secs(15),
        active_timeout: Nanos::from_secs(40),
        linger: Nanos::from_secs(1),
    }
}

/// The output of a meter for frames in batches.
struct Metered {
    counters: IntakeCounters,
    packets: Vec<Packet>,
    output: Output,
}

fn meter(drafts: &[Draft], batch_length: usize, parser: Parser, seed: u64) -> Metered {
    let interface = |link_type| Interface { name: None, link_type, snap_length: 0 };
    let interfaces = LINK_TYPES.map(interface);
    let seed = HashSeed::new(seed);
    let (mut intake, mut output) = (Intake::new(parser, seed), Output::default());
    let mut table = FlowTable::new(options(), None, seed).unwrap();
    let mut all = Vec::new();
    for drafts in drafts.chunks(batch_length) {
        let (mut bytes, mut frames) = (Vec::new(), Vec::new());
        for draft in drafts {
            let captured_length = draft.bytes.len() as u32;
            frames.push(FrameRef {
                time: Timestamp(draft.time),
                offset: bytes.len(),
                captured_length,
                original_length: captured_length + draft.beyond_captured,
                interface: draft.interface,
            });
            bytes.extend(&draft.bytes);
        }
        let mut packets = Vec::new();
        intake.take(&Batch { bytes: &bytes, frames: &frames, interfaces: &interfaces }, &mut packets);
        table.update(&packets, &mut output);
        all.append(&mut packets);
    }
    table.finish(&mut output);
    Metered { counters: intake.counters(), packets: all, output }
}

/// Packets and bytes of each direction, by the direction's key.
fn by_key(parts: impl Iterator<Item = (FlowKey, u64, u64)>) -> BTreeMap<FlowKey, (u64, u64)> {
    let mut sums = BTreeMap::new();
    for (key, packets, bytes) in parts.filter(|part| part.1 > 0) {
        let sum: &mut (u64, u64) = sums.entry(key).or_default();
        *sum = (sum.0 + packets, sum.1 + bytes);
    }
    sums
}

proptest! {
    #[test]
    fn every_frame_is_counted_once(
        drafts in drafts(), batch_length in 1..100usize, decapsulate in any::<bool>(), seed in any::<u64>()
    ) {
        let Metered { counters, packets, output } =
            meter(&drafts, batch_length, Parser { decapsulate }, seed);

        let on_the_wire = |draft: &Draft| draft.bytes.len() as u64 + u64::from(draft.beyond_captured);
        let read = Tally { packets: drafts.len() as u64, bytes: Bytes(drafts.iter().map(on_the_wire).sum()) };
        prop_assert_eq!(counters.frames, read);

        let records = &output.records;
        let recorded = Tally {
            packets: records.iter().map(|record| record.packets()).sum(),
            bytes: records.iter().fold(Bytes(0), |sum, record| sum + record.bytes()),
        };
        prop_assert_eq!(recorded, counters.ip);
        let mut accounted = recorded;
        for others in [counters.non_ip, counters.unsupported_link, counters.malformed_total()] {
            accounted += others;
        }
        prop_assert_eq!(accounted.packets, counters.frames.packets);
        prop_assert_eq!(accounted, counters.accounted());

        // And each in the record of its own flow and direction.
        let of_packets = packets.iter().map(|packet| (packet.key, 1, u64::from(packet.ip_length)));
        let of_records = records.iter().flat_map(|record| {
            [(record.key, record.forward), (record.key.reversed(), record.reverse)]
                .map(|(key, traffic)| (key, traffic.packets, traffic.bytes.0))
        });
        prop_assert_eq!(by_key(of_records), by_key(of_packets));
    }

    #[test]
    fn accounting_does_not_depend_on_batches_or_seeds(
        drafts in drafts(), batch_length in 1..100usize, seeds in any::<[u64; 2]>()
    ) {
        let one = meter(&drafts, batch_length, Parser::default(), seeds[0]);
        let other = meter(&drafts, usize::MAX, Parser::default(), seeds[1]);
        prop_assert_eq!(one.counters, other.counters);
        prop_assert_eq!(one.packets, other.packets);
    }
}
