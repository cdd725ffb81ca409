mod streams;
mod tools;

use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use proptest::prelude::*;
use thalweg_wire::capture_file::pcap::Precision;
use thalweg_wire::capture_file::{ByteOrder, MAX_RECORD_LENGTH, pcap, pcapng};
use thalweg_wire::{Frame, Interface, LinkType, Timestamp};

use super::*;

/// Time, captured bytes, original length.
type Captured = (u64, Vec<u8>, u32);

/// Frames of varying length, enough for several batches, whose bytes compress no better than headers do.
fn some_frames(count: u64) -> Vec<Captured> {
    let frame = |n: u64| {
        let length = 60 + (n * 37 % 200) as usize;
        let bytes = (0..length as u64).map(|i| (n.wrapping_mul(0x9e37_79b9) >> (i % 24)) as u8 & 0x3f);
        (1_000_000_000 + n * 1_001, bytes.collect(), length as u32 + 1000)
    };
    (0..count).map(frame).collect()
}

fn as_frame((time, bytes, original_length): &Captured) -> Frame<'_> {
    Frame { time: Timestamp(*time), bytes, original_length: *original_length, link_type: LinkType::Ethernet }
}

fn pcap_file(frames: &[Captured]) -> Vec<u8> {
    let encoder = pcap::Encoder { order: ByteOrder::Little, precision: Precision::Nanos };
    let mut file = Vec::new();
    encoder.file_header(LinkType::Ethernet, 262_144, &mut file);
    frames.iter().for_each(|frame| encoder.record(&as_frame(frame), &mut file));
    file
}

