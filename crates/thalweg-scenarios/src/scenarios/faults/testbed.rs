//! The testbed of every fault: a lab, two flows that collide, and a control loop that reroutes flows and repairs
//! routes.

use std::sync::Arc;
use std::time::{Duration, Instant};

use thalweg_control::Pair;
use thalweg_control::control_loop::RouteCounters;
use thalweg_control::routes::reachability::{self, BrokenPath};
use thalweg_lab::headroom::HeadroomProbe;
use thalweg_lab::{LabError, Plan};
use thalweg_network::{Forwarding, LinkState, NetworkState, Node, RouterId, Topology};
use thalweg_wire::Nanos;

use super::miswired::miswired;
use super::{Fault, Outcome};
use crate::closed_loop::ClosedLoop;
use crate::configuration::ActuatorKind;
use crate::connectivity::unreachable;
use crate::error::ScenarioError;
use crate::installed::installed;
use crate::scenarios::Setting;
use crate::scenarios::collide::{self, ADDRESSES, Collision, DRAIN_TIME, FIRST_FLOW_LEAD, LatencyBreakdown};
use crate::session::{HeadroomSum, Session, trees};
use crate::traffic::{Load, Server, Transfer, Transferred};

/// Durations of the first and the second flow.
const TRANSFER_TIMES: [Duration; 2] = [Duration::from_secs(4), Duration::from_secs(3)];

/// Time for the loop to resolve the collision before the fault.
const RESOLVE_TIME: Duration = Duration::from_millis(500);

/// Timeout of recovery.
const RECOVERY_TIMEOUT: Duration = Duration::from_secs(5);

/// Maximum number of trials until flows are not rerouted before the collision.
const MAX_TRIALS: usize = 4;

/// A lab with two flows and a control loop.
pub(super) struct Testbed {
    pub(super) session: Session,
    pub(super) collision: Collision,
    pub(super) closed_loop: ClosedLoop,
    /// Route counters of loops that have ended.
    past_routes: RouteCounters,
    _servers: Vec<Server>,
    headroom: HeadroomSum,
    probe: HeadroomProbe,
    pub(super) log: Vec<String>,
    pub(super) failures: Vec<String>,
    recovery: Option<Nanos>,
}

impl Testbed {
    /// Creates a testbed whose network matches its topology.
    ///
    /// # Errors
    /// If the lab cannot be created.
    pub(super) fn up(setting: &Setting<'_>) -> Result<Testbed, ScenarioError> {
        let plan = Plan::leaf_spine(setting.rate).map_err(LabError::from)?;
        let topology = Arc::clone(&plan.topology);
        let collision = collide::choose(&topology)?;
        Testbed::over(plan, topology, collision, setting)
    }

    /// Creates a testbed with two swapped cables on the flows' alternative paths.
    ///
    /// # Errors
    /// If the lab cannot be created.
    pub(super) fn up_miswired(setting: &Setting<'_>) -> Result<Testbed, ScenarioError> {
        let plan = Plan::leaf_spine(setting.rate).map_err(LabError::from)?;
        let file = Arc::clone(&plan.topology);
        // Acknowledgements must pass the switch where the flows collide, and avoid the other spine.
        let collision = collide::choose_where(&file, |paths, pairs, link| {
            let (met, _) = paths.port(link);
            pairs.into_iter().all(|Pair { source, destination }| {
                let back = Pair { source: destination, destination: source };
                let links = paths.of(back, 0).map(<[_]>::to_vec).unwrap_or_default();
                links.into_iter().any(|link| paths.port(link).0 == met)
            })
        })?;
        let [one, other] = collision.pairs;
        let met = file.node_named(&collision.link_ends.0);
        let is_other_spine =
            |router: &RouterId| file.rack_size(*router) == 0 && Some(Node::Router(*router)) != met;
        let spine = file.router_ids().find(is_other_spine).ok_or(ScenarioError::NoCollision)?;
        let swapped = [file.router_of(one.destination), file.router_of(other.source)];
        let plan = Plan { topology: Arc::new(miswired(&file, spine, swapped)), ..plan };
        Testbed::over(plan, file, collision, setting)
    }

    fn over(
        plan: Plan,
        topology: Arc<Topology>,
        collision: Collision,
        setting: &Setting<'_>,
    ) -> Result<Testbed, ScenarioError> {
        let plan = Plan { prefix: setting.prefix.clone(), ..plan };
        let tables = trees(&topology, ADDRESSES, collision.seed);
        let session = Session::up_assuming(topology, plan, tables, setting.rate, &setting.stop)?;
        let probe = HeadroomProbe::start()?;
        let closed_loop = watch(&session, &collision)?;
        let servers =
            [0, 1].map(|flow| Server::start(&session.lab, collision.pairs[usize::from(flow)], flow));
        let servers = servers.into_iter().collect::<Result<_, _>>()?;
        session.wait(DRAIN_TIME)?;
        Ok(Testbed {
            session,
            collision,
            closed_loop,
            past_routes: RouteCounters::default(),
            _servers: servers,
            headroom: HeadroomSum::default(),
            probe,
            log: Vec::new(),
            failures: Vec::new(),
            recovery: Some(Nanos::ZERO),
        })
    }

