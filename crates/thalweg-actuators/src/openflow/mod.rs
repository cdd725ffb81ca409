//! OpenFlow 1.3 towards switches: connections that keep themselves up, and batches of changes that say what became of
//! them.
//!
//! Source: *OpenFlow Switch Specification*, version 1.3.5 (Open Networking Foundation, TS-023, 2015), by sections. The
//! messages are those of [`thalweg_wire::openflow`].
//!
//! [`Switches`] has switches connect to it or connects to them, over TCP or TLS, and tells what happens as [`Event`]s
//! over a channel. Each connection that comes up is a [`Switch`], through which a batch of messages is sent in one
//! write, with a barrier behind it; a [`Ticket`] tells when the switch has carried it out, refused it, or not answered
//! in time.
//!
//! What a new connection goes through, in two round trips: both say hello; then, in one write, the switch is asked who
//! it is, which ports it has, and which flows (by cookie, [`Config::read_back`]) and groups are installed, and is told
//! how much of packets to send. With all of that it is announced as [`Event::Up`], so that whoever steers can compare
//! what is installed with what is to be. A switch keeps forwarding while nobody is connected to it.
//!
//! - **Threads.** One for each connection, which reads; who sends writes, so that a batch waits for no other thread.
//!   One for each listening address and for each switch that is connected to.
//! - **Bounds.** Connections, batches without an answer, flows read back, and events that nobody has taken are bounded
//!   by [`Config`]. Where events are not taken fast enough, packets for the controller are dropped and counted; all
//!   else waits, and TCP holds the switch back.
//! - **Time.** When to ask for a sign of life, when a batch is late and how long to wait before connecting again is
//!   decided by values that are told the time (`keep_alive`, `unanswered`, `back_off`, `handshake`); only the threads
//!   read a clock.
//!
//! A switch that does not read what it is sent stalls who sends to it, for [`Config::write_timeout`] at most; then its
//! connection is closed.
//!
//! [`Fabric`] is what a controller makes of it: all switches of a network with the routes and the steered pairs that they
//! are to have ([`entries`]).

mod back_off;
mod clock;
mod config;
mod connection;
mod context;
mod counters;
pub mod entries;
mod event;
mod fabric;
mod handshake;
mod keep_alive;
mod link;
mod member;
mod news;
mod outcome;
mod report;
mod switch;
mod switches;
#[cfg(test)]
mod tests;
mod tls;
mod unanswered;

pub use config::{BackOff, Config, ReadBack};
pub use counters::Counters;
pub use event::{Event, Up};
pub use fabric::{Fabric, Member};
pub use handshake::HandshakeError;
pub use news::News;
pub use outcome::{DownReason, Failure, Outcome, SendError};
pub use report::{FabricCounters, SwitchesReport};
pub use switch::{AskError, FlowsAnswer, Switch, Ticket};
pub use switches::{OpenFlowError, Switches};
pub use tls::{Tls, TlsError};
