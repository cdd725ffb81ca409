//! `[isolation]` of configuration files, right and wrong.

use std::path::Path;

use thalweg_actuators::isolation::flowspec::Action;

use super::*;
use crate::config::Config;

fn parse(lines: &str) -> Result<Option<IsolationConfig>, String> {
    let text = format!("[[collector]]\nname = \"a\"\ninterface = \"eth1\"\n[isolation]\n{lines}");
    let config = Config::parse(&text, "t.toml", Path::new("/etc"));
    config.map(|config| config.isolation).map_err(|error| error.to_string())
}

#[test]
fn a_section_is_read() {
    assert_eq!(parse("").unwrap(), None);
    let tc = "actuator = \"tc\"\ninterface = \"wan0\"\nlink_rate = \"980mbps\"\nexpiry = \"3s\"\n";
    let limits = "never_prefixes = [\"10.0.0.0/8\"]\nnever_ports = [\"22\"]\nqueueing = \"strict\"\n";
    let config = parse(&[tc, limits].concat()).unwrap().unwrap();
    assert_eq!((config.options.refresh, config.options.reads_counters), (Nanos::from_secs(1), true));
    assert_eq!(config.options.quiet, Nanos::from_secs(16), "longer than the idle timeout of the collector");
    assert_eq!(config.options.exclusions.ports, [22]);
    let IsolatorConfig::Tc { options, .. } = config.isolator else { panic!("tc") };
    assert_eq!((options.interface.as_str(), options.capacity), ("wan0", 1_024));
    assert_eq!(options.queues.queueing, Queueing::Strict);
    let config = parse("actuator = \"exec\"\ncommand = [\"bin/redirect\", \"r1\"]").unwrap().unwrap();
    let IsolatorConfig::Exec(options) = config.isolator else { panic!("exec") };
    assert_eq!((options.program.as_path(), options.arguments.len()), (Path::new("/etc/bin/redirect"), 1));
    assert!(!config.options.reads_counters);
    assert_eq!(config.options.quiet, Nanos::from_secs(2));
    let config = parse("actuator = \"webhook\"\nurl = \"http://[::1]:80/x\"\ntoken_file = \"t\"").unwrap();
    assert_eq!(config.unwrap().isolator.name(), "webhook");
}

const OPENFLOW: &str = "actuator = \"openflow\"\nswitch = \"0xd1\"\nport = \"eth2\"\nqueue = 1\n";

#[test]
fn a_section_for_a_switch_is_read() {
    let listen = "openflow_listen = \"127.0.0.1:6654\"\nconfirm_timeout = \"3s\"\nat_stop = \"keep\"\n";
    let config = parse(&[OPENFLOW, listen].concat()).unwrap().unwrap();
    let options = &config.options;
    assert_eq!((options.reads_counters, options.confirm_timeout), (true, Nanos::from_secs(3)));
    assert_eq!(options.scavenger.name, "scavenger queue 1 of port eth2");
    assert!(options.scavenger.advice.contains("DSCP 1"), "{}", options.scavenger.advice);
    assert!(config.isolator.keeps_at_stop());
    let IsolatorConfig::OpenFlow(config) = config.isolator else { panic!("openflow") };
    let (options, rules) = (&config.options, &config.options.rules);
    assert_eq!((options.switch.0, rules.idle_timeout, rules.priority), (0xd1, 20, 24_576));
    assert_eq!((rules.dscp, rules.queue.map(|queue| queue.0)), (Some(1), Some(1)), "both by default");
    let only = "method = \"set_queue\"\nforward = \"table 1\"\nopenflow_connect = \"127.0.0.1:6653\"\n";
    let config = parse(&[OPENFLOW, only].concat()).unwrap().unwrap();
    assert!(config.options.scavenger.advice.contains("may ignore it"));
    let IsolatorConfig::OpenFlow(config) = config.isolator else { panic!("openflow") };
    assert_eq!(config.options.rules.dscp, None);
}

