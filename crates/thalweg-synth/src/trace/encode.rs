//! Encodes headers: Ethernet, IPv4 (RFC 791), IPv6 (RFC 8200), TCP (RFC 9293) and UDP (RFC 768).
//!
//! Payloads are all zeros, which add nothing to a checksum, so every checksum is correct at any snap length. All
//! packets have Don't Fragment set, none is a fragment, none has IP options.

use thalweg_wire::{IpVersion, LinkType, Protocol, TcpFlags, Timestamp};

use super::connection::{
    Connection, SYN_OPTIONS_LENGTH, SYN_TIMESTAMP_OPTIONS_LENGTH, Segment, Side, TIMESTAMP_OPTIONS_LENGTH,
};

/// Maximum length of a packet's headers: Ethernet 14, IPv6 40, TCP 40.
pub(super) const MAX_HEADERS_LENGTH: usize = 94;
const ETHERNET_HEADER_LENGTH: usize = 14;
/// Minimum length of an Ethernet frame without its checksum (IEEE 802.3); shorter packets are padded.
const MIN_ETHERNET_LENGTH: u32 = 60;
/// Locally administered addresses of the client's and the server's side of the capture point.
const MAC_ADDRESSES: [[u8; 6]; 2] = [[0x02, 0, 0, 0, 0, 0x0C], [0x02, 0, 0, 0, 0, 0x05]];

/// Lengths of an encoded frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FrameLengths {
    /// Bytes of encoded headers.
    pub(super) headers: usize,
    /// Bytes from the IP header on.
    pub(super) ip: u32,
    /// Bytes of the frame on the wire.
    pub(super) original: u32,
}

/// Encodes the headers of `segment`, sent at `time`, at the start of `out`, and advances `connection`.
#[inline]
pub(super) fn encode(
    connection: &mut Connection,
    segment: &Segment,
    time: Timestamp,
    link_type: LinkType,
    out: &mut [u8],
) -> FrameLengths {
    let ip_length = connection.ip_length(segment);
    let (link_length, original) = match link_type {
        LinkType::Ethernet => {
            ethernet(connection.key.version(), segment.from, out);
            (ETHERNET_HEADER_LENGTH, (ETHERNET_HEADER_LENGTH as u32 + ip_length).max(MIN_ETHERNET_LENGTH))
        }
        _ => (0, ip_length),
    };
    let ip_header_length = connection.ip_header_length() as usize;
    let transport_header_length = connection.transport_header_length(segment.flags) as usize;
    let (ip_header, rest) = out[link_length..].split_at_mut(ip_header_length);
    let transport_header = &mut rest[..transport_header_length];
    match connection.key.version() {
        IpVersion::V4 => ipv4(connection, segment.from, ip_length, ip_header),
        IpVersion::V6 => ipv6(connection, segment.from, ip_length, ip_header),
    }
    let transport_length = ip_length - ip_header_length as u32;
    if connection.key.protocol == Protocol::UDP {
        udp(connection, segment.from, transport_length, transport_header);
    } else {
        tcp(connection, segment, time, transport_length, transport_header);
    }
    connection.advance(segment);
    let headers = link_length + ip_header_length + transport_header_length;
    FrameLengths { headers, ip: ip_length, original }
}

fn ethernet(version: IpVersion, from: Side, out: &mut [u8]) {
    out[0..6].copy_from_slice(&MAC_ADDRESSES[from.other() as usize]);
    out[6..12].copy_from_slice(&MAC_ADDRESSES[from as usize]);
    let ethertype: u16 = match version {
        IpVersion::V4 => 0x0800,
        IpVersion::V6 => 0x86DD,
    };
    out[12..14].copy_from_slice(&ethertype.to_be_bytes());
}

#[inline]
fn ipv4(connection: &Connection, from: Side, ip_length: u32, out: &mut [u8]) {
    let (src, dst) = connection.key_from(from).address_words();
    // Version 4, five words of header.
    out[0..2].copy_from_slice(&[0x45, 0]);
    out[2..4].copy_from_slice(&(ip_length as u16).to_be_bytes());
    out[4..6].copy_from_slice(&connection.identification[from as usize].to_be_bytes());
    // Don't Fragment, offset zero; the checksum is zero while it is computed.
    out[6..12].copy_from_slice(&[
        0x40,
        0,
        connection.hop_limit[from as usize],
        connection.key.protocol.0,
        0,
        0,
    ]);
    out[12..16].copy_from_slice(&(src[1] as u32).to_be_bytes());
    out[16..20].copy_from_slice(&(dst[1] as u32).to_be_bytes());
    let checksum = !fold(sum(out));
    out[10..12].copy_from_slice(&checksum.to_be_bytes());
}

#[inline]
fn ipv6(connection: &Connection, from: Side, ip_length: u32, out: &mut [u8]) {
    let (src, dst) = connection.key_from(from).address_words();
    out[0..4].copy_from_slice(&(6 << 28 | connection.flow_label[from as usize]).to_be_bytes());
    out[4..6].copy_from_slice(&((ip_length - 40) as u16).to_be_bytes());
    out[6..8].copy_from_slice(&[connection.key.protocol.0, connection.hop_limit[from as usize]]);
    for (bytes, word) in out[8..40].chunks_exact_mut(8).zip([src, dst].as_flattened()) {
        bytes.copy_from_slice(&word.to_be_bytes());
    }
}

