//! Keys: their bytes and their readable forms.

use proptest::prelude::*;
use thalweg_sketch::Key;

use super::*;
use crate::tasks::{FlowBytes, FlowName};

fn any_packet() -> impl Strategy<Value = FlowKey> {
    let v4 = (any::<u32>(), any::<u32>(), any::<u16>(), any::<u16>(), any::<u8>())
        .prop_map(|(src, dst, sp, dp, protocol)| FlowKey::v4(src, dst, sp, dp, Protocol(protocol)));
    let v6 = (any::<u128>(), any::<u128>(), any::<u16>(), any::<u16>(), any::<u8>())
        .prop_map(|(src, dst, sp, dp, protocol)| FlowKey::v6(src, dst, sp, dp, Protocol(protocol)));
    prop_oneof![v4, v6]
}

fn bytes(definition: &str, packet: &str) -> Vec<u8> {
    let definition: KeyDefinition = definition.parse().unwrap();
    definition.of(&packet.parse().unwrap()).as_bytes().to_vec()
}

#[test]
fn key_bytes_match_the_documented_layout() {
    let v4 = "tcp 10.1.2.3:443 > 192.168.4.5:51000";
    assert_eq!(bytes("5tuple", v4), [10, 1, 2, 3, 192, 168, 4, 5, 1, 187, 199, 56, 6]);
    assert_eq!(bytes("src", v4), [10, 1, 2, 3]);
    assert_eq!(bytes("dst", v4), [192, 168, 4, 5]);
    assert_eq!(bytes("dst+port", v4), [192, 168, 4, 5, 199, 56, 6]);
    assert_eq!(bytes("src/12", v4), [10, 0, 0, 0]);
    assert_eq!(bytes("dst/13", v4), [192, 168, 0, 0]);
    assert_eq!(bytes("dst/22", v4), [192, 168, 4, 0]);

    let v6 = "udp [2001:db8::1:2]:53 > [2001:db8:ffff:ffff::8]:4096";
    let src = [0x20, 1, 0x0D, 0xB8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 2];
    let dst = [0x20, 1, 0x0D, 0xB8, 255, 255, 255, 255, 0, 0, 0, 0, 0, 0, 0, 8];
    assert_eq!(bytes("5tuple", v6), [src.as_slice(), &dst, &[0, 53, 16, 0, 17]].concat());
    assert_eq!(bytes("src", v6), src);
    assert_eq!(bytes("dst", v6), dst);
    assert_eq!(bytes("dst+port", v6), [dst.as_slice(), &[16, 0, 17]].concat());
    assert_eq!(bytes("dst/24/36", v6), [0x20, 1, 0x0D, 0xB8, 0xF0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(bytes("dst/24", v6), [0x20, 1, 0x0D, 0xB8, 255, 255, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
}

#[test]
fn key_names_show_addresses_ports_and_prefixes() {
    let name = |definition: &str, packet: &str| {
        let definition: KeyDefinition = definition.parse().unwrap();
        let name = definition.name(&definition.of(&packet.parse().unwrap())).unwrap();
        (name.to_string(), name.address().map(|address| address.to_string()).unwrap_or_default())
    };
    let (v4, v6) = ("tcp 10.1.2.3:443 > 192.168.4.5:51000", "udp [2001:db8::1]:53 > [2001:db8::8]:4096");
    for (definition, of_v4, of_v6) in [
        ("5tuple", (v4, ""), (v6, "")),
        ("src", ("10.1.2.3", "10.1.2.3"), ("2001:db8::1", "2001:db8::1")),
        ("dst+port", ("tcp 192.168.4.5:51000", "192.168.4.5"), ("udp [2001:db8::8]:4096", "2001:db8::8")),
        ("src/24", ("10.1.2.0/24", "10.1.2.0"), ("2001:db8::/48", "2001:db8::")),
        ("dst/8/20", ("192.0.0.0/8", "192.0.0.0"), ("2001::/20", "2001::")),
    ] {
        assert_eq!(name(definition, v4), (of_v4.0.to_owned(), of_v4.1.to_owned()));
        assert_eq!(name(definition, v6), (of_v6.0.to_owned(), of_v6.1.to_owned()));
    }
    assert_eq!(name("dst+port", "esp 10.0.0.1 > 10.0.0.2").0, "esp 10.0.0.2");
}

proptest! {
    #[test]
    fn key_names_match_their_packets(packet in any_packet()) {
        let name = |definition: KeyDefinition| definition.name(&definition.of(&packet)).unwrap();
        prop_assert_eq!(name(KeyDefinition::FiveTuple), FlowName::Flow(packet));
        prop_assert_eq!(name(KeyDefinition::Address(Side::Source)), FlowName::Address(packet.src()));
        prop_assert_eq!(name(KeyDefinition::Address(Side::Destination)), FlowName::Address(packet.dst()));
        let (address, port, protocol) = (packet.dst(), packet.dst_port, packet.protocol);
        prop_assert_eq!(name(KeyDefinition::DestinationPort), FlowName::Service { address, port, protocol });
    }

    #[test]
    fn a_prefix_has_only_the_first_bits(packet in any_packet(), v4 in 1..=32u8, v6 in 1..=128u8) {
        let lengths = PrefixLengths::new(v4, v6).unwrap();
        for side in [Side::Source, Side::Destination] {
            let prefix = KeyDefinition::Prefix(side, lengths).of(&packet);
            let address = KeyDefinition::Address(side).of(&packet);
            let bits = if packet.src().is_ipv4() { v4 } else { v6 };
            for (number, (masked, whole)) in prefix.as_bytes().iter().zip(address.as_bytes()).enumerate() {
                for bit in 0..8 {
                    let expected = if number * 8 + bit < usize::from(bits) { whole << bit & 0x80 } else { 0 };
                    prop_assert_eq!(masked << bit & 0x80, expected);
                }
            }
        }
    }

    #[test]
    fn ipv4_and_ipv6_keys_never_collide(one in any_packet(), other in any_packet()) {
        for definition in definitions() {
            let (a, b) = (definition.of(&one), definition.of(&other));
            prop_assert!(one.version() == other.version() || a.as_bytes().len() != b.as_bytes().len());
            prop_assert_eq!(FlowBytes::from_bytes(a.as_bytes()), Some(a));
        }
    }

    #[test]
    fn key_definitions_parse_back_from_their_display(v4 in 1..=32u8, v6 in 1..=128u8) {
        let lengths = PrefixLengths::new(v4, v6).unwrap();
        let prefixes = [Side::Source, Side::Destination].map(|side| KeyDefinition::Prefix(side, lengths));
        for definition in definitions().into_iter().chain(prefixes) {
            prop_assert_eq!(definition.to_string().parse(), Ok(definition));
        }
    }

    #[test]
    fn arbitrary_key_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..50)) {
        let key = FlowBytes::from_bytes(&bytes);
        prop_assert_eq!(key.is_some(), bytes.len() <= FlowBytes::MAX_LENGTH);
        for definition in definitions() {
            let name = key.and_then(|key| definition.name(&key));
            if let Some(FlowName::Flow(flow)) = name {
                prop_assert_eq!(Some(definition.of(&flow)), key);
            }
        }
    }
}

#[test]
fn errors_in_key_definitions_name_the_accepted_values() {
    let error = |text: &str| text.parse::<KeyDefinition>().unwrap_err().to_string();
    assert!(error("sorce").contains("5tuple, src, dst, dst+port"), "{}", error("sorce"));
    assert!(error("dst-port").contains("did you mean dst+port?"), "{}", error("dst-port"));
    for text in ["src/0", "src/33", "dst/24/129", "dst/24/0", "dst/", "src/x", "src/24/48/96"] {
        assert!(error(text).contains("an IPv4 length of 1 to 32"), "{text}: {}", error(text));
    }
}
