//! OpenFlow 1.3 to switches: persistent connections, and batches of changes with reported outcomes.
//!
//! Source: *OpenFlow Switch Specification*, version 1.3.5 (Open Networking Foundation, TS-023, 2015), cited by
//! section. The messages are those of [`thalweg_wire::openflow`].
//!
//! [`Switches`] accepts connections of switches or connects to them, over TCP or TLS, and reports [`Event`]s over a
//! channel. Each established connection is a [`Switch`]. It sends a batch of messages in one write, followed by a
//! barrier. A [`PendingBatch`] reports whether the switch carried the batch out, refused it, or did not answer in
//! time.
//!
//! A new connection takes two round trips. First both sides send hello. Then one write requests the switch's
//! features, ports, flows (by cookie, [`Config::read_back`]) and groups, and sets the length of packets sent to the
//! controller. [`Event::Up`] announces the connection with all answers, so that the controller can compare installed
//! and wanted rules. A switch keeps forwarding while disconnected. A connection that only reads
//! ([`Config::reads_only`]) changes nothing at the switch.
//!
//! - **Threads.** One per connection, which reads; senders write directly, so that a batch waits for no other thread.
//!   One per listening address, and one per switch to connect to.
//! - **Bounds.** [`Config`] bounds connections, unanswered batches, flows read back, and queued events. If events are
//!   taken too slowly, packets for the controller are dropped and counted. All other messages wait, and TCP slows the
//!   switch down.
//! - **Time.** Values that take the time as an argument decide when to send echoes, when a batch has timed out and
//!   when to reconnect (`keep_alive`, `pending`, `retry`, `handshake`). Only the threads read a clock.
//!
//! A switch that does not read stalls its senders for at most [`Config::write_timeout`]. Then its connection is
//! closed.

#![forbid(unsafe_code)]

mod clock;
mod config;
mod connection;
mod context;
mod counters;
mod event;
mod handshake;
mod keep_alive;
mod outcome;
mod pending;
mod retry;
#[cfg(any(test, feature = "scripted-switch"))]
pub mod scripted_switch;
mod socket;
mod switch;
mod switches;
#[cfg(test)]
mod tests;
mod tls;

pub use config::{BackOff, Config, ReadBack};
pub use counters::Counters;
pub use event::{Event, Up};
pub use handshake::HandshakeError;
pub use outcome::{DownReason, Failure, Outcome, SendError};
pub use switch::{PendingAnswer, PendingBatch, PendingFlows, PendingQueues, Switch, SwitchRequestError};
pub use switches::{OpenFlowError, Switches};
pub use tls::{Tls, TlsError};
