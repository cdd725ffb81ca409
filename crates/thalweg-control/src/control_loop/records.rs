//! What happened in the control loop, for whoever watches: users, logs, subscribers.

use std::collections::VecDeque;

use thalweg_wire::Nanos;

use crate::action::Action;
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
    /// What has come of it.
    pub outcome: ActionOutcome,
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
}

impl RecentActions {
    pub(super) fn new(kept: usize) -> RecentActions {
        RecentActions { actions: VecDeque::new(), kept }
    }

    pub(super) fn iter(&self) -> impl DoubleEndedIterator<Item = &ActionReport> + '_ {
        self.actions.iter()
    }

    /// Takes up what a controller has done since it was last asked, and gives it.
    pub(super) fn update(&mut self, controller: &mut Controller) -> Vec<ActionReport> {
        let begun = controller.take_begun().into_iter();
        let begun = begun.map(|action| ActionReport { action, outcome: ActionOutcome::Begun });
        let refused = controller.take_failures().into_iter();
        let refused =
            refused.map(|(action, error)| ActionReport { action, outcome: ActionOutcome::Refused(error) });
        let mut reports: Vec<ActionReport> = begun.chain(refused).collect();
        reports.sort_by_key(|report| report.action.id);
        for report in &reports {
            if self.actions.len() >= self.kept.max(1) {
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
            if let Some(kept) = self.actions.iter_mut().rev().find(|kept| kept.action.id == action.id) {
                kept.outcome = outcome.clone();
            }
            reports.push(ActionReport { action, outcome });
        }
        reports
    }
}
