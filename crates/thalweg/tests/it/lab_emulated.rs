//! `thalweg lab up --emulate`: real applications over an emulated network, from creation to removal.

#![cfg(target_os = "linux")]

use std::io::Write as _;
use std::path::Path;
use std::process::Command;
use std::sync::PoisonError;
use std::time::Duration;

use serde_json::Value;
use thalweg_lab::{Headroom, Verdict};

use crate::live::SERIAL;
use crate::program::{Run, THALWEG, thalweg_in};

/// A star: 100 Mbit/s, 20 ms from host to host.
const STAR: &str = "\
duration = \"1s\"

[topology]
shape = \"rack\"
endpoints = 3
rate = \"100mbps\"
delay = \"10ms\"
";

/// Reports a skipped test directly to standard error, because the test runner captures `eprintln!`.
fn skip(reason: impl std::fmt::Display) {
    let _ = std::io::stderr().write_all(format!("skipped: lab_emulated: {reason}\n").as_bytes());
}

/// A lab that is removed even if the test fails.
struct Lab<'a> {
    folder: &'a Path,
    prefix: String,
}

impl Lab<'_> {
    fn run(&self, arguments: &[&str], command: &[&str]) -> Run {
        let prefix = ["--prefix", &self.prefix];
        let rest = if command.is_empty() { vec![] } else { [&["--"], command].concat() };
        thalweg_in(self.folder, &[&["lab"], arguments, &prefix, &rest].concat())
    }

    fn exec(&self, host: &str, command: &[&str]) -> String {
        self.run(&["exec", host], command).ended_with(0).stdout
    }

    fn status(&self) -> Value {
        self.run(&["status", "--json"], &[]).ended_with(0).lines().remove(0)
    }

    /// All pings take at least the emulated round trip of 40 ms, and one of them little more, unless the machine is busy.
    fn ping(&self, options: &[&str]) {
        let ping = ["ping", "-c", "5", "-i", "0.05", "-W", "5"];
        let (text, headroom) = Headroom::measure(|| self.exec("h0", &[&ping[..], options].concat())).unwrap();
        let times = text.split("min/avg/max/mdev = ").nth(1).unwrap_or_else(|| panic!("{text}"));
        let least: f64 = times.split('/').next().unwrap().parse().unwrap();
        assert!(least >= 40.0, "{text}");
        if least >= 80.0 && headroom.verdict() == Verdict::Inconclusive {
            return skip(format!("{least} ms, with too little time to spare: {headroom:?}"));
        }
        assert!(least < 80.0, "{text}");
    }
}

impl Drop for Lab<'_> {
    fn drop(&mut self) {
        self.run(&["down"], &[]);
    }
}

/// The states of the hosts' endpoints, then those of the arbiters.
fn states(status: &Value) -> Vec<String> {
    let of_hosts = status["hosts"].as_array().unwrap().iter().map(|host| &host["endpoint"]);
    let all = of_hosts.chain(status["arbiters"].as_array().unwrap());
    all.map(|process| process["state"].as_str().unwrap().to_owned()).collect()
}

fn pids(status: &Value) -> Vec<u64> {
    let of_hosts = status["hosts"].as_array().unwrap().iter().map(|host| &host["endpoint"]);
    let all = of_hosts.chain(status["arbiters"].as_array().unwrap());
    all.map(|process| process["pid"].as_u64().unwrap()).collect()
}

/// Whether a process has not ended.
fn is_running(pid: u64) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
}

