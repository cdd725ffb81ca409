use proptest::prelude::*;

use thalweg_network::address::default_mac;
use thalweg_network::state::{Forwarding, NetworkState};
use thalweg_network::topology::shapes::rack;
use thalweg_network::{EndpointId, LinkSpec, LinkState, PortIndex};
use thalweg_wire::{EthernetAddresses, Fragment, Nanos, PacketNotes, Protocol, TcpFlags};

use super::*;
use crate::meter::flow_table::FlowTableOptions;

const SECOND: u64 = 1_000_000_000;
const SEGMENT: u32 = 1_448;

/// One switch with four hosts at 10 Gbit/s.
fn network() -> Arc<Versions> {
    let topology = rack(4, LinkSpec::default()).unwrap();
    let links = LinkState::new(&topology);
    Arc::new(Versions::new(NetworkState::new(topology, links, Forwarding::ecmp(1)).unwrap()))
}

fn options(rules: Vec<LinkRule>) -> CollectorOptions {
    let flow_table = FlowTableOptions { capacity: 64, ..FlowTableOptions::default() };
    CollectorOptions { flow_table, tracks: 64, rules, smoothing: Nanos::ZERO, ..CollectorOptions::default() }
}

fn packet(time: u64, from: u16, to: u16, protocol: Protocol, sequence: u32, payload: u32) -> Packet {
    let mac = |endpoint| default_mac(EndpointId(endpoint));
    let ip = |endpoint: u16| 0x0A00_0001 + u32::from(endpoint);
    let key = FlowKey::v4(ip(from), ip(to), 40_000, 80, protocol);
    Packet {
        time: Timestamp(time),
        key,
        ethernet: EthernetAddresses { destination: mac(to), source: mac(from) },
        ip_length: payload + 52,
        payload_length: payload,
        identification: 0,
        tcp_sequence: sequence,
        tcp_flags: TcpFlags::ACK,
        fragment: Fragment::Whole,
        notes: PacketNotes::default(),
    }
}

/// Full-sized segments of one flow at a given rate on the wire, all sampled, from `begin` on for `length`.
fn flow(from: u16, to: u16, bits: f64, begin: u64, length: u64) -> Vec<Packet> {
    let spacing = 1_538.0 * 8e9 / bits;
    let count = (length as f64 / spacing) as u32;
    let at = |n: u32| begin + (f64::from(n) * spacing) as u64;
    (0..count).map(|n| packet(at(n), from, to, Protocol::TCP, n.wrapping_mul(SEGMENT), SEGMENT)).collect()
}

fn merged(flows: impl IntoIterator<Item = Vec<Packet>>) -> Vec<Packet> {
    let mut packets: Vec<Packet> = flows.into_iter().flatten().collect();
    packets.sort_by_key(|packet| packet.time);
    packets
}

fn link(port: u16, direction: PortDirection) -> LinkDirection {
    LinkDirection { port: PortIndex(port), direction }
}

impl Collector {
    fn link(&self, port: u16, direction: PortDirection) -> LinkReport {
        self.links()[links::index_of(link(port, direction))]
    }

    /// The sums of links are those of the flows on them.
    fn check_invariants(&self) {
        for report in self.links() {
            let side = report.side;
            let is_on = |flow: &FlowReport| match side.direction {
                PortDirection::Input => flow.input == Some(side.port),
                PortDirection::Output => flow.output == Some(side.port),
            };
            let rates = self.flows(0..u32::MAX).filter(is_on).filter_map(|flow| flow.rate);
            let rates: Vec<f64> = rates.map(|rate| rate.rate.value).filter(|rate| *rate > 0.0).collect();
            assert_eq!(report.rate.value, rates.iter().sum::<f64>(), "{side:?}");
            assert_eq!(report.flows as usize, rates.len());
        }
    }
}

fn fed(options: CollectorOptions, packets: &[Packet], batch: usize) -> (Collector, Output) {
    let mut collector = Collector::new(options, Some(network())).unwrap();
    let mut output = Output::default();
    for packets in packets.chunks(batch) {
        collector.update(packets, &mut output);
        collector.check_invariants();
    }
    (collector, output)
}

