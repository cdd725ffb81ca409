//! The core: slots go round, and packets go from queue to link to queue.
//!
//! | file | what it has |
//! |---|---|
//! | `fifos`, `bank`, `port_set` | queues of packets, one or many a port; the ports at which something waits |
//! | `ticks`, `lane`, `ports` | time within a slot; links as delay lines; the sending side of a router |
//! | `tally`, `context` | what is counted at a port; what a scheme may use beside its own state |
//! | `monitor` | mirrored ports and the monitor port that their copies go to |
//! | `shard` | routers and their endpoints on one core |
//! | `blueprint` | from a topology to shards |
//! | `emulation` | a whole network on one core, behind the seam |
//! | `parallel` | shards on several cores, in virtual or in real time |

pub mod bank;
pub mod blueprint;
pub mod context;
pub mod emulation;
pub mod fifos;
pub mod lane;
pub mod monitor;
pub mod parallel;
pub mod port_set;
pub mod ports;
pub mod shard;
pub mod tally;
pub mod ticks;

#[cfg(test)]
mod tests;
