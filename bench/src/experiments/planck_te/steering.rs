//! Drives the control loop between the collectors and the hosts of the emulator.
//!
//! What a decision takes to become effective is a constant here: in Planck's network 2.5 to 3.5 ms from the notice to the first
//! packet with the new address (figure 16). What waits in a host's network interface goes the old way yet.

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

use super::collectors::News;

/// What came of steering.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Steered {
    pub(super) controller: ControllerCounters,
    /// Events that reached the controller, and those that were lost on the way.
    pub(super) events: u64,
    pub(super) lost: u64,
    /// From decision to the first packet with the new address, in milliseconds.
    pub(super) responses_ms: Vec<f64>,
}

/// What goes wrong between collectors, controller and hosts.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Hindrance {
    /// Share of notices that never arrive.
    pub(super) loss: f64,
    /// Others arrive late by anything up to this, and so in another order.
    pub(super) disorder: Nanos,
    /// Takes no notice of what it is told.
    pub(super) deaf: Option<EndpointId>,
}

/// How the loop gets routes into switches: they are read back, and what is wrong is put right. Collectors are told this long
/// before (section 4.1).
pub(super) fn repairs(trees: TreeOptions, settle: Nanos) -> RouteOptions {
    // In the emulator packets keep their address to the end.
    let writes_back = false;
    let installation = Installation::Reconcile { interval: None };
    RouteOptions { trees: Some(trees), writes_back, settle, installation }
}

/// A control loop at work.
pub(super) struct Steering {
    control: ControlLoop,
    routes: RouteOptions,
    /// Actions that have not become effective, the next first.
    coming: VecDeque<Action>,
    /// Commands for switches and collectors, for whoever has them.
    commands: VecDeque<Command>,
    polls: bool,
    delay: Nanos,
    pub(super) hindrance: Hindrance,
    /// Notices on their way, by the time they arrive and their number.
    late: BTreeMap<(Timestamp, u64), Input>,
    chance: Random,
    steered: Steered,
}

impl Steering {
    /// Steers by `decider`; an action becomes effective `delay` after the notice that it answers, and a share `loss` of
    /// notices never comes. Polls, if any, begin with time.
    ///
    /// # Errors
    /// If the network can have no such routes.
    pub(super) fn new(
        state: &Arc<NetworkState>,
        decider: Box<dyn Decider>,
        routes: RouteOptions,
        delay: Nanos,
        loss: f64,
        seed: u64,
    ) -> Result<Self, StateError> {
        Ok(Steering {
            control: begin(state, decider, routes, Timestamp(0))?,
            routes,
            coming: VecDeque::new(),
            commands: VecDeque::new(),
            polls: false,
            delay,
            hindrance: Hindrance { loss, ..Hindrance::default() },
            late: BTreeMap::new(),
            chance: Random::new(seed, "lost events", 0),
            steered: Steered::default(),
        })
    }

    /// What the collectors tell.
    pub(super) fn hear(&mut self, news: &mut News, now: Timestamp) {
        // Collectors were read one after the other; in a network they tell at the same time.
        news.events.sort_by_key(|(router, event)| (event.time, *router));
        for (router, event) in news.events.drain(..) {
            if congestion(self.control.controller().paths(), router, &event, 0.0).is_none() {
                continue;
            }
            let Hindrance { loss, disorder, .. } = self.hindrance;
            if loss > 0.0 && self.chance.unit() < loss {
                self.steered.lost += 1;
                continue;
            }
            self.steered.events += 1;
            let time = event.time;
            let input = Input::Link { router, event };
            if disorder == Nanos::ZERO {
                self.tell(now, input);
            } else {
                let arrives = time + Nanos(self.chance.below(disorder.0));
                self.late.insert((arrives, self.steered.events), input);
            }
        }
        for change in news.changes.drain(..) {
            self.tell(now, Input::AddressChange { router: None, change });
        }
    }

    /// Lets time pass: polls that are due, actions that become effective.
    pub(super) fn advance(&mut self, hosts: &mut Hosts, now: Timestamp) {
        self.tell(now, Input::Tick);
        if std::mem::take(&mut self.polls) {
            let observed: Vec<PairRate> = hosts.flows().map(|flow| observed(hosts, &flow)).collect();
            self.tell(now, Input::Flows(observed));
        }
        while let Some(entry) = self.late.first_entry().filter(|entry| entry.key().0 <= now) {
            let input = entry.remove();
            self.tell(now, input);
        }
        while let Some(action) = self.coming.front().filter(|action| action.issued + self.delay <= now) {
            if self.hindrance.deaf != Some(action.pair.source) {
                hosts.set_address(action.pair.source, action.pair.destination, action.address);
            }
            self.coming.pop_front();
        }
        let confirmed = self.control.take_records().actions.into_iter();
        let confirmed = confirmed.filter_map(|report| match report.outcome {
            ActionOutcome::Confirmed(after) => Some(after.as_secs_f64() * 1e3),
            _ => None,
        });
        self.steered.responses_ms.extend(confirmed);
    }

    /// Tells the loop something. Reroutes are under way then; what else it commands is for whoever asks.
    pub(super) fn tell(&mut self, now: Timestamp, input: Input) {
        self.control.handle(now, input);
        while let Some(command) = self.control.next_command() {
            match command {
                Command::Reroute(action) => {
                    self.coming.push_back(action);
                    self.control.handle(now, Input::Started(action.id));
                }
                Command::PollFlows => self.polls = true,
                // Hosts hold by themselves where they are sent.
                Command::Hold { .. } | Command::Abandon { .. } => {}
                other => self.commands.push_back(other),
            }
        }
    }

    /// The next command for switches or collectors.
    pub(super) fn next_command(&mut self) -> Option<Command> {
        self.commands.pop_front()
    }

    /// The controller is gone, with all that it knew and had not done yet, and another begins.
    ///
    /// # Errors
    /// If the network can have no such routes.
    pub(super) fn restart(
        &mut self,
        state: &Arc<NetworkState>,
        decider: Box<dyn Decider>,
        now: Timestamp,
    ) -> Result<(), StateError> {
        self.control = begin(state, decider, self.routes, now)?;
        self.coming.clear();
        self.commands.clear();
        self.late.clear();
        Ok(())
    }

    /// Moves that have been decided so far, since the controller began.
    pub(super) fn moves(&self) -> u64 {
        self.control.controller().counters().started
    }

    /// What came of it.
    pub(super) fn end(self) -> Steered {
        Steered { controller: self.control.controller().counters(), ..self.steered }
    }
}

/// A loop that knows nothing yet. Whether packets arrive is not looked at: the algorithm is that of the paper.
fn begin(
    state: &Arc<NetworkState>,
    decider: Box<dyn Decider>,
    routes: RouteOptions,
    now: Timestamp,
) -> Result<ControlLoop, StateError> {
    let options =
        ControlOptions { learn_after: None, checks_arrival: false, routes, ..ControlOptions::default() };
    ControlLoop::new(options, state, decider, now)
}

/// What polling a switch would tell of a flow; its rate is not used by those who poll.
fn observed(hosts: &Hosts, flow: &thalweg_emulator::hosts::FlowStatus) -> PairRate {
    let pair = Pair { source: flow.source, destination: flow.destination };
    PairRate { pair, address: hosts.address(pair.source, pair.destination), rate: BitRate(0) }
}
