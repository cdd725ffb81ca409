//! Topology files with forwarding round-trip, and invalid files give precise errors.

use proptest::prelude::*;

use super::*;
use crate::address::MacAddress;
use crate::identity::LinkId;
use crate::topology::file::TopologyFileError;
use crate::topology::shapes::{Tiers, fat_tree, leaf_spine};
use crate::topology::{LinkSpec, TopologyBuilder};

/// Any network of up to 6 routers; parallel links and islands are included.
pub(crate) fn topologies() -> impl Strategy<Value = Topology> {
    let links = prop::collection::vec((0u16..6, 0u16..6), 0..12);
    (1u16..6, prop::collection::vec(0u16..6, 1..8), links).prop_map(|(routers, endpoints, links)| {
        let mut builder = TopologyBuilder::new();
        for router in 0..routers {
            builder.add_router(format!("r{router}")).unwrap();
        }
        for (index, router) in endpoints.into_iter().enumerate() {
            let router = RouterId(router % routers);
            let endpoint = builder.add_endpoint(format!("h{index}"), router, LinkSpec::default()).unwrap();
            if index % 3 == 1 {
                builder.set_mac(endpoint, MacAddress([0, 0x25, 0x90, 0, 0, index as u8])).unwrap();
            }
        }
        for (a, b) in links {
            // A link of a router to itself is rejected and left out.
            let _ = builder.connect(RouterId(a % routers), RouterId(b % routers), LinkSpec::default());
        }
        builder.build().unwrap()
    })
}

/// Any forwarding state with valid entries, which may end nowhere or loop.
fn rules(topology: &Topology) -> impl Strategy<Value = Forwarding> + use<> {
    let topology = topology.clone();
    let entries = prop::collection::vec((any::<u16>(), any::<u16>(), 0u8..4, any::<u16>()), 0..60);
    let seed = prop_oneof![Just(None), any::<u64>().prop_map(Some)];
    (seed, entries, any::<bool>()).prop_map(move |(seed, entries, writes_back)| {
        let mut list = std::collections::BTreeMap::new();
        for (router, endpoint, address, port) in entries {
            let router = RouterId(router % topology.routers().len() as u16);
            let ports = topology.ports(router) as u16;
            if ports > 0 {
                let endpoint = EndpointId(endpoint % topology.endpoints().len() as u16);
                list.insert((router, topology.mac(endpoint, address)), PortIndex(port % ports));
            }
        }
        let list: Vec<Entry> =
            list.into_iter().map(|((router, mac), port)| Entry { router, mac, port }).collect();
        let tables =
            if list.is_empty() { Vec::new() } else { Forwarding::table_list(&topology, &list).unwrap() };
        let rules = match seed {
            Some(seed) => Forwarding::ecmp(seed),
            None => Forwarding::tables(Vec::new()),
        };
        rules.with_tables(tables).with_write_back(writes_back)
    })
}

/// Any state of this network.
pub(crate) fn states_of(topology: Topology) -> impl Strategy<Value = NetworkState> {
    let failures = prop::collection::vec(any::<prop::sample::Index>(), 0..4);
    (rules(&topology), failures).prop_map(move |(rules, failures)| {
        let mut links = LinkState::new(&topology);
        for failure in failures {
            links.fail(LinkId(failure.index(topology.links().len()) as u32)).unwrap();
        }
        NetworkState::new(topology.clone(), links, rules).unwrap()
    })
}

/// Any state of any network.
pub(crate) fn states() -> impl Strategy<Value = NetworkState> {
    topologies().prop_flat_map(states_of)
}

const EXAMPLE: &str = r#"[defaults]
rate = "10gbit/s"
delay = "1us"

[[router]]
name = "tor0"

[[router]]
name = "tor1"

[[endpoint]]
name = "h0"
router = "tor0"

[[endpoint]]
name = "h1"
router = "tor1"

[[link]]
between = ["tor0", "tor1"]

[[link]]
between = ["tor0", "tor1"]

[link_state]
down = ["tor1:p2"]

[forwarding]
kind = "ecmp"
seed = 1
write_back = false
entries = [
  { router = "tor0", mac = "02:54:57:01:00:01", port = 2 },
]
"#;

