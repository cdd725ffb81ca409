//! Builds a topology part by part.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::{
    Attachment, Endpoint, Link, LinkSpec, MAX_NAME, MAX_NODES, MAX_PORTS, Node, Owners, Router, Topology,
    TopologyError,
};
use crate::address::{self, MacAddress};
use crate::identity::{EndpointId, LinkId, PortIndex, RouterId};

/// Builds a [`Topology`]. Every part is validated when it is added; a rejected part changes nothing.
#[derive(Clone, Debug, Default)]
pub struct TopologyBuilder {
    endpoints: Vec<Endpoint>,
    routers: Vec<Router>,
    /// By endpoint, its router, link, and the name of the router's port.
    accesses: Vec<(RouterId, LinkSpec, Option<String>)>,
    /// Links between routers, in the order in which they were connected, and the names of their ports.
    trunks: Vec<([RouterId; 2], LinkSpec, [Option<String>; 2])>,
    /// The names of ports.
    port_names: BTreeSet<(RouterId, String)>,
    /// By router, the number of used ports.
    ports: Vec<usize>,
    names: BTreeMap<String, Node>,
}

impl TopologyBuilder {
    /// Creates an empty builder.
    pub fn new() -> Self {
        TopologyBuilder::default()
    }

    /// Adds a router, numbered from 0.
    ///
    /// # Errors
    /// If there are too many routers, or the name is in use or invalid.
    pub fn add_router(&mut self, name: impl Into<String>) -> Result<RouterId, TopologyError> {
        let name = name.into();
        let router = RouterId(next_number(self.routers.len()).ok_or(TopologyError::TooManyRouters)?);
        self.check_name(&name)?;
        self.names.insert(name.clone(), Node::Router(router));
        self.routers.push(Router { name });
        self.ports.push(0);
        Ok(router)
    }

    /// Adds an endpoint, numbered from 0, with its default addresses and its link to a router.
    ///
    /// # Errors
    /// If there are too many endpoints, the name is in use or invalid, the router does not exist or has no free port,
    /// or the link is invalid.
    pub fn add_endpoint(
        &mut self,
        name: impl Into<String>,
        router: RouterId,
        link: LinkSpec,
    ) -> Result<EndpointId, TopologyError> {
        let name = name.into();
        let endpoint = EndpointId(next_number(self.endpoints.len()).ok_or(TopologyError::TooManyEndpoints)?);
        self.check_name(&name)?;
        self.check_port(router)?;
        link.check()?;
        self.names.insert(name.clone(), Node::Endpoint(endpoint));
        let (mac, ip) = (address::default_mac(endpoint), address::default_ip(endpoint));
        self.endpoints.push(Endpoint { name, mac, ip, ipv6: None });
        self.accesses.push((router, link, None));
        self.ports[router.index()] += 1;
        Ok(endpoint)
    }

    /// Connects two routers. Parallel links are allowed.
    ///
    /// # Errors
    /// If a router does not exist or has no free port, both are the same, or the link is invalid.
    pub fn connect(&mut self, a: RouterId, b: RouterId, link: LinkSpec) -> Result<(), TopologyError> {
        self.check_port(a)?;
        self.check_port(b)?;
        link.check()?;
        if a == b {
            return Err(TopologyError::SelfLink { router: self.routers[a.index()].name.clone() });
        }
        self.trunks.push(([a, b], link, [None, None]));
        self.ports[a.index()] += 1;
        self.ports[b.index()] += 1;
        Ok(())
    }

    /// Sets the name that the router of an endpoint gives to the port of the endpoint.
    ///
    /// # Errors
    /// If the endpoint does not exist, or the name is invalid or in use at this router.
    pub fn set_port_name(&mut self, endpoint: EndpointId, name: &str) -> Result<(), TopologyError> {
        let access = self.accesses.get(endpoint.index());
        let router = access.ok_or(TopologyError::UnknownEndpoint { endpoint })?.0;
        self.add_port_name(router, name)?;
        self.accesses[endpoint.index()].2 = Some(name.to_owned());
        Ok(())
    }

    /// Sets the names that the two routers of the link connected last give to its ports.
    ///
    /// # Errors
    /// If no routers are connected, or a name is invalid or in use at its router.
    pub fn set_last_link_port_names(&mut self, names: [&str; 2]) -> Result<(), TopologyError> {
        let Some(&([a, b], ..)) = self.trunks.last() else { return Err(TopologyError::NoLink) };
        self.add_port_name(a, names[0])?;
        self.add_port_name(b, names[1]).inspect_err(|_| {
            self.port_names.remove(&(a, names[0].to_owned()));
        })?;
        if let Some((.., known)) = self.trunks.last_mut() {
            *known = names.map(|name| Some(name.to_owned()));
        }
        Ok(())
    }

