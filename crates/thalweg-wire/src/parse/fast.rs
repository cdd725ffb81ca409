//! The fast path for common packets: TCP and UDP, on Ethernet with at most one tag or without a link header, over
//! unfragmented IPv4 without options or IPv6 without extension headers.
//!
//! Its result always equals that of the general path (a property test checks that); it leaves all other packets to the
//! general path. It costs two bounds checks and about ten predictable branches. It reads 14 bytes of the transport
//! header, up to the TCP flags.
//!
//! All functions are force-inlined: otherwise the compiler returns the packet through memory, and the copy costs more
//! than parsing the headers.

use crate::flow_key::FlowKey;
use crate::link_type::LinkType;
use crate::packet::{EthernetAddresses, Fragment, Packet, PacketNotes, TcpFlags, VlanTags};
use crate::parse::transport::{TCP_HEADER_LENGTH, UDP_HEADER_LENGTH};
use crate::parse::{link, tunnel};
use crate::protocol::Protocol;
use crate::source::Frame;
use crate::time::Timestamp;

/// The length of the Ethernet header in bytes.
const ETHERNET_LENGTH: usize = 14;
/// The length of a VLAN tag in bytes, including the EtherType after it (IEEE 802.1Q section 9.3).
const TAG_LENGTH: usize = 4;
/// The length of an IPv4 header without options in bytes.
const IPV4_LENGTH: usize = 20;
/// The length of an IPv6 header without extension headers in bytes.
const IPV6_LENGTH: usize = 40;
/// The number of transport header bytes to read.
const TRANSPORT_LENGTH: usize = 14;

/// Version 4 and a header of five words (RFC 791 section 3.1).
const VERSION_4_NO_OPTIONS: u8 = 0x45;
/// "More fragments" and the fragment offset.
const FRAGMENTED: u16 = 0x3FFF;

/// The values of a packet from below IP.
#[derive(Clone, Copy)]
struct Below {
    time: Timestamp,
    ethernet: EthernetAddresses,
    /// 0 for IPv6.
    identification: u16,
}

/// Returns the packet if it is a common one without anomalies. Adds the VLAN tag of its frame.
#[inline(always)]
pub(super) fn parse(frame: &Frame<'_>, decapsulate: bool, tags: &mut VlanTags) -> Option<Packet> {
    let &Frame { time, bytes, original_length, link_type } = frame;
    match link_type {
        LinkType::Ethernet => {
            let (header, mut bytes) = bytes.split_first_chunk::<ETHERNET_LENGTH>()?;
            let mut wire_length = original_length.checked_sub(ETHERNET_LENGTH as u32)?;
            let mut ethertype = u16::from_be_bytes([header[12], header[13]]);
            if ethertype == link::VLAN {
                let (tag, tagged) = bytes.split_first_chunk::<TAG_LENGTH>()?;
                ethertype = u16::from_be_bytes([tag[2], tag[3]]);
                (bytes, wire_length) = (tagged, wire_length.checked_sub(TAG_LENGTH as u32)?);
                tags.single |= ethertype == link::IPV4 || ethertype == link::IPV6;
            }
            let below = Below { time, ethernet: link::addresses(header.first_chunk()?), identification: 0 };
            match ethertype {
                link::IPV4 => ipv4(below, bytes, wire_length, decapsulate),
                link::IPV6 => ipv6(below, bytes, wire_length, decapsulate),
                _ => None,
            }
        }
        LinkType::RawIp | LinkType::Ipv4 => {
            let below = Below { time, ethernet: EthernetAddresses::default(), identification: 0 };
            ipv4(below, bytes, original_length, decapsulate)
        }
        _ => None,
    }
}

/// Parses from the IPv4 header.
#[inline(always)]
fn ipv4(below: Below, bytes: &[u8], wire_length: u32, decapsulate: bool) -> Option<Packet> {
    let headers: &[u8; IPV4_LENGTH + TRANSPORT_LENGTH] = bytes.first_chunk()?;
    let (header, transport_header) = headers.split_first_chunk::<IPV4_LENGTH>()?;
    let ip_length = u32::from(u16::from_be_bytes([header[2], header[3]]));
    let fragmentation = u16::from_be_bytes([header[6], header[7]]);
    if header[0] != VERSION_4_NO_OPTIONS || fragmentation & FRAGMENTED != 0 || ip_length > wire_length {
        return None;
    }
    let src = u32::from_be_bytes([header[12], header[13], header[14], header[15]]);
    let dst = u32::from_be_bytes([header[16], header[17], header[18], header[19]]);
    let key = FlowKey::v4(src, dst, 0, 0, Protocol(header[9]));
    let below = Below { identification: u16::from_be_bytes([header[4], header[5]]), ..below };
    let above_ip = ip_length.checked_sub(IPV4_LENGTH as u32)?;
    transport(below, key, ip_length, above_ip, transport_header.first_chunk()?, decapsulate)
}

/// Parses from the IPv6 header. Rejects a payload length of zero, because no transport header fits.
#[inline(always)]
fn ipv6(below: Below, bytes: &[u8], wire_length: u32, decapsulate: bool) -> Option<Packet> {
    let headers: &[u8; IPV6_LENGTH + TRANSPORT_LENGTH] = bytes.first_chunk()?;
    let (header, transport_header) = headers.split_first_chunk::<IPV6_LENGTH>()?;
    let above_ip = u32::from(u16::from_be_bytes([header[4], header[5]]));
    let ip_length = IPV6_LENGTH as u32 + above_ip;
    if header[0] >> 4 != 6 || ip_length > wire_length {
        return None;
    }
    let (src, dst) = header.last_chunk::<32>()?.split_first_chunk::<16>()?;
    let (src, dst) = (u128::from_be_bytes(*src), u128::from_be_bytes(*dst.first_chunk()?));
    let key = FlowKey::v6(src, dst, 0, 0, Protocol(header[6]));
    transport(below, key, ip_length, above_ip, transport_header.first_chunk()?, decapsulate)
}

/// Parses TCP or UDP, if the header fits into the IP payload.
#[inline(always)]
fn transport(
    below: Below,
    key: FlowKey,
    ip_length: u32,
    above_ip: u32,
    header: &[u8; TRANSPORT_LENGTH],
    decapsulate: bool,
) -> Option<Packet> {
    let src_port = u16::from_be_bytes([header[0], header[1]]);
    let dst_port = u16::from_be_bytes([header[2], header[3]]);
    let (header_length, tcp_sequence, tcp_flags) = match key.protocol {
        Protocol::TCP => {
            let header_length = u32::from(header[12] >> 4) * 4;
            let sequence = u32::from_be_bytes([header[4], header[5], header[6], header[7]]);
            (header_length >= TCP_HEADER_LENGTH).then_some((header_length, sequence, header[13]))?
        }
        Protocol::UDP if decapsulate && tunnel::is_udp_tunnel(src_port, dst_port) => return None,
        Protocol::UDP => (UDP_HEADER_LENGTH, 0, 0),
        _ => return None,
    };
    Some(Packet {
        time: below.time,
        key: key.with_ports(src_port, dst_port),
        ethernet: below.ethernet,
        ip_length,
        payload_length: above_ip.checked_sub(header_length)?,
        identification: below.identification,
        tcp_sequence,
        tcp_flags: TcpFlags(tcp_flags),
        fragment: Fragment::Whole,
        notes: PacketNotes::default(),
    })
}