#[test]
fn the_rate_of_a_link_is_the_sum_of_its_flows() {
    let packets = merged([
        flow(0, 2, 2e9, SECOND, 10_000_000),
        flow(1, 2, 3e9, SECOND, 10_000_000),
        flow(0, 3, 1e9, SECOND, 10_000_000),
    ]);
    let (collector, _) = fed(options(Vec::new()), &packets, 100);
    for (port, direction, expected) in [
        (0, PortDirection::Input, 3e9),
        (1, PortDirection::Input, 3e9),
        (2, PortDirection::Output, 5e9),
        (3, PortDirection::Output, 1e9),
        (2, PortDirection::Input, 0.0),
    ] {
        let report = collector.link(port, direction);
        assert!((report.rate.value - expected).abs() <= expected * 0.002, "{report:?}");
        assert_eq!(report.utilisation, report.rate.value / 1e10);
    }
    let flow = collector.flow(&packets[0].key).unwrap();
    assert_eq!((flow.input, flow.output), (Some(PortIndex(0)), Some(PortIndex(2))));
    let rate = flow.rate.unwrap();
    assert_eq!((rate.basis, rate.rate.bound), (Basis::SequenceNumbers, thalweg_sketch::Bound::Unknown));
}

/// After one, two and three time constants a step has covered 63, 86 and 95 % of its height.
#[test]
fn utilisation_is_smoothed_exponentially() {
    let smoothing = Nanos::from_millis(1);
    let options = CollectorOptions { smoothing, ..options(Vec::new()) };
    let packets = flow(0, 1, 5e9, SECOND, 10_000_000);
    let (mut collector, mut output) = (Collector::new(options, Some(network())).unwrap(), Output::default());
    let known = packets.iter().position(|packet| {
        collector.update(&[*packet], &mut output);
        collector.link(1, PortDirection::Output).rate.value > 0.0
    });
    let begun = packets[known.unwrap()].time;
    for packet in &packets[known.unwrap() + 1..] {
        collector.update(&[*packet], &mut output);
        let constants = (packet.time - begun).as_secs_f64() * 1e3;
        let expected = 0.5 * (1.0 - (-constants).exp());
        assert!(
            (collector.link(1, PortDirection::Output).utilisation - expected).abs() < 0.002,
            "{constants}"
        );
    }
}

#[test]
fn a_stopped_flow_leaves_its_links() {
    let (mut collector, mut output) = fed(options(Vec::new()), &flow(0, 1, 5e9, SECOND, 5_000_000), 64);
    collector.advance(Timestamp(SECOND + 5_300_000), &mut output);
    assert!(collector.link(1, PortDirection::Output).rate.value > 4.9e9, "0.3 ms is too short to be idle");
    collector.advance(Timestamp(SECOND + 5_800_000), &mut output);
    let report = collector.link(1, PortDirection::Output);
    assert_eq!((report.rate.value, report.flows), (0.0, 0));
    collector.check_invariants();
    let flow = collector.flows(0..1).next().unwrap();
    assert_eq!(flow.rate.unwrap().rate.value, 0.0);
}

#[test]
fn ongoing_congestion_is_repeated_if_configured() {
    let rule = LinkRule { repeat: Nanos::from_millis(3), ..LinkRule::default() };
    let packets = flow(0, 1, 9.6e9, SECOND, 20_000_000);
    let (mut collector, mut output) = fed(options(vec![rule]), &packets, 64);
    collector.advance(Timestamp(2 * SECOND), &mut output);
    let of_output = output.events.iter().filter(|event| event.link.side == link(1, PortDirection::Output));
    let events: Vec<_> = of_output.map(|event| (event.change, event.time)).collect();
    let changes: Vec<_> = events.iter().map(|&(change, _)| change).collect();
    let mut expected = vec![CongestionChange::Repeated; 8];
    (expected[0], expected[7]) = (CongestionChange::Began, CongestionChange::Cleared);
    assert_eq!(changes, expected, "20 ms of congestion, repeated every 3 ms");
    let apart = events.windows(2).map(|pair| pair[1].1 - pair[0].1);
    assert!(apart.take(6).all(|apart| (3_000_000..3_300_000).contains(&apart.0)), "{events:?}");
}

