//! Packet sources and filters. What needs a process with one thread is in `privileges.rs`.

mod filter;
mod foreign_captures;
mod live;
mod skip;
