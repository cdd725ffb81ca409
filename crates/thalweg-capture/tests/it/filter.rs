//! Capture filters in front of a source, compared with tcpdump.

use std::convert::Infallible;
use std::io::Write;
use std::process::{Command, Stdio};

use proptest::prelude::*;
use thalweg_capture::filter::{Filter, Filtered, FilteredError};
use thalweg_wire::{Batch, FrameRef, Interface, LinkType, Source, SourceCounters, Timestamp};

/// Frames in memory, returned a few at a time.
struct Memory {
    bytes: Vec<u8>,
    frames: Vec<FrameRef>,
    interfaces: Vec<Interface>,
    batch_size: usize,
    done: usize,
}

impl Memory {
    fn new(frames: &[(LinkType, Vec<u8>)], batch_size: usize) -> Memory {
        let mut memory = Memory { bytes: vec![], frames: vec![], interfaces: vec![], batch_size, done: 0 };
        for (index, (link_type, bytes)) in frames.iter().enumerate() {
            memory.frames.push(FrameRef {
                time: Timestamp(index as u64),
                offset: memory.bytes.len(),
                captured_length: bytes.len() as u32,
                original_length: bytes.len() as u32,
                interface: index as u32,
            });
            memory.interfaces.push(Interface { name: None, link_type: *link_type, snap_length: 0 });
            memory.bytes.extend(bytes);
        }
        memory
    }
}

impl Source for Memory {
    type Error = Infallible;

    fn next_batch(&mut self) -> Result<Option<Batch<'_>>, Infallible> {
        let end = self.frames.len().min(self.done + self.batch_size);
        let frames = &self.frames[self.done..end];
        self.done = end;
        // An interface appears with its first frame, as in a pcapng file.
        let batch = Batch { bytes: &self.bytes, frames, interfaces: &self.interfaces[..end] };
        Ok((!frames.is_empty()).then_some(batch))
    }

    fn counters(&mut self) -> SourceCounters {
        SourceCounters { frames: self.done as u64, ..SourceCounters::default() }
    }
}

/// Whether libpcap is available; otherwise the rest of a test is skipped.
fn has_libpcap() -> bool {
    let probe = Filter::compile("ip", LinkType::Ethernet, 0);
    if let Err(error) = &probe {
        crate::skip::skip(error);
    }
    probe.is_ok()
}

/// An IPv4 header of the given protocol.
fn ipv4(protocol: u8) -> Vec<u8> {
    let mut bytes = vec![0; 40];
    bytes[0] = 0x45;
    bytes[9] = protocol;
    bytes
}

fn ethernet(protocol: u8) -> Vec<u8> {
    let mut bytes = vec![0; 12];
    bytes.extend([8, 0]);
    bytes.extend(ipv4(protocol));
    bytes
}

fn times_of_all(source: &mut Filtered<Memory>) -> Vec<u64> {
    let mut times = Vec::new();
    while let Some(batch) = source.next_batch().unwrap() {
        times.extend(batch.iter().map(|frame| frame.time.0));
    }
    times
}

#[test]
fn accepted_frames_keep_their_order() {
    if !has_libpcap() {
        return;
    }
    let frames: Vec<_> =
        (0..100).map(|i| (LinkType::Ethernet, ethernet(if i % 3 == 0 { 17 } else { 6 }))).collect();
    let mut source = Filtered::new(Memory::new(&frames, 7), "udp").unwrap();
    assert_eq!(times_of_all(&mut source), (0..100).step_by(3).collect::<Vec<_>>());
    let counters = source.counters();
    assert_eq!((counters.frames, counters.filtered), (34, 66));
}

#[test]
fn each_link_type_has_its_own_filter() {
    if !has_libpcap() {
        return;
    }
    let frames = [
        (LinkType::Ethernet, ethernet(17)),
        (LinkType::RawIp, ipv4(17)),
        (LinkType::Ethernet, ethernet(6)),
        (LinkType::RawIp, ipv4(6)),
        (LinkType::Other(9999), ipv4(17)),
    ];
    let mut source = Filtered::new(Memory::new(&frames, 2), "udp").unwrap();
    assert_eq!(times_of_all(&mut source), [0, 1]);
    assert_eq!(source.counters().filtered, 3);
}