#[test]
fn a_switch_of_the_controller_is_refused() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/collector");
    let parse = |switch: &str, port: u16| {
        let text = format!(
            "[network]\ntopology = \"topology.toml\"\n[[collector]]\nname = \"a\"\nswitch = \"leaf0\"\ninterface = \"eth1\"\n\
             [control]\ndecider = \"static\"\nactuator = \"openflow\"\nswitches = [\"leaf0 d1\", \"leaf1 d3\", \"spine0 d4\", \"spine1 d5\"]\n\
             openflow_listen = \"127.0.0.1:6653\"\n[isolation]\nactuator = \"openflow\"\nport = \"2\"\nqueue = 1\n\
             switch = \"{switch}\"\nopenflow_listen = \"127.0.0.1:{port}\"\n"
        );
        Config::parse(&text, "t.toml", &folder).map(drop).map_err(|error| error.to_string())
    };
    assert_eq!(parse("d2", 6_654), Ok(()));
    let error = parse("d1", 6_654).unwrap_err();
    assert!(error.contains("switch: a switch of [control]: a switch has one master"), "{error}");
    let error = parse("d2", 6_653).unwrap_err();
    assert!(error.contains("openflow_listen: the same address as openflow_listen of [control]"), "{error}");
}

#[test]
fn a_session_for_rules_is_read() {
    let session = "actuator = \"flowspec\"\npeer_as = 64500\nlocal_as = 64501\n";
    let config = parse(&[session, "peer = \"192.0.2.1\"\npassword_file = \"bgp\""].concat());
    let config = config.unwrap().unwrap();
    assert!(!config.options.reads_counters && !config.isolator.needs_capabilities());
    let IsolatorConfig::Flowspec { options, password_file } = config.isolator else { panic!("flowspec") };
    let expected = FlowspecOptions {
        peer: "192.0.2.1:179".parse().unwrap(),
        local_address: None,
        local_as: 64_501,
        peer_as: 64_500,
        router_id: None,
        hold_time: 30,
        password: None,
        action: Action::Mark(1),
    };
    assert_eq!((options, password_file), (expected, Some("/etc/bgp".into())));
    let lines = "peer = \"[2001:db8::1]:1790\"\nlocal_address = \"2001:db8::2\"\nrouter_id = \"192.0.2.2\"\n\
                 hold_time = \"3s\"\naction = \"redirect\"\nredirect_to = \"64500:100\"\nmax_time = \"1m\"\n";
    let config = parse(&[session, lines].concat()).unwrap().unwrap();
    let IsolatorConfig::Flowspec { options, .. } = config.isolator else { panic!("flowspec") };
    assert_eq!((options.peer.port(), options.hold_time), (1_790, 3));
    assert_eq!(options.action.to_string(), "redirect to 64500:100");
    let lines =
        "peer = \"2001:db8::1\"\nrouter_id = \"192.0.2.2\"\naction = \"rate\"\nrate_limit = \"10mbps\"\n";
    let config = parse(&[session, lines].concat()).unwrap().unwrap();
    let IsolatorConfig::Flowspec { options, .. } = config.isolator else { panic!("flowspec") };
    assert_eq!(options.action.to_string(), "limit to 10.0 Mbit/s");
}

