//! Hand-made frames and capture files of them.

#![allow(dead_code, reason = "each test takes what it needs")]

use thalweg_wire::capture_file::{ByteOrder, pcap};
use thalweg_wire::{Frame, LinkType, Timestamp};

pub(crate) const IPV4: u16 = 0x0800;
pub(crate) const IPV6: u16 = 0x86DD;
pub(crate) const ARP: u16 = 0x0806;
pub(crate) const TCP: u8 = 6;
pub(crate) const UDP: u8 = 17;
pub(crate) const GRE: u8 = 47;

pub(crate) const SYN: u8 = 0x02;
pub(crate) const ACK: u8 = 0x10;

/// Time origin of [`file`].
pub(crate) const BEGIN: Timestamp = Timestamp(1_700_000_000_000_000_000);

pub(crate) fn ethernet(ethertype: u16, payload: &[u8]) -> Vec<u8> {
    [&[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2][..], &ethertype.to_be_bytes(), payload].concat()
}

/// From `10.0.0.SRC` to `10.0.0.DST`.
pub(crate) fn ipv4(src: u8, dst: u8, protocol: u8, payload: &[u8]) -> Vec<u8> {
    let [high, low] = (20 + payload.len() as u16).to_be_bytes();
    let header = [0x45, 0, high, low, 0x12, 0x34, 0x40, 0, 64, protocol, 0, 0, 10, 0, 0, src, 10, 0, 0, dst];
    [&header[..], payload].concat()
}

/// A fragment from 10.0.0.1 to 10.0.0.2, identification 0x1234; the offset in bytes.
pub(crate) fn ipv4_fragment(offset: u16, more_follow: bool, protocol: u8, payload: &[u8]) -> Vec<u8> {
    let mut packet = ipv4(1, 2, protocol, payload);
    let field = (offset / 8) | (u16::from(more_follow) << 13);
    packet[6..8].copy_from_slice(&field.to_be_bytes());
    packet
}

/// From `2001:db8::SRC` to `2001:db8::DST`.
pub(crate) fn ipv6(src: u8, dst: u8, next_header: u8, payload: &[u8]) -> Vec<u8> {
    let [high, low] = (payload.len() as u16).to_be_bytes();
    let address = |last| [0x20, 0x01, 0x0D, 0xB8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, last];
    [&[0x60, 0, 0, 0, high, low, next_header, 64][..], &address(src), &address(dst), payload].concat()
}

pub(crate) fn tcp(src_port: u16, dst_port: u16, flags: u8, payload: &[u8]) -> Vec<u8> {
    let rest = [1, 2, 3, 4, 0, 0, 0, 0, 0x50, flags, 0xFF, 0xFF, 0, 0, 0, 0];
    [&src_port.to_be_bytes()[..], &dst_port.to_be_bytes(), &rest, payload].concat()
}

pub(crate) fn udp(src_port: u16, dst_port: u16, payload: &[u8]) -> Vec<u8> {
    let length = 8 + payload.len() as u16;
    [&src_port.to_be_bytes()[..], &dst_port.to_be_bytes(), &length.to_be_bytes(), &[0, 0], payload].concat()
}

/// An Ethernet frame in VXLAN, network identifier 7 (RFC 7348), from port 50000.
pub(crate) fn vxlan(inner: &[u8]) -> Vec<u8> {
    udp(50_000, 4789, &[&[0x08, 0, 0, 0, 0, 0, 7, 0][..], inner].concat())
}

/// A GRE header with an EtherType (RFC 2784).
pub(crate) fn gre(protocol_type: u16, inner: &[u8]) -> Vec<u8> {
    [&[0, 0][..], &protocol_type.to_be_bytes(), inner].concat()
}

/// A pcap file of Ethernet frames with nanosecond timestamps. `frames` are times after [`BEGIN`] in milliseconds, captured
/// bytes, and lengths on the wire.
pub(crate) fn file(link_type: LinkType, snap_length: u32, frames: &[(u64, Vec<u8>, usize)]) -> Vec<u8> {
    let encoder = pcap::Encoder { order: ByteOrder::Little, precision: pcap::Precision::Nanos };
    let mut file = Vec::new();
    encoder.file_header(link_type, snap_length, &mut file);
    for (after_ms, bytes, original_length) in frames {
        let time = Timestamp(BEGIN.0 + after_ms * 1_000_000);
        let original_length = *original_length as u32;
        encoder.record(&Frame { time, bytes, original_length, link_type }, &mut file);
    }
    file
}

/// A pcap file of complete Ethernet frames, 1 ms apart.
pub(crate) fn whole(frames: &[Vec<u8>]) -> Vec<u8> {
    let timed: Vec<_> = frames.iter().zip(0..).map(|(bytes, ms)| (ms, bytes.clone(), bytes.len())).collect();
    file(LinkType::Ethernet, 262_144, &timed)
}
