//! A network's topology: endpoints, routers, and the links between them.
//!
//! A [`Topology`] is validated when it is built, and immutable. [`LinkState`](crate::link_state::LinkState) holds which
//! links are up. A topology comes from a [`TopologyBuilder`], one of the named [`shapes`], or a [`file`](mod@file).
//!
//! # Order
//! - Every endpoint has one port, 0, with one link to a router, that of its rack.
//! - Link `i` belongs to endpoint `i`. The links between routers follow in the order in which they were connected.
//! - The ports of a router are numbered in the order of its links, so ports to endpoints come first.
//!
//! # Memory and cost
//! Flat arrays. Each endpoint, router and link takes 50 to 100 bytes, names included. Every accessor takes a few loads,
//! except searches for a name or an address.

mod builder;
mod error;
pub mod file;
mod loss;
mod port_text;
pub mod shapes;
#[cfg(test)]
mod tests;

pub use builder::TopologyBuilder;
pub use error::TopologyError;
pub use loss::LossRate;
pub use port_text::UnknownPort;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::ops::Range;

use thalweg_wire::{BitRate, Nanos};

use crate::address::{self, MacAddress};
use crate::identity::{EndpointId, LinkId, PortIndex, RouterId};

/// The maximum number of endpoints, and of routers: 16-bit numbers, of which the highest is free to mean "none".
pub const MAX_NODES: usize = 65_535;

/// The maximum number of ports of a router.
pub const MAX_PORTS: usize = 1_024;

/// The maximum rate of a link: 1 Pbit/s, so that rates are exact as floating-point numbers.
pub const MAX_RATE: BitRate = BitRate(1_000_000_000_000_000);

/// The maximum delay of a link: 10 s, longer than to the Moon and back. It bounds the data in flight on a link.
pub const MAX_DELAY: Nanos = Nanos::from_secs(10);

/// The maximum length of the name of an endpoint or a router, in bytes.
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
    /// The node.
    pub node: Node,
    /// The port of the node; an endpoint has only port 0.
    pub port: PortIndex,
}

/// Rate, delay, loss and jitter of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkSpec {
    /// Bits per second, framing included; 1 bit/s to [`MAX_RATE`].
    pub rate: BitRate,
    /// The time from sending the last bit until the receiver can queue the packet: propagation, and processing in the
    /// receiving switch. At most [`MAX_DELAY`].
    pub delay: Nanos,
    /// The probability that the link loses a packet: from its first end to the second, and back. An endpoint is the first
    /// end. Only emulated networks lose packets at random.
    pub loss: [LossRate; 2],
    /// By how much the delay of a packet differs from `delay` at most, in an emulated network. At most `delay`.
    pub jitter: Nanos,
}

/// 10 Gbit/s and 1 us: 20 m of cable and a fast switch. No loss, no jitter.
impl Default for LinkSpec {
    fn default() -> Self {
        LinkSpec {
            rate: BitRate(10_000_000_000),
            delay: Nanos::from_micros(1),
            loss: [LossRate::ZERO; 2],
            jitter: Nanos::ZERO,
        }
    }
}

impl LinkSpec {
    /// Validates the values.
    ///
    /// # Errors
    /// If the rate is zero or too high, the delay too long, or the jitter larger than the delay.
    pub fn check(self) -> Result<(), TopologyError> {
        let LinkSpec { rate, delay, loss: _, jitter } = self;
        if rate.0 == 0 || rate > MAX_RATE {
            return Err(TopologyError::Rate { rate });
        }
        match () {
            () if delay > MAX_DELAY => Err(TopologyError::Delay { delay }),
            () if jitter > delay => Err(TopologyError::Jitter { jitter, delay }),
            () => Ok(()),
        }
    }
}

/// A link: full duplex, with the same rate and delay in both directions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    /// The two ends; an endpoint comes first.
    pub ends: [Attachment; 2],
    /// Bits per second in each direction.
    pub rate: BitRate,
    /// As in [`LinkSpec::delay`].
    pub delay: Nanos,
    /// As in [`LinkSpec::loss`].
    pub loss: [LossRate; 2],
    /// As in [`LinkSpec::jitter`].
    pub jitter: Nanos,
}

impl Link {
    /// A link with this specification.
    pub const fn new(ends: [Attachment; 2], spec: LinkSpec) -> Link {
        let LinkSpec { rate, delay, loss, jitter } = spec;
        Link { ends, rate, delay, loss, jitter }
    }

    /// Rate, delay, loss and jitter.
    pub const fn spec(&self) -> LinkSpec {
        let Link { ends: _, rate, delay, loss, jitter } = *self;
        LinkSpec { rate, delay, loss, jitter }
    }
}

/// Name and addresses of an endpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// The name, unique among endpoints and routers.
    pub name: String,
    /// The base MAC address, unique among endpoints.
    pub mac: MacAddress,
    /// The IPv4 address, unique among endpoints.
    pub ip: Ipv4Addr,
    /// The IPv6 address, unique among endpoints; `None` if unknown.
    pub ipv6: Option<Ipv6Addr>,
}

