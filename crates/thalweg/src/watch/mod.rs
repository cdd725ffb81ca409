//! `thalweg watch`: runs [`thalweg_watch`] and shows its results.
//!
//! `run` prints a report, JSON lines or CSV, or runs the live view.

mod csv;
mod groups;
mod interfaces;
pub(crate) mod json;
mod live_run;
pub mod live_view;
mod report;
mod result_names;
mod row;
mod run;
mod tasks;

pub use interfaces::{list_interfaces, no_source_text};
pub use json::in_kernel_object;
pub use run::{Outcome, run};
pub use thalweg_watch::options;
