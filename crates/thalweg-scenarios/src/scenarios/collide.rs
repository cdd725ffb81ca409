//! `collide`: two flows collide on a link, and the control loop reroutes one of them.
//!
//! Two pairs of hosts whose base addresses lead over the same link send TCP. The first flow fills the link, then the
//! second starts. The collectors report congestion, the controller finds a tree that avoids the link for one flow, an
//! ARP request gives its source the other address, and its packets take the other path.
//! | time | from | to |
//! |---|---|---|
//! | event | first full packet of the second flow at a monitor port | the packet that caused the event |
//! | decision | that packet | the controller handles the event |
//! | request | that moment | the decision is made and the ARP request sent |
//! | path | the request | first packet with the new address at a monitor port |
//!
//! Event to new path is the sum of the last three; the total is the sum of all four.

use std::time::Duration;

use serde::Serialize;
use thalweg_control::Pair;
use thalweg_control::routes::{LinkNumber, Paths};
use thalweg_lab::headroom::{HeadroomProbe, Verdict};
use thalweg_lab::{Headroom, Plan, Plane};
use thalweg_network::routing::TreeOptions;
use thalweg_network::topology::Node;
use thalweg_network::{EndpointId, Forwarding, LinkState, NetworkState, Topology};
use thalweg_wire::{BitRate, Nanos, Timestamp};

use super::{HostPair, Setting, network_of};
use crate::closed_loop::ClosedLoop;
use crate::configuration::{ActuatorKind, Decider, Files, RerouteOptions};
use crate::error::ScenarioError;
use crate::quantiles::Quantiles;
use crate::session::{HeadroomSum, Session, trees};
use crate::trace::{PathChange, RerouteRequest, Trace};
use crate::traffic::{self, Load, Server, Transfer};

/// Addresses of a host: one per spine.
pub(super) const ADDRESSES: u8 = 2;

/// Seeds of trees to try until two flows collide.
const SEEDS: std::ops::RangeInclusive<u64> = 1..=64;

/// How long the first flow has the link to itself: longer than its slow start.
pub(super) const FIRST_FLOW_LEAD: Duration = Duration::from_millis(700);

/// Duration of the second flow.
const SECOND_FLOW_TIME: Duration = Duration::from_secs(1);

/// Pause after a trial, in which queues drain and hosts return to their base paths.
pub(super) const DRAIN_TIME: Duration = Duration::from_millis(150);

/// Time before and after the collision in the plot.
const PLOTTED: (Nanos, Nanos) = (Nanos::from_millis(50), Nanos::from_millis(100));

/// Period after the collision in which both flows should have their full rates.
const SETTLED: (Nanos, Nanos) = (Nanos::from_millis(200), Nanos::from_millis(800));

/// Two flows and the link on which they collide.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Collision {
    /// The flow that starts first, and the one that joins it.
    pub pairs: [Pair; 2],
    /// Names of the switches at both ends of the link.
    pub link_ends: (String, String),
    /// The link direction that both flows use: `spine0:p1:out`.
    pub link: String,
    /// Seed of the trees.
    pub seed: u64,
}

/// The times of one pass of the control loop, from collision to new path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct LatencyBreakdown {
    /// First full packet of the second flow to the packet that caused the event.
    pub event_ns: u64,
    /// That packet to the moment when the controller handled the event.
    pub decision_ns: u64,
    /// That moment to the ARP request: deciding and sending.
    pub request_ns: u64,
    /// The request to the first packet with the new address.
    pub path_ns: u64,
}

impl LatencyBreakdown {
    /// Returns the time from the decision to the first packet on the new path.
    pub fn decision_to_path(&self) -> Nanos {
        Nanos(self.request_ns + self.path_ns)
    }

    /// Returns the time from the event to the first packet on the new path.
    pub fn event_to_path(&self) -> Nanos {
        Nanos(self.decision_ns + self.request_ns + self.path_ns)
    }

    /// Returns the time from the collision to the first packet on the new path.
    pub fn total(&self) -> Nanos {
        Nanos(self.event_ns).saturating_add(self.event_to_path())
    }
}

