//! Flow records to Kafka, so that many collectors feed one cluster.
//!
//! ```text
//! receiver ──► Outlet ──► queue ──► thread: rows to JSON ──► librdkafka ──► brokers
//!                         bounded                            bounded
//! ```
//!
//! Messages are JSON, an object a line ([`json_lines`]), keyed by exporter: what one exporter sent keeps its order within a
//! partition. Who receives is never made to wait. While brokers are away, messages fill librdkafka's buffer and then the
//! queue; what comes after that is lost. The store keeps it all the same: it is the safe copy.
//!
//! Guarantee: a row that is counted as delivered was acknowledged by all brokers in sync, once (idempotent producer, unless
//! options say otherwise). Every other is counted by why it was lost ([`Lost`]); of those without an answer nobody knows whether
//! the broker had them.
//!
//! librdkafka is only there with the feature `kafka`; without it, starting says so.
//!
//! | module | what it has |
//! |---|---|
//! | [`options`] | [`KafkaOptions`], [`Setting`] |
//! | [`statistics`] | [`Statistics`], [`Lost`] |
//! | [`json_lines`] | rows as JSON |
//! | `outlet` | rows to the queue |
//! | `delivery` | the thread, and its end |
//! | `client` | librdkafka: messages, and what became of them |
//! | `absent` | in place of these three without the feature |

// With the feature too where tests are built, so that it is checked wherever anything is.
#[cfg(any(not(feature = "kafka"), test))]
#[cfg_attr(feature = "kafka", allow(dead_code, unreachable_pub, reason = "nobody uses it"))]
mod absent;
#[cfg(feature = "kafka")]
mod client;
#[cfg(feature = "kafka")]
mod delivery;
pub mod json_lines;
pub mod options;
#[cfg(feature = "kafka")]
mod outlet;
pub mod statistics;
#[cfg(feature = "kafka")]
mod tallies;
#[cfg(all(test, feature = "kafka"))]
pub(crate) mod tests;

use std::io;
use std::path::PathBuf;

use thiserror::Error;

#[cfg(not(feature = "kafka"))]
pub use absent::{Kafka, Outlet};
#[cfg(feature = "kafka")]
pub use delivery::Kafka;
pub use options::{KafkaOptions, Setting};
#[cfg(feature = "kafka")]
pub use outlet::Outlet;
pub use statistics::{Lost, Statistics};

/// Why nothing can be sent to Kafka. Brokers that are not there are no such reason: they may come.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum KafkaError {
    /// This program has no librdkafka.
    #[error("built without Kafka: cargo build --release --features kafka")]
    NotBuilt,
    /// The file with a setting's value cannot be read.
    #[error("setting {key}: cannot read {}: {source}", path.display())]
    SettingFile {
        /// The setting.
        key: String,
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A setting that librdkafka does not take. What it says of a value is not shown if it was in a file.
    #[error("setting {key}: {message}")]
    Setting {
        /// The setting.
        key: String,
        /// What is wrong with it.
        message: String,
    },
    /// librdkafka cannot be started with all these settings together.
    #[error("cannot start the Kafka client: {message}")]
    Client {
        /// What it said.
        message: String,
    },
    /// There can be no thread.
    #[error("cannot start the thread that feeds Kafka: {0}")]
    Thread(io::Error),
}
