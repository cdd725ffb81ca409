use super::*;
use crate::packet::VlanTags;
use crate::parse::link;

fn non_ip(ethertype: u16) -> Result<Packet, Unparsed> {
    Err(Unparsed::NonIp { ethertype })
}

fn assert_carries_ip(link_type: LinkType, header: &[u8]) {
    for (ip, expected) in [(tcp_v4(), TCP_FLOW), (udp_v4(), UDP_FLOW)] {
        let packet = parse(link_type, &[header, &ip].concat()).unwrap();
        assert_eq!((flow(packet).as_str(), packet.ip_length as usize), (expected, ip.len()));
    }
}

fn assert_carries_ipv6(link_type: LinkType, header: &[u8]) {
    let packet = parse(link_type, &[header, &tcp_v6()].concat()).unwrap();
    assert_eq!((flow(packet).as_str(), packet.ip_length), (TCP_FLOW_V6, 65));
}

#[test]
fn ethernet_and_raw_ip_carry_both_versions() {
    assert_carries_ip(LinkType::Ethernet, &ethernet(0x0800, &[]));
    assert_carries_ipv6(LinkType::Ethernet, &ethernet(0x86DD, &[]));
    assert_carries_ip(LinkType::RawIp, &[]);
    assert_carries_ipv6(LinkType::RawIp, &[]);
    assert_carries_ip(LinkType::Ipv4, &[]);
    assert_carries_ipv6(LinkType::Ipv6, &[]);
}

#[test]
fn vlan_tags_are_skipped_in_any_order_up_to_a_limit() {
    for tags in [&[0x8100][..], &[0x88A8, 0x8100], &[0x9100, 0x8100], &[0x8100; 3]] {
        let mut header = ethernet(tags[0], &[]);
        for next in tags[1..].iter().chain([&0x0800u16]) {
            header.extend([0x20, 0x64]);
            header.extend(next.to_be_bytes());
        }
        assert_carries_ip(LinkType::Ethernet, &header);
        let [single, double, more] = [1, 2, 3].map(|number| tags.len() == number);
        assert_eq!(link::tags(&header), VlanTags { single, double, more }, "{tags:x?}");
    }
    let endless = ethernet(0x8100, &[0x00, 0x01, 0x81, 0x00].repeat(100));
    assert_eq!(parse(LinkType::Ethernet, &endless), non_ip(0x8100));
}

#[test]
fn mpls_labels_are_skipped_to_the_bottom_of_the_stack() {
    let stack = [0, 0x01, 0x00, 64, 0, 0x02, 0x00, 64, 0, 0x03, 0x01, 64];
    assert_carries_ip(LinkType::Ethernet, &ethernet(0x8847, &stack));
    assert_carries_ipv6(LinkType::Ethernet, &ethernet(0x8848, &stack[8..]));
    let pseudowire = [&stack[8..], &[0, 0, 0, 0], &ethernet(0x0800, &tcp_v4())].concat();
    assert_eq!(parse(LinkType::Ethernet, &ethernet(0x8847, &pseudowire)), non_ip(0x8847));
    let bottomless = ethernet(0x8847, &stack[..4].repeat(100));
    assert_eq!(parse(LinkType::Ethernet, &bottomless), non_ip(0x8847));
}

#[test]
fn a_frame_with_a_length_carries_ip_only_after_snap() {
    let snap = [0xAA, 0xAA, 0x03, 0, 0, 0, 0x08, 0x00];
    assert_carries_ip(LinkType::Ethernet, &ethernet(53, &snap));
    let tagged = ethernet(0x8100, &[&[0, 1, 0, 53], &snap[..]].concat());
    assert_carries_ip(LinkType::Ethernet, &tagged);
    let spanning_tree = ethernet(38, &[0x42, 0x42, 0x03, 0, 0, 0, 0, 0]);
    assert_eq!(parse(LinkType::Ethernet, &spanning_tree), non_ip(0x4242));
    let cdp = ethernet(53, &[0xAA, 0xAA, 0x03, 0, 0, 0x0C, 0x20, 0x00]);
    assert_eq!(parse(LinkType::Ethernet, &cdp), non_ip(0xAAAA));
}

