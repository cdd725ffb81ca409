//! Output of `thalweg emulate`: reports of runs and sweeps, the list of choices, and crates for schemes of one's own.

pub mod comparison;
mod names;
pub mod new_scheme;
pub mod real_paths;
pub mod real_time;
pub mod report;

pub use names::list;
