//! A lab leaves nothing behind.

use std::fs;
use std::process::{Command, Stdio};
use std::time::Duration;

use thalweg_lab::{DEFAULT_RATE, Lab, LabError, Plan, Removed};
use thalweg_network::LinkSpec;
use thalweg_network::topology::shapes::rack;
use thalweg_wire::BitRate;

use crate::setup::{TestLab, output, plan, skip};

const ALLOWED: &str = "/proc/sys/net/ipv4/tcp_allowed_congestion_control";

/// Returns everything that a lab could leave on the machine.
fn machine(prefix: &str) -> Vec<String> {
    let own = |name: &String| name.starts_with(prefix);
    let names = |folder| match fs::read_dir(folder) {
        Ok(entries) => entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect(),
        Err(_) => Vec::new(),
    };
    // Other programs create namespaces at the same time.
    let namespaces: Vec<String> = names("/run/netns").into_iter().filter(own).collect();
    let records: Vec<String> = names("/run/thalweg").into_iter().filter(own).collect();
    vec![
        format!("{namespaces:?}"),
        format!("{records:?}"),
        format!("{:?}", names("/sys/fs/bpf")),
        output("ip", &["-o", "link", "show", "type", "veth"])
            .lines()
            .filter(|line| line.contains(prefix))
            .collect(),
        output("tc", &["qdisc", "show"]),
        fs::read_to_string(ALLOWED).unwrap(),
    ]
}

#[test]
fn all_hosts_connect_and_nothing_is_left_behind() {
    let before = {
        let _alone = TestLab::alone();
        machine(plan().prefix.as_str())
    };
    let Some(lab) = TestLab::up(plan()) else { return };
    for from in 0..6 {
        for to in (0..6).filter(|&to| to != from) {
            assert_eq!(lab.ping(from, to, 2), 2, "h{from} to h{to}");
        }
    }
    let during = machine(lab.prefix.as_str());
    assert_ne!(during, before);
    let prefix = lab.prefix.clone();
    let _alone = lab.down();
    assert_eq!(machine(prefix.as_str()), before);
    assert_eq!(Lab::down(&prefix).unwrap(), Removed::default(), "nothing is left to remove");
}

#[test]
fn next_lab_removes_only_the_remains_of_its_prefix() {
    let before = {
        let _alone = TestLab::alone();
        machine(plan().prefix.as_str())
    };
    let Some(mut lab) = TestLab::up(plan()) else { return };
    let prefix = lab.prefix.as_str().to_owned();
    // A foreign namespace with a similar name.
    let other = format!("{}x", prefix.trim_end_matches('-'));
    assert!(Command::new("ip").args(["netns", "add", &other]).status().unwrap().success());
    // A running process, a missing host, a stale name, and a namespace that is not in the plan.
    let mut sleeper = lab.exec("h2", Command::new("sleep").arg("1000")).unwrap();
    output("ip", &["netns", "delete", &format!("{prefix}h1")]);
    fs::write(format!("/run/netns/{prefix}h9"), "").unwrap();
    output("ip", &["netns", "add", &format!("{prefix}stray")]);

    let tiers = LinkSpec { rate: BitRate(50_000_000), ..LinkSpec::default() };
    lab.replace(Plan { prefix: lab.prefix.clone(), ..Plan::new(rack(2, tiers).unwrap()) });
    assert!(!sleeper.wait().unwrap().success(), "it was killed");
    let names = machine(&prefix).swap_remove(0);
    for name in ["fabric", "h0", "h1"] {
        assert!(names.contains(&format!("{prefix}{name}")), "{names}");
    }
    assert_eq!(names.split(',').count(), 3, "{names}");
    assert_eq!(lab.ping(0, 1, 2), 2);

    // As after a crash during removal: only the record is left.
    output("ip", &["netns", "delete", &format!("{prefix}fabric")]);
    assert!(matches!(Lab::find(&lab.prefix), Err(LabError::NotUp { .. })));
    let _alone = lab.down();
    assert_eq!(machine(&prefix), before);
    assert!(
        Command::new("ip").args(["netns", "delete", &other]).status().unwrap().success(),
        "{other} is untouched"
    );
}

