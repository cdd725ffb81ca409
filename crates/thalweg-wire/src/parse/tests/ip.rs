use super::*;
use crate::packet::{Fragment, PacketNotes};

/// Replaces the two bytes of `packet` at `offset`.
fn with_field(mut packet: Vec<u8>, offset: usize, value: u16) -> Vec<u8> {
    packet[offset..offset + 2].copy_from_slice(&value.to_be_bytes());
    packet
}

#[test]
fn ipv4_options_are_skipped() {
    let mut bytes = tcp_v4();
    bytes[0] = 0x47;
    bytes.splice(20..20, [0x07, 0x07, 0x04, 0, 0, 0, 0, 0]);
    let packet = parse_ip(&with_field(bytes, 2, 53));
    assert_eq!(flow(packet), TCP_FLOW);
    assert_eq!((packet.ip_length, packet.payload_length), (53, 5));
}

#[test]
fn inconsistent_ipv4_headers_are_malformed() {
    let with_first_byte = |byte| [&[byte], &tcp_v4()[1..]].concat();
    let parse = |bytes: Vec<u8>| super::parse(LinkType::Ethernet, &ethernet(0x0800, &bytes));
    assert_eq!(parse(with_first_byte(0x65)), malformed(Malformed::IpVersion, 14));
    assert_eq!(parse(with_first_byte(0x44)), malformed(Malformed::HeaderLength, 14));
    assert_eq!(parse(with_field(tcp_v4(), 2, 19)), malformed(Malformed::TotalLength, 14));
    let total_length_within_options = with_field([&[0x46], &tcp_v4()[1..]].concat(), 2, 23);
    assert_eq!(parse(total_length_within_options), malformed(Malformed::TotalLength, 14));
    assert_eq!(parse(tcp_v4()[..19].to_vec()), malformed(Malformed::FrameTooShort, 14));
    assert_eq!(super::parse(LinkType::RawIp, &with_first_byte(0x55)), malformed(Malformed::IpVersion, 0));
    assert_eq!(
        super::parse(LinkType::Ipv6, &[&tcp_v4()[..], &[0; 8]].concat()),
        malformed(Malformed::IpVersion, 0)
    );
}

#[test]
fn ipv4_fragments_are_detected_by_offset_and_flag() {
    let fragment = |flags_and_offset| parse_ip(&with_field(tcp_v4(), 6, flags_and_offset));
    let identification = 0x1234;

    let first = fragment(0x2000);
    assert_eq!(first.fragment, Fragment::First { identification });
    assert_eq!((flow(first).as_str(), first.payload_length), (TCP_FLOW, 5));

    for (name, later) in [("middle", fragment(0x2001)), ("last", fragment(0x1FFF))] {
        assert_eq!(later.fragment, Fragment::Later { identification }, "{name}");
        assert_eq!(flow(later), "tcp 10.0.0.1:0 > 10.0.0.2:0", "{name}");
        assert_eq!((later.payload_length, later.tcp_sequence, later.tcp_flags.0), (25, 0, 0), "{name}");
        assert_eq!(later.notes, PacketNotes::default(), "{name}");
    }
    assert_eq!(fragment(0xC000).fragment, Fragment::Whole);
}

#[test]
fn a_total_length_of_zero_is_taken_from_the_frame() {
    let bytes = with_field(ipv4(6, &tcp(&[0; 80_000])), 2, 0);
    let parser = Parser::default();
    let captured = ethernet(0x0800, &bytes[..96]);
    let packet = parser.parse(&frame(LinkType::Ethernet, &captured, 14 + bytes.len())).unwrap();
    assert_eq!((packet.ip_length, packet.payload_length), (80_040, 80_000));
    assert_eq!(packet.notes, PacketNotes::LENGTH_FROM_FRAME);
}

#[test]
fn a_length_beyond_the_frame_is_kept_and_marked() {
    let packet = parse_ip(&with_field(tcp_v4(), 2, 1500));
    assert_eq!((packet.ip_length, packet.payload_length), (1500, 1460));
    assert_eq!(packet.notes, PacketNotes::LENGTH_BEYOND_FRAME);
    let packet = parse_ip(&with_field(tcp_v6(), 4, 1460));
    assert_eq!((packet.ip_length, packet.payload_length), (1500, 1440));
    assert_eq!(packet.notes, PacketNotes::LENGTH_BEYOND_FRAME);
}

