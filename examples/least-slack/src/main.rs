//! Compares a custom scheme with DropTail in Thalweg's emulator: `cargo run --release -p least-slack`.
//!
//! Four clients request answers of web-search sizes from 32 servers at 70 % load. The scheme is in `lib.rs`; this file
//! builds the network and the workload.

use thalweg_emulator::Network;
use thalweg_emulator::core::blueprint::Blueprint;
use thalweg_emulator::core::emulation::Emulation;
use thalweg_emulator::hosts::{CompletedFlow, HostConfig, Hosts};
use thalweg_emulator::schemes::drop_tail::{DropTailConfig, drop_tail};
use thalweg_emulator::workloads::arrivals::Spacing;
use thalweg_emulator::workloads::patterns::{Rpc, RpcOptions};
use thalweg_emulator::workloads::sizes::{FlowSizes, SizeDistribution, Sizes};
use thalweg_network::topology::shapes::rack;
use thalweg_network::{EndpointId, LinkSpec, Topology};
use thalweg_wire::Timestamp;

use least_slack::least_slack;

const CLIENTS: u16 = 4;
const SERVERS: u16 = 32;
const SMALL: u64 = 100_000;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let topology = rack(u32::from(CLIENTS + SERVERS), LinkSpec::default())?;
    let blueprint = Blueprint::new(&topology, 1_500, 1);
    let droptail = Emulation::new(&blueprint, |routing, shape| {
        drop_tail(routing, shape, &DropTailConfig { buffer: 256 })
    })?;
    let slack = Emulation::new(&blueprint, |routing, shape| least_slack(routing, shape, 256))?;

    println!(
        "{:<12} {:>6} {:>14} {:>13} {:>14}",
        "scheme", "flows", "small: mean us", "small: p99 us", "large: mean ms"
    );
    report("droptail", completed(&topology, droptail)?);
    report("least slack", completed(&topology, slack)?);
    Ok(())
}

/// Runs the workload for a second and returns the completed flows.
fn completed(
    topology: &Topology,
    mut network: impl Network,
) -> Result<Vec<CompletedFlow>, Box<dyn std::error::Error>> {
    let clock = network.clock();
    let clients: Vec<EndpointId> = (0..CLIENTS).map(EndpointId).collect();
    let servers: Vec<EndpointId> = (CLIENTS..CLIENTS + SERVERS).map(EndpointId).collect();
    let mut workload = Rpc::new(
        &clients,
        &servers,
        RpcOptions {
            load: 0.7,
            rate: LinkSpec::default().rate,
            sizes: FlowSizes::of(Sizes::Drawn(SizeDistribution::published("web_search")?))?,
            fan_in: 1,
            spacing: Spacing::Poisson,
            from: Timestamp(0),
            seed: 1,
            index: 0,
        },
    )?;
    let mut hosts = Hosts::new(HostConfig::default(), topology.endpoints().len(), clock)?;
    while clock.start_of(network.now()) < Timestamp::new(1, 0) {
        hosts.slot(&mut network, &mut workload);
    }
    Ok(hosts.drain_completed().collect())
}

fn report(scheme: &str, flows: Vec<CompletedFlow>) {
    let times = |small: bool| {
        let mut times: Vec<u64> = flows
            .iter()
            .filter(|flow| (flow.bytes <= SMALL) == small)
            .map(|flow| flow.completion_time().0)
            .collect();
        times.sort_unstable();
        times
    };
    let mean = |times: &[u64]| times.iter().sum::<u64>() as f64 / times.len().max(1) as f64;
    let (small, large) = (times(true), times(false));
    let p99 = small.get(small.len() * 99 / 100).copied().unwrap_or_default() as f64;
    println!(
        "{scheme:<12} {:>6} {:>14.0} {:>13.0} {:>14.2}",
        flows.len(),
        mean(&small) / 1e3,
        p99 / 1e3,
        mean(&large) / 1e6
    );
}
