//! A network's topology: endpoints, routers, and the links between them.
//!
//! A [`Topology`] is checked when it is built and never changes after; whether a link works at the moment is said by
//! [`LinkState`](crate::link_state::LinkState). It is built link by link ([`TopologyBuilder`]), from one of the named
//! [`shapes`], or from a [`file`](mod@file).
//!
//! # Order
//! - Every endpoint has one port, 0, with one link, and this link leads to a router: its rack's.
//! - Link `i` is that of endpoint `i`, for all endpoints; the links between routers follow, in the order in which they
//!   were connected.
//! - A router's ports are numbered in the order of its links. So those that lead to endpoints come first.
//!
//! # Memory and cost
//! Flat arrays. Each endpoint, router and link takes 50 to 100 bytes, names included. Every question is answered
//! in a few loads, but for those that look for a name or an address.

mod builder;
mod error;
pub mod file;
pub mod shapes;
#[cfg(test)]
mod tests;

pub use builder::TopologyBuilder;
pub use error::TopologyError;

use std::net::Ipv4Addr;
use std::ops::Range;

use thalweg_wire::{BitRate, Nanos};

use crate::address::{self, MacAddress};
use crate::identity::{EndpointId, LinkId, PortIndex, RouterId};

/// Most endpoints of a topology, and most routers: numbers of 16 bits, the highest of which is free to mean "none".
pub const MAX_NODES: usize = 65_535;

/// Most ports of a router.
pub const MAX_PORTS: usize = 1_024;

/// Highest rate of a link: 1 Pbit/s, so that rates are exact as floating-point numbers too.
pub const MAX_RATE: BitRate = BitRate(1_000_000_000_000_000);

/// Longest delay of a link: 10 s, longer than to the Moon and back. It bounds what can be on a link.
pub const MAX_DELAY: Nanos = Nanos::from_secs(10);

/// Longest name of an endpoint or a router, in bytes.
pub const MAX_NAME: usize = 64;

/// An endpoint or a router.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Node {
    /// A host.
    Endpoint(EndpointId),
    /// A switch.
    Router(RouterId),
}

/// One end of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Attachment {
    /// What it is attached to.
    pub node: Node,
    /// By which port; an endpoint has only port 0.
    pub port: PortIndex,
}

/// Rate and delay of a link, the same in both directions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkSpec {
    /// Bits per second, framing included; 1 bit/s to [`MAX_RATE`].
    pub rate: BitRate,
    /// From the last bit's leaving one end to the other end's having the packet ready to be queued: propagation, and
    /// what the receiving switch takes. At most [`MAX_DELAY`].
    pub delay: Nanos,
}

/// 10 Gbit/s and 1 us: 20 m of cable and a fast switch.
impl Default for LinkSpec {
    fn default() -> Self {
        LinkSpec { rate: BitRate(10_000_000_000), delay: Nanos::from_micros(1) }
    }
}

impl LinkSpec {
    /// Whether there can be such a link.
    ///
    /// # Errors
    /// If its rate is zero or too high, or its delay too long.
    pub fn check(self) -> Result<(), TopologyError> {
        let LinkSpec { rate, delay } = self;
        if rate.0 == 0 || rate > MAX_RATE {
            return Err(TopologyError::Rate { rate });
        }
        if delay > MAX_DELAY { Err(TopologyError::Delay { delay }) } else { Ok(()) }
    }
}

/// A link: full duplex, the same in both directions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    /// What it connects. Of an endpoint's link, the endpoint comes first.
    pub ends: [Attachment; 2],
    /// Bits per second in each direction.
    pub rate: BitRate,
    /// As in [`LinkSpec::delay`].
    pub delay: Nanos,
}

impl Link {
    /// Rate and delay.
    pub const fn spec(&self) -> LinkSpec {
        LinkSpec { rate: self.rate, delay: self.delay }
    }
}

/// What is known of an endpoint besides its link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// Its name; no other endpoint or router has it.
    pub name: String,
    /// Its base MAC address; no other endpoint has it.
    pub mac: MacAddress,
    /// Its IPv4 address; no other endpoint has it.
    pub ip: Ipv4Addr,
}

/// What is known of a router besides its links.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Router {
    /// Its name; no other endpoint or router has it.
    pub name: String,
}

/// Addresses in ascending order, and whose they are.
type Owners<A> = Box<[(A, EndpointId)]>;

