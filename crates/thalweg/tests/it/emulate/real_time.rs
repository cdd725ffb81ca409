//! `thalweg emulate --real-time`: a plain endpoint asks the program.

use std::io::{BufRead as _, BufReader, Read as _};
use std::net::{SocketAddr, UdpSocket};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use thalweg_realtime::protocol::{Arbiter, Decision, Endpoint, EndpointOptions, Submission};
use thalweg_wire::emulation_protocol::{Flow, SchemeBytes, Session, Verdict};
use thalweg_wire::{Nanos, Timestamp};

use super::emulate;
use crate::program::THALWEG;

const NETWORK: &str = "\
duration = \"1ms\"

[topology]
shape = \"rack\"
endpoints = 2
loss = [\"20%\", 0]
jitter = \"1us\"

[scheme]
name = \"dctcp\"
buffer = 40
threshold = 10

[measure]
queue_interval = \"10us\"
ports = [\"tor0 > h1\"]
";

struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// An endpoint of the test.
struct Host {
    endpoint: Endpoint,
    socket: UdpSocket,
    start: Instant,
    /// Of 100 datagrams, so many are lost in each direction.
    lost: u64,
    random: u64,
}

impl Host {
    fn new(number: u16, arbiter: SocketAddr) -> Host {
        let options = EndpointOptions {
            endpoint: number,
            deadline: Nanos::from_secs(60),
            ..EndpointOptions::default()
        };
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.connect(arbiter).unwrap();
        socket.set_read_timeout(Some(Duration::from_millis(1))).unwrap();
        let endpoint = Endpoint::new(options, Session::new(7).unwrap()).unwrap();
        Host { endpoint, socket, start: Instant::now(), lost: 0, random: 1 }
    }

    /// Whether the next datagram is lost: at random, from a seed.
    fn loses(&mut self) -> bool {
        self.random = self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.random >> 33) % 100 < self.lost
    }

    /// Submits packets and returns the decisions.
    fn decide(&mut self, packets: u32) -> Vec<Decision> {
        self.submit(packets);
        let mut decisions = Vec::new();
        while self.endpoint.held_packets() > 0 {
            self.poll(&mut decisions);
        }
        assert_eq!(decisions.len(), packets as usize, "one decision for each packet");
        decisions
    }

    fn submit(&mut self, packets: u32) {
        let flow = Flow { source: 0, destination: 1, number: 3 };
        let packet = Submission { flow, length: 1_500, traffic_class: 0b10, custom: SchemeBytes::NONE };
        for _ in 0..packets {
            self.endpoint.submit(self.now(), &packet).unwrap();
        }
    }

    fn now(&self) -> Timestamp {
        Timestamp(self.start.elapsed().as_nanos() as u64)
    }

    fn poll(&mut self, decisions: &mut Vec<Decision>) {
        let now = self.now();
        self.endpoint.tick(now, |_, decision| decisions.push(decision));
        let mut buffer = [0; 1_472];
        while let Some(transmit) = self.endpoint.transmit(now, &mut buffer) {
            // What is lost is sent again.
            if !self.loses() {
                let _ = self.socket.send(&buffer[..transmit.length]);
            }
        }
        if let Ok(length) = self.socket.recv(&mut buffer)
            && !self.loses()
        {
            let each = |_, decision| decisions.push(decision);
            let _ = self.endpoint.receive(self.now(), Arbiter::Primary, &buffer[..length], each);
        }
    }
}

/// Starts the program with the network of this test in `folder`, and returns its address.
fn start(folder: &Path, arguments: &[&str]) -> (Running, SocketAddr) {
    std::fs::write(folder.join("network.toml"), NETWORK).unwrap();
    let mut command = Command::new(THALWEG);
    command.args(["emulate", "network.toml", "--real-time", "--listen", "127.0.0.1:0", "--json"]);
    command.args(arguments);
    command.current_dir(folder).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut running = Running(command.spawn().unwrap());
    let mut line = String::new();
    BufReader::new(running.0.stderr.as_mut().unwrap()).read_line(&mut line).unwrap();
    let address = line.trim().strip_prefix("emulating 2 endpoints in real time on ");
    let address = address.unwrap_or_else(|| panic!("{line}")).parse().unwrap();
    (running, address)
}

impl Running {
    fn signal(&self, name: &str) {
        assert!(Command::new("kill").args([name, &self.0.id().to_string()]).status().unwrap().success());
    }

    /// Interrupts the program and returns its report.
    fn finish(mut self) -> String {
        self.signal("-INT");
        let mut stdout = String::new();
        self.0.stdout.as_mut().unwrap().read_to_string(&mut stdout).unwrap();
        assert!(self.0.wait().unwrap().success());
        stdout
    }
}

#[test]
fn an_arbiter_decides_until_it_is_interrupted_and_reports() {
    let folder = tempfile::tempdir().unwrap();
    let (running, address) = start(
        folder.path(),
        &["--output", "results", "--format", "csv", "--late-after", "1ms", "--late-share", "1"],
    );
    let decisions = Host::new(0, address).decide(200);
    let stdout = running.finish();

    let count = |expected| {
        let is_it =
            |one: &&Decision| matches!(one, Decision::Answered { verdict, .. } if *verdict == expected);
        decisions.iter().filter(is_it).count()
    };
    let [sent, marked, dropped] = [Verdict::Send, Verdict::SendMarked, Verdict::Drop].map(count);
    assert_eq!(sent + marked + dropped, 200, "{decisions:?}");
    // Packets of the rack spend at least a timeslot on each of two links.
    let is_emulated = |one: &Decision| match one {
        Decision::Answered { verdict: Verdict::Drop, .. } => true,
        Decision::Answered { emulated, .. } => emulated.nanos() > Nanos::from_micros(2),
        Decision::Expired => false,
    };
    assert!(decisions.iter().all(is_emulated), "{decisions:?}");
    let report: Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!(report["type"], "real_time_emulation");
    assert_eq!((&report["valid"], &report["scheme"]), (&Value::Bool(true), &Value::from("dctcp")));
    assert_eq!((&report["late_after_ns"], &report["max_late_share"]), (&1_000_000.into(), &1.0.into()));
    assert_eq!(
        (&report["requests"], &report["answers"], &report["in_flight"]),
        (&200.into(), &200.into(), &0.into())
    );
    let packets = &report["endpoints"][0]["packets"];
    assert_eq!(packets["delivered"], sent + marked);
    assert_eq!((&packets["marked"], &packets["dropped"]), (&marked.into(), &dropped.into()));
    // 20 % of 200 at the link from h0, within 6 standard deviations of 5.7.
    let losses = report["drops"].as_array().unwrap().iter().find(|drop| drop["reason"] == "link_loss");
    let losses = losses.unwrap_or_else(|| panic!("{report}"));
    assert_eq!(losses["place"], "h0");
    assert!((6..=74).contains(&losses["packets"].as_u64().unwrap()), "{losses}");
    let saved = std::fs::read_to_string(folder.path().join("results/real-time.json")).unwrap();
    assert_eq!(saved, stdout);
    let table = std::fs::read_to_string(folder.path().join("results/queues.csv")).unwrap();
    let rows: Vec<&str> = table.lines().skip(1).collect();
    assert!(
        !rows.is_empty() && rows.iter().all(|row| row.contains(",tor0,") && row.contains(",h1,")),
        "{table}"
    );
    assert_eq!(report["queue_samples_left_out"], 0);
    assert!(folder.path().join("results/queues.svg").exists());
}

#[test]
fn a_network_with_several_paths_is_refused_unless_real_ones_are_equal() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("network.toml");
    std::fs::write(&file, "duration = \"1ms\"\n[topology]\nshape = \"leaf_spine\"\n").unwrap();
    let file = file.to_str().unwrap();
    let arguments = [file, "--real-time", "--listen", "127.0.0.1:0", "--duration", "10ms"];
    let run = emulate(&arguments).ended_with(2);
    assert!(run.stderr.contains("network.toml: ") && run.stderr.contains("--equal-paths"), "{}", run.stderr);
    emulate(&[&arguments[..], &["--equal-paths"]].concat()).ended_with(0);
}

