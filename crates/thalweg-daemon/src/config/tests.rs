use super::links::LinkSelection;
use super::*;
use thalweg_measure::collector::PortDirection;
use thalweg_wire::{BitRate, Bytes};

const MINIMAL: &str = "[[collector]]\nname = \"tor0\"\ninterface = \"eth1\"\n";

fn parse(text: &str) -> Result<Config, ConfigError> {
    Config::parse(text, "t.toml", Path::new("/etc/thalweg"))
}

#[track_caller]
fn refused(text: &str, expected: &[&str]) {
    let message = parse(text).unwrap_err().to_string();
    assert_eq!(message.lines().collect::<Vec<_>>(), expected);
}

#[test]
fn a_minimal_file_has_all_defaults() {
    let config = parse(MINIMAL).unwrap();
    assert_eq!(config.access, AccessOptions::default());
    assert_eq!(config.log, LogOptions::default());
    assert_eq!(config.event_backlog, crate::hub::Hub::DEFAULT_CAPACITY);
    let [collector] = &config.collectors[..] else { panic!("one") };
    assert_eq!((&*collector.name, &*collector.switch), ("tor0", "tor0"));
    assert_eq!(collector.rules, [RuleConfig::default()]);
    assert_eq!(collector.samples, Some(Default::default()));
    let options = collector.options(None).unwrap();
    assert_eq!(options.bursts, Default::default());
    assert_eq!(options.smoothing, thalweg_measure::collector::CollectorOptions::default().smoothing);
    assert_eq!(options.threshold, Some(Default::default()));
}

#[test]
fn the_printed_example_is_valid() {
    let config = Config::parse(&default_file(), "default", Path::new("")).unwrap();
    assert_eq!(config.collectors.len(), 1);
    assert_eq!(config.access, AccessOptions::default());
}

#[test]
fn every_problem_is_reported_with_its_line() {
    refused(
        "[api]\nlistne = \"127.0.0.1:1\"\n[colector]\n[[collector]]\nname = \"a\"\nbackend = \"ebpf\"\nspeed = \"fast\"\n",
        &[
            "t.toml:2: unknown key \"listne\"; did you mean \"listen\"?",
            "t.toml:3: unknown section \"colector\"; did you mean \"collector\"?",
            "t.toml:6: backend is \"ebpf\": expected one of auto, af_packet, af_xdp, prompt",
            "t.toml:7: speed is \"fast\": expected a number above 0",
        ],
    );
    refused(
        "interface = \"eth1\"\nsilent = true\n[[collector]]\nname = \"a\"\ninterface = \"eth1\"\n",
        &[
            "t.toml:1: unknown key \"interface\"; it belongs in [[collector]] or [isolation] or [[poll]]",
            "t.toml:2: unknown key \"silent\"",
        ],
    );
}

#[test]
fn control_characters_in_names_are_refused() {
    refused(
        "[[collector]]\nname = \"a\\u0000b\"\ninterface = \"lo\"\n",
        &["t.toml:2: name: a name must not contain control characters"],
    );
}

