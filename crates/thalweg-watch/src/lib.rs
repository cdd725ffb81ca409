//! Packets watched from capture to totals: what `thalweg watch` does, without its command line and its views.
//!
//! ```text
//! inputs ──► reader ──► (dealt out by flow) ──► meter, tasks ──► ledger, totals ──► snapshot, Totals
//! ```
//!
//! [`Watch::open`] opens sources as [`options`] say, [`run`] watches them to their end and tells what it hears of as it
//! comes. Clocks are arguments ([`Clock`]), and so is the seed.
//!
//! | module | what it has |
//! |---|---|
//! | [`options`] | what is to be watched, and how |
//! | `inputs`, `reader` | packet sources by name; their frames become packets, at a pace |
//! | `worker` | threads that read, meter, or both |
//! | [`tasks`] | measurement tasks beside the flow table, windows of all workers put together |
//! | [`message`] | what workers tell |
//! | `run`, `flow_exporter` | the main thread; flows handed on as IPFIX or Parquet |
//! | [`totals`], [`ledger`] | the whole of a run |
//! | [`json`] | flows and answers as JSON |
//! | [`snapshot`], `view_feed` | how everything stands at one moment, and what is asked for |

mod clock;
mod error;
mod flow_exporter;
mod heard;
mod inputs;
pub mod json;
pub mod ledger;
pub mod message;
mod meter;
pub mod options;
mod reader;
mod run;
pub mod snapshot;
pub mod tasks;
pub mod totals;
mod view_feed;
mod worker;

pub use clock::Clock;
pub use error::WatchError;
pub use heard::Heard;
pub use inputs::InputError;
pub use message::Message;
pub use meter::MeterCounters;
pub use reader::Pace;
pub use run::{Watch, run};
pub use totals::Totals;
pub use view_feed::ViewFeed;
pub use worker::Wants;
