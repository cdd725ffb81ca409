//! Random filters against a simple evaluator that does not parse text.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use proptest::prelude::*;

use super::super::*;
use super::cases::Record;

/// A filter of the oracle.
#[derive(Clone, Debug)]
enum Typed {
    Any,
    Version(u8),
    Protocol(u8, &'static str),
    /// The qualifier of the term.
    Host(End, IpAddr),
    Net(End, IpAddr, u8),
    Networks(End, Vec<(IpAddr, u8)>),
    Compared(End, Quantity, &'static str, u64),
    In(End, Quantity, Vec<u64>),
    Flags(&'static str),
    Not(Box<Typed>),
    And(Vec<Typed>),
    Or(Vec<Typed>),
}

#[derive(Clone, Copy, Debug)]
enum End {
    Src,
    Dst,
    Default,
    Either,
    Both,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Quantity {
    Port,
    As,
    Bytes,
    Packets,
    Duration,
    Bps,
    Pps,
    Bpp,
    Tos,
    FlagsNumber,
}

impl End {
    fn text(self) -> &'static str {
        match self {
            End::Src => "src ",
            End::Dst => "DST ",
            End::Default => "",
            End::Either => "src or dst ",
            End::Both => "dst and src ",
        }
    }

    fn holds(self, src: bool, dst: bool) -> bool {
        match self {
            End::Src => src,
            End::Dst => dst,
            End::Default | End::Either => src || dst,
            End::Both => src && dst,
        }
    }
}

impl Quantity {
    fn word(self) -> &'static str {
        match self {
            Quantity::Port => "port",
            Quantity::As => "as",
            Quantity::Bytes => "bytes",
            Quantity::Packets => "packets",
            Quantity::Duration => "duration",
            Quantity::Bps => "bps",
            Quantity::Pps => "pps",
            Quantity::Bpp => "bpp",
            Quantity::Tos => "tos",
            Quantity::FlagsNumber => "flags",
        }
    }

    /// Returns the values of both ends, equal for terms without ends.
    fn values(self, flow: &Record) -> [u64; 2] {
        let per_second = |amount: u64| (amount * 1_000_000).checked_div(flow.duration_us).unwrap_or(0);
        match self {
            Quantity::Port => [flow.src_port.into(), flow.dst_port.into()],
            Quantity::As => [flow.src_as.into(), flow.dst_as.into()],
            Quantity::Bytes => [flow.bytes; 2],
            Quantity::Packets => [flow.packets; 2],
            Quantity::Duration => [flow.duration_us / 1_000; 2],
            Quantity::Bps => [per_second(flow.bytes * 8); 2],
            Quantity::Pps => [per_second(flow.packets); 2],
            Quantity::Bpp => [flow.bytes.checked_div(flow.packets).unwrap_or(0); 2],
            Quantity::Tos => [flow.tos.into(); 2],
            Quantity::FlagsNumber => [flow.tcp_flags.into(); 2],
        }
    }
}

impl Typed {
    fn text(&self) -> String {
        let joined = |parts: &[Typed], word: &str| {
            let parts: Vec<String> = parts.iter().map(|part| format!("({})", part.text())).collect();
            parts.join(word)
        };
        match self {
            Typed::Any => "any".to_owned(),
            Typed::Version(4) => "ipv4".to_owned(),
            Typed::Version(_) => "inet6".to_owned(),
            Typed::Protocol(_, text) => format!("proto {text}"),
            Typed::Host(end, address) => format!("{}host {address}", end.text()),
            Typed::Net(end, address, bits) => format!("{}net {address}/{bits}", end.text()),
            Typed::Networks(end, networks) => {
                let networks: Vec<String> =
                    networks.iter().map(|(address, bits)| format!("{address}/{bits}")).collect();
                format!("{}ip in [{}]", end.text(), networks.join(" "))
            }
            Typed::Compared(end, quantity, comparison, value) => {
                format!("{}{} {comparison} {value}", end.text(), quantity.word())
            }
            Typed::In(end, quantity, values) => {
                let values: Vec<String> = values.iter().map(u64::to_string).collect();
                format!("{}{} in [{}]", end.text(), quantity.word(), values.join(","))
            }
            Typed::Flags(letters) => format!("flags {letters}"),
            Typed::Not(inner) => format!("not ({})", inner.text()),
            Typed::And(parts) => joined(parts, " and "),
            Typed::Or(parts) => joined(parts, " || "),
        }
    }

    /// Evaluates the filter. `is_negated`: whether the number of negations around it is odd.
    fn holds(&self, flow: &Record, is_negated: bool) -> bool {
        match self {
            Typed::Any => true,
            Typed::Version(version) => flow.src.is_ipv4() == (*version == 4),
            Typed::Protocol(number, _) => flow.protocol == *number,
            Typed::Host(end, address) => end.holds(flow.src == *address, flow.dst == *address),
            Typed::Net(end, network, length) => {
                end.holds(same_bits(*network, flow.src, *length), same_bits(*network, flow.dst, *length))
            }
            Typed::Networks(end, networks) => {
                let has =
                    |address| networks.iter().any(|(network, length)| same_bits(*network, address, *length));
                end.holds(has(flow.src), has(flow.dst))
            }
            Typed::Compared(end, quantity, comparison, value) => {
                let test = |left: u64| match *comparison {
                    "" | "=" | "EQ" => left == *value,
                    "!=" => left != *value,
                    "<" => left < *value,
                    "<=" => left <= *value,
                    "gt" => left > *value,
                    _ => left >= *value,
                };
                let [src, dst] = quantity.values(flow);
                let applies = *quantity != Quantity::FlagsNumber || flow.protocol == 6;
                applies && end.holds(test(src), test(dst))
            }
            Typed::In(end, quantity, values) => {
                let has = |left: u64| values.contains(&left);
                let [src, dst] = quantity.values(flow);
                end.holds(has(src), has(dst))
            }
            Typed::Flags(letters) => {
                let set = |letter: char| {
                    let place =
                        "FSRPAU".chars().position(|known| known == letter.to_ascii_uppercase()).unwrap();
                    flow.tcp_flags >> place & 1 == 1
                };
                let mut all = letters.chars().map(set);
                flow.protocol == 6 && if is_negated { all.any(|set| set) } else { all.all(|set| set) }
            }
            Typed::Not(inner) => !inner.holds(flow, !is_negated),
            Typed::And(parts) => parts.iter().all(|part| part.holds(flow, is_negated)),
            Typed::Or(parts) => parts.iter().any(|part| part.holds(flow, is_negated)),
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

/// Generates few addresses, near one another, so that terms select flows.
fn v4() -> impl Strategy<Value = IpAddr> {
    (0..2u8, 0..4u8).prop_map(|(net, host)| IpAddr::V4(Ipv4Addr::new(10, net, 0, host)))
}

fn v6() -> impl Strategy<Value = IpAddr> {
    (0..2u16, 0..2u16, 0..4u16)
        .prop_map(|(net, middle, host)| IpAddr::V6(Ipv6Addr::new(0x2001, net, 0, 0, middle, 0, 0, host)))
}

fn network() -> impl Strategy<Value = (IpAddr, u8)> {
    prop_oneof![(v4(), 0..=32u8), (v6(), 0..=128u8)]
}

fn end() -> impl Strategy<Value = End> {
    prop::sample::select(vec![End::Src, End::Dst, End::Default, End::Either, End::Both])
}

fn comparison() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec!["", "=", "EQ", "!=", "<", "<=", "gt", ">="])
}

fn primitive() -> impl Strategy<Value = Typed> {
    let with_ends = prop::sample::select(vec![Quantity::Port, Quantity::As]);
    let alone = prop::sample::select(vec![
        (Quantity::Bytes, 3_000),
        (Quantity::Packets, 12),
        (Quantity::Duration, 3_000),
        (Quantity::Bps, 20_000),
        (Quantity::Pps, 10),
        (Quantity::Bpp, 1_000),
        (Quantity::Tos, 4),
        (Quantity::FlagsNumber, 64),
    ]);
    prop_oneof![
        Just(Typed::Any),
        prop::sample::select(vec![4, 6]).prop_map(Typed::Version),
        prop::sample::select(vec![(6, "tcp"), (17, "UDP"), (1, "0x1")])
            .prop_map(|(number, text)| Typed::Protocol(number, text)),
        (end(), prop_oneof![v4(), v6()]).prop_map(|(end, address)| Typed::Host(end, address)),
        (end(), network()).prop_map(|(end, (address, bits))| Typed::Net(end, address, bits)),
        (end(), prop::collection::vec(network(), 1..4))
            .prop_map(|(end, networks)| Typed::Networks(end, networks)),
        (end(), with_ends.clone(), comparison(), 80..84u64)
            .prop_map(|(end, quantity, comparison, value)| Typed::Compared(end, quantity, comparison, value)),
        (end(), with_ends, prop::collection::vec(80..84u64, 1..4))
            .prop_map(|(end, quantity, values)| Typed::In(end, quantity, values)),
        (alone, comparison(), any::<prop::sample::Index>()).prop_map(
            |((quantity, most), comparison, value)| {
                Typed::Compared(End::Default, quantity, comparison, value.index(most) as u64)
            }
        ),
        prop::sample::select(vec!["S", "SA", "FRPAU", "u", "fs"]).prop_map(Typed::Flags),
    ]
}

fn filter() -> impl Strategy<Value = Typed> {
    primitive().prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            inner.clone().prop_map(|inner| Typed::Not(Box::new(inner))),
            prop::collection::vec(inner.clone(), 2..4).prop_map(Typed::And),
            prop::collection::vec(inner, 2..4).prop_map(Typed::Or),
        ]
    })
}

