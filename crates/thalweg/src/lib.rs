//! The parts of the `thalweg` program, so that tests and examples can use them one by one.

pub mod cli;
pub mod config;
pub mod document;
pub mod emulate;
mod figures;
pub mod serve;
pub mod sketch;
pub mod synth;
mod terminal;
pub mod top;
pub mod watch;
