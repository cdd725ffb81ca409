use proptest::collection::vec;
use proptest::prelude::*;

use super::pcap::Precision;
use super::*;
use crate::link_type::LinkType;
use crate::source::Frame;
use crate::time::Timestamp;

/// A frame with its own bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Captured {
    time: u64,
    bytes: Vec<u8>,
    original_length: u32,
    interface: u32,
}

impl Captured {
    fn new(time: u64, bytes: &[u8], original_length: u32, interface: u32) -> Captured {
        Captured { time, bytes: bytes.to_vec(), original_length, interface }
    }

    fn frame(&self) -> Frame<'_> {
        let (time, original_length) = (Timestamp(self.time), self.original_length);
        Frame { time, bytes: &self.bytes, original_length, link_type: LinkType::Ethernet }
    }
}

/// The result of decoding a file.
#[derive(Debug)]
struct Outcome {
    frames: Vec<Captured>,
    error: Option<FormatError>,
    unconsumed: usize,
    decoder: Decoder,
}

/// Decodes a file as a source does, with `chunk` more bytes whenever the decoder needs more.
fn decode_in_chunks(file: &[u8], chunk: usize, limit: usize) -> Outcome {
    let mut decoder = Decoder::new();
    let (mut start, mut end) = (0, chunk.min(file.len()));
    let mut frames = Vec::new();
    loop {
        let bytes = &file[start..end];
        let mut refs = Vec::new();
        let result = decoder.decode(bytes, start as u64, limit, &mut refs);
        assert!(refs.len() <= limit, "the limit holds");
        frames.extend(refs.iter().map(|frame| {
            let captured = &bytes[frame.offset..][..frame.captured_length as usize];
            assert!((frame.interface as usize) < decoder.interfaces().len());
            Captured::new(frame.time.0, captured, frame.original_length, frame.interface)
        }));
        let decoded = match result {
            Ok(decoded) => decoded,
            Err(error) => {
                return Outcome { frames, error: Some(error), unconsumed: file.len() - start, decoder };
            }
        };
        start += decoded.consumed;
        if decoded.needed == 0 {
            continue;
        }
        assert!(decoded.needed > end - start && decoded.needed <= MAX_RECORD_LENGTH, "{decoded:?}");
        if end == file.len() {
            return Outcome { frames, error: None, unconsumed: end - start, decoder };
        }
        end = (end + chunk).min(file.len());
    }
}

fn decode(file: &[u8]) -> Outcome {
    decode_in_chunks(file, file.len(), 256)
}

/// Returns the frames of a valid file.
fn frames_of(file: &[u8]) -> Vec<Captured> {
    let outcome = decode(file);
    assert_eq!((outcome.error, outcome.unconsumed), (None, 0));
    outcome.frames
}

const ORDERS: [ByteOrder; 2] = [ByteOrder::Little, ByteOrder::Big];

fn pcap_file(order: ByteOrder, precision: Precision, snap_length: u32, frames: &[Captured]) -> Vec<u8> {
    let encoder = pcap::Encoder { order, precision };
    let mut file = Vec::new();
    encoder.file_header(LinkType::Ethernet, snap_length, &mut file);
    frames.iter().for_each(|frame| encoder.record(&frame.frame(), &mut file));
    file
}

fn interface(number: u32) -> Interface {
    let link_type = if number.is_multiple_of(2) { LinkType::Ethernet } else { LinkType::LinuxSll2 };
    Interface { name: Some(format!("port {number}")), link_type, snap_length: 64 * number }
}

/// Encodes a section with its interfaces first; `frames` refer to them by their number in the section.
fn pcapng_section(order: ByteOrder, interfaces: &[Interface], frames: &[Captured], out: &mut Vec<u8>) {
    let encoder = pcapng::Encoder { order };
    encoder.section_header(out);
    interfaces.iter().for_each(|i| encoder.interface_description(i, Some("a switch port"), out));
    for frame in frames {
        let comment = "x".repeat(frame.bytes.len() % 7);
        let comment = (!comment.is_empty()).then_some(comment.as_str());
        encoder.enhanced_packet(frame.interface, &frame.frame(), comment, out);
    }
}

/// Encodes a little-endian block with correct framing.
fn block(block_type: u32, body: &[u8]) -> Vec<u8> {
    let length = (body.len() as u32 + 12).to_le_bytes();
    [&block_type.to_le_bytes(), &length, body, &length].concat()
}

