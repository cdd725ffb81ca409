//! The control loop: reports of collectors, switches and users in, commands out.
//!
//! The loop does no I/O. The daemon, the lab and the emulator drive it: they pass [`Input`]s with the time, carry out
//! its [`Command`]s and report the results.
//!
//! ```text
//!   collectors ── links, addresses, arrivals ──►┌──────────────┐──► reroute, hold, abandon ──► hosts, switches
//!   switches ──── links, tables ───────────────►│ ControlLoop  │──► install, read back, repair ──► switches
//!   users ─────── pins, freeze, network ───────►│              │──► observe, poll, announce ──► collectors
//!                                               └──────┬───────┘
//!                                                      └► decisions, actions, counters: for users, logs, subscribers
//! ```
//!
//! | module | contents |
//! |---|---|
//! | [`message`] | inputs and commands |
//! | [`crate::controller`] | issues actions and follows each to its outcome |
//! | [`link_signals`] | which links are down; holds flapping links down |
//! | [`arrivals`] | checks that the packets of a rerouted pair arrive |
//! | [`routes`] | computes, announces, installs and reconciles routes |
//! | [`records`] | decisions, actions and errors, for users, logs and subscribers |
//!
//! **Time** is an argument of every input. Collector reports carry a packet time of their own, which decisions use.
//! Both must come from the same clock.
//!
//! **Deterministic**: the same inputs give the same commands. **Bounded**: see [`ControllerOptions`]. If a driver
//! does not take commands, further reroutes are refused and counted. **Frozen**: a frozen loop commands nothing that
//! changes forwarding, except pins and the routes of a network that a user sets.

pub mod arrivals;
pub mod link_signals;
pub mod message;
pub mod records;
pub mod routes;

use std::collections::VecDeque;
use std::sync::Arc;

use thalweg_measure::collector::{ArrivalReport, CongestionEvent, Observation};
use thalweg_network::state::StateError;
use thalweg_network::{LinkId, LinkState, NetworkState, RouterId};
use thalweg_wire::{EthernetAddresses, Nanos, Timestamp};

use crate::action::{Action, ActionId};
use crate::controller::{Controller, ControllerOptions, PairCommand};
use crate::decide::{Decider, PairRate};
use crate::pair::Pair;
use crate::reports::congestion;
use crate::routes::{Paths, Rules};
use arrivals::{ArrivalCheck, ArrivalStatus, MIN_PACKETS};
pub use link_signals::{DampingOptions, LinkSource};
use link_signals::{LinkCounters, LinkSignals};
pub use message::{Command, Input};
use records::RecentActions;
pub use records::{ActionOutcome, ActionReport, ActionTimes, Records};
use routes::RouteReconciler;
pub use routes::{Installation, RouteCounters, RouteOptions};

/// Queued commands above which observations are skipped.
const MAX_OBSERVATIONS: usize = 4_096;

/// Interval at which pairs are looked for that use failed links.
const LEAVE_INTERVAL: Nanos = Nanos::from_secs(1);

/// Options of a control loop.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ControlOptions {
    /// Options of the controller: timeouts and limits.
    pub controller: ControllerOptions,
    /// Flows below this share of a link's capacity are not passed to the decider. Default 0.
    pub min_share: f64,
    /// Time after the start at which the loop looks up the addresses of all pairs and holds them there; `None` for
    /// never. Collectors have seen all senders by then. Default 1 s.
    pub learn_after: Option<Nanos>,
    /// Whether to check that the packets of rerouted pairs arrive. Default yes.
    pub checks_arrival: bool,
    /// Which routes to compute, and how to install them. Default: none.
    pub routes: RouteOptions,
    /// When links that flap are held down.
    pub damping: DampingOptions,
}

impl Default for ControlOptions {
    fn default() -> ControlOptions {
        ControlOptions {
            controller: ControllerOptions::default(),
            min_share: 0.0,
            learn_after: Some(Nanos::from_secs(1)),
            checks_arrival: true,
            routes: RouteOptions::default(),
            damping: DampingOptions::default(),
        }
    }
}

