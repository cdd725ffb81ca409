//! Labs with Open vSwitch, controlled by our OpenFlow actuator.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use thalweg_actuators::openflow::{Config, Fabric, Member};
use thalweg_actuators::{Action, ActionId, Actuator};
use thalweg_capture::live::{LiveOptions, LiveSource};
use thalweg_control::Pair;
use thalweg_lab::{Lab, LabError, Plan, Plane, Removed, shortest_path_tables};
use thalweg_network::{EndpointId, LinkState, NetworkState, RouterId};
use thalweg_wire::openflow::{DatapathId, PortNumber};
use thalweg_wire::{Nanos, Source as _, Timestamp};

use crate::setup::{TestLab, output, plan, skip};

const PAIR: Pair = Pair { source: EndpointId(0), destination: EndpointId(4) };

fn ovs() -> Plan {
    Plan { plane: Plane::Ovs, ..plan() }
}

/// Creates a lab whose switches have no routes, or prints why the test is skipped.
fn up(plan: Plan) -> Option<TestLab> {
    // Check for Open vSwitch before creating a lab.
    match Lab::find(&plan.prefix) {
        Err(LabError::NotRoot) => None,
        _ if ["ovs-vswitchd", "ethtool"]
            .into_iter()
            .any(|program| output(program, &["--version"]).is_empty()) =>
        {
            skip("Open vSwitch or ethtool is not installed");
            None
        }
        _ => TestLab::up(plan),
    }
}

/// Connects to the switches and installs routes for two addresses of each host.
fn with_routes(lab: &Lab) -> Fabric {
    let topology = Arc::clone(&lab.plan().topology);
    let switches = lab.openflow();
    let member = |switch: &thalweg_lab::OpenFlowSwitch| Member {
        router: switch.router,
        datapath: DatapathId(switch.datapath_id),
        monitor: Some(PortNumber(switch.monitor_port).into()),
    };
    let members: Vec<Member> = switches.iter().map(member).collect();
    let tables = shortest_path_tables(&topology, 2).unwrap();
    let state = NetworkState::new(Arc::clone(&topology), LinkState::new(&topology), tables).unwrap();
    let mut fabric = Fabric::new(topology, &members, Config::default());
    let connect =
        || switches.iter().for_each(|switch| fabric.switches().connect(switch.address, None).unwrap());
    lab.fabric().within(connect).unwrap();
    fabric.install(&state);
    settle(&mut fabric);
    fabric
}

fn settle(fabric: &mut Fabric) {
    let begun = Instant::now();
    while {
        fabric.maintain(Timestamp(begun.elapsed().as_nanos() as u64));
        fabric.out_of_sync().next().is_some()
    } {
        assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", fabric.take_events());
        std::thread::sleep(Duration::from_millis(2));
    }
}

fn reroute(fabric: &mut Fabric, address: u8) {
    let deadline = Timestamp(0) + Nanos::from_secs(5);
    let action = Action { id: ActionId(1), pair: PAIR, address, issued: Timestamp(0), deadline };
    fabric.reroute(&action).unwrap();
    settle(fabric);
}

#[test]
fn routes_stay_installed_after_the_controller_disconnects() {
    let Some(lab) = up(ovs()) else { return };
    assert_eq!(lab.ping(0, 1, 1), 0, "the switches have no routes");
    assert!(lab.status().unwrap().switches.iter().all(|switch| switch.entries == 0));
    drop(with_routes(&lab));
    for from in 0..6 {
        for to in (0..6).filter(|&to| to != from) {
            assert_eq!(lab.ping(from, to, 2), 2, "h{from} to h{to}");
        }
    }
    let found = Lab::find(&lab.prefix).unwrap();
    let status = found.status().unwrap();
    assert!(status.switches.iter().all(|switch| switch.entries == 12), "six hosts, two addresses");
    assert!(status.switches[0].ports.iter().all(|port| port.switch.received_packets > 0));
    assert!(matches!(found.tables(), Err(LabError::NotEbpf)));
    let queues = lab.queues();
    assert_eq!(queues.matches("qdisc tbf").count(), 5 * 4 - 2 + 5, "shapers are left alone: {queues}");
}

#[test]
fn openflow_reroutes_a_pair_without_its_host() {
    let Some(lab) = up(ovs()) else { return };
    let mut fabric = with_routes(&lab);
    assert_eq!(lab.ping(0, 4, 1), 1);
    let interface = lab.monitor_interface(RouterId(0)).unwrap();
    let mut copies =
        lab.fabric().within(|| LiveSource::open(&LiveOptions::new(&interface))).unwrap().unwrap();
    let (base, shadow) = (lab.topology().mac(PAIR.destination, 0), lab.topology().mac(PAIR.destination, 1));
    for (address, destination) in [(1, shadow), (0, base)] {
        reroute(&mut fabric, address);
        let before = [lab.forwarded(3), lab.forwarded(4)];
        assert_eq!(lab.ping(0, 4, 20), 20, "it arrives with the base address");
        let passed = [lab.forwarded(3) - before[0], lab.forwarded(4) - before[1]];
        // Replies take their own tree.
        assert_eq!(passed.iter().sum::<u64>(), 40, "{passed:?}");
        let mut seen = 0;
        loop {
            let batch = copies.next_batch().unwrap().unwrap();
            if batch.frames.is_empty() {
                break;
            }
            seen += batch.iter().filter(|frame| frame.bytes[..6] == destination.0).count();
        }
        assert!(seen >= 20, "{seen} copies show address {address}");
    }
}

#[test]
fn open_vswitch_ends_with_its_lab() {
    let Some(mut lab) = up(ovs()) else { return };
    let folder = format!("/run/thalweg/{}ovs", lab.prefix);
    let daemon = |name: &str| -> u32 {
        fs::read_to_string(format!("{folder}/{name}.pid")).unwrap().trim().parse().unwrap()
    };
    let daemons = [daemon("ovsdb-server"), daemon("ovs-vswitchd")];
    // A zombie is still listed, but is in no namespace.
    let is_there = |process: u32| fs::read_link(format!("/proc/{process}/ns/net")).is_ok();
    assert!(daemons.into_iter().all(is_there));
    // With one daemon killed the lab is incomplete.
    assert!(Command::new("kill").args(["-9", &daemons[1].to_string()]).status().unwrap().success());
    std::thread::sleep(Duration::from_millis(100));
    assert!(matches!(Lab::find(&lab.prefix), Err(LabError::NotUp { .. })));
    lab.replace(ovs());
    assert!(!daemons.into_iter().any(is_there));
    drop(with_routes(&lab));
    assert_eq!(lab.ping(0, 4, 2), 2);
    let daemons = [daemon("ovsdb-server"), daemon("ovs-vswitchd")];
    let prefix = lab.prefix.clone();
    let _alone = lab.down();
    assert!(!daemons.into_iter().any(is_there));
    assert!(!Path::new(&folder).exists());
    assert_eq!(Lab::down(&prefix).unwrap(), Removed::default());
}