const EXAMPLE_JSON: &str = r#"{
  "defaults": {"rate": "10gbit/s", "delay": "1us"},
  "router": [
    {"name": "tor0"},
    {"name": "tor1"}
  ],
  "endpoint": [
    {"name": "h0", "router": "tor0"},
    {"name": "h1", "router": "tor1"}
  ],
  "link": [
    {"between": ["tor0", "tor1"]},
    {"between": ["tor0", "tor1"]}
  ],
  "link_state": {"down": ["tor1:p2"]},
  "forwarding": {"kind": "ecmp", "seed": 1, "write_back": false, "entries": [
    {"router": "tor0", "mac": "02:54:57:01:00:01", "port": 2}
  ]}
}
"#;

#[test]
fn the_example_parses_and_prints_unchanged() {
    let state = NetworkState::from_toml(EXAMPLE, "net.toml").unwrap();
    assert_eq!(state.links().failed().collect::<Vec<_>>(), [LinkId(3)]);
    assert_eq!((state.forwarding().seed(), state.forwarding().writes_back()), (Some(1), false));
    let port = |address| state.forwarding().table(RouterId(0)).unwrap().port(EndpointId(1), address);
    assert_eq!((port(0), port(1)), (None, Some(PortIndex(2))));
    assert_eq!(state.port_name(RouterId(1), PortIndex(2)).to_string(), "tor1:p2");
    assert_eq!(state.to_toml(), EXAMPLE);
    assert_eq!(state.to_json(), EXAMPLE_JSON);
    assert_eq!(NetworkState::from_json(EXAMPLE_JSON, "net.json"), Ok(state));
}

#[test]
fn a_file_with_state_sections_is_not_a_topology() {
    let (topology, _) = EXAMPLE.split_once("[link_state]").unwrap();
    assert!(Topology::from_toml(topology, "net.toml").is_ok());
    let error = Topology::from_toml(EXAMPLE, "net.toml").unwrap_err().to_string();
    assert_eq!(
        error,
        "net.toml:25: unknown section \"link_state\"\nnet.toml:28: unknown section \"forwarding\""
    );
}

#[test]
fn errors_give_the_line_and_the_expected_value() {
    let cases = [
        ("[forwarding]", "[forward]", "28: unknown section \"forward\"; did you mean \"forwarding\"?"),
        ("seed = 1\n", "", "28: missing key \"seed\" in forwarding: expected an integer of at least 0"),
        ("seed = 1\n", "seeds = 1\n", "30: unknown key \"seeds\" in forwarding; did you mean \"seed\"?"),
        ("seed = 1\n", "seed = -1\n", "30: seed is -1: expected an integer of at least 0"),
        ("seed = 1\n", "seed = 1.0\n", "30: seed is 1.0: expected an integer of at least 0"),
        ("\"ecmp\"", "\"wcmp\"", "29: kind is \"wcmp\": expected \"ecmp\" or \"tables\""),
        ("\"ecmp\"", "\"tables\"", "30: seed is 1: expected no seed, because tables have no hash"),
        ("false", "0", "31: write_back is 0: expected true or false"),
        ("port = 2 }", "port = 3 }", "33: router \"tor0\" has no port 3: it has 3 ports, numbered from 0"),
        ("port = 2 }", "port = 65536 }", "33: port is 65536: expected a port number, from 0"),
        ("port = 2 }", "prt = 2 }", "33: unknown key \"prt\" in entries; did you mean \"port\"?"),
        ("{ router", "1, { router", "32: entries is [\\n  1, { router"),
        ("\"tor0\", mac", "\"tor\", mac", "33: unknown router \"tor\"; did you mean \"tor0\"?"),
        ("01:00:01\"", "01:00:02\"", "33: no endpoint has the address 02:54:57:01:00:02"),
        ("\"tor1:p2\"", "\"tor1:p3\"", "26: no port p3 at \"tor1\": it has 3 ports, counted from p0"),
        ("\"tor1:p2\"", "\"tor2:p2\"", "26: unknown router \"tor2\"; did you mean \"tor0\"?"),
        ("\"tor1:p2\"", "\"tor1:p+2\"", "26: no port p+2 at \"tor1\": it has 3 ports, counted from p0"),
        ("[\"tor1:p2\"]", "\"tor1:p2\"", "26: down is \"tor1:p2\": expected ports of routers in quotes"),
        (
            "[link_state]",
            "[[link_state]]",
            "25: \"link_state\" is a section: write [link_state] on its own line",
        ),
    ];
    for (from, to, expected) in cases {
        assert!(EXAMPLE.contains(from), "{from}");
        let error =
            NetworkState::from_toml(&EXAMPLE.replace(from, to), "net.toml").expect_err(to).to_string();
        let expected = format!("net.toml:{expected}");
        assert!(error.lines().any(|line| line.starts_with(&expected)), "{error}\nnot: {expected}");
    }
}

