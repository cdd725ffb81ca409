//! Parses transport headers: ports, TCP sequence number and flags.

use crate::packet::{EthernetAddresses, Fragment, Packet, PacketNotes, TcpFlags};
use crate::parse::datagram::Datagram;
use crate::parse::frame_cursor::FrameCursor;
use crate::protocol::Protocol;
use crate::time::Timestamp;

/// Datagram Congestion Control Protocol (RFC 4340).
const DCCP: Protocol = Protocol(33);
/// UDP-Lite (RFC 3828).
const UDP_LITE: Protocol = Protocol(136);

/// The length of a TCP header without options in bytes (RFC 9293 section 3.1).
pub(super) const TCP_HEADER_LENGTH: u32 = 20;
/// The length of a UDP header in bytes (RFC 768), and of a UDP-Lite header (RFC 3828 section 3.1).
pub(super) const UDP_HEADER_LENGTH: u32 = 8;
/// The length of the SCTP common header in bytes; chunks follow (RFC 9260 section 3.1).
const SCTP_HEADER_LENGTH: u32 = 12;
/// The length of an ICMP header in bytes, including identifier and sequence number of an echo (RFC 792).
const ICMP_HEADER_LENGTH: u32 = 8;
/// The minimum length of a DCCP header in bytes (RFC 4340 section 5.1).
const DCCP_HEADER_LENGTH: u32 = 12;

/// Echo messages (RFC 792; RFC 4443 sections 4.1 and 4.2).
const ECHO_REPLY: u8 = 0;
const ECHO: u8 = 8;
const ECHO_REQUEST_V6: u8 = 128;
const ECHO_REPLY_V6: u8 = 129;

/// Parses the transport header of a datagram, as far as captured, and returns the packet.
///
/// A header longer than the IP payload leaves no payload. If the capture ends before the header length, the minimum is
/// assumed.
#[inline]
pub(super) fn packet(time: Timestamp, ethernet: EthernetAddresses, datagram: &Datagram<'_>) -> Packet {
    let &Datagram { key, ip_length, identification, fragment, notes, payload } = datagram;
    let mut packet = Packet {
        time,
        key,
        ethernet,
        ip_length,
        payload_length: payload.wire_length(),
        identification,
        tcp_sequence: 0,
        tcp_flags: TcpFlags::default(),
        fragment,
        notes,
    };
    if matches!(fragment, Fragment::Later { .. }) {
        return packet;
    }
    let header_length = match key.protocol {
        Protocol::TCP => read_tcp(&mut packet, payload),
        Protocol::UDP | UDP_LITE => read_ports(&mut packet, payload, UDP_HEADER_LENGTH),
        Protocol::SCTP => read_ports(&mut packet, payload, SCTP_HEADER_LENGTH),
        DCCP => read_ports(&mut packet, payload, dccp_header_length(payload)),
        Protocol::ICMP => read_icmp(&mut packet, payload, [ECHO, ECHO_REPLY]),
        Protocol::ICMPV6 => read_icmp(&mut packet, payload, [ECHO_REQUEST_V6, ECHO_REPLY_V6]),
        _ => 0,
    };
    packet.payload_length = packet.payload_length.saturating_sub(header_length);
    packet
}

/// Parses TCP (RFC 9293 section 3.1). Returns the header length.
#[inline]
fn read_tcp(packet: &mut Packet, rest: FrameCursor<'_>) -> u32 {
    read_ports(packet, rest, TCP_HEADER_LENGTH);
    if let Some(&[_, _, _, _, s0, s1, s2, s3]) = rest.peek() {
        packet.tcp_sequence = u32::from_be_bytes([s0, s1, s2, s3]);
    }
    if let Some(&[flags]) = rest.skip(13).peek() {
        packet.tcp_flags = TcpFlags(flags);
    }
    rest.skip(12).peek().map_or(TCP_HEADER_LENGTH, |&[data_offset]| tcp_header_length(data_offset))
}

/// Returns the length of a TCP header in bytes, from the byte with the data offset. A smaller data offset is raised to
/// the minimum.
fn tcp_header_length(data_offset: u8) -> u32 {
    (u32::from(data_offset >> 4) * 4).max(TCP_HEADER_LENGTH)
}

/// Returns the length of a DCCP header in bytes, options included (RFC 4340 section 5.1, data offset).
fn dccp_header_length(rest: FrameCursor<'_>) -> u32 {
    match rest.skip(4).peek() {
        Some(&[data_offset]) => (u32::from(data_offset) * 4).max(DCCP_HEADER_LENGTH),
        None => DCCP_HEADER_LENGTH,
    }
}

/// Reads the two ports at the start of a header. Returns `header_length`.
#[inline]
fn read_ports(packet: &mut Packet, rest: FrameCursor<'_>, header_length: u32) -> u32 {
    match rest.peek() {
        Some(&[s0, s1, d0, d1]) => {
            packet.key.src_port = u16::from_be_bytes([s0, s1]);
            packet.key.dst_port = u16::from_be_bytes([d0, d1]);
        }
        None => packet.notes |= PacketNotes::PORTS_NOT_CAPTURED,
    }
    header_length
}

/// Reads the identifier of an echo as both ports. Returns the header length.
fn read_icmp(packet: &mut Packet, rest: FrameCursor<'_>, echo: [u8; 2]) -> u32 {
    let is_echo = rest.peek().map(|&[kind]| echo.contains(&kind));
    match (is_echo, rest.skip(4).peek()) {
        (Some(false), _) => {}
        (Some(true), Some(&identifier)) => {
            let identifier = u16::from_be_bytes(identifier);
            packet.key = packet.key.with_ports(identifier, identifier);
        }
        _ => packet.notes |= PacketNotes::PORTS_NOT_CAPTURED,
    }
    ICMP_HEADER_LENGTH
}
