//! Output of `thalweg emulate`: reports of runs and sweeps, and the list of choices.

mod names;
pub mod real_paths;
pub mod real_time;
pub mod report;

pub use names::list;
