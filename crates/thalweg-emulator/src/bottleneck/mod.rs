//! Loss at one port in exact time: recorded packets, and a fast flow that is added to them.
//!
//! Maji's dissertation (University of Virginia 2018, chapter 4) simulates this to choose the rate from which flows are
//! isolated: recorded packets are replayed through a port with a limited buffer, together with a flow of
//! each rate ([`setup`]). This module does so in exact time, without timeslots, and without hosts and links around the
//! port, so that an hour of traffic and tens of flows take minutes.
//!
//! | module | contents |
//! |---|---|
//! | [`port`] | the port: a primary and a scavenger queue, strict or weighted, in bytes |
//! | [`lane`] | recorded packets and one flow through a port, in order of time |
//! | [`round_flow`] | the flow of the dissertation's published program: H-TCP in rounds |
//! | [`tcp_flow`] | the flow of an emulated host: our TCP with H-TCP, or another algorithm |
//! | [`setup`] | loss by flow rate for recorded packets, and the threshold that follows |
//! | [`sample`] | which packets are replayed: all, or a sample of stretches |
//!
//! **Guarantee.** A port treats each packet as a router of the emulator with the scheme
//! [`scavenger`](crate::schemes::scavenger): a test compares them packet by packet. Everything that was offered was sent,
//! dropped, or is queued. Nothing is random.
//!
//! **Cost.** A lane keeps 4 bytes per packet of a full buffer, twice if the flow shares the primary queue, and
//! allocates nothing per packet. One pass over the packets serves all lanes ([`setup`]), so packets need not be kept.
//! A flow in the primary queue needs no event when a packet leaves: all departures are known at arrival.

mod fifo;
pub mod lane;
pub mod port;
pub mod round_flow;
pub mod sample;
pub mod setup;
pub mod tcp_flow;

pub use crate::workloads::burst_process::SECOND_PS;

#[cfg(test)]
mod tests;
