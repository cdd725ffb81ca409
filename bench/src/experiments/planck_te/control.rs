//! Runs the control loop between the collectors and the hosts of the emulator.
//!
//! The control delay is a constant here: in Planck's network it is 2.5 to 3.5 ms from the congestion event to the first
//! packet with the new address (figure 16). Packets queued in a host's network interface still take the old path.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use thalweg_control::Pair;
use thalweg_control::action::Action;
use thalweg_control::control_loop::{
    ActionOutcome, Command, ControlLoop, ControlOptions, Input, Installation, RouteOptions,
};
use thalweg_control::controller::ControllerCounters;
use thalweg_control::decide::{Decider, PairRate};
use thalweg_control::reports::congestion;
use thalweg_emulator::hosts::Hosts;
use thalweg_emulator::workloads::random::Random;
use thalweg_network::routing::TreeOptions;
use thalweg_network::state::StateError;
use thalweg_network::{EndpointId, NetworkState};
use thalweg_wire::{BitRate, Nanos, Timestamp};

use super::collectors::Reports;

/// The results of traffic engineering.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct ControlResults {
    pub(super) controller: ControllerCounters,
    /// Events that reached the controller, and those that were lost.
    pub(super) events: u64,
    pub(super) lost: u64,
    /// Times from decision to the first packet with the new address, in milliseconds.
    pub(super) responses_ms: Vec<f64>,
    /// Number of reroutes of each flow that was sending when one took effect, by the emulator's flow number.
    pub(super) flow_moves: BTreeMap<u32, u64>,
}

impl ControlResults {
    /// Returns the number of reroutes of the flow that was rerouted most.
    pub(super) fn most_flow_moves(&self) -> u64 {
        self.flow_moves.values().copied().max().unwrap_or(0)
    }
}

/// Faults between collectors, controller and hosts.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct ControlFaults {
    /// Probability that an event is lost.
    pub(super) loss: f64,
    /// Maximum random delay of events, which reorders them.
    pub(super) disorder: Nanos,
    /// A host that ignores reroutes.
    pub(super) ignoring: Option<EndpointId>,
}

/// Returns route options with reconciliation. Collectors learn new routes `lead_time` before they are installed (section
/// 4.1).
pub(super) fn reconciled_routes(trees: TreeOptions, lead_time: Nanos) -> RouteOptions {
    // In the emulator packets keep their address to the end.
    let writes_back = false;
    let installation = Installation::Reconcile { interval: None };
    RouteOptions { trees: Some(trees), writes_back, lead_time, installation, ..RouteOptions::default() }
}

/// A running control loop.
pub(super) struct EmulatedControl {
    control: ControlLoop,
    routes: RouteOptions,
    /// Actions that are not yet effective, the next first.
    pending_actions: VecDeque<Action>,
    /// Commands for switches and collectors, to be executed by the caller.
    commands: VecDeque<Command>,
    polls: bool,
    delay: Nanos,
    pub(super) control_faults: ControlFaults,
    /// Delayed events, by arrival time and number.
    late: BTreeMap<(Timestamp, u64), Input>,
    random: Random,
    control_results: ControlResults,
}

impl EmulatedControl {
    /// Creates a control loop with `decider`; an action becomes effective `delay` after its event, and events are lost
    /// with probability `loss`. Polls, if any, start at time 0.
    ///
    /// # Errors
    /// If the network cannot have these routes.
    pub(super) fn new(
        state: &Arc<NetworkState>,
        decider: Box<dyn Decider>,
        routes: RouteOptions,
        delay: Nanos,
        loss: f64,
        seed: u64,
    ) -> Result<Self, StateError> {
        Ok(EmulatedControl {
            control: new_loop(state, decider, routes, Timestamp(0))?,
            routes,
            pending_actions: VecDeque::new(),
            commands: VecDeque::new(),
            polls: false,
            delay,
            control_faults: ControlFaults { loss, ..ControlFaults::default() },
            late: BTreeMap::new(),
            random: Random::new(seed, "lost events", 0),
            control_results: ControlResults::default(),
        })
    }

