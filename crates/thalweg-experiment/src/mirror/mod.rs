//! Consumers of what an experiment's monitor ports send. All read the emulator's
//! [`MirrorFeed`](thalweg_emulator::mirror::MirrorFeed).
//!
//! | module | who reads |
//! |---|---|
//! | [`run`] | whoever drives an experiment and steers it while it runs: the daemon |
//! | [`port`] | one collector that reads one port as fast as it can |

pub mod port;
pub mod run;
