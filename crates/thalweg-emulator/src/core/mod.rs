//! The core: runs the slots and moves packets from queue to link to queue.
//!
//! | module | contents |
//! |---|---|
//! | `shard` | routers and their endpoints on one core |
//! | `blueprint` | from a topology to shards |
//! | `emulation` | a whole network on one core, behind the `Fabric` interface |
//! | `sharded` | a whole network on several cores, behind the same interface |
//! | `redirection` | redirected flows in all routers of a network |
//! | `parallel` | shards on several cores, in virtual or in real time |
//! | `pacer` | slots by a real clock: which are late, and which are skipped |
//! | `events` | failures, repairs and table changes, also during a run |
//! | `occupancy` | queue lengths of ports, sampled at an interval |

pub mod blueprint;
pub mod emulation;
pub mod events;
pub mod occupancy;
pub mod pacer;
pub mod parallel;
mod redirection;
pub mod shard;
pub mod sharded;

#[cfg(test)]
mod tests;
