//! The models that are compared, and one run of each.

use serde::{Deserialize, Serialize};
use thalweg_emulator::bottleneck::lane::{Lane, PortFlow};
use thalweg_emulator::bottleneck::port::{Origin, Port, Queue};
use thalweg_emulator::bottleneck::round_flow::RoundFlow;
use thalweg_emulator::bottleneck::tcp_flow::TcpFlow;
use thalweg_emulator::schemes::scavenger::ScavengerConfig;
use thalweg_emulator::workloads::burst_process::{
    Arrival, BurstPackets, BurstProcess, PACKET_BYTES, Rounding, SegmentPackets,
};
use thalweg_emulator::workloads::burstiness::Burstiness;
use thalweg_wire::{BitRate, Nanos};

use super::{BACKGROUND, PORT, WINDOW_PS};

/// Packets that all lanes process before the next ones are made.
const GROUP: usize = 1_024;

/// A model of the background traffic and the flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Model {
    /// The packets of all bursts through one interface, H-TCP in rounds: the published program.
    Published,
    /// Each burst with its own packets, H-TCP in rounds.
    Rounds,
    /// Each burst with its own packets, the H-TCP of emulated hosts.
    Tcp,
}

impl Model {
    pub(super) const ALL: [Model; 3] = [Model::Published, Model::Rounds, Model::Tcp];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Model::Published => "published",
            Model::Rounds => "rounds",
            Model::Tcp => "TCP",
        }
    }
}

/// A flow and the port that it goes through.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Case {
    pub(super) rate: BitRate,
    pub(super) round_trip: Nanos,
    pub(super) queue: Queue,
    pub(super) port: ScavengerConfig,
}

impl Case {
    /// A flow in the queue of the background traffic, with the buffers of table 4.1.
    pub(super) fn in_primary(rate: BitRate, round_trip: Nanos) -> Case {
        Case { rate, round_trip, queue: Queue::Primary, port: ScavengerConfig::default() }
    }

    fn lane<F: PortFlow>(&self, flow: F) -> anyhow::Result<Lane<F>> {
        Ok(Lane::new(Port::new(PORT, &self.port)?, flow, self.queue))
    }
}

/// The result of a case in one run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Ran {
    /// Background packets.
    pub(super) offered: u64,
    pub(super) dropped: u64,
    /// Packets of the flow.
    pub(super) flow_offered: u64,
    pub(super) flow_dropped: u64,
    /// Bytes of the flow that arrived, each once, with headers.
    pub(super) flow_bytes: f64,
}

impl Ran {
    /// The share of background packets that were dropped.
    pub(super) fn loss(&self) -> f64 {
        self.dropped as f64 / self.offered.max(1) as f64
    }

    fn of<F: PortFlow>(lane: &Lane<F>, flow_bytes: f64) -> Ran {
        let (background, flow) = (lane.tally(Origin::Background), lane.tally(Origin::Flow));
        Ran {
            offered: background.offered,
            dropped: background.dropped,
            flow_offered: flow.offered,
            flow_dropped: flow.dropped,
            flow_bytes,
        }
    }
}

/// The background traffic with `lambda` bursts per second.
pub(super) fn process(lambda: f64) -> BurstProcess {
    BurstProcess::of_dissertation(lambda, BACKGROUND)
}

/// Runs all cases with the same background traffic up to `until_ps`.
///
/// # Errors
/// If the background traffic or a port is impossible.
pub(super) fn run(
    model: Model,
    lambda: f64,
    seed: u64,
    until_ps: u64,
    cases: &[Case],
) -> anyhow::Result<Vec<Ran>> {
    let process = process(lambda);
    match model {
        Model::Published => rounds(SegmentPackets::new(&process, seed, PORT)?, until_ps, cases),
        Model::Rounds => rounds(BurstPackets::new(&process, seed, Rounding::Up)?, until_ps, cases),
        Model::Tcp => {
            let packets = BurstPackets::new(&process, seed, Rounding::Up)?;
            let flow = |case: &Case| TcpFlow::new(case.rate, case.round_trip);
            // 1,448 bytes of payload in each packet.
            let bytes =
                |lane: &Lane<TcpFlow>| lane.flow().delivered() as f64 * f64::from(PACKET_BYTES) / 1_448.0;
            replay(packets, until_ps, cases, flow, bytes)
        }
    }
}

fn rounds(packets: impl Iterator<Item = Arrival>, until_ps: u64, cases: &[Case]) -> anyhow::Result<Vec<Ran>> {
    let flow = |case: &Case| RoundFlow::new(case.rate, case.round_trip, PORT);
    let bytes = |lane: &Lane<RoundFlow>| lane.tally(Origin::Flow).sent as f64 * f64::from(PACKET_BYTES);
    replay(packets, until_ps, cases, flow, bytes)
}

fn replay<F: PortFlow>(
    mut packets: impl Iterator<Item = Arrival>,
    until_ps: u64,
    cases: &[Case],
    flow: impl Fn(&Case) -> F,
    bytes: impl Fn(&Lane<F>) -> f64,
) -> anyhow::Result<Vec<Ran>> {
    let mut lanes = cases.iter().map(|case| case.lane(flow(case))).collect::<anyhow::Result<Vec<_>>>()?;
    let mut group = Vec::with_capacity(GROUP);
    loop {
        group.clear();
        group.extend(packets.by_ref().take(GROUP));
        let is_over = group.last().is_none_or(|packet: &Arrival| packet.at_ps >= until_ps);
        group.retain(|packet| packet.at_ps < until_ps);
        lanes.iter_mut().for_each(|lane| lane.run(&group));
        if is_over {
            break;
        }
    }
    Ok(lanes
        .iter_mut()
        .map(|lane| {
            lane.run_until(until_ps);
            lane.check_invariants();
            Ran::of(lane, bytes(lane))
        })
        .collect())
}

/// The burstiness of packets up to `until_ps`, by definition.
pub(super) fn burstiness(packets: impl Iterator<Item = Arrival>, until_ps: u64) -> f64 {
    let mut burstiness = Burstiness::new(WINDOW_PS);
    for packet in packets.take_while(|packet| packet.at_ps < until_ps) {
        burstiness.add(packet.at_ps, packet.length);
    }
    burstiness.finish(until_ps);
    burstiness.value()
}
