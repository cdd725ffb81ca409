//! The parts of the `thalweg` program, so that tests and examples can use them one by one.

pub mod cli;
pub mod config;
pub mod emulate;
mod figures;
pub mod sketch;
pub mod synth;
pub mod watch;
