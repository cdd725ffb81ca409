//! Routing: all shortest paths ([`NextHops`]) with ECMP ([`ecmp`]), or the forwarding tables of a controller
//! ([`ForwardingTable`]), and the whole [`path`] of a packet under either. [`flow_ports`] maps the ports of a packet to
//! the flow number that ECMP hashes. [`trees`] builds tables with several paths to every endpoint.

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