#[test]
fn applications_use_an_emulated_network_from_creation_to_removal() {
    let _alone = SERIAL.lock().unwrap_or_else(PoisonError::into_inner);
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("star.toml"), STAR).unwrap();
    let lab = Lab { folder: folder.path(), prefix: format!("e{}-", std::process::id() % 10_000_000) };
    let up = ["up", "--emulate", "star.toml", "--standby", "--late-after", "10ms", "--output", "results"];
    let created = lab.run(&up, &[]);
    let is_impossible = ["needs root", "needs Linux 6.6", "needs TAP"];
    if is_impossible.iter().any(|reason| created.stderr.contains(reason)) {
        return skip(created.stderr);
    }
    let created = created.ended_with(0).stdout;
    assert!(created.contains("20.0 ms one way, 40.0 ms round trip, up to 100 Mbit/s"), "{created}");

    // A secondary arbiter that waits for a processor for long takes over without need.
    let works = |status: &Value| {
        let states = states(status);
        states[..4] == ["running"; 4] && ["waiting", "running"].contains(&states[4].as_str())
    };
    let status = std::iter::repeat_with(|| lab.status()).find(works).unwrap();
    assert_eq!(status["problems"], Value::Array(Vec::new()), "{status}");
    let count = |arbiter: usize| status["arbiters"][arbiter]["live"]["endpoints"].as_u64().unwrap();
    assert!(count(0) + count(1) >= 3, "{status}");
    lab.ping(&["10.0.0.2"]);
    lab.ping(&["-6", "fd00::2"]);
    // That of the MAC address of h1. The first packets wait until the addresses are known to be unique.
    let link_local = ["-6", "fe80::54:57ff:fe00:1%eth0"];
    lab.exec("h0", &[&["ping", "-c", "1", "-W", "10"], &link_local[..]].concat());
    lab.ping(&link_local);
    tcp(&lab);

    let [.., arbiter, _] = pids(&status)[..] else { panic!("{status}") };
    Command::new("kill").args(["-9", &arbiter.to_string()]).status().unwrap();
    // Until the endpoints have found the secondary arbiter.
    let expected = ["running", "running", "running", "dead", "running"];
    let status = std::iter::repeat_with(|| lab.status()).find(|status| states(status) == expected).unwrap();
    assert!(
        status["problems"][0].as_str().unwrap().starts_with("the arbiter is dead, `thalweg lab restart`"),
        "{status}"
    );
    lab.ping(&["10.0.0.3"]);
    Command::new("kill").args(["-9", &pids(&status)[2].to_string()]).status().unwrap();
    let text = std::iter::repeat_with(|| lab.run(&["status"], &[]).ended_with(0).stdout);
    let text = text.into_iter().find(|text| text.contains("the endpoint of h2 is dead"));
    assert!(text.unwrap().contains("the arbiter is dead, `thalweg lab restart`"));
    restarted_and_stopped(&lab);
    let failed = lab.run(&["fail", "h0"], &[]).ended_with(1).stderr;
    assert!(failed.contains("is emulated, it has no switches"), "{failed}");

    let refused = lab.run(&["run", "udp"], &[]).ended_with(1).stderr;
    assert!(refused.contains("exists already") || refused.contains("iperf3"), "{refused}");

    let status = lab.status();
    let down = lab.run(&["down"], &[]).ended_with(0).stdout;
    let reports = ["results/real-time.json", "results/standby/real-time.json"];
    assert!(
        down.contains("removed 4 namespaces") && reports.iter().all(|report| down.contains(report)),
        "{down}"
    );
    is_gone(&lab, &status);
    let report = std::fs::read_to_string(folder.path().join("results/standby/real-time.json")).unwrap();
    assert!(serde_json::from_str::<Value>(&report).unwrap()["requests"].as_u64() > Some(0), "{report}");
    let log = std::fs::read_to_string(folder.path().join("results/endpoint-h0.log")).unwrap();
    assert!(log.contains("arbiter_switched") && log.contains("\"type\":\"summary\""), "{log}");
    interrupted(&lab);
}

/// What has died is started again, and what was stopped is named.
fn restarted_and_stopped(lab: &Lab<'_>) {
    let again = lab.run(&["restart"], &[]).ended_with(0).stdout;
    assert_eq!(again, "started again: the arbiter, the endpoint of h2\n");
    let until = |expected: [&str; 5]| {
        let statuses = std::iter::repeat_with(|| lab.status());
        statuses
            .take(300)
            .find(|status| states(status) == expected)
            .unwrap_or_else(|| panic!("{}", lab.status()))
    };
    // The secondary arbiter goes on deciding, also for the new endpoint.
    let status = until(["running", "running", "running", "waiting", "running"]);
    lab.ping(&["10.0.0.3"]);
    assert_eq!(lab.run(&["restart"], &[]).ended_with(0).stdout, "the arbiter and all endpoints run\n");
    let signal =
        |name: &str| Command::new("kill").args([name, &pids(&status)[1].to_string()]).status().unwrap();
    signal("-STOP");
    until(["running", "stopped", "running", "waiting", "running"]);
    signal("-CONT");
    lab.exec("h1", &["ip", "link", "set", "eth0", "down"]);
    until(["running", "interface_down", "running", "waiting", "running"]);
    lab.exec("h1", &["ip", "link", "set", "eth0", "up"]);
    until(["running", "running", "running", "waiting", "running"]);
}

