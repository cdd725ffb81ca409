//! What Planck's traffic engineering claims (Rasley et al., SIGCOMM 2014, section 7), in virtual time: one module an
//! experiment.
//!
//! The loop is the real one. Each switch of an emulated fat tree has a monitor port, and a collector of its own reads it
//! ([`collectors`]); what collectors tell goes to `thalweg-control`'s controller, and what that decides changes after
//! a settable delay which of a destination's addresses a host sends to ([`steering`]). A [`trial`] is one run
//! of a [`workload`] under one scheme. The same seeds give the same numbers.
//!
//! | module | figure |
//! |---|---|
//! | [`workloads`] | figure 14: mean throughput of flows, by workload and scheme |
//! | [`sizes`] | figure 17: the same by size of flows |
//! | [`flows`] | figure 18: when hosts have all of a shuffle, and how fast a stride's flows are |
//! | [`stress`] | none: more hosts, uneven links, lost notices, faster and slower control |
//! | [`faults`] | none: what goes wrong ([`ordeal`]), and whether steering goes on |

mod collectors;
pub(super) mod faults;
pub(super) mod flows;
mod ordeal;
pub(super) mod sizes;
mod steering;
pub(super) mod stress;
mod sweep;
mod switches;
#[cfg(test)]
mod tests;
mod trial;
mod workload;
pub(super) mod workloads;
