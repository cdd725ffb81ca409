//! The protocol of requests and answers: two state machines over the datagrams of
//! [`thalweg_wire::emulation_protocol`].
//!
//! ```text
//!   submit ──► Endpoint ── requests ──► ArbiterSession ──► emulate (closure)
//!                  │                          │
//!   decide ◄───────┘ ◄───── answers ──────────┘ ◄── answer
//! ```
//!
//! Source: Ousterhout et al., *Flexplane* (NSDI 2017), sections 3 and 4: requests and answers are reliable both ways,
//! identified by flow and index; the arbiter has only soft state, so that another can take over.
//!
//! **Guarantees.** The endpoint decides on each packet exactly once: send or drop. It holds a packet in a slot until
//! then, and an answer without a slot is counted and has no effect, whatever is lost, duplicated, reordered or
//! restarted. No packet is held for longer than [`EndpointOptions::deadline`]. Within a session of both sides, the
//! arbiter emulates a request once, unless its table of flows overflows ([`ArbiterCounters::flows_evicted`]).
//!
//! **Reliability.** Each datagram has a number of its own and repeats which numbers of the peer have arrived. If the
//! retransmission timeout passes without an acknowledgement, the datagram is lost: what it contained and is still
//! needed goes into the next datagram. Round-trip times therefore need no correction for retransmissions (Karn's
//! problem). The timeout is that of RFC 6298, with a floor, doubled at each timeout up to a cap.
//!
//! **Restarts.** Each side has a [`Session`](thalweg_wire::emulation_protocol::Session) that increases with each
//! start. A new session of the arbiter lets the endpoint send all pending requests again. A new session of the
//! endpoint lets the arbiter forget its requests. Datagrams of earlier sessions are refused.
//!
//! **Fail-over.** An arbiter that is silent although it was asked is replaced by the other one
//! ([`Command::SwitchTo`]), which receives all pending requests.
//!
//! **Driving.** Both sides work in the same way. `receive` takes a datagram. `tick` does what is due. `transmit`
//! writes the next datagram, if any: repeat until it has none. `next_event` is the time of the next `tick` and
//! `transmit`. Time must not go backwards; if it does, timeouts wait.
//!
//! **Overhead.** The answer for a packet says how long it was in the emulated network, so the endpoint knows what the emulation has added
//! to that. [`ReleaseQueue`] lets all packets have the same overhead.
//!
//! **Cost.** Tables are allocated at the start, nothing later. Per packet: a hash lookup at each submission and
//! decision, and a few links of lists. Memory of an endpoint: about 170 bytes for each packet that it can hold; of an
//! arbiter: about 80 bytes for each request and 600 for each flow of an endpoint.

mod arbiter;
mod chains;
mod channel;
mod counters;
mod endpoint;
mod flows;
mod options;
mod outbox;
mod receive_error;
mod releases;
mod round_trip;
mod seen;

pub use arbiter::{ArbiterSession, ObsoleteRequest, RequestId};
pub use counters::{ArbiterCounters, DatagramCounters, EndpointCounters};
pub use endpoint::{Arbiter, Command, Decision, Endpoint, PacketSlot, Submission, SubmitError, Transmit};
pub use options::{ArbiterOptions, EndpointOptions, LinkOptions, OptionsError};
pub use receive_error::ReceiveError;
pub use releases::{ReleaseCounters, ReleaseQueue, Released};
