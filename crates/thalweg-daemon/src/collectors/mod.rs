//! Collectors as threads: each reads its source, measures, and answers between two batches.
//!
//! | file | what it has |
//! |---|---|
//! | `handle` | how others ask a collector: its mailbox |
//! | `list` | the collectors that there are |
//! | `latency` | how long events take, in buckets |
//! | `tallies` | what is counted, as long as the daemon has a collector of the name |
//! | `source` | from the configuration to an open source |
//! | `core` | what is done with packets, and how questions are answered |
//! | `windows` | tasks, and the thread that evaluates them |
//! | `worker` | the thread: reading, failing, beginning again; `backoff` says when |
//! | `shared_thread` | several of them on one thread, with the control loop |
//! | `event_publisher` | tells what is found; `sinks` go to the threads that write |
//! | `notices` | what the controller is told |
//! | `network` | what is known of the network; new versions, of which all collectors are told |
//! | `fleet` | all collectors: started, changed, stopped |

mod backoff;
mod core;
mod event_publisher;
mod exchange;
mod fleet;
pub mod handle;
pub mod latency;
mod list;
pub mod network;
pub(crate) mod notices;
mod shared_thread;
pub(crate) mod sinks;
mod source;
pub mod tallies;
#[cfg(test)]
pub(crate) mod tests;
mod windows;
mod worker;

pub use self::exchange::{Exchange, ReconfigureError};
pub use fleet::{Fleet, FleetParts, Ready, StartError};
pub use handle::{
    AskError, Asked, CollectorCounters, CollectorHandle, Description, FlowChunk, Mailbox, Question,
    TaskAnswer, TasksBoard, TasksReport,
};
pub use latency::{Latency, LatencyHistogram};
pub use list::CollectorList;
pub(crate) use shared_thread::{SharedThread, SharesThread};
pub use source::SourceError;
pub(crate) use source::describe_source;
pub use tallies::{RecordsLost, Tallies};
