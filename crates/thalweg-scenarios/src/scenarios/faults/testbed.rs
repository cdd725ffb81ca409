//! What every fault is tried on: a lab, two flows that collide, and a loop that steers and keeps the routes whole.

use std::sync::Arc;
use std::time::{Duration, Instant};

use thalweg_control::Pair;
use thalweg_control::control_loop::RouteCounters;
use thalweg_control::routes::reachability::{self, BrokenPath};
use thalweg_lab::headroom::Begun;
use thalweg_lab::{LabError, Plan};
use thalweg_network::{Forwarding, LinkState, NetworkState, Node, RouterId, Topology};
use thalweg_wire::Nanos;

use super::miswired::miswired;
use super::{Fault, Outcome};
use crate::closed_loop::ClosedLoop;
use crate::configuration::By;
use crate::error::ScenarioError;
use crate::installed::installed;
use crate::reach::unreachable;
use crate::scenarios::Setting;
use crate::scenarios::collide::{self, ADDRESSES, ALONE, Collision, REST, Turn};
use crate::session::{Session, Spare, trees};
use crate::traffic::{Load, Server, Transfer, Transferred};

/// How long the first flow sends, and the second.
const SENT: [Duration; 2] = [Duration::from_secs(4), Duration::from_secs(3)];

/// How long a collision may last before the fault strikes all the same.
const APART: Duration = Duration::from_millis(500);

/// How long forwarding may take to be whole.
const WHOLE: Duration = Duration::from_secs(5);

/// How often a collision is tried anew whose flows were parted before they met.
const TRIES: usize = 4;

/// What a fault is tried on.
pub(super) struct Testbed {
    pub(super) session: Session,
    pub(super) collision: Collision,
    pub(super) watched: ClosedLoop,
    /// What loops that have ended did to routes.
    kept: RouteCounters,
    _servers: Vec<Server>,
    spare: Spare,
    begun: Begun,
    pub(super) story: Vec<String>,
    pub(super) broken: Vec<String>,
    whole_after: Option<Nanos>,
}

impl Testbed {
    /// On a network that is as the topology says.
    ///
    /// # Errors
    /// If the lab cannot be had.
    pub(super) fn up(setting: &Setting<'_>) -> Result<Testbed, ScenarioError> {
        let plan = Plan::leaf_spine(setting.rate).map_err(LabError::from)?;
        let topology = Arc::clone(&plan.topology);
        let collision = collide::choose(&topology)?;
        Testbed::over(plan, topology, collision, setting)
    }

    /// On one where two cables are swapped that the flows' other ways lead over.
    ///
    /// # Errors
    /// If the lab cannot be had.
    pub(super) fn up_miswired(setting: &Setting<'_>) -> Result<Testbed, ScenarioError> {
        let plan = Plan::leaf_spine(setting.rate).map_err(LabError::from)?;
        let file = Arc::clone(&plan.topology);
        // Acknowledgements are to come by the switch that the flows meet at, and to miss the other.
        let collision = collide::choose_where(&file, |paths, pairs, link| {
            let (met, _) = paths.port(link);
            pairs.into_iter().all(|Pair { source, destination }| {
                let back = Pair { source: destination, destination: source };
                let links = paths.of(back, 0).map(<[_]>::to_vec).unwrap_or_default();
                links.into_iter().any(|link| paths.port(link).0 == met)
            })
        })?;
        let [one, other] = collision.pairs;
        let met = file.node_named(&collision.link.0);
        let is_other_spine =
            |router: &RouterId| file.rack_size(*router) == 0 && Some(Node::Router(*router)) != met;
        let spine = file.router_ids().find(is_other_spine).ok_or(ScenarioError::NothingCollides)?;
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
        let session = Session::up_believing(topology, plan, tables, setting.rate, &setting.stop)?;
        let begun = Begun::now()?;
        let watched = watch(&session, &collision)?;
        let servers =
            [0, 1].map(|flow| Server::start(&session.lab, collision.pairs[usize::from(flow)], flow));
        let servers = servers.into_iter().collect::<Result<_, _>>()?;
        session.wait(REST)?;
        Ok(Testbed {
            session,
            collision,
            watched,
            kept: RouteCounters::default(),
            _servers: servers,
            spare: Spare::default(),
            begun,
            story: Vec::new(),
            broken: Vec::new(),
            whole_after: Some(Nanos::ZERO),
        })
    }

    /// Has both flows send, waits until they are apart, and lets `befall` what is to befall while they send on. Gives
    /// what came through of both.
    ///
    /// # Errors
    /// If iperf3 fails, or `befall` does.
    pub(super) fn meanwhile(
        &mut self,
        befall: impl FnOnce(&mut Testbed) -> Result<(), ScenarioError>,
    ) -> Result<[Transferred; 2], ScenarioError> {
        let [first, second] = self.collision.pairs;
        self.watched.take_trace();
        let one = Transfer::start(&self.session.lab, first, 0, Load::Tcp(SENT[0]))?;
        self.session.wait(ALONE)?;
        let other = Transfer::start(&self.session.lab, second, 1, Load::Tcp(SENT[1]))?;
        self.session.wait(APART)?;
        befall(self)?;
        let is_stopped = || self.session.is_stopped();
        let other = other.finish(is_stopped)?;
        Ok([one.finish(is_stopped)?, other])
    }

