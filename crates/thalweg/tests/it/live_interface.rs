//! `thalweg watch` on interfaces that appear and disappear, and without privileges.
//!
//! Tests with network namespaces are skipped without root, `ip` (iproute2) and `ping`.

use std::fs;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::Value;

use crate::live::{Link, SENDER, Watch};
use crate::program::{self, Run, THALWEG, number, time_ns, watch};

const PING: [(&str, &str); 1] = [("ping", "-V")];
const ICMP: u64 = 1;

fn now_ns() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as u64
}

fn is_ping(record: &&Value) -> bool {
    number(&record["flow"], "protocol") == ICMP
}

#[test]
fn an_interface_that_goes_down_and_up_is_still_measured() {
    let Some(link) = Link::set_up("an_interface_that_goes_down_and_up_is_still_measured", &PING) else {
        return;
    };
    let watch = Watch::start(&link, &["--threads", "2"]);
    link.ping_until_answered();
    sleep(Duration::from_millis(200));
    link.ip_link(&format!("set {} down", link.interface));
    let down_ns = now_ns();
    sleep(Duration::from_millis(300));
    link.ip_link(&format!("set {} up", link.interface));
    link.ping_until_answered();
    sleep(Duration::from_millis(300));
    let ended = watch.interrupt();
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""));
    let pings: Vec<_> = ended.of_type("flow").filter(is_ping).collect();
    let answered =
        |record: &&&Value| number(record, "packets") == 1 && number(record, "reverse_packets") == 1;
    let (before, after): (Vec<_>, Vec<_>) =
        pings.iter().partition(|record| time_ns(record, "flow_start") < down_ns);
    assert!(before.iter().any(answered), "none before it was down: {pings:#?}");
    assert!(after.iter().any(answered), "none after it was up again: {pings:#?}");
    assert_eq!(number(ended.summary(), "kernel_drops"), 0);
}

#[test]
fn a_run_on_a_silent_interface_ends_after_its_duration() {
    let Some(link) = Link::set_up("a_run_on_a_silent_interface_ends_after_its_duration", &[]) else { return };
    let ended = Watch::start(&link, &["--duration", "300ms", "--capture-filter", "udp port 9"]).end();
    assert_eq!((ended.code, number(ended.summary(), "packets")), (Some(0), 0));
}

#[test]
fn a_deleted_interface_ends_the_run_with_its_results() {
    const NAME: &str = "a_deleted_interface_ends_the_run_with_its_results";
    for workers in ["1", "2"] {
        let Some(link) = Link::set_up(NAME, &PING) else { return };
        let watch = Watch::start(&link, &["--threads", workers]);
        link.ping_until_answered();
        sleep(Duration::from_millis(300));
        link.ip_link(&format!("delete {}", link.interface));
        let ended = watch.end();
        assert_eq!(ended.code, Some(3), "{}", ended.stderr);
        assert_eq!(ended.stderr.matches("thalweg: warning: ").count(), 1, "{}", ended.stderr);
        assert!(ended.stderr.contains(&format!("`{}` was deleted", link.interface)), "{}", ended.stderr);
        assert!(ended.of_type("flow").any(|record| is_ping(&record)), "{:#?}", ended.lines);
        let cut_short = ended.summary()["incomplete_sources"].as_array().unwrap();
        assert_eq!(cut_short.len(), 1);
        assert_eq!(cut_short[0]["source"], *link.interface);
        assert!(number(ended.summary(), "packets") >= 2);
    }
}

#[test]
fn privileges_are_dropped_during_the_run() {
    let Some(link) = Link::set_up("privileges_are_dropped_during_the_run", &[]) else { return };
    let watch = Watch::start(&link, &[]);
    let mut thread_count = 0;
    for thread in fs::read_dir(format!("/proc/{}/task", watch.id())).unwrap() {
        let status = fs::read_to_string(thread.unwrap().path().join("status")).unwrap();
        let field = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
            line.split_whitespace().map(str::to_owned).collect::<Vec<_>>()
        };
        for set in ["CapInh:", "CapPrm:", "CapEff:", "CapAmb:"] {
            assert_eq!(field(set), ["0000000000000000"], "{set}\n{status}");
        }
        assert_eq!(field("NoNewPrivs:"), ["1"]);
        for ids in ["Uid:", "Gid:"] {
            assert!(field(ids).iter().all(|id| id != "0"), "{status}");
        }
        thread_count += 1;
    }
    assert!(thread_count >= 2, "the workers run");
    assert_eq!(watch.interrupt().code, Some(0));
}