#[test]
fn an_arbiter_ends_after_its_duration_and_names_wrong_options() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("network.toml");
    std::fs::write(&file, format!("{NETWORK}\n[[packets]]\nsender = \"poisson\"\nload = 0.5\n")).unwrap();
    let file = file.to_str().unwrap();
    let run = emulate(&[file, "--real-time", "--listen", "127.0.0.1:0", "--duration", "20ms"]).ended_with(0);
    assert!(run.stderr.contains("[[packets]] has no effect in real time"), "{}", run.stderr);
    assert!(
        run.stdout.contains("0 requests, 0 answers") && run.stdout.contains("No endpoint has joined"),
        "{}",
        run.stdout
    );
    for (arguments, expected) in [
        (&["--listen", "127.0.0.1:0"][..], "--real-time"),
        (&["--real-time", "--late-share", "1.5"], "the share of late slots is 1.5: expected 0 to 1"),
        (
            &["--real-time", "--standby-of", "nowhere"],
            "invalid address \"nowhere\" of --standby-of: expected ADDRESS:PORT",
        ),
        (&["--real-time", "--listen", "nowhere"], "--listen"),
    ] {
        let run = emulate(&[&[file], arguments].concat()).ended_with(2);
        assert!(run.stderr.contains(expected), "{arguments:?}: {}", run.stderr);
    }
}

