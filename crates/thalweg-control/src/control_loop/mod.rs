//! The control loop: what collectors, switches and users say goes in, what is to be done comes out.
//!
//! There is one loop, and no I/O in it. The daemon, the lab and the emulator drive it: they tell it [`Input`]s with the time,
//! carry its [`Command`]s out, and tell it what became of them.
//!
//! ```text
//!   collectors ── links, addresses, arrivals ──►┌──────────────┐──► reroute, hold, abandon ──► hosts, switches
//!   switches ──── links, tables ───────────────►│ ControlLoop  │──► install, read back, repair ──► switches
//!   users ─────── pins, freeze, network ───────►│              │──► observe, poll, announce ──► collectors
//!                                               └──────┬───────┘
//!                                                      └► decisions, actions, counters: for whoever watches
//! ```
//!
//! | module | what it has |
//! |---|---|
//! | [`message`] | inputs and commands |
//! | [`crate::controller`] | which pair is to go where, and what came of it |
//! | [`arrivals`] | whether the packets of a rerouted pair arrive |
//! | [`routes`] | which routes there are to be, and whether they are what is installed |
//! | [`records`] | what happened, for whoever watches |
//!
//! **Time** is an argument of every input. What collectors report has a packet time of its own, by which decisions are
//! made; both are to go by the same clock.
//!
//! **Deterministic**: the same inputs give the same commands. **Bounded**: see [`ControllerOptions`]; a driver that does not take
//! commands has reroutes refused, and counted. **Frozen** it commands nothing that changes where packets go, but for pins and
//! the routes of a network that a user gives it.

pub mod arrivals;
pub mod message;
pub mod records;
pub mod routes;

use std::collections::VecDeque;
use std::sync::Arc;

use thalweg_measure::collector::{ArrivalReport, LinkEvent, Observation};
use thalweg_network::state::StateError;
use thalweg_network::{LinkId, NetworkState, RouterId};
use thalweg_wire::{EthernetAddresses, Nanos, Timestamp};

use crate::action::{Action, ActionId};
use crate::controller::{Controller, ControllerOptions, PairCommand};
use crate::decide::{Decider, Observed};
use crate::notices::congestion;
use crate::pair::Pair;
use crate::routes::{Paths, Rules};
use arrivals::{ArrivalCheck, ENOUGH, Fate};
pub use message::{Command, Input};
use records::RecentActions;
pub use records::{ActionOutcome, ActionReport, ActionTimes, Records};
use routes::RouteReconciler;
pub use routes::{Installation, RouteCounters, RouteOptions};

/// Commands that may wait to be taken before observations are left out.
const MAX_OBSERVATIONS: usize = 4_096;

/// What a control loop is to do.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ControlOptions {
    /// How long effects are waited for, and what is kept.
    pub controller: ControllerOptions,
    /// Flows with less than this share of a link are left out of what the decider is told. Default 0.
    pub least_share: f64,
    /// After so long a loop that has just begun looks where pairs are, and holds them there; `None` for never. Collectors
    /// have seen all senders by then. Default 1 s.
    pub learn_after: Option<Nanos>,
    /// Whether it is checked that the packets of rerouted pairs arrive. Default yes.
    pub checks_arrival: bool,
    /// Which routes it makes, and how they get into switches. Default: none.
    pub routes: RouteOptions,
}

impl Default for ControlOptions {
    fn default() -> ControlOptions {
        ControlOptions {
            controller: ControllerOptions::default(),
            least_share: 0.0,
            learn_after: Some(Nanos::from_secs(1)),
            checks_arrival: true,
            routes: RouteOptions::default(),
        }
    }
}

/// The loop.
pub struct ControlLoop {
    options: ControlOptions,
    controller: Controller,
    arrivals: ArrivalCheck,
    routes: RouteReconciler,
    commands: VecDeque<Command>,
    /// When it looks where pairs are; known once time is.
    learn_at: Option<Timestamp>,
    has_learnt: bool,
    /// All flows have been asked for because a poll was due.
    polls: bool,
    actions: RecentActions,
    /// When the last input was taken that actions may follow from.
    handled: Timestamp,
    /// Pairs and addresses by which packets set out and did not arrive.
    astray: VecDeque<(Pair, u8)>,
    /// Decisions that [`take_records`](Self::take_records) has given.
    recorded: u64,
}

