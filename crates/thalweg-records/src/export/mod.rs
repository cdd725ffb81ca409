//! An IPFIX exporting process (RFC 7011): rows in, messages to one collector over UDP, TCP or TLS.
//!
//! ```text
//! meters ──► Outlet ──► (bounded queue) ──► Exporter ──► ipfix::Encoder ──► session ──► collector
//! ```
//!
//! | module | what it has |
//! |---|---|
//! | [`destination`] | where to: transport, host and port |
//! | [`exporter`] | [`Exporter`]: rows gathered, sent, statistics told; the time is an argument |
//! | [`mod@queue`] | [`Outlet`]: where meters put rows; the loop of the thread that exports |
//! | [`tallies`] | what was sent and what was not, for everybody to read |
//! | [`tls`] | certificates |
//!
//! # What is bounded, and what happens then
//! A full queue drops what is offered. Without a session, rows wait, at most [`ExportOptions::held_rows`]; what comes beyond
//! is dropped. A message that cannot be sent is not sent again, and with a stream the session ends there, together with
//! what was encoded for it. Each is counted by its [`Reason`], with packets and bytes, and told to the collector
//! (`notSentFlowTotalCount` and its kin, RFC 7011 section 4.3).
//!
//! Not seen here: what UDP, or a stream that breaks, loses on its way. Sequence numbers tell the collector.

pub mod destination;
pub mod exporter;
pub mod queue;
mod session;
pub mod tallies;
#[cfg(test)]
mod tests;
pub mod tls;

pub use destination::{Destination, ParseDestinationError, Transport};
pub use exporter::{ExportError, ExportOptions, Exporter};
pub use queue::{Outlet, queue, run};
pub use tallies::{Reason, Tallies};
pub use tls::{TlsError, TlsFiles};
