use etherparse::{PacketHeaders, TransportHeader};
use thalweg_network::topology::shapes::{Tiers, leaf_spine, rack};
use thalweg_network::{LinkSpec, PortIndex, RouterId};
use thalweg_wire::{BitRate, Bytes, Nanos, Protocol};

use super::*;
use crate::core::blueprint::Blueprint;
use crate::hosts::{HostConfig, Hosts};
use crate::ports::monitor::Monitor;
use crate::schemes::list::Scheme;
use crate::workloads::{FlowStart, Workload};

/// One flow from h0 to h1.
struct OneFlow(Option<FlowStart>);

impl Workload for OneFlow {
    fn next_start(&self) -> Option<Timestamp> {
        self.0.map(|flow| flow.at)
    }

    fn start(&mut self) -> Option<FlowStart> {
        self.0.take()
    }

    fn completed(&mut self, _flow: u32, _at: Timestamp) {}
}

#[test]
fn a_mirrored_flow_has_valid_addresses_and_sequence_numbers() {
    let topology =
        rack(2, LinkSpec { rate: BitRate(1_000_000_000), delay: Nanos::ZERO, ..LinkSpec::default() })
            .unwrap();
    let monitor = Monitor {
        router: RouterId(0),
        ports: vec![PortIndex(0), PortIndex(1)],
        rate: BitRate(10_000_000_000),
        buffer: Bytes(1 << 20),
    };
    let blueprint =
        Blueprint { monitors: std::slice::from_ref(&monitor), ..Blueprint::new(&topology, 1_500, 1) };
    let scheme = Scheme::default_of("droptail").unwrap();
    let mut network = crate::network::build(&scheme, &blueprint).unwrap();
    let mut hosts = Hosts::new(HostConfig::default(), 2, blueprint.clock).unwrap();
    let bytes = 100_000;
    let start =
        FlowStart { at: Timestamp(0), source: EndpointId(0), destination: EndpointId(1), bytes, dscp: 10 };
    let mut workload = OneFlow(Some(start));
    let mut source = MirrorSource::new(&topology, blueprint.clock, "r0");
    let mut mirrored = Vec::new();
    for _ in 0..2_000 {
        hosts.slot(&mut *network, &mut workload);
        network.take_mirrored(&mut mirrored);
        mirrored.drain(..).for_each(|packet| source.push(&packet, hosts.segment(packet.packet.id())));
    }
    source.end();

    let (mut next, mut acknowledged, mut data_frames) = (0, 0, 0);
    let mut last = Timestamp(0);
    let batch = source.next_batch().unwrap().unwrap();
    assert_eq!(batch.interfaces[0].name.as_deref(), Some("r0"));
    for frame in batch.iter() {
        assert!(frame.time >= last, "in order of time");
        last = frame.time;
        // The payload, all zeros, was not captured.
        let mut whole = frame.bytes.to_vec();
        whole.resize(frame.original_length as usize, 0);
        let headers = PacketHeaders::from_ethernet_slice(&whole).unwrap();
        let (Some(etherparse::LinkHeader::Ethernet2(ethernet)), Some(etherparse::NetHeaders::Ipv4(ip, _))) =
            (headers.link, headers.net)
        else {
            panic!("Ethernet and IPv4");
        };
        let Some(TransportHeader::Tcp(tcp)) = headers.transport else { panic!("TCP") };
        assert_eq!(ip.header_checksum, ip.calc_header_checksum());
        let payload = usize::from(ip.total_len) - ip.header_len() - tcp.header_len();
        assert_eq!(tcp.checksum, tcp.calc_checksum_ipv4(&ip, &vec![0; payload]).unwrap());
        assert_eq!(ip.dscp.value(), 10);
        let forth = ethernet.source == topology.mac(EndpointId(0), 0).0;
        let (from, to): (u16, u16) = if forth { (0, 1) } else { (1, 0) };
        assert_eq!(ethernet.destination, topology.mac(EndpointId(to), 0).0);
        assert_eq!(ip.source, topology.endpoints()[usize::from(from)].ip.octets());
        assert_eq!(ip.destination, topology.endpoints()[usize::from(to)].ip.octets());
        if forth {
            assert_eq!(tcp.sequence_number, next, "no loss, so in order");
            next += payload as u32;
            data_frames += 1;
            assert!(frame.original_length >= u32::from(ip.total_len) + 14);
        } else {
            assert!(tcp.acknowledgment_number >= acknowledged && tcp.acknowledgment_number <= next);
            acknowledged = tcp.acknowledgment_number;
        }
        // Our own parser reads the same.
        let packet = thalweg_wire::parse::Parser::default().parse(&frame).unwrap();
        assert_eq!(flow_ports::flow(packet.key.src_port, packet.key.dst_port), 0);
        assert_eq!(packet.key.src_port >= 32_768, forth, "the flow's source has the higher port");
        assert_eq!((packet.key.protocol, packet.tcp_sequence), (Protocol::TCP, tcp.sequence_number));
        assert_eq!(packet.ip_length, u32::from(ip.total_len));
    }
    assert_eq!((u64::from(next), u64::from(acknowledged)), (bytes, bytes));
    assert_eq!(data_frames, 70, "100,000 bytes in segments of 1,448");
    assert_eq!(source.next_batch().unwrap().map(|batch| batch.frames.len()), None);
}

