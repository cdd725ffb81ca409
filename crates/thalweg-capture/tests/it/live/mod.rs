//! Capture from real interfaces: veth pairs between network namespaces that each test creates and deletes. Needs
//! root; otherwise every test reports that it is skipped.

#![expect(unsafe_code, reason = "setns(2), and frames written to a packet socket")]

mod network;
mod open;
mod prompt;
mod xdp;

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use network::{Network, READER, SENDER, has_capabilities_only};
use thalweg_capture::filter::Filter;
use thalweg_capture::live::{LinkState, LiveError, LiveOptions, LiveSource};
use thalweg_wire::{Bytes, LinkType, Source, Timestamp};

/// UDP and IPv4 header and the Ethernet header before them.
const HEADERS: usize = 14 + 20 + 8;

/// A ring of many small blocks: tests send slowly before they read, and each block timeout uses up a block.
fn options(interface: &str) -> LiveOptions {
    LiveOptions { ring_size: Bytes(32 << 20), block_size: Bytes(64 << 10), ..LiveOptions::new(interface) }
}

/// An owned copy of a captured frame.
#[derive(Clone, Debug)]
struct Seen {
    time: Timestamp,
    bytes: Vec<u8>,
    original_length: u32,
}

/// Reads frames until `batches` batches in a row are empty.
fn read_until_idle(source: &mut impl Source<Error: std::fmt::Debug>, batches: usize) -> Vec<Seen> {
    let (mut seen, mut idle) = (Vec::new(), 0);
    while idle < batches {
        let batch = source.next_batch().unwrap().unwrap();
        idle = if batch.frames.is_empty() { idle + 1 } else { 0 };
        seen.extend(batch.iter().map(|frame| Seen {
            time: frame.time,
            bytes: frame.bytes.to_vec(),
            original_length: frame.original_length,
        }));
    }
    seen
}

/// Calls `next_batch` until the link is in `state`.
fn wait_for(source: &mut LiveSource, state: LinkState) {
    let start = Instant::now();
    while source.link_state() != state {
        assert!(start.elapsed() < Duration::from_secs(5), "the link never was {state:?}");
        source.next_batch().unwrap();
    }
}

fn now() -> Timestamp {
    Timestamp(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as u64)
}

#[test]
fn every_packet_is_captured_once() {
    let Some(network) = Network::new() else { return };
    let mut source = network.open(&options("twl0")).unwrap();
    assert_eq!(source.link_type(), LinkType::Ethernet);
    let before = now();
    for size in [0, 1, 100, 1000] {
        for number in 0..10 {
            network.send_udp(SENDER, 5000 + number, READER, 6000, size);
            network.send_udp(READER, 6000, SENDER, 5000 + number, size);
        }
    }
    let seen = read_until_idle(&mut source, 2);
    assert_eq!(seen.len(), 80, "ten datagrams of each of four sizes, there and back");
    for frame in &seen {
        assert!((before..=now()).contains(&frame.time), "{}", frame.time);
        let udp_length = usize::from(u16::from_be_bytes([frame.bytes[38], frame.bytes[39]]));
        assert_eq!(frame.original_length as usize, HEADERS - 8 + udp_length);
        assert_eq!(frame.bytes.len(), (frame.original_length as usize).min(192));
    }
    assert!(seen.is_sorted_by_key(|frame| frame.time));
    let counters = source.counters();
    assert_eq!((counters.frames, counters.kernel_drops, counters.filtered), (80, 0, 0));
}

#[test]
fn a_packet_arrives_within_three_block_timeouts() {
    let Some(network) = Network::new() else { return };
    let mut source = network.open(&options("twl0")).unwrap();
    let mut delays = Vec::new();
    for _ in 0..20 {
        network.send_udp(SENDER, 5000, READER, 6000, 10);
        let time = loop {
            let batch = source.next_batch().unwrap().unwrap();
            if let Some(frame) = batch.iter().next() {
                break frame.time;
            }
        };
        delays.push(now() - time);
    }
    delays.sort();
    assert!(delays[10].0 < 30_000_000, "half of them took {} or longer", delays[10]);
}

