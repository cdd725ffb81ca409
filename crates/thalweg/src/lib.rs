//! The parts of the `thalweg` program, so that tests and examples can use them one by one.

mod answers;
pub mod cli;
pub mod collect;
pub mod config;
mod console;
pub mod emulate;
mod figures;
pub mod sketch;
mod terminal;
pub mod top;
pub mod watch;
