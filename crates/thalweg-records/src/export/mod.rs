//! An IPFIX exporting process (RFC 7011): sends rows to one collector over UDP, TCP or TLS.
//!
//! ```text
//! meters ──► BatchSender ──► bounded queue ──► Exporter ──► ipfix::Encoder ──► session ──► collector
//! ```
//!
//! | module | contents |
//! |---|---|
//! | [`destination`] | [`Destination`]: transport, host and port of the collector |
//! | [`exporter`] | [`Exporter`]: batches and sends rows and statistics; time is an argument |
//! | [`mod@queue`] | [`BatchSender`] for meters, and the loop of the export thread |
//! | [`counters`] | [`ExportCounters`]: rows sent and not sent, readable from other threads |
//! | [`tls`] | certificates |
//!
//! # Limits
//! If the queue is full, rows are dropped. Without a session, at most [`ExportOptions::max_pending_rows`] wait; further
//! rows are dropped. A message that cannot be sent is not retried; if the transport is a stream, its failure ends the
//! session and loses the messages encoded for it. Losses are counted by [`Reason`], with packets and bytes, and reported
//! to the collector (`notSentFlowTotalCount` and related elements, RFC 7011 section 4.3).
//!
//! Losses in the network are not visible here; the collector detects them by sequence numbers.

pub mod counters;
pub mod destination;
pub mod exporter;
pub mod queue;
mod session;
#[cfg(test)]
mod tests;
pub mod tls;

pub use counters::{ExportCounters, Reason};
pub use destination::{Destination, ParseDestinationError, Transport};
pub use exporter::{ExportError, ExportOptions, Exporter};
pub use queue::{BatchSender, queue, run};
pub use tls::{TlsError, TlsFiles};
