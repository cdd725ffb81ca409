//! `thalweg watch --in-kernel`: sketches inside the kernel.
//!
//! Tests with network namespaces are skipped without root, `ip` (iproute2) and `ping`.

use std::fs::File;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::live::{Link, RECEIVER, Running};
use crate::program::{THALWEG, number, watch};

const PING: [(&str, &str); 1] = [("ping", "-V")];

/// A process `thalweg watch --in-kernel --json` at the sender's end of the link.
struct InKernel {
    process: Running,
    folder: tempfile::TempDir,
}

impl InKernel {
    /// Starts it, and waits until it counts.
    fn start(link: &Link, arguments: &[&str]) -> InKernel {
        let folder = tempfile::tempdir().unwrap();
        let file = |name| File::create(folder.path().join(name)).unwrap();
        let child = link
            .at_sender(THALWEG)
            .args(["watch", "--in-kernel", "--json"])
            .args(arguments)
            .arg(&link.interface)
            .stdin(Stdio::null())
            .stdout(file("output"))
            .stderr(file("errors"))
            .spawn()
            .unwrap();
        let mut started = InKernel { process: Running(child), folder };
        started.wait_until("it counts", |it| {
            assert!(it.process.0.try_wait().unwrap().is_none(), "{}", it.read("errors"));
            it.read("errors").contains("counting at")
        });
        sleep(Duration::from_millis(100)); // until its threads run
        started
    }

    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.folder.path().join(name)).unwrap()
    }

    fn wait_until(&mut self, what: &str, mut holds: impl FnMut(&mut InKernel) -> bool) {
        let deadline = Instant::now() + Duration::from_secs(20);
        while !holds(self) {
            assert!(Instant::now() < deadline, "waited until {what}: {}", self.read("errors"));
            sleep(Duration::from_millis(20));
        }
    }

    fn signal(&self, signal: &str) {
        let id = self.process.0.id().to_string();
        assert!(Command::new("kill").args([signal, &id]).status().unwrap().success());
    }

    /// Waits until it ends. Returns its exit code and its lines.
    fn end(mut self) -> (Option<i32>, Vec<Value>) {
        self.wait_until("it ends", |it| it.process.0.try_wait().unwrap().is_some());
        let code = self.process.0.try_wait().unwrap().unwrap().code();
        let parse = |line| serde_json::from_str(line).unwrap();
        (code, self.read("output").lines().map(parse).collect())
    }
}

fn ping(link: &Link, count: u32) {
    let count = count.to_string();
    let arguments = ["-q", "-c", &count, "-i", "0.01", RECEIVER];
    assert!(link.at_sender("ping").args(arguments).stdout(Stdio::null()).status().unwrap().success());
}

#[test]
fn tasks_are_answered_from_the_kernel() {
    let Some(link) = Link::set_up("tasks_are_answered_from_the_kernel", &PING) else { return };
    link.ping_until_answered();
    let tasks = ["--tasks", "heavy:10%:src,distinct:src,entropy:src,moments:src", "--window", "1min"];
    let running = InKernel::start(&link, &tasks);
    ping(&link, 50);
    running.signal("-INT");
    let (code, lines) = running.end();
    assert_eq!(code, Some(0));
    let window = lines.iter().find(|line| line["type"] == "window").unwrap();
    let [heavy, distinct, entropy, moments] = window["tasks"].as_array().unwrap().as_slice() else {
        panic!("{window}")
    };
    // The interface receives the answers.
    assert_eq!(heavy["keys"][0]["key"], RECEIVER);
    assert!(heavy["keys"][0]["estimate"].as_f64().unwrap() >= 50.0, "{heavy}");
    assert!(distinct["distinct"].as_f64().unwrap() >= 0.99, "{distinct}");
    assert!(entropy["entropy"].as_f64().unwrap() < 2.0, "{entropy}");
    assert!(moments["l1"].as_f64().unwrap() >= 50.0, "{moments}");
    let summary = lines.last().unwrap();
    assert_eq!(summary["in_kernel"]["hook"], "XDP");
    assert_eq!(number(&summary["in_kernel"], "missed_keys"), 0);
    assert!(number(summary, "packets") >= 50);
    let (packets, ip) = (number(summary, "packets"), number(summary, "ip_packets"));
    assert_eq!(packets - ip, number(summary, "non_ip") + number(summary, "malformed"));
}