fn pcapng_file(frames: &[Captured]) -> Vec<u8> {
    let encoder = pcapng::Encoder::default();
    let mut file = Vec::new();
    encoder.section_header(&mut file);
    for port in ["port 1", "port 2"] {
        let (name, link_type) = (Some(port.to_owned()), LinkType::Ethernet);
        let interface = Interface { name, link_type, snap_length: 0 };
        encoder.interface_description(&interface, Some("mirror"), &mut file);
    }
    for (n, frame) in frames.iter().enumerate() {
        let comment = n.is_multiple_of(3).then_some("a remark");
        encoder.enhanced_packet(n as u32 % 2, &as_frame(frame), comment, &mut file);
    }
    file
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn zstd(bytes: &[u8]) -> Vec<u8> {
    zstd::encode_all(bytes, 1).unwrap()
}

fn bzip2(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn xz(bytes: &[u8]) -> Vec<u8> {
    let options = lzma_rust2::XzOptions::with_preset(1);
    let mut encoder = lzma_rust2::XzWriter::new(Vec::new(), options).unwrap();
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn lz4(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = lz4_flex::frame::FrameEncoder::new(Vec::new());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// Compressed in two members or frames.
fn in_two(compress: impl Fn(&[u8]) -> Vec<u8>, bytes: &[u8]) -> Vec<u8> {
    let (first, second) = bytes.split_at(bytes.len() / 2);
    [compress(first), compress(second)].concat()
}

/// A folder with one file in it, both deleted when dropped.
struct OnDisk {
    _folder: tempfile::TempDir,
    path: PathBuf,
}

fn on_disk(bytes: &[u8]) -> OnDisk {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("capture.bin");
    std::fs::write(&path, bytes).unwrap();
    OnDisk { _folder: folder, path }
}

/// All frames, and the fault that ended them.
fn drain(source: &mut FileSource) -> (Vec<Captured>, Option<FileError>) {
    let mut frames = Vec::new();
    let fault = loop {
        match source.next_batch() {
            Ok(Some(batch)) => {
                assert!(batch.frames.len() <= BATCH_FRAMES);
                frames.extend(batch.iter().map(|f| (f.time.0, f.bytes.to_vec(), f.original_length)));
            }
            Ok(None) => break None,
            Err(fault) => break Some(fault),
        }
    };
    assert!(matches!(source.next_batch(), Ok(None)), "no more batches after the end or an error");
    assert_eq!(source.counters().frames, frames.len() as u64);
    (frames, fault)
}

fn read(bytes: &[u8]) -> (Vec<Captured>, Option<FileError>) {
    let file = on_disk(bytes);
    match FileSource::open(&file.path) {
        Ok(mut source) => drain(&mut source),
        Err(fault) => (Vec::new(), Some(fault)),
    }
}

fn open_error(bytes: &[u8]) -> FileError {
    FileSource::open(&on_disk(bytes).path).expect_err("not a capture file")
}

#[test]
fn plain_and_compressed_files_give_the_same_frames() {
    let frames = some_frames(3000);
    for plain in [pcap_file(&frames), pcapng_file(&frames)] {
        for bytes in [
            plain.clone(),
            gzip(&plain),
            in_two(gzip, &plain),
            zstd(&plain),
            in_two(zstd, &plain),
            bzip2(&plain),
            in_two(bzip2, &plain),
            xz(&plain),
            in_two(xz, &plain),
            lz4(&plain),
            in_two(lz4, &plain),
            [&[0x50, 0x2a, 0x4d, 0x18, 2, 0, 0, 0, 9, 9][..], &zstd(&plain)].concat(),
        ] {
            let (read, fault) = read(&bytes);
            assert!(fault.is_none(), "{fault:?}");
            assert!(read == frames);
            let mut stream = FileSource::from_reader("a stream", std::io::Cursor::new(bytes));
            let (read, fault) = drain(&mut stream);
            assert!(fault.is_none() && read == frames, "{fault:?}");
        }
    }
}

#[test]
fn pcapng_interfaces_are_distinguished() {
    let file = on_disk(&pcapng_file(&some_frames(4)));
    let mut source = FileSource::open(&file.path).unwrap();
    let batch = source.next_batch().unwrap().unwrap();
    let interfaces: Vec<_> = batch.frames.iter().map(|frame| frame.interface).collect();
    assert_eq!(interfaces, [0, 1, 0, 1]);
    assert_eq!(batch.interfaces[1].name.as_deref(), Some("port 2"));
    assert_eq!(source.format(), Some(Format::PcapNg));
}

#[test]
fn a_truncated_file_yields_all_complete_frames() {
    let frames = some_frames(5);
    let mut ends = vec![24];
    ends.extend(frames.iter().scan(24, |end, frame| {
        *end += 16 + frame.1.len();
        Some(*end)
    }));
    let file = pcap_file(&frames);
    for length in 24..=file.len() {
        let whole = ends.iter().filter(|&&end| end <= length).count() - 1;
        let (read, fault) = read(&file[..length]);
        assert_eq!(read, frames[..whole], "cut after {length} bytes");
        match fault {
            None => assert!(ends.contains(&length)),
            Some(FileError::Truncated { offset, needed, present, .. }) => {
                assert_eq!((offset as usize, present), (ends[whole], length - ends[whole]));
                let known = if present < 16 { 16 } else { 16 + frames[whole].1.len() };
                assert_eq!(needed, known);
            }
            Some(fault) => panic!("cut after {length} bytes: {fault}"),
        }
    }
}

#[test]
fn truncated_compressed_files_fail_after_the_last_frame() {
    let frames = some_frames(3000);
    for compressed in [gzip(&pcap_file(&frames)), zstd(&pcap_file(&frames))] {
        let (read, fault) = read(&compressed[..compressed.len() - 5]);
        let fault = fault.unwrap();
        assert!(fault.is_truncation(), "{fault}");
        let FileError::TruncatedCompression { compressed_offset, .. } = fault else { panic!("{fault}") };
        assert_eq!(compressed_offset, compressed.len() as u64 - 5);
        assert!(read.len() > 2500 && read[..] == frames[..read.len()], "{} frames", read.len());
    }
}

#[test]
fn damaged_compression_fails_after_the_last_valid_frame() {
    let frames = some_frames(20_000);
    let plain = pcap_file(&frames);
    for compressed in [gzip(&plain), zstd(&plain)] {
        let mut damaged = compressed.clone();
        let middle = compressed.len() / 2;
        damaged[middle..middle + 64].fill(0xff);
        let (read, fault) = read(&damaged);
        // Neither format has a checksum before its end: damage may first show as an invalid record.
        match fault {
            Some(FileError::Decompress { compressed_offset, .. }) => {
                let noticed = middle as u64..(middle + 64 + COMPRESSED_SLACK) as u64;
                assert!(noticed.contains(&compressed_offset), "{compressed_offset} in {noticed:?}");
            }
            Some(FileError::Format { .. }) => {}
            fault => panic!("{fault:?}"),
        }
        let sound = read.iter().zip(&frames).take_while(|(read, frame)| read == frame).count();
        assert!(sound > 5000, "{sound} valid frames");
    }
}

/// How far a decompressor may have read beyond the damage: a buffer, or a block of zstd.
const COMPRESSED_SLACK: usize = 128 << 10;

#[test]
fn a_wrong_checksum_fails_after_the_last_frame() {
    let frames = some_frames(3000);
    let mut compressed = gzip(&pcap_file(&frames));
    let checksum = compressed.len() - 8;
    compressed[checksum] ^= 1;
    let compressed_length = compressed.len() as u64;
    let (read, fault) = read(&compressed);
    assert!(read == frames);
    let Some(FileError::Decompress { compressed_offset, compression: Compression::Gzip, .. }) = fault else {
        panic!("{fault:?}")
    };
    assert_eq!(compressed_offset, compressed_length);
}

#[test]
fn an_invalid_record_fails_after_the_previous_frames() {
    let frames = some_frames(600);
    let mut file = pcap_file(&frames);
    let offset = file.len() as u64;
    file.extend([0xff; 40]);
    let (read, fault) = read(&file);
    assert!(read == frames);
    match fault {
        Some(FileError::Format { cause: FormatError::RecordTooLong { offset: at, .. }, .. }) => {
            assert_eq!(at, offset);
        }
        fault => panic!("{fault:?}"),
    }
}

#[test]
fn other_files_are_rejected_with_their_first_bytes() {
    let missing = FileSource::open(Path::new("no-such-file.pcap")).unwrap_err();
    assert!(missing.to_string().starts_with("cannot open no-such-file.pcap: No such file"), "{missing}");
    let folder = tempfile::tempdir().unwrap();
    assert!(matches!(FileSource::open(folder.path()), Err(FileError::Directory { .. })));

    for (bytes, said) in [
        (&b""[..], "is empty"),
        (b"hi", "is truncated: 2 bytes"),
        (&pcap_file(&[])[..20], "is truncated: 20 bytes"),
        (b"time,src,dst\n", "first bytes 74 69 6d 65 (a text file)"),
        (&gzip(b"\xfd7zXZ\0\0\0"), "(an xz file)"),
        (b"\xfd7zXZ\0\0\0", "is truncated: its xz data ends"),
        (b"\x7fELF\x02\x01\x01", "first bytes 7f 45 4c 46: expected pcap"),
        (&gzip(b"time,src,dst\n"), "first bytes after gzip decompression 74 69"),
        (&gzip(&gzip(&pcap_file(&[]))), "(a gzip file)"),
        (&zstd(b""), "is empty"),
        (&gzip(b""), "is empty"),
    ] {
        let error = open_error(bytes).to_string();
        assert!(error.contains(said), "{error}");
        assert!(error.contains("capture.bin"), "{error}");
    }
}

#[test]
fn an_unsupported_link_type_is_rejected() {
    let mut file = pcap_file(&some_frames(3));
    file[20] = 147;
    for bytes in [file.clone(), gzip(&file)] {
        let error = open_error(&bytes);
        let FileError::UnsupportedLinkType { link_type: 147, offset: 20, .. } = error else {
            panic!("{error}")
        };
        assert!(
            error.to_string().contains("expected one of 802.11 (105), 802.11 with radiotap (127), "),
            "{error}"
        );
    }
    let mut stream = FileSource::from_reader("a stream", std::io::Cursor::new(file));
    let (read, fault) = drain(&mut stream);
    assert!(read.is_empty());
    assert!(matches!(fault, Some(FileError::UnsupportedLinkType { .. })));
}

#[test]
fn a_capture_without_packets_ends_at_once() {
    for bytes in [pcap_file(&[]), pcapng_file(&[]), gzip(&pcap_file(&[]))] {
        let (frames, fault) = read(&bytes);
        assert!(frames.is_empty() && fault.is_none(), "{fault:?}");
    }
}

#[test]
fn progress_ends_at_the_size_on_disk() {
    let plain = pcap_file(&some_frames(20_000));
    for bytes in [gzip(&plain), plain] {
        let file = on_disk(&bytes);
        let mut source = FileSource::open(&file.path).unwrap();
        let mut steps = vec![source.progress().unwrap().done];
        while source.next_batch().unwrap().is_some() {
            steps.push(source.progress().unwrap().done);
        }
        assert_eq!(source.progress(), Some(Progress { done: bytes.len() as u64, total: bytes.len() as u64 }));
        assert_eq!(steps.last(), Some(&(bytes.len() as u64)), "the last batch counts when it is lent");
        assert!(steps.is_sorted());
        steps.dedup();
        assert!(steps.len() > 10, "too few steps: {steps:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn damaged_files_never_panic(
        packing in 0usize..6, ng in any::<bool>(), damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
    ) {
        let frames = some_frames(50);
        let plain = if ng { pcapng_file(&frames) } else { pcap_file(&frames) };
        let pack = match packing { 0 => <[u8]>::to_vec, 1 => gzip, 2 => zstd, 3 => bzip2, 4 => xz, _ => lz4 };
        let mut bytes = pack(&plain);
        for (index, byte) in damage {
            let index = index.index(bytes.len());
            bytes[index] = byte;
        }
        read(&bytes);
    }
}
