//! A JSON line of each kind that `thalweg lab` writes, from constructed results, because labs need root.

use std::time::Duration;

use serde_json::Value;
use thalweg::emulated_lab::{self, LabStatus};
use thalweg_lab::{
    ArbiterStatus, EmulatedHost, EmulatedStatus, EndpointNews, Headroom, HostAddresses, HostStatus, Plane,
    PortStatus, Prefix, ProcessStatus, QueueCounters, Status, SwitchCounters, SwitchStatus,
};
use thalweg_network::topology::shapes::rack;
use thalweg_network::{EndpointId, LinkSpec, PortIndex, RouterId};
use thalweg_realtime::arbiter::LiveStatus;
use thalweg_scenarios::configuration::ActuatorKind;
use thalweg_scenarios::emulated::ArbiterRun;
use thalweg_scenarios::quantiles::Quantiles;
use thalweg_scenarios::report;
use thalweg_scenarios::scenarios::collide::{self, LatencyBreakdown, Trial};
use thalweg_scenarios::scenarios::faults::{self, Fault};
use thalweg_scenarios::scenarios::isolate::flow::Transmissions;
use thalweg_scenarios::scenarios::isolate::ping::Period;
use thalweg_scenarios::scenarios::isolate::run::{Latency, Run};
use thalweg_scenarios::scenarios::isolate::saturation::Share;
use thalweg_scenarios::scenarios::isolate::{self, Isolation};
use thalweg_scenarios::scenarios::workload::{self, Method, Pattern};
use thalweg_scenarios::scenarios::{
    HostPair, emulated_latency, emulated_queues, emulated_rpc, reroute_latency, switch_buffer, udp,
};
use thalweg_wire::{BitRate, Nanos};

const RATE: BitRate = BitRate(100_000_000);
const HEADROOM: Headroom = Headroom { idle: 0.5, min_idle: 0.4, stolen: 0.0, backlog_drops: 0 };

