//! The parts of the `thalweg` program, so that tests and examples can use them one by one.

mod answers;
pub mod cli;
pub mod collect;
pub mod config;
pub mod emulate;
mod figures;
#[cfg(target_os = "linux")]
pub mod lab;
pub mod sketch;
mod terminal;
pub mod top;
pub mod watch;