#[test]
fn ethernet_padding_is_not_part_of_the_packet() {
    let padded = |ip: Vec<u8>| parse(LinkType::Ethernet, &ethernet(0x0800, &[&ip[..], &[0xEE; 30]].concat()));
    let packet = padded(ipv4(6, &tcp(b""))).unwrap();
    assert_eq!((packet.ip_length, packet.payload_length), (40, 0));
    let packet = padded(ipv4(6, &tcp(b"")[..4])).unwrap();
    assert_eq!((flow(packet).as_str(), packet.payload_length), (TCP_FLOW, 0));
    assert_eq!((packet.tcp_sequence, packet.tcp_flags.0), (0, 0));
}

#[test]
fn ipv6_extension_headers_are_skipped_in_any_order() {
    let hop_by_hop = [0, 1, 4, 0, 0, 0, 0];
    for (number, header) in [
        (0, [&[6, 0][..], &hop_by_hop[1..]].concat()),
        (43, [&[6, 2][..], &[0; 22]].concat()),
        (44, vec![6, 0, 0, 0, 0, 0, 0, 9]),
        (51, [&[6, 4][..], &[0; 22]].concat()),
        (60, [&[6, 0][..], &hop_by_hop[1..]].concat()),
        (135, [&[6, 1][..], &[0; 14]].concat()),
        (139, [&[6, 4][..], &[0; 38]].concat()),
        (140, [&[6, 0][..], &[0; 6]].concat()),
    ] {
        let packet = parse_ip(&ipv6(number, &[&header[..], &tcp(b"hello")].concat()));
        assert_eq!(flow(packet), TCP_FLOW_V6, "header {number}");
        assert_eq!(packet.ip_length as usize, 65 + header.len(), "header {number}");
        assert_eq!((packet.payload_length, packet.fragment), (5, Fragment::Whole), "header {number}");
    }
    let chain =
        [&[60, 0, 1, 4, 0, 0, 0, 0][..], &[43, 0, 1, 4, 0, 0, 0, 0], &[6, 0, 0, 0, 0, 0, 0, 0]].concat();
    assert_eq!(flow(parse_ip(&ipv6(0, &[&chain[..], &tcp(b"")].concat()))), TCP_FLOW_V6);
}

#[test]
fn ports_after_an_authentication_header_are_found() {
    let authenticated = [&[6, 4][..], &[0; 22], &tcp(b"hello")].concat();
    assert_eq!(flow(parse_ip(&ipv4(51, &authenticated))), TCP_FLOW);
    assert_eq!(flow(parse_ip(&ipv6(51, &authenticated))), TCP_FLOW_V6);
    assert_eq!(parse_ip(&ipv4(51, &authenticated)).payload_length, 5);
}

#[test]
fn ipv6_fragments_have_an_identification_and_only_the_first_has_ports() {
    let fragment = |high, low| {
        let header = [6, 0, high, low, 0xDE, 0xAD, 0xBE, 0xEF];
        parse_ip(&ipv6(44, &[&header[..], &tcp(b"hello")].concat()))
    };
    let identification = 0xDEAD_BEEF;
    assert_eq!(fragment(0, 1).fragment, Fragment::First { identification });
    assert_eq!(flow(fragment(0, 1)), TCP_FLOW_V6);
    for later in [fragment(0, 8), fragment(0, 9)] {
        assert_eq!(later.fragment, Fragment::Later { identification });
        assert_eq!(flow(later), "tcp [2001:db8::1]:0 > [2001:db8::2]:0");
        assert_eq!((later.payload_length, later.notes), (25, PacketNotes::default()));
    }

    let options_split = ipv6(44, &[60, 0, 0, 8, 0xDE, 0xAD, 0xBE, 0xEF, 6, 0, 1, 4, 0, 0, 0, 0]);
    let later = parse_ip(&options_split);
    assert_eq!((later.key.protocol.0, later.payload_length, later.notes), (60, 8, PacketNotes::default()));
}

#[test]
fn a_capture_truncated_in_extension_headers_is_marked() {
    let bytes =
        ipv6(0, &[&[60, 0, 1, 4, 0, 0, 0, 0][..], &[6, 0, 1, 4, 0, 0, 0, 0], &tcp(b"hello")].concat());
    for (snap_length, protocol) in [(40, 0), (41, 0), (42, 60), (49, 60), (50, 6), (59, 6)] {
        let packet = parse_snapped(&bytes, snap_length).unwrap();
        assert_eq!(packet.key.protocol.0, protocol, "{snap_length}");
        assert_eq!(packet.notes, PacketNotes::PORTS_NOT_CAPTURED, "{snap_length}");
        assert_eq!(packet.ip_length, 81, "{snap_length}");
    }
    assert_eq!(flow(parse_snapped(&bytes, 60).unwrap()), TCP_FLOW_V6);
    assert_eq!(parse_snapped(&bytes, 39), malformed(Malformed::Truncated, 0));
    let endless = parse_ip(&ipv6(60, &[60, 0, 1, 4, 0, 0, 0, 0].repeat(100)));
    assert_eq!((endless.key.protocol.0, endless.notes), (60, PacketNotes::PORTS_NOT_CAPTURED));
}