#[test]
fn conflicting_keys_are_reported_with_their_lines() {
    refused("", &["t.toml:1: no collectors: at least one [[collector]] is required"]);
    refused(
        "[[collector]]\nname = \"a\"\n[[collector]]\nname = \"b\"\ninterface = \"e\"\nfile = \"f\"\n",
        &[
            "t.toml:2: name: no source: add one of the keys interface, file and emulate",
            "t.toml:6: file: conflicting sources interface and file: expected one of interface, file and emulate",
        ],
    );
    refused(
        "[[collector]]\nname = \"a\"\nfile = \"f\"\nbackend = \"auto\"\nmonitor_rate = \"1gbps\"\ntasks = [\"heavi\"]\n\
         flight_duration = \"20s\"\n[[collector]]\nname = \"a\"\ninterface = \"e\"\nspeed = 2\n",
        &[
            "t.toml:4: backend: requires interface, not file",
            "t.toml:5: monitor_rate: requires monitor_buffer",
            "t.toml:6: tasks: unknown task `heavi` (did you mean heavy?): expected one of heavy, change, distinct, entropy, \
             spread, moments, hhh",
            "t.toml:7: flight_duration: must be at most idle_timeout, 15.0 s",
            "t.toml:9: name: duplicate collector name a",
            "t.toml:11: speed: requires file or emulate, not interface",
        ],
    );
    refused(
        "[samples]\non_event = [\"congestion\", \"lunch\"]\n[[collector]]\nname = \"a\"\ninterface = \"e\"\n[[rule]]\n\
         collectors = \"b\"\nlower = 0.95\nlinks = \"all\"\n[[rule]]\nlinks = \"tor0\"\n",
        &[
            "t.toml:2: on_event: unknown event lunch: expected congestion, cleared or cheetah",
            "t.toml:2: on_event: requires folder",
            "t.toml:7: collectors: unknown collector b",
            "t.toml:8: lower: 0.95 is above upper, 0.9: expected at most that",
            "t.toml:11: links: invalid links \"tor0\": expected all, hosts, switches, \"switches:out\", \"tor0 > h3\", \"tor0:p3\", \
             \"tor0:p3:out\" or \"tor0:Ethernet4:out\"",
        ],
    );
}

/// A wrong value in one section does not hide contradictions in others, unless they depend on it.
#[test]
fn all_sections_are_checked_in_one_pass() {
    refused(
        "[api]\nlisten = 5\n[samples]\non_event = \"congestion\"\n[[collector]]\nname = \"a\"\ninterface = \"e\"\nspeed = 2\n\
         [isolation]\nactuator = \"tc\"\nqueue = 1\nurl = \"a b\"\n[[poll]]\nname = \"r1\"\ninterface = \"wan0\"\n\
         [process]\nthreads = \"one\"\n[records]\nipfix_key = \"k\"\n",
        &[
            "t.toml:2: listen is 5: expected an address and a port, such as 127.0.0.1:9477 or [::1]:9477, in quotes",
            "t.toml:4: on_event: requires folder",
            "t.toml:8: speed: requires file or emulate, not interface",
            "t.toml:12: url: invalid URL \"a b\": expected http:// or https:// at the start",
            "t.toml:13: target: required by source snmp: the agent, such as 192.0.2.1:161",
            "t.toml:13: credentials_file: required by source snmp: a file with user, auth and priv, or community",
            "t.toml:19: ipfix_key: ipfix_certificate and ipfix_key must be set together",
        ],
    );
    refused(
        "[[collector]]\nname = 1\n[[rule]]\ncollectors = \"a\"\n[isolation]\nactuator = \"log\"\ncollectors = \"a\"\n",
        &["t.toml:2: name is 1: expected a name, in quotes"],
    );
}

#[test]
fn values_that_are_probably_not_meant_give_warnings() {
    let tc = "[isolation]\nactuator = \"tc\"\ninterface = \"e\"\nlink_rate = \"100mbps\"\n";
    assert_eq!(parse(&[MINIMAL, tc].concat()).unwrap().warnings, Vec::<String>::new());
    let odd = "scavenger_share = 0.75\nprimary_queue = \"20kB\"\nscavenger_queue = \"1GB\"\nquiet = \"5s\"\n";
    let text = [MINIMAL, "rate_threshold = \"200mbps\"\n", tc, odd].concat();
    assert_eq!(
        parse(&text).unwrap().warnings,
        [
            "t.toml:4: rate_threshold: 200 Mbit/s is not below link_rate of [isolation], 100 Mbit/s: no flow can exceed it, so none is a \
             cheetah flow",
            "t.toml:9: scavenger_share: 0.75 leaves 0.25 of the link to all other flows: expected at most 0.5",
            "t.toml:10: primary_queue: 20.0 kB do not hold a segment of 65.5 kB, into which this host may merge packets: such segments \
             are dropped",
            "t.toml:11: scavenger_queue: 1.00 GB take 80.0 s at link_rate, 100 Mbit/s: expected at most 10.0 s",
            "t.toml:12: quiet: a flow that pauses for 5.00 s to 15.0 s is released, and not redirected when it sends again: expected more than \
             idle_timeout of collector tor0, 15.0 s",
        ]
    );
}