/// The result of one trial.
#[derive(Clone, Debug, Serialize)]
pub struct Trial {
    /// Latency of the loop; `None` if no flow was rerouted, or before the collision.
    pub latency: Option<LatencyBreakdown>,
    /// Whether a flow was rerouted before the collision, because iperf3's control connection looked like the second
    /// flow.
    #[serde(rename = "early")]
    pub is_early: bool,
    /// Number of reroutes of the two pairs during the trial.
    pub reroutes: u64,
    /// Number of reroutes of the flow that was rerouted most.
    pub most_flow_moves: u32,
    /// Payload rates of both flows from 0.2 to 0.8 s after the collision, in bits per second.
    #[serde(rename = "rates_bps")]
    pub rates: [f64; 2],
    /// Idle share of the CPU time, 0 to 1.
    pub idle_ratio: f64,
    /// Rates of both flows over time, in nanoseconds from the collision.
    #[serde(skip)]
    pub curves: [Vec<(f64, f64)>; 2],
}

/// The results of all trials.
#[derive(Clone, Debug)]
pub struct Results {
    /// Rate of the links.
    pub rate: BitRate,
    /// The network that ran.
    pub network: String,
    /// The hosts of both flows.
    pub flows: [HostPair; 2],
    /// The link direction on which they collide: `spine0:p1:out`.
    pub link: String,
    /// The trials in order.
    pub trials: Vec<Trial>,
    /// Headroom over all trials.
    pub headroom: Headroom,
    /// Frames lost between monitor ports and collectors, and frames and events overwritten before they were read.
    pub lost_frames: u64,
}

/// Runs the scenario on eBPF switches with ARP.
///
/// # Errors
/// If the lab cannot be created, or iperf3 fails.
pub fn run(trials: u32, setting: &mut Setting<'_>) -> Result<Results, ScenarioError> {
    run_on(Plane::Ebpf, ActuatorKind::Arp, trials, setting)
}

/// Runs the scenario on this type of switch with this actuator.
///
/// # Errors
/// If the lab cannot be created, or iperf3 fails.
pub(super) fn run_on(
    plane: Plane,
    actuator: ActuatorKind,
    trials: u32,
    setting: &mut Setting<'_>,
) -> Result<Results, ScenarioError> {
    traffic::check()?;
    let plan = Plan::leaf_spine(setting.rate).map_err(thalweg_lab::LabError::from)?;
    let plan = Plan { prefix: setting.prefix.clone(), plane, ..plan };
    let collision = choose(&plan.topology)?;
    let tables = trees(&plan.topology, ADDRESSES, collision.seed);
    let session = Session::up(plan, tables, setting.rate, &setting.stop)?;
    let reroute_options = reroute_options(actuator, collision.seed, setting.rate);
    let mut closed_loop = ClosedLoop::start(&session.lab, &session.state, &reroute_options)?;
    let servers = [0, 1].map(|flow| Server::start(&session.lab, collision.pairs[usize::from(flow)], flow));
    let _servers = servers.into_iter().collect::<Result<Vec<_>, _>>()?;
    session.wait(DRAIN_TIME)?;
    let (mut results, mut headroom) = (Vec::new(), HeadroomSum::default());
    for number in 1..=trials {
        let trial = trial(&session, &collision, &closed_loop, &mut headroom)?;
        let outcome = match &trial.latency {
            Some(latency) => format!("rerouted after {}", latency.total()),
            None if trial.is_early => "rerouted before the collision".to_owned(),
            None => "not rerouted".to_owned(),
        };
        (setting.on_progress)(&format!("trial {number} of {trials}: {outcome}"));
        results.push(trial);
    }
    let counters = closed_loop.finish();
    let topology = session.lab.topology();
    Ok(Results {
        rate: setting.rate,
        network: network_of(topology),
        flows: collision.pairs.map(|pair| HostPair::new(topology, pair)),
        link: collision.link,
        trials: results,
        headroom: headroom.total(),
        lost_frames: counters.sources.kernel_drops + counters.missed,
    })
}