#[test]
fn a_rerouted_flow_is_reported() {
    let mut packets = flow(0, 1, 5e9, SECOND, 2_000_000);
    let middle = packets.len() / 2;
    let mut shadow = packets[0].ethernet;
    shadow.destination.0[3] = 2;
    packets[middle..].iter_mut().for_each(|packet| packet.ethernet = shadow);
    let (_, output) = fed(options(Vec::new()), &packets, 64);
    let (from, to, time) = (packets[0].ethernet, shadow, packets[middle].time);
    assert_eq!(output.address_changes, [AddressChange { key: packets[0].key, from, to, time }]);
}

#[test]
fn congestion_is_reported_once_and_cleared_once() {
    let packets =
        merged([flow(0, 2, 5e9, SECOND, 20_000_000), flow(1, 2, 4.5e9, SECOND + 5_000_000, 5_000_000)]);
    let (mut collector, mut output) = fed(options(vec![LinkRule::default()]), &packets, 64);
    collector.advance(Timestamp(2 * SECOND), &mut output);
    let events: Vec<_> = output.events.iter().map(|event| (event.change, event.link.side)).collect();
    let output_2 = link(2, PortDirection::Output);
    assert_eq!(events, [(CongestionChange::Began, output_2), (CongestionChange::Cleared, output_2)]);
    let up = &output.events[0];
    let rates: Vec<f64> = up.flows.iter().map(|flow| (flow.rate.value / 1e8).round() / 10.0).collect();
    assert_eq!(rates, [5.0, 4.5]);
    assert_eq!(up.flows[0].key, packets[0].key);
    assert!(up.time.0 - SECOND < 6_000_000, "within 1 ms of the start of the second flow");
    assert!((up.link.utilisation, up.threshold, up.version) > (0.9, 0.9, 0));
    assert_eq!((collector.counters().events, collector.counters().events_delayed), (2, 0));
}

#[test]
fn udp_rates_use_the_tcp_sampling_ratio() {
    let mut packets = merged([flow(0, 2, 4e9, SECOND, 50_000_000), flow(1, 2, 4e9, SECOND, 50_000_000)]);
    let udp: Vec<Packet> = flow(3, 2, 1e9, SECOND, 50_000_000)
        .into_iter()
        .map(|packet| Packet { key: FlowKey::v4(4, 3, 9, 9, Protocol::UDP), ..packet })
        .collect();
    packets = merged([packets, udp.clone()]);
    // One in four, drawn by a hash of its index.
    let sampled: Vec<Packet> = (0u64..)
        .zip(packets)
        .filter(|(n, _)| n.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 62 == 0)
        .map(|(_, packet)| packet)
        .collect();
    let (collector, _) = fed(options(Vec::new()), &sampled, 64);
    let ratio = collector.sampling_ratio().unwrap();
    assert!(ratio.contains(0.25).unwrap() && (ratio.value - 0.25).abs() < 0.02, "{ratio:?}");
    let rate = collector.flow(&udp[0].key).unwrap().rate.unwrap();
    assert_eq!(rate.basis, Basis::SamplingRatio);
    assert!((rate.rate.value / 1e9 - 1.0).abs() < 0.2 && rate.rate.contains(1e9).unwrap(), "{rate:?}");
}

/// A UDP flow of 1 Gbit/s of which the monitor port passes every tenth packet, beside TCP flows of which it passes every
/// fourth.
fn unequally_sampled(identification: impl Fn(u16) -> u16) -> (Vec<Packet>, FlowKey) {
    let every = |packets: Vec<Packet>, nth| packets.into_iter().step_by(nth).collect::<Vec<_>>();
    let tcp = [0, 1].map(|from| every(flow(from, 2, 4e9, SECOND, 50_000_000), 4));
    let key = FlowKey::v4(4, 3, 9, 9, Protocol::UDP);
    let udp = (0..).zip(flow(3, 2, 1e9, SECOND, 50_000_000));
    let udp = udp.map(|(n, packet)| Packet { key, identification: identification(n), ..packet }).collect();
    let [first, second] = tcp;
    (merged([first, second, every(udp, 10)]), key)
}

