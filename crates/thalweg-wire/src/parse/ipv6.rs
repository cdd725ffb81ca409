//! Internet Protocol, version 6 (RFC 8200).

use crate::flow_key::FlowKey;
use crate::packet::{Fragment, PacketNotes};
use crate::parse::datagram::{self, Datagram};
use crate::parse::frame_cursor::FrameCursor;
use crate::parse::{Malformed, Unparsed};
use crate::protocol::Protocol;

/// The length of the header without extensions in bytes (RFC 8200 section 3).
const HEADER_LENGTH: u32 = 40;

/// Hop-by-hop options (RFC 8200 section 4.3).
const HOP_BY_HOP: u8 = 0;
/// Routing (RFC 8200 section 4.4).
const ROUTING: u8 = 43;
/// Fragment (RFC 8200 section 4.5).
const FRAGMENT: u8 = 44;
/// Authentication (RFC 4302 section 2).
pub(super) const AUTHENTICATION: u8 = 51;
/// Destination options (RFC 8200 section 4.6).
const DESTINATION_OPTIONS: u8 = 60;
/// Mobility (RFC 6275 section 6.1).
const MOBILITY: u8 = 135;
/// Host identity (RFC 7401 section 5.1).
const HOST_IDENTITY: u8 = 139;
/// Shim6 (RFC 5533 section 5).
const SHIM6: u8 = 140;

/// No next header (RFC 8200 section 4.7).
const NO_NEXT_HEADER: u8 = 59;

/// The maximum number of extension headers. A valid packet has each kind once and destination options twice (RFC 8200
/// section 4.1).
const MAX_EXTENSION_HEADERS: u32 = 12;

/// The only option without a length byte (RFC 8200 section 4.2).
const PAD1: u8 = 0;
/// Jumbo payload: a 32-bit length that replaces that of the header (RFC 2675 section 2).
const JUMBO_PAYLOAD: u8 = 0xC2;
/// The maximum number of options to search for a jumbo payload.
const MAX_OPTIONS: u32 = 8;

/// Parses an IPv6 header and its extension headers.
///
/// If the payload length is zero, the jumbo payload option has the length. Without that option, zero means a length
/// beyond 16 bits if a header must follow (TCP, UDP, an extension header). The frame length then replaces it.
#[inline]
pub(super) fn parse(rest: FrameCursor<'_>) -> Result<Datagram<'_>, Unparsed> {
    let header: &[u8; 40] = rest.header()?;
    if header[0] >> 4 != 6 {
        return Err(rest.malformed(Malformed::IpVersion));
    }
    let next_header = header[6];
    let payload_length = match u16::from_be_bytes([header[4], header[5]]) {
        0 => jumbo_payload_length(next_header, rest.skip(HEADER_LENGTH))
            .or_else(|| (!needs_payload(next_header)).then_some(0)),
        length => Some(u32::from(length)),
    };
    let stated = payload_length.map(|length| length.saturating_add(HEADER_LENGTH));
    let (ip_length, notes) = datagram::ip_length(stated, rest.wire_length());

    let src = u128::from_be_bytes(*rest.skip(8).header()?);
    let dst = u128::from_be_bytes(*rest.skip(24).header()?);
    let key = FlowKey::v6(src, dst, 0, 0, Protocol(next_header));
    let payload = rest.with_wire_length(ip_length).skip(HEADER_LENGTH);
    let mut datagram =
        Datagram { key, ip_length, identification: 0, fragment: Fragment::Whole, notes, payload };
    if is_extension_header(next_header) {
        skip_extension_headers(&mut datagram, MAX_EXTENSION_HEADERS);
    }
    Ok(datagram)
}

/// Whether a packet with this next header must have a payload.
fn needs_payload(next_header: u8) -> bool {
    matches!(Protocol(next_header), Protocol::TCP | Protocol::UDP) || is_extension_header(next_header)
}

fn is_extension_header(number: u8) -> bool {
    matches!(
        number,
        HOP_BY_HOP
            | ROUTING
            | FRAGMENT
            | AUTHENTICATION
            | DESTINATION_OPTIONS
            | MOBILITY
            | HOST_IDENTITY
            | SHIM6
    )
}

/// Skips up to `limit` extension headers to the transport header, and reads the position in a fragmented datagram.
///
/// Stops at a later fragment, whose next header is that of the first fragment's payload, and at the end of the capture.
/// The protocol is then the last known one.
#[inline(never)]
pub(super) fn skip_extension_headers(datagram: &mut Datagram<'_>, limit: u32) {
    for _ in 0..limit {
        let number = datagram.key.protocol.0;
        if !is_extension_header(number) {
            return;
        }
        let Some(&[next_header, length]) = datagram.payload.peek() else { break };
        // Mobility, host identity and Shim6 messages without a next header are the payload.
        if next_header == NO_NEXT_HEADER && matches!(number, MOBILITY | HOST_IDENTITY | SHIM6) {
            return;
        }
        if number == FRAGMENT {
            let Some(fragment) = fragment(datagram.payload) else { break };
            datagram.fragment = fragment;
        }
        let header_length = match number {
            FRAGMENT => 8,
            AUTHENTICATION => (u32::from(length) + 2) * 4,
            _ => (u32::from(length) + 1) * 8,
        };
        datagram.payload = datagram.payload.skip(header_length);
        datagram.key.protocol = Protocol(next_header);
        if matches!(datagram.fragment, Fragment::Later { .. }) {
            return;
        }
    }
    if is_extension_header(datagram.key.protocol.0) {
        datagram.notes |= PacketNotes::PORTS_NOT_CAPTURED;
    }
}

/// Reads the position in a fragmented datagram, if the whole header was captured.
fn fragment(header: FrameCursor<'_>) -> Option<Fragment> {
    let &[_, _, high, low, i0, i1, i2, i3] = header.peek()?;
    let offset_and_flags = u16::from_be_bytes([high, low]);
    let identification = u32::from_be_bytes([i0, i1, i2, i3]);
    Some(datagram::fragment(offset_and_flags >> 3, offset_and_flags & 1 != 0, identification))
}

/// Returns the length in a jumbo payload option, which is in hop-by-hop options; `None` if it is absent, truncated, or
/// fits into 16 bits (RFC 2675 section 3).
fn jumbo_payload_length(next_header: u8, rest: FrameCursor<'_>) -> Option<u32> {
    let &[_, length] = rest.peek().filter(|_| next_header == HOP_BY_HOP)?;
    let mut options = rest.with_wire_length((u32::from(length) + 1) * 8).skip(2);
    for _ in 0..MAX_OPTIONS {
        match options.peek() {
            Some(&[JUMBO_PAYLOAD, 4, l0, l1, l2, l3]) => {
                let length = u32::from_be_bytes([l0, l1, l2, l3]);
                return (length > u32::from(u16::MAX)).then_some(length);
            }
            _ => options = options.skip(option_length(options)?),
        }
    }
    None
}

/// Returns the length of the next option in bytes.
fn option_length(options: FrameCursor<'_>) -> Option<u32> {
    match options.peek()? {
        [PAD1] => Some(1),
        _ => options.peek().map(|&[_, length]| u32::from(length) + 2),
    }
}
