//! Topology files round-trip, and invalid files give precise errors.

use proptest::prelude::*;
use thalweg_wire::{BitRate, Nanos};

use std::net::Ipv4Addr;

use super::*;
use crate::address::{MacAddress, default_ip};
use crate::identity::{EndpointId, PortIndex};
use crate::topology::shapes::{SHAPES, Tiers};

const EXAMPLE: &str = r#"
[defaults]
rate = "25gbit/s"

[[router]]
name = "tor0"

[[router]]
name = "agg0"

[[endpoint]]
name = "h0"
router = "tor0"
rate = "1gbit/s"
delay = "500ns"
mac = "00:25:90:00:00:01"
ip = "192.168.0.1"

[[endpoint]]
name = "h1"
router = "agg0"

[[link]]
between = ["tor0", "agg0"]
rate = "40gbit/s"
"#;

fn error_of(text: &str) -> String {
    Topology::from_toml(text, "net.toml").expect_err(text).to_string()
}

#[test]
fn the_example_is_parsed() {
    let topology = Topology::from_toml(EXAMPLE, "net.toml").unwrap();
    topology.check_invariants();
    let [h0, h1] = topology.endpoints() else { panic!("two endpoints") };
    assert_eq!((h0.mac.0, h0.ip), ([0, 0x25, 0x90, 0, 0, 1], Ipv4Addr::new(192, 168, 0, 1)));
    assert_eq!((h1.mac.0, h1.ip), ([2, 0x54, 0x57, 0, 0, 1], default_ip(EndpointId(1))));
    let specs: Vec<_> =
        topology.links().iter().map(|link| (link.rate.0 / 1_000_000_000, link.delay.0)).collect();
    assert_eq!(specs, [(1, 500), (25, 1_000), (40, 1_000)]);
    assert_eq!(topology.router_of(EndpointId(1)), RouterId(1));
    assert_eq!(topology.peer(RouterId(0), PortIndex(1)).node, Node::Router(RouterId(1)));
}

#[test]
fn errors_give_the_line_the_expected_value_and_a_hint() {
    let cases = [
        ("", "net.toml:1: no endpoints: at least one is required"),
        ("[[ruter]]\nname = 'tor0'\n", "net.toml:1: unknown section \"ruter\"; did you mean \"router\"?"),
        ("x = 1\n", "net.toml:1: unknown key \"x\""),
        ("\"a\\nb\\u0007\" = 1\n", "net.toml:1: unknown key \"a\\nb\\u{7}\""),
        (
            "[defaults]\ndelay = '''a\nb'''\n",
            "net.toml:2: delay is '''a\\nb''': expected a time such as \"1us\"",
        ),
        (
            "defaults = 1\n",
            "net.toml:1: \"defaults\" is a section: write [defaults] on its own line, and its keys below",
        ),
        (
            "[router]\nname = 'tor0'\n",
            "net.toml:1: \"router\" is a list: write [[router]] on its own line for each element, and its keys below",
        ),
        (
            "router = ['tor0']\n",
            "net.toml:1: \"router\" is a list: write [[router]] on its own line for each element, and its keys below",
        ),
        (
            "[[router]]\nnam = 'tor0'\n",
            "net.toml:1: missing key \"name\" in router 1: expected a name in quotes\nnet.toml:2: unknown key \"nam\" in router; did you mean \"name\"?",
        ),
        ("[[router]]\nname = 5\n", "net.toml:2: name is 5: expected a name in quotes"),
        ("[defaults]\nrate = 10\n", "net.toml:2: rate is 10: expected a rate such as \"10gbit/s\""),
        (
            "[defaults]\n\nrate = '0'\n",
            "net.toml:3: invalid link rate 0 bit/s: expected 1 bit/s to 1.00 Pbit/s",
        ),
        ("[defaults]\ndelay = '1h'\n", "net.toml:2: invalid link delay 3600 s: expected at most 10.0 s"),
        (
            "[defaults]\nloss = '-1%'\n",
            "net.toml:2: loss is '-1%': expected a probability from 0% to 100% such as \"0.01%\" or 0.0001, or one for each direction, as in [\"0.1%\", \"0%\"]",
        ),
        (
            "[defaults]\ndelay = '1ms'\njitter = '2ms'\n",
            "net.toml:3: invalid link jitter 2.00 ms: expected at most the delay, which is 1.00 ms",
        ),
        (
            "[defaults]\ndelay = '1 parsec'\n",
            "net.toml:2: delay is '1 parsec': expected a time such as \"1us\"",
        ),
        ("[[router]]\nname = 'a'\n[[router]]\nname = 'a'\n", "net.toml:4: duplicate node name \"a\""),
        (
            "[[router]]\nname = \"a\\n\"\n",
            "net.toml:2: invalid name \"a\\n\": expected 1 to 64 bytes without control characters",
        ),
    ];
    for (text, message) in cases {
        assert_eq!(error_of(text), message, "{text}");
    }
}