/// Each packet is decided once, and its delay is that of the path, although its shards share the processors.
#[test]
fn an_arbiter_with_several_threads_decides_once_on_every_packet() {
    let folder = tempfile::tempdir().unwrap();
    let (running, address) = start(folder.path(), &["--threads", "2", "--late-share", "1"]);
    let mut host = Host::new(0, address);
    // As many as an interface holds at once.
    let decisions: Vec<Decision> = (0..5).flat_map(|_| host.decide(100)).collect();
    let delays = decisions.iter().filter_map(|one| match one {
        Decision::Answered { verdict: Verdict::Drop, .. } => None,
        Decision::Answered { emulated, .. } => Some(emulated.nanos()),
        Decision::Expired => panic!("{decisions:?}"),
    });
    let delays: Vec<Nanos> = delays.collect();
    assert!(delays.len() > 300 && delays.iter().all(|delay| *delay > Nanos::from_micros(2)), "{delays:?}");
    let report: Value = serde_json::from_str(&running.finish()).unwrap();
    let packets = &report["endpoints"][0]["packets"];
    assert_eq!(packets["delivered"].as_u64(), Some(delays.len() as u64));
    assert_eq!(
        (&report["requests"], &report["answers"], &report["in_flight"]),
        (&500.into(), &500.into(), &0.into())
    );
    assert!(
        report["slots"].as_u64().unwrap() > 0 && report["queues"].as_array().unwrap().len() == 2,
        "{report}"
    );
    // Loss of the link, at the port of the shard.
    assert!(report["drops"].as_array().unwrap().iter().any(|drop| drop["reason"] == "link_loss"), "{report}");
}

/// SIGSTOP for 100 ms in the middle of packets, then one and ten percent of lost datagrams.
#[test]
fn an_arbiter_that_was_stopped_and_lost_datagrams_decides_once_on_every_packet() {
    let folder = tempfile::tempdir().unwrap();
    let (running, address) = start(folder.path(), &[]);
    let mut host = Host::new(0, address);
    host.decide(20);
    let mut decisions = Vec::new();
    running.signal("-STOP");
    host.submit(200);
    let stopped = Instant::now();
    while stopped.elapsed() < Duration::from_millis(100) {
        host.poll(&mut decisions);
    }
    assert_eq!(decisions, [], "a process that is stopped answers nothing");
    running.signal("-CONT");
    while host.endpoint.held_packets() > 0 {
        host.poll(&mut decisions);
    }
    assert_eq!(decisions.len(), 200);
    for (lost, rounds) in [(1, 20), (10, 100)] {
        host.lost = lost;
        (0..rounds).for_each(|_| drop(host.decide(10)));
    }
    let counters = *host.endpoint.counters();
    assert_eq!((counters.submitted, counters.expired), (1_420, 0), "{counters:?}");
    assert!(counters.requests_repeated > 0, "{counters:?}");
    let report: Value = serde_json::from_str(&running.finish()).unwrap();
    assert_eq!(report["valid"], false, "{report}");
    // The arbiter was due to look for packets each millisecond.
    assert!(report["worst_delay_ns"].as_u64() > Some(90_000_000), "{report}");
    assert_eq!((&report["requests"], &report["answers"]), (&1_420.into(), &1_420.into()), "{report}");
    let packets = &report["packets"];
    let [delivered, dropped] = ["delivered", "dropped"].map(|key| packets[key].as_u64().unwrap());
    assert_eq!((delivered, dropped), (counters.sent, counters.dropped), "{report}");
    // Of 100 datagrams with answers at the least, a tenth is lost: none with a probability of 0.9^100, 3 in 100,000.
    assert!(report["endpoints"][0]["answers_repeated"].as_u64() > Some(0), "{report}");
}