#[test]
fn a_selected_backend_is_used_and_reported() {
    const NAME: &str = "a_selected_backend_is_used_and_reported";
    for (backend, expected) in [
        ("prompt", "prompt AF_PACKET, as requested"),
        ("auto", "has an IP address, and AF_XDP would hide its packets from the host"),
    ] {
        let Some(link) = Link::set_up(NAME, &PING) else { return };
        let watch = Watch::start(&link, &["--threads", "2", "--backend", backend]);
        link.ping_until_answered();
        sleep(Duration::from_millis(300));
        let ended = watch.interrupt();
        assert_eq!(ended.code, Some(0));
        let name = format!("thalweg: {}: ", link.interface);
        assert!(ended.stderr.starts_with(&name) && ended.stderr.contains(expected), "{}", ended.stderr);
        let answered = ended
            .of_type("flow")
            .filter(is_ping)
            .any(|record| number(record, "packets") == 1 && number(record, "reverse_packets") == 1);
        assert!(answered, "{backend}: {:#?}", ended.lines);
    }
}

#[test]
fn af_xdp_reports_that_it_takes_packets_from_the_host() {
    const NAME: &str = "af_xdp_reports_that_it_takes_packets_from_the_host";
    let Some(link) = Link::set_up(NAME, &PING) else { return };
    let watch = Watch::start(&link, &["--backend", "af_xdp"]);
    // The sender no longer answers ARP requests either.
    let peer = link.interface.replace('s', "r");
    let neighbour = ["neighbour", "replace", SENDER, "lladdr", "02:00:00:00:00:01", "dev", &peer];
    assert!(link.at_receiver("ip").args(neighbour).status().unwrap().success());
    let ping = link.at_receiver("ping").args(["-c", "3", "-i", "0.2", "-W", "1", SENDER]).output().unwrap();
    assert!(!ping.status.success(), "nobody is to answer");
    let ended = watch.interrupt();
    assert_eq!(ended.code, Some(0));
    assert!(ended.stderr.contains("AF_XDP, as requested"), "{}", ended.stderr);
    assert!(ended.stderr.contains("incoming packets no longer reach it"), "{}", ended.stderr);
    let echo = ended.of_type("flow").find(is_ping).expect("a flow of pings");
    assert_eq!((number(echo, "packets"), number(echo, "reverse_packets")), (3, 0));
}

#[test]
fn a_missing_interface_is_refused_with_a_suggestion() {
    let run = watch(&["--json", "loo"]).ended_with(1);
    assert!(run.stderr.starts_with("thalweg: interface `loo` does not exist"), "{}", run.stderr);
    assert!(run.stderr.contains("did you mean `lo`?"), "{}", run.stderr);
    assert_eq!(run.stdout, "");
}

#[test]
fn a_missing_capability_is_reported_with_the_remedy() {
    const NAME: &str = "a_missing_capability_is_reported_with_the_remedy";
    if !program::is_installed("setpriv", "--version") {
        return program::skip(NAME, "needs setpriv");
    }
    let without = ["--bounding-set=-net_raw", "--inh-caps=-net_raw", THALWEG, "watch", "--json", "lo"];
    let output = Command::new("setpriv").args(without).stdin(Stdio::null()).output().unwrap();
    let run = Run::from(output);
    if run.stderr.starts_with("setpriv:") {
        return program::skip(NAME, "setpriv may not take capabilities away");
    }
    let run = run.ended_with(1);
    for part in ["CAP_NET_RAW", "setcap cap_net_raw", "`lo`"] {
        assert!(run.stderr.contains(part), "no {part} in {}", run.stderr);
    }
}