/// TCP reaches the rate of the emulated network, and does not exceed it.
fn tcp(lab: &Lab<'_>) {
    if Command::new("iperf3").arg("--version").output().is_err() {
        return skip("no iperf3");
    }
    lab.exec("h1", &["iperf3", "--server", "--one-off", "--daemon"]);
    let client = ["iperf3", "--client", "10.0.0.2", "--time", "3", "--json"];
    let output = std::thread::scope(|scope| {
        let client = scope.spawn(|| lab.exec("h0", &client));
        std::thread::sleep(Duration::from_secs(1));
        // Its queue is short, as at a real interface, also for other connections.
        lab.ping(&["10.0.0.2"]);
        client.join().unwrap()
    });
    let goodput = serde_json::from_str::<Value>(&output).unwrap()["end"]["sum_received"]["bits_per_second"]
        .as_f64()
        .unwrap_or_else(|| panic!("{output}"));
    let status = lab.status();
    let is_valid = (0..2).all(|arbiter| status["arbiters"][arbiter]["live"]["valid"] == true);
    assert!(goodput <= 100e6, "{goodput}");
    assert!(goodput > 33e6 || !is_valid, "{goodput}");
}

/// Nothing is left of a lab.
fn is_gone(lab: &Lab<'_>, status: &Value) {
    let left: Vec<_> = ["/run/netns", "/run/thalweg"]
        .iter()
        .flat_map(|folder| std::fs::read_dir(folder).unwrap())
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.starts_with(&lab.prefix))
        .collect();
    assert!(left.is_empty(), "{left:?}");
    let running: Vec<_> = pids(status).into_iter().filter(|&pid| is_running(pid)).collect();
    assert!(running.is_empty(), "{running:?} of {status}");
}

/// What is left of a lab that lost a namespace is recognised, and removed.
fn interrupted(lab: &Lab<'_>) {
    let created = lab.run(&["up", "--emulate", "star.toml", "--json"], &[]).ended_with(0).lines().remove(0);
    assert_eq!(states(&created), ["running"; 4], "{created}");
    let deleted = format!("{}h1", lab.prefix);
    assert!(Command::new("ip").args(["netns", "delete", &deleted]).status().unwrap().success());
    let error = lab.run(&["status"], &[]).ended_with(1).stderr;
    let expected = format!("the namespace {deleted} is missing; remove what is left with `thalweg lab down`");
    assert!(error.contains(&expected), "{error}");
    let down = lab.run(&["down"], &[]).ended_with(0).stdout;
    assert!(down.contains("removed 3 namespaces, killed 4 processes"), "{down}");
    is_gone(lab, &created);
}

/// The last lab restores the machine, whichever ends first.
#[test]
fn hosts_leave_the_processor_of_the_arbiter_to_it_until_the_last_lab_ends() {
    const LIMIT: &str = "/proc/sys/kernel/sched_rt_runtime_us";
    let _alone = SERIAL.lock().unwrap_or_else(PoisonError::into_inner);
    let processors = std::thread::available_parallelism().unwrap().get();
    let Ok(before) = std::fs::read_to_string(LIMIT) else { return skip("real-time priority has no limit") };
    if processors < 2 {
        return skip("one processor");
    }
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("star.toml"), STAR).unwrap();
    let prefixes = ["f", "g"].map(|first| format!("{first}{}-", std::process::id() % 10_000_000));
    let [first, second] = prefixes.map(|prefix| Lab { folder: folder.path(), prefix });
    for lab in [&first, &second] {
        let created = lab.run(&["up", "--emulate", "star.toml", "--late-after", "10ms"], &[]);
        if ["needs root", "needs Linux 6.6", "needs TAP"].iter().any(|reason| created.stderr.contains(reason))
        {
            return skip(created.stderr);
        }
        created.ended_with(0);
        assert_eq!(lab.exec("h0", &["nproc"]).trim_end(), (processors - 1).to_string());
    }
    let limit = || std::fs::read_to_string(LIMIT).unwrap();
    let during = limit();
    first.run(&["down"], &[]).ended_with(0);
    assert_eq!(limit(), during, "the second lab needs it");
    second.run(&["down"], &[]).ended_with(0);
    assert_eq!(limit(), before);
}