#[test]
fn flows_of_an_emulated_network_do_not_pass_this_host() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/isolation");
    let parse = |isolation: &str, own: &str| {
        let text = format!(
            "[emulate]\nfile = \"link.toml\"\n[[collector]]\nname = \"tor0\"\n[[collector]]\nname = \"wan\"\ninterface = \"e\"\n\
             switch = \"tor0\"\n[isolation]\n{isolation}\n{own}"
        );
        Config::parse(&text, "t.toml", &folder)
            .map(|config| config.warnings)
            .map_err(|error| error.to_string())
    };
    let tc = "actuator = \"tc\"\ninterface = \"e\"\nlink_rate = \"1gbps\"";
    let error = parse(tc, "").unwrap_err();
    let expected = "t.toml:10: actuator: collector tor0 reads an emulated network, whose flows do not pass this host: expected emulated";
    assert!(error.starts_with(expected) && error.lines().count() == 1, "{error}");
    assert_eq!(parse(tc, "collectors = \"wan\"\n"), Ok(Vec::new()));
    let flowspec = "actuator = \"flowspec\"\npeer = \"192.0.2.1\"\npeer_as = 1\nlocal_as = 1";
    let warnings = parse(flowspec, "").unwrap();
    assert!(
        warnings[0]
            .starts_with("t.toml:10: actuator: collector tor0 reads an emulated network, and flowspec"),
        "{warnings:?}"
    );
}

/// Not again by each collector that they apply to.
#[test]
fn problems_of_a_rule_are_reported_once_at_their_key() {
    let with_rule = |rule: &str| {
        format!(
            "[[collector]]\nname = \"a\"\ninterface = \"e\"\n[[collector]]\nname = \"b\"\ninterface = \"f\"\n[[rule]]\n{rule}\n"
        )
    };
    for (rule, expected) in [
        ("lower = 0.95", "t.toml:8: lower: 0.95 is above upper, 0.9: expected at most that"),
        ("upper = 0.5", "t.toml:8: upper: 0.5 is below lower, 0.8: expected at least that"),
        ("upper = 90", "t.toml:8: upper is 90: expected a number above 0, at most 1"),
        ("lower = 0", "t.toml:8: lower is 0: expected a number above 0, at most 1"),
    ] {
        refused(&with_rule(rule), &[expected]);
    }
}

#[test]
fn a_gap_above_longest_burst_is_refused_at_its_key() {
    refused(
        "[[collector]]\nname = \"a\"\ninterface = \"e\"\ngap = \"2ms\"\nlongest_burst = \"1ms\"\n",
        &[
            "t.toml:5: longest_burst: gap is 2.00 ms, longest_burst is 1.00 ms: expected a longest_burst of at least gap and at most 10 s",
        ],
    );
}

#[test]
fn a_reachable_api_requires_tokens_or_client_certificates() {
    let open = |more: &str| format!("[api]\nlisten = \"0.0.0.0:9477\"\n{more}{MINIMAL}");
    let message = parse(&open("")).unwrap_err().to_string();
    assert!(
        message.starts_with("t.toml:1: api: api.listen 0.0.0.0:9477 is reachable from other hosts"),
        "{message}"
    );
    let config = parse(&open("token_file = \"tokens\"\n")).unwrap();
    assert_eq!(config.access.token_file.as_deref(), Some(Path::new("/etc/thalweg/tokens")));
}

