//! Emulated experiments: from an experiment file to measurements of a whole emulated network.
//!
//! ```text
//! experiment ──► plan ──► execute (run, watched, recorder) ──► results ──► json, files, plots
//!                  sweep: many experiments, one run per core
//! ```
//!
//! | module | contents |
//! |---|---|
//! | [`experiment`] | the file: sections, keys, and errors in it |
//! | [`plan`] | everything that a run needs, checked before the first slot |
//! | `execute` | the loop over slots; `captures` writes the packets of monitor ports |
//! | `run` | the state of a run; `watched` counts packets, `recorder` samples queues and links, `series` writes time series |
//! | [`mirror`] | consumers of mirrored packets: a collector, the daemon that controls the network |
//! | `ideal_fct` | flow completion times in an idle network |
//! | [`results`], `summary` | the measurements |
//! | [`json`], [`files`], [`plots`] | output for programs, and the files of `--output` |
//! | [`sweep`] | the runs of a sweep; [`seeds`] has means over those that differ only in their seed |

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
pub mod seeds;
mod series;
mod summary;
pub mod sweep;
#[cfg(test)]
mod tests;
mod watched;

pub use execute::{Progress, run};
pub use experiment::{Experiment, ExperimentError};
pub use plan::Plan;
pub use run::RunError;
