//! Records actions instead of carrying them out.

use std::collections::VecDeque;

use super::{Action, Actuator, ActuatorError};

/// An actuator that only keeps the latest actions.
#[derive(Clone, Debug)]
pub struct Log {
    actions: VecDeque<Action>,
    capacity: usize,
}

impl Log {
    /// Creates a log of the latest `capacity` actions, at least one.
    pub fn new(capacity: usize) -> Log {
        Log { actions: VecDeque::new(), capacity: capacity.max(1) }
    }

    /// Returns the kept actions, the oldest first.
    pub fn actions(&self) -> impl Iterator<Item = &Action> + '_ {
        self.actions.iter()
    }
}

impl Actuator for Log {
    fn name(&self) -> &'static str {
        "log"
    }

    fn reroute(&mut self, action: &Action) -> Result<(), ActuatorError> {
        if self.actions.len() == self.capacity {
            self.actions.pop_front();
        }
        self.actions.push_back(*action);
        Ok(())
    }
}
