//! Queues of packets at the ports of a router.
//!
//! | module | contents |
//! |---|---|
//! | `backlog` | queued items and queue lengths |
//! | `port_set` | a set of ports |
//! | `fifos` | one queue per port |
//! | `bank` | several queues per port |

pub mod backlog;
pub mod bank;
pub mod fifos;
pub mod port_set;
