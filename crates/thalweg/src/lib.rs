//! The parts of the `thalweg` program, for use in tests and examples.

pub mod cli;
pub mod collect;
pub mod config;
mod console;
pub mod emulate;
#[cfg(target_os = "linux")]
pub mod emulated_lab;
#[cfg(target_os = "linux")]
pub mod endpoint;
mod figures;
mod names;
pub mod sketch;
mod task_text;
mod terminal;
pub mod top;
pub mod transfers;
pub mod watch;