#[test]
fn errors_of_the_topology_give_the_line() {
    let wrong = |from: &str, to: &str| {
        assert!(EXAMPLE.contains(from), "{from}");
        error_of(&EXAMPLE.replace(from, to))
    };
    assert_eq!(
        wrong("router = \"tor0\"", "router = \"tro0\""),
        "net.toml:13: unknown router \"tro0\"; did you mean \"tor0\"?"
    );
    assert_eq!(
        wrong("\"agg0\"]", "\"h1\"]"),
        "net.toml:24: unknown router \"h1\": it is an endpoint, whose link is set by its key \"router\""
    );
    assert_eq!(
        wrong("[\"tor0\", \"agg0\"]", "\"tor0\""),
        "net.toml:24: between is \"tor0\": expected the names of two routers, as in [\"tor0\", \"agg0\"]"
    );
    assert_eq!(
        wrong("[\"tor0\", \"agg0\"]", "[\"tor0\", \"tor0\"]"),
        "net.toml:24: a link connects router \"tor0\" to itself"
    );
    assert_eq!(
        wrong("between = [\"tor0\", \"agg0\"]\n", ""),
        "net.toml:23: missing key \"between\" in link 1: expected the names of two routers, as in [\"tor0\", \"agg0\"]"
    );
    assert_eq!(
        wrong("00:25:90:00:00:01", "02:54:57:00:00:01"),
        "net.toml:16: MAC address 02:54:57:00:00:01 is reserved: 02:54:57 is the prefix of default and shadow addresses"
    );
    assert_eq!(
        wrong("00:25:90:00:00:01", "1"),
        "net.toml:16: mac is \"1\": expected an address such as \"02:00:00:00:00:01\""
    );
    assert_eq!(
        wrong("192.168.0.1", "10.0.0.2"),
        "net.toml:20: \"h0\" and \"h1\" have the same IP address, 10.0.0.2"
    );
}

#[test]
fn links_have_loss_and_jitter() {
    let defaults = "[defaults]\nloss = '0.01%'\njitter = '200ns'\n";
    let text = EXAMPLE.replace("[defaults]\n", defaults);
    let text = text.replace("rate = \"40gbit/s\"\n", "loss = [0.001, '0%']\njitter = '1us'\n");
    let topology = Topology::from_toml(&text, "net.toml").unwrap();
    let specs = topology.links().iter().map(|link| (link.loss.map(|rate| rate.to_string()), link.jitter.0));
    let specs: Vec<_> = specs.collect();
    assert_eq!(specs[0], (["0.01%", "0.01%"].map(str::to_owned), 200));
    assert_eq!((&specs[1], &specs[2]), (&specs[0], &(["0.1%", "0%"].map(str::to_owned), 1_000)));
    let printed = topology.to_toml();
    assert!(
        printed.contains("loss = \"0.01%\"") && printed.contains("loss = [\"0.1%\", \"0%\"]"),
        "{printed}"
    );
    assert_eq!(Topology::from_toml(&printed, "net.toml"), Ok(topology));
    // 500 ns are the delay of an endpoint, and the jitter is that of the defaults.
    let text = EXAMPLE.replace("[defaults]\n", "[defaults]\njitter = '600ns'\n");
    let expected = "net.toml:16: invalid link jitter 600 ns: expected at most the delay, which is 500 ns";
    assert_eq!(error_of(&text), expected);
}

#[test]
fn only_the_first_problems_are_listed() {
    let text = "[[router]]\nname = 1\n".repeat(50);
    let error = Topology::from_toml(&text, "net.toml").unwrap_err();
    assert_eq!((error.problems.len(), error.omitted), (32, 18));
    assert!(error.to_string().ends_with("\nnet.toml: and 18 more"));
}

#[test]
fn a_syntax_error_gives_the_line() {
    let error = error_of("[[router]]\nname = tor0\n");
    let (before, after) = ("net.toml:2: invalid TOML: ", " (strings need quotes)");
    assert!(error.starts_with(before) && error.ends_with(after), "{error}");
}

#[test]
fn too_deep_nesting_is_a_syntax_error() {
    let deep = format!("router = {}", "[".repeat(100_000));
    assert!(error_of(&deep).contains("invalid TOML"));
}

#[test]
fn a_minimal_file_prints_unchanged() {
    let text = r#"[defaults]
rate = "10gbit/s"
delay = "1us"

[[router]]
name = "tor0"

[[endpoint]]
name = "h0"
router = "tor0"
rate = "1500mbit/s"
"#;
    let topology = Topology::from_toml(text, "net.toml").unwrap();
    assert_eq!(topology.to_toml(), text);
}

