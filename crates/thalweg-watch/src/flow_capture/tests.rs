//! Files of flows, read back by the decoder.

use std::time::Duration;

use thalweg_capture::{FileAccess, Spec, open};
use thalweg_wire::parse::Parser;
use thalweg_wire::{FlowKey, FrameRef, Interface, LinkType, Source, Timestamp};

use super::*;

/// Returns a UDP frame of a port.
fn frame(src_port: u16) -> Vec<u8> {
    let mut bytes = vec![0; 12];
    bytes.extend([0x08, 0x00, 0x45, 0, 0, 32, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
    bytes.extend(src_port.to_be_bytes());
    bytes.extend([0, 53, 0, 12, 0, 0, 1, 2, 3, 4]);
    bytes
}

/// Calls `take` with a batch of frames of these ports.
fn with_batch(ports: &[u16], take: impl FnOnce(&Batch<'_>)) {
    let (mut bytes, mut frames) = (Vec::new(), Vec::new());
    for (number, port) in ports.iter().enumerate() {
        let one = frame(*port);
        let length = one.len() as u32;
        let time = Timestamp(1_000 + number as u64);
        frames.push(FrameRef {
            time,
            offset: bytes.len(),
            captured_length: length,
            original_length: length,
            interface: 0,
        });
        bytes.extend(one);
    }
    let interfaces =
        [Interface { name: Some("eth0".to_owned()), link_type: LinkType::Ethernet, snap_length: 192 }];
    take(&Batch { bytes: &bytes, frames: &frames, interfaces: &interfaces });
}

fn key(port: u16) -> FlowKey {
    format!("udp 10.0.0.2:53 > 10.0.0.1:{port}").parse().unwrap()
}

/// Returns the flows of the packets in a file.
fn packets_in(path: &std::path::Path) -> Vec<FlowKey> {
    let spec = Spec::File { path: path.into(), filter: None, access: FileAccess::Buffered };
    let mut source = open(&spec).unwrap().sources.pop().unwrap();
    let mut keys = Vec::new();
    while let Some(batch) = source.next_batch().unwrap() {
        keys.extend(batch.iter().map(|frame| Parser::default().parse(&frame).unwrap().key.canonical().0));
    }
    keys
}

fn options(directory: &std::path::Path, max_size: u64) -> FlowCaptureOptions {
    FlowCaptureOptions { directory: directory.to_owned(), max_size: Bytes(max_size) }
}

#[test]
fn a_live_capture_has_the_packets_from_its_start_to_its_stop() {
    let folder = tempfile::tempdir().unwrap();
    let mut captures = FlowCaptures::new(options(folder.path(), 1 << 20), CaptureInput::Live, false);
    let live = captures.live();
    let frames = |ports: &[u16]| with_batch(ports, |batch| live.frames(batch));
    frames(&[7, 7]);
    assert_eq!(captures.status(), None);
    captures.start(key(7));
    frames(&[7, 8, 7, 9]);
    frames(&[8]);
    frames(&[7]);
    captures.stop();
    frames(&[7]);
    let status = captures.status().unwrap();
    assert_eq!((status.packets, status.lost, &status.state), (3, 0, &FlowCaptureState::Complete));
    assert_eq!(status.path, folder.path().join("udp_10.0.0.2_53_10.0.0.1_7.pcapng"));
    assert_eq!(packets_in(&status.path), [key(7).canonical().0; 3]);
    assert_eq!(status.bytes.0, status.path.metadata().unwrap().len());
    // Another file of the same flow has another name.
    captures.start(key(7));
    assert_eq!(captures.status().unwrap().path, folder.path().join("udp_10.0.0.2_53_10.0.0.1_7-2.pcapng"));
}

#[test]
fn a_capture_ends_at_its_maximum_size() {
    let folder = tempfile::tempdir().unwrap();
    let mut captures = FlowCaptures::new(options(folder.path(), 400), CaptureInput::Live, false);
    let live = captures.live();
    captures.start(key(7));
    for _ in 0..100 {
        with_batch(&[7], |batch| live.frames(batch));
        std::thread::sleep(Duration::from_millis(1));
    }
    captures.stop();
    let status = captures.status().unwrap();
    assert_eq!(status.state, FlowCaptureState::Full);
    assert!(status.bytes.0 <= 400 && status.packets > 0);
    assert_eq!(packets_in(&status.path).len() as u64, status.packets);
}

#[test]
fn the_flow_of_a_file_is_extracted_from_its_beginning() {
    let folder = tempfile::tempdir().unwrap();
    // A file to extract from: all flows of a live capture.
    let (first, second) = (folder.path().join("first.pcapng"), folder.path().join("second.pcapng"));
    for path in [&first, &second] {
        let mut file = Vec::new();
        let encoder = thalweg_wire::capture_file::pcapng::Encoder::default();
        encoder.section_header(&mut file);
        with_batch(&[7, 8, 9, 8, 7, 8], |batch| {
            encoder.interface_description(&batch.interfaces[0], None, &mut file);
            batch.iter().for_each(|frame| encoder.enhanced_packet(0, &frame, None, &mut file));
        });
        std::fs::write(path, file).unwrap();
    }
    let names = [&first, &second].map(|path| path.to_str().unwrap().to_owned()).to_vec();
    let input = CaptureInput::Files { names, filter: None };
    let mut captures = FlowCaptures::new(options(folder.path(), 1 << 20), input, false);
    captures.start(key(8));
    while captures.status().unwrap().state == FlowCaptureState::Running {
        std::thread::sleep(Duration::from_millis(1));
    }
    let status = captures.status().unwrap();
    assert_eq!((status.packets, &status.state), (6, &FlowCaptureState::Complete));
    assert_eq!(packets_in(&status.path), [key(8).canonical().0; 6]);
}

#[test]
fn errors_name_the_file_and_the_reason() {
    let options = options(std::path::Path::new("/nonexistent"), 400);
    let mut captures = FlowCaptures::new(options.clone(), CaptureInput::Live, false);
    captures.start(key(7));
    let state = captures.status().unwrap().state;
    let expected = "cannot create /nonexistent/udp_10.0.0.2_53_10.0.0.1_7.pcapng: No such file or directory (os error 2)";
    assert_eq!(state, FlowCaptureState::Failed(expected.to_owned()));
    let input = CaptureInput::Files { names: vec!["-".to_owned()], filter: None };
    let mut captures = FlowCaptures::new(options, input, false);
    captures.start(key(7));
    let state = captures.status().unwrap().state;
    assert_eq!(state, FlowCaptureState::Failed("standard input cannot be read again".to_owned()));
}
