//! What a collector is doing.

use thalweg_wire::Timestamp;

/// What a collector is doing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum CollectorState {
    /// Its source is being opened.
    #[default]
    Starting,
    /// It reads packets.
    Running,
    /// Its source has come to its end: a file, or an emulation. It still answers.
    Ended,
    /// Its source cannot be opened, or could not go on; it is tried again.
    Failed {
        /// Why.
        error: String,
        /// When it is tried again, by the clock of this machine; `None` if it is not.
        retry_at: Option<Timestamp>,
    },
    /// It was told to stop, and has handed on everything.
    Stopped,
}

impl CollectorState {
    /// All names.
    pub const NAMES: [&'static str; 5] = ["starting", "running", "ended", "failed", "stopped"];

    /// Its name in JSON, metrics and logs.
    pub const fn name(&self) -> &'static str {
        match self {
            CollectorState::Starting => "starting",
            CollectorState::Running => "running",
            CollectorState::Ended => "ended",
            CollectorState::Failed { .. } => "failed",
            CollectorState::Stopped => "stopped",
        }
    }
}