/// Returns the traffic engineering settings of the scenario.
pub(super) fn reroute_options(actuator: ActuatorKind, seed: u64, rate: BitRate) -> RerouteOptions {
    let trees = TreeOptions { addresses: ADDRESSES, seed };
    RerouteOptions { decider: Decider::Greedy, actuator, trees, rate }
}

/// Returns the configuration files of the scenario on this type of switch.
///
/// # Errors
/// If the lab's plan is not valid.
pub fn files(plane: Plane, actuator: ActuatorKind, setting: &Setting<'_>) -> Result<Files, ScenarioError> {
    let plan = Plan::leaf_spine(setting.rate).map_err(thalweg_lab::LabError::from)?;
    let plan = Plan { prefix: setting.prefix.clone(), plane, ..plan };
    let seed = choose(&plan.topology)?.seed;
    Files::new(&plan, &reroute_options(actuator, seed, setting.rate))
}

/// Runs one trial: starts both flows, the second later, records the reroute, and moves both back to their base paths.
///
/// # Errors
/// If iperf3 fails.
pub(super) fn trial(
    session: &Session,
    collision: &Collision,
    closed_loop: &ClosedLoop,
    headroom_sum: &mut HeadroomSum,
) -> Result<Trial, ScenarioError> {
    let [first, second] = collision.pairs;
    closed_loop.take_trace();
    let probe = HeadroomProbe::start()?;
    let one = Transfer::start(&session.lab, first, 0, Load::Tcp(SECOND_FLOW_TIME * 2))?;
    session.wait(FIRST_FLOW_LEAD)?;
    let other = Transfer::start(&session.lab, second, 1, Load::Tcp(SECOND_FLOW_TIME))?;
    let is_stopped = || session.is_stopped();
    other.finish(is_stopped)?;
    let headroom = headroom_sum.add(&probe)?;
    one.finish(is_stopped)?;
    let trace = closed_loop.take_trace();
    closed_loop.reset_paths(&collision.pairs)?;
    session.wait(DRAIN_TIME)?;
    let Some(&collided) = trace.first_packets.get(&second) else {
        return Err(ScenarioError::Monitoring("no packet of the second flow was seen".to_owned()));
    };
    let rates = |(from, to): (Timestamp, Timestamp), step| {
        collision.pairs.map(|pair| {
            trace
                .arrived
                .get(&pair)
                .map_or_else(Vec::new, |arrivals| arrivals.rates(collided, (from, to), step))
        })
    };
    let after = rates((collided + SETTLED.0, collided + SETTLED.1), Nanos(SETTLED.1.0 - SETTLED.0.0));
    let request = trace.requests.iter().find(|request| collision.pairs.contains(&request.pair));
    let is_early = request.is_some_and(|request| request.event < collided);
    Ok(Trial {
        latency: request
            .filter(|_| !is_early)
            .and_then(|request| latency_breakdown(&trace, request, collided)),
        is_early,
        reroutes: trace.requests.iter().filter(|request| collision.pairs.contains(&request.pair)).count()
            as u64,
        most_flow_moves: trace.most_flow_moves,
        rates: after.map(|steps| steps.first().map_or(0.0, |step| step.1)),
        idle_ratio: headroom.idle,
        curves: rates((collided.saturating_sub(PLOTTED.0), collided + PLOTTED.1), Nanos::from_millis(1)),
    })
}

/// Returns the times of the loop that sent `request`, or `None` if no packet took the new path.
fn latency_breakdown(
    trace: &Trace,
    request: &RerouteRequest,
    collided: Timestamp,
) -> Option<LatencyBreakdown> {
    let is_result = |change: &&PathChange| {
        change.pair == request.pair && change.address == request.address && change.time >= request.decided
    };
    let change = trace.path_changes.iter().find(is_result)?;
    Some(LatencyBreakdown {
        event_ns: request.event.since(collided).0,
        decision_ns: request.decided.since(request.event).0,
        request_ns: request.sent.since(request.decided).0,
        path_ns: change.time.since(request.sent).0,
    })
}

