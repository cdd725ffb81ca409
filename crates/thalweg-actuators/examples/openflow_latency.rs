//! Measures how long Open vSwitch takes to carry out flow-mods, each with a barrier, one by one over one connection.
//!
//! `cargo run --release -p thalweg-actuators --example openflow_latency [COUNT]` starts Open vSwitch in a temporary
//! folder (userspace, no root). It prints percentiles in microseconds, from before a batch is encoded until its
//! outcome is known.

#[path = "../tests/openflow_ovs/ovs.rs"]
#[expect(dead_code, reason = "the tests use more of it")]
mod ovs;

use std::net::Ipv4Addr;
use std::process::ExitCode;
use std::time::Instant;

use ovs::Ovs;
use thalweg_actuators::openflow::{Config, Event, Switches};
use thalweg_wire::openflow::{Action, Body, FlowMod, Instruction, Match, MatchField, PortNumber};
use thalweg_wire::{MacAddress, Nanos};

/// Batches sent before the measurement.
const WARM_UP: u32 = 100;
const BATCH_TIMEOUT: Nanos = Nanos::from_secs(1);

fn main() -> ExitCode {
    let count = std::env::args().nth(1).map_or(Ok(1_000), |count| count.parse());
    let Ok(count @ 1..) = count else {
        eprintln!("usage: openflow_latency [COUNT]");
        return ExitCode::from(2);
    };
    let Some(ovs) = Ovs::start("OpenFlow13") else {
        eprintln!("Open vSwitch is missing: run `apt-get install openvswitch-switch`");
        return ExitCode::FAILURE;
    };
    let (switches, events) = Switches::new(Config::default());
    ovs.connect_to(switches.listen((Ipv4Addr::LOCALHOST, 0).into(), None).expect("a free port"));
    let switch = loop {
        match events.recv().expect("an event") {
            Event::Up(up) => break up.switch,
            other => eprintln!("{other:?}"),
        }
    };
    println!("messages a batch | p50 us | p90 us | p99 us | max us");
    for messages in [1, 10, 100] {
        let mut took = Vec::new();
        for round in 0..WARM_UP + count {
            let batch: Vec<_> = (0..messages).map(|number| flow_mod(round, number)).collect();
            let start = Instant::now();
            let outcome = switch.send_batch(&batch, BATCH_TIMEOUT).expect("a sent batch").wait();
            outcome.result.expect("a completed batch");
            if round >= WARM_UP {
                took.push(start.elapsed());
            }
        }
        took.sort();
        let at = |share: f64| took[((took.len() - 1) as f64 * share).round() as usize].as_micros();
        println!("{messages:16} | {:6} | {:6} | {:6} | {:6}", at(0.5), at(0.9), at(0.99), at(1.0));
    }
    ExitCode::SUCCESS
}

/// Changes the port and the rewrite of one of 1,000 addresses.
fn flow_mod(round: u32, number: u32) -> Body {
    let [_, _, high, low] = ((round + number) % 1_000).to_be_bytes();
    let address = |shadow| MacAddress([2, 0x54, 0x57, shadow, high, low]);
    let actions = vec![
        Action::SetField(MatchField::EthDst(address(0).into())),
        Action::output(PortNumber(1 + round % 3)),
    ];
    Body::FlowMod(FlowMod {
        priority: 100,
        matching: Match::any().with(MatchField::EthDst(address(1).into())),
        instructions: vec![Instruction::ApplyActions(actions)],
        ..FlowMod::default()
    })
}
