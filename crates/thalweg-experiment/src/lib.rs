//! Emulated experiments: an experiment file in, measurements of a whole emulated network out.
//!
//! ```text
//! experiment ──► plan ──► execute (run, watched, recorder) ──► results ──► json, files, plots
//!                  sweep: many experiments, one run a core
//! ```
//!
//! | module | what it has |
//! |---|---|
//! | [`experiment`] | the file: what can be written, and what is wrong with it |
//! | [`plan`] | what it means: everything that a run needs |
//! | `execute` | the loop over slots, to the results; `captures` writes what monitor ports send |
//! | `run` | a run under way; `watched` counts packets, `recorder` samples queues and links |
//! | [`mirror`] | who else reads what monitor ports send: a collector, the daemon that steers the network |
//! | `ideal_fct` | how long a flow takes alone in the network: what slowdown is measured against |
//! | [`results`], `summary` | what was measured |
//! | [`json`], [`files`], [`plots`] | the same for programs; for the folder of `--output` |
//! | [`sweep`] | the matrix of a sweep |

#![forbid(unsafe_code)]

mod captures;
mod execute;
pub mod experiment;
pub mod files;
mod ideal_fct;
pub mod json;
pub mod mirror;
pub mod plan;
pub mod plots;
mod recorder;
pub mod results;
mod run;
mod summary;
pub mod sweep;
#[cfg(test)]
mod tests;
mod watched;

pub use execute::{Progress, run};
pub use experiment::{Experiment, ExperimentError};
pub use plan::Plan;
pub use run::RunError;
