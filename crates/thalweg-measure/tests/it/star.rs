//! Rates at an oversubscribed monitor port, against all that was sent.
//!
//! Four hosts at 200 Mbit/s send through one switch, whose monitor port has 100 Mbit/s and a small buffer: a
//! first-in-first-out queue that drops what does not fit. The truth at any time is what passed the switch in the span
//! that the estimate covers. The samples of a span waited in the buffer, for longer or shorter, so the truth of a span
//! may be that of up to one queueing delay earlier.

use std::collections::BTreeMap;
use std::sync::Arc;

use thalweg_measure::collector::{Collector, CollectorOptions, MonitorPort, Output};
use thalweg_measure::meter::flow_table::FlowTableOptions;
use thalweg_measure::rates::BurstOptions;
use thalweg_network::address::default_mac;
use thalweg_network::state::{Forwarding, NetworkState};
use thalweg_network::topology::shapes::rack;
use thalweg_network::versions::Versions;
use thalweg_network::{EndpointId, LinkSpec, LinkState};
use thalweg_sketch::Bound;
use thalweg_wire::{
    BitRate, Bytes, EthernetAddresses, FlowKey, Fragment, Packet, PacketNotes, Protocol, TcpFlags, Timestamp,
};

const LINK: BitRate = BitRate(200_000_000);
const MONITOR: BitRate = BitRate(100_000_000);
const START: u64 = 1_000_000_000;
const LENGTH: u64 = 3_000_000_000;
/// Rates are read from here on.
const WARM_UP: u64 = START + 300_000_000;
/// The interval of reading rates: not a divisor of anything.
const POLL: u64 = 3_137_000;

/// What a host sends.
#[derive(Clone, Copy)]
struct Sender {
    from: u16,
    to: u16,
    protocol: Protocol,
    /// The payload of a packet.
    payload: u32,
    /// The rate on the wire, while it sends.
    rate: f64,
    /// Packets between two pauses; 0 for none.
    burst: u32,
    /// The mean length of a pause in nanoseconds.
    pause: f64,
}

/// A simulated star.
struct Star {
    senders: Vec<Sender>,
    /// The size of the monitor port's buffer.
    buffer: u64,
    seed: u64,
}

/// How the estimates compare with the truth, over all flows and polls.
#[derive(Debug, Default)]
struct Outcome {
    polls: u32,
    inside: u32,
    unknown: u32,
    widths: Vec<f64>,
    errors: Vec<f64>,
    /// Rates of links above their capacity.
    overloaded: u32,
}

/// Times and running totals of the bytes that a flow has sent on the wire.
#[derive(Default)]
struct Sent {
    times: Vec<u64>,
    totals: Vec<u64>,
}

impl Sent {
    fn push(&mut self, time: u64, bytes: u64) {
        self.times.push(time);
        self.totals.push(self.totals.last().unwrap_or(&0) + bytes);
    }

    fn until(&self, time: u64) -> u64 {
        match self.times.partition_point(|&sent| sent < time) {
            0 => 0,
            count => self.totals[count - 1],
        }
    }

    fn rate(&self, from: u64, to: u64) -> f64 {
        (self.until(to) - self.until(from)) as f64 * 8e9 / (to - from) as f64
    }
}

