//! Packets of DPDK ports, with the feature `dpdk`. DPDK starts once in a process, so all of these tests share it, and each has
//! devices with numbers of its own.

#![cfg(feature = "dpdk")]

#[allow(dead_code, unsafe_code, reason = "part of the tests of live interfaces, which use all of it")]
#[path = "it/live/network.rs"]
mod network;
#[path = "it/skip.rs"]
mod skip;

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::process::Command;

use network::{Network, READER, SENDER};
use thalweg_capture::dpdk::{DpdkError, DpdkOptions, DpdkSource};
use thalweg_capture::file::FileSource;
use thalweg_capture::live::LinkState;
use thalweg_capture::{CaptureError, Opened, Readers, Spec, open};
use thalweg_linux::privileges::drop_thread_capabilities;
use thalweg_linux::socket::Socket;
use thalweg_wire::{Batch, Source};

const ONE: NonZeroUsize = NonZeroUsize::MIN;

/// Length and first bytes of a frame.
type Seen = (u32, Vec<u8>);

fn seen(batch: &Batch<'_>, snap_length: usize) -> Vec<Seen> {
    let cut = |bytes: &[u8]| bytes[..bytes.len().min(snap_length)].to_vec();
    batch.iter().map(|frame| (frame.original_length, cut(frame.bytes))).collect()
}

/// Returns all frames of a file.
fn of_file(path: &Path, snap_length: usize) -> Vec<Seen> {
    let mut source = FileSource::open(path).unwrap();
    let mut frames = Vec::new();
    while let Some(batch) = source.next_batch().unwrap() {
        // The driver reads the captured part of a frame, and takes it to be the whole.
        frames.extend(batch.iter().map(|frame| {
            (frame.bytes.len() as u32, frame.bytes[..frame.bytes.len().min(snap_length)].to_vec())
        }));
    }
    frames
}

/// Reads a port until nothing arrives.
fn of_port(source: &mut DpdkSource, snap_length: usize) -> Vec<Seen> {
    let (mut frames, mut filtered) = (Vec::new(), 0);
    loop {
        let batch = source.next_batch().unwrap().unwrap();
        let is_empty = batch.frames.is_empty();
        frames.extend(seen(&batch, snap_length));
        let rejected = source.counters().filtered;
        if is_empty && rejected == filtered {
            return frames;
        }
        filtered = rejected;
    }
}

/// Opens a port of a file; each test has a number of its own, because all ports are in one process.
fn open_file(number: u32, path: &Path, options: DpdkOptions) -> DpdkSource {
    let device = format!("net_pcap{number},rx_pcap={}", path.display());
    let mut group = DpdkSource::open_group(&DpdkOptions { device, ..options }, ONE).unwrap();
    assert_eq!(group.len(), 1);
    group.pop().unwrap()
}

fn options() -> DpdkOptions {
    DpdkOptions::new("")
}

fn example() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/two-hosts.pcap")
}

#[test]
fn a_port_of_a_file_delivers_the_frames_of_the_file() {
    let mut source = open_file(0, &example(), options());
    assert!(source.name().starts_with("dpdk:net_pcap0,"));
    let frames = of_port(&mut source, 192);
    assert_eq!(frames, of_file(&example(), 192));
    let counters = source.counters();
    assert_eq!((counters.frames, counters.kernel_drops), (frames.len() as u64, 0));
    assert_eq!(source.link_state(), LinkState::Up);
}

#[test]
fn frames_of_several_segments_are_joined() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("jumbo.pcap");
    // Beyond a packet buffer of 2,048 bytes.
    let lengths = [60_u32, 2_049, 9_000, 65_535];
    std::fs::write(&path, pcap(lengths.map(frame))).unwrap();
    let snap_length = 65_535;
    let mut source = open_file(1, &path, DpdkOptions { snap_length, ..options() });
    let frames = of_port(&mut source, snap_length as usize);
    let whole: Vec<Seen> = lengths.iter().map(|&length| (length, frame(length))).collect();
    assert!(
        frames == whole,
        "{:?}",
        frames.iter().map(|(length, bytes)| (length, bytes.len())).collect::<Vec<_>>()
    );
}

#[test]
fn frames_are_cut_at_the_snap_length_and_keep_their_length() {
    let mut source = open_file(2, &example(), DpdkOptions { snap_length: 64, ..options() });
    let frames = of_port(&mut source, usize::MAX);
    assert!(frames.iter().any(|(length, _)| *length > 64));
    assert!(frames.iter().all(|(length, bytes)| bytes.len() == (*length).min(64) as usize));
    assert_eq!(frames, of_file(&example(), 64));
}