#[test]
fn hosts_use_the_congestion_control_of_the_file_or_the_chosen_one() {
    let _alone = SERIAL.lock().unwrap_or_else(PoisonError::into_inner);
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("star.toml"), format!("{STAR}\n[scheme]\nname = \"dctcp\"\n")).unwrap();
    let lab = Lab { folder: folder.path(), prefix: format!("c{}-", std::process::id() % 10_000_000) };
    let up = ["up", "--emulate", "star.toml", "--json", "--late-after", "10ms", "--output", "results"];
    let created = lab.run(&up, &[]);
    if ["needs root", "needs Linux 6.6", "needs TAP", "eBPF"]
        .iter()
        .any(|reason| created.stderr.contains(reason))
    {
        return skip(created.stderr);
    }
    // The namespaces keep what `up` registered, although it has ended.
    let status = created.ended_with(0).lines().remove(0);
    let name = status["congestion_control"].as_str().unwrap();
    assert!(["dctcp", "thalweg_dctcp"].contains(&name) && status["ecn"] == true, "{status}");
    for host in ["h0", "h2"] {
        let read = |parameter: &str| lab.exec(host, &["cat", &format!("/proc/sys/net/ipv4/{parameter}")]);
        assert_eq!(read("tcp_congestion_control").trim_end(), name);
        assert_eq!(read("tcp_ecn").trim_end(), "1");
    }
    if Command::new("iperf3").arg("--version").output().is_err() {
        return skip("no iperf3");
    }
    // Two senders fill the link of the receiver.
    let iperf3 = || {
        let send = |(host, port): (&str, &str)| {
            let client = ["iperf3", "--client", "10.0.0.2", "--port", port, "--time", "3", "--json"];
            let end = serde_json::from_str::<Value>(&lab.exec(host, &client)).unwrap()["end"].take();
            let sides = ["sender_tcp_congestion", "receiver_tcp_congestion"];
            sides.map(|side| end[side].as_str().unwrap_or_else(|| panic!("{end}")).to_owned())
        };
        let senders = [("h0", "5201"), ("h2", "5202")];
        for (_, port) in senders {
            let listening = format!("until ss -Htln sport = :{port} | grep -q .; do sleep 0.05; done");
            let server = format!("iperf3 --server --port {port} --one-off --daemon && {listening}");
            lab.exec("h1", &["sh", "-c", &server]);
        }
        std::thread::scope(|scope| {
            senders.map(|sender| scope.spawn(move || send(sender))).map(|thread| thread.join().unwrap())
        })
    };
    assert_eq!(iperf3(), [[name, name], [name, name]]);
    // Its queue marks packets.
    lab.run(&["down"], &[]).ended_with(0);
    let report = std::fs::read_to_string(folder.path().join("results/real-time.json")).unwrap();
    assert!(
        serde_json::from_str::<Value>(&report).unwrap()["packets"]["marked"].as_u64() > Some(0),
        "{report}"
    );

    let status = lab.run(&[&up[..], &["--tcp", "cubic"]].concat(), &[]).ended_with(0).lines().remove(0);
    assert!(status["congestion_control"] == "cubic" && status["ecn"] == false, "{status}");
    assert_eq!(iperf3(), [["cubic", "cubic"], ["cubic", "cubic"]]);
    let error = lab.run(&[&up[..], &["--tcp", "carrier-pigeon"]].concat(), &[]).ended_with(1).stderr;
    assert!(error.contains("unknown congestion control \"carrier-pigeon\""), "{error}");
}

