//! Resource management schemes, one a file.
//!
//! | file | scheme |
//! |---|---|
//! | [`drop_tail`] | first in, first out; what finds the queue full is dropped |
//! | [`red`] | random early detection, with and without ECN |
//! | [`dctcp`] | marks beyond a threshold of the queue |
//! | [`priority`] | strict priority by DSCP |
//! | [`drr`] | deficit round robin by flow |
//! | [`hull`] | phantom queues |
//! | [`p_fabric`] | shortest remaining flow first |
//! | [`pie`] | proportional integral controller on the queueing delay |
//! | [`fq_codel`] | deficit round robin over flow queues, each under CoDel |
//!
//! Beside them: [`list`] has them all by name, [`error`] says what is wrong with a setting; [`flow_hash`] spreads
//! flows over queues, [`fifos_with`] keeps a state beside each port's queue, [`stamped`] when a packet came.

pub mod dctcp;
pub mod drop_tail;
pub mod drr;
pub mod error;
pub mod fifos_with;
pub mod flow_hash;
pub mod fq_codel;
pub mod hull;
pub mod list;
pub mod p_fabric;
pub mod pie;
pub mod priority;
pub mod red;
pub mod stamped;

#[cfg(test)]
mod tests;

pub use error::SchemeError;
pub use list::{SCHEMES, Scheme};