#[test]
fn counted_identifications_give_the_rate_of_a_flow_that_is_sampled_less_than_others() {
    let (packets, key) = unequally_sampled(|n| n.wrapping_add(65_000));
    let (collector, _) = fed(options(Vec::new()), &packets, 64);
    let rate = collector.flow(&key).unwrap().rate.unwrap();
    assert_eq!(rate.basis, Basis::Identification);
    assert!((rate.rate.value / 1e9 - 1.0).abs() < 0.01, "{rate:?}");
    assert_eq!(rate.known_value(), Some(rate.rate.value));
}

#[test]
fn without_identifications_the_rate_of_a_flow_beside_tcp_is_unknown() {
    let (packets, key) = unequally_sampled(|_| 0);
    let monitor = Some(MonitorPort { rate: BitRate(4_000_000_000), buffer: Bytes(100_000) });
    let (collector, _) = fed(CollectorOptions { monitor, ..options(Vec::new()) }, &packets, 64);
    let rate = collector.flow(&key).unwrap().rate.unwrap();
    assert_eq!((rate.basis, rate.known_value()), (Basis::SamplingRatio, None), "{rate:?}");
    assert!(rate.rate.contains(1e9).unwrap(), "{rate:?}");
}

/// Acknowledgements in bursts of ten, 50 ms apart.
#[test]
fn a_direction_that_resumes_has_a_rate_over_the_burst_before_and_the_silence() {
    let burst = |begin: u64| (0..10).map(move |n| packet(begin + n * 10_000, 0, 1, Protocol::UDP, 0, 100));
    let packets: Vec<Packet> =
        (0..200).map(|n| packet(SECOND + n * 100_000, 0, 1, Protocol::UDP, 0, 100)).collect();
    let begin = packets.last().unwrap().time.0 + 50_000_000;
    let monitor = Some(MonitorPort { rate: BitRate(1_000_000_000), buffer: Bytes(10_000) });
    let options = CollectorOptions { monitor, ..options(Vec::new()) };
    let packets: Vec<Packet> =
        packets.into_iter().chain(burst(begin)).chain(burst(begin + 50_000_000)).collect();
    // Up to the first packet of each burst, read at its time.
    for (end, count) in [(201, 0.0), (211, 10.0)] {
        let (collector, _) = fed(options.clone(), &packets[..end], 1);
        let rate = collector.flow(&packets[0].key).unwrap().rate.unwrap();
        let (from, to) = rate.span;
        assert_eq!(to, packets[end - 1].time);
        if count > 0.0 {
            assert_eq!(from, Timestamp(begin));
            let bits = count * 190.0 * 8.0;
            assert!((rate.rate.value - bits / 0.05).abs() < 1.0, "{rate:?}");
        }
        assert!(from < to && rate.rate.lower().unwrap() > 0.0, "{rate:?}");
    }
}

#[test]
fn without_tcp_a_rate_is_a_lower_bound() {
    let udp = flow(3, 2, 1e9, SECOND, 50_000_000)
        .into_iter()
        .map(|packet| Packet { key: FlowKey::v4(4, 3, 9, 9, Protocol::UDP), ..packet });
    let (collector, _) = fed(options(Vec::new()), &udp.collect::<Vec<_>>(), 64);
    let rate = collector.flows(0..1).next().unwrap().rate.unwrap();
    assert_eq!((rate.basis, rate.rate.upper()), (Basis::SamplesAlone, Some(f64::INFINITY)));
    assert!((rate.rate.lower().unwrap() / 1e9 - 1.0).abs() < 0.01);
    assert_eq!(collector.sampling_ratio(), None);
}