/// The name of a router.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Router {
    /// The name, unique among endpoints and routers.
    pub name: String,
}

/// Addresses in ascending order, with their endpoints.
type Owners<A> = Box<[(A, EndpointId)]>;

/// Endpoints, routers and links of a network. See the [module](self) for the order of links and ports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Topology {
    endpoints: Box<[Endpoint]>,
    routers: Box<[Router]>,
    links: Box<[Link]>,
    /// The ports of router `r` are entries `first_ports[r]..first_ports[r + 1]` of `port_links` and `port_peers`.
    first_ports: Box<[u32]>,
    port_links: Box<[LinkId]>,
    port_peers: Box<[Attachment]>,
    /// By router, the number of ports that lead to endpoints.
    rack_sizes: Box<[u16]>,
    /// Base MAC addresses that are not the default ones.
    custom_macs: Owners<MacAddress>,
    /// All IPv4 and IPv6 addresses.
    ips: Owners<IpAddr>,
    /// The names that routers give to their ports, where known, by router and port.
    port_names: Box<[((RouterId, PortIndex), String)]>,
}

impl Topology {
    /// All endpoints, indexed by [`EndpointId`].
    pub fn endpoints(&self) -> &[Endpoint] {
        &self.endpoints
    }

    /// All routers, indexed by [`RouterId`].
    pub fn routers(&self) -> &[Router] {
        &self.routers
    }

    /// All links, indexed by [`LinkId`]; the endpoints' links come first.
    pub fn links(&self) -> &[Link] {
        &self.links
    }

    /// Returns the identifiers of all endpoints.
    pub fn endpoint_ids(&self) -> impl ExactSizeIterator<Item = EndpointId> + use<> {
        (0..self.endpoints.len() as u16).map(EndpointId)
    }

    /// Returns the identifiers of all routers.
    pub fn router_ids(&self) -> impl ExactSizeIterator<Item = RouterId> + use<> {
        (0..self.routers.len() as u16).map(RouterId)
    }

    /// Returns the number of ports of a router.
    ///
    /// # Panics
    /// If the router does not exist.
    #[inline]
    pub fn ports(&self, router: RouterId) -> usize {
        self.entries(router).len()
    }

    /// Returns the number of ports that lead to endpoints. These are the first ports of the router; the others lead to
    /// routers.
    ///
    /// # Panics
    /// If the router does not exist.
    #[inline]
    pub fn rack_size(&self, router: RouterId) -> usize {
        usize::from(self.rack_sizes[router.index()])
    }