#[test]
fn packets_without_a_segment_are_udp() {
    let topology =
        rack(2, LinkSpec { rate: BitRate(1_000_000_000), delay: Nanos::ZERO, ..LinkSpec::default() })
            .unwrap();
    let clock = SlotClock { slot_bytes: 1_538, rate: BitRate(1_000_000_000) };
    let mut source = MirrorSource::new(&topology, clock, "r0");
    for (length, ip_length) in [(1_538, 1_500), (84, 46)] {
        let packet = Packet::new(EndpointId(1), EndpointId(0), 77, 3, length).with_address(2);
        source.push(&Mirrored { router: RouterId(0), packet, at: crate::ticks::Ticks(1 << 24) }, None);
        let batch = source.next_batch().unwrap().unwrap();
        let frame = batch.iter().next().unwrap();
        assert_eq!(frame.bytes[..6], topology.mac(EndpointId(0), 2).0, "the shadow address");
        assert_eq!(frame.time, Timestamp(12_304));
        let packet = thalweg_wire::parse::Parser::default().parse(&frame).unwrap();
        assert_eq!((packet.key.protocol, packet.ip_length), (Protocol::UDP, ip_length));
        assert_eq!(flow_ports::flow(packet.key.src_port, packet.key.dst_port), 77);
    }
}

#[test]
fn a_feed_delivers_only_the_packets_of_its_ports() {
    let topology = leaf_spine(2, 1, 1, Tiers::default()).unwrap();
    let monitor = |router: RouterId| Monitor {
        router,
        ports: vec![PortIndex(0)],
        rate: BitRate(10_000_000_000),
        buffer: Bytes(1 << 20),
    };
    let monitors: Vec<Monitor> = topology.router_ids().map(monitor).collect();
    let blueprint = Blueprint { monitors: &monitors, ..Blueprint::new(&topology, 1_500, 1) };
    let mut network = crate::network::build(&Scheme::default_of("droptail").unwrap(), &blueprint).unwrap();
    let mut hosts = Hosts::new(HostConfig::default(), 2, blueprint.clock).unwrap();
    let (at, source, destination) = (Timestamp(0), EndpointId(0), EndpointId(1));
    let mut workload = OneFlow(Some(FlowStart { at, source, destination, bytes: 100_000, dscp: 0 }));
    let mut feed = MirrorFeed::new(&topology, blueprint.clock, [RouterId(1), RouterId(0)]);
    assert!(feed.source(RouterId(2)).is_none() && feed.source(RouterId(0)).is_some());
    let (mut collected, mut asked, mut delivered) = (0, 0, [0; 3]);
    for slot in 0..2_000 {
        hosts.slot(&mut *network, &mut workload);
        collected += feed.collect(&mut *network, |copy| {
            asked += 1;
            hosts.segment(copy.packet.id())
        });
        if slot % 100 == 99 {
            let mut order = Vec::new();
            feed.deliver(|router, batch| {
                order.push(router);
                delivered[router.index()] += batch.frames.len();
            });
            assert_eq!(order, [RouterId(1), RouterId(0)], "every port, in the order given");
        }
    }
    let sent = |router| network.monitor_tally(router).unwrap().sent.packets as usize;
    assert!(sent(RouterId(2)) > 0);
    assert_eq!(delivered, [sent(RouterId(0)), sent(RouterId(1)), 0]);
    assert_eq!((collected, asked), (delivered.iter().sum(), collected));
    let refused = feed.try_deliver(|router, _| if router == RouterId(1) { Err("full") } else { Ok(()) });
    assert_eq!(refused, Err("full"));
}
