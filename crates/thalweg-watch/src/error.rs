//! Errors that prevent or stop a run.

use std::io;
use std::path::PathBuf;

use thalweg_measure::detect::cfinf::CfinfError;
use thalweg_measure::detect::sliding_window::SlidingWindowError;
use thalweg_measure::meter::flow_table::FlowTableError;
use thalweg_measure::tasks::PlanError;
use thalweg_records::handoff::HandoffError;
use thiserror::Error;

use crate::in_kernel::InKernelError;
use crate::inputs::InputError;

/// An error that prevents or stops a run.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum WatchError {
    /// A source cannot be opened.
    #[error(transparent)]
    Input(#[from] InputError),
    /// The tasks cannot be counted in the kernel.
    #[error(transparent)]
    InKernel(#[from] InKernelError),
    /// The measurement tasks contradict each other or do not fit into their memory.
    #[error("cannot plan the measurement tasks")]
    Tasks(#[source] PlanError),
    /// The sliding-window detector cannot be created.
    #[error(transparent)]
    SlidingWindow(#[from] SlidingWindowError),
    /// The CFINF detector cannot be created.
    #[error(transparent)]
    Cfinf(#[from] CfinfError),
    /// The flow table cannot be created.
    #[error(transparent)]
    FlowTable(#[from] FlowTableError),
    /// Sketches cannot be saved in the directory.
    #[error("cannot save sketches in {}", folder.display())]
    StatesFolder {
        /// The directory.
        folder: PathBuf,
        /// The cause.
        #[source]
        error: io::Error,
    },
    /// A sketch cannot be written.
    #[error("cannot write the sketch {}", file.display())]
    State {
        /// The file.
        file: PathBuf,
        /// The cause.
        #[source]
        error: io::Error,
    },
    /// Flow records cannot be exported.
    #[error("cannot export flow records")]
    Handoff(#[source] HandoffError),
}
