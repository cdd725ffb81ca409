use super::*;
use crate::packet::{PacketNotes, TcpFlags};

#[test]
fn tcp_has_ports_sequence_number_flags_and_payload() {
    let packet = parse_ip(&tcp_v4());
    assert_eq!(flow(packet), TCP_FLOW);
    assert_eq!((packet.ip_length, packet.payload_length), (45, 5));
    assert_eq!((packet.tcp_sequence, packet.tcp_flags), (0x0102_0304, TcpFlags::PSH | TcpFlags::ACK));
    assert_eq!(packet.notes, PacketNotes::default());
}

#[test]
fn uncaptured_tcp_options_are_not_payload() {
    let mut segment = tcp(&[0; 112]);
    segment[12] = 0x80;
    let bytes = ipv4(6, &segment);
    for snap_length in [bytes.len(), 54, 40, 33] {
        assert_eq!(parse_snapped(&bytes, snap_length).unwrap().payload_length, 100, "{snap_length}");
    }
    let without_data_offset = parse_snapped(&bytes, 32).unwrap();
    assert_eq!((without_data_offset.payload_length, without_data_offset.tcp_sequence), (112, 0x0102_0304));
}

#[test]
fn a_tcp_header_longer_than_the_packet_means_no_payload() {
    let mut segment = tcp(b"hello");
    segment[12] = 0xF0;
    assert_eq!(parse_ip(&ipv4(6, &segment)).payload_length, 0);
    segment[12] = 0x40;
    assert_eq!(parse_ip(&ipv4(6, &segment)).payload_length, 5);
}

#[test]
fn the_udp_payload_is_given_by_the_ip_length() {
    let mut bytes = udp_v4();
    bytes[25] = 0xFF;
    let packet = parse_ip(&bytes);
    assert_eq!((flow(packet).as_str(), packet.payload_length), (UDP_FLOW, 12));
    assert_eq!((packet.tcp_sequence, packet.tcp_flags.0), (0, 0));
}

#[test]
fn sctp_dccp_and_udp_lite_have_ports() {
    let header = |byte_4| [&[0x01, 0xBB, 0xC7, 0x38, byte_4][..], &[0; 25]].concat();
    for (protocol, name, payload_length) in [(132, "sctp", 18), (33, "dccp", 14), (136, "udplite", 22)] {
        let packet = parse_ip(&ipv4(protocol, &header(4)));
        assert_eq!(flow(packet), format!("{name} 10.0.0.1:443 > 10.0.0.2:51000"));
        assert_eq!(packet.payload_length, payload_length, "{name}");
    }
}

#[test]
fn only_an_echo_has_its_identifier_as_both_ports() {
    let message = |kind| [kind, 0, 0, 0, 0xBE, 0xEF, 0, 1, 1, 2, 3, 4];
    for (kind, echo) in [(8, true), (0, true), (3, false), (11, false), (128, false)] {
        let packet = parse_ip(&ipv4(1, &message(kind)));
        let port = if echo { 0xBEEF } else { 0 };
        assert_eq!((packet.key.src_port, packet.key.dst_port), (port, port), "type {kind}");
        assert_eq!((packet.payload_length, packet.notes), (4, PacketNotes::default()), "type {kind}");
    }
    for (kind, echo) in [(128, true), (129, true), (135, false), (8, false)] {
        let packet = parse_ip(&ipv6(58, &message(kind)));
        let port = if echo { 0xBEEF } else { 0 };
        assert_eq!((packet.key.src_port, packet.key.dst_port), (port, port), "type {kind}");
    }
}

#[test]
fn only_an_echo_without_captured_identifier_is_marked() {
    let bytes = ipv4(1, &[8, 0, 0, 0, 0xBE, 0xEF, 0, 1]);
    let notes = |bytes: &[u8], snap_length| parse_snapped(bytes, snap_length).unwrap().notes;
    assert_eq!(notes(&bytes, 25), PacketNotes::PORTS_NOT_CAPTURED);
    assert_eq!(notes(&bytes, 26), PacketNotes::default());
    let unreachable = ipv4(1, &[3, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(notes(&unreachable, 20), PacketNotes::PORTS_NOT_CAPTURED);
    assert_eq!(notes(&unreachable, 21), PacketNotes::default());
}

#[test]
fn protocols_without_ports_have_the_whole_payload() {
    let packet = parse_ip(&ipv4(50, &[0xFF; 40]));
    assert_eq!((flow(packet).as_str(), packet.payload_length), ("esp 10.0.0.1 > 10.0.0.2", 40));
}