#[test]
fn the_latency_of_the_emulation_is_measured() {
    let _alone = SERIAL.lock().unwrap_or_else(PoisonError::into_inner);
    let folder = tempfile::tempdir().unwrap();
    let prefix = format!("l{}-", std::process::id() % 10_000_000);
    let arguments =
        ["lab", "run", "emulated-latency", "--trials", "1", "--duration", "100ms", "--output", "."];
    let run = thalweg_in(folder.path(), &[&arguments[..], &["--prefix", &prefix]].concat());
    if ["needs root", "needs Linux 6.6", "needs TAP"].iter().any(|reason| run.stderr.contains(reason)) {
        return skip(run.stderr);
    }
    let text = run.ended_with(0).stdout;
    let json = std::fs::read_to_string(folder.path().join("emulated-latency.json")).unwrap();
    let json: Value = serde_json::from_str(&json).unwrap();
    for measurement in json["measurements"].as_array().unwrap() {
        let count = |key: &str| measurement[key].as_u64().unwrap();
        assert_eq!(count("sent"), count("packets_per_second") / 10, "{measurement}");
        let arrived = measurement["latency"]["count"].as_u64().unwrap();
        assert_eq!((arrived + count("lost"), count("duplicates")), (count("sent"), 0), "{measurement}");
        assert!(arrived > 0, "{text}");
    }
    let emulated = |it: &&Value| it["path"] == "emulated";
    let asked: u64 = json["measurements"]
        .as_array()
        .unwrap()
        .iter()
        .filter(emulated)
        .map(|it| it["sent"].as_u64().unwrap())
        .sum();
    let arbiters = json["arbiters"].as_array().unwrap();
    let requests: u64 = arbiters.iter().map(|arbiter| arbiter["requests"].as_u64().unwrap()).sum();
    assert!(requests <= asked + 100 * arbiters.len() as u64, "marked datagrams pass: {text}");
    assert!(folder.path().join("emulated-latency.svg").exists());
}

/// Real TCP and emulated hosts share the rate of the same emulated link. The machine may be too busy for valid queues.
#[test]
fn throughput_and_queues_of_real_and_emulated_hosts_are_measured() {
    let _alone = SERIAL.lock().unwrap_or_else(PoisonError::into_inner);
    let folder = tempfile::tempdir().unwrap();
    let prefix = format!("q{}-", std::process::id() % 10_000_000);
    let arguments =
        ["lab", "run", "emulated-queues", "--trials", "1", "--duration", "1s", "--rate", "50mbps"];
    let more = ["--output", ".", "--json", "--prefix", &prefix];
    let run = thalweg_in(folder.path(), &[&arguments[..], &more].concat());
    let reasons = ["needs root", "needs Linux 6.6", "needs TAP", "needs iperf3"];
    if reasons.iter().any(|reason| run.stderr.contains(reason)) {
        return skip(run.stderr);
    }
    let line = run.ended_with(0).lines().remove(0);
    let runs = line["runs"].as_array().unwrap();
    assert_eq!(
        runs.iter().map(|run| run["scheme"].as_str().unwrap()).collect::<Vec<_>>(),
        ["droptail", "red", "dctcp"]
    );
    for run in runs {
        let payload = line["link_payload_bps"].as_f64().unwrap();
        let share = |hosts: &str| run[hosts]["goodput_bps"].as_f64().unwrap() / payload;
        // A hole that is filled hands over what came before the measurement.
        assert!((0.2..1.5).contains(&share("real")) && (0.8..1.5).contains(&share("hosts")), "{run}");
        let samples = |hosts: &str| run[hosts]["queue"]["samples"].as_u64().unwrap();
        // Every fifth timeslot: 1.2 ms.
        assert!(samples("real") > 100 && (800..=820).contains(&samples("hosts")), "{run}");
        assert!(
            run["overhead_ns"].as_u64().unwrap() > 0 && run["protocol_share"].as_f64().unwrap() > 0.0,
            "{run}"
        );
    }
    assert!(folder.path().join("emulated-queues.svg").exists());
}