/// Chooses two pairs that share a link between switches and that do not once either is rerouted. Prefers sources in
/// different racks, so that no monitor port carries both flows before the shared link.
///
/// # Errors
/// If the topology has no such pairs.
pub fn choose(topology: &std::sync::Arc<Topology>) -> Result<Collision, ScenarioError> {
    choose_where(topology, |_, _, _| true)
}

/// Like [`choose`], limited to pairs and shared links for which `holds` returns true.
///
/// # Errors
/// If the topology has no such pairs.
pub(super) fn choose_where(
    topology: &std::sync::Arc<Topology>,
    holds: impl Fn(&mut Paths, [Pair; 2], LinkNumber) -> bool,
) -> Result<Collision, ScenarioError> {
    let mut best = None;
    for seed in SEEDS {
        let tables = Forwarding::tables(trees(topology, ADDRESSES, seed));
        let state = NetworkState::new(topology.clone(), LinkState::new(topology), tables)?;
        let mut paths = Paths::new(state.into());
        for pairs in candidates(topology) {
            let link = shared_link(&mut paths, pairs).filter(|&link| holds(&mut paths, pairs, link));
            let Some(link) = link else { continue };
            let (router, port) = paths.port(link);
            let name = |node| topology.name(node).to_owned();
            let link_ends = (name(Node::Router(router)), name(topology.peer(router, port).node));
            let link = format!("{}:{port}:out", link_ends.0);
            let collision = Collision { pairs, link_ends, link, seed };
            let [one, other] = pairs.map(|pair| topology.router_of(pair.source));
            if one != other {
                return Ok(collision);
            }
            best.get_or_insert(collision);
        }
    }
    best.ok_or(ScenarioError::NoCollision)
}

/// Returns the seed of other trees by which the same pairs collide.
///
/// # Errors
/// If no seed gives such trees.
pub(super) fn other_trees(
    topology: &std::sync::Arc<Topology>,
    collision: &Collision,
) -> Result<u64, ScenarioError> {
    for seed in SEEDS.filter(|&seed| seed != collision.seed) {
        let tables = trees(topology, ADDRESSES, seed);
        if tables == trees(topology, ADDRESSES, collision.seed) {
            continue;
        }
        let state =
            NetworkState::new(topology.clone(), LinkState::new(topology), Forwarding::tables(tables))?;
        if shared_link(&mut Paths::new(state.into()), collision.pairs).is_some() {
            return Ok(seed);
        }
    }
    Err(ScenarioError::NoCollision)
}

/// Returns all combinations of two pairs of four different hosts, each pair between two racks.
fn candidates(topology: &Topology) -> impl Iterator<Item = [Pair; 2]> + '_ {
    let pairs = || {
        let ends = topology.endpoint_ids();
        let all =
            ends.flat_map(|source| topology.endpoint_ids().map(move |destination| (source, destination)));
        let far = |&(a, b): &(EndpointId, EndpointId)| topology.router_of(a) != topology.router_of(b);
        all.filter(far).map(|(source, destination)| Pair { source, destination })
    };
    let are_distinct = |one: &Pair, other: &Pair| {
        let [a, b, c, d] = [one.source, one.destination, other.source, other.destination];
        a < c && a != d && b != c && b != d
    };
    pairs().flat_map(move |one| {
        pairs().filter(move |other| are_distinct(&one, other)).map(move |other| [one, other])
    })
}

/// Returns the link that the base paths of two pairs share, if rerouting either one leaves no shared link.
fn shared_link(paths: &mut Paths, [one, other]: [Pair; 2]) -> Option<LinkNumber> {
    let mut links = |pair, address| paths.of(pair, address).map(<[_]>::to_vec);
    let (home, there) = (links(one, 0)?, links(other, 0)?);
    let (other_home, other_there) = (links(one, 1)?, links(other, 1)?);
    let are_disjoint = |a: &[_], b: &[_]| !a.iter().any(|link| b.contains(link));
    (are_disjoint(&other_home, &there) && are_disjoint(&home, &other_there))
        .then(|| home.iter().copied().find(|link| there.contains(link)))
        .flatten()
}

