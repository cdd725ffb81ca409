//! Packet sources behind the one trait of `thalweg-wire`: capture files and live interfaces, what filters their
//! frames, and how the privileges that capturing needs are given up.
//!
//! The home of `unsafe`: memory-mapped files, rings shared with the kernel, system calls and libpcap, each
//! behind a small safe type.

pub mod backend;
pub mod file;
pub mod filter;
pub mod live;
pub mod privileges;
pub mod xdp;

#[cfg(test)]
#[path = "../tests/skip/mod.rs"]
mod skip;
