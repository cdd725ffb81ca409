//! Resource management schemes, one per file.
//!
//! | module | scheme |
//! |---|---|
//! | [`drop_tail`] | first in, first out; a full queue drops arrivals |
//! | [`red`] | random early detection, with and without ECN |
//! | [`dctcp`] | marks above a threshold of the queue |
//! | [`priority`] | strict priority by DSCP |
//! | [`drr`] | deficit round robin by flow |
//! | [`hull`] | phantom queues |
//! | [`p_fabric`] | shortest remaining flow first |
//! | [`pie`] | proportional integral controller of the queueing delay |
//! | [`scavenger`] | a primary and a scavenger queue, strict or weighted |
//! | [`fq_codel`] | deficit round robin over flow queues, each under CoDel |
//!
//! Also: [`list`] names all schemes, [`own`] wraps those of other programs, [`error`] reports invalid settings, [`flow_hash`] assigns flows to queues,
//! [`fifos_with`] has a state per queue, [`stamped`] records the arrival of packets.

pub mod dctcp;
pub mod drop_tail;
pub mod drr;
pub mod error;
pub mod fifos_with;
pub mod flow_hash;
pub mod fq_codel;
pub mod hull;
pub mod list;
pub mod own;
pub mod p_fabric;
pub mod pie;
pub mod priority;
pub mod red;
pub mod scavenger;
pub mod stamped;

#[cfg(test)]
pub(crate) mod tests;

pub use error::SchemeError;
pub use list::{SCHEMES, Scheme};
pub use own::{Own, OwnScheme};
