//! Tunnels: finds the inner IP packet.
//!
//! | tunnel | source |
//! |---|---|
//! | IP in IP | RFC 2003, RFC 2473, RFC 4213 |
//! | GRE, version 0, with checksum, key, sequence number | RFC 2784, RFC 2890 |
//! | NVGRE | RFC 7637 |
//! | ERSPAN I, II, III | draft-foschiano-erspan-03 |
//! | PPTP: GRE version 1 with PPP | RFC 2637 |
//! | WCCP: GRE with a redirect header | draft-mclaggan-wccp-v2rev1-00 section 3.12 |
//! | GRE in UDP | RFC 8086 |
//! | VXLAN, VXLAN-GPE | RFC 7348, draft-ietf-nvo3-vxlan-gpe-12 |
//! | Geneve | RFC 8926 |
//! | GTP-U, version 1 | 3GPP TS 29.281 section 5 |
//! | L2TP, version 2 | RFC 2661 |
//! | L2TP, version 3, over UDP and IP | RFC 3931, see `l2tpv3` |
//! | Teredo | RFC 4380 section 5.1.1 |
//!
//! Not supported: source-routed GRE (RFC 1701).

use crate::flow_key::IpVersion;
use crate::packet::{Fragment, PacketNotes};
use crate::parse::datagram::Datagram;
use crate::parse::frame_cursor::FrameCursor;
use crate::parse::ip::{self, Network};
use crate::parse::transport::UDP_HEADER_LENGTH;
use crate::parse::{l2tpv3, link, serial};
use crate::protocol::Protocol;

/// The maximum number of nested tunnels.
const MAX_DEPTH: u32 = 4;

/// IPv4 in IP (RFC 2003).
const IPV4_IN_IP: Protocol = Protocol(4);
/// IPv6 in IP (RFC 2473, RFC 4213).
const IPV6_IN_IP: Protocol = Protocol(41);
/// L2TP version 3 in IP (RFC 3931 section 4.1.1).
const L2TP_IN_IP: Protocol = Protocol(115);

/// UDP destination ports: VXLAN's (RFC 7348 section 5), Linux's for VXLAN before that, VXLAN-GPE's, Geneve's (RFC 8926
/// section 3.3), GTP-U's (TS 29.281 section 4.4.2), GRE's (RFC 8086 section 3).
const VXLAN_PORT: u16 = 4789;
const LINUX_VXLAN_PORT: u16 = 8472;
const VXLAN_GPE_PORT: u16 = 4790;
const GENEVE_PORT: u16 = 6081;
const GTP_PORT: u16 = 2152;
const GRE_PORT: u16 = 4754;
/// UDP ports of either side: L2TP's (RFC 2661 section 8.1), Teredo's (RFC 4380 section 2.7).
const L2TP_PORT: u16 = 1701;
const TEREDO_PORT: u16 = 3544;

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
/// Version 1 and its acknowledgement number (RFC 2637 section 4.1).
const GRE_PPTP: u16 = 0x0001;
const GRE_ACKNOWLEDGEMENT: u16 = 0x0080;

/// Protocol types of GRE and Geneve other than EtherTypes: Ethernet (RFC 7637 section 3.2), ERSPAN I and II, ERSPAN
/// III.
const TRANSPARENT_ETHERNET: u16 = 0x6558;
const ERSPAN: u16 = 0x88BE;
const ERSPAN_III: u16 = 0x22EB;
/// PPP in PPTP, and packets that a router redirected by WCCP.
const PPP: u16 = 0x880B;
const WCCP: u16 = 0x883E;

/// GTP-U (TS 29.281 section 5.1): version 1 and protocol type GTP; fields that come together if one of them is announced;
/// the message type of user data.
const GTP_VERSION_AND_TYPE: u8 = 0xF0;
const GTP_V1: u8 = 0x30;
const GTP_EXTENSIONS: u8 = 0x04;
const GTP_OPTIONAL: u8 = 0x07;
const GTP_USER_DATA: u8 = 0xFF;
const MAX_GTP_EXTENSIONS: u32 = 8;

/// L2TP flags (RFC 2661 section 3.1).
const L2TP_CONTROL: u16 = 0x8000;
const L2TP_LENGTH: u16 = 0x4000;
const L2TP_SEQUENCE: u16 = 0x0800;
const L2TP_OFFSET: u16 = 0x0200;
const L2TP_VERSION: u16 = 0x000F;

/// Whether UDP between these ports may be a tunnel.
#[inline]
pub(crate) fn is_udp_tunnel(src_port: u16, dst_port: u16) -> bool {
    matches!(
        dst_port,
        VXLAN_PORT
            | LINUX_VXLAN_PORT
            | VXLAN_GPE_PORT
            | GENEVE_PORT
            | GTP_PORT
            | GRE_PORT
            | L2TP_PORT
            | TEREDO_PORT
    ) || matches!(src_port, L2TP_PORT | TEREDO_PORT)
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
        L2TP_IN_IP => l2tpv3::over_ip(rest),
        Protocol::GRE => gre(rest),
        Protocol::UDP => udp(rest),
        _ => None,
    }
}

