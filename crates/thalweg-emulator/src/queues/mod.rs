//! Queues of packets at the ports of a router.
//!
//! | file | what it has |
//! |---|---|
//! | `backlog` | what can wait, and how much of it does |
//! | `port_set` | the ports at which something waits |
//! | `fifos` | one queue a port |
//! | `bank` | several queues a port |

pub mod backlog;
pub mod bank;
pub mod fifos;
pub mod port_set;
