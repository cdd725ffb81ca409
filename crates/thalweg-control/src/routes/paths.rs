//! Paths: the links that a pair's packets use, by destination address.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use thalweg_network::routing::{Path, path};
use thalweg_network::{EndpointId, NetworkState, PortIndex, RouterId, Topology};
use thalweg_wire::BitRate;

use crate::pair::Pair;

/// One direction of a link: out of a switch port. Numbered over the ports of all switches, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkNumber(pub u32);

/// The output links of each path, by address; `None` if it does not reach the destination over links that are up.
type PathLinks = Box<[Option<Box<[LinkNumber]>>]>;

/// Paths by pair and address, computed on first use.
#[derive(Clone, Debug)]
pub struct Paths {
    state: Arc<NetworkState>,
    /// The number of the first port of each switch.
    firsts: Vec<u32>,
    capacities: Vec<BitRate>,
    cache: HashMap<Pair, PathLinks>,
    broken: BTreeSet<(Pair, u8)>,
}

impl Paths {
    /// Creates the paths of a network that forwards by tables.
    pub fn new(state: Arc<NetworkState>) -> Paths {
        let topology = state.topology();
        let mut firsts = Vec::with_capacity(topology.routers().len());
        let mut capacities = Vec::new();
        for router in topology.router_ids() {
            firsts.push(capacities.len() as u32);
            let ports = (0..topology.ports(router) as u16).map(PortIndex);
            capacities
                .extend(ports.map(|port| topology.links()[topology.link_at(router, port).index()].rate));
        }
        Paths { state, firsts, capacities, cache: HashMap::new(), broken: BTreeSet::new() }
    }

    /// Returns the network.
    pub fn state(&self) -> &Arc<NetworkState> {
        &self.state
    }

    /// Returns the topology.
    pub fn topology(&self) -> &Topology {
        self.state.topology()
    }

    /// Returns the number of link directions.
    pub fn links(&self) -> usize {
        self.capacities.len()
    }

    /// Returns the capacity of a link.
    pub fn capacity(&self, link: LinkNumber) -> BitRate {
        self.capacities[link.0 as usize]
    }

    /// Returns the capacity of the link between a host and its switch; zero if there is no such host.
    pub fn access_capacity(&self, host: EndpointId) -> BitRate {
        let topology = self.topology();
        if host.index() >= topology.endpoints().len() {
            return BitRate(0);
        }
        topology.links()[topology.link_at(topology.router_of(host), topology.port_of(host)).index()].rate
    }

    /// Returns the link out of a port.
    pub fn link(&self, router: RouterId, port: PortIndex) -> LinkNumber {
        LinkNumber(self.firsts[router.index()] + u32::from(port.0))
    }

    /// Returns the switch and the port of a link.
    pub fn port(&self, link: LinkNumber) -> (RouterId, PortIndex) {
        let router = self.firsts.partition_point(|&first| first <= link.0) - 1;
        (RouterId(router as u16), PortIndex((link.0 - self.firsts[router]) as u16))
    }

    /// Returns the number of addresses of each endpoint.
    pub fn addresses(&self) -> u8 {
        self.state.forwarding().addresses().min(usize::from(u8::MAX)) as u8
    }

    /// Returns the output links of a pair's path by this address. Returns `None` if the path does not reach the
    /// destination, a link of it is down, or the endpoints do not exist.
    pub fn of(&mut self, pair: Pair, address: u8) -> Option<&[LinkNumber]> {
        let addresses = self.addresses();
        if !self.cache.contains_key(&pair) {
            let along = |address| Some(self.links_of(&self.find(pair, address)?));
            let found = (0..addresses).map(along).collect();
            self.cache.insert(pair, found);
        }
        self.cache[&pair].get(usize::from(address))?.as_deref()
    }

    /// Marks a path broken for a pair: the tables lead to the destination, but packets do not arrive.
    pub fn mark_broken(&mut self, pair: Pair, address: u8) {
        self.broken.insert((pair, address));
    }

    /// Returns whether a path is marked broken for a pair.
    pub fn is_broken(&self, pair: Pair, address: u8) -> bool {
        self.broken.contains(&(pair, address))
    }

    /// Returns the paths marked broken, by pair and address.
    pub fn broken(&self) -> impl Iterator<Item = (Pair, u8)> + '_ {
        self.broken.iter().copied()
    }

    fn find(&self, pair: Pair, address: u8) -> Option<Path> {
        let tables = self.state.forwarding().all_tables();
        let path = path::by_tables(self.topology(), tables, pair.source, pair.destination, address).ok()?;
        let (topology, links) = (self.topology(), self.state.links());
        let is_up = links.is_up(topology.endpoint_link(pair.source))
            && path.hops().iter().all(|hop| links.is_up(topology.link_at(hop.router, hop.port)));
        is_up.then_some(path)
    }

    fn links_of(&self, path: &Path) -> Box<[LinkNumber]> {
        path.hops().iter().map(|hop| self.link(hop.router, hop.port)).collect()
    }
}
