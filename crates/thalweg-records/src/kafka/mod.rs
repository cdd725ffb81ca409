//! Sends flow records to Kafka, so that many collectors feed one cluster.
//!
//! ```text
//! receiver ──► RowSender ──► queue ──► thread: rows to JSON ──► librdkafka ──► brokers
//!                            bounded                            bounded
//! ```
//!
//! Messages are JSON, one object per line ([`json_lines`]), keyed by exporter, so that the records of an exporter keep
//! their order within a partition. Receivers never block. While brokers are unreachable, messages fill librdkafka's
//! buffer and then the queue; further records are lost for Kafka. The store still has them.
//!
//! Guarantee: a record counted as delivered was acknowledged by all in-sync replicas, exactly once (idempotent producer,
//! unless overridden). All others are counted by reason ([`Lost`]). Records without an answer may or may not have
//! reached the broker.
//!
//! librdkafka needs the feature `kafka`; without it, [`Kafka::start`] fails.
//!
//! | module | contents |
//! |---|---|
//! | [`options`] | [`KafkaOptions`], [`Setting`] |
//! | [`statistics`] | [`Statistics`], [`Lost`] |
//! | [`json_lines`] | converts rows to JSON |
//! | `row_sender` | queues rows |
//! | `delivery` | the delivery thread |
//! | `client` | librdkafka: messages and delivery results |
//! | `disabled` | replaces these three without the feature |

// Tests build it in any case, so that it is always checked.
#[cfg(feature = "kafka")]
mod client;
#[cfg(feature = "kafka")]
mod counters;
#[cfg(feature = "kafka")]
mod delivery;
#[cfg(any(not(feature = "kafka"), test))]
#[cfg_attr(feature = "kafka", allow(dead_code, unreachable_pub, reason = "unused"))]
mod disabled;
pub mod json_lines;
pub mod options;
#[cfg(feature = "kafka")]
mod row_sender;
pub mod statistics;
#[cfg(all(test, feature = "kafka"))]
pub(crate) mod tests;

use std::io;
use std::path::PathBuf;

use thiserror::Error;

#[cfg(feature = "kafka")]
pub use delivery::Kafka;
#[cfg(not(feature = "kafka"))]
pub use disabled::{Kafka, RowSender};
pub use options::{KafkaOptions, Setting};
#[cfg(feature = "kafka")]
pub use row_sender::RowSender;
pub use statistics::{Lost, Statistics};

/// Why the Kafka producer cannot start. Unreachable brokers are not an error: they may come back.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum KafkaError {
    /// This build has no Kafka support.
    #[error("this build has no Kafka support: rebuild with cargo build --release --features kafka")]
    NotBuilt,
    /// The file of a setting cannot be read.
    #[error("setting {key}: cannot read {}: {source}", path.display())]
    SettingFile {
        /// The setting.
        key: String,
        /// The file.
        path: PathBuf,
        /// Error of the operating system.
        source: io::Error,
    },
    /// An invalid setting. The message shows no value that was read from a file.
    #[error("setting {key}: {message}")]
    Setting {
        /// The setting.
        key: String,
        /// The cause.
        message: String,
    },
    /// librdkafka rejected the settings.
    #[error("cannot start the Kafka client: {message}")]
    Client {
        /// Error of librdkafka.
        message: String,
    },
    /// The thread cannot be started.
    #[error("cannot start the Kafka thread: {0}")]
    Thread(io::Error),
}
