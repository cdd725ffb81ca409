//! Rules byte by byte, as RFC 8955 (sections 4 and 7) and RFC 8956 write them.

use bytes::BytesMut;
use rustbgpd_wire::{Message, encode_message};

use super::*;

const EXTERNAL: Encoding = Encoding { local_as: 64_501, is_internal: false, four_octet_as: true };

fn key(text: &str) -> FlowKey {
    text.parse().unwrap()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Returns the NLRI of the rule of a flow, in hexadecimal digits.
fn nlri(flow: &str) -> String {
    let rule = Rule::of(&key(flow));
    let mut bytes = Vec::new();
    rustbgpd_wire::flowspec::try_encode_flowspec_nlri(&[rule.components()], &mut bytes, rule.family())
        .unwrap();
    hex(&bytes)
}

/// Returns the only message that announces the rule of a flow, in hexadecimal digits, without marker, length and type.
fn announced(flow: &str, action: Action, encoding: Encoding) -> String {
    let rule = Rule::of(&key(flow));
    let updates = announce(&[rule], rule.family(), action, encoding).unwrap();
    assert_eq!(updates.len(), 1);
    let bytes: BytesMut = encode_message(&Message::Update(updates[0].clone())).unwrap();
    hex(&bytes[19..])
}

#[test]
fn a_rule_matches_both_addresses_protocol_and_ports() {
    // Length; 1: destination /32; 2: source /32; 3: protocol = 6; 5: destination port = 443; 6: source port = 5001. The operators are
    // "end of list, equal" (81), with a value of two bytes 91.
    assert_eq!(
        nlri("tcp 192.0.2.7:5001 > 198.51.100.9:443"),
        "17 0120c6336409 0220c0000207 038106 059101bb 06911389".replace(' ', "")
    );
    // A port below 256 takes one byte.
    assert_eq!(
        nlri("udp 192.0.2.7:53 > 198.51.100.9:53"),
        "15 0120c6336409 0220c0000207 038111 058135 068135".replace(' ', "")
    );
}

#[test]
fn an_ipv6_prefix_has_an_offset() {
    let destination = "01 80 00 20010db8000000000000000000000002";
    let source = "02 80 00 20010db8000000000000000000000001";
    let expected = format!("31 {destination} {source} 038106 059101bb 06911389");
    assert_eq!(nlri("tcp [2001:db8::1]:5001 > [2001:db8::2]:443"), expected.replace(' ', ""));
}

#[test]
fn protocols_without_ports_in_rules_match_all_flows_between_the_hosts() {
    // SCTP has ports, but a rule with a port matches only TCP and UDP.
    for (flow, protocol) in [
        ("sctp 192.0.2.7:5001 > 198.51.100.9:443", "84"),
        ("icmp 192.0.2.7:9 > 198.51.100.9:9", "01"),
        ("gre 192.0.2.7:0 > 198.51.100.9:0", "2f"),
        ("99 192.0.2.7:0 > 198.51.100.9:0", "63"),
    ] {
        assert_eq!(nlri(flow), format!("0f0120c63364090220c00002070381{protocol}"), "{flow}");
    }
    let sctp = |port| Rule::of(&key(&format!("sctp 192.0.2.7:{port} > 198.51.100.9:443")));
    assert_eq!(sctp(1), sctp(2));
}

#[test]
fn an_announcement_has_the_attributes_of_the_session() {
    let flow = "tcp 192.0.2.7:5001 > 198.51.100.9:443";
    let rule = nlri(flow);
    // Nothing withdrawn; the length of the attributes; ORIGIN IGP; AS_PATH 64501; COMMUNITIES no-export; MP_REACH_NLRI: AFI 1, SAFI 133,
    // no next hop, reserved, rule; EXTENDED_COMMUNITIES traffic-marking.
    let expected = format!(
        "0000 003f 400101 00 400206 0201 0000fbf5 c00804 ffffff01 800e1d 0001 85 00 00 {rule} c01008 8009000000000001"
    );
    assert_eq!(announced(flow, Action::Mark(1), EXTERNAL), expected.replace(' ', ""));
    // Within an autonomous system: an empty path, and a preference.
    let internal = Encoding { is_internal: true, ..EXTERNAL };
    let expected = format!(
        "0000 0040 400101 00 400200 400504 00000064 c00804 ffffff01 800e1d 0001 85 00 00 {rule} c01008 8009000000000001"
    );
    assert_eq!(announced(flow, Action::Mark(1), internal), expected.replace(' ', ""));
}

#[test]
fn an_action_is_an_extended_community() {
    let target = |text: &str| Action::Redirect(text.parse().unwrap());
    for (action, community) in [
        (Action::Mark(46), "c01008 8009 00000000002e"),
        // 12,500,000 bytes/s as a number of IEEE 754.
        (Action::RateLimit(BitRate(100_000_000)), "c01008 8006 fbf5 4b3ebc20"),
        (target("64500:100"), "c01008 8008 fbf4 00000064"),
        (target("4200000000:100"), "c01008 8208 fa56ea00 0064"),
        (target("192.0.2.1:100"), "c01008 8108 c0000201 0064"),
        (target("192.0.2.1"), "c01008 010c c0000201 0000"),
        (target("2001:db8::1"), "c01914 000c 20010db8000000000000000000000001 0000"),
    ] {
        let bytes = announced("tcp 192.0.2.7:5001 > 198.51.100.9:443", action, EXTERNAL);
        assert!(bytes.ends_with(&community.replace(' ', "")), "{action}: {bytes}");
    }
}

#[test]
fn a_next_hop_applies_to_its_ip_version() {
    let action = Action::Redirect("2001:db8::1".parse().unwrap());
    assert!(action.applies_to(Afi::Ipv6) && !action.applies_to(Afi::Ipv4));
    assert!(Action::Mark(1).applies_to(Afi::Ipv4));
}

#[test]
fn redirect_targets_are_read_and_shown() {
    for text in ["64500:4294967295", "4200000000:65535", "192.0.2.1:65535", "192.0.2.1", "2001:db8::1"] {
        assert_eq!(text.parse::<RedirectTarget>().unwrap().to_string(), text);
    }
    for text in ["", "64500", "64500:", "64500:4294967296", "4200000000:65536", "192.0.2.1:65536", "vrf:1"] {
        let error = text.parse::<RedirectTarget>().unwrap_err().to_string();
        assert!(error.contains(&format!("{text:?}: expected a route target")), "{error}");
    }
}

#[test]
fn many_rules_fit_into_messages_of_4096_bytes() {
    for version in [4, 6] {
        let rules: Vec<Rule> = (0..2_000)
            .map(|port| match version {
                4 => key(&format!("tcp 192.0.2.7:{port} > 198.51.100.9:443")),
                _ => key(&format!("tcp [2001:db8::1]:{port} > [2001:db8::2]:443")),
            })
            .map(|key| Rule::of(&key))
            .collect();
        let family = rules[0].family();
        let announced = announce(&rules, family, Action::Mark(1), EXTERNAL).unwrap();
        let withdrawn = withdraw(&rules, family, EXTERNAL).unwrap();
        let mut read = [Vec::new(), Vec::new()];
        for update in announced.iter().chain(&withdrawn) {
            // Encoding fails if a message is too long.
            encode_message(&Message::Update(update.clone())).unwrap();
            for attribute in update.parse(true, false, &[]).unwrap().attributes {
                match attribute {
                    PathAttribute::MpReachNlri(reach) => read[0].extend(reach.flowspec_announced),
                    PathAttribute::MpUnreachNlri(unreach) => read[1].extend(unreach.flowspec_withdrawn),
                    _ => {}
                }
            }
        }
        let expected: Vec<FlowSpecRule> = rules.iter().map(Rule::components).collect();
        assert!(read.iter().all(|read| *read == expected));
        assert!(announced.len() < 40, "{} messages", announced.len());
    }
}
