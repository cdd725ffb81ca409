//! The loss that an SNMP agent counts lowers the rate threshold, and its absence raises it again.

use std::fs;
use std::io::Write as _;
use std::path::Path;

use serde_json::Value;

use super::Serve;
use super::polls::{Agent, credentials, folders, free_port, poll};
use crate::program::root;

/// Counters of a port whose primary queue receives 100,000 packets between two requests. It drops as many as the file says.
const COUNTERS_SCRIPT: &str = r#"#!/bin/sh
packets=0
drops=0
while read -r request; do
  case $request in
    PING) echo PONG ;;
    get) read -r oid
      value=
      case $oid in
        *.9999.7.1.1) packets=$((packets + 100000)); drops=$((drops + $(cat "$1"))); value=$packets ;;
        *.9999.7.1.2) value=$drops ;;
        *.2.2.1.19.1) drops=$((drops + $(cat "$1"))); value=$drops ;;
      esac
      if [ -n "$value" ]; then printf '%s\ncounter32\n%s\n' "$oid" "$value"; else echo NONE; fi ;;
    getnext) read -r oid; echo NONE ;;
    '') exit ;;
  esac
done
"#;

/// The queue objects of the script.
const PRIMARY: &str = "primary_oids = [\"1.3.6.1.4.1.8072.9999.9999.7.{index}.1\", \"1.3.6.1.4.1.8072.9999.9999.7.{index}.2\"]\n";

/// R at the start, as in the example.
const CONFIGURED: u64 = 20_000_000;

/// The lowest R: 5 % of the link.
const FLOOR: u64 = 5_000_000;

/// Creates the daemon of `examples/isolation` with a poll and a period that does not end, and an agent that drops `drops`
/// packets between two requests.
fn regulated(drops: u64, lines: &str) -> (Serve, Agent) {
    let serve = Serve::new("");
    let examples = root().join("examples/isolation");
    fs::copy(examples.join("link.toml"), serve.path("link.toml")).unwrap();
    let example = fs::read_to_string(examples.join("thalweg.toml")).unwrap();
    let example = example.replace("/tmp/thalweg-isolation", "state").replace("\"10s\"", "\"24h\"");
    let port = free_port();
    let poll = format!(
        "poll = \"r1\"\nstep = \"10mbps\"\n[[poll]]\nname = \"r1\"\ninterface = \"lo\"\ntarget = \"127.0.0.1:{port}\"\n\
         credentials_file = \"snmp\"\ninterval = \"200ms\"\naverage = 2\ncache_time = \"0s\"\ntimeout = \"1s\"\nretries = 0\n"
    );
    let text = format!("[api]\nlisten = \"{}\"\n{example}\n{poll}{lines}", serve.address);
    fs::write(serve.path("thalweg.toml"), text).unwrap();
    credentials(&serve, "community geheim99\n");
    fs::write(serve.path("counters.sh"), COUNTERS_SCRIPT).unwrap();
    set_drops(&serve, drops);
    let persist = |subtree: &str| {
        let file = |name| serve.path(name).display().to_string();
        format!("pass_persist {subtree} /bin/sh {} {}\n", file("counters.sh"), file("drops"))
    };
    let own = [persist(".1.3.6.1.4.1.8072.9999.9999.7"), persist(".1.3.6.1.2.1.2.2.1.19")].concat();
    fs::write(serve.path("agent.conf"), format!("rocommunity geheim99\n{own}")).unwrap();
    let agent = Agent::start(&serve, port);
    (serve, agent)
}

/// Sets the packets that are dropped between two requests.
fn set_drops(serve: &Serve, drops: u64) {
    let new = serve.path("drops.new");
    fs::write(&new, drops.to_string()).unwrap();
    fs::rename(new, serve.path("drops")).unwrap();
}

fn threshold(serve: &Serve) -> Value {
    serve.get("/v1/threshold").unwrap()
}

