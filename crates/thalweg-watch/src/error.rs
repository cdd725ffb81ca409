//! Why a watch could not begin, or not go on.

use std::io;
use std::path::PathBuf;

use thalweg_measure::detect::cfinf::CfinfError;
use thalweg_measure::detect::sliding_window::SlidingWindowError;
use thalweg_measure::meter::flow_table::FlowTableError;
use thalweg_measure::tasks::PlanError;
use thalweg_records::handoff::HandoffError;
use thiserror::Error;

use crate::inputs::InputError;

/// Why a watch could not begin, or not go on.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum WatchError {
    /// A source cannot be opened.
    #[error(transparent)]
    Input(#[from] InputError),
    /// The measurement tasks make no sense together, or do not fit into their memory.
    #[error("the measurement tasks cannot be planned")]
    Tasks(#[source] PlanError),
    /// The detector of any window cannot be made.
    #[error(transparent)]
    SlidingWindow(#[from] SlidingWindowError),
    /// The published detector cannot be made.
    #[error(transparent)]
    Cfinf(#[from] CfinfError),
    /// The flow table cannot be made.
    #[error(transparent)]
    FlowTable(#[from] FlowTableError),
    /// States cannot be saved in the folder.
    #[error("cannot save states in {}", folder.display())]
    StatesFolder {
        /// The folder.
        folder: PathBuf,
        /// Why not.
        #[source]
        error: io::Error,
    },
    /// A state cannot be written.
    #[error("cannot write the state {}", file.display())]
    State {
        /// The file.
        file: PathBuf,
        /// Why not.
        #[source]
        error: io::Error,
    },
    /// Flows cannot be handed on.
    #[error("flows cannot be handed on")]
    Handoff(#[source] HandoffError),
}
