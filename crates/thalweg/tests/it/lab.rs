//! Scenarios of `thalweg lab`. Each test creates and removes its own lab.
//!
//! Tests are skipped without root and iperf3. They do not check times, because the machine may be busy.

#![cfg(target_os = "linux")]

use std::io::Write as _;
use std::process::Command;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use thalweg_lab::{DEFAULT_HOST_SHARE, Headroom, Lab, LabError, Prefix, Verdict};
use thalweg_scenarios::scenarios::faults::Fault;
use thalweg_scenarios::scenarios::isolate::saturation::Share;
use thalweg_scenarios::scenarios::workload::{Method, Pattern};
use thalweg_scenarios::scenarios::{
    Setting, collide, faults, isolate, reroute_latency, switch_buffer, udp, workload,
};
use thalweg_scenarios::{ScenarioError, plot, report, shape};
use thalweg_wire::BitRate;

use crate::live::SERIAL;

/// Reports a skipped test directly to standard error, because the test runner captures `eprintln!`.
fn skip(reason: impl std::fmt::Display) {
    let name = std::thread::current().name().unwrap_or("a test").to_owned();
    // Ignore a closed standard error.
    let _ = std::io::stderr().write_all(format!("skipped: {name}: {reason}\n").as_bytes());
}

/// Returns a prefix that differs between test processes.
fn prefix() -> Prefix {
    format!("s{}-", std::process::id() % 10_000_000).parse().unwrap()
}