#[test]
fn an_unsuitable_expression_names_the_link_type() {
    if !has_libpcap() {
        return;
    }
    let frames = [(LinkType::RawIp, ipv4(17))];
    let mut source = Filtered::new(Memory::new(&frames, 2), "vlan 5").unwrap();
    let Err(FilteredError::Filter(error)) = source.next_batch() else { panic!("no error") };
    assert!(error.to_string().starts_with("invalid capture filter `vlan 5` for raw IP frames: "), "{error}");
}

const EXPRESSIONS: [&str; 12] = [
    "tcp",
    "udp port 53",
    "host 10.0.0.1",
    "net 10.0.0.0/30 and not tcp",
    "vlan",
    "vlan 5 and tcp",
    "tcp or (vlan and tcp)",
    "ip6",
    "greater 70",
    "tcp[tcpflags] & tcp-syn != 0",
    "ether multicast or arp",
    "ip[8] < 64 and portrange 50-60",
];

/// Frames similar to those that the expressions match.
fn a_frame() -> impl Strategy<Value = Vec<u8>> {
    let ethertype = prop_oneof![Just(0x0800_u16), Just(0x0800), Just(0x86dd), Just(0x0806), any::<u16>()];
    let protocol = prop_oneof![Just(6_u8), Just(17), Just(1), any::<u8>()];
    let port = prop_oneof![Just(53_u16), 45..65_u16, any::<u16>()];
    let payload = proptest::collection::vec(any::<u8>(), 60);
    (proptest::option::of(0..8_u16), ethertype, protocol, port, 0..4_u8, payload, 14..78_usize).prop_map(
        |(vlan, ethertype, protocol, port, host, mut layer3, length)| {
            layer3[0] = if ethertype == 0x86dd { 0x60 } else { 0x45 };
            layer3[6..8].fill(0);
            layer3[9] = protocol;
            layer3[12..16].copy_from_slice(&[10, 0, 0, host]);
            layer3[22..24].copy_from_slice(&port.to_be_bytes());
            let mut frame = vec![host & 1; 12];
            if let Some(vlan) = vlan {
                frame.extend([0x81, 0]);
                frame.extend(vlan.to_be_bytes());
            }
            frame.extend(ethertype.to_be_bytes());
            frame.extend(layer3);
            frame.truncate(length);
            frame
        },
    )
}

/// A pcap file of Ethernet frames.
fn pcap_of(frames: &[Vec<u8>]) -> Vec<u8> {
    let mut file = Vec::new();
    for word in [0xa1b2_c3d4_u32, 0x0004_0002, 0, 0, 65_535, 1] {
        file.extend(word.to_le_bytes());
    }
    for frame in frames {
        for word in [0, 0, frame.len() as u32, frame.len() as u32] {
            file.extend(word.to_le_bytes());
        }
        file.extend(frame);
    }
    file
}

/// The frames of a pcap file written on this machine.
fn frames_of(mut file: &[u8]) -> Vec<Vec<u8>> {
    let mut frames = Vec::new();
    file = &file[24..];
    while !file.is_empty() {
        let length = u32::from_le_bytes(file[8..12].try_into().unwrap()) as usize;
        frames.push(file[16..16 + length].to_vec());
        file = &file[16 + length..];
    }
    frames
}

/// The frames that tcpdump accepts; `None` without tcpdump.
fn tcpdump(expression: &str, file: Vec<u8>) -> Option<Vec<Vec<u8>>> {
    let mut child = Command::new("tcpdump")
        .args(["-r", "-", "-w", "-", expression])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .ok()?;
    let mut stdin = child.stdin.take().unwrap();
    let writer = std::thread::spawn(move || stdin.write_all(&file));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap().unwrap();
    Some(frames_of(&output.stdout))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8))]

    #[test]
    fn filters_agree_with_tcpdump(frames in proptest::collection::vec(a_frame(), 100..200)) {
        if !has_libpcap() {
            return Ok(());
        }
        for expression in EXPRESSIONS {
            let Some(theirs) = tcpdump(expression, pcap_of(&frames)) else {
            crate::skip::skip("tcpdump is not installed");
                return Ok(());
            };
            let filter = Filter::compile(expression, LinkType::Ethernet, 0).unwrap();
            let ours: Vec<_> =
                frames.iter().filter(|frame| filter.matches(frame, frame.len() as u32)).cloned().collect();
            prop_assert_eq!(ours, theirs, "{}", expression);
        }
    }
}