/// Encodes a section header and one Ethernet interface with these options.
fn pcapng_start(snap_length: u32, options: &[u8]) -> Vec<u8> {
    let mut file = Vec::new();
    pcapng::Encoder::default().section_header(&mut file);
    file.extend(block(1, &[&[1, 0, 0, 0], &snap_length.to_le_bytes()[..], options].concat()));
    file
}

/// Any frames with times that every format can represent.
fn any_frames(interfaces: u32) -> impl Strategy<Value = Vec<Captured>> {
    let frame = (0..=u32::MAX, 0..1_000_000_000_u64, vec(any::<u8>(), 0..90), 0..9_000_u32, 0..interfaces);
    vec(
        frame.prop_map(|(seconds, nanos, bytes, more, interface)| {
            let original_length = bytes.len() as u32 + more;
            Captured { time: u64::from(seconds) * 1_000_000_000 + nanos, bytes, original_length, interface }
        }),
        0..40,
    )
}

proptest! {
    #[test]
    fn pcap_round_trips_in_any_chunks(
        frames in any_frames(1), big in any::<bool>(), micros in any::<bool>(), chunk in 1..400_usize, limit in 1..9_usize,
    ) {
        let order = ORDERS[usize::from(big)];
        let precision = if micros { Precision::Micros } else { Precision::Nanos };
        let file = pcap_file(order, precision, 0, &frames);
        let unit = if micros { 1_000 } else { 1 };
        let expected: Vec<_> =
            frames.into_iter().map(|f| Captured { time: f.time / unit * unit, ..f }).collect();
        prop_assert_eq!(&frames_of(&file), &expected);
        let cut = decode_in_chunks(&file, chunk, limit);
        prop_assert_eq!(&cut.frames, &expected);
        prop_assert_eq!((cut.error, cut.unconsumed), (None, 0));
    }

    #[test]
    fn pcapng_round_trips_in_any_chunks(
        sections in vec((any_frames(3), any::<bool>()), 1..4), chunk in 1..400_usize, limit in 1..9_usize,
    ) {
        let interfaces: Vec<_> = (0..3).map(interface).collect();
        let (mut file, mut expected) = (Vec::new(), Vec::new());
        for (section, (frames, big)) in sections.iter().enumerate() {
            pcapng_section(ORDERS[usize::from(*big)], &interfaces, frames, &mut file);
            let base = 3 * section as u32;
            expected.extend(frames.iter().map(|f| Captured { interface: base + f.interface, ..f.clone() }));
        }
        prop_assert_eq!(&frames_of(&file), &expected);
        let cut = decode_in_chunks(&file, chunk, limit);
        prop_assert_eq!(&cut.frames, &expected);
        prop_assert_eq!((cut.error, cut.unconsumed), (None, 0));
        let all: Vec<_> = sections.iter().flat_map(|_| interfaces.clone()).collect();
        prop_assert_eq!(cut.decoder.interfaces(), &all);
    }

    #[test]
    fn damaged_bytes_never_panic(
        frames in any_frames(2), ng in any::<bool>(), big in any::<bool>(), chunk in 1..400_usize,
        damage in vec((any::<prop::sample::Index>(), any::<u8>()), 1..12),
    ) {
        let order = ORDERS[usize::from(big)];
        let mut file = Vec::new();
        if ng {
            pcapng_section(order, &[interface(0), interface(1)], &frames, &mut file);
        } else {
            file = pcap_file(order, Precision::Nanos, 40, &frames);
        }
        for (index, byte) in damage {
            let index = index.index(file.len());
            file[index] = byte;
        }
        // decode_in_chunks checks that every frame is within the bytes and refers to a known interface.
        let (whole, cut) = (decode(&file), decode_in_chunks(&file, chunk, 3));
        prop_assert_eq!(whole.frames, cut.frames);
        prop_assert_eq!(whole.error, cut.error);
    }

    #[test]
    fn arbitrary_bytes_after_a_valid_start_never_panic(tail in vec(any::<u8>(), 0..300), ng in any::<bool>()) {
        let start = if ng { pcapng_start(0, &[]) } else { pcap_file(ByteOrder::Big, Precision::Micros, 0, &[]) };
        decode(&[start, tail].concat());
    }
}