#[test]
fn problems_of_a_session_name_the_line_and_the_remedy() {
    let session = "actuator = \"flowspec\"\npeer_as = 64500\nlocal_as = 64501\n";
    let router = &[session, "peer = \"192.0.2.1\"\n"].concat();
    for (lines, expected) in [
        ("actuator = \"flowspec\"", "peer: required by actuator flowspec: the address of the router"),
        ("actuator = \"flowspec\"", "local_as: required by actuator flowspec: the number of"),
        ("actuator = \"log\"\npeer = \"192.0.2.1\"", "t.toml:6: peer: requires actuator flowspec, not log"),
        ("dscp = 1", "t.toml:5: dscp: requires actuator, one of"),
        (&[session, "peer = \"router1\""].concat(), "peer: invalid address \"router1\": expected an address"),
        (&[session, "peer = \"192.0.2.1:0\""].concat(), "peer: invalid address \"192.0.2.1:0\""),
        (&[session, "peer = \"2001:db8::1\""].concat(), "router_id: required if peer is an IPv6 address"),
        (&[router, "router_id = \"2001:db8::2\""].concat(), "router_id: expected an IPv4 address"),
        (&[router, "local_address = \"wan0\""].concat(), "local_address: expected an address"),
        (
            &[router, "local_address = \"2001:db8::2\""].concat(),
            "local_address: expected an address of the same IP version as peer",
        ),
        (&[router, "hold_time = \"2s\""].concat(), "hold_time: expected whole seconds, 3s to 65535s"),
        (&[router, "hold_time = \"3500ms\""].concat(), "hold_time: expected whole seconds"),
        (&[router, "hold_time = \"24h\""].concat(), "hold_time: expected whole seconds"),
        (&[router, "dscp = 64"].concat(), "dscp is 64: "),
        (&[router, "rate_limit = \"1mbps\""].concat(), "rate_limit: requires action rate, not mark"),
        (&[router, "action = \"rate\""].concat(), "rate_limit: required by action rate: at least 8bps"),
        (
            &[router, "action = \"rate\"\nrate_limit = \"10mbps\"\ndscp = 1"].concat(),
            "dscp: requires action mark",
        ),
        (&[router, "action = \"redirect\""].concat(), "redirect_to: required by action redirect"),
        (
            &[router, "action = \"redirect\"\nredirect_to = \"vrf1\""].concat(),
            "redirect_to: invalid redirect target \"vrf1\": expected a route target",
        ),
        ("actuator = \"flowspec\"\npeer_as = 4294967296", "peer_as is 4294967296: "),
        (&[router, "timeout = \"1s\""].concat(), "timeout: requires actuator exec or webhook, not flowspec"),
    ] {
        let error = parse(lines).unwrap_err();
        assert!(error.contains(expected), "{lines}: {error}");
    }
}

