//! Records of the control loop, for users, logs and subscribers.

use std::collections::VecDeque;

use thalweg_network::LinkId;
use thalweg_wire::{Nanos, Timestamp};

use crate::action::{Action, ActionId};
use crate::controller::{Controller, FinishedAction, Outcome};
use crate::decide::Decision;
use crate::pair::Pair;

/// The records since the last call.
#[derive(Clone, Debug, Default)]
pub struct Records {
    /// Decisions, those to keep a path included.
    pub decisions: Vec<Decision>,
    /// Actions that were started or refused, or that reached an outcome.
    pub actions: Vec<ActionReport>,
    /// Paths on which packets were sent and did not arrive, by pair and address.
    pub broken_paths: Vec<(Pair, u8)>,
    /// Links that went down (`false`) or came up (`true`), and whose routes were recomputed.
    pub links: Vec<(LinkId, bool)>,
    /// Errors in route handling.
    pub errors: Vec<String>,
}

/// An action and its outcome so far.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ActionReport {
    /// The action.
    pub action: Action,
    /// When the loop handled and started it; `None` if it was refused.
    pub times: Option<ActionTimes>,
    /// What has come of it.
    pub outcome: ActionOutcome,
}

/// The loop's own timing of an action. Times are those of the loop's inputs: of its driver's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ActionTimes {
    /// When the input that caused the action was passed to the loop.
    pub handled: Timestamp,
    /// When the actuator had been instructed.
    pub started: Timestamp,
}

/// What has come of an action.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ActionOutcome {
    /// Started; its effect has not been seen yet.
    Started,
    /// Its effect was seen after this time.
    Confirmed(Nanos),
    /// Its effect was not seen in time.
    TimedOut,
    /// The same pair was moved elsewhere before.
    Superseded,
    /// It could not be started.
    Refused(String),
}

/// The latest actions, the oldest first.
#[derive(Clone, Debug)]
pub(super) struct RecentActions {
    actions: VecDeque<ActionReport>,
    capacity: usize,
    /// Times of actions started since the last update: the latest, at most `capacity`.
    times: VecDeque<(ActionId, ActionTimes)>,
}

impl RecentActions {
    pub(super) fn new(capacity: usize) -> RecentActions {
        RecentActions { actions: VecDeque::new(), capacity: capacity.max(1), times: VecDeque::new() }
    }

    pub(super) fn iter(&self) -> impl DoubleEndedIterator<Item = &ActionReport> + '_ {
        self.actions.iter()
    }

    /// Records the times of an action that was started.
    pub(super) fn started(&mut self, id: ActionId, times: ActionTimes) {
        if self.times.len() >= self.capacity {
            self.times.pop_front();
        }
        self.times.push_back((id, times));
    }

    /// Collects the controller's changes since the last call and returns them.
    pub(super) fn update(&mut self, controller: &mut Controller) -> Vec<ActionReport> {
        let started = controller.take_started().into_iter();
        let times = std::mem::take(&mut self.times);
        let times_of = |id| times.iter().find(|(other, _)| *other == id).map(|&(_, times)| times);
        let started = started.map(|action| ActionReport {
            action,
            times: times_of(action.id),
            outcome: ActionOutcome::Started,
        });
        let refused = controller.take_refused().into_iter();
        let refused = refused.map(|(action, error)| ActionReport {
            action,
            times: None,
            outcome: ActionOutcome::Refused(error),
        });
        let mut reports: Vec<ActionReport> = started.chain(refused).collect();
        reports.sort_by_key(|report| report.action.id);
        for report in &reports {
            if self.actions.len() >= self.capacity {
                self.actions.pop_front();
            }
            self.actions.push_back(report.clone());
        }
        for FinishedAction { action, outcome } in controller.take_finished() {
            let outcome = match outcome {
                Outcome::Confirmed(after) => ActionOutcome::Confirmed(after),
                Outcome::TimedOut => ActionOutcome::TimedOut,
                Outcome::Superseded => ActionOutcome::Superseded,
            };
            let report = self.actions.iter_mut().rev().find(|report| report.action.id == action.id);
            let times = report.and_then(|report| {
                report.outcome = outcome.clone();
                report.times
            });
            reports.push(ActionReport { action, times, outcome });
        }
        reports
    }
}
