//! Tunnels: finds the inner IP packet.
//!
//! | tunnel | source |
//! |---|---|
//! | IP in IP | RFC 2003, RFC 2473, RFC 4213 |
//! | GRE, version 0, with checksum, key, sequence number | RFC 2784, RFC 2890 |
//! | NVGRE | RFC 7637 |
//! | ERSPAN I, II, III | draft-foschiano-erspan-03 |
//! | VXLAN | RFC 7348 |
//! | Geneve | RFC 8926 |
//!
//! Not supported: PPTP (GRE version 1, RFC 2637), source-routed GRE (RFC 1701), VXLAN-GPE.

use crate::flow_key::IpVersion;
use crate::packet::{Fragment, PacketNotes};
use crate::parse::datagram::Datagram;
use crate::parse::frame_cursor::FrameCursor;
use crate::parse::ip::{self, Network};
use crate::parse::link;
use crate::parse::transport::UDP_HEADER_LENGTH;
use crate::protocol::Protocol;

/// The maximum number of nested tunnels.
const MAX_DEPTH: u32 = 4;

/// IPv4 in IP (RFC 2003).
const IPV4_IN_IP: Protocol = Protocol(4);
/// IPv6 in IP (RFC 2473, RFC 4213).
const IPV6_IN_IP: Protocol = Protocol(41);

/// UDP destination ports: VXLAN's (RFC 7348 section 5), Linux's for VXLAN before that, Geneve's (RFC 8926
/// section 3.3).
const VXLAN_PORT: u16 = 4789;
const LINUX_VXLAN_PORT: u16 = 8472;
const GENEVE_PORT: u16 = 6081;

/// The VXLAN network identifier is valid (RFC 7348 section 5, I flag).
const VXLAN_VALID: u8 = 0x08;
/// The length in bytes of a VXLAN header (RFC 7348 section 5), and of a Geneve header without options (RFC 8926 section
/// 3.4).
const OVERLAY_HEADER_LENGTH: u32 = 8;

/// GRE flags (RFC 2784 section 2.1, RFC 2890 section 2).
const GRE_CHECKSUM: u16 = 0x8000;
const GRE_ROUTING: u16 = 0x4000;
const GRE_KEY: u16 = 0x2000;
const GRE_SEQUENCE: u16 = 0x1000;
const GRE_VERSION: u16 = 0x0007;

/// Protocol types of GRE and Geneve other than EtherTypes: Ethernet (RFC 7637 section 3.2), ERSPAN I and II, ERSPAN
/// III.
const TRANSPARENT_ETHERNET: u16 = 0x6558;
const ERSPAN: u16 = 0x88BE;
const ERSPAN_III: u16 = 0x22EB;

/// Whether UDP to this port may be a tunnel.
#[inline]
pub(crate) fn is_udp_tunnel(dst_port: u16) -> bool {
    matches!(dst_port, VXLAN_PORT | LINUX_VXLAN_PORT | GENEVE_PORT)
}

/// Replaces a tunnel packet by its innermost packet. Other packets remain unchanged.
#[inline(never)]
pub(super) fn decapsulate(datagram: &mut Datagram<'_>) {
    for _ in 0..MAX_DEPTH {
        let Some(Ok(inner)) = inside(datagram).map(ip::parse) else { return };
        *datagram = inner;
        datagram.notes |= PacketNotes::DECAPSULATED;
    }
}

/// Returns the IP packet in a tunnel packet.
fn inside<'a>(datagram: &Datagram<'a>) -> Option<Network<'a>> {
    if datagram.fragment != Fragment::Whole {
        return None;
    }
    let rest = datagram.payload;
    match datagram.key.protocol {
        IPV4_IN_IP => Some(Network { version: IpVersion::V4, rest }),
        IPV6_IN_IP => Some(Network { version: IpVersion::V6, rest }),
        Protocol::GRE => gre(rest),
        Protocol::UDP => udp(rest),
        _ => None,
    }
}

/// Parses an overlay over UDP, identified by its destination port.
fn udp(rest: FrameCursor<'_>) -> Option<Network<'_>> {
    let &[_, _, high, low] = rest.peek()?;
    let rest = rest.skip(UDP_HEADER_LENGTH);
    match u16::from_be_bytes([high, low]) {
        VXLAN_PORT | LINUX_VXLAN_PORT => vxlan(rest),
        GENEVE_PORT => geneve(rest),
        _ => None,
    }
}

fn vxlan(rest: FrameCursor<'_>) -> Option<Network<'_>> {
    let &[flags] = rest.peek()?;
    (flags & VXLAN_VALID != 0).then_some(())?;
    link::ethernet(rest.skip(OVERLAY_HEADER_LENGTH)).ok()
}

/// Parses Geneve: version, options length in words, flags, protocol type, network identifier (RFC 8926 section 3.4).
fn geneve(rest: FrameCursor<'_>) -> Option<Network<'_>> {
    let &[version_and_options, _, high, low] = rest.peek()?;
    (version_and_options >> 6 == 0).then_some(())?;
    let options_length = u32::from(version_and_options & 0x3F) * 4;
    from_protocol_type(u16::from_be_bytes([high, low]), rest.skip(OVERLAY_HEADER_LENGTH + options_length))
}

fn gre(rest: FrameCursor<'_>) -> Option<Network<'_>> {
    let &[f0, f1, p0, p1] = rest.peek()?;
    let (flags, protocol_type) = (u16::from_be_bytes([f0, f1]), u16::from_be_bytes([p0, p1]));
    if flags & (GRE_VERSION | GRE_ROUTING) != 0 {
        return None;
    }
    let optional_words = (flags & (GRE_CHECKSUM | GRE_KEY | GRE_SEQUENCE)).count_ones();
    let rest = rest.skip(4 + 4 * optional_words);
    match protocol_type {
        ERSPAN if flags & GRE_SEQUENCE == 0 => link::ethernet(rest).ok(),
        ERSPAN => erspan_ii(rest),
        ERSPAN_III => erspan_iii(rest),
        _ => from_protocol_type(protocol_type, rest),
    }
}

/// Parses ERSPAN II: eight bytes, version 1 in the first four bits (draft-foschiano-erspan section 4.2).
fn erspan_ii(rest: FrameCursor<'_>) -> Option<Network<'_>> {
    let &[version] = rest.peek()?;
    (version >> 4 == 1).then_some(())?;
    link::ethernet(rest.skip(8)).ok()
}

/// Parses ERSPAN III: twelve bytes, version 2 in the first four bits. The last bit announces eight more bytes, and five
/// bits are the frame type (draft-foschiano-erspan section 4.3).
fn erspan_iii(rest: FrameCursor<'_>) -> Option<Network<'_>> {
    let &[version, _, _, _, _, _, _, _, _, _, frame_type, subheader] = rest.peek()?;
    (version >> 4 == 2).then_some(())?;
    let rest = rest.skip(if subheader & 1 != 0 { 20 } else { 12 });
    match frame_type >> 2 & 0x1F {
        0 => link::ethernet(rest).ok(),
        2 => link::raw_ip(rest).ok(),
        _ => None,
    }
}

/// Parses the payload of a GRE or Geneve protocol type.
fn from_protocol_type(protocol_type: u16, rest: FrameCursor<'_>) -> Option<Network<'_>> {
    match protocol_type {
        TRANSPARENT_ETHERNET => link::ethernet(rest).ok(),
        ethertype => link::from_ethertype(ethertype, rest).ok(),
    }
}