    /// Returns the endpoints at a router, in the order of its ports.
    ///
    /// # Panics
    /// If the router does not exist.
    pub fn rack(&self, router: RouterId) -> impl ExactSizeIterator<Item = EndpointId> + '_ {
        let entries = self.entries(router);
        // An endpoint's link has the endpoint's number.
        self.port_links[entries.start..entries.start + self.rack_size(router)]
            .iter()
            .map(|link| EndpointId(link.0 as u16))
    }

    /// Returns the link at a port of a router.
    ///
    /// # Panics
    /// If the router or the port does not exist.
    #[inline]
    pub fn link_at(&self, router: RouterId, port: PortIndex) -> LinkId {
        self.port_links[self.entries(router)][port.index()]
    }

    /// Returns the other end of the link at a port of a router.
    ///
    /// # Panics
    /// If the router or the port does not exist.
    #[inline]
    pub fn peer(&self, router: RouterId, port: PortIndex) -> Attachment {
        self.peers(router)[port.index()]
    }

    /// Returns the other ends of all links of a router, by port.
    ///
    /// # Panics
    /// If the router does not exist.
    #[inline]
    pub fn peers(&self, router: RouterId) -> &[Attachment] {
        &self.port_peers[self.entries(router)]
    }

    /// Returns the link of an endpoint, which has the same number.
    #[inline]
    pub const fn endpoint_link(&self, endpoint: EndpointId) -> LinkId {
        LinkId(endpoint.0 as u32)
    }

    /// Returns the router to which an endpoint is attached.
    ///
    /// # Panics
    /// If the endpoint does not exist.
    #[inline]
    pub fn router_of(&self, endpoint: EndpointId) -> RouterId {
        match self.access(endpoint).node {
            Node::Router(router) => router,
            Node::Endpoint(_) => unreachable!("endpoints are attached to routers only"),
        }
    }

    /// Returns the port of the router to which an endpoint is attached.
    ///
    /// # Panics
    /// If the endpoint does not exist.
    #[inline]
    pub fn port_of(&self, endpoint: EndpointId) -> PortIndex {
        self.access(endpoint).port
    }

    /// Returns MAC address number `address` of an endpoint: 0 is its base address, the others are shadow addresses.
    ///
    /// # Panics
    /// If the endpoint does not exist.
    pub fn mac(&self, endpoint: EndpointId, address: u8) -> MacAddress {
        let base = self.endpoints[endpoint.index()].mac;
        if address == 0 { base } else { address::shadow_mac(endpoint, address) }
    }

    /// Returns the endpoint with this MAC address and the number of the address; the inverse of [`mac`](Self::mac).
    /// O(1) for addresses of the default form, else a binary search.
    pub fn endpoint_with_mac(&self, mac: MacAddress) -> Option<(EndpointId, u8)> {
        match address::parse_shadow_mac(mac) {
            Some((endpoint, address)) => {
                let known = self.endpoints.get(endpoint.index())?;
                (address != 0 || known.mac == mac).then_some((endpoint, address))
            }
            None => find(&self.custom_macs, mac).map(|endpoint| (endpoint, 0)),
        }
    }

    /// Returns the endpoint with this IPv4 or IPv6 address, by binary search.
    pub fn endpoint_with_ip(&self, ip: impl Into<IpAddr>) -> Option<EndpointId> {
        find(&self.ips, ip.into())
    }

    /// Returns the name that a router gives to a port, such as `Ethernet1`, by binary search; `None` if the topology does
    /// not have it.
    pub fn port_name(&self, router: RouterId, port: PortIndex) -> Option<&str> {
        let index = self.port_names.binary_search_by_key(&(router, port), |(key, _)| *key).ok()?;
        Some(&self.port_names[index].1)
    }

    /// Returns the port to which a router gives this name, by linear search among its ports.
    pub fn port_named(&self, router: RouterId, name: &str) -> Option<PortIndex> {
        let first = self.port_names.partition_point(|((of, _), _)| *of < router);
        let own = self.port_names[first..].iter().take_while(|((of, _), _)| *of == router);
        own.clone().find(|(_, known)| known == name).map(|((_, port), _)| *port)
    }

    /// Returns the same topology without the names of ports.
    #[must_use]
    pub fn without_port_names(&self) -> Topology {
        Topology { port_names: Box::default(), ..self.clone() }
    }

    /// Returns the node of this name, by linear search.
    pub fn node_named(&self, name: &str) -> Option<Node> {
        let endpoint = self.endpoint_ids().find(|endpoint| self.endpoints[endpoint.index()].name == name);
        let router = || self.router_ids().find(|router| self.routers[router.index()].name == name);
        endpoint.map(Node::Endpoint).or_else(|| router().map(Node::Router))
    }

    /// Returns the name of a node.
    ///
    /// # Panics
    /// If the node does not exist.
    pub fn name(&self, node: Node) -> &str {
        match node {
            Node::Endpoint(endpoint) => &self.endpoints[endpoint.index()].name,
            Node::Router(router) => &self.routers[router.index()].name,
        }
    }

    /// Checks that the arrays are consistent, and have the order that the [module](self) documents.
    ///
    /// # Panics
    /// If a check fails.
    pub fn check_invariants(&self) {
        assert!(!self.endpoints.is_empty() && self.endpoints.len() <= MAX_NODES);
        assert!(self.routers.len() <= MAX_NODES);
        for (index, link) in self.links.iter().enumerate() {
            assert_eq!(link.spec().check(), Ok(()));
            assert_ne!(link.ends[0].node, link.ends[1].node, "no link connects a node to itself");
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
        for ((router, port), name) in &self.port_names {
            assert_eq!(self.port_named(*router, name), Some(*port));
        }
        let ports =
            self.router_ids().map(|router| self.ports(router)).inspect(|&ports| assert!(ports <= MAX_PORTS));
        assert_eq!(ports.sum::<usize>() + self.endpoints.len(), 2 * self.links.len(), "a link has two ends");
        for endpoint in self.endpoint_ids() {
            let Endpoint { name, mac, ip, ipv6 } = &self.endpoints[endpoint.index()];
            assert_eq!(self.links[endpoint.index()].ends[0].node, Node::Endpoint(endpoint));
            assert!(mac.is_unicast());
            assert_eq!(self.endpoint_with_mac(*mac), Some((endpoint, 0)), "{name}");
            assert_eq!(self.endpoint_with_ip(*ip), Some(endpoint), "{name}");
            assert!(ipv6.is_none_or(|ip| self.endpoint_with_ip(ip) == Some(endpoint)), "{name}");
        }
    }

    /// Returns the router's end of an endpoint's link.
    #[inline]
    fn access(&self, endpoint: EndpointId) -> Attachment {
        assert!(endpoint.index() < self.endpoints.len(), "unknown endpoint {endpoint}");
        self.links[endpoint.index()].ends[1]
    }

    /// Returns the range of a router's ports in the arrays of all ports.
    #[inline]
    fn entries(&self, router: RouterId) -> Range<usize> {
        self.first_ports[router.index()] as usize..self.first_ports[router.index() + 1] as usize
    }
}

fn find<A: Ord + Copy>(sorted: &[(A, EndpointId)], address: A) -> Option<EndpointId> {
    let index = sorted.binary_search_by_key(&address, |&(address, _)| address).ok()?;
    Some(sorted[index].1)
}
