//! Nothing is done; what would be is kept.

use std::collections::VecDeque;

use super::{ActError, Action, Actuator};

/// Keeps the last actions.
#[derive(Clone, Debug)]
pub struct Log {
    actions: VecDeque<Action>,
    capacity: usize,
}

impl Log {
    /// Keeps so many, at least one.
    pub fn new(capacity: usize) -> Log {
        Log { actions: VecDeque::new(), capacity: capacity.max(1) }
    }

    /// Those that are kept, the oldest first.
    pub fn actions(&self) -> impl Iterator<Item = &Action> + '_ {
        self.actions.iter()
    }
}

impl Actuator for Log {
    fn name(&self) -> &'static str {
        "log"
    }

    fn act(&mut self, action: &Action) -> Result<(), ActError> {
        if self.actions.len() == self.capacity {
            self.actions.pop_front();
        }
        self.actions.push_back(*action);
        Ok(())
    }
}
