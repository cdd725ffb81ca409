//! Packets watched from capture to totals: what `thalweg watch` does, without its command line and its views.
//!
//! ```text
//! inputs ──► reader ──► (dealt out by flow) ──► meter, tasks ──► ledger, totals ──► snapshot, Totals
//! ```
//!
//! `options` says what to do, `worker` puts reading and metering into threads.

pub mod flow_filter;
pub mod inputs;
pub mod ledger;
pub mod meter;
pub mod options;
pub mod reader;
pub mod snapshot;
pub mod tasks;
pub mod totals;
pub mod view_feed;
pub mod worker;
