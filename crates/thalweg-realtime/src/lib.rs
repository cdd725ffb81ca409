//! Real-time emulation: unmodified applications send through an emulated network.
//!
//! Source: Ousterhout et al., *Flexplane* (NSDI 2017). An endpoint holds the packets of its host, and requests a
//! decision on each from the arbiter, which emulates the network. [`protocol`] has both sides of their protocol,
//! without I/O and without a clock. [`arbiter`] is the arbiter, and [`endpoint`] the process that intercepts packets.

#![forbid(unsafe_code)]

pub mod arbiter;
pub mod endpoint;
pub mod protocol;