impl ControlLoop {
    /// Steers the pairs of a network from `now` on.
    ///
    /// # Errors
    /// If the network can have no routes as asked for.
    pub fn new(
        options: ControlOptions,
        network: &Arc<NetworkState>,
        decider: Box<dyn Decider>,
        now: Timestamp,
    ) -> Result<ControlLoop, StateError> {
        let mut routes = RouteReconciler::new(options.routes, network, now)?;
        let mut commands = VecDeque::new();
        routes.begin(&mut commands);
        let paths = Paths::new(Arc::clone(routes.state()));
        let ControllerOptions { patience, kept, pending, .. } = options.controller;
        Ok(ControlLoop {
            controller: Controller::new(options.controller, paths, decider, now),
            arrivals: ArrivalCheck::new(patience, pending),
            routes,
            commands,
            learn_at: None,
            has_learnt: options.learn_after.is_none(),
            polls: false,
            actions: RecentActions::new(kept),
            handled: now,
            astray: VecDeque::new(),
            recorded: 0,
            options,
        })
    }

    /// Takes an input at `now`. What follows from it are [commands](Self::next_command).
    pub fn handle(&mut self, now: Timestamp, input: Input) {
        if !matches!(input, Input::Started(_)) {
            self.handled = now;
        }
        match input {
            Input::Tick => self.tick(now),
            Input::Link { router, event } => self.link(router, &event),
            Input::AddressChange { router, change } => {
                self.address_change(router, &change.to, change.time);
            }
            Input::Arrival(report) => self.arrival(&report),
            Input::Flows(flows) => self.flows(&flows, now),
            Input::Started(id) => self.started(id, now),
            Input::Refused(id, error) => self.controller.refused(id, error),
            Input::Announced(from) => self.routes.announced(from),
            Input::Installed => self.routes.installed(),
            Input::AnnounceFailed(error)
            | Input::InstallFailed(error)
            | Input::ReadBackFailed(error)
            | Input::RepairFailed(error) => self.routes.failed(error, now),
            Input::SwitchConnected(router) => self.routes.connected(router, now, &mut self.commands),
            Input::Links(links) => {
                if self.routes.set_links(links, self.controller.is_frozen(), &mut self.commands) {
                    self.take_up_routes();
                }
            }
            Input::LinkChanged { link, is_up } => self.link_changed(link, is_up),
            Input::Tables { router, rules } => self.tables(router, &rules, now),
            Input::Repaired => self.routes.repaired(now),
            Input::Network(state) => {
                if self.routes.set_network(&state, &mut self.commands) {
                    self.take_up_routes();
                }
            }
            Input::Pin { pair, address } => self.controller.pin(pair, address, now),
            Input::Unpin(pair) => self.controller.unpin(pair),
            Input::Freeze(is_frozen) => {
                self.controller.freeze(is_frozen);
                if !is_frozen && self.routes.thaw(now, &mut self.commands) {
                    self.take_up_routes();
                }
            }
        }
    }

    /// What is to be done next. Reroutes come before what else follows from the same input.
    pub fn next_command(&mut self) -> Option<Command> {
        let command = self.controller.next_command().map(|command| match command {
            PairCommand::Reroute(action) => Command::Reroute(action),
            PairCommand::Hold { pair, address, time } => Command::Hold { pair, address, time },
            PairCommand::Abandon { action, from } => Command::Abandon { action, from },
        });
        command.or_else(|| self.commands.pop_front())
    }

    /// What happened since this was last asked.
    pub fn take_records(&mut self) -> Records {
        let decided: u64 = self.controller.counters().decisions.iter().sum();
        let new = usize::try_from(decided - self.recorded).unwrap_or(usize::MAX);
        self.recorded = decided;
        let decisions = self.controller.decisions();
        let skipped = decisions.len().saturating_sub(new);
        let decisions = decisions.skip(skipped).cloned().collect();
        Records {
            decisions,
            actions: self.actions.update(&mut self.controller),
            astray: std::mem::take(&mut self.astray).into(),
            errors: self.routes.take_errors().into(),
        }
    }

    /// Pairs: decisions, pins, counters, paths.
    pub fn controller(&self) -> &Controller {
        &self.controller
    }