fn flow() -> impl Strategy<Value = Record> {
    let ends = prop_oneof![(v4(), v4()), (v6(), v6())];
    let numbers = (80..84u16, 80..84u16, 80..84u32, 80..84u32, 0..64u8, 0..4u8);
    let counts = (0..3_000u64, 0..12u64, prop_oneof![Just(0), 1..3_000_000u64]);
    (ends, prop::sample::select(vec![1, 6, 6, 17]), numbers, counts).prop_map(
        |(
            (src, dst),
            protocol,
            (src_port, dst_port, src_as, dst_as, tcp_flags, tos),
            (bytes, packets, duration_us),
        )| {
            Record {
                src,
                dst,
                src_port,
                dst_port,
                protocol,
                tcp_flags,
                bytes,
                packets,
                duration_us,
                tos,
                src_as,
                dst_as,
                icmp_type_code: 0,
                src_prefix_length: 24,
                dst_prefix_length: 24,
                ingress_interface: 1,
                egress_interface: 2,
                vlan_id: 0,
                flow_direction: 0,
                observation_domain_id: 0,
                next_hop: String::new(),
                exporter: IpAddr::V4(Ipv4Addr::LOCALHOST),
                ..Record::unreported()
            }
        },
    )
}

/// Generates texts from the words of the language, so that many of them parse.
fn texts() -> impl Strategy<Value = String> {
    let words = "src dst or and not ( ) [ ] , in ip host net port as mask if proto tcp flags SA X any cheetah ipv4 next router \
                 bytes packets bps duration 10.0.0.1 10/8 2001:db8::/32 255.0.0.0 80 10k 0x1b > <= != = observation domain id \
                 mac 2:0:0:0:0:1 in out vlan customer geo DE ttl min max fwdstat dropped mpls label1 exp2 eos any ingress vrf name \
                 bgpnext prev xe-0/0/1 \"to\" 'a'* x* a\"b point";
    let words: Vec<&str> = words.split_whitespace().collect();
    prop::collection::vec(prop::sample::select(words), 0..24).prop_map(|words| words.join(" "))
}