/// Who is attached to whom. See the [module](self) for the order of links and ports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Topology {
    endpoints: Box<[Endpoint]>,
    routers: Box<[Router]>,
    links: Box<[Link]>,
    /// The ports of router `r` are entries `first_ports[r]..first_ports[r + 1]` of `port_links` and `port_peers`.
    first_ports: Box<[u32]>,
    port_links: Box<[LinkId]>,
    port_peers: Box<[Attachment]>,
    /// By router, how many of its ports lead to endpoints.
    rack_sizes: Box<[u16]>,
    /// Base MAC addresses that are not the default ones.
    given_macs: Owners<MacAddress>,
    /// All IPv4 addresses.
    ips: Owners<Ipv4Addr>,
}

impl Topology {
    /// All endpoints, by [`EndpointId`].
    pub fn endpoints(&self) -> &[Endpoint] {
        &self.endpoints
    }

    /// All routers, by [`RouterId`].
    pub fn routers(&self) -> &[Router] {
        &self.routers
    }

    /// All links, by [`LinkId`]: the endpoints' first.
    pub fn links(&self) -> &[Link] {
        &self.links
    }

    /// The numbers of all endpoints.
    pub fn endpoint_ids(&self) -> impl ExactSizeIterator<Item = EndpointId> + use<> {
        (0..self.endpoints.len() as u16).map(EndpointId)
    }

    /// The numbers of all routers.
    pub fn router_ids(&self) -> impl ExactSizeIterator<Item = RouterId> + use<> {
        (0..self.routers.len() as u16).map(RouterId)
    }

    /// Number of ports of a router.
    ///
    /// # Panics
    /// If there is no such router.
    #[inline]
    pub fn ports(&self, router: RouterId) -> usize {
        self.entries(router).len()
    }

    /// Ports of a router that lead to endpoints: 0 up to here, excluded. The others lead to routers.
    ///
    /// # Panics
    /// If there is no such router.
    #[inline]
    pub fn rack_size(&self, router: RouterId) -> usize {
        usize::from(self.rack_sizes[router.index()])
    }

