//! A JSON line of each kind that `thalweg lab` writes, from constructed results, because labs need root.

use std::time::Duration;

use serde_json::Value;
use thalweg_lab::{
    Headroom, HostStatus, Plane, PortStatus, Prefix, QueueCounters, Status, SwitchCounters, SwitchStatus,
};
use thalweg_network::{EndpointId, PortIndex, RouterId};
use thalweg_scenarios::configuration::By;
use thalweg_scenarios::report;
use thalweg_scenarios::scenarios::collide::{self, Trial, Turn};
use thalweg_scenarios::scenarios::faults::{self, Fault};
use thalweg_scenarios::scenarios::workload::{self, Pattern, Scheme};
use thalweg_scenarios::scenarios::{reroute_latency, udp};
use thalweg_wire::{BitRate, Nanos};

const RATE: BitRate = BitRate(100_000_000);
const HEADROOM: Headroom = Headroom { idle: 0.5, least_idle: 0.4, stolen: 0.0, backlog_drops: 0 };

/// Returns all lines.
pub(crate) fn all() -> impl Iterator<Item = Value> {
    let lines = [lab(), collide(), reroute_latency(), udp(), workload(), faults()];
    lines.into_iter().map(|line| serde_json::from_str(&line).unwrap())
}

fn lab() -> String {
    let host = HostStatus {
        endpoint: EndpointId(0),
        name: "h0".to_owned(),
        namespace: "tw-h0".to_owned(),
        mac: "02:54:57:00:00:00".parse().unwrap(),
        ip: [10, 0, 0, 1].into(),
        rate: RATE,
        processes: vec![7],
    };
    let port = PortStatus {
        port: PortIndex(0),
        interface: "r0p0".to_owned(),
        rate: RATE,
        switch: SwitchCounters::default(),
        queue: QueueCounters::default(),
    };
    let switch = SwitchStatus {
        router: RouterId(0),
        name: "leaf0".to_owned(),
        entries: 4,
        is_mirrored: true,
        monitor: "r0monitor".to_owned(),
        monitor_rate: RATE,
        monitor_queue: QueueCounters::default(),
        ports: vec![port],
    };
    report::status_json(&Status {
        prefix: Prefix::default(),
        plane: Plane::Ebpf,
        fabric: "tw-fabric".to_owned(),
        hosts: vec![host],
        switches: vec![switch],
        links_down: vec!["h0-leaf0".to_owned()],
    })
}

fn collisions() -> collide::Results {
    let turn = Turn { notice_ns: 1, decision_ns: 2, action_ns: 3, effect_ns: 4 };
    let trial = Trial {
        turn: Some(turn),
        is_early: false,
        rates: [9e7; 2],
        idle: 0.5,
        curves: [Vec::new(), Vec::new()],
    };
    collide::Results {
        rate: RATE,
        flows: ["h0 > h2".to_owned(), "h4 > h3".to_owned()],
        link: ("spine0".to_owned(), "leaf1".to_owned()),
        trials: vec![trial],
        headroom: HEADROOM,
        missed_frames: 0,
    }
}

fn collide() -> String {
    report::collide_json(&collisions())
}

fn reroute_latency() -> String {
    // Its trials are those of `collide`.
    let collisions = collide::Results { trials: Vec::new(), ..collisions() };
    let course = reroute_latency::Course { plane: Plane::Ebpf, by: By::Arp, collisions };
    report::reroute_latency_json(&reroute_latency::Results { rate: RATE, courses: vec![course] })
}

fn udp() -> String {
    report::udp_json(&udp::Results {
        rate: RATE,
        flow: "h0 > h2".to_owned(),
        watched: Duration::from_secs(60),
        effect: Some(Nanos(1)),
        on_new_path: 1,
        fallen_back: 0,
        refreshed: 30,
        lost: 0.0,
        headroom: HEADROOM,
    })
}

fn workload() -> String {
    let outcome = workload::Outcome {
        scheme: Scheme::Planck,
        flows: vec![9e7],
        hosts: vec![Duration::from_secs(5)],
        moved: vec![Duration::from_millis(3)],
        headroom: HEADROOM,
    };
    report::workload_json(&workload::Results {
        pattern: Pattern::Stride,
        rate: RATE,
        seed: 1,
        time: Duration::from_secs(5),
        outcomes: vec![outcome],
    })
}

fn faults() -> String {
    let outcome = faults::Outcome {
        fault: Fault::DeafHost,
        story: vec!["it was deaf".to_owned()],
        broken: Vec::new(),
        whole_after: Some(Nanos(1)),
        astray: Vec::new(),
        unreachable: Vec::new(),
        next: Some(Nanos(1)),
        headroom: HEADROOM,
    };
    report::faults_json(&faults::Results { rate: RATE, seed: 1, outcomes: vec![outcome] })
}