    /// The latest actions and what came of them as of the last [`take_records`](Self::take_records), the oldest first.
    pub fn actions(&self) -> impl DoubleEndedIterator<Item = &ActionReport> + '_ {
        self.actions.iter()
    }

    /// The network with the routes that it has, or is to have.
    pub fn state(&self) -> &Arc<NetworkState> {
        self.routes.state()
    }

    /// Whether the routes are in the switches, so that pairs can be steered.
    pub fn has_routes(&self) -> bool {
        self.routes.are_there()
    }

    /// What has been done to routes.
    pub fn route_counters(&self) -> RouteCounters {
        self.routes.counters()
    }

    fn tick(&mut self, now: Timestamp) {
        self.routes.advance(now, &mut self.commands);
        self.controller.advance(now);
        self.settle_arrivals(now);
        let learn_at = match (self.has_learnt, self.options.learn_after) {
            // A loop that goes by packets knows no time before the first of them.
            (false, Some(after)) if now > Timestamp(0) => Some(*self.learn_at.get_or_insert(now + after)),
            _ => None,
        };
        let polls = self.has_routes() && self.controller.next_poll().is_some_and(|poll| poll <= now);
        let learns = learn_at.is_some_and(|at| at <= now);
        self.has_learnt |= learns;
        if learns || polls && !self.polls {
            self.polls |= polls;
            self.commands.push_back(Command::PollFlows);
        }
    }

    fn flows(&mut self, flows: &[Observed], now: Timestamp) {
        match std::mem::take(&mut self.polls) {
            true => self.controller.polled(flows, now),
            false => self.controller.find(flows, now),
        }
    }

    fn link(&mut self, router: RouterId, event: &LinkEvent) {
        let paths = self.controller.paths();
        let congestion = congestion(paths, router, event, self.options.least_share);
        if let Some(congestion) = congestion.filter(|_| self.has_routes()) {
            self.controller.congested(&congestion);
        }
    }

    fn address_change(&mut self, router: Option<RouterId>, ethernet: &EthernetAddresses, time: Timestamp) {
        let topology = self.controller.paths().topology();
        let Some((pair, address)) = Pair::of(topology, ethernet) else { return };
        if router == Some(topology.router_of(pair.source)) {
            self.arrivals.set_out_by(pair, address);
        }
        self.controller.seen(pair, address, time);
    }

    fn started(&mut self, id: ActionId, now: Timestamp) {
        let Some(action) = self.controller.started(id, now) else { return };
        self.actions.started(id, ActionTimes { handled: self.handled, started: now });
        if self.options.checks_arrival {
            let until = action.deadline + arrivals::PATIENCE;
            if self.arrivals.watch(action.pair, action.address, until) {
                self.observe(&action);
            }
        }
    }

    /// Has collectors observe the pair of an action, or say what they have seen of it.
    fn observe(&mut self, &Action { id, pair, address, deadline, .. }: &Action) {
        if self.commands.len() >= MAX_OBSERVATIONS {
            // Nobody takes commands. Without reports the answer stays open.
            return;
        }
        let topology = self.controller.paths().topology();
        let Pair { source, destination } = pair;
        let ethernet = EthernetAddresses {
            destination: topology.mac(destination, address),
            source: topology.mac(source, 0),
        };
        let routers = [topology.router_of(source), topology.router_of(destination)];
        let (from, until) = (self.arrivals.count_from(pair), deadline + arrivals::PATIENCE);
        let observation = Observation { ethernet, id: id.0, from, packets: ENOUGH, until };
        self.commands.push_back(Command::Observe { routers, observation });
    }

    fn arrival(&mut self, report: &ArrivalReport) {
        let topology = self.controller.paths().topology();
        if let Some((pair, address)) = Pair::of(topology, &report.ethernet) {
            self.arrivals.report(pair, address, report);
        }
    }

    /// Takes back pairs whose packets do not arrive.
    fn settle_arrivals(&mut self, now: Timestamp) {
        for arrival in self.controller.take_arrivals(now) {
            let Action { pair, address, .. } = arrival.action;
            match self.arrivals.fate(pair, address, now) {
                Fate::Arrived | Fate::Elsewhere => {}
                Fate::Open => {
                    self.controller.left_open(arrival, now);
                    self.observe(&arrival.action);
                }
                Fate::Astray => {
                    self.controller.went_astray(&arrival, now);
                    if self.astray.len() >= self.options.controller.pending.max(1) {
                        self.astray.pop_front();
                    }
                    self.astray.push_back((pair, address));
                }
            }
        }
        self.arrivals.advance(now);
    }

    fn link_changed(&mut self, link: LinkId, is_up: bool) {
        let mut links = self.routes.links().clone();
        // A link that the network does not have concerns nobody.
        let changed = if is_up { links.repair(link) } else { links.fail(link) };
        if changed.is_ok() && self.routes.set_links(links, self.controller.is_frozen(), &mut self.commands) {
            self.take_up_routes();
        }
    }

    fn tables(&mut self, router: Option<RouterId>, rules: &Rules, now: Timestamp) {
        self.routes.read(router, rules, self.controller.is_frozen(), now, &mut self.commands);
    }

    /// Addresses lead other ways from now on.
    fn take_up_routes(&mut self) {
        self.controller.set_paths(Paths::new(Arc::clone(self.routes.state())));
        self.arrivals.clear();
    }
}

#[cfg(test)]
mod tests;