#[test]
fn a_rerouted_flow_keeps_its_rate() {
    let mut packets = flow(0, 1, 4e9, SECOND, 10_000_000);
    let to_3 = default_mac(EndpointId(3));
    let half = packets.len() / 2;
    for packet in &mut packets[half..] {
        packet.ethernet.destination = to_3;
    }
    let (collector, _) = fed(options(Vec::new()), &packets[..half + 1], 7);
    assert_eq!(collector.link(1, PortDirection::Output).rate.value, 0.0);
    assert!(collector.link(3, PortDirection::Output).rate.value > 3.9e9);
}

#[test]
fn a_jump_of_sequence_numbers_gives_no_rate() {
    let mut packets = flow(0, 1, 4e9, SECOND, 300_000_000);
    let at = 2_000;
    for packet in &mut packets[at..] {
        packet.tcp_sequence = packet.tcp_sequence.wrapping_add(1_000_000_000);
    }
    let (collector, _) = fed(options(Vec::new()), &packets, 64);
    let late = collector.counters().rates.late;
    // Another connection is accepted after 100 ms: 32,500 packets.
    assert!((32_000..33_000).contains(&late), "{late}");
    assert!((collector.link(1, PortDirection::Output).rate.value / 4e9 - 1.0).abs() < 0.01);
}

/// One packet of a flow has a timestamp a year ahead; or all of a second file were a year earlier.
#[test]
fn the_collector_recovers_from_timestamp_jumps() {
    const YEAR: u64 = 365 * 86_400 * SECOND;
    let later = flow(0, 2, 9.5e9, SECOND + 50_000_000, 20_000_000);
    let mut wrong = flow(1, 3, 5e9, 2 * YEAR, 1_000_000);
    wrong.truncate(1);
    let rules = vec![LinkRule::default()];
    for before in [wrong, flow(0, 2, 9.5e9, 2 * YEAR, 5_000_000)] {
        let mut packets = flow(0, 2, 1e9, SECOND, 10_000_000);
        packets.extend(before);
        packets.extend(later.iter().copied());
        let (mut collector, mut output) = fed(options(rules.clone()), &packets, 64);
        assert!((collector.link(2, PortDirection::Output).rate.value / 9.5e9 - 1.0).abs() < 0.01);
        assert_eq!(output.events.last().unwrap().change, CongestionChange::Began);
        collector.rates.advance(Timestamp(SECOND + 100_000_000));
        collector.emit_events(&mut output);
        assert_eq!(collector.link(2, PortDirection::Output).rate.value, 0.0);
    }
}

/// At line rate for 1 ms every 2 s: the link is busy while it sends, and not during the pause.
#[test]
fn long_pauses_between_bursts_do_not_raise_the_idle_timeout() {
    let bursts = (0..5).map(|round| flow(0, 1, 9.5e9, SECOND + 2 * round * SECOND, 1_000_000));
    let mut packets = Vec::new();
    for burst in bursts {
        let sequence = packets.last().map_or(0, |packet: &Packet| packet.tcp_sequence.wrapping_add(SEGMENT));
        packets.extend(
            burst
                .into_iter()
                .map(|packet| Packet { tcp_sequence: packet.tcp_sequence.wrapping_add(sequence), ..packet }),
        );
    }
    let (mut collector, mut output) = fed(options(Vec::new()), &packets, 64);
    assert!(collector.link(1, PortDirection::Output).rate.value > 9e9);
    collector.advance(packets.last().unwrap().time + Nanos::from_millis(5), &mut output);
    assert_eq!(collector.link(1, PortDirection::Output).rate.value, 0.0);
}

#[test]
fn a_new_input_port_keeps_the_output_link() {
    let mut packets = flow(0, 2, 9.5e9, SECOND, 10_000_000);
    let half = packets.len() / 2;
    for packet in &mut packets[half..] {
        packet.ethernet.source = default_mac(EndpointId(1));
    }
    let (collector, output) = fed(options(vec![LinkRule::default()]), &packets, 7);
    let on_2 = output.events.iter().filter(|event| event.link.side == link(2, PortDirection::Output));
    assert_eq!(on_2.map(|event| event.change).collect::<Vec<_>>(), [CongestionChange::Began]);
    assert!(collector.link(1, PortDirection::Input).rate.value > 9e9);
    assert_eq!(collector.link(0, PortDirection::Input).rate.value, 0.0);
}