/// Runs a scenario or reports why it is skipped. Checks that the lab is removed.
fn run<T>(mbps: u64, scenario: impl FnOnce(&mut Setting<'_>) -> Result<T, ScenarioError>) -> Option<T> {
    let _alone = SERIAL.lock().unwrap_or_else(PoisonError::into_inner);
    let mut setting = Setting {
        rate: BitRate(mbps * 1_000_000),
        host_share: DEFAULT_HOST_SHARE,
        prefix: prefix(),
        stop: Arc::default(),
        on_progress: &mut |_| (),
    };
    let results = match scenario(&mut setting) {
        Ok(results) => results,
        Err(
            error @ (ScenarioError::IperfMissing(_)
            | ScenarioError::Lab(
                LabError::NotRoot | LabError::NoSwitchProgram | LabError::MissingProgram { .. },
            )),
        ) => {
            skip(error);
            return None;
        }
        Err(error) => panic!("{error}"),
    };
    assert!(Lab::find(&prefix()).is_err(), "the lab is removed");
    Some(results)
}

/// Whether the machine was idle enough for rates to be meaningful.
fn rates_show(headroom: &Headroom) -> bool {
    let show = headroom.verdict() == Verdict::Conclusive;
    if !show {
        skip(format!("rates are not looked at, there was too little time to spare: {headroom:?}"));
    }
    show
}

/// Returns what the scavenger queue got while both queues filled the link for nearly all of two seconds. A sender that a busy machine
/// stops leaves the primary queue empty for a while, and the link is the scavenger's then.
fn saturated(results: &isolate::Results, mbps: u64) -> impl Iterator<Item = &Share> {
    let full = 2 * mbps * 1_000_000 / 8;
    let fills = move |share: &&Share| share.primary_bytes + share.scavenger_bytes >= full * 9 / 10;
    results.saturation.iter().filter(|share| share.primary_dropped > 0).filter(fills)
}

#[test]
fn colliding_flows_are_rerouted_to_full_rate() {
    let Some(results) = run(50, |setting| collide::run(2, setting)) else { return };
    let turns: Vec<_> = results.latencies().collect();
    // A trial whose flows were parted before they collided has no times, which is no fault of the loop.
    let early = results.trials.iter().filter(|trial| trial.is_early).count();
    assert_eq!(turns.len() + early, 2, "rerouted or early");
    assert!(
        turns.iter().all(|latency| latency.total() >= latency.event_to_path() && latency.path_ns > 0),
        "{turns:?}"
    );
    let looked_at = if rates_show(&results.headroom) { results.trials.as_slice() } else { &[] };
    for trial in looked_at {
        // 48 Mbit/s minus headers each; half of it on a shared link.
        assert!(trial.rates.iter().all(|&rate| rate > 30e6), "{:?}", trial.rates);
    }
    assert!(
        results.most_flow_moves() <= 3 && results.reroutes() >= turns.len() as u64,
        "{:?}",
        results.trials
    );
    let resolved = format!("{} of 2 trials resolved", turns.len());
    assert!(report::collide(&results).contains(&resolved), "{}", report::collide(&results));
    assert!(plot::collide(&results).unwrap().contains("</svg>"));
    let json: serde_json::Value = serde_json::from_str(&report::collide_json(&results)).unwrap();
    if !turns.is_empty() {
        assert_eq!(json["total"]["count"], turns.len());
    }
}

#[test]
fn colliding_flows_are_rerouted_by_openflow_and_arp() {
    let Some(results) = run(20, |setting| reroute_latency::run(1, setting)) else { return };
    let names: Vec<String> = results.cases.iter().map(|case| case.name()).collect();
    assert_eq!(names, ["ARP, eBPF", "OpenFlow, Open vSwitch", "ARP, Open vSwitch"]);
    for case in &results.cases {
        let [trial] = case.collisions.trials.as_slice() else { panic!("{case:?}") };
        assert!(
            trial.is_early || trial.latency.is_some_and(|latency| latency.decision_to_path().0 > 0),
            "{case:?}"
        );
        // 19.2 Mbit/s less headers each; on one link it would be half as much.
        let whole = trial.rates.iter().all(|&rate| rate > 13e6);
        assert!(whole || !rates_show(&case.collisions.headroom), "{}: {:?}", case.name(), trial.rates);
    }
    assert!(report::reroute_latency(&results).contains("OpenFlow, Open vSwitch: "));
    assert!(plot::reroute_latency(&results).unwrap().contains("</svg>"));
    let json: serde_json::Value = serde_json::from_str(&report::reroute_latency_json(&results)).unwrap();
    assert_eq!(
        (&json["cases"][1]["switch_type"], &json["cases"][1]["actuator"]),
        (&"ovs".into(), &"openflow".into())
    );
}

#[test]
fn a_udp_flow_stays_on_its_path_beyond_arp_timeouts() {
    // Without the controller's confirmations it is back on the old path 6 s after it was moved.
    let Some(results) = run(50, |setting| udp::run(Duration::from_secs(9), setting)) else { return };
    assert!(results.request_to_path.is_some(), "{results:?}");
    assert!(results.new_path_packets > 10_000 && results.refreshes >= 3, "{results:?}");
    assert_eq!(results.old_path_packets, 0, "{results:?}");
}

#[test]
fn a_cheetah_flow_is_isolated_and_its_move_is_measured() {
    use isolate::Isolation::{Borrow, None, Strict};
    let options = isolate::Options {
        trials: 1,
        duration: Duration::from_secs(2),
        flight_duration: isolate::DEFAULT_FLIGHT,
        seed: 1,
        actuator: isolate::Actuator::Tc,
    };
    let Some(results) = run(50, |setting| isolate::run(&options, setting)) else { return };
    let text = report::isolate(&results);
    let only = |isolation| results.runs(isolation).next().unwrap();
    assert!(only(None).latency.is_none() && only(None).moved.is_none(), "{text}");
    for run in [Borrow, Strict].map(only) {
        // The first packet in the scavenger queue comes after the threshold and after the start of the flow.
        let latency = run.latency.unwrap_or_else(|| panic!("{:?} was not redirected\n{text}", run.isolation));
        assert!(latency.total_ns > 0 && run.moved_at_ns.unwrap() >= latency.total_ns, "{latency:?}");
        assert!(run.transmissions.sent_packets > 100 && run.moved.unwrap().sent_packets > 0, "{text}");
    }
    for run in [None, Borrow, Strict].map(only) {
        let periods = [run.before, run.first_second, run.settled, run.after];
        assert!(periods.iter().all(|period| period.delays.count > 0), "{text}");
        assert!(run.flow_rate_bps > 1e6 && run.background_rate_bps > 5e6, "{text}");
    }
    for share in saturated(&results, 50) {
        assert!(share.scavenger_ratio < 0.25, "{share:?}");
        assert!(share.isolation == Strict || share.scavenger_ratio > 0.02, "{share:?}");
    }
    assert!(plot::isolate(&results).unwrap().contains("move, strict"));
    let json: serde_json::Value = serde_json::from_str(&report::isolate_json(&results)).unwrap();
    assert_eq!(json["latencies"][0]["count"], 1);
    assert!(json["checks"].as_array().unwrap().len() > 10);
    let available = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control").unwrap();
    assert!(!available.split_whitespace().any(|name| name == results.congestion_control), "{available}");
}

#[test]
fn a_cheetah_flow_is_isolated_by_rules_of_a_switch() {
    use isolate::Isolation::{Borrow, None, Strict};
    let options = isolate::Options {
        trials: 1,
        duration: Duration::from_secs(1),
        flight_duration: isolate::DEFAULT_FLIGHT,
        seed: 1,
        actuator: isolate::Actuator::OpenFlow,
    };
    let Some(results) = run(20, |setting| isolate::run(&options, setting)) else { return };
    let text = report::isolate(&results);
    let only = |isolation| results.runs(isolation).next().unwrap();
    assert!(only(None).latency.is_none() && only(None).moved.is_none(), "{text}");
    for run in [Borrow, Strict].map(only) {
        // The first packet with the mark comes after the threshold and after the start of the flow.
        let latency = run.latency.unwrap_or_else(|| panic!("{:?} was not redirected\n{text}", run.isolation));
        assert!(latency.total_ns > 0 && run.moved_at_ns.unwrap() >= latency.total_ns, "{latency:?}");
        assert!(run.moved.unwrap().sent_packets > 0, "{text}");
    }
    for share in saturated(&results, 20) {
        assert!(share.scavenger_bytes > 0 && share.scavenger_ratio < 0.25, "{share:?}");
    }
    let json: serde_json::Value = serde_json::from_str(&report::isolate_json(&results)).unwrap();
    assert_eq!((&json["actuator"], &json["latencies"][0]["count"]), (&"openflow".into(), &1.into()));
    assert_eq!(json["latencies"][0]["p50_interval"]["low_ns"], serde_json::Value::Null);
}

#[test]
fn round_trip_and_buffer_decide_whether_a_flow_loses_packets() {
    let options = switch_buffer::Options { trials: 1, duration: Duration::from_secs(3), seed: 1 };
    let Some(results) = run(20, |setting| switch_buffer::run(&options, setting)) else { return };
    let text = report::switch_buffer(&results);
    let case = |number| results.runs(number).next().unwrap();
    for run in (1..=5).map(case) {
        assert_eq!(run.seconds.len(), 3, "{text}");
        assert!(run.seconds.iter().all(|second| second.cwnd_bytes > 0), "{run:?}");
        assert!(run.transmissions.sent_packets > 20, "{text}");
        // The delay line adds its delay to the smoothed round trip, and only to that of these cases.
        let is_delayed = run.seconds.last().unwrap().round_trip_ns >= 100_000_000;
        assert!(is_delayed || run.case.delay == thalweg_wire::Nanos(0), "{run:?}");
        assert_eq!(run.delay_dropped_packets, 0, "{run:?}");
    }
    // The queue counts every packet of the flow that never arrived.
    assert!(case(4).transmissions.lost <= case(4).queue_dropped_packets, "{text}");
    assert!(plot::switch_buffer(&results).unwrap().contains("case 5"));
    let json: serde_json::Value = serde_json::from_str(&report::switch_buffer_json(&results)).unwrap();
    assert_eq!(json["trials"][0]["runs"][3]["delay_ns"], 100_000_000);
}

#[test]
fn a_fat_tree_workload_completes_with_planck() {
    let methods = [Method::Planck];
    let scenario = |setting: &mut Setting<'_>| {
        workload::run(Pattern::Bijection, &methods, Duration::from_secs(1), 1, setting)
    };
    let Some(results) = run(10, scenario) else { return };
    let outcome = &results.outcomes[0];
    assert_eq!((outcome.flow_rates.len(), outcome.host_times.len()), (16, 16));
    // None is faster than its host, and none shares one link with all others.
    assert!(outcome.flow_rates.iter().all(|&rate| (0.6e6..=9.8e6).contains(&rate)), "{outcome:?}");
    assert!(
        outcome.most_flow_moves <= 3 && (outcome.most_flow_moves > 0) != outcome.reroutes.is_empty(),
        "{outcome:?}"
    );
    assert!(report::workload(&results).contains("planck"));
    assert!(plot::workload(&results).unwrap().contains("</svg>"));
}