#[test]
fn only_pppoe_session_data_carries_ip() {
    assert_carries_ip(LinkType::Ethernet, &ethernet(0x8864, &[0x11, 0, 0, 7, 0, 47, 0x00, 0x21]));
    assert_carries_ipv6(LinkType::Ethernet, &ethernet(0x8864, &[0x11, 0, 0, 7, 0, 67, 0x00, 0x57]));
    // The protocol field compressed to one byte.
    assert_carries_ip(LinkType::Ethernet, &ethernet(0x8864, &[0x11, 0, 0, 7, 0, 46, 0x21]));
    assert_carries_ipv6(LinkType::Ethernet, &ethernet(0x8864, &[0x11, 0, 0, 7, 0, 66, 0x57]));
    let compressed_tcp = ethernet(0x8864, &[0x11, 0, 0, 7, 0, 3, 0x2D, 0x45, 0x00]);
    assert_eq!(parse(LinkType::Ethernet, &compressed_tcp), non_ip(0x8864));
    let lcp = ethernet(0x8864, &[0x11, 0, 0, 7, 0, 10, 0xC0, 0x21, 9, 0, 0, 8]);
    assert_eq!(parse(LinkType::Ethernet, &lcp), non_ip(0x8864));
}

#[test]
fn null_has_either_byte_order_and_loop_network_order() {
    assert_carries_ip(LinkType::Null, &[2, 0, 0, 0]);
    assert_carries_ip(LinkType::Null, &[0, 0, 0, 2]);
    assert_carries_ip(LinkType::Loop, &[0, 0, 0, 2]);
    assert_eq!(parse(LinkType::Loop, &[2, 0, 0, 0, 0x45]), non_ip(0));
    for family in [10, 24, 28, 30] {
        assert_carries_ipv6(LinkType::Null, &[family, 0, 0, 0]);
        assert_carries_ipv6(LinkType::Null, &[0, 0, 0, family]);
        assert_carries_ipv6(LinkType::Loop, &[0, 0, 0, family]);
    }
    assert_eq!(parse(LinkType::Null, &[7, 0, 0, 0]), non_ip(7));
}

#[test]
fn linux_cooked_captures_are_parsed_by_their_protocol_field() {
    let v1 = |protocol: [u8; 2]| [&[0, 0, 0, 1, 0, 6, 2, 0, 0, 0, 0, 1, 0, 0], &protocol[..]].concat();
    let v2 = |[p0, p1]: [u8; 2]| [&[p0, p1, 0, 0, 0, 0, 0, 1, 0, 1, 0, 6][..], &[0; 8]].concat();
    assert_carries_ip(LinkType::LinuxSll, &v1([0x08, 0x00]));
    assert_carries_ip(LinkType::LinuxSll2, &v2([0x08, 0x00]));
    assert_carries_ipv6(LinkType::LinuxSll, &v1([0x86, 0xDD]));
    assert_carries_ipv6(LinkType::LinuxSll2, &v2([0x86, 0xDD]));
    assert_carries_ip(LinkType::LinuxSll, &[&v1([0x81, 0x00])[..], &[0, 1, 0x08, 0x00]].concat());
    let snap = [0xAA, 0xAA, 0x03, 0, 0, 0, 0x08, 0x00];
    assert_carries_ip(LinkType::LinuxSll, &[&v1([0x00, 0x04])[..], &snap].concat());
    assert_eq!(parse(LinkType::LinuxSll, &[&v1([0x00, 0x0C])[..], &snap].concat()), non_ip(0x000C));
}

#[test]
fn non_ip_frames_have_their_ethertype() {
    assert_eq!(parse(LinkType::Ethernet, &ethernet(0x0806, &[0; 28])), non_ip(0x0806));
    assert_eq!(parse(LinkType::Other(147), &tcp_v4()), Err(Unparsed::UnsupportedLinkType(147)));
}

#[test]
fn a_truncated_link_header_is_attributed_to_capture_or_frame() {
    let bytes = ethernet(0x8100, &[0]);
    assert_eq!(parse(LinkType::Ethernet, &bytes), malformed(Malformed::FrameTooShort, 14));
    let parser = Parser::default();
    assert_eq!(parser.parse(&frame(LinkType::Ethernet, &bytes, 60)), malformed(Malformed::Truncated, 14));
    assert_eq!(parse(LinkType::Ethernet, &[]), malformed(Malformed::FrameTooShort, 0));
}
