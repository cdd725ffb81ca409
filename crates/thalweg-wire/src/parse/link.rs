//! Parses link layers, up to the IP header: Ethernet and what it carries, loopback, cooked captures. Other links are in `serial`,
//! `wireless` and `nflog`.

use crate::flow_key::IpVersion;
use crate::link_type::LinkType;
use crate::mac_address::MacAddress;
use crate::packet::{EthernetAddresses, VlanTags};
use crate::parse::frame_cursor::FrameCursor;
use crate::parse::ip::Network;
use crate::parse::{Malformed, Unparsed, nflog, serial, wireless};
use crate::source::Frame;

/// EtherTypes (IANA "IEEE 802 Numbers") of IP.
pub(super) const IPV4: u16 = 0x0800;
pub(super) const IPV6: u16 = 0x86DD;
/// Customer VLAN tag (IEEE 802.1Q section 9.5).
pub(super) const VLAN: u16 = 0x8100;
/// Service VLAN tag (IEEE 802.1Q section 9.5, once 802.1ad).
const SERVICE_VLAN: u16 = 0x88A8;
/// The outer tag of QinQ before 802.1ad.
const OLD_SERVICE_VLAN: u16 = 0x9100;
/// MPLS labels (RFC 5332 section 3).
pub(super) const MPLS: u16 = 0x8847;
const MPLS_UPSTREAM: u16 = 0x8848;
/// Backbone service instance tag (IEEE 802.1Q section 9.5, once 802.1ah): another Ethernet frame follows the tag.
const BACKBONE: u16 = 0x88E7;
/// VN-Tag of Cisco, once a draft of IEEE 802.1Qbh.
const VN_TAG: u16 = 0x8926;
/// Cisco FabricPath: another Ethernet frame follows the tag.
const FABRIC_PATH: u16 = 0x8903;
/// Network service header (RFC 8300 section 7).
const NSH: u16 = 0x894F;
/// PPPoE session stage (RFC 2516 section 4).
const PPPOE_SESSION: u16 = 0x8864;

/// The maximum value of a length field of an LLC frame (IEEE 802.3 section 3.2.6).
const MAX_LLC_LENGTH: u16 = 1500;
/// The minimum EtherType (IEEE 802.3 section 3.2.6).
const MIN_ETHERTYPE: u16 = 0x0600;
/// Linux's protocol number for LLC in cooked captures (`ETH_P_802_2`).
const LINUX_LLC: u16 = 0x0004;

/// The maximum number of VLAN tags and SNAP headers.
const MAX_TAGS: u32 = 8;
/// The maximum number of MPLS labels.
const MAX_LABELS: u32 = 16;

/// Returns the addresses of an Ethernet frame.
#[inline(always)]
pub(super) fn addresses(header: &[u8; 12]) -> EthernetAddresses {
    let &[d0, d1, d2, d3, d4, d5, s0, s1, s2, s3, s4, s5] = header;
    EthernetAddresses {
        destination: MacAddress([d0, d1, d2, d3, d4, d5]),
        source: MacAddress([s0, s1, s2, s3, s4, s5]),
    }
}

/// Returns the VLAN tags of an Ethernet frame.
pub(super) fn tags(frame: &[u8]) -> VlanTags {
    let is_tag = |at: usize| {
        let ethertype = frame.get(at..).and_then(|rest| rest.first_chunk());
        ethertype
            .is_some_and(|&two| matches!(u16::from_be_bytes(two), VLAN | SERVICE_VLAN | OLD_SERVICE_VLAN))
    };
    match [12, 16, 20].into_iter().take_while(|&at| is_tag(at)).count() {
        0 => VlanTags::default(),
        1 => VlanTags { single: true, ..VlanTags::default() },
        2 => VlanTags { double: true, ..VlanTags::default() },
        _ => VlanTags { more: true, ..VlanTags::default() },
    }
}

/// Returns the IP packet in a frame.
#[inline]
pub(super) fn network<'a>(frame: &Frame<'a>) -> Result<Network<'a>, Unparsed> {
    let rest = FrameCursor::of_frame(frame);
    match frame.link_type {
        LinkType::Ethernet => ethernet(rest),
        LinkType::RawIp => raw_ip(rest),
        LinkType::Ipv4 => Ok(Network { version: IpVersion::V4, rest }),
        LinkType::Ipv6 => Ok(Network { version: IpVersion::V6, rest }),
        LinkType::Null => null(rest),
        LinkType::Loop => loopback(rest),
        LinkType::LinuxSll => linux_sll(rest),
        LinkType::LinuxSll2 => linux_sll2(rest),
        LinkType::Ppp => serial::ppp(rest),
        LinkType::PppHdlc => serial::ppp_hdlc(rest),
        LinkType::CiscoHdlc => serial::cisco_hdlc(rest),
        LinkType::FrameRelay => serial::frame_relay(rest),
        LinkType::Ieee80211 => wireless::data_frame(rest, false),
        LinkType::Radiotap => wireless::radiotap(rest),
        LinkType::Nflog => nflog::nflog(rest),
        LinkType::Other(number) => Err(Unparsed::UnsupportedLinkType(number)),
    }
}