#[test]
fn forwarding_recovers_from_every_fault() {
    let Some(results) = run(50, |setting| faults::run(&Fault::ALL, 1, setting)) else { return };
    let text = report::faults(&results);
    assert_eq!(results.outcomes.len(), Fault::ALL.len());
    for outcome in &results.outcomes {
        assert!(outcome.is_survived(), "{}\n{text}", outcome.fault.name());
    }
    let json: serde_json::Value = serde_json::from_str(&report::faults_json(&results)).unwrap();
    let rows = json["faults"].as_array().unwrap();
    let report_has = |name: &str, what: &str| {
        let row = rows.iter().find(|row| row["fault"] == name).unwrap();
        row["log"].as_array().unwrap().iter().any(|line| line.as_str().unwrap().contains(what))
    };
    assert!(report_has("wrong-topology", " tree 1"), "the broken path is named\n{text}");
    assert!(!report_has("switch-restart", ": 0 rules left"), "only one switch forgets\n{text}");
}

#[test]
fn parts_can_be_failed_and_repaired() {
    let _alone = SERIAL.lock().unwrap_or_else(PoisonError::into_inner);
    match Lab::up(shape::plan("leaf-spine", None, prefix()).unwrap()) {
        Err(error @ (LabError::NotRoot | LabError::NoSwitchProgram)) => return skip(error),
        made => made.map(drop).unwrap(),
    }
    let prefix = prefix().to_string();
    let thalweg = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_thalweg"));
        let output = command.arg("lab").args(arguments).args(["--prefix", &prefix]).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        (output.status.success(), text + &String::from_utf8_lossy(&output.stderr))
    };
    let steps: [(&[&str], &str); 8] = [
        (&["fail", "leaf0-spine1"], ""),
        (&["status"], "links down: leaf0-spine1\n"),
        (&["repair", "spine1:p0"], ""),
        (&["fail", "leaf2"], ""),
        (&["status"], "links down: h4-leaf2, h5-leaf2, leaf2-spine0, leaf2-spine1\n"),
        (&["repair", "leaf2", "--empty"], ""),
        (&["status"], "\nleaf2            0 "),
        (&["repair", "leaf2"], ""),
    ];
    let mut wrong: Vec<_> = steps
        .iter()
        .map(|(arguments, expected)| (arguments, expected, thalweg(arguments)))
        .filter(|(_, expected, (succeeded, text))| !succeeded || !text.contains(*expected))
        .map(|error| format!("{error:?}"))
        .collect();
    let (_, status) = thalweg(&["status"]);
    let whole = !status.contains("links down") && status.contains("\nleaf2           24 ");
    wrong.extend((!whole).then(|| status.clone()));
    let (succeeded, unknown) = thalweg(&["fail", "leaf9"]);
    wrong.extend(
        (succeeded || !unknown.contains("unknown component \"leaf9\": expected a switch")).then_some(unknown),
    );
    Lab::down(&prefix.parse().unwrap()).unwrap();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn hosts_of_an_open_vswitch_lab_reach_each_other() {
    let _alone = SERIAL.lock().unwrap_or_else(PoisonError::into_inner);
    let prefix = prefix().to_string();
    let thalweg = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_thalweg"));
        let output = command.arg("lab").args(arguments).output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        (output.status.success(), String::from_utf8_lossy(&output.stdout).into_owned() + &stderr)
    };
    let (is_up, output) = thalweg(&["up", "leaf-spine", "--switch", "ovs", "--prefix", &prefix]);
    if !is_up && (output.contains("needs root") || output.contains("with these switches needs")) {
        return skip(output);
    }
    assert!(is_up, "{output}");
    let ping = ["ping", "-c", "1", "-W", "2", "10.0.0.5"];
    let pinged = thalweg(&[&["exec", "h0", "--prefix", &prefix, "--"][..], &ping].concat());
    let (_, status) = thalweg(&["status", "--prefix", &prefix]);
    // Switches with OpenFlow cannot be failed: a controller owns their tables.
    let failed = thalweg(&["fail", "leaf0", "--prefix", &prefix]);
    let down = thalweg(&["down", "--prefix", &prefix]);
    assert!(pinged.0 && pinged.1.contains(" 0% packet loss"), "{}", pinged.1);
    assert!(status.contains("\nleaf2           24 "), "four addresses of six hosts: {status}");
    assert!(!failed.0 && failed.1.contains("are controlled by OpenFlow"), "{}", failed.1);
    assert!(down.1.contains("removed 7 namespaces, killed 2 processes"), "{}", down.1);
}