#[test]
fn vlan_tags_are_restored() {
    let Some(network) = Network::new() else { return };
    let mut source = network.open(&options("twl0")).unwrap();
    let frames: Vec<Vec<u8>> = [
        network.frame(&[0x81, 0x00, 0x60, 0x05, 0x08, 0x00], 60),
        network.frame(&[0x88, 0xa8, 0x00, 0x64, 0x81, 0x00, 0x0f, 0xff, 0x08, 0x00], 60),
        network.frame(&[0x81, 0x00, 0x00, 0x00, 0x86, 0xdd], 1400),
        network.frame(&[0x08, 0x00], 60),
    ]
    .into();
    for frame in &frames {
        network.send_frame(frame);
    }
    let seen = read_until_idle(&mut source, 2);
    assert_eq!(seen.len(), frames.len());
    for (seen, sent) in seen.iter().zip(&frames) {
        assert_eq!(seen.original_length as usize, sent.len());
        assert_eq!(seen.bytes, sent[..sent.len().min(192)]);
    }
}

#[test]
fn live_and_file_filters_agree() {
    let Some(network) = Network::new() else { return };
    let udp = |ethertypes: &[u8]| {
        let mut frame = network.frame(ethertypes, 46);
        let at = 12 + ethertypes.len();
        frame[at] = 0x45;
        frame[at + 6..at + 8].fill(0);
        frame[at + 9] = 17;
        frame
    };
    let frames = [udp(&[8, 0]), udp(&[0x81, 0, 0, 5, 8, 0]), udp(&[0x81, 0, 0, 6, 8, 0]), udp(&[8, 6])];
    for (expression, accepted, refused_here) in [
        ("udp", vec![0], 2),
        ("vlan", vec![1, 2], 0),
        ("vlan 5", vec![1], 1),
        ("udp or (vlan 6 and udp)", vec![0, 2], 1),
        ("arp or len > 62", vec![1, 2, 3], 0),
    ] {
        let mut source =
            match network.open(&LiveOptions { filter: Some(expression.into()), ..options("twl0") }) {
                Err(LiveError::Filter(error)) => return crate::skip::skip(error),
                opened => opened.unwrap(),
            };
        frames.iter().for_each(|frame| network.send_frame(frame));
        let seen: Vec<_> = read_until_idle(&mut source, 2).into_iter().map(|seen| seen.bytes).collect();
        let expected: Vec<_> = accepted.iter().map(|&index: &usize| frames[index].clone()).collect();
        assert_eq!(seen, expected, "{expression}");
        let filter = Filter::compile(expression, LinkType::Ethernet, 0).unwrap();
        let on_file: Vec<_> =
            frames.iter().filter(|frame| filter.matches(frame, frame.len() as u32)).cloned().collect();
        assert_eq!(seen, on_file, "{expression}");
        assert_eq!(source.counters().filtered, refused_here, "{expression}");
    }
}

#[test]
fn a_group_keeps_both_directions_of_a_flow_together() {
    let Some(network) = Network::new() else { return };
    let mut group = network.open_group(&options("twl0"), NonZeroUsize::new(2).unwrap()).unwrap();
    for port in 5000..5064 {
        for _ in 0..3 {
            network.send_udp(SENDER, port, READER, 6000, 20);
            network.send_udp(READER, 6000, SENDER, port, 20);
        }
    }
    let mut workers_of_flow: BTreeMap<u16, BTreeSet<usize>> = BTreeMap::new();
    let mut frame_counts = Vec::new();
    for (worker, source) in group.iter_mut().enumerate() {
        let seen = read_until_idle(source, 2);
        frame_counts.push(seen.len());
        for frame in seen {
            let port = |at: usize| u16::from_be_bytes([frame.bytes[at], frame.bytes[at + 1]]);
            workers_of_flow.entry(port(34).min(port(36))).or_default().insert(worker);
        }
    }
    assert_eq!(frame_counts.iter().sum::<usize>(), 64 * 6, "{frame_counts:?}");
    assert_eq!(workers_of_flow.len(), 64);
    assert!(workers_of_flow.values().all(|workers| workers.len() == 1), "{workers_of_flow:?}");
    // All 64 flows on one of two workers by chance: once in 2^63 runs.
    assert!(frame_counts.iter().all(|&count| count > 0), "{frame_counts:?}");
}