#[test]
fn completion_times_of_requests_are_measured() {
    let _alone = SERIAL.lock().unwrap_or_else(PoisonError::into_inner);
    let folder = tempfile::tempdir().unwrap();
    let prefix = format!("r{}-", std::process::id() % 10_000_000);
    let options = ["--scheme", "kernel,pfabric", "--load", "0.3", "--duration", "2s", "--rate", "200mbps"];
    let arguments = [&["lab", "run", "emulated-rpc", "--output", ".", "--prefix", &prefix], &options[..]];
    let run = thalweg_in(folder.path(), &arguments.concat());
    if ["needs root", "needs Linux 6.6", "needs TAP"].iter().any(|reason| run.stderr.contains(reason)) {
        return skip(run.stderr);
    }
    let text = run.ended_with(0).stdout;
    let json = std::fs::read_to_string(folder.path().join("emulated-rpc.json")).unwrap();
    let json: Value = serde_json::from_str(&json).unwrap();
    let runs = json["runs"].as_array().unwrap();
    assert_eq!(runs.iter().map(|run| &run["network"]).collect::<Vec<_>>(), ["kernel", "pfabric"]);
    // Both have the same requests, and all responses have arrived.
    let table = std::fs::read_to_string(folder.path().join("emulated-rpc.csv")).unwrap();
    let sizes = |network: &str| {
        let rows = table.lines().filter(|row| row.starts_with(network));
        let mut sizes: Vec<u64> = rows.map(|row| row.split(',').nth(3).unwrap().parse().unwrap()).collect();
        sizes.sort_unstable();
        sizes
    };
    assert!(sizes("kernel").len() > 3 && sizes("kernel") == sizes("pfabric"), "{table}");
    for (run, unloaded) in runs.iter().zip(json["unloaded"].as_array().unwrap()) {
        assert_eq!(run["unfinished"], 0, "{text}");
        assert_eq!(run["requests"], run["all"]["flows"], "{text}");
        // The largest response takes at least its time on the link, 29.2 MB at 200 Mbit/s, and a little more for headers.
        let last = unloaded["sizes"].as_array().unwrap().last().unwrap();
        let (seconds, on_the_link) = (last["mean_ns"].as_f64().unwrap() / 1e9, 29.2e6 * 8.0 / 200e6);
        assert!(last["bytes"] == 29_200_000 && seconds > on_the_link, "{last}");
        let is_valid = unloaded["emulation"].is_null() || unloaded["emulation"]["valid"] == true;
        assert!(seconds < 2.0 * on_the_link || !is_valid, "{unloaded}");
    }
    assert!(
        runs[0]["emulation"].is_null() && runs[1]["emulation"]["requests"].as_u64() > Some(1_000),
        "{text}"
    );
    assert!(folder.path().join("emulated-rpc.svg").exists());
    let refused = ["lab", "run", "collide", "--scheme", "hull"];
    assert!(thalweg_in(folder.path(), &refused).ended_with(2).stderr.contains("it applies to emulated-rpc"));
}

#[test]
fn what_cannot_be_emulated_is_refused_before_anything_is_created() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    write("star.toml", STAR);
    write("wrong.toml", &STAR.replace("10ms", "10 parsecs"));
    write("large.toml", &STAR.replace("endpoints = 3", "endpoints = 65"));
    write("serve.toml", "[collector]\n");
    for (arguments, expected) in [
        (&["--emulate", "none.toml"][..], "none.toml"),
        (&["--emulate", "wrong.toml"], "wrong.toml:7: delay is \"10 parsecs\""),
        (
            &["--emulate", "large.toml"],
            "large.toml: the emulated network has 65 endpoints: expected at most 64",
        ),
        (&["--emulate", "star.toml", "leaf-spine"], "cannot be used with"),
        (&["--emulate", "star.toml", "--rate", "1gbps"], "cannot be used with"),
        (&["--emulate", "star.toml", "--seed", "x"], "--seed"),
        (&["--seed", "7", "leaf-spine"], "--seed needs --emulate FILE"),
        (&["--tcp", "dctcp", "leaf-spine"], "--tcp needs --emulate FILE"),
        (&["--standby", "leaf-spine"], "--standby needs --emulate FILE"),
        (&[], "TOPOLOGY"),
    ] {
        let mut run = Command::new(THALWEG);
        run.args(["lab", "up", "--prefix", "none-"]).args(arguments);
        let run = Run::from(run.current_dir(folder.path()).output().unwrap()).ended_with(2);
        assert!(run.stderr.contains(expected), "{arguments:?}: {}", run.stderr);
    }
    assert!(!Path::new("/run/thalweg/none-emulation.json").exists());
}