#[test]
fn a_file_without_a_forwarding_section_is_not_a_network_state() {
    let (topology, _) = EXAMPLE.split_once("[link_state]").unwrap();
    let error = NetworkState::from_toml(topology, "net.toml").unwrap_err().to_string();
    let expected = "net.toml:1: no section forwarding: add it with kind = \"ecmp\" or kind = \"tables\"";
    assert_eq!(error, expected);
}

#[test]
fn duplicate_entries_are_rejected() {
    let twice = EXAMPLE.replace(
        "port = 2 },\n",
        "port = 2 },\n  { router = \"tor0\", mac = \"02:54:57:01:00:01\", port = 1 },\n",
    );
    let error = NetworkState::from_toml(&twice, "net.toml").unwrap_err().to_string();
    assert_eq!(error, "net.toml:34: router \"tor0\" has two entries for 02:54:57:01:00:01");
}

#[test]
fn json_errors_give_the_line_too() {
    let cases = [
        ("\"seed\": 1", "\"seed\": one", "16: invalid JSON: expected value"),
        ("\"seed\": 1", "\"seed\": -1", "16: seed is -1: expected an integer of at least 0"),
        ("\"seed\": 1", "\"seed\": null", "16: seed is null: expected an integer of at least 0"),
        ("\"kind\"", "\"kin\"", "16: unknown key \"kin\" in forwarding; did you mean \"kind\"?"),
        ("\"port\": 2", "\"port\": 2, \"port\": 2", "17: invalid JSON: duplicate key \"port\""),
        ("\"port\": 2", "\n\"prt\": 2", "18: unknown key \"prt\" in entries; did you mean \"port\"?"),
        ("\"tor0\"}", "\"\\ud800\"}", "4: invalid JSON: unexpected end of hex escape"),
        ("{\"down\": [\"tor1:p2\"]}", "[1]", "15: link_state is [1]: expected an object, { ... }"),
        ("{\"name\": \"tor0\"}", "1", "4: router is 1: expected a list of objects, [{ ... }]"),
    ];
    for (from, to, expected) in cases {
        assert!(EXAMPLE_JSON.contains(from), "{from}");
        let error = NetworkState::from_json(&EXAMPLE_JSON.replace(from, to), "net.json").expect_err(to);
        let expected = format!("net.json:{expected}");
        assert!(
            error.to_string().lines().any(|line| line.starts_with(&expected)),
            "{error}\nnot: {expected}"
        );
    }
    let error = |text: &str| NetworkState::from_json(text, "net.json").unwrap_err().to_string();
    assert_eq!(error("[]"), "net.json:1: invalid JSON: expected an object, { ... }");
    assert!(error("").starts_with("net.json:1: invalid JSON: "));
    let deep = format!("{{\"router\": {}{}}}", "[".repeat(100_000), "]".repeat(100_000));
    assert!(error(&deep).contains("\nnet.json:1: router is [[["));
}

#[test]
fn tables_of_another_network_are_rejected() {
    let small = leaf_spine(2, 2, 1, Tiers::default()).unwrap();
    let new = |tables| NetworkState::new(small.clone(), LinkState::new(&small), Forwarding::tables(tables));
    let table = crate::routing::ForwardingTable::new;
    let rejected = [
        (vec![table(2, 0, 3); 5], "5 forwarding tables for 4 routers: expected at most one per router"),
        (
            vec![table(3, 0, 3)],
            "the table of router \"leaf0\" has 3 endpoints and 3 ports, more than the topology",
        ),
        (
            vec![table(2, 0, 4)],
            "the table of router \"leaf0\" has 2 endpoints and 4 ports, more than the topology",
        ),
    ];
    for (tables, message) in rejected {
        assert_eq!(new(tables).unwrap_err().to_string(), message);
    }
    assert!(new(vec![table(2, 3, 3)]).is_ok());
    let links = LinkState::new(&fat_tree(4, Tiers::default()).unwrap());
    let other = NetworkState::new(small, links, Forwarding::tables(Vec::new())).unwrap_err();
    assert_eq!(other.to_string(), "the link state has 48 links, but the topology has 6");
}