#[test]
fn a_filter_counts_what_it_rejects() {
    let filter = Some("udp".to_owned());
    let options = DpdkOptions { filter, ..options() };
    let device = format!("net_pcap3,rx_pcap={}", example().display());
    let mut group = match DpdkSource::open_group(&DpdkOptions { device, ..options }, ONE) {
        Err(DpdkError::Filter(error)) => return skip::skip(error),
        opened => opened.unwrap(),
    };
    let all = of_file(&example(), 192).len() as u64;
    let accepted = of_port(&mut group[0], 192).len() as u64;
    let counters = group[0].counters();
    assert_eq!((counters.frames, counters.frames + counters.filtered), (accepted, all));
    assert!(0 < accepted && accepted < all, "{accepted} of {all}");
}

#[test]
fn a_device_with_two_queues_is_read_completely_by_any_number_of_workers() {
    let file = example();
    let count = of_file(&file, 192).len();
    for (number, workers, sources) in [(4, 1, 1), (5, 2, 2), (6, 3, 2)] {
        let file = file.display();
        let device = format!("net_pcap{number},rx_pcap={file},rx_pcap={file}");
        let readers = Readers::Workers(NonZeroUsize::new(workers).unwrap());
        let spec = Spec::Dpdk { options: DpdkOptions::new(device), readers };
        let Opened { sources: mut group, choice } = open(&spec).unwrap();
        assert_eq!((group.len(), choice), (sources, None));
        let mut read = 0;
        for source in &mut group {
            assert!(source.is_live());
            loop {
                let batch = source.next_batch().unwrap().unwrap();
                if batch.frames.is_empty() {
                    break;
                }
                read += batch.frames.len();
            }
        }
        assert_eq!(read, 2 * count, "{workers} workers");
    }
}

#[test]
fn a_missing_file_and_an_unknown_driver_are_errors() {
    for (device, expected) in [
        ("net_pcap7,rx_pcap=/no/such/file.pcap", "cannot open dpdk:net_pcap7,rx_pcap=/no/such/file.pcap: "),
        ("net_pcab0,iface=eth0", "(did you mean net_pcap?)"),
    ] {
        let error = DpdkSource::open_group(&DpdkOptions::new(device), ONE).unwrap_err();
        assert!(matches!(error, DpdkError::Open { .. }), "{error:?}");
        assert!(error.to_string().contains(expected), "{error}");
    }
}

#[test]
fn a_device_is_opened_again_after_it_was_closed_but_not_before() {
    let mut source = open_file(8, &example(), options());
    let device = format!("net_pcap8,rx_pcap={}", example().display());
    let error = DpdkSource::open_group(&DpdkOptions::new(device), ONE).unwrap_err();
    assert!(matches!(&error, DpdkError::Open { reason, .. } if reason.contains("already open")), "{error}");
    assert_eq!(of_port(&mut source, 192), of_file(&example(), 192), "it is still open");
    drop(source);
    let mut source = open_file(8, &example(), options());
    assert_eq!(of_port(&mut source, 192), of_file(&example(), 192));
}

#[test]
fn other_options_of_the_eal_are_refused_once_it_runs() {
    let _running = open_file(9, &example(), options());
    let eal = Some("--no-huge -m 64".to_owned());
    let other = DpdkOptions { eal, ..DpdkOptions::new("net_null9") };
    let error = DpdkSource::open_group(&other, ONE).unwrap_err();
    assert!(
        matches!(&error, DpdkError::OtherOptions { options, .. } if options == "--no-huge -m 64"),
        "{error}"
    );
    let error = open(&Spec::Dpdk { options: other, readers: Readers::One }).unwrap_err();
    assert!(matches!(error, CaptureError::Dpdk(DpdkError::OtherOptions { .. })), "{error}");
}

#[test]
fn a_port_ends_when_its_interface_is_deleted() {
    let name = format!("twd{}", std::process::id() % 100_000);
    if !ip(&["link", "add", &name, "type", "veth", "peer", "name", &format!("{name}p")]) {
        return skip::skip("needs root and ip(8) to make interfaces");
    }
    let _interface = Interface(name.clone());
    let error = DpdkSource::open_group(&DpdkOptions::new(&name), ONE).unwrap_err();
    assert!(
        error.to_string().contains(&format!("did you mean dpdk:net_af_packet0,iface={name}?")),
        "{error}"
    );
    assert!(ip(&["link", "set", &name, "up"]));
    let opened = DpdkSource::open_group(&DpdkOptions::new(format!("net_af_packet0,iface={name}")), ONE);
    let mut source = opened.unwrap().pop().unwrap();
    source.next_batch().unwrap();
    assert!(ip(&["link", "set", &name, "down"]));
    source.update_link_state();
    assert_eq!(source.link_state(), LinkState::Down);
    assert!(ip(&["link", "delete", &name]));
    let error = loop {
        match source.next_batch() {
            Ok(_) => {}
            Err(error) => break error,
        }
    };
    assert!(matches!(error, DpdkError::Removed { .. }), "{error}");
}