#[test]
fn problems_name_the_line_and_the_remedy() {
    let openflow = |lines: &str| {
        let listen = "openflow_listen = \"127.0.0.1:6654\"\n";
        parse(&[OPENFLOW, listen, lines].concat()).unwrap_err()
    };
    for (lines, expected) in [
        ("forward = \"table 0\"", "forward: expected a table after 0, that of the rules"),
        ("forward = \"flood\"", "forward: invalid value \"flood\": expected normal, output or a table"),
        ("idle_timeout = \"16500ms\"", "idle_timeout: expected whole seconds from 16.0 s"),
        ("drain_time = \"30s\"", "drain_time: expected less than release_timeout"),
        ("quiet = \"1s\"", "quiet: expected at least 2s with openflow"),
        (
            "openflow_key = \"k\"",
            "openflow_key: openflow_certificate, openflow_key and openflow_ca_file must be",
        ),
        (
            "openflow_connect = \"127.0.0.1:1\"",
            "openflow requires either openflow_listen or openflow_connect",
        ),
        ("method = \"set_queue\"\ndscp = 1", "dscp: requires method dscp or both, not set_queue"),
        ("link_rate = \"1gbps\"", "link_rate: requires actuator tc, not openflow"),
        ("dscp = 64", "dscp is 64: expected an integer from 0 to 63"),
    ] {
        let error = openflow(lines);
        assert!(error.contains(expected), "{lines}: {error}");
    }
    let tc = "actuator = \"tc\"\ninterface = \"wan0\"\nlink_rate = \"1gbps\"\n";
    for (lines, expected) in [
        (
            "interface = \"wan0\"",
            "t.toml:5: interface: requires actuator, one of tc, openflow, exec, webhook, flowspec, emulated and log",
        ),
        ("actuator = \"tc\"\nlink_rate = \"1gbps\"", "interface: required by actuator tc"),
        ("actuator = \"tc\"\ninterface = \"wan0\"", "link_rate: required by actuator tc"),
        ("actuator = \"exec\"", "command: required by actuator exec"),
        ("actuator = \"openflow\"\nport = \"2\"\nqueue = 1", "switch: required by actuator openflow"),
        ("actuator = \"log\"\nqueue = 1", "queue: requires actuator openflow, not log"),
        ("actuator = \"exec\"\nat_stop = \"keep\"", "at_stop: requires actuator tc or openflow, not exec"),
        ("actuator = \"webhook\"", "url: required by actuator webhook"),
        (
            "actuator = \"webhook\"\nurl = \"ftp://user:geheim@x\"",
            "t.toml:6: url: invalid URL \"ftp://***@x\": expected http:// or https:// at the start",
        ),
        (
            "actuator = \"webhook\"\nurl = \"https://user:geheim@x:99999/\"",
            "t.toml:6: url: invalid URL \"https://***@x:99999/\": invalid port: expected 1 to 65535",
        ),
        (
            "actuator = \"webhook\"\nurl = \"https://[::1\"",
            "t.toml:6: url: invalid URL \"https://[::1\": expected an IPv6 address in brackets",
        ),
        (
            "actuator = \"webhook\"\nurl = [\"https://user:geheim@x/?geheim\"]",
            "t.toml:6: url is [\"https://***@x/?***\"]: expected a URL, such as",
        ),
        ("actuator = \"log\"\nurl = \"http://x\"", "t.toml:6: url: requires actuator webhook, not log"),
        ("actuator = \"log\"\ntimeout = \"1s\"", "timeout: requires actuator exec or webhook, not log"),
        (&[tc, "expiry = \"10ms\""].concat(), "expiry: expected at least 500ms"),
        (&[tc, "quiet = \"10ms\""].concat(), "quiet: expected at least 300ms"),
        (&[tc, "max_time = \"1h\""].concat(), "max_time: requires actuator exec, webhook, flowspec or log"),
        (
            &[tc, "queueing = \"strict\"\nscavenger_share = 0.1"].concat(),
            "scavenger_share: requires queueing borrow",
        ),
        (&[tc, "collectors = \"b\""].concat(), "collectors: unknown collector b"),
        (&[tc, "never_prefixes = \"10.0.0.0/33\""].concat(), "never_prefixes: invalid prefix"),
        (
            &[tc, "never_prefixes = \"10.0.0.1/8\""].concat(),
            "never_prefixes: 10.0.0.1/8 has bits after its length: expected 10.0.0.0/8 for all addresses of the prefix",
        ),
        (
            &[tc, "scavenger_share = 1"].concat(),
            "t.toml:8: scavenger_share: 1 leaves nothing to all other flows: expected less than 1",
        ),
        (
            &[tc, "primary_queue = \"1B\""].concat(),
            "t.toml:8: primary_queue: 1 B is too small: expected 1514 bytes, a full frame, to 4294967295, the most that the kernel",
        ),
        (&[tc, "scavenger_queue = \"100TB\""].concat(), "scavenger_queue: 100 TB is too large"),
        (
            &tc.replace("1gbps", "1bps"),
            "link_rate: 1 bit/s is not the rate of a link: expected 8.00 kbit/s to",
        ),
        (&tc.replace("1gbps", "1000tbps"), "is not the rate of a link: expected"),
        (&[tc, "never_ports = \"ssh\""].concat(), "never_ports: invalid port \"ssh\": expected 0 to 65535"),
    ] {
        let error = parse(lines).unwrap_err();
        assert!(error.contains(expected) && !error.contains("geheim"), "{lines}: {error}");
    }
}