#[test]
fn a_mobility_header_is_the_protocol() {
    let packet = parse_ip(&ipv6(135, &[59, 1, 5, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]));
    assert_eq!(
        (packet.key.protocol.0, packet.payload_length, packet.notes),
        (135, 16, PacketNotes::default())
    );
    assert_eq!(parse_ip(&ipv6(60, &[59, 0, 1, 4, 0, 0, 0, 0])).key.protocol.0, 59);
}

#[test]
fn a_jumbo_payload_option_gives_the_length() {
    let length = (16 + 20 + 70_000u32).to_be_bytes();
    let options = [&[6, 1, 5, 2, 0, 0, 0, 0, 0xC2, 4][..], &length, &[1, 0]].concat();
    let bytes = with_field(ipv6(0, &[&options[..], &tcp(&[0; 70_000])].concat()), 4, 0);
    for snap_length in [bytes.len(), 90] {
        let packet = parse_snapped(&bytes, snap_length).unwrap();
        assert_eq!(flow(packet), TCP_FLOW_V6);
        assert_eq!((packet.ip_length, packet.payload_length), (70_076, 70_000));
        assert_eq!(packet.notes, PacketNotes::default());
    }
}

/// 78 captured bytes that claim 4 GiB: by the frame length of the capture record, or by a jumbo payload option.
#[test]
fn forged_lengths_are_cut_to_what_a_frame_can_hold() {
    const MOST: u32 = 8 * 65_535;
    let claimed = PacketNotes(PacketNotes::LENGTH_FROM_FRAME.0 | PacketNotes::LENGTH_BEYOND_FRAME.0);
    let bytes = with_field(ipv4(6, &tcp(&[0; 24])), 2, 0);
    let captured = ethernet(0x0800, &bytes);
    let parser = Parser::default();
    let packet = parser.parse(&frame(LinkType::Ethernet, &captured, u32::MAX as usize)).unwrap();
    assert_eq!((captured.len(), packet.ip_length, packet.notes), (78, MOST, claimed));
    assert_eq!(packet.payload_length, MOST - 40);

    let options = [&[6, 0, 0xC2, 4][..], &(u32::MAX - 40).to_be_bytes()].concat();
    let bytes = with_field(ipv6(0, &[&options[..], &tcp(&[0; 10])].concat()), 4, 0);
    let packet = parse_ip(&bytes);
    assert_eq!((packet.ip_length, packet.notes), (78, PacketNotes::LENGTH_BEYOND_FRAME));
    let packet = parser.parse(&frame(LinkType::RawIp, &bytes, u32::MAX as usize)).unwrap();
    assert_eq!((packet.ip_length, packet.notes), (MOST, PacketNotes::LENGTH_BEYOND_FRAME));
}

#[test]
fn an_ipv6_payload_length_of_zero_is_taken_from_the_frame_if_a_header_follows() {
    let packet = parse_ip(&with_field(ipv6(6, &tcp(&[0; 70_000])), 4, 0));
    assert_eq!((packet.ip_length, packet.payload_length), (70_060, 70_000));
    assert_eq!(packet.notes, PacketNotes::LENGTH_FROM_FRAME);

    let options = [6, 0, 0xC2, 4, 0, 0, 0, 40];
    let packet = parse_ip(&with_field(ipv6(0, &[&options[..], &tcp(b"hello")].concat()), 4, 0));
    assert_eq!((packet.ip_length, packet.notes), (73, PacketNotes::LENGTH_FROM_FRAME));

    let padded = [&ipv6(59, &[])[..], &[0xEE; 6]].concat();
    assert_eq!((parse_ip(&padded).ip_length, parse_ip(&padded).payload_length), (40, 0));
}

#[test]
fn only_a_capture_that_ends_before_the_addresses_is_malformed() {
    for (bytes, header_length) in [(tcp_v4(), 20), (udp_v4(), 20), (tcp_v6(), 40)] {
        for snap_length in 1..header_length {
            assert_eq!(parse_snapped(&bytes, snap_length), malformed(Malformed::Truncated, 0));
        }
        for snap_length in header_length..=bytes.len() {
            let packet = parse_snapped(&bytes, snap_length).unwrap();
            let ports_captured = snap_length >= header_length + 4;
            assert_eq!(packet.ip_length as usize, bytes.len());
            assert_eq!(packet.notes.contains(PacketNotes::PORTS_NOT_CAPTURED), !ports_captured);
            assert_eq!(
                (packet.key.src_port == 443, packet.key.dst_port == 51000),
                (ports_captured, ports_captured)
            );
        }
    }
}