#[test]
fn a_truncated_file_gives_every_complete_frame() {
    let frames: Vec<_> = (0..4).map(|n| Captured::new(n, &vec![7; n as usize * 5], 99, 0)).collect();
    let mut pcapng_file = Vec::new();
    pcapng_section(ByteOrder::Little, &[interface(0)], &frames, &mut pcapng_file);
    for file in [pcap_file(ByteOrder::Big, Precision::Micros, 0, &frames), pcapng_file] {
        let all = frames_of(&file);
        let mut so_far = 0;
        for cut in 0..=file.len() {
            let outcome = decode(&file[..cut]);
            assert_eq!(outcome.error, None, "truncation is not a format error");
            assert_eq!(outcome.frames, all[..outcome.frames.len()]);
            assert!(outcome.frames.len() >= so_far, "more bytes never give fewer frames");
            assert!(outcome.unconsumed < 72, "at most one record is incomplete");
            so_far = outcome.frames.len();
        }
        assert_eq!(so_far, 4);
    }
}

#[test]
fn a_pcap_file_is_decoded_field_by_field() {
    let file = [
        &[0xa1, 0xb2, 0xc3, 0xd4, 0, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0][..],
        &[0, 0, 0, 4, 0x24, 0, 0, 113], // snap length 4; 2 * 16 bits of FCS, flagged present; Linux cooked
        &[0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 4, 0, 0, 5, 0xdc, b'a', b'b', b'c', b'd'],
        &[0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0, 5, 0, 0, 0, 2, b'e', b'f', b'g', b'h', b'i'],
    ]
    .concat();
    let outcome = decode(&file);
    assert_eq!(
        outcome.frames,
        [Captured::new(1_000_002_000, b"abcd", 1500, 0), Captured::new(9_000, b"efghi", 5, 0)],
        "the original length is at least the captured length"
    );
    assert_eq!(
        outcome.decoder.interfaces(),
        [Interface { name: None, link_type: LinkType::LinuxSll, snap_length: 4 }]
    );
    assert_eq!(outcome.decoder.beyond_snap_length(), 1, "4 bytes are within it, 5 are not");
    assert_eq!(outcome.decoder.format(), Some(Format::Pcap));
}

#[test]
fn the_modified_pcap_variant_has_longer_record_headers() {
    let mut file = pcap_file(ByteOrder::Little, Precision::Micros, 0, &[]);
    file[..4].copy_from_slice(&0xa1b2_cd34_u32.to_le_bytes());
    for letter in *b"ab" {
        file.extend([1, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 60, 0, 0, 0]);
        file.extend([3, 0, 0, 0, 0, 8, 4, 0, letter]);
    }
    let time = 1_000_002_000;
    assert_eq!(frames_of(&file), [Captured::new(time, b"a", 60, 0), Captured::new(time, b"b", 60, 0)]);
}

#[test]
fn all_three_pcapng_packet_blocks_are_decoded() {
    let mut file = pcapng_start(3, &[]);
    let time = [0, 0, 0, 0, 5, 0, 0, 0];
    let lengths = [3, 0, 0, 0, 100, 0, 0, 0];
    let beyond = [4, 0, 0, 0, 100, 0, 0, 0];
    file.extend(block(6, &[&[0; 4], &time[..], &beyond, b"enha"].concat()));
    file.extend(block(2, &[&[0, 0, 9, 0], &time[..], &lengths, b"obs\0"].concat()));
    file.extend(block(3, b"\x64\0\0\0sim\0"));
    file.extend(block(3, b"\x02\0\0\0si\0\0"));
    file.extend(block(5, b"some statistics.")); // and a block of unknown type
    file.extend(block(0x0bad, b""));
    let outcome = decode(&file);
    assert_eq!((outcome.error, outcome.unconsumed), (None, 0));
    assert_eq!(
        outcome.frames,
        [
            Captured::new(5_000, b"enha", 100, 0),
            Captured::new(5_000, b"obs", 100, 0),
            Captured::new(0, b"sim", 100, 0),
            Captured::new(0, b"si", 2, 0),
        ]
    );
    assert_eq!(outcome.decoder.other_records(), 2);
    assert_eq!(outcome.decoder.beyond_snap_length(), 1);
    assert_eq!(outcome.decoder.format(), Some(Format::PcapNg));
}

#[test]
fn interface_options_set_name_and_clock() {
    let options = [
        &[1, 0, 2, 0, b'h', b'i', 0, 0][..], // a comment
        &[2, 0, 5, 0, b'e', b't', b'h', b'7', 0, 0, 0, 0],
        &[9, 0, 1, 0, 0x8a, 0, 0, 0], // units of 2^-10 s
        &[14, 0, 8, 0, 100, 0, 0, 0, 0, 0, 0, 0],
        &[0, 0, 0, 0],
        &[9, 0, 1, 0, 0, 0, 0, 0], // after the end: ignored
    ]
    .concat();
    let mut file = pcapng_start(0, &options);
    file.extend(block(6, &[&[0; 8], &512_u32.to_le_bytes()[..], &[0; 8]].concat()));
    let outcome = decode(&file);
    assert_eq!(outcome.frames, [Captured::new(100_500_000_000, b"", 0, 0)]);
    assert_eq!(outcome.decoder.interfaces()[0].name.as_deref(), Some("eth7"));
}

