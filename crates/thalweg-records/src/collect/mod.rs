//! The collecting process (RFC 7011 section 2): export messages from sockets or captures into the store.
//!
//! ```text
//! kernel's buffer ──► receiver ──► decoder ──► outlet ──► queue ──► writer
//!                     a thread for each socket,   │       the store's thread
//!                     each with its own           └─────► queue ──► Kafka, if asked for
//! ```
//!
//! Each socket has a thread, which takes up to 64 datagrams with one system call, decodes them, and hands their
//! rows to the store's bounded queue. Where that is full, since the writer is behind, the thread waits for a second at
//! most: datagrams lie in the kernel's buffer then, and what finds that full is counted there. To decode what there is no
//! room for would take processor time from the writer, which is short of it. A disk that does not answer at all is not
//! waited for again until it does: rows are lost in the store, and counted there. The kernel spreads exporters over the
//! sockets of one port by address and port (`SO_REUSEPORT`), so that all of a session reaches one decoder.
//!
//! What is lost is counted where it is lost, and [`Report`] has all of it: in the kernel by socket, on the way by
//! sequence numbers, in the decoder by reason, in the store and for Kafka by reason.
//!
//! `received` is when a datagram was taken from the kernel, which is later than its arrival by as long as it lay in
//! the buffer.
//!
//! | module | what it has |
//! |---|---|
//! | [`options`] | [`CollectOptions`], [`StreamLimits`] |
//! | [`listen`] | [`Listen`]: where to listen, as people write it |
//! | [`process`] | [`CollectingProcess`]: threads, their start and end |
//! | [`report`] | [`Report`]: exporters, sockets, losses by place |
//! | [`replay`] | [`Replay`]: the same from captures of export messages |
//! | `socket`, `kernel_drops` | UDP sockets with a checked buffer; what the kernel dropped |
//! | `receiver` | datagrams with `recvmmsg` |
//! | [`stream`] | IPFIX over TCP and TLS |
//! | `intake`, `outlet` | messages to rows; rows to the stores and to Kafka |

mod exporters;
mod intake;
mod kernel_drops;
pub mod listen;
pub mod options;
mod outlet;
pub mod process;
mod receiver;
pub mod replay;
pub mod report;
mod socket;
pub mod stream;
#[cfg(test)]
mod tests;

use std::io;

use thiserror::Error;

use crate::kafka::KafkaError;
use crate::store::StoreError;

pub use exporters::ExporterReport;
pub use listen::Listen;
pub use options::{CollectOptions, StreamLimits};
pub use outlet::Tap;
pub use process::CollectingProcess;
pub use replay::{Replay, ReplayCounts};
pub use report::{Losses, Report, SocketReport};
pub use stream::StreamReport;

/// Why collecting cannot start.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum CollectError {
    /// A socket cannot be opened.
    #[error("cannot listen on {listen}: {source}")]
    Listen {
        /// Where.
        listen: Listen,
        /// What the system said.
        source: io::Error,
    },
    /// TLS was asked for without a certificate.
    #[error("{listen} needs a certificate and its key")]
    NoCertificate {
        /// Where.
        listen: Listen,
    },
    /// The store cannot be opened.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Kafka cannot be fed.
    #[error("Kafka: {0}")]
    Kafka(#[from] KafkaError),
    /// A thread cannot be started.
    #[error("cannot start a thread: {0}")]
    Thread(io::Error),
}