    fn add_port_name(&mut self, router: RouterId, name: &str) -> Result<(), TopologyError> {
        if !is_valid_name(name) {
            return Err(TopologyError::Name { name: name.chars().take(MAX_NAME).collect() });
        }
        // `tor0:p3` is port number 3.
        if name.strip_prefix('p').is_some_and(|rest| rest.parse::<u16>().is_ok()) {
            return Err(TopologyError::NumericPortName { name: name.to_owned() });
        }
        match self.port_names.insert((router, name.to_owned())) {
            true => Ok(()),
            false => Err(TopologyError::DuplicatePortName {
                name: name.to_owned(),
                router: self.routers[router.index()].name.clone(),
            }),
        }
    }

    /// Sets the base MAC address of an endpoint. Its shadow addresses do not change.
    ///
    /// # Errors
    /// If the endpoint does not exist, or the address is not unicast or is reserved.
    pub fn set_mac(&mut self, endpoint: EndpointId, mac: MacAddress) -> Result<(), TopologyError> {
        let known =
            self.endpoints.get_mut(endpoint.index()).ok_or(TopologyError::UnknownEndpoint { endpoint })?;
        if !mac.is_unicast() {
            return Err(TopologyError::Mac { mac });
        }
        if address::parse_shadow_mac(mac).is_some() && mac != address::default_mac(endpoint) {
            return Err(TopologyError::ReservedMac { mac });
        }
        known.mac = mac;
        Ok(())
    }

    /// Sets the IPv4 address of an endpoint.
    ///
    /// # Errors
    /// If the endpoint does not exist.
    pub fn set_ip(&mut self, endpoint: EndpointId, ip: Ipv4Addr) -> Result<(), TopologyError> {
        let known =
            self.endpoints.get_mut(endpoint.index()).ok_or(TopologyError::UnknownEndpoint { endpoint })?;
        known.ip = ip;
        Ok(())
    }

    /// Sets the IPv6 address of an endpoint.
    ///
    /// # Errors
    /// If the endpoint does not exist, or the address is not one of a single host.
    pub fn set_ipv6(&mut self, endpoint: EndpointId, ip: Ipv6Addr) -> Result<(), TopologyError> {
        let known =
            self.endpoints.get_mut(endpoint.index()).ok_or(TopologyError::UnknownEndpoint { endpoint })?;
        if ip.is_unspecified() || ip.is_multicast() || ip.to_ipv4_mapped().is_some() {
            return Err(TopologyError::Ipv6 { ip });
        }
        known.ipv6 = Some(ip);
        Ok(())
    }

    /// Returns the node of this name.
    pub fn node_named(&self, name: &str) -> Option<Node> {
        self.names.get(name).copied()
    }

    /// Returns all names in alphabetical order with their nodes.
    pub fn names(&self) -> impl Iterator<Item = (&str, Node)> {
        self.names.iter().map(|(name, &node)| (name.as_str(), node))
    }

    /// Builds the topology.
    ///
    /// # Errors
    /// If there are no endpoints, or two endpoints have the same address.
    pub fn build(mut self) -> Result<Topology, TopologyError> {
        if self.endpoints.is_empty() {
            return Err(TopologyError::NoEndpoints);
        }
        let custom_macs = self.custom_macs()?;
        let ips = self.ips()?;

        let mut ports = PortTable::new(&self.ports);
        let mut links = Vec::with_capacity(self.accesses.len() + self.trunks.len());
        let mut rack_sizes = vec![0; self.routers.len()];
        let mut names = Vec::new();
        let accesses = std::mem::take(&mut self.accesses);
        for ((router, spec, name), endpoint) in accesses.into_iter().zip((0..).map(EndpointId)) {
            let end = Attachment { node: Node::Endpoint(endpoint), port: PortIndex(0) };
            let port = ports.next(router);
            links.push(Link::new([end, port], spec));
            rack_sizes[router.index()] += 1;
            names.extend(name.map(|name| ((router, port.port), name)));
        }
        for (routers, spec, port_names) in std::mem::take(&mut self.trunks) {
            let ends = routers.map(|router| ports.next(router));
            links.push(Link::new(ends, spec));
            for ((router, end), name) in routers.into_iter().zip(ends).zip(port_names) {
                names.extend(name.map(|name| ((router, end.port), name)));
            }
        }
        names.sort();
        let (port_links, port_peers) = ports.sides(&links);
        Ok(Topology {
            endpoints: self.endpoints.into(),
            routers: self.routers.into(),
            links: links.into(),
            first_ports: ports.first.into(),
            port_links,
            port_peers,
            rack_sizes: rack_sizes.into(),
            custom_macs,
            ips,
            port_names: names.into(),
        })
    }

