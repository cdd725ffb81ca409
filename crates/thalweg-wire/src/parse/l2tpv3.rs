//! L2TP version 3 (RFC 3931), over IP and over UDP: finds the inner IP packet.
//!
//! A data message has a session, a cookie of 0, 4 or 8 bytes, and a sublayer of 0 or 4 bytes. Their lengths, and what follows
//! (Ethernet, RFC 4719; HDLC, RFC 4349; PPP; Frame Relay, RFC 4591; IP), were agreed upon by the control connection, which a capture
//! rarely has. So all combinations are tried, and the payload decides: an IP header has to be valid, at only one position.
//!
//! **Guarantee.** A header is valid if the version fits, the length is that of the message (or less only in an Ethernet
//! frame of the minimum size), and of IPv4 the checksum is right; of IPv6, the next header is a known one and both addresses are from
//! assigned blocks. Of messages with random bytes, about one in 2^34 passes as IPv4, and one in 2^27 as IPv6. Without such a position,
//! or with two, nothing is found, and the flow is the outer one.

use crate::flow_key::IpVersion;
use crate::parse::frame_cursor::FrameCursor;
use crate::parse::ip::Network;
use crate::parse::{Unparsed, link, serial};

/// The lengths of cookie and sublayer together (RFC 3931 sections 4.1 and 4.6).
const LENGTHS_BEFORE_PAYLOAD: [u32; 4] = [0, 4, 8, 12];

/// The lengths of Ethernet frames that may be padded: the minimum without a frame check sequence (IEEE 802.3 section 3.2.8), and with
/// a tag that was added or removed on the way.
const PADDED_FRAMES: std::ops::RangeInclusive<u32> = 56..=64;

/// IPv6 next headers of which a packet may consist (IANA "Protocol Numbers"): hop-by-hop options, ICMP, IPv4, TCP, UDP, IPv6, routing, fragment,
/// GRE, ESP, AH, ICMPv6, none, destination options, OSPF, PIM, SCTP, UDP-Lite.
const NEXT_HEADERS: [u8; 18] = [0, 1, 4, 6, 17, 41, 43, 44, 47, 50, 51, 58, 59, 60, 89, 103, 132, 136];

/// The first byte of multicast addresses (RFC 4291 section 2.7).
const IPV6_MULTICAST: u8 = 0xFF;

/// Parses a data message over IP: the session, which is not 0, then the payload (RFC 3931 section 4.1.1.1).
pub(super) fn over_ip(rest: FrameCursor<'_>) -> Option<Network<'_>> {
    let &session = rest.peek()?;
    (session != [0; 4]).then(|| payload(rest.skip(4))).flatten()
}

/// Parses a data message over UDP: version 3 without flags, then as over IP (RFC 3931 section 4.1.2.1).
pub(super) fn over_udp(rest: FrameCursor<'_>) -> Option<Network<'_>> {
    (rest.peek() == Some(&[0, 3, 0, 0])).then(|| over_ip(rest.skip(4))).flatten()
}

/// Returns the IP packet after cookie and sublayer, if there is one at exactly one position.
fn payload(rest: FrameCursor<'_>) -> Option<Network<'_>> {
    let mut found: Option<Network<'_>> = None;
    for length in LENGTHS_BEFORE_PAYLOAD {
        let rest = rest.skip(length);
        let may_be_padded = PADDED_FRAMES.contains(&rest.wire_length());
        let candidates = [
            (link::ethernet(rest), may_be_padded),
            (serial::ppp_hdlc(rest), false),
            (serial::frame_relay(rest), false),
            (link::raw_ip(rest), false),
        ];
        for (network, may_be_padded) in candidates {
            let Some(network) = valid(network, may_be_padded) else { continue };
            if found.is_some_and(|other| other.rest.wire_length() != network.rest.wire_length()) {
                return None;
            }
            found = Some(network);
        }
    }
    found
}

/// Returns the packet if its header is valid.
fn valid(network: Result<Network<'_>, Unparsed>, may_be_padded: bool) -> Option<Network<'_>> {
    let network = network.ok()?;
    let length = match network.version {
        IpVersion::V4 => ipv4_length(network.rest)?,
        IpVersion::V6 => ipv6_length(network.rest)?,
    };
    let room = network.rest.wire_length();
    (length == room || (may_be_padded && length < room)).then_some(network)
}

/// The total length of a valid IPv4 header.
fn ipv4_length(rest: FrameCursor<'_>) -> Option<u32> {
    let &[first, _, high, low] = rest.peek()?;
    let header_length = u32::from(first & 0x0F) * 4;
    let header = rest.bytes().get(..header_length as usize)?;
    let length = u32::from(u16::from_be_bytes([high, low]));
    let is_valid = first >> 4 == 4 && header_length >= 20 && length >= header_length;
    (is_valid && ones_complement_sum(header) == 0xFFFF).then_some(length)
}

/// The length of a valid IPv6 header and its payload.
fn ipv6_length(rest: FrameCursor<'_>) -> Option<u32> {
    let header: &[u8; 40] = rest.peek()?;
    let is_valid = header[0] >> 4 == 6
        && NEXT_HEADERS.contains(&header[6])
        && is_assigned([header[8], header[9]])
        && header[8] != IPV6_MULTICAST
        && is_assigned([header[24], header[25]]);
    is_valid.then(|| 40 + u32::from(u16::from_be_bytes([header[4], header[5]])))
}

/// Whether addresses that begin like this are from an assigned block (IANA "IPv6 Address Space"): the unspecified, mapped and translated
/// ones, global unicast, unique local, link-local and multicast.
fn is_assigned(start: [u8; 2]) -> bool {
    match start {
        [0x00, _] | [0x20..=0x3F, _] | [0xFC..=0xFD, _] | [IPV6_MULTICAST, _] => true,
        [0xFE, second] => second & 0xC0 == 0x80,
        _ => false,
    }
}

/// The sum of the words of a header, which is `0xFFFF` if its checksum is right (RFC 1071).
fn ones_complement_sum(header: &[u8]) -> u32 {
    let words = header.chunks_exact(2).map(|word| u32::from(u16::from_be_bytes([word[0], word[1]])));
    let sum: u32 = words.sum();
    let sum = (sum & 0xFFFF) + (sum >> 16);
    (sum & 0xFFFF) + (sum >> 16)
}
