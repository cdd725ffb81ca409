//! The same lab with switches of Open vSwitch, told by our OpenFlow what to forward.

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

/// A lab whose switches nobody has told anything, or why there is none.
fn up(plan: Plan) -> Option<TestLab> {
    // Whether Open vSwitch is there is seen before a lab is made, and after that this is root.
    match Lab::find(&plan.prefix) {
        Err(LabError::NotRoot) => None,
        _ if ["ovs-vswitchd", "ethtool"]
            .into_iter()
            .any(|program| output(program, &["--version"]).is_empty()) =>
        {
            skip("there is no Open vSwitch, or no ethtool");
            None
        }
        _ => TestLab::up(plan),
    }
}

/// Its switches, connected, with routes by two addresses of each host.
fn told(lab: &Lab) -> Fabric {
    let topology = Arc::clone(&lab.plan().topology);
    let switches = lab.openflow();
    let member = |switch: &thalweg_lab::OpenFlowSwitch| Member {
        router: switch.router,
        datapath: DatapathId(switch.datapath_id),
        monitor: Some(PortNumber(switch.monitor_port)),
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
        fabric.unsettled().next().is_some()
    } {
        assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", fabric.take_events());
        std::thread::sleep(Duration::from_millis(2));
    }
}

fn steer(fabric: &mut Fabric, address: u8) {
    let deadline = Timestamp(0) + Nanos::from_secs(5);
    let action = Action { id: ActionId(1), pair: PAIR, address, issued: Timestamp(0), deadline };
    fabric.reroute(&action).unwrap();
    settle(fabric);
}

#[test]
fn hosts_reach_each_other_once_the_switches_were_told_and_also_when_nobody_tells_them_any_more() {
    let Some(lab) = up(ovs()) else { return };
    assert_eq!(lab.ping(0, 1, 1), 0, "nobody has told them anything");
    assert!(lab.status().unwrap().switches.iter().all(|switch| switch.entries == 0));
    drop(told(&lab));
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
fn a_pair_is_steered_while_its_host_knows_nothing_and_copies_show_it_at_once() {
    let Some(lab) = up(ovs()) else { return };
    let mut fabric = told(&lab);
    assert_eq!(lab.ping(0, 4, 1), 1);
    let interface = lab.monitor_interface(RouterId(0)).unwrap();
    let mut copies =
        lab.fabric().within(|| LiveSource::open(&LiveOptions::new(&interface))).unwrap().unwrap();
    let (base, shadow) = (lab.topology().mac(PAIR.destination, 0), lab.topology().mac(PAIR.destination, 1));
    for (address, destination) in [(1, shadow), (0, base)] {
        steer(&mut fabric, address);
        let before = [lab.forwarded(3), lab.forwarded(4)];
        assert_eq!(lab.ping(0, 4, 20), 20, "it arrives with the base address");
        let passed = [lab.forwarded(3) - before[0], lab.forwarded(4) - before[1]];
        // Answers go their own way.
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
fn open_vswitch_goes_with_the_lab_and_with_what_a_crash_has_left_of_one() {
    let Some(mut lab) = up(ovs()) else { return };
    let folder = format!("/run/thalweg/{}ovs", lab.prefix);
    let daemon = |name: &str| -> u32 {
        fs::read_to_string(format!("{folder}/{name}.pid")).unwrap().trim().parse().unwrap()
    };
    let daemons = [daemon("ovsdb-server"), daemon("ovs-vswitchd")];
    // One that has ended may still be listed until somebody asks how; it is in no namespace any more.
    let is_there = |process: u32| fs::read_link(format!("/proc/{process}/ns/net")).is_ok();
    assert!(daemons.into_iter().all(is_there));
    // One of the two is killed: the lab is not whole any more.
    assert!(Command::new("kill").args(["-9", &daemons[1].to_string()]).status().unwrap().success());
    std::thread::sleep(Duration::from_millis(100));
    assert!(matches!(Lab::find(&lab.prefix), Err(LabError::NotUp { .. })));
    lab.replace(ovs());
    assert!(!daemons.into_iter().any(is_there));
    drop(told(&lab));
    assert_eq!(lab.ping(0, 4, 2), 2);
    let daemons = [daemon("ovsdb-server"), daemon("ovs-vswitchd")];
    let prefix = lab.prefix.clone();
    let _alone = lab.down();
    assert!(!daemons.into_iter().any(is_there));
    assert!(!Path::new(&folder).exists());
    assert_eq!(Lab::down(&prefix).unwrap(), Removed::default());
}