proptest! {
    #[test]
    fn filters_select_the_flows_of_the_oracle(
        typed in filter(),
        flows in prop::collection::vec(flow(), 20),
    ) {
        let text = typed.text();
        let filter = FlowFilter::compile(&text, &RECORDS).unwrap();
        for flow in flows {
            prop_assert_eq!(filter.matches(&flow), typed.holds(&flow, false), "{} on {:?}", text, flow);
        }
    }

    #[test]
    fn a_printed_filter_parses_to_itself(typed in filter()) {
        let filter = FlowFilter::compile(&typed.text(), &RECORDS).unwrap();
        let printed = filter.to_string();
        let again = FlowFilter::compile(&printed, &RECORDS).unwrap();
        prop_assert_eq!(&again.expression, &filter.expression, "{}", printed);
        prop_assert_eq!(again.to_string(), printed);
    }

    #[test]
    fn any_text_compiles_or_is_refused_with_a_position(text in prop_oneof![texts(), "\\PC{0,40}", "(?s).{0,24}"]) {
        for view in [RECORDS, METERED, SAMPLED] {
            match FlowFilter::compile(&text, &view) {
                Ok(filter) => {
                    let again = FlowFilter::compile(&filter.to_string(), &view).unwrap();
                    prop_assert_eq!(again.expression, filter.expression);
                }
                Err(error) => {
                    let line = text.split('\n').nth(error.line.unwrap_or(1) - 1);
                    let length = line.map_or(0, |line| line.chars().count());
                    prop_assert!((1..=length + 1).contains(&error.column), "{:?}: {}", text, error);
                }
            }
        }
    }
}
