//! The controller: decides which flows to reroute. It does no I/O, starts no threads and reads no clock (Rasley et
//! al., "Planck", SIGCOMM 2014, sections 3.3, 4.1 and 6.2).
//!
//! | module | contents |
//! |---|---|
//! | [`pair`] | a source and a destination host, the unit of rerouting |
//! | [`routes`] | paths, and the rules that switches need for them |
//! | [`reports`] | converts collector reports into decider inputs |
//! | [`decide`] | the rerouting algorithms, as pure functions |
//! | [`action`] | one reroute of one pair |
//! | [`controller`] | issues actions and follows each to its outcome |
//! | [`control_loop`] | the whole control loop: inputs and time in, commands out |
//! | [`isolate`] | isolation of cheetah flows in a scavenger queue, a loop of its own |
//! | [`threshold`] | adaptation of the rate threshold to the traffic |

#![forbid(unsafe_code)]

pub mod action;
pub mod control_loop;
pub mod controller;
pub mod decide;
pub mod isolate;
pub mod pair;
pub mod reports;
pub mod routes;
pub mod threshold;

pub use pair::Pair;