    /// Starts both flows, waits for the reroute, and calls `inject` while they send. Returns the results of both
    /// transfers.
    ///
    /// # Errors
    /// If iperf3 or `inject` fails.
    pub(super) fn while_sending(
        &mut self,
        inject: impl FnOnce(&mut Testbed) -> Result<(), ScenarioError>,
    ) -> Result<[Transferred; 2], ScenarioError> {
        let [first, second] = self.collision.pairs;
        self.closed_loop.take_trace();
        let one = Transfer::start(&self.session.lab, first, 0, Load::Tcp(TRANSFER_TIMES[0]))?;
        self.session.wait(FIRST_FLOW_LEAD)?;
        let other = Transfer::start(&self.session.lab, second, 1, Load::Tcp(TRANSFER_TIMES[1]))?;
        self.session.wait(RESOLVE_TIME)?;
        inject(self)?;
        let is_stopped = || self.session.is_stopped();
        let other = other.finish(is_stopped)?;
        Ok([one.finish(is_stopped)?, other])
    }

    /// Returns the paths that are broken now, by the real topology.
    ///
    /// # Errors
    /// If the lab no longer exists.
    pub(super) fn broken_paths(&self) -> Result<Vec<BrokenPath>, ScenarioError> {
        let lab = &self.session.lab;
        Ok(reachability::broken_paths(lab.topology(), &lab.links()?, &installed(lab)?, ADDRESSES))
    }

    /// Waits until no path is broken; call it when a fault ends. The longest of several recoveries counts.
    ///
    /// # Errors
    /// If the lab no longer exists.
    pub(super) fn await_recovery(&mut self) -> Result<(), ScenarioError> {
        let start = Instant::now();
        while !self.broken_paths()?.is_empty() {
            if start.elapsed() > RECOVERY_TIMEOUT {
                self.recovery = None;
                return Ok(());
            }
            self.session.wait(Duration::from_millis(1))?;
        }
        let took = Nanos(start.elapsed().as_nanos() as u64);
        self.recovery = self.recovery.map(|longest| longest.max(took));
        Ok(())
    }

    /// Stops the control loop without any cleanup.
    pub(super) fn kill_controller(&mut self) {
        let RouteCounters { corrected, rerouted, .. } = self.closed_loop.finish().routes;
        self.past_routes.corrected += corrected;
        self.past_routes.rerouted += rerouted;
    }

    /// Starts a control loop that assumes this topology and the trees of `seed`, regardless of the installed rules.
    ///
    /// # Errors
    /// If it cannot start.
    pub(super) fn start_controller(
        &mut self,
        topology: &Arc<Topology>,
        seed: u64,
    ) -> Result<(), ScenarioError> {
        self.session.state = state(topology, seed)?;
        self.collision.seed = seed;
        self.closed_loop = watch(&self.session, &self.collision)?;
        Ok(())
    }

    /// Runs another collision and returns the latency of its reroute.
    ///
    /// # Errors
    /// If iperf3 fails.
    pub(super) fn collide(&mut self) -> Result<Option<LatencyBreakdown>, ScenarioError> {
        self.reset_paths()?;
        for _ in 0..MAX_TRIALS {
            let trial =
                collide::trial(&self.session, &self.collision, &self.closed_loop, &mut self.headroom)?;
            if !trial.is_early {
                return Ok(trial.latency);
            }
        }
        Ok(None)
    }

    /// Moves both pairs back to the base addresses of their destinations.
    ///
    /// # Errors
    /// If the scenario is asked to stop.
    pub(super) fn reset_paths(&mut self) -> Result<(), ScenarioError> {
        self.closed_loop.reset_paths(&self.collision.pairs)?;
        self.session.wait(DRAIN_TIME)
    }

    /// Returns the pairs that cannot connect.
    ///
    /// # Errors
    /// If a host's namespace cannot be entered.
    pub(super) fn unreachable(&self) -> Result<Vec<Pair>, ScenarioError> {
        unreachable(&self.session.lab)
    }

    /// Adds a line to the log.
    pub(super) fn log(&mut self, line: impl Into<String>) {
        self.log.push(line.into());
    }

    /// Records `failure` a failure unless `holds`.
    pub(super) fn check(&mut self, holds: bool, failure: &str) {
        if !holds {
            self.failures.push(failure.to_owned());
        }
    }

    /// Returns the real topology.
    pub(super) fn topology(&self) -> Arc<Topology> {
        Arc::clone(&self.session.lab.plan().topology)
    }

    /// Checks the conditions and removes the lab.
    ///
    /// # Errors
    /// If the loop has ended early, or iperf3 fails.
    pub(super) fn end(mut self, fault: Fault) -> Result<Outcome, ScenarioError> {
        let next_collision = self.collide()?.map(|latency| latency.total());
        let topology = self.topology();
        let misrouted =
            self.broken_paths()?.iter().map(|path| path.describe(&topology).to_string()).collect();
        let unreachable = self.unreachable()?.iter().map(|pair| pair.name(&topology).to_string()).collect();
        self.kill_controller();
        let RouteCounters { corrected, rerouted, .. } = self.past_routes;
        self.log(format!("{corrected} rules repaired, trees recomputed {rerouted} times"));
        let headroom = self.probe.finish()?;
        let (log, failures, recovery) = (self.log, self.failures, self.recovery);
        Ok(Outcome { fault, log, failures, recovery, misrouted, unreachable, next_collision, headroom })
    }
}

fn watch(session: &Session, collision: &Collision) -> Result<ClosedLoop, ScenarioError> {
    let reroute_options = collide::reroute_options(ActuatorKind::Arp, collision.seed, session.rate);
    ClosedLoop::start_reconciling(&session.lab, &session.state, &reroute_options)
}

/// Returns the network state with the trees of this seed and all links up.
pub(super) fn state(topology: &Arc<Topology>, seed: u64) -> Result<Arc<NetworkState>, ScenarioError> {
    let tables = Forwarding::tables(trees(topology, ADDRESSES, seed));
    Ok(Arc::new(NetworkState::new(Arc::clone(topology), LinkState::new(topology), tables)?))
}