#[test]
fn too_large_tables_are_rejected() {
    let mut builder = TopologyBuilder::new();
    for router in 0..60u16 {
        builder.add_router(format!("r{router}")).unwrap();
    }
    for endpoint in 0..9_000u16 {
        builder.add_endpoint(format!("h{endpoint}"), RouterId(endpoint % 60), LinkSpec::default()).unwrap();
    }
    let topology = builder.build().unwrap();
    let entry = |router| Entry { router, mac: topology.mac(EndpointId(0), 255), port: PortIndex(0) };
    let entries: Vec<Entry> = topology.router_ids().map(entry).collect();
    let (index, error) = Forwarding::table_list(&topology, &entries).unwrap_err();
    assert_eq!((index, error), (0, EntryError::TooLarge { routers: 60, endpoints: 9_000 }));
}

#[test]
fn a_state_changed_step_by_step_equals_one_built_at_once() {
    let topology = fat_tree(4, Tiers::default()).unwrap();
    let mut failed = LinkState::new(&topology);
    failed.fail(LinkId(20)).unwrap();
    let new = |links: &LinkState, rules: &Forwarding| {
        NetworkState::new(topology.clone(), links.clone(), rules.clone()).unwrap()
    };
    let rules = [Forwarding::ecmp(1), Forwarding::tables(Vec::new()), Forwarding::ecmp(2)];
    let links = [LinkState::new(&topology), failed];
    for (from, to) in rules.iter().flat_map(|from| rules.iter().map(move |to| (from, to))) {
        assert_eq!(new(&links[1], from).with_forwarding(to.clone()).unwrap(), new(&links[1], to));
        assert_eq!(new(&links[0], from).with_links(links[1].clone()).unwrap(), new(&links[1], from));
    }
}

fn assert_parses_or_reports(read: Result<NetworkState, TopologyFileError>, text: &str) {
    match read {
        Ok(state) => {
            assert_eq!(NetworkState::from_toml(&state.to_toml(), "net.toml").as_ref(), Ok(&state));
            assert_eq!(NetworkState::from_json(&state.to_json(), "net.json").as_ref(), Ok(&state));
        }
        Err(error) => {
            let last_line = text.split('\n').count();
            assert!(!error.problems.is_empty());
            assert!(
                error.problems.iter().all(|problem| (1..=last_line).contains(&problem.line().unwrap())),
                "{error}"
            );
            assert!(!error.to_string().lines().any(|line| line.contains(char::is_control)), "{error:?}");
        }
    }
}

/// Moves some pieces of a text.
fn shuffle_pieces(text: &str, moves: Vec<(prop::sample::Index, usize, prop::sample::Index)>) -> String {
    let mut text: Vec<char> = text.chars().collect();
    for (from, length, to) in moves {
        let from = from.index(text.len());
        let piece: Vec<char> = text.drain(from..(from + length).min(text.len() - 1).max(from)).collect();
        let to = to.index(text.len());
        text.splice(to..to, piece);
    }
    text.into_iter().collect()
}

proptest! {
    #[test]
    fn every_state_round_trips(state in states()) {
        prop_assert_eq!(NetworkState::from_toml(&state.to_toml(), "net.toml"), Ok(state.clone()));
        prop_assert_eq!(NetworkState::from_json(&state.to_json(), "net.json"), Ok(state));
    }

    #[test]
    fn any_text_gives_a_state_or_problems(text in "(?s).{0,200}") {
        assert_parses_or_reports(NetworkState::from_toml(&text, "net.toml"), &text);
        assert_parses_or_reports(NetworkState::from_json(&text, "net.json"), &text);
    }

    #[test]
    fn a_shuffled_file_gives_a_state_or_problems(
        moves in prop::collection::vec((any::<prop::sample::Index>(), 0usize..40, any::<prop::sample::Index>()), 1..5),
    ) {
        let text = shuffle_pieces(EXAMPLE, moves.clone());
        assert_parses_or_reports(NetworkState::from_toml(&text, "net.toml"), &text);
        let text = shuffle_pieces(EXAMPLE_JSON, moves);
        assert_parses_or_reports(NetworkState::from_json(&text, "net.json"), &text);
    }

    #[test]
    fn a_json_file_with_changed_values_gives_a_state_or_problems(
        values in prop::collection::vec((0usize..60, prop::sample::select(vec![
            "{}", "[]", "[[]]", "1e400", "-0", "null", "\"\"", "{\"a\": 1}", "true", "[{}]", "\"tor0\"", "18446744073709551616",
        ])), 1..4),
    ) {
        let tokens: Vec<&str> = EXAMPLE_JSON.split_inclusive([':', ',', '[', '{']).collect();
        let mut text: Vec<String> = tokens.iter().map(|token| token.to_string()).collect();
        for (at, value) in values {
            let at = at % text.len();
            text[at] = format!("{value},");
        }
        let text = text.concat();
        assert_parses_or_reports(NetworkState::from_json(&text, "net.json"), &text);
    }
}