    /// The endpoints at a router, in the order of its ports.
    ///
    /// # Panics
    /// If there is no such router.
    pub fn rack(&self, router: RouterId) -> impl ExactSizeIterator<Item = EndpointId> + '_ {
        let entries = self.entries(router);
        // An endpoint's link has the endpoint's number.
        self.port_links[entries.start..entries.start + self.rack_size(router)]
            .iter()
            .map(|link| EndpointId(link.0 as u16))
    }

    /// The link at a port of a router.
    ///
    /// # Panics
    /// If there is no such router, or it has no such port.
    #[inline]
    pub fn link_at(&self, router: RouterId, port: PortIndex) -> LinkId {
        self.port_links[self.entries(router)][port.index()]
    }

    /// The other end of the link at a port of a router.
    ///
    /// # Panics
    /// If there is no such router, or it has no such port.
    #[inline]
    pub fn peer(&self, router: RouterId, port: PortIndex) -> Attachment {
        self.peers(router)[port.index()]
    }

    /// The other ends of all links of a router, by port.
    ///
    /// # Panics
    /// If there is no such router.
    #[inline]
    pub fn peers(&self, router: RouterId) -> &[Attachment] {
        &self.port_peers[self.entries(router)]
    }

    /// The link of an endpoint: the one of the same number.
    #[inline]
    pub const fn endpoint_link(&self, endpoint: EndpointId) -> LinkId {
        LinkId(endpoint.0 as u32)
    }

    /// The router that an endpoint is attached to.
    ///
    /// # Panics
    /// If there is no such endpoint.
    #[inline]
    pub fn router_of(&self, endpoint: EndpointId) -> RouterId {
        match self.access(endpoint).node {
            Node::Router(router) => router,
            Node::Endpoint(_) => unreachable!("the builder attaches endpoints to routers only"),
        }
    }

    /// The port of its router that an endpoint is attached to.
    ///
    /// # Panics
    /// If there is no such endpoint.
    #[inline]
    pub fn port_of(&self, endpoint: EndpointId) -> PortIndex {
        self.access(endpoint).port
    }

    /// MAC address `address` of an endpoint: 0 is its base address, others are shadow addresses.
    ///
    /// # Panics
    /// If there is no such endpoint.
    pub fn mac(&self, endpoint: EndpointId, address: u8) -> MacAddress {
        let base = self.endpoints[endpoint.index()].mac;
        if address == 0 { base } else { address::shadow_mac(endpoint, address) }
    }

    /// Whose MAC address this is, and which of theirs; the inverse of [`mac`](Self::mac). O(1) for addresses of
    /// the default form, else a binary search.
    pub fn endpoint_with_mac(&self, mac: MacAddress) -> Option<(EndpointId, u8)> {
        match address::parse_shadow_mac(mac) {
            Some((endpoint, address)) => {
                let known = self.endpoints.get(endpoint.index())?;
                (address != 0 || known.mac == mac).then_some((endpoint, address))
            }
            None => found(&self.given_macs, mac).map(|endpoint| (endpoint, 0)),
        }
    }

    /// Whose IPv4 address this is, by binary search.
    pub fn endpoint_with_ip(&self, ip: Ipv4Addr) -> Option<EndpointId> {
        found(&self.ips, ip)
    }

    /// The node of this name, by looking at all.
    pub fn node_named(&self, name: &str) -> Option<Node> {
        let endpoint = self.endpoint_ids().find(|endpoint| self.endpoints[endpoint.index()].name == name);
        let router = || self.router_ids().find(|router| self.routers[router.index()].name == name);
        endpoint.map(Node::Endpoint).or_else(|| router().map(Node::Router))
    }

    /// The name of a node.
    ///
    /// # Panics
    /// If there is no such node.
    pub fn name(&self, node: Node) -> &str {
        match node {
            Node::Endpoint(endpoint) => &self.endpoints[endpoint.index()].name,
            Node::Router(router) => &self.routers[router.index()].name,
        }
    }

    /// Checks that the arrays agree with each other, and with what the [module](self) promises.
    ///
    /// # Panics
    /// If they do not.
    pub fn check_invariants(&self) {
        assert!(!self.endpoints.is_empty() && self.endpoints.len() <= MAX_NODES);
        assert!(self.routers.len() <= MAX_NODES);
        for (index, link) in self.links.iter().enumerate() {
            assert!(link.rate.0 >= 1 && link.rate <= MAX_RATE && link.delay <= MAX_DELAY);
            assert_ne!(link.ends[0].node, link.ends[1].node, "no link leads back to where it began");
            for (end, other) in [(link.ends[0], link.ends[1]), (link.ends[1], link.ends[0])] {
                match end.node {
                    Node::Endpoint(endpoint) => {
                        assert_eq!((endpoint.index(), end.port), (index, PortIndex(0)));
                    }
                    Node::Router(router) => {
                        assert_eq!(self.link_at(router, end.port).index(), index);
                        assert_eq!(self.peer(router, end.port), other);
                        let leads_to_endpoint = matches!(other.node, Node::Endpoint(_));
                        assert_eq!(leads_to_endpoint, end.port.index() < self.rack_size(router));
                    }
                }
            }
        }
        let ports =
            self.router_ids().map(|router| self.ports(router)).inspect(|&ports| assert!(ports <= MAX_PORTS));
        assert_eq!(ports.sum::<usize>() + self.endpoints.len(), 2 * self.links.len(), "a link has two ends");
        for endpoint in self.endpoint_ids() {
            let Endpoint { name, mac, ip } = &self.endpoints[endpoint.index()];
            assert_eq!(self.links[endpoint.index()].ends[0].node, Node::Endpoint(endpoint));
            assert!(mac.is_unicast());
            assert_eq!(self.endpoint_with_mac(*mac), Some((endpoint, 0)), "{name}");
            assert_eq!(self.endpoint_with_ip(*ip), Some(endpoint), "{name}");
        }
    }

    /// The router's end of an endpoint's link.
    #[inline]
    fn access(&self, endpoint: EndpointId) -> Attachment {
        assert!(endpoint.index() < self.endpoints.len(), "there is no endpoint {endpoint}");
        self.links[endpoint.index()].ends[1]
    }

    /// Where a router's ports are in the arrays of all ports.
    #[inline]
    fn entries(&self, router: RouterId) -> Range<usize> {
        self.first_ports[router.index()] as usize..self.first_ports[router.index() + 1] as usize
    }
}

fn found<A: Ord + Copy>(sorted: &[(A, EndpointId)], address: A) -> Option<EndpointId> {
    let index = sorted.binary_search_by_key(&address, |&(address, _)| address).ok()?;
    Some(sorted[index].1)
}
