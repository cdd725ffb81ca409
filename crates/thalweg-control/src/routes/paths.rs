//! Which links a pair's packets take, by each of the destination's addresses.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use thalweg_network::routing::{Path, path};
use thalweg_network::{NetworkState, PortIndex, RouterId, Topology};
use thalweg_wire::BitRate;

use crate::pair::Pair;

/// One direction of a link between a switch and whatever is at its port: out of that port. Counted over the ports of all
/// switches in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkNumber(pub u32);

/// By address, the links out of the switches on the way; `None` if it leads nowhere.
type Ways = Box<[Option<Box<[LinkNumber]>>]>;

/// Paths by pair and address, found once each.
#[derive(Clone, Debug)]
pub struct Paths {
    state: Arc<NetworkState>,
    /// By switch, the number of its first port.
    firsts: Vec<u32>,
    capacities: Vec<BitRate>,
    known: HashMap<Pair, Ways>,
    barred: BTreeSet<(Pair, u8)>,
}

impl Paths {
    /// Of a network that forwards by tables.
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
        Paths { state, firsts, capacities, known: HashMap::new(), barred: BTreeSet::new() }
    }

    /// The network.
    pub fn state(&self) -> &Arc<NetworkState> {
        &self.state
    }

    /// Who is attached to whom.
    pub fn topology(&self) -> &Topology {
        self.state.topology()
    }

    /// Number of link directions.
    pub fn links(&self) -> usize {
        self.capacities.len()
    }

    /// What a link can carry.
    pub fn capacity(&self, link: LinkNumber) -> BitRate {
        self.capacities[link.0 as usize]
    }

    /// The link out of a port.
    pub fn link(&self, router: RouterId, port: PortIndex) -> LinkNumber {
        LinkNumber(self.firsts[router.index()] + u32::from(port.0))
    }

    /// The switch and the port that a link leads out of.
    pub fn port(&self, link: LinkNumber) -> (RouterId, PortIndex) {
        let router = self.firsts.partition_point(|&first| first <= link.0) - 1;
        (RouterId(router as u16), PortIndex((link.0 - self.firsts[router]) as u16))
    }

    /// Addresses an endpoint has.
    pub fn addresses(&self) -> u8 {
        self.state.forwarding().addresses().min(usize::from(u8::MAX)) as u8
    }

    /// The links out of all switches on the way of a pair's packets to this address; `None` if they do not arrive, or
    /// there are no such endpoints.
    pub fn of(&mut self, pair: Pair, address: u8) -> Option<&[LinkNumber]> {
        let addresses = self.addresses();
        if !self.known.contains_key(&pair) {
            let along = |address| Some(self.links_of(&self.find(pair, address)?));
            let found = (0..addresses).map(along).collect();
            self.known.insert(pair, found);
        }
        self.known[&pair].get(usize::from(address))?.as_deref()
    }

    /// Bars a way to a pair: it is known where it leads, but packets do not arrive.
    pub fn bar(&mut self, pair: Pair, address: u8) {
        self.barred.insert((pair, address));
    }

    /// Whether a way is barred to a pair.
    pub fn is_barred(&self, pair: Pair, address: u8) -> bool {
        self.barred.contains(&(pair, address))
    }

    /// The ways that are barred, by pair and address.
    pub fn barred(&self) -> impl Iterator<Item = (Pair, u8)> + '_ {
        self.barred.iter().copied()
    }

    fn find(&self, pair: Pair, address: u8) -> Option<Path> {
        let tables = self.state.forwarding().all_tables();
        path::by_tables(self.topology(), tables, pair.source, pair.destination, address).ok()
    }

    fn links_of(&self, path: &Path) -> Box<[LinkNumber]> {
        path.hops().iter().map(|hop| self.link(hop.router, hop.port)).collect()
    }
}
