//! What the main thread hears of while a watch runs.

use crate::message::Message;
use crate::tasks::Finished;

/// What the main thread hears of.
#[derive(Clone, Copy, Debug)]
pub enum Heard<'a> {
    /// Nothing for a while.
    Silence,
    /// A worker's message.
    Message(&'a Message),
    /// A window of all workers that is over.
    Window(&'a Finished),
}