/// Parses Ethernet II, or IEEE 802.3 with LLC.
#[inline]
pub(super) fn ethernet(rest: FrameCursor<'_>) -> Result<Network<'_>, Unparsed> {
    let header: &[u8; 14] = rest.header()?;
    from_ethertype(u16::from_be_bytes([header[12], header[13]]), rest.skip(14))
}

/// Parses the payload of an EtherType, after any tags and labels.
#[inline]
pub(super) fn from_ethertype(mut ethertype: u16, mut rest: FrameCursor<'_>) -> Result<Network<'_>, Unparsed> {
    for _ in 0..MAX_TAGS {
        match ethertype {
            IPV4 => return Ok(Network { version: IpVersion::V4, rest }),
            IPV6 => return Ok(Network { version: IpVersion::V6, rest }),
            MPLS | MPLS_UPSTREAM => return mpls(ethertype, rest),
            PPPOE_SESSION => return pppoe(rest),
            VLAN | SERVICE_VLAN | OLD_SERVICE_VLAN => {
                let &[_, _, high, low] = rest.header()?;
                ethertype = u16::from_be_bytes([high, low]);
                rest = rest.skip(4);
            }
            VN_TAG => {
                let &[_, _, _, _, high, low] = rest.header()?;
                ethertype = u16::from_be_bytes([high, low]);
                rest = rest.skip(6);
            }
            // The tag, and the addresses of the inner frame.
            BACKBONE => (ethertype, rest) = inner_ethernet(rest.skip(4))?,
            FABRIC_PATH => (ethertype, rest) = inner_ethernet(rest.skip(2))?,
            NSH => (ethertype, rest) = service_header(rest)?,
            ..=MAX_LLC_LENGTH => {
                ethertype = snap(ethertype, rest)?;
                rest = rest.skip(8);
            }
            _ => break,
        }
    }
    Err(Unparsed::NonIp { ethertype })
}

/// Returns the EtherType of an inner frame, and what follows.
fn inner_ethernet(rest: FrameCursor<'_>) -> Result<(u16, FrameCursor<'_>), Unparsed> {
    let header: &[u8; 14] = rest.header()?;
    Ok((u16::from_be_bytes([header[12], header[13]]), rest.skip(14)))
}

/// Returns the EtherType of what follows a network service header (RFC 8300 section 2.2): the length in words, then the next protocol.
pub(super) fn service_header(rest: FrameCursor<'_>) -> Result<(u16, FrameCursor<'_>), Unparsed> {
    let &[_, length, _, next] = rest.header()?;
    // A header without a length would not end.
    let payload = rest.skip(4 * u32::from(length & 0x3F).max(1));
    match next {
        1 => Ok((IPV4, payload)),
        2 => Ok((IPV6, payload)),
        3 => inner_ethernet(payload),
        4 => Ok((NSH, payload)),
        5 => Ok((MPLS, payload)),
        _ => Err(Unparsed::NonIp { ethertype: NSH }),
    }
}

/// Parses LLC and SNAP without a length before them.
pub(super) fn llc(rest: FrameCursor<'_>) -> Result<Network<'_>, Unparsed> {
    from_ethertype(snap(LINUX_LLC, rest)?, rest.skip(8))
}

/// Returns the EtherType after LLC and SNAP (RFC 1042; also IEEE 802.1H's 00-00-F8). Other LLC frames carry no IP.
fn snap(length: u16, rest: FrameCursor<'_>) -> Result<u16, Unparsed> {
    if let Some(&[0xAA, 0xAA, 0x03, 0, 0, 0 | 0xF8, high, low]) = rest.peek() {
        return Ok(u16::from_be_bytes([high, low]));
    }
    let ethertype = rest.peek().map_or(length, |saps| u16::from_be_bytes(*saps));
    Err(Unparsed::NonIp { ethertype })
}

/// Parses a label stack (RFC 3032 section 2.1), then IP, identified by its version field (RFC 4928).
///
/// Pseudowires are not supported: without a control word they are indistinguishable from other payloads.
pub(super) fn mpls(ethertype: u16, mut rest: FrameCursor<'_>) -> Result<Network<'_>, Unparsed> {
    for _ in 0..MAX_LABELS {
        let &[_, _, bottom_of_stack, _] = rest.header()?;
        rest = rest.skip(4);
        if bottom_of_stack & 1 != 0 {
            return by_version(rest)?.ok_or(Unparsed::NonIp { ethertype });
        }
    }
    Err(Unparsed::NonIp { ethertype })
}

/// Parses a PPPoE session packet (RFC 2516 section 4) with IP (PPP protocol numbers of RFC 1332 and RFC 5072).
fn pppoe(rest: FrameCursor<'_>) -> Result<Network<'_>, Unparsed> {
    let &[version_and_type, code, _, _, _, _, _] = rest.header()?;
    let rest = rest.skip(6);
    let (protocol, length) = serial::ppp_protocol(rest)?;
    let version = match (version_and_type, code, protocol) {
        (0x11, 0, 0x0021) => IpVersion::V4,
        (0x11, 0, 0x0057) => IpVersion::V6,
        _ => return Err(Unparsed::NonIp { ethertype: PPPOE_SESSION }),
    };
    Ok(Network { version, rest: rest.skip(length) })
}

/// Parses IP without a link header.
pub(super) fn raw_ip(rest: FrameCursor<'_>) -> Result<Network<'_>, Unparsed> {
    by_version(rest)?.ok_or_else(|| rest.malformed(Malformed::IpVersion))
}

/// Parses IP by its version field; `None` if that is neither 4 nor 6.
fn by_version(rest: FrameCursor<'_>) -> Result<Option<Network<'_>>, Unparsed> {
    let &[version_field] = rest.header()?;
    Ok(match version_field >> 4 {
        4 => Some(Network { version: IpVersion::V4, rest }),
        6 => Some(Network { version: IpVersion::V6, rest }),
        _ => None,
    })
}

/// Parses BSD loopback: an address family in the byte order of the capturing machine. Families are small numbers, which
/// reveals the byte order.
fn null(rest: FrameCursor<'_>) -> Result<Network<'_>, Unparsed> {
    let family = u32::from_le_bytes(*rest.header()?);
    from_family(if family > 0xFFFF { family.swap_bytes() } else { family }, rest.skip(4))
}

/// Parses OpenBSD loopback: an address family in network byte order.
fn loopback(rest: FrameCursor<'_>) -> Result<Network<'_>, Unparsed> {
    from_family(u32::from_be_bytes(*rest.header()?), rest.skip(4))
}

/// Maps an address family. `AF_INET` is 2 everywhere; `AF_INET6` differs on Linux, NetBSD and OpenBSD, FreeBSD, Darwin.
fn from_family(family: u32, rest: FrameCursor<'_>) -> Result<Network<'_>, Unparsed> {
    let version = match family {
        2 => IpVersion::V4,
        10 | 24 | 28 | 30 => IpVersion::V6,
        _ => return Err(Unparsed::NonIp { ethertype: family as u16 }),
    };
    Ok(Network { version, rest })
}

/// Parses Linux cooked capture, version 1: 16 bytes, the protocol in the last two (tcpdump.org, LINKTYPE_LINUX_SLL).
fn linux_sll(rest: FrameCursor<'_>) -> Result<Network<'_>, Unparsed> {
    let header: &[u8; 16] = rest.header()?;
    from_linux_protocol(u16::from_be_bytes([header[14], header[15]]), rest.skip(16))
}

/// Parses Linux cooked capture, version 2: 20 bytes, the protocol in the first two (tcpdump.org, LINKTYPE_LINUX_SLL2).
fn linux_sll2(rest: FrameCursor<'_>) -> Result<Network<'_>, Unparsed> {
    let header: &[u8; 20] = rest.header()?;
    from_linux_protocol(u16::from_be_bytes([header[0], header[1]]), rest.skip(20))
}

/// Maps a Linux protocol number: an EtherType, or a smaller number, of which only LLC may carry IP.
fn from_linux_protocol(protocol: u16, rest: FrameCursor<'_>) -> Result<Network<'_>, Unparsed> {
    match protocol {
        LINUX_LLC | MIN_ETHERTYPE.. => from_ethertype(protocol, rest),
        ethertype => Err(Unparsed::NonIp { ethertype }),
    }
}
