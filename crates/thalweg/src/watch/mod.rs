//! `thalweg watch`: packets in, heavy flows out. What happens in between is in [`thalweg_watch`].
//!
//! `run` starts it and shows what it finds: as a report, as lines of JSON, or in the live view.

pub(crate) mod json;
pub mod live_view;
mod report;
mod row;
mod run;
mod tasks;

pub use run::{Outcome, run};
pub use thalweg_watch::options;
