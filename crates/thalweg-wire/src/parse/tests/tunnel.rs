use super::*;
use crate::packet::{Fragment, PacketNotes};

/// Parses an IP packet with tunnel decapsulation.
fn decapsulate(bytes: &[u8]) -> Packet {
    Parser { decapsulate: true }.parse(&frame(LinkType::RawIp, bytes, bytes.len())).unwrap()
}

/// An outer packet from 192.0.2.1 to 192.0.2.2.
fn outer(protocol: u8, payload: &[u8]) -> Vec<u8> {
    let mut bytes = ipv4(protocol, payload);
    bytes[12..20].copy_from_slice(&[192, 0, 2, 1, 192, 0, 2, 2]);
    bytes
}

fn gre(flags: u16, protocol_type: u16, payload: &[u8]) -> Vec<u8> {
    let optional = vec![0xDD; (flags & 0xB000).count_ones() as usize * 4];
    outer(47, &[&flags.to_be_bytes()[..], &protocol_type.to_be_bytes(), &optional, payload].concat())
}

fn inner_ethernet() -> Vec<u8> {
    ethernet(0x0800, &tcp_v4())
}

fn vxlan(dst_port: u16, payload: &[u8]) -> Vec<u8> {
    outer(17, &udp(54321, dst_port, &[&[0x08, 0, 0, 0, 0, 0, 42, 0][..], payload].concat()))
}

fn geneve(protocol_type: u16, options: &[u8], payload: &[u8]) -> Vec<u8> {
    let [high, low] = protocol_type.to_be_bytes();
    let header = [(options.len() / 4) as u8, 0, high, low, 0, 0, 42, 0];
    outer(17, &udp(54321, 6081, &[&header[..], options, payload].concat()))
}

fn erspan_ii(payload: &[u8]) -> Vec<u8> {
    gre(0x1000, 0x88BE, &[&[0x10, 0x01, 0, 0, 0, 0, 0, 1][..], payload].concat())
}

/// ERSPAN III with a frame type, with or without the platform-specific subheader.
fn erspan_iii(frame_type: u8, subheader: bool, payload: &[u8]) -> Vec<u8> {
    let mut header = vec![0x20, 0x01, 0, 0, 0, 0, 0, 0, 0, 0, 0x80 | frame_type << 2, u8::from(subheader)];
    header.resize(if subheader { 20 } else { 12 }, 0xDD);
    gre(0x1000, 0x22EB, &[&header[..], payload].concat())
}

fn every_tunnel() -> Vec<(&'static str, Vec<u8>)> {
    vec![
        ("ip in ip", outer(4, &tcp_v4())),
        ("gre", gre(0, 0x0800, &tcp_v4())),
        ("gre with a key", gre(0x2000, 0x0800, &tcp_v4())),
        ("gre with everything", gre(0xB000, 0x0800, &tcp_v4())),
        ("gre with ethernet", gre(0x2000, 0x6558, &inner_ethernet())),
        ("gre with mpls", gre(0, 0x8847, &[&[0, 1, 1, 64], &tcp_v4()[..]].concat())),
        ("gre with vlan", gre(0, 0x8100, &[&[0, 1, 8, 0], &tcp_v4()[..]].concat())),
        ("erspan i", gre(0, 0x88BE, &inner_ethernet())),
        ("erspan ii", erspan_ii(&inner_ethernet())),
        ("erspan iii", erspan_iii(0, false, &inner_ethernet())),
        ("erspan iii with subheader", erspan_iii(0, true, &inner_ethernet())),
        ("erspan iii with ip", erspan_iii(2, false, &tcp_v4())),
        ("vxlan", vxlan(4789, &inner_ethernet())),
        ("vxlan on linux's port", vxlan(8472, &inner_ethernet())),
        ("geneve with ethernet", geneve(0x6558, &[], &inner_ethernet())),
        ("geneve with options", geneve(0x6558, &[0xDD; 12], &inner_ethernet())),
        ("geneve with ip", geneve(0x0800, &[], &tcp_v4())),
    ]
}

#[test]
fn the_inner_packet_of_every_tunnel_is_parsed_like_a_plain_packet() {
    let alone = parse_ip(&tcp_v4());
    for (name, bytes) in every_tunnel() {
        let mut packet = decapsulate(&bytes);
        assert_eq!(packet.notes, PacketNotes::DECAPSULATED, "{name}");
        packet.notes = PacketNotes::default();
        assert_eq!(packet, alone, "{name}");
    }
}

#[test]
fn ipv6_is_decapsulated_as_inner_and_outer_packet() {
    assert_eq!(flow(decapsulate(&outer(41, &tcp_v6()))), TCP_FLOW_V6);
    assert_eq!(flow(decapsulate(&gre(0, 0x86DD, &tcp_v6()))), TCP_FLOW_V6);
    assert_eq!(flow(decapsulate(&geneve(0x86DD, &[], &tcp_v6()))), TCP_FLOW_V6);
    assert_eq!(flow(decapsulate(&ipv6(4, &tcp_v4()))), TCP_FLOW);
    assert_eq!(
        flow(decapsulate(&ipv6(60, &[&[41, 0, 1, 4, 0, 0, 0, 0], &tcp_v6()[..]].concat()))),
        TCP_FLOW_V6
    );
}

