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
/// Nanoseconds between the packets of a train.
const IN_TRAIN: f64 = 2_000.0;

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
    /// Packets in a train, which follow each other without delay.
    train: u32,
    numbering: Numbering,
    /// Whether the receiver acknowledges every second packet.
    is_acknowledged: bool,
}

/// The identifications of a sender's IPv4 packets.
#[derive(Clone, Copy, PartialEq)]
enum Numbering {
    Zero,
    /// One counter per flow.
    Counted,
    /// One counter for all flows of the host that have this numbering.
    Shared,
    Random,
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
    /// Widths of UDP flows.
    udp_widths: Vec<f64>,
    /// The same of directions that only acknowledge.
    acknowledging_widths: Vec<f64>,
    /// Of values that are known, as shares of the truth; positive if too high.
    errors: Vec<f64>,
    /// The same of UDP flows.
    udp_errors: Vec<f64>,
    /// The same of all estimates of UDP flows, reported as a value or not.
    udp_estimates: Vec<f64>,
    /// Polls of UDP flows, those inside their bounds, and those where only bounds are known.
    udp: [u32; 3],
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

/// Returns NaN without values.
fn quantile(values: &[f64], share: f64) -> f64 {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    let at = (values.len().saturating_sub(1) as f64 * share).round() as usize;
    values.get(at).copied().unwrap_or(f64::NAN)
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
    Sender {
        from,
        to,
        protocol: Protocol::TCP,
        payload,
        rate: 192e6,
        burst: 0,
        pause: 0.0,
        train: 1,
        numbering: Numbering::Zero,
        is_acknowledged: false,
    }
}

fn key(sender: &Sender) -> FlowKey {
    let ip = |endpoint: u16| 0x0A00_0001 + u32::from(endpoint);
    let port = 40_000 + (sender.rate / 1e6) as u16;
    FlowKey::v4(ip(sender.from), ip(sender.to), port, 80, sender.protocol)
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
    let mut acknowledgements = Vec::new();
    let first = (random(seed) * 65_536.0) as u16;
    while time < (START + LENGTH) as f64 {
        let packet = Packet {
            time: Timestamp(time as u64),
            key: key(sender),
            ethernet: EthernetAddresses { destination: mac(sender.to), source: mac(sender.from) },
            ip_length: sender.payload + 52,
            payload_length: sender.payload,
            identification: match sender.numbering {
                Numbering::Zero | Numbering::Shared => 0,
                Numbering::Counted => first.wrapping_add(packets.len() as u16),
                Numbering::Random => (random(seed) * 65_536.0) as u16,
            },
            tcp_sequence: sequence,
            tcp_flags: TcpFlags::ACK,
            fragment: Fragment::Whole,
            notes: PacketNotes::default(),
        };
        packets.push((wire(sender.payload), packet));
        sequence = sequence.wrapping_add(sender.payload);
        // The host's clock and its other work move each packet a little.
        time += match packets.len() as u32 % sender.train {
            0 => {
                (spacing * f64::from(sender.train) - IN_TRAIN * f64::from(sender.train - 1))
                    * (0.8 + 0.4 * random(seed))
            }
            _ => IN_TRAIN,
        };
        if sender.is_acknowledged && packets.len() % 2 == 0 {
            acknowledgements.push((wire(0), acknowledgement(&packet)));
        }
        if sender.burst > 0 && packets.len() % sender.burst as usize == 0 {
            time += sender.pause * (0.5 + random(seed));
        }
    }
    packets.extend(acknowledgements);
    packets
}

/// The receiver's reply to a packet.
fn acknowledgement(packet: &Packet) -> Packet {
    let EthernetAddresses { destination, source } = packet.ethernet;
    Packet {
        time: Timestamp(packet.time.0 + 100_000),
        key: packet.key.reversed(),
        ethernet: EthernetAddresses { destination: source, source: destination },
        ip_length: 52,
        payload_length: 0,
        tcp_sequence: 1,
        ..*packet
    }
}

/// Numbers the packets of flows that share a counter of their host.
fn share_counters(packets: &mut [(u64, Packet)], senders: &[Sender]) {
    let shared = senders.iter().filter(|sender| sender.numbering == Numbering::Shared);
    let shared: Vec<FlowKey> = shared.map(key).collect();
    let mut counters = BTreeMap::new();
    for (_, packet) in packets.iter_mut().filter(|(_, packet)| shared.contains(&packet.key)) {
        let counter = counters.entry(packet.key.src()).or_insert(1u16);
        packet.identification = *counter;
        *counter = counter.wrapping_add(1);
    }
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
        share_counters(&mut packets, &self.senders);
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
        let is_inside = truths.iter().any(is_inside);
        self.inside += u32::from(is_inside);
        let truth = truths.iter().sum::<f64>() / truths.len() as f64;
        let is_udp = key.protocol == Protocol::UDP;
        let error =
            rate.known_value().filter(|value| truth > 0.0 && *value > 0.0).map(|value| value / truth - 1.0);
        self.errors.extend(error);
        if truth > 0.0 && rate.rate.value > 0.0 {
            let is_acknowledging = key.src_port == 80;
            let widths = if is_acknowledging { &mut self.acknowledging_widths } else { &mut self.widths };
            widths.push((upper - lower) / truth);
            if is_udp {
                self.udp_widths.push((upper - lower) / truth);
            }
        }
        if is_udp {
            let counts = [1, u32::from(is_inside), u32::from(rate.known_value().is_none())];
            self.udp.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
            self.udp_errors.extend(error);
            let estimate = (truth > 0.0 && rate.rate.value > 0.0).then(|| rate.rate.value / truth - 1.0);
            self.udp_estimates.extend(estimate);
        }
    }