/// Fragments without a sequence number of their own, resets and spoofed segments far ahead.
#[test]
fn packets_without_a_valid_sequence_change_no_rate() {
    let mut packets = flow(0, 1, 4e9, SECOND, 20_000_000);
    let strange = |packet: &Packet, n: usize| match n % 3 {
        0 => Packet { tcp_sequence: 0, fragment: Fragment::Later { identification: 7 }, ..*packet },
        1 => Packet { tcp_sequence: 0, payload_length: 0, tcp_flags: TcpFlags::RST, ..*packet },
        _ => Packet { tcp_sequence: packet.tcp_sequence.wrapping_add(1 << 30), payload_length: 0, ..*packet },
    };
    let strangers: Vec<Packet> =
        packets.iter().step_by(500).enumerate().map(|(n, packet)| strange(packet, n)).collect();
    packets.extend(strangers.iter().copied().filter(|packet| !packet.tcp_flags.contains(TcpFlags::RST)));
    let packets = merged([packets]);
    let (collector, _) = fed(options(Vec::new()), &packets, 64);
    assert!((collector.link(1, PortDirection::Output).rate.value / 4e9 - 1.0).abs() < 0.02);
    assert_eq!(collector.counters().rates.late, 0);
}

#[test]
fn a_new_topology_clears_congestion() {
    let (mut collector, mut output) =
        fed(options(vec![LinkRule::default()]), &flow(0, 2, 9.5e9, SECOND, 5_000_000), 64);
    assert_eq!(output.events.len(), 2, "the input and the output");
    let faster = rack(4, LinkSpec { rate: BitRate(100_000_000_000), ..LinkSpec::default() }).unwrap();
    let links = LinkState::new(&faster);
    let mut versions = (*network()).clone();
    versions
        .push(NetworkState::new(faster, links, Forwarding::ecmp(1)).unwrap(), Timestamp(SECOND + 5_000_000))
        .unwrap();
    collector.set_network(Some(Arc::new(versions)));
    collector.check_invariants();
    let mut packets = flow(0, 2, 9.5e9, SECOND + 6_000_000, 5_000_000);
    packets.iter_mut().for_each(|packet| packet.tcp_sequence = packet.tcp_sequence.wrapping_add(10_000_000));
    collector.update(&packets, &mut output);
    collector.check_invariants();
    let events: Vec<_> = output.events[2..].iter().map(|event| event.change).collect();
    assert_eq!(events, [CongestionChange::Cleared; 2]);
    assert_eq!(collector.link(2, PortDirection::Output).capacity, BitRate(100_000_000_000));
}

#[test]
fn monitor_port_options_give_rate_bounds() {
    let monitor = MonitorPort { rate: BitRate(10_000_000_000), buffer: Bytes(100_000) };
    let with_monitor = CollectorOptions { monitor: Some(monitor), ..options(Vec::new()) };
    let (collector, _) = fed(with_monitor, &flow(0, 1, 4e9, SECOND, 10_000_000), 64);
    let rate = collector.link(1, PortDirection::Output).rate;
    assert_eq!(rate.contains(4e9), Some(true));
    // 81 us of queue in 700 us.
    assert!((rate.upper().unwrap() / rate.value - 1.13).abs() < 0.01, "{rate:?}");
    assert!((rate.lower().unwrap() / rate.value - 0.896).abs() < 0.01, "{rate:?}");
}

#[test]
fn failed_port_inference_is_counted_by_reason() {
    let mut packets = flow(0, 1, 1e9, SECOND, 1_000_000);
    packets.iter_mut().for_each(|packet| packet.ethernet.destination.0 = [2, 0, 0, 0, 0, 1]);
    let (collector, _) = fed(options(Vec::new()), &packets, 64);
    let cases = collector.counters().rates.cases;
    let unknown = thalweg_network::inference::Case::UnknownDestination.index();
    assert_eq!((cases[unknown], cases.iter().sum::<u64>()), (packets.len() as u64, packets.len() as u64));
    let flow = collector.flow(&packets[0].key).unwrap();
    assert_eq!((flow.input, flow.output), (Some(PortIndex(0)), None));
}