#[inline]
fn udp(connection: &Connection, from: Side, length: u32, out: &mut [u8]) {
    let key = connection.key_from(from);
    out[0..2].copy_from_slice(&key.src_port.to_be_bytes());
    out[2..4].copy_from_slice(&key.dst_port.to_be_bytes());
    out[4..8].copy_from_slice(&(length << 16).to_be_bytes());
    let checksum = match transport_checksum(connection, length, out) {
        // Zero means "no checksum".
        0 => 0xFFFF,
        checksum => checksum,
    };
    out[6..8].copy_from_slice(&checksum.to_be_bytes());
}

#[inline]
fn tcp(connection: &mut Connection, segment: &Segment, time: Timestamp, length: u32, out: &mut [u8]) {
    let (from, flags) = (segment.from, segment.flags);
    let key = connection.key_from(from);
    let acknowledges = flags.contains(TcpFlags::ACK);
    // Each side receives every packet before it answers, so it acknowledges all sent bytes.
    let acknowledgment = if acknowledges { connection.sequence[from.other() as usize] } else { 0 };
    out[0..2].copy_from_slice(&key.src_port.to_be_bytes());
    out[2..4].copy_from_slice(&key.dst_port.to_be_bytes());
    out[4..8].copy_from_slice(&connection.sequence[from as usize].to_be_bytes());
    out[8..12].copy_from_slice(&acknowledgment.to_be_bytes());
    // Data offset in words, flags, a full window, no urgent data.
    let data_offset = (out.len() as u8 / 4) << 4;
    out[12..20].copy_from_slice(&[data_offset, flags.0, 0xFF, 0xFF, 0, 0, 0, 0]);
    tcp_options(connection, from, acknowledges, time, &mut out[20..]);
    let checksum = transport_checksum(connection, length, out);
    out[16..18].copy_from_slice(&checksum.to_be_bytes());
}

/// Writes the options that fill `out`.
#[inline]
fn tcp_options(connection: &mut Connection, from: Side, acknowledges: bool, time: Timestamp, out: &mut [u8]) {
    const NO_OPERATION: u8 = 1;
    let mss = (1500 - connection.ip_header_length() - 20) as u16;
    let [mss_high, mss_low] = mss.to_be_bytes();
    // Maximum segment size, no-operation, window scale 7.
    let syn = [2, 4, mss_high, mss_low, NO_OPERATION, 3, 3, 7];
    // Selective acknowledgements permitted (RFC 2018).
    let sack_permitted = [4, 2];
    match out.len() as u32 {
        SYN_TIMESTAMP_OPTIONS_LENGTH => {
            out[0..8].copy_from_slice(&syn);
            out[8..10].copy_from_slice(&sack_permitted);
            timestamps(connection, from, acknowledges, time, &mut out[10..20]);
        }
        SYN_OPTIONS_LENGTH if !connection.has_timestamps => {
            out[0..8].copy_from_slice(&syn);
            out[8..10].copy_from_slice(&[NO_OPERATION; 2]);
            out[10..12].copy_from_slice(&sack_permitted);
        }
        TIMESTAMP_OPTIONS_LENGTH => {
            out[0..2].copy_from_slice(&[NO_OPERATION; 2]);
            timestamps(connection, from, acknowledges, time, &mut out[2..12]);
        }
        _ => debug_assert!(out.is_empty()),
    }
}

#[inline]
fn timestamps(connection: &mut Connection, from: Side, acknowledges: bool, time: Timestamp, out: &mut [u8]) {
    let echo = if acknowledges { connection.tsval[from.other() as usize] } else { 0 };
    out[0..2].copy_from_slice(&[8, 10]);
    out[2..6].copy_from_slice(&connection.stamp(from, time).to_be_bytes());
    out[6..10].copy_from_slice(&echo.to_be_bytes());
}

/// Returns the checksum of header, pseudo-header and a payload of zeros; the header's own field must be zero.
#[inline]
fn transport_checksum(connection: &Connection, length: u32, header: &[u8]) -> u16 {
    let pseudo_header = connection.address_sum + u64::from(length) + u64::from(connection.key.protocol.0);
    !fold(pseudo_header + sum(header))
}

/// Returns the sum of a header's 32-bit words; folded, it is the ones' complement sum of the 16-bit words (RFC 1071
/// section 2).
#[inline]
fn sum(header: &[u8]) -> u64 {
    let words = header.as_chunks::<4>().0;
    words.iter().map(|word| u64::from(u32::from_be_bytes(*word))).sum()
}

#[inline]
const fn fold(sum: u64) -> u16 {
    let sum = (sum >> 32) + (sum & 0xFFFF_FFFF);
    let sum = (sum >> 32) + (sum & 0xFFFF_FFFF);
    let sum = (sum >> 16) + (sum & 0xFFFF);
    let sum = (sum >> 16) + (sum & 0xFFFF);
    ((sum >> 16) + (sum & 0xFFFF)) as u16
}