/// SplitMix64, from 0 to 1.
fn random(state: &mut u64) -> f64 {
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mut z = *state;
    z = (z ^ z >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    (z ^ z >> 31) as f64 / u64::MAX as f64
}

/// A steady TCP flow at 96 % of its link.
fn tcp(from: u16, to: u16, payload: u32) -> Sender {
    Sender { from, to, protocol: Protocol::TCP, payload, rate: 192e6, burst: 0, pause: 0.0 }
}

fn key(sender: &Sender) -> FlowKey {
    let ip = |endpoint: u16| 0x0A00_0001 + u32::from(endpoint);
    FlowKey::v4(ip(sender.from), ip(sender.to), 40_000, 80, sender.protocol)
}

/// The bytes of a packet on the wire, or of its parts.
fn wire(payload: u32) -> u64 {
    match payload {
        ..9_000 => u64::from(payload) + 90,
        _ => u64::from(payload + 90 * payload.div_ceil(1_448)),
    }
}

fn sent_packets(sender: &Sender, seed: &mut u64) -> Vec<(u64, Packet)> {
    let spacing = wire(sender.payload) as f64 * 8e9 / sender.rate;
    let mac = |endpoint| default_mac(EndpointId(endpoint));
    let (mut time, mut sequence, mut packets) = (START as f64 + random(seed) * spacing, 0u32, Vec::new());
    while time < (START + LENGTH) as f64 {
        let packet = Packet {
            time: Timestamp(time as u64),
            key: key(sender),
            ethernet: EthernetAddresses { destination: mac(sender.to), source: mac(sender.from) },
            ip_length: sender.payload + 52,
            payload_length: sender.payload,
            tcp_sequence: sequence,
            tcp_flags: TcpFlags::ACK,
            fragment: Fragment::Whole,
            notes: PacketNotes::default(),
        };
        packets.push((wire(sender.payload), packet));
        sequence = sequence.wrapping_add(sender.payload);
        // The host's clock and its other work move each packet a little.
        time += spacing * (0.8 + 0.4 * random(seed));
        if sender.burst > 0 && packets.len() % sender.burst as usize == 0 {
            time += sender.pause * (0.5 + random(seed));
        }
    }
    packets
}

impl Star {
    /// Runs the network, and reads all rates at intervals.
    fn run(mut self) -> Outcome {
        let mut sent: BTreeMap<FlowKey, Sent> = BTreeMap::new();
        let mut packets = Vec::new();
        for sender in &self.senders {
            packets.extend(sent_packets(sender, &mut self.seed));
        }
        packets.sort_by_key(|(_, packet)| packet.time);
        for (bytes, packet) in &packets {
            sent.entry(packet.key).or_default().push(packet.time.0, *bytes);
        }
        let samples = self.sampled(packets.iter().map(|(_, packet)| packet));
        self.judge(&sent, &samples)
    }

    /// The packets that pass the monitor port, with the times at which they leave it.
    fn sampled<'a>(&self, packets: impl Iterator<Item = &'a Packet>) -> Vec<Packet> {
        let (mut free_at, mut samples) = (0, Vec::new());
        for packet in packets {
            let frame = u64::from(packet.ip_length) + 38;
            let queued = (free_at.max(packet.time.0) - packet.time.0) * MONITOR.0 / 8_000_000_000;
            if queued + frame > self.buffer {
                continue;
            }
            free_at = free_at.max(packet.time.0) + frame * 8_000_000_000 / MONITOR.0;
            samples.push(Packet { time: Timestamp(free_at), ..*packet });
        }
        samples
    }

    fn judge(&self, sent: &BTreeMap<FlowKey, Sent>, samples: &[Packet]) -> Outcome {
        let topology = rack(4, LinkSpec { rate: LINK, ..LinkSpec::default() }).unwrap();
        let links = LinkState::new(&topology);
        let state = NetworkState::new(topology, links, Forwarding::ecmp(1)).unwrap();
        let options = CollectorOptions {
            flow_table: FlowTableOptions { capacity: 64, ..FlowTableOptions::default() },
            bursts: BurstOptions::for_rate(LINK),
            monitor: Some(MonitorPort { rate: MONITOR, buffer: Bytes(self.buffer) }),
            tracks: 64,
            ..CollectorOptions::default()
        };
        let mut collector = Collector::new(options, Some(Arc::new(Versions::new(state)))).unwrap();
        let delay = self.buffer * 8_000_000_000 / MONITOR.0;
        let (mut outcome, mut output, mut next) = (Outcome::default(), Output::default(), WARM_UP);
        for sample in samples {
            while sample.time.0 >= next && next < START + LENGTH {
                for (key, sent) in sent {
                    outcome.read(&collector, key, sent, delay);
                }
                let links = collector.links();
                let is_overloaded = |rate: f64| rate > 1.000_001 * LINK.0 as f64;
                outcome.overloaded += links
                    .iter()
                    .filter(|link| is_overloaded(link.rate.value) || is_overloaded(link.smoothed))
                    .count() as u32;
                next += POLL;
            }
            collector.update(std::slice::from_ref(sample), &mut output);
        }
        outcome
    }
}