/// Returns all lines.
pub(crate) fn all() -> impl Iterator<Item = Value> {
    let lines = [
        lab(),
        emulated_lab(),
        collide(),
        reroute_latency(),
        udp(),
        isolate(),
        switch_buffer(),
        emulated_latency(),
        emulated_queues(),
        emulated_rpc(),
        workload(),
        faults(),
    ];
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

fn emulated_lab() -> String {
    let process =
        |pid| ProcessStatus { pid, is_running: true, is_stopped: false, log: "/log".into(), message: None };
    let addresses = HostAddresses { ip: [10, 0, 0, 1].into(), ipv6: None };
    let host = EmulatedHost {
        endpoint: EndpointId(0),
        name: "h0".to_owned(),
        namespace: "tw-h0".to_owned(),
        mac: "02:54:57:00:00:00".parse().unwrap(),
        addresses,
        rate: RATE,
        processes: vec![7],
        process: process(8),
        news: EndpointNews::default(),
    };
    let arbiter = ArbiterStatus {
        is_standby: false,
        address: ([127, 0, 0, 1], 6_589).into(),
        process: process(9),
        report: "/report".into(),
    };
    let lab = EmulatedStatus {
        congestion_control: "cubic".to_owned(),
        ecn: false,
        prefix: Prefix::default(),
        experiment: "/wan.toml".into(),
        topology: rack(2, LinkSpec::default()).unwrap(),
        mtu: 1_500,
        fabric: "tw-fabric".to_owned(),
        folder: "/folder".into(),
        hosts: vec![host],
        arbiters: vec![arbiter],
    };
    let live = LiveStatus { is_active: true, ..LiveStatus::default() };
    emulated_lab::report::json(&LabStatus { lab, arbiters: vec![Some(live)] })
}

fn pair(src: &str, dst: &str) -> HostPair {
    HostPair { src: src.to_owned(), dst: dst.to_owned() }
}

fn collisions() -> collide::Results {
    let latency = LatencyBreakdown { event_ns: 1, decision_ns: 2, request_ns: 3, path_ns: 4 };
    let trial = Trial {
        latency: Some(latency),
        is_early: false,
        reroutes: 2,
        most_flow_moves: 1,
        rates: [9e7; 2],
        idle_ratio: 0.5,
        curves: [Vec::new(), Vec::new()],
    };
    collide::Results {
        rate: RATE,
        network: "3 switches with 2 hosts each, 2 without hosts, 12 links".to_owned(),
        flows: [pair("h0", "h2"), pair("h4", "h3")],
        link: "spine0:p1:out".to_owned(),
        trials: vec![trial],
        headroom: HEADROOM,
        lost_frames: 0,
    }
}

fn collide() -> String {
    report::collide_json(&collisions())
}

fn reroute_latency() -> String {
    // Its trials are those of `collide`.
    let collisions = collide::Results { trials: Vec::new(), ..collisions() };
    let case = reroute_latency::TestCase { plane: Plane::Ebpf, actuator: ActuatorKind::Arp, collisions };
    report::reroute_latency_json(&reroute_latency::Results { rate: RATE, cases: vec![case] })
}

fn udp() -> String {
    report::udp_json(&udp::Results {
        rate: RATE,
        network: "3 switches with 2 hosts each, 2 without hosts, 12 links".to_owned(),
        flow: pair("h0", "h2"),
        duration: Duration::from_secs(60),
        request_to_path: Some(Nanos(1)),
        new_path_packets: 1,
        old_path_packets: 0,
        refreshes: 30,
        loss_ratio: 0.0,
        headroom: HEADROOM,
    })
}

fn emulated_rpc() -> String {
    use emulated_rpc::network::{Emulation, Network};
    use emulated_rpc::run::{Completions, Run};
    use emulated_rpc::unloaded::{OfPause, OfSize, Unloaded};
    let arbiter = ArbiterRun { valid: true, slots: 9, requests: 2, ..ArbiterRun::default() };
    let emulation = Some(Emulation { arbiter, undecided_packets: 0, overhead_ns: 90_000 });
    let completions = Completions { flows: 1, mean: 1.2, standard_error: 0.1, p50: 1.2, p99: 1.2 };
    let unloaded = Unloaded {
        sizes: vec![OfSize { bytes: 8_760, requests: 2, mean_ns: 1e6 }],
        pauses: vec![OfPause { pause_ns: 0, mean_ns: 2e5, times: Quantiles::default() }],
    };
    let run = Run {
        network: Network::DropTail,
        load: 0.1,
        small: completions,
        large: completions,
        all: completions,
        requests: 1,
        unfinished: 0,
        late_ns: 7,
        idle_ratio: 0.5,
        emulation: emulation.clone(),
        flows: Vec::new(),
    };
    report::emulated_rpc_json(&emulated_rpc::Results {
        options: emulated_rpc::Options {
            networks: vec![Network::DropTail],
            loads: vec![0.1],
            duration: Duration::from_secs(20),
            seed: 1,
        },
        rate: RATE,
        unloaded: vec![emulated_rpc::OfNetwork { network: Network::DropTail, unloaded, emulation }],
        runs: vec![run],
        headroom: HEADROOM,
    })
}

fn emulated_latency() -> String {
    let measurement = emulated_latency::Measurement {
        packets_per_second: emulated_latency::CLAIMED_RATE,
        path: emulated_latency::Path::Emulated,
        latency: Quantiles { count: 1, p50_ns: 40_000, p99_ns: 90_000, max_ns: 90_000 },
        sent: 2,
        lost: 1,
        reordered: 0,
        duplicates: 0,
        unseen: 0,
        late_ns: 7,
    };
    report::emulated_latency_json(&emulated_latency::Results {
        options: emulated_latency::Options { trials: 1, duration: Duration::from_secs(2) },
        measurements: vec![measurement],
        arbiters: vec![emulated_latency::ArbiterAtRate {
            packets_per_second: emulated_latency::CLAIMED_RATE,
            run: ArbiterRun { valid: true, slots: 9, requests: 2, ..ArbiterRun::default() },
        }],
        headroom: HEADROOM,
    })
}

fn emulated_queues() -> String {
    let measured = emulated_queues::Measured {
        goodput_bps: 4.7e8,
        queue: emulated_queues::QueueLengths::of(&[800, 900, 1_000]),
    };
    let run = emulated_queues::Run {
        scheme: emulated_queues::experiment::Scheme::DropTail,
        trial: 1,
        real: measured.clone(),
        hosts: measured,
        samples: [vec![800, 900, 1_000], vec![800, 900, 1_000]],
        overhead_ns: 90_000,
        protocol_share: 0.015,
        undecided_packets: 0,
        arbiter: ArbiterRun { valid: true, slots: 9, requests: 2, ..ArbiterRun::default() },
    };
    report::emulated_queues_json(&emulated_queues::Results {
        options: emulated_queues::Options { trials: 1, duration: Duration::from_secs(10), seed: 1 },
        rate: BitRate(500_000_000),
        runs: vec![run],
        headroom: HEADROOM,
    })
}

fn isolate() -> String {
    let period =
        Period { delays: Quantiles { count: 1, p50_ns: 1, p99_ns: 1, max_ns: 1 }, mean_ns: 1, lost: 0 };
    let latency = Latency { detection_ns: 1, redirection_ns: 2, packet_ns: 3, total_ns: 6 };
    let run = Run {
        isolation: Isolation::Borrow,
        before: period,
        first_second: period,
        settled: period,
        after: period,
        first_second_suffering_ns: 2_000_000,
        suffering_ns: 2_000_000,
        latency: Some(latency),
        moved: Some(Transmissions::default()),
        overtaken_by_move: 0,
        transmissions: Transmissions { sent_packets: 9, ..Transmissions::default() },
        flow_rate_bps: 1.2e8,
        background_rate_bps: 7e7,
        background_late_ns: 1,
        other_redirections: 0,
        lost_frames: 0,
        idle_ratio: 0.5,
        curve: Vec::new(),
        moved_at_ns: Some(3_000_000),
    };
    let share = Share {
        isolation: Isolation::Strict,
        primary_bytes: 9_999,
        scavenger_bytes: 1,
        scavenger_ratio: 0.0001,
        primary_dropped: 7,
        scavenger_dropped: 3,
    };
    let options = isolate::Options {
        trials: 1,
        duration: Duration::from_secs(5),
        flight_duration: isolate::DEFAULT_FLIGHT,
        seed: 1,
        actuator: isolate::Actuator::Tc,
    };
    report::isolate_json(&isolate::Results {
        parameters: isolate::Parameters::new(RATE, &options),
        duration: options.duration,
        congestion_control: "thalweg_htcp".to_owned(),
        trials: vec![isolate::Trial { seed: 1, runs: vec![run] }],
        saturation: vec![share],
        headroom: HEADROOM,
    })
}

fn switch_buffer() -> String {
    let parameters = switch_buffer::Parameters::new(RATE);
    let run = |case| switch_buffer::Run {
        case,
        seconds: vec![switch_buffer::Second { cwnd_bytes: 10_000, ..switch_buffer::Second::default() }; 7],
        transmissions: Transmissions::default(),
        queue_dropped_packets: 0,
        host_dropped_packets: 0,
        flow_rate_bps: 5e7,
        background_rate_bps: 3.5e7,
        background_late_ns: 1,
        delay_late_ns: 1,
        delay_dropped_packets: 0,
        lost_frames: 0,
        idle_ratio: 0.5,
    };
    report::switch_buffer_json(&switch_buffer::Results {
        parameters,
        duration: Duration::from_secs(7),
        congestion_control: "thalweg_htcp".to_owned(),
        trials: vec![switch_buffer::Trial { seed: 1, runs: parameters.cases.map(run).into() }],
        headroom: HEADROOM,
    })
}

fn workload() -> String {
    let outcome = workload::Outcome {
        method: Method::Planck,
        flow_rates: vec![9e7],
        host_times: vec![Duration::from_secs(5)],
        reroutes: vec![Duration::from_millis(3)],
        most_flow_moves: 1,
        headroom: HEADROOM,
    };
    report::workload_json(&workload::Results {
        pattern: Pattern::Stride,
        rate: RATE,
        host_share: 0.96,
        seed: 1,
        time: Duration::from_secs(5),
        outcomes: vec![outcome],
    })
}

fn faults() -> String {
    let outcome = faults::Outcome {
        fault: Fault::UnresponsiveHost,
        log: vec!["h0 ignored ARP".to_owned()],
        failures: Vec::new(),
        recovery: Some(Nanos(1)),
        misrouted: Vec::new(),
        unreachable: Vec::new(),
        next_collision: Some(Nanos(1)),
        headroom: HEADROOM,
    };
    report::faults_json(&faults::Results { rate: RATE, seed: 1, outcomes: vec![outcome] })
}
