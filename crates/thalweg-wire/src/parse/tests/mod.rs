//! Tests with hand-made frames; `oracle` compares with another parser.

mod ip;
mod l2tpv3;
mod link;
mod oracle;
mod transport;
mod tunnel;
mod udp;

use crate::link_type::LinkType;
use crate::packet::Packet;
use crate::parse::{Malformed, Parser, Unparsed};
use crate::source::Frame;
use crate::time::Timestamp;

/// The flow of [`tcp_v4`] and [`udp_v4`], of [`tcp_v6`].
const TCP_FLOW: &str = "tcp 10.0.0.1:443 > 10.0.0.2:51000";
const UDP_FLOW: &str = "udp 10.0.0.1:443 > 10.0.0.2:51000";
const TCP_FLOW_V6: &str = "tcp [2001:db8::1]:443 > [2001:db8::2]:51000";

/// A TCP segment of [`TCP_FLOW`] with 5 bytes of payload over IPv4.
fn tcp_v4() -> Vec<u8> {
    ipv4(6, &tcp(b"hello"))
}

/// A UDP datagram of [`UDP_FLOW`] with 12 bytes of payload over IPv4.
fn udp_v4() -> Vec<u8> {
    ipv4(17, &udp(443, 51000, b"hello, world"))
}

/// A TCP segment of [`TCP_FLOW_V6`] with 5 bytes of payload over IPv6.
fn tcp_v6() -> Vec<u8> {
    ipv6(6, &tcp(b"hello"))
}

fn ethernet(ethertype: u16, payload: &[u8]) -> Vec<u8> {
    [&[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2][..], &ethertype.to_be_bytes(), payload].concat()
}

/// An IPv4 packet from 10.0.0.1 to 10.0.0.2.
fn ipv4(protocol: u8, payload: &[u8]) -> Vec<u8> {
    let [high, low] = (20 + payload.len() as u16).to_be_bytes();
    let header = [0x45, 0, high, low, 0x12, 0x34, 0x40, 0, 64, protocol, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
    [&header[..], payload].concat()
}

/// An IPv6 packet from 2001:db8::1 to 2001:db8::2.
fn ipv6(next_header: u8, payload: &[u8]) -> Vec<u8> {
    let [high, low] = (payload.len() as u16).to_be_bytes();
    let address = |last| [0x20, 0x01, 0x0D, 0xB8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, last];
    [&[0x60, 0, 0, 0, high, low, next_header, 64][..], &address(1), &address(2), payload].concat()
}

/// A segment from port 443 to port 51000, sequence number 0x01020304, flags PSH and ACK.
fn tcp(payload: &[u8]) -> Vec<u8> {
    let header = [0x01, 0xBB, 0xC7, 0x38, 1, 2, 3, 4, 0, 0, 0, 0, 0x50, 0x18, 0xFF, 0xFF, 0, 0, 0, 0];
    [&header[..], payload].concat()
}

fn udp(src_port: u16, dst_port: u16, payload: &[u8]) -> Vec<u8> {
    let length = 8 + payload.len() as u16;
    [&src_port.to_be_bytes()[..], &dst_port.to_be_bytes(), &length.to_be_bytes(), &[0, 0], payload].concat()
}

fn frame(link_type: LinkType, bytes: &[u8], original_length: usize) -> Frame<'_> {
    let time = Timestamp::default();
    Frame { time, bytes, original_length: original_length as u32, link_type }
}

/// Parses a completely captured frame without tunnel decapsulation.
fn parse(link_type: LinkType, bytes: &[u8]) -> Result<Packet, Unparsed> {
    Parser { decapsulate: false }.parse(&frame(link_type, bytes, bytes.len()))
}

/// Parses a completely captured IP packet without tunnel decapsulation.
fn parse_ip(bytes: &[u8]) -> Packet {
    parse(LinkType::RawIp, bytes).unwrap()
}

/// Parses the first `snap_length` bytes of an IP packet.
fn parse_snapped(bytes: &[u8], snap_length: usize) -> Result<Packet, Unparsed> {
    Parser { decapsulate: false }.parse(&frame(LinkType::RawIp, &bytes[..snap_length], bytes.len()))
}

fn malformed(kind: Malformed, offset: u32) -> Result<Packet, Unparsed> {
    Err(Unparsed::Malformed { kind, offset })
}

/// Returns the flow key as text.
fn flow(packet: Packet) -> String {
    packet.key.to_string()
}

#[test]
fn every_kind_of_malformed_has_its_own_index_and_name() {
    for (place, kind) in Malformed::ALL.into_iter().enumerate() {
        assert_eq!(kind.index(), place);
        assert_eq!(Malformed::ALL.iter().filter(|other| other.name() == kind.name()).count(), 1);
    }
}