impl Results {
    /// Returns the latencies of the trials with a reroute.
    pub fn latencies(&self) -> impl Iterator<Item = &LatencyBreakdown> + '_ {
        self.trials.iter().filter_map(|trial| trial.latency.as_ref())
    }

    /// Returns the quantiles of one of their times.
    pub fn quantiles(&self, time: impl Fn(&LatencyBreakdown) -> Nanos) -> Quantiles {
        Quantiles::of(self.latencies().map(time))
    }

    /// Returns the trial with the median total latency.
    pub fn typical(&self) -> Option<&Trial> {
        let whole = self.quantiles(LatencyBreakdown::total).p50_ns;
        self.trials.iter().find(|trial| trial.latency.is_some_and(|latency| latency.total().0 == whole))
    }

    /// Returns the number of reroutes in all trials.
    pub fn reroutes(&self) -> u64 {
        self.trials.iter().map(|trial| trial.reroutes).sum()
    }

    /// Returns the number of reroutes of the flow that was rerouted most.
    pub fn most_flow_moves(&self) -> u32 {
        self.trials.iter().map(|trial| trial.most_flow_moves).max().unwrap_or(0)
    }

    /// Whether the machine had enough headroom.
    pub fn is_conclusive(&self) -> bool {
        self.headroom.verdict() == Verdict::Conclusive
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn latency_parts_add_up_to_the_total() {
        let pair = Pair { source: EndpointId(0), destination: EndpointId(2) };
        let at = |ns: u64| Timestamp(1_000_000 + ns);
        let request = RerouteRequest { pair, address: 1, event: at(400), decided: at(450), sent: at(470) };
        let change = |address, ns| PathChange { pair, address, time: at(ns) };
        let before = Trace { path_changes: vec![change(1, 100), change(0, 900)], ..Trace::default() };
        assert_eq!(
            latency_breakdown(&before, &request, at(0)),
            None,
            "an earlier change, or one to another address, does not count"
        );
        let trace = Trace {
            path_changes: vec![change(1, 100), change(0, 900), change(1, 1_000)],
            ..Trace::default()
        };
        let latency = latency_breakdown(&trace, &request, at(0)).unwrap();
        assert_eq!(
            latency,
            LatencyBreakdown { event_ns: 400, decision_ns: 50, request_ns: 20, path_ns: 530 }
        );
        assert_eq!((latency.event_to_path(), latency.total()), (Nanos(600), Nanos(1_000)));
    }

    #[test]
    fn the_report_describes_the_network_that_ran() {
        let topology = Plan::leaf_spine(thalweg_lab::DEFAULT_RATE).unwrap().topology;
        assert_eq!(network_of(&topology), "3 switches with 2 hosts each, 2 without hosts, 12 links");
    }

    #[test]
    fn colliding_flows_have_sources_in_different_racks() {
        let topology = Plan::leaf_spine(thalweg_lab::DEFAULT_RATE).unwrap().topology;
        let Collision { pairs: [one, other], link_ends, link, .. } = choose(&topology).unwrap();
        assert_ne!(topology.router_of(one.source), topology.router_of(other.source));
        assert_eq!(topology.router_of(one.destination), topology.router_of(other.destination));
        assert!(link_ends.0.starts_with("spine") && link_ends.1.starts_with("leaf"), "{link_ends:?}");
        assert!(link.starts_with(&format!("{}:p", link_ends.0)) && link.ends_with(":out"), "{link}");
    }

    #[test]
    fn single_path_topology_has_no_collision() {
        use thalweg_network::topology::shapes::{Tiers, dumbbell};
        let topology = std::sync::Arc::new(dumbbell(2, Tiers::default()).unwrap());
        assert!(matches!(choose(&topology), Err(ScenarioError::NoCollision)));
    }
}
