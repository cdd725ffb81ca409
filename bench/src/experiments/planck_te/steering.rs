//! From what collectors tell to what hosts do: the controller, between the ears and the hands that it has here.
//!
//! What a decision takes to become effective is a constant here: in Planck's network 2.5 to 3.5 ms from the notice to the first
//! packet with the new address (figure 16). What waits in a host's network interface goes the old way yet.

use std::collections::{BTreeMap, VecDeque};
use std::sync::mpsc::{Receiver, Sender, channel};

use thalweg_control::Pair;
use thalweg_control::act::{ActError, Action, Actuator};
use thalweg_control::controller::{Controller, ControllerCounters, ControllerOptions, Outcome};
use thalweg_control::decide::{Congestion, Decider, Observed};
use thalweg_control::notices::congestion;
use thalweg_control::routes::Paths;
use thalweg_emulator::hosts::Hosts;
use thalweg_emulator::workloads::random::Random;
use thalweg_network::EndpointId;
use thalweg_wire::{BitRate, Nanos, Timestamp};

use super::collectors::News;

/// Hands actions on to whoever carries them out.
struct Orders(Sender<Action>);

impl Actuator for Orders {
    fn name(&self) -> &'static str {
        "emulated hosts"
    }

    fn act(&mut self, action: &Action) -> Result<(), ActError> {
        self.0.send(*action).map_err(|_| ActError::Busy("the run is over".to_owned()))
    }
}

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

/// A controller at work.
pub(super) struct Steering {
    controller: Controller,
    orders: Receiver<Action>,
    /// Actions that have not become effective, the next first.
    coming: VecDeque<Action>,
    delay: Nanos,
    pub(super) hindrance: Hindrance,
    /// Notices on their way, by the time they arrive and their number.
    late: BTreeMap<(Timestamp, u64), Congestion>,
    chance: Random,
    steered: Steered,
}

impl Steering {
    /// Steers by `decider`; an action becomes effective `delay` after the notice that it answers, and a share `loss` of
    /// notices never comes. Polls, if any, begin with time.
    pub(super) fn new(paths: Paths, decider: Box<dyn Decider>, delay: Nanos, loss: f64, seed: u64) -> Self {
        let (controller, orders) = begin(paths, decider, Timestamp(0));
        Steering {
            controller,
            orders,
            coming: VecDeque::new(),
            delay,
            hindrance: Hindrance { loss, ..Hindrance::default() },
            late: BTreeMap::new(),
            chance: Random::new(seed, "lost events", 0),
            steered: Steered::default(),
        }
    }

    /// What the collectors tell.
    pub(super) fn hear(&mut self, news: &mut News) {
        // Collectors were read one after the other; in a network they tell at the same time.
        news.events.sort_by_key(|(router, event)| (event.time, *router));
        for (router, event) in news.events.drain(..) {
            if let Some(congestion) = congestion(self.controller.paths(), router, &event, 0.0) {
                let Hindrance { loss, disorder, .. } = self.hindrance;
                if loss > 0.0 && self.chance.unit() < loss {
                    self.steered.lost += 1;
                    continue;
                }
                self.steered.events += 1;
                if disorder == Nanos::ZERO {
                    self.controller.congested(&congestion);
                } else {
                    let arrives = event.time + Nanos(self.chance.below(disorder.0));
                    self.late.insert((arrives, self.steered.events), congestion);
                }
            }
        }
        for change in news.changes.drain(..) {
            if let Some((pair, address)) = Pair::of(self.controller.paths().topology(), &change.to) {
                self.controller.seen(pair, address, change.time);
            }
        }
    }

    /// Lets time pass: polls that are due, actions that become effective.
    pub(super) fn advance(&mut self, hosts: &mut Hosts, now: Timestamp) {
        if self.controller.next_poll().is_some_and(|at| at <= now) {
            let observed: Vec<Observed> = hosts.flows().map(|flow| observed(hosts, &flow)).collect();
            self.controller.polled(&observed, now);
        }
        while let Some(entry) = self.late.first_entry().filter(|entry| entry.key().0 <= now) {
            self.controller.congested(&entry.remove());
        }
        self.coming.extend(self.orders.try_iter());
        while let Some(action) = self.coming.front().filter(|action| action.issued + self.delay <= now) {
            if self.hindrance.deaf != Some(action.pair.source) {
                hosts.set_address(action.pair.source, action.pair.destination, action.address);
            }
            self.coming.pop_front();
        }
        self.controller.advance(now);
        let confirmed = self.controller.take_ended().into_iter().filter_map(|ended| match ended.outcome {
            Outcome::Confirmed(after) => Some(after.as_secs_f64() * 1e3),
            _ => None,
        });
        self.steered.responses_ms.extend(confirmed);
    }

    /// The network is another from now on.
    pub(super) fn set_paths(&mut self, paths: Paths) {
        self.controller.set_paths(paths);
    }

    /// The controller is gone, with all that it knew and had not done yet, and another begins.
    pub(super) fn restart(&mut self, paths: Paths, decider: Box<dyn Decider>, now: Timestamp) {
        (self.controller, self.orders) = begin(paths, decider, now);
        self.coming.clear();
        self.late.clear();
    }

    /// Moves that have been decided so far, since the controller began.
    pub(super) fn moves(&self) -> u64 {
        self.controller.counters().begun
    }

    /// What came of it.
    pub(super) fn end(self) -> Steered {
        Steered { controller: self.controller.counters(), ..self.steered }
    }
}

/// A controller that knows nothing yet, and what it orders.
fn begin(paths: Paths, decider: Box<dyn Decider>, now: Timestamp) -> (Controller, Receiver<Action>) {
    let (sender, orders) = channel();
    let options = ControllerOptions::default();
    (Controller::new(options, paths, decider, Box::new(Orders(sender)), now), orders)
}

/// What polling a switch would tell of a flow; its rate is not used by those who poll.
fn observed(hosts: &Hosts, flow: &thalweg_emulator::hosts::FlowStatus) -> Observed {
    let pair = Pair { source: flow.source, destination: flow.destination };
    Observed { pair, address: hosts.address(pair.source, pair.destination), rate: BitRate(0) }
}