#[test]
fn a_deleted_interface_ends_counting_in_the_kernel_with_its_results() {
    let name = "a_deleted_interface_ends_counting_in_the_kernel_with_its_results";
    let Some(link) = Link::set_up(name, &PING) else { return };
    link.ping_until_answered();
    for hook in ["xdp", "tc"] {
        let Some(link) = Link::set_up(name, &PING) else { return };
        link.ping_until_answered();
        let running = InKernel::start(&link, &["--tasks", "heavy:10%", "--hook", hook, "--sampling", "1/2"]);
        ping(&link, 20);
        link.ip_link(&format!("delete {}", link.interface));
        let (code, lines) = running.end();
        assert_eq!(code, Some(3));
        let summary = lines.last().unwrap();
        assert!(number(summary, "packets") >= 20, "{summary}");
        let reason = summary["incomplete_sources"][0]["reason"].as_str().unwrap();
        assert!(reason.contains("the interface was removed"), "{reason}");
    }
}

#[test]
fn a_killed_process_leaves_no_program_behind() {
    let Some(link) = Link::set_up("a_killed_process_leaves_no_program_behind", &PING) else { return };
    let running = InKernel::start(&link, &["--tasks", "heavy:10%", "--hook", "xdp"]);
    let show = |link: &Link| {
        let output = link.at_sender("ip").args(["link", "show", &link.interface]).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    assert!(show(&link).contains("xdp"), "{}", show(&link));
    running.signal("-KILL");
    let (code, _) = running.end();
    assert_eq!(code, None);
    let deadline = Instant::now() + Duration::from_secs(5);
    while show(&link).contains("xdp") {
        assert!(Instant::now() < deadline, "{}", show(&link));
        sleep(Duration::from_millis(20));
    }
    // The interface still forwards.
    link.ping_until_answered();
}

#[test]
fn nothing_is_pinned_where_it_would_end_with_the_process() {
    let Some(link) = Link::set_up("nothing_is_pinned_where_it_would_end_with_the_process", &PING) else {
        return;
    };
    // `ip netns exec` gives the process mounts of its own, without the BPF file system.
    let arguments = ["watch", "--in-kernel", "--tasks", "heavy:1%", "--pin", "private", "--duration", "1s"];
    let output = link.at_sender(THALWEG).args(arguments).arg(&link.interface).output().unwrap();
    let errors = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{errors}");
    assert!(errors.contains("cannot pin private: this process has mounts of its own"), "{errors}");
    assert!(errors.contains("nsenter --net=/run/netns/NAME"), "{errors}");
}

#[test]
fn what_the_kernel_cannot_count_is_refused_by_name() {
    for (arguments, message) in [
        (&["eth0"][..], "--in-kernel: counts measurement tasks only (add --tasks)"),
        (&["--tasks", "hhh:1%", "eth0"], "task hhh:1% cannot be counted in the kernel: expected heavy"),
        (&["--tasks", "spread:src>9", "eth0"], "task spread:src>9 cannot be counted in the kernel"),
        (&["--tasks", "heavy:1%", "eth0", "eth1"], "expected one name, found eth0, eth1"),
        (
            &["--tasks", "heavy:1%", "--sampling", "correct", "eth0"],
            "expected 1, 1/2, ... 1/1024 or line-rate",
        ),
        (&["--tasks", "heavy:1%", "--decapsulate", "eth0"], "--decapsulate cannot be used here"),
        (&["--tasks", "heavy:1%", "--detector", "none", "eth0"], "--detector cannot be used here"),
        (&["--tasks", "heavy:1%", "--capture-filter", "udp", "eth0"], "--capture-filter cannot be used here"),
        (&["--tasks", "heavy:1%", "--pin", "a/b", "eth0"], "invalid name \"a/b\" of a pin"),
    ] {
        let run = watch(&[&["--in-kernel"][..], arguments].concat()).ended_with(2);
        assert!(run.stderr.contains(message), "{arguments:?}: {}", run.stderr);
    }
    let run = watch(&["--in-kernel", "--tasks", "heavy:1%", "lo1"]).ended_with(1);
    let message = "interface `lo1` does not exist (did you mean `lo`?); available: ";
    assert!(run.stderr.contains(message), "{}", run.stderr);
    let run = watch(&["--hook", "tc", "eth0"]).ended_with(2);
    assert!(run.stderr.contains("--hook cannot be used here"), "{}", run.stderr);
    let run = watch(&["--unpin", "nothing-of-this-name"]).ended_with(1);
    assert!(run.stderr.contains("no pinned sketches nothing-of-this-name"), "{}", run.stderr);
}
