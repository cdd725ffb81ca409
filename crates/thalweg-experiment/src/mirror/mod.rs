//! Consumers of the packets of an experiment's monitor ports. All read the emulator's
//! [`MirrorFeed`](thalweg_emulator::mirror::MirrorFeed).
//!
//! | module | consumer |
//! |---|---|
//! | [`run`] | a program that drives an experiment and controls it while it runs: the daemon |
//! | [`port`] | one collector that reads one port as fast as it can |

pub mod port;
pub mod run;
