//! Internet Protocol (RFC 791).

use crate::flow_key::FlowKey;
use crate::packet::Fragment;
use crate::parse::datagram::{self, Datagram};
use crate::parse::frame_cursor::FrameCursor;
use crate::parse::ipv6;
use crate::parse::{Malformed, Unparsed};
use crate::protocol::Protocol;

/// The length of a header without options in bytes (RFC 791 section 3.1).
const MIN_HEADER_LENGTH: u32 = 20;

/// "More fragments" (RFC 791 section 3.1, flags).
const MORE_FRAGMENTS: u16 = 0x2000;
/// Fragment offset in 8-byte units.
const FRAGMENT_OFFSET: u16 = 0x1FFF;

/// Parses an IPv4 header. Skips options and an authentication header (RFC 4302), so that the ports after it are found
/// as in IPv6.
///
/// A total length of zero means that the length exceeds 16 bits (segmentation offload or BIG TCP). The frame length
/// replaces it.
#[inline]
pub(super) fn parse(rest: FrameCursor<'_>) -> Result<Datagram<'_>, Unparsed> {
    let header: &[u8; 20] = rest.header()?;
    if header[0] >> 4 != 4 {
        return Err(rest.malformed(Malformed::IpVersion));
    }
    let header_length = u32::from(header[0] & 0x0F) * 4;
    if header_length < MIN_HEADER_LENGTH {
        return Err(rest.malformed(Malformed::HeaderLength));
    }
    let total_length = u16::from_be_bytes([header[2], header[3]]);
    let stated = (total_length != 0).then_some(u32::from(total_length));
    let (ip_length, notes) = datagram::ip_length(stated, rest.wire_length());
    if ip_length < header_length {
        return Err(rest.malformed(Malformed::TotalLength));
    }

    let identification = u16::from_be_bytes([header[4], header[5]]);
    let flags_and_offset = u16::from_be_bytes([header[6], header[7]]);
    let more_fragments = flags_and_offset & MORE_FRAGMENTS != 0;
    let fragment =
        datagram::fragment(flags_and_offset & FRAGMENT_OFFSET, more_fragments, identification.into());

    let src = u32::from_be_bytes([header[12], header[13], header[14], header[15]]);
    let dst = u32::from_be_bytes([header[16], header[17], header[18], header[19]]);
    let key = FlowKey::v4(src, dst, 0, 0, Protocol(header[9]));
    let payload = rest.with_wire_length(ip_length).skip(header_length);
    let mut datagram = Datagram { key, ip_length, identification, fragment, notes, payload };
    if header[9] == ipv6::AUTHENTICATION && !matches!(fragment, Fragment::Later { .. }) {
        ipv6::skip_extension_headers(&mut datagram, 1);
    }
    Ok(datagram)
}
