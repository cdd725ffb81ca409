//! Links between two points: PPP, Cisco HDLC, Frame Relay.

use crate::flow_key::IpVersion;
use crate::parse::Unparsed;
use crate::parse::frame_cursor::FrameCursor;
use crate::parse::ip::Network;
use crate::parse::link;

/// PPP protocol numbers (RFC 1332, RFC 5072, RFC 3032).
const PPP_IPV4: u16 = 0x0021;
const PPP_IPV6: u16 = 0x0057;
const PPP_MPLS: u16 = 0x0281;
const PPP_MPLS_MULTICAST: u16 = 0x0283;
/// Address "all stations" and control "unnumbered information" (RFC 1662 section 3.1).
const PPP_IN_HDLC: [u8; 2] = [0xFF, 0x03];

/// Cisco HDLC addresses: one station, all stations.
const CISCO_UNICAST: u8 = 0x0F;
const CISCO_BROADCAST: u8 = 0x8F;

/// Network layer protocol identifiers (ISO/IEC TR 9577).
const NLPID_PADDING: u8 = 0x00;
const NLPID_SNAP: u8 = 0x80;
const NLPID_IPV6: u8 = 0x8E;
const NLPID_IPV4: u8 = 0xCC;
/// Unnumbered information.
const CONTROL_UI: u8 = 0x03;

/// Parses PPP, with or without the address and control of HDLC (RFC 1661, RFC 1662).
pub(super) fn ppp(rest: FrameCursor<'_>) -> Result<Network<'_>, Unparsed> {
    let rest = if rest.peek() == Some(&PPP_IN_HDLC) { rest.skip(2) } else { rest };
    let (protocol, length) = ppp_protocol(rest)?;
    let rest = rest.skip(length);
    match protocol {
        PPP_IPV4 => Ok(Network { version: IpVersion::V4, rest }),
        PPP_IPV6 => Ok(Network { version: IpVersion::V6, rest }),
        PPP_MPLS | PPP_MPLS_MULTICAST => link::mpls(link::MPLS, rest),
        _ => Err(Unparsed::NonIp { ethertype: protocol }),
    }
}

/// Returns the PPP protocol number and the length of its field.
///
/// It may be compressed to one byte (RFC 1661 section 6.5), which is odd; the first byte of the whole field is even.
pub(super) fn ppp_protocol(rest: FrameCursor<'_>) -> Result<(u16, u32), Unparsed> {
    let &[first] = rest.header()?;
    Ok(match first & 1 {
        1 => (u16::from(first), 1),
        _ => (u16::from_be_bytes(*rest.header()?), 2),
    })
}

/// Parses PPP in HDLC, or Cisco HDLC, which the address tells apart (tcpdump.org, LINKTYPE_PPP_HDLC).
pub(super) fn ppp_hdlc(rest: FrameCursor<'_>) -> Result<Network<'_>, Unparsed> {
    match rest.peek() {
        Some(&[CISCO_UNICAST | CISCO_BROADCAST]) => cisco_hdlc(rest),
        _ => ppp(rest),
    }
}

/// Parses Cisco HDLC: address, control, EtherType (RFC 1547 section 4.3.1).
pub(super) fn cisco_hdlc(rest: FrameCursor<'_>) -> Result<Network<'_>, Unparsed> {
    let &[_, _, high, low] = rest.header()?;
    link::from_ethertype(u16::from_be_bytes([high, low]), rest.skip(4))
}

/// Parses Frame Relay with an address of two to four bytes, and the payload of RFC 2427, or an EtherType as Cisco routers send.
pub(super) fn frame_relay(rest: FrameCursor<'_>) -> Result<Network<'_>, Unparsed> {
    let &[_, second] = rest.header()?;
    // The last byte of the address has its lowest bit set (Q.922 section 3.3.1).
    let length = match second & 1 {
        1 => 2,
        _ => {
            let &[_, _, third] = rest.header()?;
            if third & 1 == 1 { 3 } else { 4 }
        }
    };
    let rest = rest.skip(length);
    let &[control, first] = rest.header()?;
    if control != CONTROL_UI {
        return link::from_ethertype(u16::from_be_bytes([control, first]), rest.skip(2));
    }
    let rest = rest.skip(if first == NLPID_PADDING { 2 } else { 1 });
    let &[identifier] = rest.header()?;
    let payload = rest.skip(1);
    match identifier {
        NLPID_IPV4 => Ok(Network { version: IpVersion::V4, rest: payload }),
        NLPID_IPV6 => Ok(Network { version: IpVersion::V6, rest: payload }),
        NLPID_SNAP => {
            let &[o0, o1, o2, high, low] = payload.header()?;
            let ethertype = u16::from_be_bytes([high, low]);
            match [o0, o1, o2] {
                [0, 0, 0] => link::from_ethertype(ethertype, payload.skip(5)),
                // Bridged Ethernet (RFC 2427 section 4.2), with or without a frame check sequence.
                [0x00, 0x80, 0xC2] if matches!(ethertype, 0x0001 | 0x0007) => link::ethernet(payload.skip(5)),
                _ => Err(Unparsed::NonIp { ethertype }),
            }
        }
        _ => Err(Unparsed::NonIp { ethertype: u16::from(identifier) }),
    }
}
