//! `udp`: a rerouted flow without acknowledgements stays on its new path.
//!
//! A host probes a silent neighbour after a few seconds, and the answer has the base address, so a UDP flow would
//! return to its old path after about 5 s. The controller therefore repeats its ARP request every 2 s. This scenario
//! reroutes one UDP flow and checks the path of every mirrored packet.

use std::time::Duration;

use thalweg_lab::headroom::HeadroomProbe;
use thalweg_lab::{Headroom, Plan};
use thalweg_network::routing::TreeOptions;
use thalweg_wire::{BitRate, Nanos};

use super::{HostPair, Setting, collide, network_of};
use crate::closed_loop::ClosedLoop;
use crate::configuration::{ActuatorKind, Decider, Files, RerouteOptions};
use crate::error::ScenarioError;
use crate::session::{HeadroomSum, Session, trees};
use crate::traffic::{self, Load, Server, Transfer};

/// Rate of the flow as a share of the link's.
const SHARE: f64 = 0.5;

/// Pause before the reroute, and after the server has started.
const PAUSE: Duration = Duration::from_millis(500);

/// The results.
#[derive(Clone, Debug)]
pub struct Results {
    /// Rate of the links.
    pub rate: BitRate,
    /// The network that ran.
    pub network: String,
    /// The hosts of the flow.
    pub flow: HostPair,
    /// Observation time after the reroute.
    pub duration: Duration,
    /// Time from the ARP request to the first packet on the new path; `None` if it never took it.
    pub request_to_path: Option<Nanos>,
    /// Packets on the new path.
    pub new_path_packets: u64,
    /// Packets on the old path after the reroute.
    pub old_path_packets: u64,
    /// Repeated ARP requests.
    pub refreshes: u64,
    /// Share of datagrams that the receiver missed, 0 to 1.
    pub loss_ratio: f64,
    /// Headroom of the machine.
    pub headroom: Headroom,
}

/// Returns the traffic engineering settings: no decisions, because the flow is pinned.
fn reroute_options(seed: u64, rate: BitRate) -> RerouteOptions {
    let trees = TreeOptions { addresses: collide::ADDRESSES, seed };
    RerouteOptions { decider: Decider::Static, actuator: ActuatorKind::Arp, trees, rate }
}

/// Returns the configuration files of the scenario.
///
/// # Errors
/// If the lab's plan is not valid.
pub fn files(setting: &Setting<'_>) -> Result<Files, ScenarioError> {
    let plan = Plan::leaf_spine(setting.rate).map_err(thalweg_lab::LabError::from)?;
    let plan = Plan { prefix: setting.prefix.clone(), ..plan };
    let seed = collide::choose(&plan.topology)?.seed;
    Files::new(&plan, &reroute_options(seed, setting.rate))
}

/// Runs the scenario for `time`, in whole seconds.
///
/// # Errors
/// If the lab cannot be created, or iperf3 fails.
pub fn run(time: Duration, setting: &mut Setting<'_>) -> Result<Results, ScenarioError> {
    traffic::check()?;
    let plan = Plan::leaf_spine(setting.rate).map_err(thalweg_lab::LabError::from)?;
    let plan = Plan { prefix: setting.prefix.clone(), ..plan };
    let collision = collide::choose(&plan.topology)?;
    let pair = collision.pairs[0];
    let tables = trees(&plan.topology, collide::ADDRESSES, collision.seed);
    let session = Session::up(plan, tables, setting.rate, &setting.stop)?;
    let reroute_options = reroute_options(collision.seed, setting.rate);
    let mut closed_loop = ClosedLoop::start(&session.lab, &session.state, &reroute_options)?;
    let _server = Server::start(&session.lab, pair, 0)?;
    session.wait(PAUSE)?;

    let (probe, mut headroom) = (HeadroomProbe::start()?, HeadroomSum::default());
    let load = Load::Udp(BitRate((SHARE * setting.rate.0 as f64) as u64), time + Duration::from_secs(1));
    let transfer = Transfer::start(&session.lab, pair, 0, load)?;
    session.wait(PAUSE)?;
    closed_loop.take_trace();
    closed_loop.pin(pair, 1)?;
    (setting.on_progress)(&format!("{} moved to its new path", pair.name(session.lab.topology())));
    // Packets still in queues take the old path, and do not count as returning to it.
    session.wait(PAUSE)?;
    let moving = closed_loop.take_trace();
    let transferred = transfer.finish(|| session.is_stopped())?;
    let trace = closed_loop.take_trace();
    headroom.add(&probe)?;
    let request = moving.requests.iter().find(|request| request.pair == pair);
    let change = moving.path_changes.iter().find(|change| change.pair == pair && change.address == 1);
    let flow = HostPair::new(session.lab.topology(), pair);
    let sent = |address| trace.sent.get(&(pair, address)).copied().unwrap_or(0);
    Ok(Results {
        rate: setting.rate,
        network: network_of(session.lab.topology()),
        flow,
        duration: time,
        request_to_path: request.zip(change).map(|(request, change)| change.time.since(request.sent)),
        new_path_packets: sent(1),
        old_path_packets: sent(0),
        refreshes: closed_loop.finish().refreshes,
        loss_ratio: transferred.loss_ratio,
        headroom: headroom.total(),
    })
}
