//! Reads a trace and its truth back, and checks them with slow, simple oracles.

use std::collections::HashMap;

use thalweg_wire::capture_file::Decoder;
use thalweg_wire::{Batch, FlowKey, Packet, Timestamp, parse::Parser};

use crate::trace::{SynthOptions, SynthSummary, generate};

/// A generated trace, its truth and its parsed packets.
pub(super) struct Observation {
    pub(super) summary: SynthSummary,
    pub(super) trace: Vec<u8>,
    pub(super) truth: String,
    pub(super) packets: Vec<Packet>,
}

/// Generates a trace and reads it back.
pub(super) fn observe(options: &SynthOptions) -> Observation {
    let (mut trace, mut truth) = (Vec::new(), Vec::new());
    let summary = generate(options, &mut trace, &mut truth, &mut |_| {}).unwrap();
    let mut decoder = Decoder::new();
    let mut frames = Vec::new();
    let decoded = decoder.decode(&trace, 0, usize::MAX, &mut frames).unwrap();
    assert_eq!(decoded.consumed, trace.len());
    assert_eq!(decoder.beyond_snap_length(), 0);
    let batch = Batch { bytes: &trace, frames: &frames, interfaces: decoder.interfaces() };
    let packets = batch.iter().map(|frame| Parser::default().parse(&frame).unwrap()).collect();
    Observation { summary, packets, truth: String::from_utf8(truth).unwrap(), trace }
}

/// Times and IP lengths of the packets of one direction.
pub(super) type Direction = Vec<(Timestamp, u32)>;

impl Observation {
    pub(super) fn directions(&self) -> HashMap<FlowKey, Direction> {
        let mut directions: HashMap<FlowKey, Direction> = HashMap::new();
        for packet in &self.packets {
            directions.entry(packet.key).or_default().push((packet.time, packet.ip_length));
        }
        directions
    }

    /// Returns the packets of each flow, both directions.
    pub(super) fn flows(&self) -> HashMap<FlowKey, Vec<Packet>> {
        let mut flows: HashMap<FlowKey, Vec<Packet>> = HashMap::new();
        for packet in &self.packets {
            flows.entry(packet.key.canonical().0).or_default().push(*packet);
        }
        flows
    }

    pub(super) fn rows(&self) -> Vec<Row> {
        self.truth.lines().skip(1).map(Row::read).collect()
    }
}

/// A row of the truth.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) kind: String,
    pub(super) flow: u64,
    pub(super) key: FlowKey,
    pub(super) first: Timestamp,
    pub(super) last: Timestamp,
    pub(super) packets: u64,
    pub(super) bytes: u64,
    pub(super) max_window_bytes: u64,
    pub(super) cheetah: bool,
    pub(super) crossed: Option<Timestamp>,
}

impl Row {
    fn read(line: &str) -> Row {
        let fields: Vec<&str> = line.split(',').collect();
        let [kind, flow, src, dst, src_port, dst_port, protocol, rest @ ..] = &fields[..] else {
            panic!("{line}")
        };
        let [first, last, packets, bytes, max_window_bytes, cheetah, crossed] = rest else {
            panic!("{line}")
        };
        let number = |text: &str| text.parse::<u64>().unwrap();
        let key = FlowKey::new(
            src.parse().unwrap(),
            dst.parse().unwrap(),
            src_port.parse().unwrap(),
            dst_port.parse().unwrap(),
            protocol.parse().unwrap(),
        );
        Row {
            kind: (*kind).to_owned(),
            flow: number(flow),
            key: key.unwrap(),
            first: Timestamp(number(first)),
            last: Timestamp(number(last)),
            packets: number(packets),
            bytes: number(bytes),
            max_window_bytes: number(max_window_bytes),
            cheetah: *cheetah == "1",
            crossed: (!crossed.is_empty()).then(|| Timestamp(number(crossed))),
        }
    }
}

/// Returns the maximum in any window `(t - T, t]`, and the time of the packet at which one first held more than
/// `threshold`. Searches the start of each packet's window and subtracts prefix sums.
pub(super) fn widest_window(direction: &Direction, t_ns: u64, threshold: u64) -> (u64, Option<Timestamp>) {
    let mut sums = vec![0];
    sums.extend(direction.iter().scan(0, |sum, (_, bytes)| {
        *sum += u64::from(*bytes);
        Some(*sum)
    }));
    let in_window = |end: usize| {
        let from = direction.partition_point(|(time, _)| time.0 + t_ns <= direction[end].0.0);
        sums[end + 1] - sums[from]
    };
    let most = (0..direction.len()).map(in_window).max().unwrap();
    let crossed = (0..direction.len()).find(|&end| in_window(end) > threshold);
    (most, crossed.map(|end| direction[end].0))
}

/// Runs Algorithm 3 of the dissertation on one direction of a flow, with the packet length threshold L of Algorithm 2.
/// Returns whether it reports the flow.
pub(super) fn published_algorithm(direction: &Direction, t_ns: u64, rate: u64, min_length: u32) -> bool {
    let mut flight: Option<(Timestamp, u64)> = None;
    for &(time, length) in direction {
        let Some((first, bytes)) = &mut flight else {
            flight = (length >= min_length).then_some((time, u64::from(length)));
            continue;
        };
        *bytes += u64::from(length);
        let duration = time.since(*first).0;
        if duration >= t_ns {
            if u128::from(*bytes) * 8_000_000_000 > u128::from(rate) * u128::from(duration) {
                return true;
            }
            flight = None;
        }
    }
    false
}

/// FNV-1a, 64 bits.
pub(super) fn fnv1a(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0xCBF2_9CE4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01B3))
}
