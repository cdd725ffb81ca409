use std::net::{Ipv4Addr, Ipv6Addr};

use proptest::prelude::*;

use super::*;

/// A word of the oracle, which compares addresses bit by bit.
#[derive(Clone, Debug)]
enum Typed {
    Network(IpAddr, u8),
    Address(IpAddr),
    Endpoint(SocketAddr),
    Port(u16, &'static str),
    Protocol(Protocol),
    Cheetah,
}

impl Typed {
    fn text(&self) -> String {
        match self {
            Typed::Network(address, length) => format!("{address}/{length}"),
            Typed::Address(address) => address.to_string(),
            Typed::Endpoint(endpoint) => endpoint.to_string(),
            Typed::Port(port, prefix) => format!("{prefix}{port}"),
            Typed::Protocol(protocol) => protocol.to_string(),
            Typed::Cheetah => "cheetah".to_owned(),
        }
    }

    fn matches(&self, key: &FlowKey, cheetah: bool) -> bool {
        let ends = [key.src(), key.dst()];
        match self {
            Typed::Network(network, length) => ends.iter().any(|end| same_bits(*network, *end, *length)),
            Typed::Address(address) => ends.contains(address),
            Typed::Endpoint(endpoint) => {
                [SocketAddr::new(key.src(), key.src_port), SocketAddr::new(key.dst(), key.dst_port)]
                    .contains(endpoint)
            }
            Typed::Port(port, _) => [key.src_port, key.dst_port].contains(port),
            Typed::Protocol(protocol) => key.protocol == *protocol,
            Typed::Cheetah => cheetah,
        }
    }
}

fn bits(address: IpAddr) -> Vec<bool> {
    let octets = match address {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    };
    octets.iter().flat_map(|octet| (0..8).map(move |i| octet & 0x80 >> i != 0)).collect()
}

fn same_bits(a: IpAddr, b: IpAddr, length: u8) -> bool {
    a.is_ipv4() == b.is_ipv4() && bits(a)[..usize::from(length)] == bits(b)[..usize::from(length)]
}

/// A few similar addresses, so that words match keys often.
fn v4() -> impl Strategy<Value = IpAddr> {
    (0..2u8, 0..4u8).prop_map(|(net, host)| IpAddr::V4(Ipv4Addr::new(10, net, 0, host)))
}

fn v6() -> impl Strategy<Value = IpAddr> {
    (0..2u16, 0..2u16, 0..4u16)
        .prop_map(|(net, middle, host)| IpAddr::V6(Ipv6Addr::new(0x2001, net, 0, 0, middle, 0, 0, host)))
}

fn protocol() -> impl Strategy<Value = Protocol> {
    prop_oneof![Just(Protocol::TCP), Just(Protocol::UDP), Just(Protocol::ICMP), Just(Protocol(200))]
}

fn key() -> impl Strategy<Value = FlowKey> {
    let ends = prop_oneof![(v4(), v4()), (v6(), v6())];
    (ends, 80..84u16, 80..84u16, protocol())
        .prop_map(|((src, dst), sp, dp, protocol)| FlowKey::new(src, dst, sp, dp, protocol).unwrap())
}

fn word() -> impl Strategy<Value = Typed> {
    prop_oneof![
        (v4(), 0..=32u8).prop_map(|(address, length)| Typed::Network(address, length)),
        (v6(), 0..=128u8).prop_map(|(address, length)| Typed::Network(address, length)),
        prop_oneof![v4(), v6()].prop_map(Typed::Address),
        (prop_oneof![v4(), v6()], 80..84u16)
            .prop_map(|(address, port)| Typed::Endpoint(SocketAddr::new(address, port))),
        (80..84u16, prop_oneof![Just(""), Just(":"), Just("port "), Just("port :")])
            .prop_map(|(port, prefix)| Typed::Port(port, prefix)),
        protocol().prop_map(Typed::Protocol),
        Just(Typed::Cheetah),
    ]
}

fn parse(words: &[Typed]) -> FlowFilter {
    words.iter().map(Typed::text).collect::<Vec<_>>().join(" ").parse().unwrap()
}

proptest! {
    #[test]
    fn a_filter_matches_like_a_bitwise_oracle(
        words in prop::collection::vec(word(), 0..4),
        keys in prop::collection::vec((key(), any::<bool>()), 20),
    ) {
        let filter = parse(&words);
        for (key, cheetah) in keys {
            let expected = words.iter().all(|word| word.matches(&key, cheetah));
            prop_assert_eq!(filter.matches(&key, cheetah), expected, "{} on {}", filter, key);
            prop_assert_eq!(filter.matches(&key.reversed(), cheetah), expected, "{} on {}", filter, key);
        }
    }

    #[test]
    fn a_printed_filter_parses_to_itself(words in prop::collection::vec(word(), 0..6)) {
        let filter = parse(&words);
        prop_assert_eq!(filter.to_string().parse(), Ok(filter));
    }

    #[test]
    fn the_parser_never_panics(text in "[0-9a-z:./ ]{0,24}|\\PC{0,24}") {
        let _ = text.parse::<FlowFilter>();
    }
}

#[test]
fn filters_print_in_canonical_form() {
    for (typed, printed) in [
        ("", ""),
        ("  TCP   port 443 ", "tcp :443"),
        ("10.1.2.3/8", "10.0.0.0/8"),
        ("10.1.2.3/32 0.0.0.0/0", "10.1.2.3 0.0.0.0/0"),
        ("2001:DB8::1/32 ::1", "2001:db8::/32 ::1"),
        ("10.0.0.1:53 [::1]:80", "10.0.0.1:53 [::1]:80"),
        ("Cheetah 53", "cheetah :53"),
    ] {
        assert_eq!(typed.parse::<FlowFilter>().map(|filter| filter.to_string()), Ok(printed.to_owned()));
    }
}

#[test]
fn an_error_names_the_word_and_the_expectation() {
    for (typed, message) in [
        ("tcp htpp", "`htpp`: expected an address, prefix, port, protocol or `cheetah`"),
        ("10.0.0", "`10.0.0`: expected an address, prefix, port, protocol or `cheetah`"),
        ("10.0.0.0/33", "`10.0.0.0/33`: expected a prefix length from 0 to 32"),
        ("2001:db8::/129", "`2001:db8::/129`: expected a prefix length from 0 to 128"),
        ("10.0.0.0/", "`10.0.0.0/`: expected a prefix length from 0 to 32"),
        ("ten/8", "`ten/8`: expected an address before the slash, such as 10.0.0.0/8"),
        ("65536", "`65536`: expected a port from 0 to 65535"),
        ("port http", "`http`: expected a port from 0 to 65535"),
        ("tcp port", "expected a number after `port`"),
    ] {
        assert_eq!(typed.parse::<FlowFilter>().unwrap_err().to_string(), message);
    }
}

#[test]
fn an_ipv4_word_never_matches_an_ipv6_flow() {
    let mapped = FlowKey::v6(0xFFFF_0A00_0001, 0x0A00_0001, 1, 2, Protocol::TCP);
    for text in ["10.0.0.1", "0.0.0.0/0"] {
        assert!(!text.parse::<FlowFilter>().unwrap().matches(&mapped, false), "{text}");
    }
    assert!("::/0".parse::<FlowFilter>().unwrap().matches(&mapped, false));
}