    fn share_inside(&self) -> f64 {
        f64::from(self.inside) / f64::from(self.polls)
    }

    fn mean_error(&self) -> f64 {
        self.errors.iter().map(|error| error.abs()).sum::<f64>() / self.errors.len() as f64
    }

    /// A quantile of the errors of UDP flows; NaN if there are none.
    fn udp_error(&self, share: f64) -> f64 {
        quantile(&self.udp_errors, share)
    }
}

fn report(name: &str, outcome: &Outcome) {
    println!(
        "{name}: {} polls, {:.2} % inside, {} unknown, mean error {:.2} %, median width {:.3}, {} overloaded",
        outcome.polls,
        100.0 * outcome.share_inside(),
        outcome.unknown,
        100.0 * outcome.mean_error(),
        quantile(&outcome.widths, 0.5),
        outcome.overloaded
    );
    if !outcome.acknowledging_widths.is_empty() {
        println!("  acknowledgements: median width {:.3}", quantile(&outcome.acknowledging_widths, 0.5));
    }
    if outcome.udp[0] > 0 {
        let quantiles = [0.05, 0.5, 0.95].map(|share| outcome.udp_error(share));
        let estimates = [0.05, 0.5, 0.95].map(|share| quantile(&outcome.udp_estimates, share));
        println!(
            "  UDP: {:?} polls, inside, without a value; median width {:.3}",
            outcome.udp,
            quantile(&outcome.udp_widths, 0.5)
        );
        println!("  quantiles of errors of values {quantiles:.3?}, of estimates {estimates:.3?}");
    }
}

/// The seeds of each case.
const SEEDS: std::ops::Range<u64> = 1..6;

