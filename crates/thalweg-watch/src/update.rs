//! Updates that the main thread passes to the caller during a run.

use crate::message::Message;
use crate::tasks::FinishedWindow;

/// An update of a running measurement.
#[derive(Clone, Copy, Debug)]
pub enum WatchUpdate<'a> {
    /// No message arrived for a while.
    Idle,
    /// A message from a worker.
    Message(&'a Message),
    /// A window that all workers have finished.
    Window(&'a FinishedWindow),
}