#[test]
fn examples_are_read_and_printed_unchanged() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/topologies");
    let mut count = 0;
    for file in std::fs::read_dir(folder).unwrap() {
        let path = file.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        let state = NetworkState::from_toml(&text, "example").unwrap_or_else(|error| panic!("{error}"));
        state.topology().check_invariants();
        for printed in [
            NetworkState::from_toml(&state.to_toml(), "toml"),
            NetworkState::from_json(&state.to_json(), "json"),
        ] {
            assert_eq!(printed.unwrap(), state, "{}", path.display());
        }
        count += 1;
    }
    assert_eq!(count, 3);
}

/// A switch that forwards by its MAC address table, and hosts of both versions of IP.
#[test]
fn ports_are_inferred_from_a_table_by_the_names_of_its_ports() {
    let text = include_str!("../../../../examples/topologies/mac-table-switch.toml");
    let state = NetworkState::from_toml(text, "example").unwrap();
    let topology = state.topology();
    let router = crate::RouterId(0);
    let mac = |name: &str| match topology.node_named(name) {
        Some(crate::Node::Endpoint(endpoint)) => topology.mac(endpoint, 0),
        other => panic!("{name}: {other:?}"),
    };
    let address = |text: &str| text.parse::<std::net::IpAddr>().unwrap();
    for (source, destination) in [("198.51.100.11", "203.0.113.9"), ("2001:db8:51::13", "2001:db8:9::9")] {
        let from = topology.endpoint_with_ip(address(source)).unwrap();
        let ethernet =
            thalweg_wire::EthernetAddresses { source: topology.mac(from, 0), destination: mac("gateway") };
        let key = thalweg_wire::FlowKey::new(
            address(source),
            address(destination),
            40_000,
            443,
            thalweg_wire::Protocol::TCP,
        )
        .unwrap();
        let (ports, case) = state.ports(router, &ethernet, &key);
        assert_eq!(case, crate::Case::Known);
        assert_eq!(ports.input, Some(topology.port_of(from)));
        assert_eq!(topology.port_name(router, ports.output.unwrap()), Some("Te1/1/1"));
    }
}

#[test]
fn wrong_port_names_are_reported_with_their_lines() {
    let text = "[[router]]\nname = 'a'\n[[endpoint]]\nname = 'h'\nrouter = 'a'\nport = 'e1'\n\
        [[endpoint]]\nname = 'i'\nrouter = 'a'\nport = 'e1'\n[[endpoint]]\nname = 'j'\nrouter = 'a'\nport = 'p7'\nipv6 = 'ff02::1'\n\
        [forwarding]\nkind = 'tables'\n";
    let error = NetworkState::from_toml(text, "t").unwrap_err().to_string();
    for expected in [
        "t:10: router \"a\" has two ports named \"e1\"",
        "t:14: port name \"p7\" is reserved",
        "t:15: invalid IPv6 address ff02::1",
    ] {
        assert!(error.contains(expected), "{error}");
    }
    let text = "[[router]]\nname = 'a'\n[[endpoint]]\nname = 'h'\nrouter = 'a'\nport = 'e:1'\n[link_state]\ndown = ['a:e:1']\n\
        [forwarding]\nkind = 'tables'\nentries = [\n{ router = 'a', mac = '02:54:57:00:00:00', port_name = 'e2' },\n\
        { router = 'a', mac = '02:54:57:00:00:00', port = 0, port_name = 'e:1' },\n{ router = 'a', mac = '02:54:57:00:00:00' }]\n";
    let error = NetworkState::from_toml(text, "t").unwrap_err().to_string();
    for expected in [
        "t:12: router a has no port of this name: it has 1 ports, counted from p0, named e:1",
        "t:13: not allowed with port",
        "t:14: missing key \"port\"",
    ] {
        assert!(error.contains(expected), "{error}");
    }
}