#[test]
fn tunnels_are_decapsulated_only_if_enabled() {
    for (name, bytes) in every_tunnel() {
        let packet = parse_ip(&bytes);
        assert_eq!(packet.key.src().to_string(), "192.0.2.1", "{name}");
        assert_eq!(
            (packet.ip_length as usize, packet.notes),
            (bytes.len(), PacketNotes::default()),
            "{name}"
        );
    }
}

#[test]
fn nested_tunnels_are_decapsulated_up_to_four_levels() {
    let nest = |depth| (0..depth).fold(tcp_v4(), |inner, _| outer(4, &inner));
    assert_eq!(flow(decapsulate(&nest(4))), TCP_FLOW);
    assert_eq!(flow(decapsulate(&nest(5))), "ipip 192.0.2.1 > 192.0.2.2");
    assert_eq!(flow(decapsulate(&erspan_ii(&ethernet(0x0800, &vxlan(4789, &inner_ethernet()))))), TCP_FLOW);
}

#[test]
fn a_tunnel_without_inner_packet_gives_the_outer_packet() {
    let bad_inner = [&[0x65], &tcp_v4()[1..]].concat();
    for (name, bytes) in [
        ("arp", vxlan(4789, &ethernet(0x0806, &[0; 28]))),
        ("malformed", outer(4, &bad_inner)),
        ("nothing", gre(0, 0x0800, &[])),
        ("keepalive", gre(0, 0, &[])),
        ("pptp", gre(0x3001, 0x880B, &tcp_v4())),
        ("source-routed", gre(0x4000, 0x0800, &tcp_v4())),
        ("no valid vni", outer(17, &udp(54321, 4789, &[&[0; 8][..], &inner_ethernet()].concat()))),
        (
            "geneve version 1",
            outer(17, &udp(54321, 6081, &[&[0x40, 0, 8, 0, 0, 0, 0, 0], &tcp_v4()[..]].concat())),
        ),
        (
            "erspan ii of version 2",
            gre(0x1000, 0x88BE, &[&[0x20, 1, 0, 0, 0, 0, 0, 1], &inner_ethernet()[..]].concat()),
        ),
        ("erspan iii of type 7", erspan_iii(7, false, &inner_ethernet())),
    ] {
        assert_eq!(decapsulate(&bytes), parse_ip(&bytes), "{name}");
        assert_eq!(decapsulate(&bytes).key.src().to_string(), "192.0.2.1", "{name}");
    }
}

#[test]
fn a_fragment_of_a_tunnel_packet_gives_the_outer_packet() {
    for flags in [0x20, 0x00] {
        let mut bytes = gre(0, 0x0800, &tcp_v4());
        (bytes[6], bytes[7]) = (flags, 1 - flags / 0x20);
        let packet = decapsulate(&bytes);
        assert_ne!(packet.fragment, Fragment::Whole);
        assert_eq!(flow(packet), "gre 192.0.2.1 > 192.0.2.2");
    }
}

#[test]
fn a_capture_truncated_in_the_tunnel_header_gives_the_outer_packet() {
    for (name, bytes) in every_tunnel() {
        let inner_addresses_end = bytes.len() - tcp_v4().len() + 20;
        for snap_length in 20..=bytes.len() {
            let frame = frame(LinkType::RawIp, &bytes[..snap_length], bytes.len());
            let packet = Parser { decapsulate: true }.parse(&frame).unwrap();
            let decapsulated = packet.notes.contains(PacketNotes::DECAPSULATED);
            assert_eq!(decapsulated, snap_length >= inner_addresses_end, "{name} {snap_length}");
            assert_eq!(
                packet.ip_length as usize,
                if decapsulated { 45 } else { bytes.len() },
                "{name} {snap_length}"
            );
        }
    }
}

#[test]
fn the_length_of_the_inner_packet_is_limited_by_the_outer_one() {
    let mut bytes = gre(0, 0x0800, &tcp_v4());
    bytes[26..28].copy_from_slice(&[0, 0]);
    bytes.extend([0xEE; 20]);
    let packet = decapsulate(&bytes);
    assert_eq!(packet.ip_length, 45);
    assert_eq!(packet.notes.0, PacketNotes::DECAPSULATED.0 | PacketNotes::LENGTH_FROM_FRAME.0);

    bytes[26..28].copy_from_slice(&[0, 46]);
    let packet = decapsulate(&bytes);
    assert_eq!(packet.ip_length, 46);
    assert_eq!(packet.notes.0, PacketNotes::DECAPSULATED.0 | PacketNotes::LENGTH_BEYOND_FRAME.0);
}
