//! `thalweg watch`: runs [`thalweg_watch`] and shows its results.
//!
//! `run` prints a report or JSON lines, or runs the live view.

pub(crate) mod json;
pub mod live_view;
mod report;
mod row;
mod run;
mod tasks;

pub use json::in_kernel_object;
pub use run::{Outcome, run};
pub use thalweg_watch::options;
