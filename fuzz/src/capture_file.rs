//! pcap and pcapng files; the decoder detects the format.

use thalweg_wire::capture_file::{ByteOrder, Decoded, Decoder, FormatError, pcap, pcapng};
use thalweg_wire::{Frame, FrameRef, Interface};

/// The maximum length of a name that the decoder does not truncate.
const MAX_NAME_LENGTH: usize = 256;

/// Sizes of the pieces of a file: a byte, a prime number and about a block.
const PIECES: [usize; 3] = [1, 13, 64];

/// The contents of a decoded file.
#[derive(Debug, PartialEq, Eq)]
struct Contents {
    frames: Vec<FrameRef>,
    interfaces: Vec<Interface>,
    counts: (u64, u64),
    fault: Option<FormatError>,
}

/// Checks that arbitrary bytes give the same frames for all piece sizes, that frames are within the bytes, and that
/// decoded frames round-trip in both formats.
///
/// # Panics
/// When the property does not hold.
pub fn check_pcap(data: &[u8]) {
    check(data);
}

/// Checks the same as [`check_pcap`]; a separate corpus keeps the fuzzer on the other format.
///
/// # Panics
/// When the property does not hold.
pub fn check_pcapng(data: &[u8]) {
    check(data);
}

fn check(data: &[u8]) {
    let contents = decode_whole(data);
    check_places(&contents, data.len());
    for piece in PIECES {
        assert_eq!(decode_in_pieces(data, piece), contents, "in pieces of {piece}");
    }
    for order in [ByteOrder::Little, ByteOrder::Big] {
        check_encoded_as_pcapng(&contents, data, order);
        check_encoded_as_pcap(&contents, data, order);
    }
}

fn decode_whole(data: &[u8]) -> Contents {
    let (mut decoder, mut frames) = (Decoder::new(), Vec::new());
    let fault = match decoder.decode(data, 0, usize::MAX, &mut frames) {
        Ok(Decoded { consumed, needed }) => {
            assert!(consumed <= data.len());
            assert!(needed > data.len() - consumed, "a complete record was not decoded");
            None
        }
        Err(fault) => Some(fault),
    };
    contents(&decoder, frames, fault)
}

/// Decodes like a reader of a stream: unconsumed bytes are given again, followed by more.
fn decode_in_pieces(data: &[u8], piece: usize) -> Contents {
    let (mut decoder, mut frames) = (Decoder::new(), Vec::new());
    let (mut begin, mut end) = (0, 0);
    loop {
        let mut found = Vec::new();
        let result = decoder.decode(&data[begin..end], begin as u64, 1, &mut found);
        assert!(found.len() <= 1, "more frames than the limit");
        frames.extend(found.iter().map(|frame| FrameRef { offset: begin + frame.offset, ..*frame }));
        match result {
            Err(fault) => return contents(&decoder, frames, Some(fault)),
            Ok(Decoded { consumed, needed: 0 }) => begin += consumed,
            Ok(_) if end == data.len() => return contents(&decoder, frames, None),
            Ok(Decoded { consumed, needed }) => {
                begin += consumed;
                assert!(end - begin < needed, "requested no more than available");
                end = data.len().min(end + piece);
            }
        }
    }
}

fn contents(decoder: &Decoder, frames: Vec<FrameRef>, fault: Option<FormatError>) -> Contents {
    let counts = (decoder.other_records(), decoder.beyond_snap_length());
    Contents { frames, interfaces: decoder.interfaces().to_vec(), counts, fault }
}

/// Checks that the frames are in the file, in order and without overlap.
fn check_places(contents: &Contents, length: usize) {
    let mut end_of_last = 0;
    for frame in &contents.frames {
        assert!(frame.offset >= end_of_last, "{frame:?}");
        end_of_last = frame.offset + frame.captured_length as usize;
        assert!(end_of_last <= length, "{frame:?}");
        assert!(frame.original_length >= frame.captured_length, "{frame:?}");
        assert!((frame.interface as usize) < contents.interfaces.len(), "{frame:?}");
    }
}

fn check_encoded_as_pcapng(contents: &Contents, data: &[u8], order: ByteOrder) {
    if contents.interfaces.iter().any(is_name_shortened) {
        return;
    }
    let (encoder, mut file) = (pcapng::Encoder { order }, Vec::new());
    encoder.section_header(&mut file);
    for interface in &contents.interfaces {
        encoder.interface_description(interface, Some("again"), &mut file);
    }
    for frame in &contents.frames {
        encoder.enhanced_packet(frame.interface, &frame_of(contents, data, frame), Some("again"), &mut file);
    }
    let again = decode_whole(&file);
    assert_eq!((&again.fault, &again.interfaces), (&None, &contents.interfaces));
    check_same_frames(contents, data, &again, &file);
}

fn check_encoded_as_pcap(contents: &Contents, data: &[u8], order: ByteOrder) {
    let [interface] = contents.interfaces.as_slice() else { return };
    if contents.frames.iter().any(|frame| frame.time.seconds() > u64::from(u32::MAX)) {
        return; // after the year 2106, which the format does not reach
    }
    let (encoder, mut file) = (pcap::Encoder { order, precision: pcap::Precision::Nanos }, Vec::new());
    encoder.file_header(interface.link_type, interface.snap_length, &mut file);
    for frame in &contents.frames {
        encoder.record(&frame_of(contents, data, frame), &mut file);
    }
    let again = decode_whole(&file);
    let unnamed = Interface { name: None, ..interface.clone() };
    assert_eq!((&again.fault, &again.interfaces[..]), (&None, &[unnamed][..]));
    check_same_frames(contents, data, &again, &file);
}

fn check_same_frames(contents: &Contents, data: &[u8], again: &Contents, file: &[u8]) {
    assert_eq!(again.frames.len(), contents.frames.len());
    for (one, other) in contents.frames.iter().zip(&again.frames) {
        assert_eq!(FrameRef { offset: 0, ..*one }, FrameRef { offset: 0, ..*other });
        assert_eq!(frame_of(contents, data, one).bytes, frame_of(again, file, other).bytes);
    }
}

fn frame_of<'a>(contents: &Contents, data: &'a [u8], frame: &FrameRef) -> Frame<'a> {
    Frame {
        time: frame.time,
        bytes: &data[frame.offset..][..frame.captured_length as usize],
        original_length: frame.original_length,
        link_type: contents.interfaces[frame.interface as usize].link_type,
    }
}

fn is_name_shortened(interface: &Interface) -> bool {
    interface.name.as_ref().is_some_and(|name| name.len() > MAX_NAME_LENGTH)
}