#[test]
fn dropped_frames_are_counted() {
    let Some(network) = Network::new() else { return };
    let small = LiveOptions { ring_size: Bytes(128 << 10), ..options("twl0") };
    let mut source = network.open(&small).unwrap();
    network.send_udp_many(SENDER, 5000, READER, 6000, 300, 3000);
    let seen = read_until_idle(&mut source, 2).len() as u64;
    let counters = source.counters();
    assert_eq!(counters.frames, seen);
    assert!(counters.kernel_drops > 0 && counters.kernel_freezes > 0, "{counters:?}");
    assert_eq!(counters.frames + counters.kernel_drops, 3000);
    assert_eq!(source.counters(), counters, "reading the counters does not change them");

    network.send_udp_many(SENDER, 5000, READER, 6000, 300, 10);
    assert_eq!(read_until_idle(&mut source, 2).len(), 10, "the ring continues after it was full");
}

#[test]
fn the_ring_wraps_around() {
    let Some(network) = Network::new() else { return };
    // Three blocks: one round of sending fills one, and not all are passed on by their timeout meanwhile.
    let block_timeout = thalweg_wire::Nanos::from_millis(50);
    let small = LiveOptions { ring_size: Bytes(192 << 10), block_timeout, ..options("twl0") };
    let mut source = network.open(&small).unwrap();
    let mut seen = 0;
    for _ in 0..20 {
        network.send_udp_many(SENDER, 5000, READER, 6000, 300, 200);
        seen += read_until_idle(&mut source, 1).len();
    }
    assert_eq!((seen, source.counters().kernel_drops), (4000, 0));
}

#[test]
fn capture_resumes_when_the_interface_comes_up() {
    let Some(network) = Network::new() else { return };
    for workers in [1, 2] {
        let mut group = network.open_group(&options("twl0"), NonZeroUsize::new(workers).unwrap()).unwrap();
        group.iter_mut().for_each(|source| wait_for(source, LinkState::Up));
        network.ip_reader(&["link", "set", "twl0", "down"]);
        group.iter_mut().for_each(|source| wait_for(source, LinkState::Down));
        network.ip_reader(&["link", "set", "twl0", "up"]);
        network.add_neighbours();
        group.iter_mut().for_each(|source| wait_for(source, LinkState::Up));
        network.send_udp_many(SENDER, 5000, READER, 6000, 10, 5);
        let seen: usize = group.iter_mut().map(|source| read_until_idle(source, 2).len()).sum();
        assert_eq!(seen, 5, "{workers} workers");
    }
}

#[test]
fn an_interface_may_be_down_when_it_is_opened() {
    let Some(network) = Network::new() else { return };
    network.ip_reader(&["link", "set", "twl0", "down"]);
    let mut source = network.open(&options("twl0")).unwrap();
    assert_eq!(source.link_state(), LinkState::Down);
    assert!(source.next_batch().unwrap().unwrap().frames.is_empty());
    network.ip_reader(&["link", "set", "twl0", "up"]);
    network.add_neighbours();
    wait_for(&mut source, LinkState::Up);
    network.send_udp(SENDER, 5000, READER, 6000, 10);
    assert_eq!(read_until_idle(&mut source, 2).len(), 1);
}

#[test]
fn a_deleted_interface_ends_the_source_after_its_last_packet() {
    let Some(network) = Network::new() else { return };
    let slow = LiveOptions { block_timeout: thalweg_wire::Nanos::from_millis(200), ..options("twl0") };
    let mut source = network.open(&slow).unwrap();
    network.send_udp_many(SENDER, 5000, READER, 6000, 300, 1500);
    network.ip_reader(&["link", "delete", "twl0"]);
    let (mut seen, start) = (0, Instant::now());
    let error = loop {
        assert!(start.elapsed() < Duration::from_secs(10), "the source never ended");
        match source.next_batch() {
            Ok(batch) => seen += batch.unwrap().frames.len(),
            Err(error) => break error,
        }
    };
    assert!(matches!(&error, LiveError::InterfaceGone { name } if name == "twl0"), "{error}");
    assert_eq!(seen, 1500);
    assert_eq!(source.link_state(), LinkState::Gone);
    assert_eq!(source.counters().frames, 1500, "counters outlive the interface");
}

#[test]
fn a_renamed_interface_is_still_captured() {
    let Some(network) = Network::new() else { return };
    let mut source = network.open(&options("twl0")).unwrap();
    network.ip_reader(&["link", "set", "twl0", "down"]);
    network.ip_reader(&["link", "set", "twl0", "name", "other"]);
    network.ip_reader(&["link", "set", "other", "up"]);
    wait_for(&mut source, LinkState::Up);
    network.send_frame(&network.frame(&[8, 0], 60));
    assert_eq!(read_until_idle(&mut source, 2).len(), 1);
}

