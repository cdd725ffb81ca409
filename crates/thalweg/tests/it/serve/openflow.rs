//! Open vSwitch switches under a daemon: routes are installed, flows rerouted, failures repaired.
//!
//! Skipped without root, for an interface to read, and Open vSwitch.

use std::fs;
use std::io::Write as _;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::os::unix::fs::MetadataExt as _;

use serde_json::json;

use crate::serve::Serve;
use crate::serve::control::send;
use crate::serve::ovs::Ovs;

/// The switches of the example's topology.
const SWITCHES: [&str; 4] = ["leaf0", "leaf1", "spine0", "spine1"];

/// Six hosts with two addresses each.
const ROUTES: usize = 12;

fn skip(reason: &str) {
    // Directly to standard error, because the test runner captures `eprintln!`.
    let _ = std::io::stderr().write_all(format!("skipped: {reason}\n").as_bytes());
}

/// Returns the entries of a bridge with this priority.
fn entries(ovs: &Ovs, bridge: &str, priority: u16) -> Vec<String> {
    let mut flows = ovs.flows(bridge);
    flows.retain(|flow| flow.contains(&format!("priority={priority},")));
    flows
}

/// Configures a controller of the switches that listens here.
fn configure(serve: &Serve, address: SocketAddr, priority: u8) {
    let switches: Vec<String> =
        SWITCHES.iter().zip(0x100..).map(|(name, number)| format!("\"{name} {number:x} 6\"")).collect();
    serve.configure(&format!(
        "[[collector]]\nname = \"a\"\nswitch = \"leaf0\"\ninterface = \"lo\"\nbackend = \"af_packet\"\n\
         [control]\ndecider = \"static\"\nactuator = \"openflow\"\naddresses = 2\n\
         openflow_listen = \"{address}\"\nopenflow_priority = {priority}\nswitches = [{}]\n",
        switches.join(", ")
    ));
}

fn all_have_their_routes(ovs: &Ovs) -> bool {
    SWITCHES.iter().all(|bridge| entries(ovs, bridge, 16_384).len() == ROUTES)
}

#[test]
fn routes_and_pins_are_installed_and_repaired() {
    if fs::metadata("/proc/self").unwrap().uid() != 0 {
        return skip("needs root");
    }
    let Some(mut ovs) = Ovs::start("OpenFlow13") else { return skip("needs Open vSwitch") };
    let mut serve = Serve::new("");
    let address: SocketAddr = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap();
    configure(&serve, address, 255);
    serve.start();
    for (name, number) in SWITCHES.iter().zip(0x100..) {
        ovs.add_bridge(name, number, 6, address);
    }
    serve.wait("routes are set", |_| all_have_their_routes(&ovs));
    assert_eq!(serve.get("/v1/control").unwrap()["has_routes"], true);

    serve.wait("they are counted", |serve| {
        serve.metric("thalweg_control_switches{state=\"in_sync\"}") == Some(SWITCHES.len() as u64)
            && serve.metric("thalweg_control_rules_total{change=\"installed\"}") == Some(48)
    });

    let pin = |serve: &Serve, address: u8| {
        let (status, answer) = send(serve, "PUT", "/v1/control/pins/h0/h3", &json!({"tree": address}));
        assert_eq!(status, 200, "{answer}");
    };
    pin(&serve, 1);
    serve.wait("the pair is rerouted", |_| entries(&ovs, "leaf0", 20_480).len() == 1);
    let rerouted = entries(&ovs, "leaf0", 20_480).remove(0);
    for part in [
        "in_port=1,dl_src=02:54:57:00:00:00,dl_dst=02:54:57:00:00:03",
        "actions=set_field:02:54:57:01:00:03->eth_dst,output:6,output:",
    ] {
        assert!(rerouted.contains(part), "{part} is not in {rerouted}");
    }

    // Somebody deletes all rules of a switch.
    let faults = |serve: &Serve| serve.metric("thalweg_control_rule_faults_total{fault=\"missing\"}");
    assert_eq!(faults(&serve), Some(0));
    ovs.run(
        "ovs-ofctl",
        &["-O", "OpenFlow13", "del-flows", &format!("unix:{}", ovs.path("leaf0.mgmt").display())],
    );
    serve.wait("the rules are repaired", |serve| {
        faults(serve) == Some(ROUTES as u64 + 1)
            && all_have_their_routes(&ovs)
            && entries(&ovs, "leaf0", 20_480).len() == 1
    });
    assert_eq!(serve.get("/v1/control").unwrap()["counts"]["repaired_rules"], 13);
    assert!(serve.log().contains("leaf0: entries changed by others, repairing: "), "{}", serve.log());

    // All switches fail and return with empty tables.
    ovs.kill_switch();
    serve.wait("the log message", |serve| serve.log().contains("spine1 disconnected"));
    ovs.start_switch();
    let connected = |serve: &Serve| serve.log().matches(" entries already installed").count();
    serve.wait("all have connected", |serve| connected(serve) == 2 * SWITCHES.len());
    serve.wait("routes are set", |_| all_have_their_routes(&ovs));
    // The pair sends nothing, but the pin remains.
    assert_eq!(entries(&ovs, "leaf0", 20_480).len(), 1);

    // The controller stops, and all rules remain. Another one takes over.
    serve.signal("-KILL");
    assert_eq!(serve.ended(), None);
    assert!(all_have_their_routes(&ovs));
    let before = connected(&serve);
    serve.start();
    serve.wait("all have connected", |serve| connected(serve) == before + SWITCHES.len());
    assert!(serve.log().contains("leaf0 connected: 13 entries already installed"), "{}", serve.log());
    // It waits for the master that was killed.
    serve.wait("it is the master", |serve| serve.get("/v1/control").unwrap()["has_routes"] == true);
    pin(&serve, 0);
    serve.wait("the pair is sent home", |_| entries(&ovs, "leaf0", 20_480).is_empty());
    assert!(all_have_their_routes(&ovs));
    serve.signal("-TERM");
    assert_eq!(serve.ended(), Some(0), "{}", serve.log());
    let complaints = ovs.complaints();
    // The time without a controller is not an error.
    let of_messages = |line: &&String| line.contains("ofp") && !line.contains("rconn");
    assert_eq!(complaints.iter().find(of_messages), None, "{complaints:?}");
}

