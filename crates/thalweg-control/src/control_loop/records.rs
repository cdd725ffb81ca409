//! What happened in the control loop, for whoever watches: users, logs, subscribers.

use std::collections::VecDeque;

use thalweg_wire::{Nanos, Timestamp};

use crate::action::{Action, ActionId};
use crate::controller::{Controller, Ended, Outcome};
use crate::decide::Decision;
use crate::pair::Pair;

/// What happened since it was last asked.
#[derive(Clone, Debug, Default)]
pub struct Records {
    /// What was decided, those to stay included.
    pub decisions: Vec<Decision>,
    /// Actions that were started or refused, and those that something came of.
    pub actions: Vec<ActionReport>,
    /// Pairs and addresses by which packets set out and did not arrive.
    pub astray: Vec<(Pair, u8)>,
    /// What went wrong with routes, in words.
    pub errors: Vec<String>,
}

/// An action, and what has come of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ActionReport {
    /// The action.
    pub action: Action,
    /// When the loop turned to it, and when it was started; `None` if it was refused.
    pub times: Option<ActionTimes>,
    /// What has come of it.
    pub outcome: ActionOutcome,
}

/// What a loop's own part of an action took. Times are those of the loop's inputs: of its driver's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ActionTimes {
    /// The input that the action follows from was handed to the loop.
    pub handled: Timestamp,
    /// The actuator had been told.
    pub started: Timestamp,
}

/// What has come of an action.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ActionOutcome {
    /// Its effect has not been seen.
    Begun,
    /// It was seen after this time.
    Confirmed(Nanos),
    /// It was not seen in time.
    Expired,
    /// The same flows were sent elsewhere before.
    Superseded,
    /// It could not be begun.
    Refused(String),
}

/// The latest actions, the oldest first.
#[derive(Clone, Debug)]
pub(super) struct RecentActions {
    actions: VecDeque<ActionReport>,
    kept: usize,
    /// Of actions that were started since the last update: the latest, as many as are kept.
    times: VecDeque<(ActionId, ActionTimes)>,
}

impl RecentActions {
    pub(super) fn new(kept: usize) -> RecentActions {
        RecentActions { actions: VecDeque::new(), kept: kept.max(1), times: VecDeque::new() }
    }

    pub(super) fn iter(&self) -> impl DoubleEndedIterator<Item = &ActionReport> + '_ {
        self.actions.iter()
    }

    /// An action was started.
    pub(super) fn started(&mut self, id: ActionId, times: ActionTimes) {
        if self.times.len() >= self.kept {
            self.times.pop_front();
        }
        self.times.push_back((id, times));
    }

    /// Takes up what a controller has done since it was last asked, and gives it.
    pub(super) fn update(&mut self, controller: &mut Controller) -> Vec<ActionReport> {
        let begun = controller.take_begun().into_iter();
        let times = std::mem::take(&mut self.times);
        let times_of = |id| times.iter().find(|(other, _)| *other == id).map(|&(_, times)| times);
        let begun = begun.map(|action| ActionReport {
            action,
            times: times_of(action.id),
            outcome: ActionOutcome::Begun,
        });
        let refused = controller.take_failures().into_iter();
        let refused = refused.map(|(action, error)| ActionReport {
            action,
            times: None,
            outcome: ActionOutcome::Refused(error),
        });
        let mut reports: Vec<ActionReport> = begun.chain(refused).collect();
        reports.sort_by_key(|report| report.action.id);
        for report in &reports {
            if self.actions.len() >= self.kept {
                self.actions.pop_front();
            }
            self.actions.push_back(report.clone());
        }
        for Ended { action, outcome } in controller.take_ended() {
            let outcome = match outcome {
                Outcome::Confirmed(after) => ActionOutcome::Confirmed(after),
                Outcome::Expired => ActionOutcome::Expired,
                Outcome::Superseded => ActionOutcome::Superseded,
            };
            let kept = self.actions.iter_mut().rev().find(|kept| kept.action.id == action.id);
            let times = kept.and_then(|kept| {
                kept.outcome = outcome.clone();
                kept.times
            });
            reports.push(ActionReport { action, times, outcome });
        }
        reports
    }
}