/// Environment variable with the lab's prefix, for the child process of the test below.
const PREFIX: &str = "THALWEG_LAB_TEST_PREFIX";

#[test]
fn next_lab_removes_the_remains_of_a_killed_creation() {
    if let Ok(prefix) = std::env::var(PREFIX) {
        // This is the child process that is killed.
        Lab::up(Plan { prefix: prefix.parse().unwrap(), ..Plan::fat_tree_4(DEFAULT_RATE).unwrap() }).unwrap();
        return;
    }
    let before = {
        let _alone = TestLab::alone();
        machine(plan().prefix.as_str())
    };
    let Some(mut lab) = TestLab::up(plan()) else { return };
    for delay_ms in [5, 15, 25, 35, 45, 55, 65] {
        let mut process = Command::new(std::env::current_exe().unwrap());
        process.args(["--exact", "leftovers::next_lab_removes_the_remains_of_a_killed_creation"]);
        process.env(PREFIX, lab.prefix.as_str()).stdout(Stdio::null());
        let mut process = process.spawn().unwrap();
        std::thread::sleep(Duration::from_millis(delay_ms));
        process.kill().unwrap();
        process.wait().unwrap();
        lab.replace(plan());
        assert_eq!(lab.ping(0, 4, 1), 1, "after {delay_ms} ms");
    }
    let prefix = lab.prefix.as_str().to_owned();
    let _alone = lab.down();
    assert_eq!(machine(&prefix), before);
}

#[test]
fn lab_is_found_by_its_prefix() {
    let Some(lab) = TestLab::up(plan()) else { return };
    let found = Lab::find(&lab.prefix).unwrap();
    assert_eq!(found.topology(), lab.topology());
    assert_eq!(found.tables().unwrap().entries().unwrap(), lab.tables().unwrap().entries().unwrap());
    assert_eq!(found.tables().unwrap().entries().unwrap().len(), 5 * 6 * 4, "switches, hosts, addresses");
    let status = found.status().unwrap();
    assert_eq!((status.hosts.len(), status.switches.len()), (6, 5));
    assert!(status.switches.iter().all(|switch| switch.is_mirrored && switch.entries == 24));

    let mut child = found.exec("h3", Command::new("cat").stdin(Stdio::piped())).unwrap();
    assert_eq!(found.status().unwrap().hosts[3].processes, [child.id()]);
    drop(child.stdin.take());
    child.wait().unwrap();
    assert!(matches!(found.exec("h6", &mut Command::new("true")), Err(LabError::UnknownHost { .. })));
    let missing = found.exec("h0", &mut Command::new("there-is-no-such-program"));
    assert!(matches!(missing, Err(LabError::Exec { .. })));
}

#[test]
fn two_labs_are_independent() {
    let Some(first) = TestLab::up(plan()) else { return };
    let second = first.beside();
    let forwarding = second.tables().unwrap().entries().unwrap();
    assert_eq!(first.ping(0, 4, 3), 3);
    assert!(
        second
            .status()
            .unwrap()
            .switches
            .iter()
            .flat_map(|switch| &switch.ports)
            .all(|port| port.switch.received_packets == 0)
    );
    for entry in forwarding {
        second.tables().unwrap().remove(entry.router, entry.mac).unwrap();
    }
    assert_eq!(first.ping(0, 4, 3), 3, "its tables are its own");
    drop(second);
    assert_eq!(first.ping(0, 4, 3), 3);
}

#[test]
fn unknown_congestion_control_is_rejected() {
    let _alone = TestLab::alone();
    let wanted = Plan { congestion_control: Some("nonesuch".to_owned()), ..plan() };
    match Lab::up(wanted) {
        Err(LabError::Plan(_)) => {}
        Err(error @ (LabError::NotRoot | LabError::NoSwitchProgram)) => skip(error),
        other => panic!("{:?}", other.err()),
    }
}