#[test]
fn values_become_collector_options() {
    let config = parse(
        "[[collector]]\nname = \"a\"\nswitch = \"leaf0\"\nfile = \"f.pcapng\"\nspeed = 0.5\nmonitor_rate = \"10gbps\"\n\
         monitor_buffer = \"4MiB\"\ngap = \"1ms\"\nflow_capacity = 10\ncheetahs = false\nkeep_samples = false\n\
         [[rule]]\nlinks = [\"hosts\", \"leaf0:p1:out\"]\nupper = 0.5\nlower = 0.25\nflows = 3\n\
         [[rule]]\ncollectors = \"a\"\nmin_event_interval = \"0s\"\n",
    )
    .unwrap();
    let [collector] = &config.collectors[..] else { panic!("one") };
    assert_eq!(
        collector.source,
        SourceConfig::File { path: "/etc/thalweg/f.pcapng".into(), speed: Some(0.5) }
    );
    assert_eq!(
        collector.rules[0].links[1],
        LinkSelection::Port("leaf0:p1".into(), Some(PortDirection::Output))
    );
    assert_eq!(collector.samples, None);
    let options = collector.options(None).unwrap();
    let monitor = options.monitor.unwrap();
    assert_eq!((monitor.rate, monitor.buffer), (BitRate(10_000_000_000), Bytes(4 << 20)));
    assert_eq!(
        (options.bursts.gap, options.bursts.longest),
        (Nanos::from_millis(1), Nanos::from_micros(3_500))
    );
    assert_eq!((options.flow_table.capacity, options.threshold), (10, None));
    assert_eq!(options.rules[0].links.as_deref(), Some(&[][..]), "no network, no links");
    assert_eq!((options.rules[1].min_event_interval, options.rules[1].upper), (Nanos::ZERO, 0.9));
}

#[test]
fn names_are_checked_against_the_topology() {
    let folder = tempfile::tempdir().unwrap();
    let topology = "[defaults]\nrate = \"1gbit/s\"\n[[router]]\nname = \"tor0\"\n[[router]]\nname = \"tor1\"\n\
                    [[endpoint]]\nname = \"h0\"\nrouter = \"tor0\"\n[[link]]\nbetween = [\"tor0\", \"tor1\"]\n\
                    rate = \"100gbit/s\"\n[forwarding]\nkind = \"ecmp\"\nseed = 1\n";
    std::fs::write(folder.path().join("net.toml"), topology).unwrap();
    let parse = |rest: &str| {
        let text = format!(
            "[network]\ntopology = \"net.toml\"\n[[collector]]\nname = \"tor0\"\ninterface = \"e\"\n{rest}"
        );
        Config::parse(&text, "t.toml", folder.path())
    };
    let config = parse("[[rule]]\nlinks = [\"hosts\"]\n").unwrap();
    let (_, state) = config.network.state.as_ref().unwrap();
    let options = config.collectors[0].options(Some(state)).unwrap();
    assert_eq!(options.rules[0].links.as_ref().unwrap().len(), 2);
    assert_eq!(options.bursts, thalweg_measure::rates::BurstOptions::for_rate(BitRate(100_000_000_000)));
    let message = parse("switch = \"tor2\"\n").unwrap_err().to_string();
    assert_eq!(message, "t.toml:6: switch: no switch \"tor2\" in the topology; did you mean \"tor0\"?");
    let message = parse("[[rule]]\nlinks = \"tor0:p7\"\n").unwrap_err().to_string();
    assert_eq!(message, "t.toml:7: links: no port p7 at \"tor0\": it has 2 ports, counted from p0");

    std::fs::write(folder.path().join("net.toml"), "[[ruter]]\n").unwrap();
    let message = parse("").unwrap_err().to_string();
    assert!(message.contains("net.toml:1: unknown section"), "{message}");
    std::fs::remove_file(folder.path().join("net.toml")).unwrap();
    assert!(parse("").unwrap_err().to_string().starts_with("cannot read the topology file"));
}