#[test]
fn loopback_packets_are_seen_once() {
    let Some(network) = Network::new() else { return };
    for workers in [1, 2] {
        let mut group = network.open_group(&options("lo"), NonZeroUsize::new(workers).unwrap()).unwrap();
        network.send_udp("127.0.0.1", 5000, "127.0.0.1", 5000, 10);
        let seen: usize = group.iter_mut().map(|source| read_until_idle(source, 2).len()).sum();
        assert_eq!(seen, 1, "{workers} workers");
    }
}

#[test]
fn a_tunnel_device_without_link_header_gives_raw_ip() {
    let Some(network) = Network::new() else { return };
    network.ip_reader(&["tuntap", "add", "dev", "twl-tun", "mode", "tun"]);
    let source = network.open(&options("twl-tun")).unwrap();
    assert_eq!((source.link_type(), source.link_state()), (LinkType::RawIp, LinkState::Down));
}

#[test]
fn an_unknown_interface_suggests_the_nearest_name() {
    let Some(network) = Network::new() else { return };
    let error = network.open(&options("twl00")).unwrap_err();
    let LiveError::NoSuchInterface { nearest, existing, .. } = &error else { panic!("{error}") };
    assert_eq!(nearest.as_deref(), Some("twl0"));
    assert_eq!(
        existing.iter().collect::<BTreeSet<_>>(),
        BTreeSet::from([&"lo".to_owned(), &"twl0".to_owned()])
    );
    assert!(error.to_string().contains("`twl00` does not exist (did you mean `twl0`?)"), "{error}");
    let error = network.open(&options("a-name-that-is-far-too-long")).unwrap_err();
    assert!(matches!(error, LiveError::NoSuchInterface { nearest: None, .. }), "{error}");
}

#[test]
fn cap_net_raw_is_sufficient_and_required() {
    let Some(network) = Network::new() else { return };
    let everything = LiveOptions { promiscuous: true, ..options("twl0") };
    let two = NonZeroUsize::new(2).unwrap();
    network.in_reader(|| {
        has_capabilities_only(&[caps::Capability::CAP_NET_RAW]);
        LiveSource::open_group(&everything, two).unwrap();
        has_capabilities_only(&[]);
        let error = LiveSource::open_group(&everything, two).unwrap_err();
        assert!(matches!(error, LiveError::NoPermission { .. }), "{error}");
        assert!(error.to_string().contains("sudo setcap cap_net_raw=ep /"), "{error}");
    });
}

#[test]
fn a_group_never_moves_a_flow_between_workers() {
    let Some(network) = Network::new() else { return };
    let (is_open, sent_count) = (AtomicBool::new(false), AtomicU32::new(0));
    let mut group = std::thread::scope(|scope| {
        scope.spawn(|| network.send_flows_until(16, &is_open, &sent_count));
        while sent_count.load(Ordering::Relaxed) < 100 {
            std::thread::yield_now();
        }
        let group = network.open_group(&options("twl0"), NonZeroUsize::new(2).unwrap());
        let enough = sent_count.load(Ordering::Relaxed).saturating_add(1000);
        while sent_count.load(Ordering::Relaxed) < enough {
            std::thread::yield_now();
        }
        is_open.store(true, Ordering::Relaxed);
        group.unwrap()
    });
    // By flow: the workers that received it, and the numbers of its datagrams.
    let mut flows: BTreeMap<u16, (BTreeSet<usize>, Vec<u32>)> = BTreeMap::new();
    for (worker, source) in group.iter_mut().enumerate() {
        for frame in read_until_idle(source, 2) {
            let port = u16::from_be_bytes([frame.bytes[34], frame.bytes[35]]);
            let number = u32::from_be_bytes(frame.bytes[HEADERS..HEADERS + 4].try_into().unwrap());
            let (workers, numbers) = flows.entry(port).or_default();
            workers.insert(worker);
            numbers.push(number);
        }
        assert_eq!(source.counters().kernel_drops, 0);
    }
    // If the first worker had accepted frames before the second joined, each flow would have moved with probability
    // 1/2: all sixteen would have stayed once in 65,536 runs.
    assert_eq!(flows.len(), 16);
    for (port, (workers, numbers)) in flows {
        assert_eq!(workers.len(), 1, "port {port} moved");
        assert!(numbers.iter().zip(&numbers[1..]).all(|(a, b)| a + 1 == *b), "port {port}: {numbers:?}");
    }
}