/// Parses a tunnel over UDP, identified by its ports.
fn udp(rest: FrameCursor<'_>) -> Option<Network<'_>> {
    let &[s0, s1, d0, d1] = rest.peek()?;
    let rest = rest.skip(UDP_HEADER_LENGTH);
    match (u16::from_be_bytes([s0, s1]), u16::from_be_bytes([d0, d1])) {
        (_, VXLAN_PORT | LINUX_VXLAN_PORT) => vxlan(rest),
        (_, VXLAN_GPE_PORT) => vxlan_gpe(rest),
        (_, GENEVE_PORT) => geneve(rest),
        (_, GTP_PORT) => gtp(rest),
        (_, GRE_PORT) => gre(rest),
        (L2TP_PORT, _) | (_, L2TP_PORT) => l2tp(rest).or_else(|| l2tpv3::over_udp(rest)),
        (TEREDO_PORT, _) | (_, TEREDO_PORT) => teredo(rest),
        _ => None,
    }
}

fn vxlan(rest: FrameCursor<'_>) -> Option<Network<'_>> {
    let &[flags] = rest.peek()?;
    (flags & VXLAN_VALID != 0).then_some(())?;
    link::ethernet(rest.skip(OVERLAY_HEADER_LENGTH)).ok()
}

/// Parses VXLAN-GPE: flags with the version, and the next protocol in the last byte of the first word.
fn vxlan_gpe(rest: FrameCursor<'_>) -> Option<Network<'_>> {
    let &[flags, _, _, next] = rest.peek()?;
    // The next protocol is present (P flag), version 0, no operation and maintenance.
    (flags & 0x35 == 0x04).then_some(())?;
    let rest = rest.skip(OVERLAY_HEADER_LENGTH);
    match next {
        1 => Some(Network { version: IpVersion::V4, rest }),
        2 => Some(Network { version: IpVersion::V6, rest }),
        3 => link::ethernet(rest).ok(),
        4 => {
            let (ethertype, rest) = link::service_header(rest).ok()?;
            link::from_ethertype(ethertype, rest).ok()
        }
        _ => None,
    }
}

/// Parses GTP-U with user data: eight bytes, four more if a field of them is announced, then extension headers, whose first byte is
/// the length in words and whose last byte is the type of the next one.
fn gtp(rest: FrameCursor<'_>) -> Option<Network<'_>> {
    let &[flags, message, _, _] = rest.peek()?;
    (flags & GTP_VERSION_AND_TYPE == GTP_V1 && message == GTP_USER_DATA).then_some(())?;
    let mut payload = rest.skip(8);
    if flags & GTP_OPTIONAL != 0 {
        let &[_, _, _, mut next] = payload.peek()?;
        payload = payload.skip(4);
        for _ in 0..MAX_GTP_EXTENSIONS {
            if flags & GTP_EXTENSIONS == 0 || next == 0 {
                break;
            }
            let &[words] = payload.peek()?;
            let length = 4 * u32::from(words).max(1);
            let &[last] = payload.skip(length - 1).peek()?;
            (payload, next) = (payload.skip(length), last);
        }
    }
    link::raw_ip(payload).ok()
}

/// Parses a data message of version 2 of L2TP with PPP.
fn l2tp(rest: FrameCursor<'_>) -> Option<Network<'_>> {
    let &[high, low] = rest.peek()?;
    let flags = u16::from_be_bytes([high, low]);
    (flags & L2TP_VERSION == 2 && flags & L2TP_CONTROL == 0).then_some(())?;
    let length = if flags & L2TP_LENGTH != 0 { 2 } else { 0 };
    let sequence = if flags & L2TP_SEQUENCE != 0 { 4 } else { 0 };
    // Flags, tunnel and session.
    let mut rest = rest.skip(2 + length + 4 + sequence);
    if flags & L2TP_OFFSET != 0 {
        let &[high, low] = rest.peek()?;
        rest = rest.skip(2 + u32::from(u16::from_be_bytes([high, low])));
    }
    serial::ppp(rest).ok()
}

/// Parses Teredo: optional indications of authentication and of the origin, then IPv6.
fn teredo(mut rest: FrameCursor<'_>) -> Option<Network<'_>> {
    if let Some(&[0, 1, identifier, authentication]) = rest.peek() {
        // Lengths of both, then a nonce and a confirmation.
        rest = rest.skip(4 + u32::from(identifier) + u32::from(authentication) + 9);
    }
    if rest.peek() == Some(&[0, 0]) {
        rest = rest.skip(8);
    }
    let &[version] = rest.peek()?;
    (version >> 4 == 6).then_some(Network { version: IpVersion::V6, rest })
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
    if flags & GRE_VERSION == GRE_PPTP {
        return pptp(flags, protocol_type, rest);
    }
    if flags & (GRE_VERSION | GRE_ROUTING) != 0 {
        return None;
    }
    let optional_words = (flags & (GRE_CHECKSUM | GRE_KEY | GRE_SEQUENCE)).count_ones();
    let rest = rest.skip(4 + 4 * optional_words);
    match protocol_type {
        ERSPAN if flags & GRE_SEQUENCE == 0 => link::ethernet(rest).ok(),
        ERSPAN => erspan_ii(rest),
        ERSPAN_III => erspan_iii(rest),
        WCCP => wccp(rest),
        _ => from_protocol_type(protocol_type, rest),
    }
}

/// Parses PPTP: eight bytes, and the numbers that the flags announce. A packet without a sequence number has no payload.
fn pptp(flags: u16, protocol_type: u16, rest: FrameCursor<'_>) -> Option<Network<'_>> {
    (protocol_type == PPP && flags & GRE_KEY != 0 && flags & GRE_SEQUENCE != 0).then_some(())?;
    let acknowledgement = if flags & GRE_ACKNOWLEDGEMENT != 0 { 4 } else { 0 };
    serial::ppp(rest.skip(12 + acknowledgement)).ok()
}

/// Parses a packet that WCCP redirected: version 2 puts four bytes before IPv4, version 1 none.
fn wccp(rest: FrameCursor<'_>) -> Option<Network<'_>> {
    let &[first] = rest.peek()?;
    let rest = if first >> 4 == 4 { rest } else { rest.skip(4) };
    link::raw_ip(rest).ok()
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
