//! `thalweg emulate --real-time`: a plain endpoint asks the program.

use std::io::{BufRead as _, BufReader, Read as _};
use std::net::{SocketAddr, UdpSocket};
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

[scheme]
name = \"dctcp\"
buffer = 40
threshold = 10
";

struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Submits packets of an endpoint and returns the decisions.
fn decide(arbiter: SocketAddr, packets: u32) -> Vec<Decision> {
    let options = EndpointOptions { deadline: Nanos::from_secs(60), ..EndpointOptions::default() };
    let mut endpoint = Endpoint::new(options, Session::new(7).unwrap()).unwrap();
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.connect(arbiter).unwrap();
    socket.set_read_timeout(Some(Duration::from_millis(1))).unwrap();
    let start = Instant::now();
    let now = || Timestamp(start.elapsed().as_nanos() as u64);
    let flow = Flow { source: 0, destination: 1, number: 3 };
    let packet = Submission { flow, length: 1_500, traffic_class: 0b10, custom: SchemeBytes::NONE };
    for _ in 0..packets {
        endpoint.submit(now(), &packet).unwrap();
    }
    let mut decisions = Vec::new();
    let mut buffer = [0; 1_472];
    while decisions.len() < packets as usize {
        endpoint.tick(now(), |_, decision| decisions.push(decision));
        while let Some(transmit) = endpoint.transmit(now(), &mut buffer) {
            // What is lost is sent again.
            let _ = socket.send(&buffer[..transmit.length]);
        }
        if let Ok(length) = socket.recv(&mut buffer) {
            let each = |_, decision| decisions.push(decision);
            let _ = endpoint.receive(now(), Arbiter::Primary, &buffer[..length], each);
        }
    }
    decisions
}

#[test]
fn an_arbiter_decides_until_it_is_interrupted_and_reports() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("network.toml"), NETWORK).unwrap();
    let mut command = Command::new(THALWEG);
    command.args(["emulate", "network.toml", "--real-time", "--listen", "127.0.0.1:0"]);
    command.args(["--json", "--output", "results", "--late-after", "1ms", "--late-share", "1"]);
    command.current_dir(folder.path()).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut running = Running(command.spawn().unwrap());
    let mut line = String::new();
    BufReader::new(running.0.stderr.as_mut().unwrap()).read_line(&mut line).unwrap();
    let address = line.trim().strip_prefix("emulating 2 endpoints in real time on ");
    let address = address.unwrap_or_else(|| panic!("{line}"));
    let decisions = decide(address.parse().unwrap(), 200);
    Command::new("kill").args(["-INT", &running.0.id().to_string()]).status().unwrap();
    let mut stdout = String::new();
    running.0.stdout.as_mut().unwrap().read_to_string(&mut stdout).unwrap();
    assert!(running.0.wait().unwrap().success());

    let count = |verdict| decisions.iter().filter(|one| **one == Decision::Answered(verdict)).count();
    let [sent, marked, dropped] = [Verdict::Send, Verdict::SendMarked, Verdict::Drop].map(count);
    assert_eq!(sent + marked + dropped, 200, "{decisions:?}");
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
    let saved = std::fs::read_to_string(folder.path().join("results/real-time.json")).unwrap();
    assert_eq!(saved, stdout);
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
        (&["--real-time", "--threads", "2"], "--threads"),
    ] {
        let run = emulate(&[&[file], arguments].concat()).ended_with(2);
        assert!(run.stderr.contains(expected), "{arguments:?}: {}", run.stderr);
    }
}
