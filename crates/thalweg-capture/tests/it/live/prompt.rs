//! Single frames, and sending.

use std::time::Instant;

use thalweg_capture::live::{FrameSender, LiveError, LiveOptions, PromptSource};
use thalweg_capture::{AnySource, wait_any};
use thalweg_wire::{Bytes, Nanos, Source};

use super::network::{Network, READER, SENDER};
use super::{now, options, read_until_idle};

#[test]
fn a_packet_arrives_at_once_with_its_timestamp() {
    let Some(network) = Network::new() else { return };
    let source = network.in_reader(|| PromptSource::open(&options("twl0"))).unwrap();
    let mut source = AnySource::Prompt(source);
    assert_eq!(source.name(), "twl0");
    let mut delays = Vec::new();
    for size in 0..40 {
        assert!(!source.is_ready());
        let before = now();
        network.send_udp(SENDER, 5000, READER, 6000, 10 * size);
        assert!(wait_any([&mut source], Nanos::from_secs(1)).unwrap());
        let batch = source.next_batch().unwrap().unwrap();
        let frame = batch.iter().next().expect("a frame is ready");
        delays.push(now() - frame.time);
        assert!(frame.time >= before && frame.time <= now());
        assert_eq!(frame.original_length as usize, 42 + 10 * size);
        assert_eq!(frame.bytes.len(), (frame.original_length as usize).min(192));
    }
    delays.sort();
    // A block would take its timeout of 10 ms.
    assert!(delays[20].0 < 3_000_000, "half of them took {} or longer", delays[20]);
    assert!(!wait_any([&mut source], Nanos::from_millis(1)).unwrap(), "unexpected frame");
    let counters = source.counters();
    assert_eq!((counters.frames, counters.kernel_drops), (40, 0));
}

#[test]
fn the_ring_wraps_around_and_counts_drops() {
    let Some(network) = Network::new() else { return };
    let small = LiveOptions { ring_size: Bytes(128 << 10), ..options("twl0") };
    let mut source = network.in_reader(|| PromptSource::open(&small)).unwrap();
    // 256 slots of 512 bytes: 250 frames at a time fit, repeatedly.
    for _ in 0..5 {
        for number in 0..250 {
            network.send_udp(SENDER, 5000 + number, READER, 6000, 20);
        }
        assert_eq!(read_until_idle(&mut source, 1).len(), 250);
    }
    for number in 0..300 {
        network.send_udp(SENDER, 5000 + number, READER, 6000, 20);
    }
    let seen = read_until_idle(&mut source, 1).len() as u64;
    let counters = source.counters();
    assert_eq!((seen, seen + counters.kernel_drops), (256, 300), "{counters:?}");
}

#[test]
fn a_sent_frame_arrives_unchanged() {
    let Some(network) = Network::new() else { return };
    let mut source = network.in_reader(|| PromptSource::open(&options("twl0"))).unwrap();
    let sender = network.in_sender(|| FrameSender::open("twl1")).unwrap();
    let frame = network.frame(&[0x88, 0xb5], 46);
    let begun = Instant::now();
    sender.send(&frame).unwrap();
    let seen = read_until_idle(&mut source, 1);
    assert_eq!(seen.len(), 1, "after {:?}", begun.elapsed());
    assert_eq!(seen[0].bytes, frame);
    let error = network.in_sender(|| FrameSender::open("twl9")).unwrap_err();
    assert!(matches!(error, LiveError::NoSuchInterface { .. }), "{error}");
}
