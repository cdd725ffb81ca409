//! Collector threads: each reads its source, measures, and serves requests between two batches.
//!
//! | file | contents |
//! |---|---|
//! | `handle` | requests to a collector: its mailbox |
//! | `list` | the list of collectors |
//! | `latency` | latency histograms of events |
//! | `stats` | counters that outlive restarts of a collector |
//! | `source` | opens the configured source |
//! | `pipeline` | the measurement of packets, and the handling of requests |
//! | `windows` | measurement tasks, and the thread that evaluates them |
//! | `worker` | the thread of a collector; `backoff` times its retries |
//! | `shared_thread` | all collectors and the control loop on one thread |
//! | `event_publisher` | publishes events; `sinks` lead to the writer threads |
//! | `control_events` | events for the controller |
//! | `findings` | cheetah flows for isolation |
//! | `background` | background packets for the adaptation of the rate threshold |
//! | `network` | the network, and announcements of new versions |
//! | `fleet` | starts, reconfigures and stops collectors |

pub(crate) mod background;
mod backoff;
pub(crate) mod control_events;
mod drop_alarm;
mod event_publisher;
pub(crate) mod findings;
mod fleet;
pub mod handle;
pub mod latency;
mod list;
pub mod network;
mod pipeline;
mod replacement;
mod shared_thread;
pub(crate) mod sinks;
mod source;
pub mod stats;
#[cfg(test)]
pub(crate) mod tests;
mod windows;
mod worker;

pub use self::replacement::{ReconfigureError, Replacement};
pub use fleet::{Fleet, FleetParts, PreparedCollector, StartError};
pub use handle::{
    CollectorCounters, CollectorHandle, CollectorReply, CollectorRequest, CollectorRequestError, Description,
    FlowChunk, Mailbox, TaskAnswer, TaskHistory, TaskReportWriter, TasksReport,
};
pub use latency::{Latency, LatencyHistogram};
pub use list::CollectorList;
pub(crate) use shared_thread::{EventLoop, SharedThread};
pub use source::SourceError;
pub(crate) use source::describe_source;
pub use stats::{CollectorStats, RecordsLost};
