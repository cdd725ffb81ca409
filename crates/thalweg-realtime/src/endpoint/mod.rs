//! An endpoint of a real-time emulation: it intercepts what a host sends, holds each packet, requests a decision on it
//! from the arbiter, and drops or releases it.
//!
//! ```text
//!   interception ──► host_table, headers ──► protocol::Endpoint ──► datagrams ──► arbiter
//!        ▲              packet_store                │
//!        └──────── protocol::ReleaseQueue ◄─────────┘ decisions
//! ```
//!
//! Source: Ousterhout et al., *Flexplane* (NSDI 2017), sections 3 and 4. There, an endpoint is a queueing discipline; here it
//! is a process, which needs no kernel module.
//!
//! **Guarantees.** A packet is sent at most once. No packet of an application is lost without being counted: by the protocol
//! ([`EndpointCounters`](crate::protocol::EndpointCounters)), here ([`PacketCounters`]), or by the kernel's TAP interface
//! ([`PacketCounters::overflow`]). When the process ends, however it ends, the host sends as before.
//!
//! **Memory.** [`EndpointOptions::max_packets`](crate::protocol::EndpointOptions::max_packets) places of 9,263 bytes, of which
//! only those are resident that were used.

mod headers;
mod host_table;
mod interception;
mod options;
mod packet_store;
mod process;
mod report;
mod time_histogram;

pub use host_table::{HostTable, HostTableError, LineError};
pub use interception::{InterceptionError, MARK, MAX_MTU};
pub use options::{ProcessOptions, Unlisted, Waiting};
pub use process::{EndpointProcess, Event, ProcessError};
pub use report::{ControlCounters, Losses, PacketCounters, Report};
pub use time_histogram::TimeHistogram;
