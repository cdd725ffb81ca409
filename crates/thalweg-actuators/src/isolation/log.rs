//! Records redirections instead of carrying them out.

use thalweg_control::isolate::{Command, Input};
use thalweg_wire::Timestamp;

use super::Isolator;

/// An isolator that redirects nothing. The caller logs what would be done.
#[derive(Clone, Copy, Debug, Default)]
pub struct Log;

impl Isolator for Log {
    fn name(&self) -> &'static str {
        "log"
    }

    fn execute(&mut self, command: Command, _now: Timestamp) -> Option<Input> {
        match command {
            Command::Redirect(id, _) => Some(Input::Redirected(id)),
            Command::Refresh(_) | Command::Restore(..) => None,
            Command::Release { id, .. } => Some(Input::Released(id)),
        }
    }
}
