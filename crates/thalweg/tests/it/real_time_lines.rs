//! A JSON line of each kind that the commands of real-time emulation write, from constructed reports, because endpoints need root.

use serde_json::Value;
use thalweg::emulate::real_time;
use thalweg_emulator::core::occupancy::Occupancy;
use thalweg_emulator::{Place, Reason};
use thalweg_experiment::{Experiment, Plan};
use thalweg_network::{EndpointId, PortIndex, RouterId};
use thalweg_realtime::arbiter::{EndpointReport, EndpointTally, Options, Report};
use thalweg_realtime::protocol::ArbiterCounters;
use thalweg_wire::Timestamp;

/// Returns the line of an arbiter.
pub(crate) fn arbiter() -> Value {
    let text = "duration = \"1ms\"\n[topology]\nshape = \"rack\"\nendpoints = 2\n";
    let experiment = Experiment::parse(text, "network.toml").unwrap();
    let plan = Plan::for_real_time(&experiment).unwrap();
    let endpoint = EndpointReport {
        endpoint: 0,
        address: ([10, 0, 0, 1], 5_000).into(),
        packets: EndpointTally::default(),
        session: ArbiterCounters::default(),
    };
    let report = Report {
        drops: [((Place::Endpoint(EndpointId(0)), Reason::Full), 1)].into(),
        endpoints: vec![endpoint],
        queues: vec![(RouterId(0), PortIndex(0), Occupancy::default())],
        ..Report::default()
    };
    serde_json::from_str(&real_time::json(&plan, &Options::default(), &report, Timestamp(1))).unwrap()
}

/// Returns the lines of an endpoint.
#[cfg(target_os = "linux")]
pub(crate) fn endpoint() -> Vec<Value> {
    use thalweg::endpoint::json;
    use thalweg_realtime::endpoint::{ControlCounters, Event, Losses, PacketCounters, Report, TimeHistogram};
    use thalweg_realtime::protocol::{Arbiter, EndpointCounters};
    use thalweg_wire::Nanos;

    let address = ([10, 0, 0, 1], 6_589).into();
    let events = [
        Event::ArbiterSilent { address, silence: Nanos(1) },
        Event::ArbiterAnswers { address },
        Event::SwitchedArbiter { address },
        Event::ArbiterRestarted { address },
        Event::OtherVersion { address, version: 2 },
        Event::InterfaceDown,
        Event::InterfaceUp,
        Event::PacketsLost { losses: Losses::default() },
        Event::MtuChanged { mtu: 1_500 },
    ];
    let report = Report {
        elapsed: Nanos(1),
        arbiter: Arbiter::Primary,
        silence: Nanos::ZERO,
        round_trip: None,
        held: 0,
        packets: PacketCounters::default(),
        protocol: EndpointCounters::default(),
        control: ControlCounters::default(),
        hold_times: TimeHistogram::default(),
        overheads: TimeHistogram::default(),
        release_overheads: TimeHistogram::default(),
    };
    let lines = events.iter().map(json::event).chain([json::status(&report), json::summary(&report)]);
    lines.map(|line| serde_json::from_str(&line).unwrap()).collect()
}