#[test]
fn each_error_has_its_offset() {
    use FormatError::*;
    let start = pcapng_start(0, &[]);
    let at = start.len() as u64;
    let error = |tail: Vec<u8>| decode(&[start.clone(), tail].concat()).error;

    assert_eq!(decode(b"GET / HTTP/1.1").error, Some(NotACapture { found: *b"GET " }));
    let mut old = pcap_file(ByteOrder::Big, Precision::Micros, 0, &[]);
    old[7] = 5;
    assert!(matches!(decode(&old).error, Some(Version { format: "pcap", major: 2, minor: 5, .. })));
    let mut long = pcap_file(ByteOrder::Little, Precision::Nanos, 0, &[]);
    long.extend([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0, 0, 0, 0]);
    assert_eq!(decode(&long).error, Some(RecordTooLong { offset: 24, length: 0xff00_0010 }));

    let framed = |length: u32| [&6_u32.to_le_bytes()[..], &length.to_le_bytes(), &[0; 40]].concat();
    let wrong = |length| Some(BlockLength { offset: at, block_type: 6, length, minimum: 32 });
    assert_eq!(error(framed(33)), wrong(33));
    assert_eq!(error(framed(28)), wrong(28));
    assert_eq!(error(framed(0)), wrong(0));
    assert_eq!(error(framed(0x8000_0000)), Some(RecordTooLong { offset: at, length: 0x8000_0000 }));
    assert_eq!(error(framed(32)), Some(TrailingLength { offset: at, leading: 32, trailing: 0 }));

    let packet = |interface: u32, captured: u32| {
        block(6, &[&interface.to_le_bytes()[..], &[0; 8], &captured.to_le_bytes(), &[9; 8]].concat())
    };
    assert_eq!(error(packet(0, 5)), Some(FrameBeyondBlock { offset: at, captured_length: 5, available: 4 }));
    assert_eq!(error(packet(1, 4)), Some(UndescribedInterface { offset: at, interface: 1, described: 1 }));
    let header = block(0x0a0d_0d0a, &[0; 16]);
    assert_eq!(error(header), Some(ByteOrderMagic { offset: at, found: [0; 4] }));
    let header = [&0x1a2b_3c4d_u32.to_le_bytes()[..], &[2, 0, 0, 0], &[0xff; 8]].concat();
    assert!(matches!(error(block(0x0a0d_0d0a, &header)), Some(Version { format: "pcapng", major: 2, .. })));

    let described = |options: &[u8]| error(block(1, &[&[1, 0, 0, 0, 0, 0, 0, 0], options].concat()));
    let wrong = |code, length, expected| Some(OptionLength { offset: at, code, length, expected });
    assert_eq!(described(&[9, 0, 2, 0, 6, 6, 0, 0]), wrong(9, 2, 1));
    assert_eq!(described(&[14, 0, 4, 0, 6, 6, 0, 0]), wrong(14, 4, 8));
    assert_eq!(described(&[2, 0, 9, 0, 6, 6, 0, 0]), wrong(2, 9, 4));
}

#[test]
fn interfaces_belong_to_their_section() {
    let mut file = pcapng_start(0, &[]);
    pcapng_section(ByteOrder::Big, &[], &[Captured::new(1, b"x", 1, 0)], &mut file);
    assert!(matches!(
        decode(&file).error,
        Some(FormatError::UndescribedInterface { interface: 0, described: 0, .. })
    ));
}

#[test]
fn the_number_of_interfaces_is_bounded() {
    let mut file = pcapng_start(0, &[]);
    let description = block(1, &[1, 0, 0, 0, 0, 0, 0, 0]);
    file.extend(description.repeat(MAX_INTERFACES - 1));
    assert_eq!(decode(&file).error, None);
    let offset = file.len() as u64;
    file.extend(description);
    let outcome = decode(&file);
    assert_eq!(outcome.error, Some(FormatError::TooManyInterfaces { offset }));
    assert_eq!(outcome.decoder.interfaces().len(), MAX_INTERFACES);
}

#[test]
fn an_error_message_shows_the_bytes() {
    let error = decode(b"GET / HTTP/1.1").error.unwrap().to_string();
    assert!(error.starts_with("not a capture file: starts with 47455420, expected"), "{error}");
}

