//! The core: slots go round, and packets go from queue to link to queue.
//!
//! | file | what it has |
//! |---|---|
//! | `shard` | routers and their endpoints on one core |
//! | `blueprint` | from a topology to shards |
//! | `emulation` | a whole network on one core, behind the seam |
//! | `parallel` | shards on several cores, in virtual or in real time |

pub mod blueprint;
pub mod emulation;
pub mod parallel;
pub mod shard;

#[cfg(test)]
mod tests;