/// Returns whether a daemon is the master and has installed its routes.
fn has_settled(serve: &Serve) -> bool {
    let control = serve.get("/v1/control").unwrap_or_default();
    control["master"] == true && control["has_routes"] == true
}

/// Returns the number of rules that a daemon has written or deleted.
fn changes(serve: &Serve) -> u64 {
    let count = |change| serve.metric(&format!("thalweg_control_rules_total{{change=\"{change}\"}}"));
    count("installed").unwrap() + count("removed").unwrap()
}

/// Asserts that a daemon claims neither to be the master nor to have settled.
#[track_caller]
fn assert_standby(serve: &Serve) {
    let control = serve.get("/v1/control").unwrap();
    assert_eq!((&control["master"], &control["has_routes"]), (&json!(false), &json!(false)));
    assert_eq!(serve.metric("thalweg_control_master"), Some(0));
    assert_eq!(serve.metric("thalweg_control_switches{state=\"in_sync\"}"), Some(0));
    let (status, problem) = send(serve, "PUT", "/v1/control/pins/h0/h3", &json!({"tree": 0}));
    assert_eq!(status, 409, "{problem}");
}

#[test]
fn one_of_two_daemons_is_the_master_and_the_other_takes_over_from_a_dead_or_stopped_one() {
    if fs::metadata("/proc/self").unwrap().uid() != 0 {
        return skip("needs root");
    }
    let Some(ovs) = Ovs::start("OpenFlow13") else { return skip("needs Open vSwitch") };
    let free = || TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap();
    let addresses = [free(), free()];
    let [mut one, mut two] = [Serve::new(""), Serve::new("")];
    for ((serve, address), priority) in [&mut one, &mut two].into_iter().zip(addresses).zip([200, 100]) {
        configure(serve, address, priority);
        serve.start();
    }
    let targets = addresses.map(|address| format!("tcp:{address}"));
    for (name, number) in SWITCHES.iter().zip(0x100..) {
        ovs.add_bridge(name, number, 6, addresses[0]);
        ovs.vsctl(&["set-controller", name, &targets[0], &targets[1]]);
    }
    let uuids = ovs.vsctl(&["--bare", "--columns=_uuid", "list", "controller"]);
    for uuid in uuids.split_whitespace() {
        ovs.vsctl(&["set", "controller", uuid, "max_backoff=1000", "connection-mode=out-of-band"]);
    }
    one.wait("the higher priority is the master", has_settled);
    let connected = |serve: &Serve| serve.metric("thalweg_control_switches{state=\"out_of_sync\"}");
    two.wait("the other is connected", |serve| {
        connected(serve) == Some(4) && serve.log().contains("spine1 connected")
    });
    assert_standby(&two);
    let (status, answer) = send(&one, "PUT", "/v1/control/pins/h0/h3", &json!({"tree": 1}));
    assert_eq!(status, 200, "{answer}");
    one.wait("the pair is rerouted", |_| entries(&ovs, "leaf0", 20_480).len() == 1);
    assert_eq!(changes(&two), 0);

    // Killed: the other takes over what it finds.
    one.signal("-KILL");
    one.ended();
    two.wait("the other takes over", has_settled);
    assert_eq!(changes(&two), 0, "the entries of its predecessor are the right ones");
    assert!(all_have_their_routes(&ovs) && entries(&ovs, "leaf0", 20_480).len() == 1);

    // Returned: it does not take the role back, in spite of its priority.
    one.start();
    one.wait("it is connected", |serve| serve.log().matches("spine1 connected").count() == 2);
    let asked = |serve: &Serve| serve.metric("thalweg_control_master_claims_total");
    std::thread::sleep(std::time::Duration::from_secs(5));
    assert_standby(&one);
    assert_eq!((changes(&one), asked(&one), asked(&two)), (0, Some(0), Some(1)));

    // Stopped: the first takes over, and keeps the role when the other returns.
    two.signal("-STOP");
    one.wait("it takes over from a stopped one", has_settled);
    two.signal("-CONT");
    two.wait("it knows that it was replaced", |serve| serve.metric("thalweg_control_master") == Some(0));
    assert_standby(&two);
    let deleted = ovs.run(
        "ovs-ofctl",
        &["-O", "OpenFlow13", "del-flows", &format!("unix:{}", ovs.path("leaf0.mgmt").display())],
    );
    one.wait("the master alone repairs", |_| all_have_their_routes(&ovs));
    assert!(has_settled(&one) && changes(&two) == 0, "{deleted}");
    assert!(two.log().contains("is a standby"), "{}", two.log());

    // Ended in order: the other need not wait.
    one.signal("-TERM");
    assert_eq!(one.ended(), Some(0), "{}", one.log());
    two.wait("the role was released", has_settled);
    two.signal("-TERM");
    assert_eq!(two.ended(), Some(0), "{}", two.log());
}