    /// Passes the collectors' events to the loop.
    pub(super) fn handle_reports(&mut self, reports: &mut Reports, now: Timestamp) {
        // Collectors were read one after the other; in a network they report concurrently.
        reports.events.sort_by_key(|(router, event)| (event.time, *router));
        for (router, event) in reports.events.drain(..) {
            if congestion(self.control.controller().paths(), router, &event, 0.0).is_none() {
                continue;
            }
            let ControlFaults { loss, disorder, .. } = self.control_faults;
            if loss > 0.0 && self.random.unit() < loss {
                self.control_results.lost += 1;
                continue;
            }
            self.control_results.events += 1;
            let time = event.time;
            let input = Input::Congestion { router, event };
            if disorder == Nanos::ZERO {
                self.input(now, input);
            } else {
                let arrives = time + Nanos(self.random.below(disorder.0));
                self.late.insert((arrives, self.control_results.events), input);
            }
        }
        for change in reports.changes.drain(..) {
            self.input(now, Input::AddressChange { router: None, change });
        }
    }

    /// Advances time: runs due polls and makes due actions effective.
    pub(super) fn advance(&mut self, hosts: &mut Hosts, now: Timestamp) {
        self.input(now, Input::Tick);
        if std::mem::take(&mut self.polls) {
            let polled_flow: Vec<PairRate> = hosts.flows().map(|flow| polled_flow(hosts, &flow)).collect();
            self.input(now, Input::Flows(polled_flow));
        }
        while let Some(entry) = self.late.first_entry().filter(|entry| entry.key().0 <= now) {
            let input = entry.remove();
            self.input(now, input);
        }
        while let Some(action) =
            self.pending_actions.front().filter(|action| action.issued + self.delay <= now)
        {
            if self.control_faults.ignoring != Some(action.pair.source) {
                let Pair { source, destination } = action.pair;
                for flow in
                    hosts.flows().filter(|flow| (flow.source, flow.destination) == (source, destination))
                {
                    *self.control_results.flow_moves.entry(flow.flow).or_default() += 1;
                }
                hosts.set_address(source, destination, action.address);
            }
            self.pending_actions.pop_front();
        }
        let confirmed = self.control.take_records().actions.into_iter();
        let confirmed = confirmed.filter_map(|report| match report.outcome {
            ActionOutcome::Confirmed(after) => Some(after.as_secs_f64() * 1e3),
            _ => None,
        });
        self.control_results.responses_ms.extend(confirmed);
    }

    /// Passes an input to the loop. Starts the reroutes that it commands; queues its other commands.
    pub(super) fn input(&mut self, now: Timestamp, input: Input) {
        self.control.handle(now, input);
        while let Some(command) = self.control.next_command() {
            match command {
                Command::Reroute(action) => {
                    self.pending_actions.push_back(action);
                    self.control.handle(now, Input::Started(action.id));
                }
                Command::PollFlows => self.polls = true,
                // Emulated hosts keep their addresses.
                Command::Hold { .. } | Command::Abandon { .. } => {}
                other => self.commands.push_back(other),
            }
        }
    }

    /// Returns the next command for switches or collectors.
    pub(super) fn next_command(&mut self) -> Option<Command> {
        self.commands.pop_front()
    }

    /// Replaces the controller by a new one without state; pending actions and commands are lost.
    ///
    /// # Errors
    /// If the network cannot have these routes.
    pub(super) fn restart(
        &mut self,
        state: &Arc<NetworkState>,
        decider: Box<dyn Decider>,
        now: Timestamp,
    ) -> Result<(), StateError> {
        self.control = new_loop(state, decider, self.routes, now)?;
        self.pending_actions.clear();
        self.commands.clear();
        self.late.clear();
        Ok(())
    }

    /// Returns the number of reroutes since the controller started.
    pub(super) fn reroutes(&self) -> u64 {
        self.control.controller().counters().started
    }

    /// Returns the results.
    pub(super) fn end(self) -> ControlResults {
        ControlResults { controller: self.control.controller().counters(), ..self.control_results }
    }
}

/// Creates a loop without state. It does not check that packets arrive, as in the paper.
fn new_loop(
    state: &Arc<NetworkState>,
    decider: Box<dyn Decider>,
    routes: RouteOptions,
    now: Timestamp,
) -> Result<ControlLoop, StateError> {
    let options =
        ControlOptions { learn_after: None, checks_arrival: false, routes, ..ControlOptions::default() };
    ControlLoop::new(options, state, decider, now)
}

/// Returns a flow as a polled switch would report it; polling methods do not use its rate.
fn polled_flow(hosts: &Hosts, flow: &thalweg_emulator::hosts::FlowStatus) -> PairRate {
    let pair = Pair { source: flow.source, destination: flow.destination };
    PairRate {
        pair,
        address: hosts.address(pair.source, pair.destination),
        rate: BitRate(0),
        measured: Timestamp(0),
        flows: Vec::new(),
    }
}
