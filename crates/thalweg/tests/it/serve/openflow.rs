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
    let switches: Vec<String> =
        SWITCHES.iter().zip(0x100..).map(|(name, number)| format!("\"{name} {number:x} 6\"")).collect();
    serve.configure(&format!(
        "[[collector]]\nname = \"a\"\nswitch = \"leaf0\"\ninterface = \"lo\"\nbackend = \"af_packet\"\n\
         [control]\ndecider = \"static\"\nactuator = \"openflow\"\naddresses = 2\n\
         openflow_listen = \"{address}\"\nswitches = [{}]\n",
        switches.join(", ")
    ));
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
