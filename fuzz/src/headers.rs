//! Headers of frames, with and without tunnel decapsulation.
//!
//! The first byte selects the link type, the second adds to the original length (in units of 8 bytes); the
//! rest is the captured bytes.

use thalweg_wire::packet::{PacketNotes, VlanTags};
use thalweg_wire::parse::{Malformed, Parser, Unparsed};
use thalweg_wire::{Frame, HashSeed, IpVersion, LinkType, Packet, Protocol, Timestamp};

/// Link types by the first byte, modulo their number.
pub const LINK_TYPES: [LinkType; 9] = [
    LinkType::Ethernet,
    LinkType::RawIp,
    LinkType::Null,
    LinkType::Loop,
    LinkType::LinuxSll,
    LinkType::LinuxSll2,
    LinkType::Ipv4,
    LinkType::Ipv6,
    LinkType::Other(147),
];

/// The maximum length of headers: all prefixes up to here are checked.
const LONGEST_PREFIX: usize = 200;

/// Checks that any frame gives a consistent packet or an error, and that a shorter capture gives a
/// consistent result.
///
/// # Panics
/// When the property does not hold.
pub fn check(data: &[u8]) {
    let &[selector, longer, ref bytes @ ..] = data else { return };
    let link_type = LINK_TYPES[usize::from(selector) % LINK_TYPES.len()];
    let original_length = bytes.len() as u32 + 8 * u32::from(longer);
    let frame = Frame { time: Timestamp(7), bytes, original_length, link_type };

    let (outer, inner) = (Parser { decapsulate: false }, Parser { decapsulate: true });
    let plain = outer.parse(&frame);
    let decapsulated = inner.parse(&frame);
    for (parser, parsed) in [(outer, plain), (inner, decapsulated)] {
        let mut packets = Vec::new();
        assert_eq!(parser.parse_into(&frame, &mut packets, &mut VlanTags::default()), parsed.map(|_| ()));
        assert_eq!(packets.first().copied(), parsed.ok());
        parsed.iter().for_each(check_packet);
    }
    match (plain, decapsulated) {
        (Ok(plain), Ok(decapsulated)) if !decapsulated.notes.contains(PacketNotes::DECAPSULATED) => {
            assert_eq!(plain, decapsulated)
        }
        (Ok(plain), Ok(decapsulated)) => {
            assert!(decapsulated.ip_length <= plain.ip_length || is_open(&decapsulated))
        }
        (plain, decapsulated) => assert_eq!(plain, decapsulated, "decapsulation changed an error"),
    }
    match plain {
        Ok(packet) => check_length(&packet, &frame),
        Err(Unparsed::UnsupportedLinkType(number)) => assert_eq!(LinkType::Other(number), link_type),
        Err(Unparsed::Malformed { offset, .. }) => assert!(offset <= original_length),
        Err(_) => {}
    }
    for length in 0..bytes.len().min(LONGEST_PREFIX) {
        check_prefix(plain, outer.parse(&Frame { bytes: &bytes[..length], ..frame }));
    }
}

fn is_open(packet: &Packet) -> bool {
    packet.notes.contains(PacketNotes::LENGTH_BEYOND_FRAME)
}

/// Checks the invariants of a packet.
fn check_packet(packet: &Packet) {
    assert_eq!(packet.time, Timestamp(7));
    let header_length = match packet.key.version() {
        IpVersion::V4 => 20,
        IpVersion::V6 => 40,
    };
    assert!(packet.ip_length >= header_length, "{packet:?}");
    assert!(packet.payload_length <= packet.ip_length - header_length, "{packet:?}");
    if packet.key.protocol != Protocol::TCP {
        assert_eq!((packet.tcp_sequence, packet.tcp_flags.0), (0, 0), "{packet:?}");
    }
    if packet.notes.contains(PacketNotes::PORTS_NOT_CAPTURED) {
        assert_eq!((packet.key.src_port, packet.key.dst_port), (0, 0), "{packet:?}");
    }
    let (key, seed) = (packet.key, HashSeed::new(1));
    assert_eq!(key.canonical().0, key.reversed().canonical().0);
    assert_eq!(key.symmetric_hash(&seed), key.reversed().symmetric_hash(&seed));
    assert_eq!(key.to_string().parse(), Ok(key));
}

/// Checks that an IP packet is within its frame unless marked otherwise.
fn check_length(packet: &Packet, frame: &Frame<'_>) {
    let beyond = packet.notes.contains(PacketNotes::LENGTH_BEYOND_FRAME);
    assert!(beyond || packet.ip_length <= frame.original_length, "{packet:?}");
}

/// Checks that a shorter capture of a frame gives the same packet as far as captured, or is marked as truncated.
fn check_prefix(whole: Result<Packet, Unparsed>, part: Result<Packet, Unparsed>) {
    let cut_off = matches!(part, Err(Unparsed::Malformed { kind: Malformed::Truncated, .. }));
    // SNAP is distinguished from other LLC by its eighth byte.
    let is_llc = matches!(part, Err(Unparsed::NonIp { .. }));
    match (whole, part) {
        _ if cut_off || is_llc => {}
        (Ok(whole), Ok(part)) => {
            assert_eq!(part.key.version(), whole.key.version());
            assert_eq!((part.key.src(), part.key.dst()), (whole.key.src(), whole.key.dst()));
            if !part.notes.contains(PacketNotes::LENGTH_FROM_FRAME) {
                assert_eq!(part.ip_length, whole.ip_length);
            }
            if !part.notes.contains(PacketNotes::PORTS_NOT_CAPTURED) {
                assert_eq!((part.key, part.fragment), (whole.key, whole.fragment));
            }
        }
        (whole, part) => assert_eq!(part, whole),
    }
}
