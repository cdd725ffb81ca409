//! Consumers of what an experiment's monitor ports send. All read the emulator's
//! [`MirrorFeed`](thalweg_emulator::mirror::MirrorFeed).
//!
//! | module | who reads |
//! |---|---|
//! | `captures` | a run that writes a capture file for each port |
//! | [`run`] | whoever drives an experiment and steers it while it runs: the daemon |
//! | [`port`] | one collector that reads one port as fast as it can |

pub(super) mod captures;
pub mod port;
pub mod run;
