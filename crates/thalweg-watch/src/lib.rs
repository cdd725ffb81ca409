//! The measurement pipeline of `thalweg watch`, from capture to totals, without command line and views.
//!
//! ```text
//! inputs ──► reader ──► (distributed by flow) ──► meter, tasks ──► ledger, totals ──► snapshot, Totals
//! ```
//!
//! [`Watch::open`] opens the sources of [`options`]. `run` measures them to their end and passes each
//! [`WatchUpdate`] to the caller. Clocks ([`Clock`]) and the seed are arguments.
//!
//! | module | contents |
//! |---|---|
//! | [`options`] | sources and settings of a run |
//! | `inputs`, `reader` | packet sources; reading and replay |
//! | `survey` | frames that are longer than the link allows; VLAN tags |
//! | [`in_kernel`] | sketches in the kernel, instead of workers |
//! | `worker` | threads that read, meter, or both |
//! | [`tasks`] | measurement tasks; windows of all workers merged |
//! | [`message`] | messages from workers to the main thread |
//! | `run`, `flow_exporter` | the main thread; export by IPFIX and to Parquet |
//! | [`totals`], [`ledger`] | results of a whole run |
//! | [`groups`], [`traffic`] | hosts and pairs of hosts; the traffic of a row |
//! | [`flow_capture`] | the packets of one flow as a pcapng file |
//! | [`json`] | flows and task results as JSON |
//! | [`snapshot`], `view_feed` | the state shown by the live view, and its query |

mod clock;
mod error;
pub mod flow_capture;
mod flow_exporter;
pub mod groups;
pub mod in_kernel;
mod inputs;
pub mod json;
pub mod ledger;
pub mod message;
mod meter;
pub mod options;
mod reader;
mod run;
pub mod snapshot;
mod survey;
pub mod tasks;
pub mod totals;
pub mod traffic;
mod update;
mod view_feed;
mod worker;

pub use clock::Clock;
pub use error::WatchError;
pub use inputs::{Incomplete, InputError};
pub use message::Message;
pub use meter::MeterCounters;
pub use reader::Pace;
pub use run::{Watch, run};
pub use survey::{FlowContext, LinkMtu, Survey};
pub use totals::Totals;
pub use update::WatchUpdate;
pub use view_feed::ViewFeed;
pub use worker::WorkerOptions;