fn rate(serve: &Serve) -> u64 {
    threshold(serve)["rate_bps"].as_u64().unwrap()
}

fn reason(serve: &Serve) -> String {
    threshold(serve)["regulator"]["reason"].as_str().unwrap_or_default().to_owned()
}

fn failed(serve: &Serve) -> u64 {
    poll(serve, 0)["counts"]["failed"].as_u64().unwrap()
}

/// Whether there is an agent to poll; says so if not.
fn has_agent(test: &str) -> bool {
    let found = folders().split(':').any(|folder| Path::new(folder).join("snmpd").exists());
    if !found {
        let _ = writeln!(std::io::stderr(), "skipped: {test}: no snmpd");
    }
    found
}

#[test]
fn a_loss_lowers_the_threshold_until_it_ends_and_a_silent_agent_leaves_it() {
    if !has_agent("a_loss_lowers_the_threshold_until_it_ends_and_a_silent_agent_leaves_it") {
        return;
    }
    let (mut serve, agent) = regulated(0, PRIMARY);
    serve.start();
    serve.wait("the loss is acceptable", |serve| reason(serve) == "at_base");
    assert_eq!(rate(&serve), CONFIGURED);

    // 1 % of the packets, ten times the acceptable loss.
    set_drops(&serve, 1_000);
    serve.wait("R is at its floor", |serve| reason(serve) == "at_floor");
    let low = threshold(&serve);
    assert_eq!(
        (low["rate_bps"].as_u64(), low["regulator"]["lowered"].as_u64()),
        (Some(FLOOR), Some(2)),
        "{low}"
    );
    assert!(low["regulator"]["loss"].as_f64().unwrap() > 0.001, "{low}");
    serve.wait("it applies", |serve| {
        serve.metric("thalweg_rate_threshold_bps{collector=\"tor0\"}") == Some(FLOOR)
    });
    assert!(serve.log().contains("rate threshold regulated"), "{}", serve.log());

    set_drops(&serve, 0);
    serve.wait("R waits for calm windows", |serve| ["calming", "collecting"].contains(&&*reason(serve)));
    serve.wait("R is raised", |serve| threshold(serve)["regulator"]["raised"].as_u64() >= Some(1));
    let raised = rate(&serve);
    assert!(raised > FLOOR && raised <= CONFIGURED, "{raised}");

    drop(agent);
    serve.wait("the interval is unusable", |serve| reason(serve) == "unusable");
    let (before, polls) = (rate(&serve), failed(&serve));
    let port = poll(&serve, 0);
    assert!(port["error"].as_str().unwrap().starts_with("no answer from 127.0.0.1:"), "{port}");
    assert!(threshold(&serve)["regulator"]["explanation"].as_str().unwrap().contains("timeout"));
    serve.wait("further polls fail", |serve| failed(serve) >= polls + 2);
    assert_eq!((rate(&serve), reason(&serve)), (before, "unusable".to_owned()));
    serve.signal("-TERM");
    assert_eq!(serve.ended(), Some(0), "{}", serve.log());
}

#[test]
fn drops_of_all_queues_together_leave_the_threshold() {
    if !has_agent("drops_of_all_queues_together_leave_the_threshold") {
        return;
    }
    let (mut serve, _agent) = regulated(1_000, "has_scavenger = true\n");
    serve.start();
    serve.wait("drops are counted", |serve| {
        poll(serve, 0)["counters"]["output"]["discards"].as_u64() >= Some(10_000)
    });
    serve.wait("the regulator says so", |serve| reason(serve) == "sum_of_queues");
    let after = threshold(&serve);
    assert_eq!(after["rate_bps"].as_u64(), Some(CONFIGURED), "{after}");
    assert_eq!(after["regulator"]["lowered"].as_u64(), Some(0), "{after}");
    assert_eq!(poll(&serve, 0)["average"], Value::Null);
    serve.signal("-TERM");
    assert_eq!(serve.ended(), Some(0), "{}", serve.log());
}
