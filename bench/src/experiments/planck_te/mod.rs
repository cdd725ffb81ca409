//! Claims of Planck's traffic engineering (Rasley et al., SIGCOMM 2014, section 7), in virtual time: one module per
//! experiment.
//!
//! The control loop is the real one. Each switch of an emulated fat tree has a monitor port, read by its own collector
//! ([`collectors`]). Events go to `thalweg-control`'s controller, and its decisions change the destination address that
//! a host uses, after a configurable delay ([`control`]). A [`trial`] is one run of a [`workload`] under one method.
//! The same seeds give the same numbers.
//!
//! | module | figure |
//! |---|---|
//! | [`workloads`] | figure 14: mean throughput of flows, by workload and method |
//! | [`sizes`] | figure 17: the same by flow size |
//! | [`flows`] | figure 18: completion times of shuffles, and throughput of a stride's flows |
//! | [`stress`] | none: more hosts, uneven links, lost events, faster and slower control |
//! | [`faults`] | none: traffic engineering under faults ([`fault_run`]) |

mod collectors;
mod control;
mod fault_run;
pub(super) mod faults;
pub(super) mod flows;
pub(super) mod sizes;
pub(super) mod stress;
mod sweep;
mod switches;
#[cfg(test)]
mod tests;
mod trial;
mod workload;
pub(super) mod workloads;
