//! Which way packets go: all shortest paths ([`NextHops`]) and a choice among them ([`ecmp`]), or forwarding tables
//! that a controller has written ([`ForwardingTable`]); and the whole [`path`] of a packet under either. What the hash of
//! a packet on a wire is taken of is said by [`flow_ports`]. [`trees`] makes tables with several ways to everybody.

pub mod ecmp;
pub mod flow_ports;
pub mod forwarding;
pub mod next_hops;
pub mod path;
#[cfg(test)]
mod tests;
pub mod trees;

pub use forwarding::{ForwardingError, ForwardingTable};
pub use next_hops::{NextHops, NextHopsError};
pub use path::{Hop, Path, PathError};
pub use trees::{Diversity, TreeOptions, spanning_trees};
