//! Packet sources and filters. Tests that need a process with one thread are in `privileges.rs`.

mod filter;
mod foreign_captures;
mod live;
mod skip;