#[test]
fn openflow_requires_a_datapath_id_for_every_switch() {
    let folder = tempfile::tempdir().unwrap();
    let topology = "[[router]]\nname = \"tor0\"\n[[router]]\nname = \"tor1\"\n[[endpoint]]\nname = \"h0\"\nrouter = \"tor0\"\n\
                    [[link]]\nbetween = [\"tor0\", \"tor1\"]\n[forwarding]\nkind = \"ecmp\"\nseed = 1\n";
    std::fs::write(folder.path().join("net.toml"), topology).unwrap();
    let parse = |rest: &str| {
        let text = format!(
            "[network]\ntopology = \"net.toml\"\n[[collector]]\nname = \"tor0\"\ninterface = \"e\"\n\
             [control]\ndecider = \"static\"\nactuator = \"openflow\"\n{rest}"
        );
        Config::parse(&text, "t.toml", folder.path()).map(|config| config.control.unwrap().actuator)
    };
    let both = "switches = [\"tor0 0000:0054:5700:0001 5\", \"tor1 0x2 eth9\"]\n";
    let listen = "openflow_listen = \"127.0.0.1:6653\"\n";
    let files = "openflow_certificate = \"c\"\nopenflow_key = \"k\"\nopenflow_ca_file = \"a\"\n";
    let connect = "openflow_connect = [\"192.0.2.1:6653\", \"192.0.2.2:6653 tor1.example.net\"]\n";
    let ActuatorConfig::OpenFlow(config) = parse(&[both, listen, files, connect].concat()).unwrap() else {
        panic!("expected openflow");
    };
    let members: Vec<_> =
        config.members.iter().map(|member| (member.datapath.0, member.monitor.clone())).collect();
    let number = thalweg_wire::openflow::PortNumber(5);
    let by_name = thalweg_actuators::openflow::PortReference::Name("eth9".into());
    assert_eq!(members, [(0x0054_5700_0001, Some(number.into())), (2, Some(by_name))]);
    assert_eq!(config.listen, Some("127.0.0.1:6653".parse().unwrap()));
    let names: Vec<_> = config.connect.iter().map(|(_, name)| name.as_str()).collect();
    assert_eq!(names, ["192.0.2.1", "tor1.example.net"]);
    assert_eq!(config.tls.unwrap().key, folder.path().join("k"));

    let cases = [
        ("", "switches: no datapath ID for tor0: openflow requires one for every switch"),
        (
            "switches = \"tor0 1\"\n",
            "switches: no datapath ID for tor1: openflow requires one for every switch",
        ),
        ("switches = [\"tor0 1\", \"tor2 2\"]\n", "no switch \"tor2\" in the topology"),
        ("switches = [\"tor0 1\", \"tor1 1\"]\n", "duplicate switch or datapath ID"),
        ("switches = [\"tor0 xyz\", \"tor1 1\"]\n", "invalid datapath ID \"xyz\""),
        ("switches = [\"tor0 1 5 6\", \"tor1 2\"]\n", "invalid switch \"tor0 1 5 6\""),
        (both, "actuator: openflow requires openflow_listen or openflow_connect"),
        ("openflow_listen = \"6653\"\n", "invalid address \"6653\""),
        (
            "openflow_key = \"k\"\n",
            "openflow_certificate, openflow_key and openflow_ca_file must be set together",
        ),
        ("refresh = \"1s\"\n", "refresh: requires actuator arp, not openflow"),
    ];
    for (rest, expected) in cases {
        let message = parse(rest).unwrap_err().to_string();
        assert!(message.contains(expected), "{expected} is not in {message}");
    }
}

#[test]
fn files_cannot_share_the_single_thread() {
    let parse = |source: &str| {
        let text = format!("[process]\nthreads = \"one\"\n[[collector]]\nname = \"a\"\n{source}\n");
        Config::parse(&text, "t.toml", Path::new("")).map(|config| config.process.threads)
    };
    assert_eq!(parse("interface = \"eth0\"").unwrap(), Threads::One);
    let message = parse("file = \"a.pcap\"").unwrap_err().to_string();
    assert!(message.contains("collector a would block the others"), "{message}");
}
