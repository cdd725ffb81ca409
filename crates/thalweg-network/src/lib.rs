//! The model of a network: topology, link state, forwarding state, and the paths of packets.
//!
//! Values and pure functions: no I/O, no clock, no `unsafe`.
//!
//! | module | contents |
//! |---|---|
//! | [`identity`] | identifiers of endpoints, routers, ports and links |
//! | [`address`] | MAC and IPv4 addresses of endpoints, shadow addresses included |
//! | [`topology`] | endpoints (hosts), routers (switches) and links; named shapes; topology files |
//! | [`link_state`] | which links are up |
//! | [`routing`] | shortest paths, ECMP with a known hash, forwarding tables, the path of a packet |
//! | [`state`] | a network at one time: topology, link state and forwarding tables; the topology files that include them |
//! | [`versions`] | past states of a network, and the one that forwarded a packet |
//! | [`import`] | builds topologies from LLDP neighbours and from Open vSwitch |
//! | [`inference`] | infers input port, output port and path of a packet from its headers |
//!
//! The path of a flow in a fat tree, with one link down:
//!
//! ```
//! use thalweg_network::routing::{NextHops, path};
//! use thalweg_network::topology::shapes::{Tiers, fat_tree};
//! use thalweg_network::{EndpointId, LinkId, LinkState};
//!
//! let topology = fat_tree(4, Tiers::default())?;
//! let mut links = LinkState::new(&topology);
//! links.fail(LinkId(20))?;
//! let next_hops = NextHops::new(&topology, &links)?;
//!
//! let (seed, flow) = (1, 7);
//! let path = path::by_ecmp(&topology, &next_hops, seed, EndpointId(0), EndpointId(15), flow)?;
//! assert_eq!(path.hops().len(), 5, "edge, aggregation, core, aggregation, edge");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![forbid(unsafe_code)]

pub mod address;
pub mod identity;
pub mod import;
pub mod inference;
pub mod link_state;
pub mod routing;
pub mod state;
pub mod topology;
pub mod versions;

pub use address::MacAddress;
pub use identity::{EndpointId, LinkId, PortIndex, RouterId};
pub use inference::{Case, Certainty, Inference, Ports};
pub use link_state::LinkState;
pub use state::{Forwarding, NetworkState};
pub use topology::{Attachment, Link, LinkSpec, Node, Topology, TopologyBuilder, TopologyError};
pub use versions::{Phase, Version, Versions};