#[test]
fn promiscuous_mode_ends_with_the_port_also_without_capabilities() {
    let name = format!("twp{}", std::process::id() % 100_000);
    if !ip(&["link", "add", &name, "type", "veth", "peer", "name", &format!("{name}p")]) {
        return skip::skip("needs root and ip(8) to make interfaces");
    }
    let _interface = Interface(name.clone());
    assert!(ip(&["link", "set", &name, "up"]));
    let is_promiscuous = || {
        let flags = Socket::for_ioctls().unwrap().interface_flags(&name).unwrap();
        flags & libc::IFF_PROMISC != 0
    };
    let open_and_close = |number: u32| {
        let options = DpdkOptions::new(format!("net_af_packet{number},iface={name}"));
        let reader = std::thread::spawn(move || {
            let source = DpdkSource::open_group(&options, ONE).unwrap().pop().unwrap();
            drop_thread_capabilities().unwrap();
            source
        });
        let source = reader.join().unwrap();
        let while_open = is_promiscuous();
        let closer = std::thread::spawn(move || {
            drop_thread_capabilities().unwrap();
            drop(source);
        });
        closer.join().unwrap();
        (while_open, is_promiscuous())
    };
    assert_eq!(open_and_close(3), (true, false));
    assert!(ip(&["link", "set", &name, "promisc", "on"]));
    assert_eq!(open_and_close(4), (true, true), "somebody else wants it");
}

#[test]
fn frames_as_long_as_the_device_was_told_are_whole() {
    let Some(network) = Network::new() else { return };
    network.ip_reader(&["link", "set", "twl0", "mtu", "9000"]);
    network.ip_sender(&["link", "set", "twl1", "mtu", "9000"]);
    let long = network.frame(&[0x88, 0xb5], 5_000);
    let frames = network.in_reader(|| {
        let device = "net_af_packet5,iface=twl0,framesz=16384,blocksz=65536,framecnt=64";
        let options = DpdkOptions { snap_length: 65_535, ..DpdkOptions::new(device) };
        let mut source = DpdkSource::open_group(&options, ONE).unwrap().pop().unwrap();
        network.send_frame(&long);
        of_port(&mut source, usize::MAX)
    });
    assert!(
        frames.contains(&(long.len() as u32, long)),
        "{:?}",
        frames.iter().map(|seen| seen.0).collect::<Vec<_>>()
    );
}

#[test]
fn a_tag_that_the_kernel_removed_is_restored() {
    let Some(network) = Network::new() else { return };
    let tagged = network.frame(&[0x81, 0x00, 0x00, 0x07, 0x88, 0xb5], 46);
    let frames = network.in_reader(|| {
        let options = DpdkOptions::new("net_af_packet1,iface=twl0");
        let mut source = DpdkSource::open_group(&options, ONE).unwrap().pop().unwrap();
        network.send_frame(&tagged);
        of_port(&mut source, usize::MAX)
    });
    assert!(frames.contains(&(tagged.len() as u32, tagged)), "{frames:02x?}");
}

#[test]
fn frames_that_find_the_ring_of_the_kernel_full_are_counted() {
    let Some(network) = Network::new() else { return };
    let (sent, [frames, drops]) = network.in_reader(|| {
        let device = "net_af_packet2,iface=twl0,blocksz=4096,framesz=2048,framecnt=16";
        let mut source = DpdkSource::open_group(&DpdkOptions::new(device), ONE).unwrap().pop().unwrap();
        network.send_udp_many(SENDER, 5000, READER, 6000, 100, 1_000);
        of_port(&mut source, 64);
        let counters = source.counters();
        (1_000, [counters.frames, counters.kernel_drops])
    });
    assert!(drops > 0, "16 frames have room");
    assert_eq!(frames + drops, sent);
}

/// An interface that is deleted at the end of a test.
struct Interface(String);

impl Drop for Interface {
    fn drop(&mut self) {
        ip(&["link", "delete", &self.0]);
    }
}

fn ip(arguments: &[&str]) -> bool {
    Command::new("ip").args(arguments).output().is_ok_and(|output| output.status.success())
}

/// Returns a frame whose bytes depend on their position.
fn frame(length: u32) -> Vec<u8> {
    (0..length).map(|index| (index * 7 + index / 256) as u8).collect()
}

/// Returns a capture file of Ethernet frames (the pcap format, version 2.4).
fn pcap(frames: impl IntoIterator<Item = Vec<u8>>) -> Vec<u8> {
    let mut file: Vec<u8> = [0xa1b2_c3d4_u32, 4 << 16 | 2, 0, 0, 262_144, 1].map(u32::to_le_bytes).concat();
    for frame in frames {
        let length = frame.len() as u32;
        file.extend([0, 0, length, length].map(u32::to_le_bytes).concat());
        file.extend(frame);
    }
    file
}
