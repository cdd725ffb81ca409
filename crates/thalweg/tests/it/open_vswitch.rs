//! A sketch on the mirror port of Open vSwitch, set up by the script of the how-to page.
//!
//! Skipped without root, Open vSwitch, ethtool and ping; with DPDK also without openvswitch-switch-dpdk, and with a vhost-user port in
//! builds without the feature dpdk.

#![cfg(target_os = "linux")]

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::PoisonError;

use crate::live::{SERIAL, skip};
use crate::program::{Run, THALWEG, number, root};

/// Where Debian's package openvswitch-switch-dpdk has the switch.
const DPDK_SWITCH: &str = "/usr/lib/openvswitch-switch-dpdk/ovs-vswitchd-dpdk";

const PINGS: u64 = 50;

const PROGRAMS: [(&str, &str); 5] = [
    ("ip", "-V"),
    ("ping", "-V"),
    ("ethtool", "--version"),
    ("ovs-vswitchd", "--version"),
    ("ovsdb-server", "--version"),
];

/// Runs the script; `None` if the test is skipped.
fn mirror(test: &str, datapath: &str) -> Option<Run> {
    for (program, version_flag) in PROGRAMS {
        let mut command = Command::new(program);
        command.env("PATH", "/usr/sbin:/sbin:/usr/bin:/bin").arg(version_flag).stdout(Stdio::null());
        if !command.stderr(Stdio::null()).status().is_ok_and(|status| status.success()) {
            return skip(test, &format!("needs {program}"));
        }
    }
    let id = Command::new("id").arg("-u").output().unwrap();
    if id.stdout != b"0\n" {
        return skip(test, "needs root to make network namespaces");
    }
    let _alone = SERIAL.lock().unwrap_or_else(PoisonError::into_inner);
    let mut script = Command::new(root().join("examples/open-vswitch/mirror.sh"));
    script.arg(datapath).args(["--no-table", "--tasks", "heavy:1%:src", "--window", "1h"]);
    script.env("THALWEG", THALWEG).env("PINGS", PINGS.to_string()).stdin(Stdio::null());
    Some(Run::from(script.output().unwrap()).ended_with(0))
}

fn mirror_of_dpdk(test: &str, datapath: &str) -> Option<Run> {
    if !Path::new(DPDK_SWITCH).exists() {
        return skip(test, "needs the package openvswitch-switch-dpdk");
    }
    mirror(test, datapath)
}

/// The sketch has counted every packet between the hosts, each once.
fn check(run: &Run) {
    assert!(run.stderr.contains(&format!("{PINGS} packets transmitted, {PINGS} received")), "{}", run.stderr);
    assert_eq!(number(&run.summary(), "kernel_drops"), 0);
    let kept = run.of_type("kept_windows").pop().unwrap();
    let rows = kept["tasks"][0]["keys"].as_array().unwrap_or_else(|| panic!("no keys in {kept:#}"));
    let mut counts: Vec<(&str, f64)> =
        rows.iter().map(|row| (row["key"].as_str().unwrap(), row["estimate"].as_f64().unwrap())).collect();
    counts.sort_by_key(|&(key, _)| key);
    assert_eq!(counts, [("192.0.2.1", PINGS as f64), ("192.0.2.2", PINGS as f64)]);
}

#[test]
fn a_sketch_on_the_mirror_port_counts_all_packets_of_the_userspace_datapath() {
    let test = "a_sketch_on_the_mirror_port_counts_all_packets_of_the_userspace_datapath";
    if let Some(run) = mirror(test, "userspace") {
        check(&run);
    }
}

#[test]
fn a_sketch_on_the_mirror_port_counts_all_packets_of_the_dpdk_datapath() {
    let test = "a_sketch_on_the_mirror_port_counts_all_packets_of_the_dpdk_datapath";
    if let Some(run) = mirror_of_dpdk(test, "dpdk") {
        check(&run);
    }
}

#[test]
fn a_sketch_on_a_vhost_user_mirror_port_counts_all_packets() {
    let test = "a_sketch_on_a_vhost_user_mirror_port_counts_all_packets";
    if !cfg!(feature = "dpdk") {
        skip::<()>(test, "needs the feature dpdk");
        return;
    }
    if let Some(run) = mirror_of_dpdk(test, "vhost") {
        check(&run);
    }
}