#[test]
fn options_out_of_range_are_rejected() {
    let refused = |rule: LinkRule| {
        Collector::new(options(vec![rule]), None).err().map(|error| error.to_string()).unwrap_or_default()
    };
    let message = refused(LinkRule { upper: 0.5, lower: 0.6, ..LinkRule::default() });
    assert_eq!(message, "rule 1: thresholds upper = 0.5, lower = 0.6: expected 0 < lower <= upper");
    assert_ne!(refused(LinkRule { upper: f64::NAN, ..LinkRule::default() }), "");
}

prop_compose! {
    /// Rates of three flows to one host that change every few milliseconds.
    fn any_load()(
        steps in prop::collection::vec((0u8..3, 0u32..11, 1u64..8), 1..25),
    ) -> Vec<Packet> {
        let mut begin = [SECOND; 3];
        let mut sequence = [0u32; 3];
        let mut packets = Vec::new();
        for (from, gigabits, milliseconds) in steps {
            let (flow_number, length) = (usize::from(from), milliseconds * 1_000_000);
            for packet in flow(u16::from(from), 3, f64::from(gigabits.max(1)) * 1e9 / 3.0, begin[flow_number], length) {
                let tcp_sequence = packet.tcp_sequence.wrapping_add(sequence[flow_number]);
                packets.push(Packet { tcp_sequence, ..packet });
            }
            begin[flow_number] += length;
            let sent = packets.iter().rev().find(|packet| packet.ethernet.source == default_mac(EndpointId(u16::from(from))));
            sequence[flow_number] = sent.map_or(0, |packet| packet.tcp_sequence.wrapping_add(SEGMENT));
        }
        merged([packets])
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Under any load: up and down events of a link alternate, up only at or above the upper threshold, down only
    /// below the lower one, and never two within the minimum interval.
    #[test]
    fn congestion_and_clear_events_alternate_at_their_thresholds(
        packets in any_load(), band in 0.0f64..0.4, interval in 0u64..4_000_000, smoothing in 0u64..2_000_000,
    ) {
        let rule = LinkRule { upper: 0.6, lower: 0.6 - band, min_event_interval: Nanos(interval), ..LinkRule::default() };
        let options = CollectorOptions { smoothing: Nanos(smoothing), ..options(vec![rule]) };
        let (_, output) = fed(options, &packets, 64);
        for side in [link(0, PortDirection::Input), link(1, PortDirection::Input), link(2, PortDirection::Input), link(3, PortDirection::Output)] {
            let events: Vec<&CongestionEvent> = output.events.iter().filter(|event| event.link.side == side).collect();
            prop_assert!(events.first().is_none_or(|event| event.change == CongestionChange::Began));
            prop_assert!(events.windows(2).all(|pair| pair[0].change != pair[1].change));
            prop_assert!(events.windows(2).all(|pair| pair[1].time - pair[0].time >= Nanos(interval)));
            for event in events {
                let utilisation = event.link.utilisation;
                prop_assert!(match event.change {
                    CongestionChange::Repeated => false,
                    CongestionChange::Began => utilisation >= 0.6,
                    CongestionChange::Cleared => utilisation < 0.6 - band,
                }, "{event:?}");
            }
        }
    }

    /// Also when flows evict each other from the table.
    #[test]
    fn events_do_not_depend_on_batches_or_queries(
        packets in any_load(), batch in 1usize..300, capacity in 1u32..5,
    ) {
        let rules = vec![LinkRule { upper: 0.5, lower: 0.4, ..LinkRule::default() }];
        let flow_table = FlowTableOptions { capacity, ..FlowTableOptions::default() };
        let options = CollectorOptions { flow_table, ..options(rules) };
        let (_, one) = fed(options.clone(), &packets, 64);
        let (_, other) = fed(options, &packets, batch);
        prop_assert_eq!(one.events, other.events);
    }
}