#[test]
fn the_encoders_write_the_documented_bytes() {
    let frame = Captured::new(0x1000_0000_1002, b"abc", 9, 0);
    assert_eq!(
        pcap_file(ByteOrder::Little, Precision::Nanos, 5, std::slice::from_ref(&frame)),
        [
            &[0x4d, 0x3c, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 1, 0, 0, 0][..],
            &(0x1000_0000_1002_u64 / 1_000_000_000).to_le_bytes()[..4],
            &(0x1000_0000_1002_u64 % 1_000_000_000).to_le_bytes()[..4],
            &[3, 0, 0, 0, 9, 0, 0, 0, b'a', b'b', b'c'],
        ]
        .concat()
    );
    let mut section = Vec::new();
    pcapng::Encoder { order: ByteOrder::Big }.section_header(&mut section);
    pcapng::Encoder { order: ByteOrder::Big }.enhanced_packet(2, &frame.frame(), Some("hello"), &mut section);
    assert_eq!(
        section,
        [
            &[0x0a, 0x0d, 0x0d, 0x0a, 0, 0, 0, 28, 0x1a, 0x2b, 0x3c, 0x4d, 0, 1, 0, 0][..],
            &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 28],
            &[0, 0, 0, 6, 0, 0, 0, 52, 0, 0, 0, 2, 0, 0, 0x10, 0, 0, 0, 0x10, 2, 0, 0, 0, 3, 0, 0, 0, 9],
            &[b'a', b'b', b'c', 0, 0, 1, 0, 5, b'h', b'e', b'l', b'l', b'o', 0, 0, 0, 0, 0, 0, 0],
            &[0, 0, 0, 52],
        ]
        .concat()
    );
}

#[test]
fn pcap_times_after_2106_become_the_last_second() {
    let file = pcap_file(ByteOrder::Little, Precision::Nanos, 0, &[Captured::new(u64::MAX, b"", 0, 0)]);
    assert_eq!(frames_of(&file)[0].time / 1_000_000_000, u64::from(u32::MAX));
}

#[test]
fn a_too_long_record_is_an_error_even_if_complete() {
    let max_length = MAX_RECORD_LENGTH - pcap::RECORD_HEADER_LENGTH;
    for (captured_length, fits) in [(max_length, true), (max_length + 1, false)] {
        let mut file = pcap_file(ByteOrder::Little, Precision::Nanos, 0, &[]);
        let length = (captured_length as u32).to_le_bytes();
        file.extend([[0; 4], [0; 4], length, length].concat());
        file.resize(file.len() + captured_length, 0);
        let mut frames = Vec::new();
        assert_eq!(Decoder::new().decode(&file, 0, 1, &mut frames).is_ok(), fits);
        assert_eq!(frames.len(), usize::from(fits));
    }
}

/// Writes the version of a pcap file, and the lengths of its first record.
fn aged(order: ByteOrder, version: (u16, u16), lengths: (u32, u32)) -> Vec<u8> {
    let frame = Captured::new(1_000_000_000, &[7; 60], 1_500, 0);
    let mut file = pcap_file(order, Precision::Micros, 262_144, &[frame]);
    file[4..6].copy_from_slice(&order.u16(version.0));
    file[6..8].copy_from_slice(&order.u16(version.1));
    file[32..36].copy_from_slice(&order.u32(lengths.0));
    file[36..40].copy_from_slice(&order.u32(lengths.1));
    file
}

#[test]
fn old_pcap_versions_have_their_order_of_lengths() {
    let expected = [Captured::new(1_000_000_000, &[7; 60], 1_500, 0)];
    for order in ORDERS {
        for version in [(2, 0), (2, 1), (2, 2), (543, 0)] {
            assert_eq!(frames_of(&aged(order, version, (1_500, 60))), expected, "{version:?}");
        }
        for lengths in [(60, 1_500), (1_500, 60)] {
            assert_eq!(frames_of(&aged(order, (2, 3), lengths)), expected, "{lengths:?}");
        }
        assert_eq!(frames_of(&aged(order, (2, 4), (60, 1_500))), expected);
        for (major, minor) in [(1, 2), (2, 5), (3, 0), (543, 1)] {
            let error = decode(&aged(order, (major, minor), (60, 1_500))).error;
            let expected = "2.0 to 2.4, or 543.0";
            assert_eq!(
                error,
                Some(FormatError::Version { offset: 0, format: "pcap", major, minor, expected })
            );
        }
    }
}