proptest! {
    #[test]
    fn every_shape_round_trips(
        shape in 0..SHAPES.len(),
        sizes in prop::collection::vec(1u32..7, 3),
        rates in prop::array::uniform2(1..=1_000_000_000_000_000u64),
        delays in prop::array::uniform2(0..=10_000_000_000u64),
        losses in prop::array::uniform2(0.0..=1.0),
    ) {
        let loss = losses.map(|rate| LossRate::new(rate).unwrap());
        let spec = |i: usize| {
            let jitter = Nanos((delays[i] as f64 * losses[1 - i]) as u64);
            LinkSpec { rate: BitRate(rates[i]), delay: Nanos(delays[i]), loss, jitter }
        };
        let tiers = Tiers { access: spec(0), uplink: spec(1) };
        if let Ok(topology) = SHAPES[shape].build(&sizes[..SHAPES[shape].sizes.len()], tiers) {
            prop_assert_eq!(Topology::from_toml(&topology.to_toml(), "net.toml"), Ok(topology.clone()));
            prop_assert_eq!(Topology::from_json(&topology.to_json(), "net.json"), Ok(topology));
        }
    }

    #[test]
    fn any_names_and_addresses_round_trip(
        names in prop::collection::btree_set("\\PC{1,16}", 2..6),
        links in prop::collection::vec((0u16..5, 0u16..5, 1..=1_000_000_000_000_000u64), 0..12),
        mac: [u8; 6],
        ip: [u8; 4],
    ) {
        let mut builder = TopologyBuilder::new();
        let mut endpoint = None;
        for (index, name) in names.iter().enumerate() {
            match index {
                1 => endpoint = builder.add_endpoint(name, RouterId(0), LinkSpec::default()).ok(),
                _ => drop(builder.add_router(name)),
            }
        }
        let Some(endpoint) = endpoint else { return Ok(()) };
        for (a, b, rate) in links {
            let link = LinkSpec { rate: BitRate(rate), ..LinkSpec::default() };
            // Links between unknown routers are rejected.
            let _ = builder.connect(RouterId(a), RouterId(b), link);
        }
        let _ = builder.set_mac(endpoint, MacAddress(mac));
        builder.set_ip(endpoint, Ipv4Addr::from(ip)).unwrap();
        let topology = builder.build().unwrap();
        topology.check_invariants();
        prop_assert_eq!(Topology::from_toml(&topology.to_toml(), "net.toml"), Ok(topology.clone()));
        prop_assert_eq!(Topology::from_json(&topology.to_json(), "net.json"), Ok(topology));
    }

    #[test]
    fn any_text_gives_a_topology_or_problems(text in "(?s).{0,200}") {
        let _ = parse_or_report(&text);
    }

    /// Shuffled pieces of a valid file reach deeper into the reader than arbitrary text.
    #[test]
    fn a_shuffled_file_gives_a_topology_or_problems(
        moves in prop::collection::vec((any::<prop::sample::Index>(), 0usize..40, any::<prop::sample::Index>()), 1..8),
    ) {
        let mut text: Vec<char> = EXAMPLE.chars().collect();
        for (from, length, to) in moves {
            let from = from.index(text.len());
            let piece: Vec<char> = text.drain(from..(from + length).min(text.len() - 1).max(from)).collect();
            let to = to.index(text.len());
            text.splice(to..to, piece);
        }
        let _ = parse_or_report(&text.into_iter().collect::<String>());
    }

    #[test]
    fn a_file_with_changed_lines_gives_a_topology_or_problems(
        lines in prop::collection::vec(prop::sample::select(EXAMPLE.lines().chain([
            "router = []", "link = [[]]", "endpoint = [1, {}]", "between = ['tor0', 'tor0', 'tor0']", "between = [{}]",
            "rate = 1e400", "delay = inf", "mac = 'é'", "[defaults.rate]", "[router.name]", "name = 1979-05-27",
        ]).collect::<Vec<_>>()), 0..40),
    ) {
        let _ = parse_or_report(&lines.join("\n"));
    }
}

/// Parses a text, and checks the error if it is invalid.
fn parse_or_report(text: &str) -> Option<Topology> {
    match Topology::from_toml(text, "net.toml") {
        Ok(topology) => {
            topology.check_invariants();
            Some(topology)
        }
        Err(error) => {
            let last_line = text.split('\n').count();
            assert!(!error.problems.is_empty());
            let message = error.to_string();
            assert_eq!(message.split('\n').count(), error.problems.len() + usize::from(error.omitted > 0));
            for (line, problem) in message.split('\n').zip(&error.problems) {
                assert!((1..=last_line).contains(&problem.line().unwrap()), "{message}");
                assert!(line.starts_with(&format!("net.toml:{}: ", problem.line().unwrap())), "{message}");
                assert!(!line.contains(char::is_control), "{message:?}");
            }
            None
        }
    }
}
