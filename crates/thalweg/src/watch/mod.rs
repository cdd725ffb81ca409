//! `thalweg watch`: packets in, heavy flows out.
//!
//! ```text
//! inputs ──► reader ──► (dealt out by flow) ──► meter, tasks ──► ledger, totals ──► report, json, live_view
//! ```
//!
//! `options` says what to do, `worker` puts reading and metering into threads, `run` starts them and shows what
//! they find.

pub mod flow_filter;
mod handing;
mod inputs;
pub(crate) mod json;
mod ledger;
pub mod live_view;
mod meter;
pub mod options;
pub(crate) mod reader;
mod report;
mod run;
mod tasks;
mod totals;
mod view_feed;
mod worker;

pub use run::{Outcome, run};
