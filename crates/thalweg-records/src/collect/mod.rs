//! The collecting process (RFC 7011 section 2): from sockets or captures to the store.
//!
//! ```text
//! kernel buffer ──► receiver ──► decoder ──► outlet ──► queue ──► writer
//!                   one thread per socket,      │       the store's thread
//!                   each with its decoder       └─────► queue ──► Kafka (optional)
//! ```
//!
//! Each socket has a thread, which receives up to 64 datagrams per system call, decodes them and passes the rows to the
//! store's bounded queue. If the queue is full because the writer is behind, the thread waits for at most a second.
//! Datagrams then stay in the kernel buffer, and the kernel drops and counts those that do not fit. Decoding rows that
//! have no room would only take processor time from the writer. If the disk does not respond at all, the thread stops
//! waiting until it does; rows are dropped and counted in the store. The kernel distributes exporters over the sockets
//! of a port by address and port (`SO_REUSEPORT`), so that one decoder sees all of a session.
//!
//! Losses are counted where they occur, and [`Report`] lists all of them: in the kernel by socket, in the network by
//! sequence numbers, in the decoder by reason, in the store and in Kafka by reason.
//!
//! `received` is the time at which a datagram was read from the kernel buffer, not the time of its arrival there.
//!
//! | module | contents |
//! |---|---|
//! | [`options`] | [`CollectOptions`], [`StreamLimits`] |
//! | [`listen`] | [`Listen`]: listen addresses and their syntax |
//! | [`process`] | [`CollectingProcess`]: starts and stops the threads |
//! | [`report`] | [`Report`]: exporters, sockets, losses by place |
//! | [`replay`] | [`Replay`]: collects from captures of export messages |
//! | `socket`, `kernel_drops` | UDP sockets with a checked buffer size; the kernel's drop counters |
//! | `receiver` | receives datagrams with `recvmmsg` |
//! | [`stream`] | IPFIX over TCP and TLS |
//! | `templates` | templates that outlive the process |
//! | `intake`, `outlet` | from messages to rows; from rows to the stores and Kafka |

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
mod templates;
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
pub use templates::TemplateFileReport;

/// Why a collecting process cannot start.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum CollectError {
    /// A socket cannot be opened.
    #[error("cannot listen on {listen}: {source}")]
    Listen {
        /// The listen address.
        listen: Listen,
        /// Error of the operating system.
        source: io::Error,
    },
    /// A TLS address was given without a certificate.
    #[error(
        "cannot listen on {listen}: TLS needs a certificate and its private key (--tls-certificate, --tls-key)"
    )]
    NoCertificate {
        /// The listen address.
        listen: Listen,
    },
    /// The store cannot be opened.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The Kafka producer cannot be started.
    #[error("Kafka: {0}")]
    Kafka(#[from] KafkaError),
    /// A thread cannot be started.
    #[error("cannot start a thread: {0}")]
    Thread(io::Error),
}