    fn check_name(&self, name: &str) -> Result<(), TopologyError> {
        if !is_valid_name(name) {
            return Err(TopologyError::Name { name: name.chars().take(MAX_NAME).collect() });
        }
        match self.names.contains_key(name) {
            true => Err(TopologyError::DuplicateName { name: name.to_owned() }),
            false => Ok(()),
        }
    }

    fn check_port(&self, router: RouterId) -> Result<(), TopologyError> {
        match self.ports.get(router.index()) {
            None => Err(TopologyError::UnknownRouter { router }),
            Some(&ports) if ports >= MAX_PORTS => {
                Err(TopologyError::TooManyPorts { router: self.routers[router.index()].name.clone() })
            }
            Some(_) => Ok(()),
        }
    }

    /// Returns the base MAC addresses that are not the default ones, in order. Default addresses are unique, and
    /// [`set_mac`](Self::set_mac) rejects those of other endpoints.
    fn custom_macs(&self) -> Result<Owners<MacAddress>, TopologyError> {
        let custom = self.numbered().filter(|&(endpoint, id)| endpoint.mac != address::default_mac(id));
        sorted(custom.map(|(endpoint, id)| (endpoint.mac, id))).map_err(|(mac, [first, second])| {
            TopologyError::DuplicateMac { mac, first: self.name_of(first), second: self.name_of(second) }
        })
    }

    fn ips(&self) -> Result<Owners<IpAddr>, TopologyError> {
        let addresses = self.numbered().flat_map(|(endpoint, id)| {
            let ipv6 = endpoint.ipv6.map(IpAddr::from);
            [Some(endpoint.ip.into()), ipv6].into_iter().flatten().map(move |ip| (ip, id))
        });
        sorted(addresses).map_err(|(ip, [first, second])| TopologyError::DuplicateIp {
            ip,
            first: self.name_of(first),
            second: self.name_of(second),
        })
    }

    fn numbered(&self) -> impl Iterator<Item = (&Endpoint, EndpointId)> {
        self.endpoints.iter().zip((0..).map(EndpointId))
    }

    fn name_of(&self, endpoint: EndpointId) -> String {
        self.endpoints[endpoint.index()].name.clone()
    }
}

fn is_valid_name(name: &str) -> bool {
    !name.is_empty() && name.len() <= MAX_NAME && !name.chars().any(char::is_control)
}

/// Allocates the ports of all routers, and inverts the mapping from links to ports.
struct PortTable {
    /// By router, the index of its first port in an array of all ports; the last element is the total.
    first: Vec<u32>,
    used: Vec<u16>,
}

impl PortTable {
    fn new(ports: &[usize]) -> Self {
        let mut first = Vec::with_capacity(ports.len() + 1);
        first.push(0);
        let mut total = 0;
        for &ports in ports {
            total += ports as u32;
            first.push(total);
        }
        PortTable { first, used: vec![0; ports.len()] }
    }

    /// Allocates the next free port of a router.
    fn next(&mut self, router: RouterId) -> Attachment {
        let port = PortIndex(self.used[router.index()]);
        self.used[router.index()] += 1;
        Attachment { node: Node::Router(router), port }
    }

    /// Returns, by port of all routers, the link and the other end.
    fn sides(&self, links: &[Link]) -> (Box<[LinkId]>, Box<[Attachment]>) {
        let total = self.first[self.first.len() - 1] as usize;
        let mut port_links = vec![LinkId(0); total];
        let mut port_peers = vec![Attachment { node: Node::Router(RouterId(0)), port: PortIndex(0) }; total];
        for (link, id) in links.iter().zip((0..).map(LinkId)) {
            for (end, other) in [(link.ends[0], link.ends[1]), (link.ends[1], link.ends[0])] {
                if let Node::Router(router) = end.node {
                    let entry = self.first[router.index()] as usize + end.port.index();
                    port_links[entry] = id;
                    port_peers[entry] = other;
                }
            }
        }
        (port_links.into(), port_peers.into())
    }
}

const _: () = assert!(MAX_NODES * MAX_PORTS < u32::MAX as usize, "the total number of ports fits in 32 bits");

/// Returns the number of the next node after `count` nodes; `None` beyond the maximum.
fn next_number(count: usize) -> Option<u16> {
    if count < MAX_NODES { u16::try_from(count).ok() } else { None }
}

/// Sorts by address; the error is a duplicate address with its two endpoints.
fn sorted<A: Ord + Copy>(
    owners: impl Iterator<Item = (A, EndpointId)>,
) -> Result<Owners<A>, (A, [EndpointId; 2])> {
    let mut sorted: Box<[_]> = owners.collect();
    sorted.sort_unstable();
    match sorted.windows(2).find(|pair| pair[0].0 == pair[1].0) {
        Some(pair) => Err((pair[0].0, [pair[0].1, pair[1].1])),
        None => Ok(sorted),
    }
}
