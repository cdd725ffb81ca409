//! Interoperability of `thalweg collect` with other exporters: its files must match the wire.
//!
//! Bidirectional ICMP, UDP and TCP traffic crosses a pair of network namespaces. `thalweg watch` and an exporter
//! (softflowd, Open vSwitch in user space, pmacct, or nfreplay of nfdump) measure it at one end. The files of the flow
//! receiver must contain the same flows with the same packets and octets. Tests are skipped without root or the exporter.

#![cfg(target_os = "linux")]

mod collector;
mod nfdump;
mod open_vswitch;
mod pmacct;
mod softflowd;

use std::collections::{BTreeMap, BTreeSet};
use std::process::{Child, Command, Stdio};
use std::sync::{MutexGuard, PoisonError};
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::live::{Ended, Link, RECEIVER, Running, SERIAL};

/// Maximum time of operations that are normally instant.
const TIMEOUT: Duration = Duration::from_secs(6);

const ICMP: u64 = 1;
const TCP: u64 = 6;
const UDP: u64 = 17;

/// Source, destination, ports and protocol. Exporters report type and code, or the identifier, as ports of ICMP.
type Flow = (String, String, u64, u64, u64);

/// Packets and octets of each flow.
type Counts = BTreeMap<Flow, [u64; 2]>;

fn add(counts: &mut Counts, mut flow: Flow, added: [u64; 2]) {
    if flow.4 == ICMP {
        (flow.2, flow.3) = (0, 0);
    }
    let sums = counts.entry(flow).or_default();
    *sums = [sums[0] + added[0], sums[1] + added[1]];
}

/// Creates a link that carries only IPv4 and ARP, and a guard against parallel tests. `None` if the test is skipped.
fn link(test: &str, programs: &[(&str, &str)]) -> Option<(Link, MutexGuard<'static, ()>)> {
    let alone = SERIAL.lock().unwrap_or_else(PoisonError::into_inner);
    let programs = [&[("ping", "-V"), ("iperf3", "-v"), ("sysctl", "-V")], programs].concat();
    let link = Link::set_up(test, &programs)?;
    for mut command in [link.at_sender("sysctl"), link.at_receiver("sysctl")] {
        // Neighbour discovery is unpredictable, and NetFlow v5 cannot report it.
        run(command.args([
            "-qw",
            "net.ipv6.conf.all.disable_ipv6=1",
            "net.ipv6.conf.default.disable_ipv6=1",
        ]));
    }
    for mut command in [link.at_sender("ip"), link.at_receiver("ip")] {
        run(command.args(["link", "set", "lo", "up"]));
    }
    Some((link, alone))
}

/// Sends at most about 500 packets per direction within a second.
///
/// Paced, because Open vSwitch in user space misses samples of bursts.
fn traffic(link: &Link) {
    sleep(Duration::from_millis(300)); // until all processes read their sockets
    run(link.at_sender("ping").args(["-c", "20", "-i", "0.01", "-W", "1", RECEIVER]));
    let server = link.at_receiver("iperf3").args(["--server", "-4"]).stdout(Stdio::null()).spawn();
    let _server = Running(server.unwrap());
    // The listening port 5201 in hexadecimal.
    wait_until("iperf3 listens", || {
        let sockets = link.at_receiver("cat").arg("/proc/net/tcp").output().unwrap();
        String::from_utf8_lossy(&sockets.stdout).contains(":1451 00000000:0000 0A")
    });
    let clients =
        [&["-n", "200K", "-l", "4K", "-b", "4M"][..], &["-u", "-n", "40K", "-l", "1000", "-b", "2M"]];
    for arguments in clients {
        run(link.at_sender("iperf3").args(["--client", RECEIVER]).args(arguments));
    }
    sleep(Duration::from_millis(200)); // for the last acknowledgements
}

/// Returns the flows that `thalweg watch` measured: ICMP, TCP and UDP.
fn on_the_wire(watch: &Ended) -> Counts {
    assert_eq!(watch.code, Some(0), "{}", watch.stderr);
    let mut counts = Counts::new();
    for line in watch.of_type("flow") {
        let (flow, number) = (&line["flow"], |name: &str| line[name].as_u64().unwrap());
        let text = |name: &str| flow[name].as_str().unwrap().to_owned();
        let port = |name: &str| flow[name].as_u64().unwrap();
        let (source, destination, protocol) = (text("src"), text("dst"), port("protocol"));
        let (ports, forth) = ([port("src_port"), port("dst_port")], [number("packets"), number("bytes")]);
        let back = [number("reverse_packets"), number("reverse_bytes")];
        let [from, to] = ports;
        if forth[0] > 0 {
            add(&mut counts, (source.clone(), destination.clone(), from, to, protocol), forth);
        }
        if back[0] > 0 {
            add(&mut counts, (destination, source, to, from, protocol), back);
        }
    }
    let protocols: BTreeSet<u64> = counts.keys().map(|flow| flow.4).collect();
    assert_eq!(protocols, BTreeSet::from([ICMP, TCP, UDP]), "{counts:?}");
    // ICMP, two TCP connections of iperf3, and its UDP flow, in both directions.
    assert!(counts.len() >= 8 && packets(&counts) > 200, "{counts:?}");
    let lost = &watch.summary()["kernel_drops"];
    assert_eq!(lost, &Value::from(0), "watch lost no packets");
    counts
}

fn packets(counts: &Counts) -> u64 {
    counts.values().map(|[packets, _]| packets).sum()
}

/// Runs a program that must succeed.
#[track_caller]
fn run(command: &mut Command) {
    let output = command.stdin(Stdio::null()).output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {stderr}");
}

/// Starts a program without output.
fn start(command: &mut Command) -> Running {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    Running(command.spawn().unwrap())
}

/// Ends a program with a signal and waits for it.
fn end(mut running: Running, signal: &str) {
    send_signal(&running.0, signal);
    wait_until("a program ends", || running.0.try_wait().unwrap().is_some());
}

fn send_signal(child: &Child, signal: &str) {
    run(Command::new("sh").args(["-c", &format!("kill -{signal} {}", child.id())]));
}

#[track_caller]
fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + TIMEOUT;
    while !holds() {
        assert!(Instant::now() < deadline, "waited {TIMEOUT:?} until {what}");
        sleep(Duration::from_millis(20));
    }
}
