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

mod collectors;
mod steering;
mod sweep;
#[cfg(test)]
mod tests;
mod trial;
mod workload;
pub(super) mod workloads;