/// The control loop.
pub struct ControlLoop {
    options: ControlOptions,
    controller: Controller,
    arrivals: ArrivalCheck,
    routes: RouteReconciler,
    signals: LinkSignals,
    /// A link has failed that routes do not avoid. The flows have been requested, to move pairs off it.
    leave_pending: bool,
    /// When to look for such pairs again.
    next_leave: Option<Timestamp>,
    commands: VecDeque<Command>,
    /// When to look up the addresses of pairs; known once the time is.
    learn_at: Option<Timestamp>,
    has_learnt: bool,
    /// A poll was due, and its flows have been requested.
    poll_pending: bool,
    actions: RecentActions,
    /// When the last input was handled that may cause actions.
    handled: Timestamp,
    /// Paths on which packets were sent and did not arrive.
    broken_paths: VecDeque<(Pair, u8)>,
    /// Number of decisions that [`take_records`](Self::take_records) has returned.
    recorded: u64,
}

impl ControlLoop {
    /// Creates a loop for a network, starting at `now`.
    ///
    /// # Errors
    /// If the network cannot have the requested routes.
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
        let ControllerOptions { arrival_timeout, history, pending, .. } = options.controller;
        Ok(ControlLoop {
            controller: Controller::new(options.controller, paths, decider, now),
            arrivals: ArrivalCheck::new(arrival_timeout, pending),
            routes,
            signals: LinkSignals::new(options.damping),
            leave_pending: false,
            next_leave: None,
            commands,
            learn_at: None,
            has_learnt: options.learn_after.is_none(),
            poll_pending: false,
            actions: RecentActions::new(history),
            handled: now,
            broken_paths: VecDeque::new(),
            recorded: 0,
            options,
        })
    }

    /// Handles an input at `now`. Fetch the resulting [commands](Self::next_command) afterwards.
    pub fn handle(&mut self, now: Timestamp, input: Input) {
        if !matches!(input, Input::Started(_)) {
            self.handled = now;
        }
        match input {
            Input::Tick => self.tick(now),
            Input::Congestion { router, event } => self.congestion(router, &event),
            Input::AddressChange { router, change } => {
                self.address_change(router, &change.to, change.time);
            }
            Input::Arrival(report) => self.arrival(&report),
            Input::Flows(flows) => self.flows(&flows, now),
            Input::Started(id) => self.started(id, now),
            Input::Refused(id, error) => self.controller.refused(id, error),
            Input::Announced(from) => self.routes.announced(from, &mut self.commands),
            Input::AnnounceFailed(error) => {
                self.routes.announcement_failed(error, now, &mut self.commands);
            }
            Input::Installed => self.routes.installed(),
            Input::InstallFailed(error) | Input::ReadBackFailed(error) | Input::RuleRepairFailed(error) => {
                self.routes.failed(error, now)
            }
            Input::SwitchConnected(router) => self.routes.connected(router, now, &mut self.commands),
            Input::Links(links) => {
                let links = self.signals.report_all(&links, now);
                self.routes.report_links(&links);
                self.set_links(links);
                self.end_needed_holds(now);
            }
            Input::LinkChanged { link, is_up } => self.link_reported(link, LinkSource::Switches, is_up, now),
            Input::LinkReported { link, source, is_up } => self.link_reported(link, source, is_up, now),
            Input::Tables { router, rules } => self.tables(router, &rules, now),
            Input::RulesRepaired => self.routes.repaired(now),
            Input::Mastership { is_master } => self.set_master(is_master),
            Input::RuleFaults { faults, .. } => self.routes.found_faults(faults),
            Input::Network(state) => {
                if self.routes.set_network(&state, &mut self.commands) {
                    self.apply_new_routes();
                }
            }
            Input::Pin { pair, address } => self.controller.pin(pair, address, now),
            Input::Unpin(pair) => self.controller.unpin(pair),
            Input::Freeze(is_frozen) => {
                self.controller.freeze(is_frozen);
                if !is_frozen && self.routes.unfreeze(now, &mut self.commands) {
                    self.apply_new_routes();
                }
            }
        }
    }

    /// Returns the next command. Reroutes precede other commands that follow from the same input.
    pub fn next_command(&mut self) -> Option<Command> {
        let command = self.controller.next_command().map(|command| match command {
            PairCommand::Reroute(action) => Command::Reroute(action),
            PairCommand::Hold { pair, address, time } => Command::Hold { pair, address, time },
            PairCommand::Abandon { action, from } => Command::Abandon { action, from },
        });
        command.or_else(|| self.commands.pop_front())
    }

    /// Returns the records since the last call.
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
            broken_paths: std::mem::take(&mut self.broken_paths).into(),
            links: self.routes.take_link_changes().into(),
            errors: self.routes.take_errors().into(),
        }
    }

    /// Returns the controller, with decisions, pins, counters and paths.
    pub fn controller(&self) -> &Controller {
        &self.controller
    }

    /// Returns the latest actions, with their outcomes as of the last [`take_records`](Self::take_records), the
    /// oldest first.
    pub fn actions(&self) -> impl DoubleEndedIterator<Item = &ActionReport> + '_ {
        self.actions.iter()
    }

    /// Returns the network with its present or planned routes.
    pub fn state(&self) -> &Arc<NetworkState> {
        self.routes.state()
    }

    /// Returns whether this loop may change the switches: always, unless it shares them with other controllers.
    pub fn is_master(&self) -> bool {
        self.routes.is_master()
    }

    /// Returns whether the routes are installed, so that pairs can be rerouted.
    pub fn has_routes(&self) -> bool {
        self.routes.are_installed()
    }

    /// Returns the counters of routes.
    pub fn route_counters(&self) -> RouteCounters {
        self.routes.counters()
    }

    /// Returns the links that are held down because they flapped, and until when if they do not fail again.
    pub fn held_links(&self) -> impl Iterator<Item = (LinkId, Timestamp)> + '_ {
        self.signals.held()
    }

    /// Returns the counters of link signals.
    pub fn link_counters(&self) -> LinkCounters {
        self.signals.counters()
    }

    fn tick(&mut self, now: Timestamp) {
        for link in self.signals.advance(now) {
            self.link_changed(link, true);
        }
        self.routes.advance(now, &mut self.commands);
        self.controller.advance(now);
        self.check_arrivals(now);
        self.leave_failed_paths(now);
        let learn_at = match (self.has_learnt, self.options.learn_after) {
            // A loop driven by packet time does not know the time before the first packet.
            (false, Some(after)) if now > Timestamp(0) => Some(*self.learn_at.get_or_insert(now + after)),
            _ => None,
        };
        let is_poll_due = self.has_routes() && self.controller.next_poll().is_some_and(|poll| poll <= now);
        let learns = learn_at.is_some_and(|at| at <= now);
        self.has_learnt |= learns;
        if learns || is_poll_due && !self.poll_pending {
            self.poll_pending |= is_poll_due;
            self.commands.push_back(Command::PollFlows);
        }
    }

    fn flows(&mut self, flows: &[PairRate], now: Timestamp) {
        if std::mem::take(&mut self.leave_pending) {
            self.controller.leave_failed_paths(flows, now);
        }
        match std::mem::take(&mut self.poll_pending) {
            true => self.controller.on_poll(flows, now),
            false => self.controller.adopt(flows, now),
        }
    }

    fn congestion(&mut self, router: RouterId, event: &CongestionEvent) {
        let paths = self.controller.paths();
        let congestion = congestion(paths, router, event, self.options.min_share);
        if let Some(congestion) = congestion.filter(|_| self.has_routes()) {
            self.controller.on_congestion(&congestion);
        }
    }

    fn address_change(&mut self, router: Option<RouterId>, ethernet: &EthernetAddresses, time: Timestamp) {
        let topology = self.controller.paths().topology();
        let Some((pair, address)) = Pair::of(topology, ethernet) else { return };
        if router == Some(topology.router_of(pair.source)) {
            self.arrivals.source_uses(pair, address);
        }
        self.controller.address_seen(pair, address, time);
    }

    fn started(&mut self, id: ActionId, now: Timestamp) {
        let Some(action) = self.controller.started(id, now) else { return };
        self.actions.started(id, ActionTimes { handled: self.handled, started: now });
        if self.options.checks_arrival {
            let until = action.deadline + arrivals::GIVE_UP_AFTER;
            if self.arrivals.watch(action.pair, action.address, until) {
                self.observe(&action);
            }
        }
    }

    /// Requests an observation of the pair, or a repeated report of one.
    fn observe(&mut self, &Action { id, pair, address, deadline, .. }: &Action) {
        if self.commands.len() >= MAX_OBSERVATIONS {
            // The driver takes no commands. Without reports the status stays unknown.
            return;
        }
        let topology = self.controller.paths().topology();
        let Pair { source, destination } = pair;
        let ethernet = EthernetAddresses {
            destination: topology.mac(destination, address),
            source: topology.mac(source, 0),
        };
        let routers = [topology.router_of(source), topology.router_of(destination)];
        let (from, until) = (self.arrivals.count_from(pair), deadline + arrivals::GIVE_UP_AFTER);
        let observation = Observation { ethernet, id: id.0, from, packets: MIN_PACKETS, until };
        self.commands.push_back(Command::Observe { routers, observation });
    }

    fn arrival(&mut self, report: &ArrivalReport) {
        let topology = self.controller.paths().topology();
        if let Some((pair, address)) = Pair::of(topology, &report.ethernet) {
            self.arrivals.report(pair, address, report);
        }
    }

    /// Moves pairs back whose packets do not arrive.
    fn check_arrivals(&mut self, now: Timestamp) {
        for arrival in self.controller.take_due_arrivals(now) {
            let Action { pair, address, .. } = arrival.action;
            match self.arrivals.status(pair, address, now) {
                ArrivalStatus::Arrived | ArrivalStatus::Abandoned => {}
                ArrivalStatus::Unknown => {
                    self.controller.recheck_arrival(arrival, now);
                    self.observe(&arrival.action);
                }
                ArrivalStatus::Missing => {
                    self.controller.mark_broken(&arrival, now);
                    if self.broken_paths.len() >= self.options.controller.pending.max(1) {
                        self.broken_paths.pop_front();
                    }
                    self.broken_paths.push_back((pair, address));
                }
            }
        }
        self.arrivals.advance(now);
    }

    fn link_reported(&mut self, link: LinkId, source: LinkSource, is_up: bool, now: Timestamp) {
        // Links that the network does not have are ignored.
        if link.index() < self.routes.links().links() {
            let is_up = self.signals.report(link, source, is_up, now);
            self.link_changed(link, is_up);
            self.end_needed_holds(now);
        }
    }

    fn end_needed_holds(&mut self, now: Timestamp) {
        let (topology, links) = (self.routes.state().topology(), self.routes.links());
        for link in self.signals.end_needed_holds(topology, links, now) {
            self.link_changed(link, true);
        }
    }

    fn link_changed(&mut self, link: LinkId, is_up: bool) {
        let mut links = self.routes.links().clone();
        // Links that the network does not have are ignored.
        let changed = if is_up { links.repair(link) } else { links.fail(link) };
        if changed.is_ok() {
            self.routes.report_link(link, is_up);
            self.set_links(links);
        }
    }

    /// A new master finds out where pairs are now, and installs its routes. A standby reroutes nothing.
    fn set_master(&mut self, is_master: bool) {
        self.has_learnt = self.options.learn_after.is_none();
        self.learn_at = None;
        self.routes.set_master(is_master, &mut self.commands);
    }

    fn set_links(&mut self, links: LinkState) {
        if self.routes.set_links(links, self.controller.is_frozen(), &mut self.commands) {
            self.apply_new_routes();
        }
    }

    /// Requests the flows to move pairs off failed links, if due: at once after a change of links, and then periodically,
    /// because other pairs may start to send. New trees avoid failed links, so this is for routes that the loop does not
    /// compute.
    fn leave_failed_paths(&mut self, now: Timestamp) {
        let is_due = self.next_leave.is_none_or(|at| at <= now) && !self.leave_pending;
        if is_due && !self.routes.computes_routes() && self.routes.state().links().failed().next().is_some() {
            self.leave_pending = true;
            self.next_leave = Some(now + LEAVE_INTERVAL);
            self.commands.push_back(Command::PollFlows);
        }
    }

    fn tables(&mut self, router: Option<RouterId>, rules: &Rules, now: Timestamp) {
        self.routes.read(router, rules, self.controller.is_frozen(), now, &mut self.commands);
    }

    /// Switches to the new paths.
    fn apply_new_routes(&mut self) {
        self.controller.set_paths(Paths::new(Arc::clone(self.routes.state())));
        self.arrivals.clear();
        self.next_leave = None;
    }
}

#[cfg(test)]
mod tests;