#[test]
fn exec_ends_with_the_exit_code_of_the_command() {
    let _alone = SERIAL.lock().unwrap_or_else(PoisonError::into_inner);
    match Lab::up(shape::plan("leaf-spine", None, prefix()).unwrap()) {
        Err(error @ (LabError::NotRoot | LabError::NoSwitchProgram)) => return skip(error),
        made => made.map(drop).unwrap(),
    }
    let prefix = prefix().to_string();
    let exec = |command: &[&str]| {
        let arguments = ["lab", "exec", "h0", "--prefix", &prefix, "--"];
        let thalweg =
            Command::new(env!("CARGO_BIN_EXE_thalweg")).args(arguments).args(command).output().unwrap();
        (thalweg.status.code().unwrap(), String::from_utf8_lossy(&thalweg.stderr).into_owned())
    };
    let by_itself = exec(&["sh", "-c", "exit 7"]);
    let by_signal = exec(&["sh", "-c", "kill -TERM $$"]);
    let unknown = exec(&["no-such-program"]);
    Lab::down(&prefix.parse().unwrap()).unwrap();
    assert_eq!([by_itself, by_signal], [(7, String::new()), (143, String::new())]);
    assert!(unknown.0 == 1 && unknown.1.contains("cannot run \"no-such-program\""), "{unknown:?}");
}