    /// What goes astray at the moment, by the network as it is.
    ///
    /// # Errors
    /// If the lab is gone.
    pub(super) fn astray(&self) -> Result<Vec<BrokenPath>, ScenarioError> {
        let lab = &self.session.lab;
        Ok(reachability::broken_paths(lab.topology(), &lab.links()?, &installed(lab)?, ADDRESSES))
    }

    /// Waits until nothing goes astray: the fault has just ended. Of several times the longest counts.
    ///
    /// # Errors
    /// If the lab is gone.
    pub(super) fn await_whole(&mut self) -> Result<(), ScenarioError> {
        let begun = Instant::now();
        while !self.astray()?.is_empty() {
            if begun.elapsed() > WHOLE {
                self.whole_after = None;
                return Ok(());
            }
            self.session.wait(Duration::from_millis(1))?;
        }
        let took = Nanos(begun.elapsed().as_nanos() as u64);
        self.whole_after = self.whole_after.map(|longest| longest.max(took));
        Ok(())
    }

    /// Ends the loop, as if it were killed.
    pub(super) fn kill_controller(&mut self) {
        let RouteCounters { corrected, rerouted, .. } = self.watched.end().routes;
        self.kept.corrected += corrected;
        self.kept.rerouted += rerouted;
    }

    /// Begins a loop for the routes that `seed` makes of this topology, whatever is installed.
    ///
    /// # Errors
    /// If it cannot begin.
    pub(super) fn begin_controller(
        &mut self,
        topology: &Arc<Topology>,
        seed: u64,
    ) -> Result<(), ScenarioError> {
        self.session.state = state(topology, seed)?;
        self.collision.seed = seed;
        self.watched = watch(&self.session, &self.collision)?;
        Ok(())
    }

    /// Has the flows collide once more, and gives the turn of the loop that took them apart.
    ///
    /// # Errors
    /// If iperf3 fails.
    pub(super) fn collide(&mut self) -> Result<Option<Turn>, ScenarioError> {
        self.send_home()?;
        for _ in 0..TRIES {
            let trial = collide::trial(&self.session, &self.collision, &self.watched, &mut self.spare)?;
            if !trial.is_early {
                return Ok(trial.turn);
            }
        }
        Ok(None)
    }

    /// Sends both pairs to the base addresses of their destinations.
    ///
    /// # Errors
    /// If somebody wants it to end.
    pub(super) fn send_home(&mut self) -> Result<(), ScenarioError> {
        self.watched.send_home(&self.collision.pairs)?;
        self.session.wait(REST)
    }

    /// Pairs that do not reach each other.
    ///
    /// # Errors
    /// If hosts cannot be entered.
    pub(super) fn unreachable(&self) -> Result<Vec<Pair>, ScenarioError> {
        unreachable(&self.session.lab)
    }

    /// What is told of it.
    pub(super) fn tell(&mut self, line: impl Into<String>) {
        self.story.push(line.into());
    }

    /// Notes what does not hold.
    pub(super) fn hold(&mut self, holds: bool, what: &str) {
        if !holds {
            self.broken.push(what.to_owned());
        }
    }

    /// The network as it is.
    pub(super) fn topology(&self) -> Arc<Topology> {
        Arc::clone(&self.session.lab.plan().topology)
    }

    /// Looks whether all holds that has to, and ends it.
    ///
    /// # Errors
    /// If the loop has ended early, or iperf3 fails.
    pub(super) fn end(mut self, fault: Fault) -> Result<Outcome, ScenarioError> {
        let next = self.collide()?.map(|turn| turn.whole());
        let topology = self.topology();
        let astray = self.astray()?.iter().map(|astray| astray.describe(&topology).to_string()).collect();
        let unreachable = self.unreachable()?.iter().map(|pair| pair.name(&topology).to_string()).collect();
        self.kill_controller();
        let RouteCounters { corrected, rerouted, .. } = self.kept;
        self.tell(format!("{corrected} rules put right, trees made anew {rerouted} times"));
        let headroom = self.begun.end()?;
        let (story, broken, whole_after) = (self.story, self.broken, self.whole_after);
        Ok(Outcome { fault, story, broken, whole_after, astray, unreachable, next, headroom })
    }
}

fn watch(session: &Session, collision: &Collision) -> Result<ClosedLoop, ScenarioError> {
    let steering = collide::steering(By::Arp, collision.seed, session.rate);
    ClosedLoop::start_reconciling(&session.lab, &session.state, &steering)
}

/// The network with the trees of this seed, all links up.
pub(super) fn state(topology: &Arc<Topology>, seed: u64) -> Result<Arc<NetworkState>, ScenarioError> {
    let tables = Forwarding::tables(trees(topology, ADDRESSES, seed));
    Ok(Arc::new(NetworkState::new(Arc::clone(topology), LinkState::new(topology), tables)?))
}