/// Runs a case with several seeds, and checks what holds for all of them together.
fn check(name: &str, buffer: u64, senders: &[Sender]) -> Outcome {
    let mut all = Outcome::default();
    for seed in SEEDS {
        let outcome = Star { senders: senders.to_vec(), buffer, seed }.run();
        all.polls += outcome.polls;
        all.inside += outcome.inside;
        all.unknown += outcome.unknown;
        all.overloaded += outcome.overloaded;
        all.widths.extend(outcome.widths);
        all.acknowledging_widths.extend(outcome.acknowledging_widths);
        all.errors.extend(outcome.errors);
        all.udp_errors.extend(outcome.udp_errors);
        all.udp_widths.extend(outcome.udp_widths);
        all.udp_estimates.extend(outcome.udp_estimates);
        all.udp.iter_mut().zip(outcome.udp).for_each(|(sum, count)| *sum += count);
    }
    report(name, &all);
    assert!(all.share_inside() >= 0.99, "{name}: {:.4} inside", all.share_inside());
    assert_eq!(all.overloaded, 0, "{name}: links above their capacity");
    all
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

/// Three saturating TCP flows.
fn saturating() -> [Sender; 3] {
    [(0, 1), (1, 0), (2, 3)].map(|(from, to)| tcp(from, to, 1_448))
}

/// A UDP flow that leaves its host in trains of this many packets.
fn udp(from: u16, to: u16, rate: f64, train: u32, numbering: Numbering) -> Sender {
    Sender { protocol: Protocol::UDP, rate, train, numbering, ..tcp(from, to, 1_400) }
}

/// The bounds of the errors were set before the first run: half of all values are at most 2 % too low, and half at most
/// 2 % too high, and nine in ten are within 10 %.
#[test]
fn rates_of_numbered_udp_beside_tcp_are_correct() {
    for rate in [10e6, 20e6, 50e6, 100e6] {
        for train in [1, 4] {
            let name = format!("UDP {rate}, trains of {train}");
            let flow = udp(3, 2, rate, train, Numbering::Counted);
            let outcome = check(&name, 12_500, &[&saturating()[..], &[flow]].concat());
            let [low, median, high] = [0.05, 0.5, 0.95].map(|share| outcome.udp_error(share));
            assert!(median.abs() <= 0.02, "{name}: median error {median}");
            assert!(-0.1 <= low && high <= 0.1, "{name}: errors from {low} to {high}");
            assert!(outcome.udp[2] * 100 <= outcome.udp[0], "{name}: {:?} without a value", outcome.udp);
        }
    }
}

/// Nothing tells the number of packets that were dropped, so there is an interval and no value.
#[test]
fn rates_of_udp_without_numbers_beside_tcp_are_unknown_but_within_their_bounds() {
    for numbering in [Numbering::Zero, Numbering::Random] {
        for (rate, train) in [(10e6, 1), (20e6, 1), (40e6, 1), (100e6, 1), (50e6, 4)] {
            let name = format!("UDP {rate}, trains of {train}, random {}", numbering == Numbering::Random);
            let flow = udp(3, 2, rate, train, numbering);
            let outcome = check(&name, 12_500, &[&saturating()[..], &[flow]].concat());
            assert!(outcome.udp[2] * 10 >= outcome.udp[0] * 9, "{name}: {:?} without a value", outcome.udp);
        }
    }
}

/// Each flow would get the rate of both.
#[test]
fn identifications_of_a_shared_counter_are_not_used() {
    let flows = [udp(3, 2, 30e6, 1, Numbering::Shared), udp(3, 2, 40e6, 1, Numbering::Shared)];
    let outcome = check("UDP with a shared counter", 12_500, &[&saturating()[..], &flows].concat());
    assert!(outcome.udp[2] * 10 >= outcome.udp[0] * 9, "{:?} without a value", outcome.udp);
}

/// A direction of acknowledgements becomes silent in every pause, and resumes.
#[test]
fn rates_of_acknowledged_bursts_are_within_their_bounds() {
    let pairs = [(0, 1, 44, 3e6), (1, 0, 90, 5e6), (2, 3, 300, 20e6), (3, 2, 44, 60e6)];
    let flows = pairs.map(|(from, to, burst, pause)| Sender {
        burst,
        pause,
        is_acknowledged: true,
        ..tcp(from, to, 1_448)
    });
    let outcome = check("acknowledged bursts", 12_500, &flows);
    assert_eq!(outcome.unknown, 0, "polls without an interval or with an empty span");
}