#[test]
fn a_lab_in_use_is_not_replaced() {
    let _alone = SERIAL.lock().unwrap_or_else(PoisonError::into_inner);
    match Lab::up(shape::plan("leaf-spine", None, prefix()).unwrap()) {
        Err(error @ (LabError::NotRoot | LabError::NoSwitchProgram)) => return skip(error),
        made => made.map(drop).unwrap(),
    }
    let mut setting = Setting {
        rate: BitRate(50_000_000),
        host_share: DEFAULT_HOST_SHARE,
        prefix: prefix(),
        stop: Arc::default(),
        on_progress: &mut |_| (),
    };
    let refused = workload::run(Pattern::Stride, &[Method::Static], Duration::from_secs(1), 1, &mut setting);
    let is_left = Lab::find(&prefix()).is_ok();
    Lab::down(&prefix()).unwrap();
    assert!(matches!(refused, Err(ScenarioError::PrefixInUse { .. })), "{refused:?}");
    assert!(is_left, "it is still there");
}

#[test]
fn missing_labs_and_parts_are_reported() {
    let lab = |arguments: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_thalweg")).arg("lab").args(arguments).output().unwrap();
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (code, text) = lab(&["status", "--prefix", "none-"]);
    assert_eq!(
        (code, text.as_str()),
        (Some(1), "thalweg: no lab with the name prefix \"none-\" is up: create it with `thalweg lab up`\n")
    );
    let (code, text) = lab(&["up", "no-such-file.toml"]);
    assert_eq!(code, Some(2));
    assert!(text.contains("expected `leaf-spine`, `fat-tree-4` or a topology file"), "{text}");
    for wrong in [&["up", "leaf-spine", "--prefix", "Lab"][..], &["run", "nothing"], &["exec", "h0"]] {
        assert_eq!(lab(wrong).0, Some(2), "{wrong:?}");
    }
}