impl Outcome {
    fn read(&mut self, collector: &Collector, key: &FlowKey, sent: &Sent, delay: u64) {
        self.polls += 1;
        let Some(rate) = collector.flow(key).and_then(|flow| flow.rate) else {
            self.unknown += 1;
            return;
        };
        let (from, to) = (rate.span.0.0, rate.span.1.0);
        let Bound::Interval { lower, upper, .. } = rate.rate.bound else {
            self.unknown += 1;
            return;
        };
        if to <= from {
            self.unknown += 1;
            return;
        }
        let truths = (0..=8).map(|step| sent.rate(from - delay * step / 8, to - delay * step / 8));
        let truths: Vec<f64> = truths.collect();
        let is_inside = |&truth: &f64| lower * 0.999_999 <= truth && truth <= upper * 1.000_001;
        self.inside += u32::from(truths.iter().any(is_inside));
        let truth = truths.iter().sum::<f64>() / truths.len() as f64;
        if truth > 0.0 && rate.rate.value > 0.0 {
            self.errors.push((rate.rate.value - truth).abs() / truth);
            self.widths.push((upper - lower) / truth);
        }
    }

    fn share_inside(&self) -> f64 {
        f64::from(self.inside) / f64::from(self.polls)
    }

    fn mean_error(&self) -> f64 {
        self.errors.iter().sum::<f64>() / self.errors.len() as f64
    }

    fn median_width(&self) -> f64 {
        let mut widths = self.widths.clone();
        widths.sort_by(f64::total_cmp);
        widths[widths.len() / 2]
    }
}

fn report(name: &str, outcome: &Outcome) {
    println!(
        "{name}: {} polls, {:.2} % inside, {} unknown, mean error {:.2} %, median width {:.3}, {} overloaded",
        outcome.polls,
        100.0 * outcome.share_inside(),
        outcome.unknown,
        100.0 * outcome.mean_error(),
        outcome.median_width(),
        outcome.overloaded
    );
}

/// The seeds of each case.
const SEEDS: std::ops::Range<u64> = 1..6;

/// Runs a case with several seeds, and checks what holds for all of them together.
fn check(name: &str, buffer: u64, senders: &[Sender]) {
    let mut all = Outcome::default();
    for seed in SEEDS {
        let outcome = Star { senders: senders.to_vec(), buffer, seed }.run();
        all.polls += outcome.polls;
        all.inside += outcome.inside;
        all.unknown += outcome.unknown;
        all.overloaded += outcome.overloaded;
        all.widths.extend(outcome.widths);
        all.errors.extend(outcome.errors);
    }
    report(name, &all);
    assert!(all.share_inside() >= 0.99, "{name}: {:.4} inside", all.share_inside());
    assert_eq!(all.overloaded, 0, "{name}: links above their capacity");
}

#[test]
fn rates_of_steady_flows_are_within_their_bounds() {
    let flows = [(0, 1), (1, 0), (2, 3), (3, 2)].map(|(from, to)| tcp(from, to, 1_448));
    check("steady", 12_500, &flows);
}

#[test]
fn rates_of_jumbo_frames_are_within_their_bounds() {
    let flows = [(0, 1), (1, 0), (2, 3), (3, 2)].map(|(from, to)| tcp(from, to, 8_948));
    check("jumbo", 32_000, &flows);
    check("two jumbo", 32_000, &flows[1..3]);
}

#[test]
fn rates_of_bursts_with_pauses_are_within_their_bounds() {
    let pairs = [(0, 1, 44, 3e6), (1, 0, 90, 5e6), (2, 3, 300, 20e6), (3, 2, 44, 1e6)];
    let flows = pairs.map(|(from, to, burst, pause)| Sender { burst, pause, ..tcp(from, to, 1_448) });
    check("bursts", 12_500, &flows);
}

#[test]
fn rates_of_super_packets_are_within_their_bounds() {
    let flows = [(0, 1), (1, 0), (2, 3), (3, 2)].map(|(from, to)| tcp(from, to, 45 * 1_448));
    check("super-packets", 200_000, &flows);
}

#[test]
fn rates_of_udp_beside_tcp_are_within_their_bounds() {
    let udp = |from, to, rate| Sender { protocol: Protocol::UDP, rate, ..tcp(from, to, 1_400) };
    let flows = [(0, 1), (1, 0), (2, 3)].map(|(from, to)| tcp(from, to, 1_448));
    for rate in [10e6, 20e6, 40e6, 100e6] {
        check(&format!("UDP {rate}"), 12_500, &[&flows[..], &[udp(3, 2, rate)]].concat());
    }
}
