//! Routing: which port leads to a packet's destination.

use thalweg_network::routing::{ForwardingTable, NextHops, ecmp};
use thalweg_network::{EndpointId, PortIndex, RouterId};

use super::Route;
use crate::packet::Packet;
use crate::router::context::Context;

/// How a router chooses among equal-cost ports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Balance {
    /// By the hash of the packet's flow, so that a flow keeps its path (ECMP, RFC 2992).
    #[default]
    Ecmp,
    /// At random for each packet.
    Spray,
}

/// An entry is a port, or a group of ports if this bit is set.
const GROUP: u16 = 1 << 15;
/// No path leads there.
const NOWHERE: u16 = u16::MAX;

/// Shortest paths, and a forwarding table with precedence.
#[derive(Clone, Debug)]
pub struct Routing {
    router: RouterId,
    /// By destination: a port, a group of ports, or [`NOWHERE`].
    entries: Box<[u16]>,
    groups: Vec<Box<[PortIndex]>>,
    balance: Balance,
    salt: u64,
    forwarding: Option<Box<ForwardingTable>>,
}

impl Routing {
    /// Shortest paths from `router` to each of `endpoints`. Routers with different salts choose differently for the
    /// same flow.
    pub fn new(
        router: RouterId,
        endpoints: usize,
        next_hops: &NextHops,
        balance: Balance,
        salt: u64,
    ) -> Self {
        let entries = vec![NOWHERE; endpoints].into_boxed_slice();
        let mut routing = Routing { router, entries, groups: Vec::new(), balance, salt, forwarding: None };
        routing.learn(next_hops);
        routing
    }

    fn learn(&mut self, next_hops: &NextHops) {
        let Routing { router, entries, groups, .. } = self;
        groups.clear();
        for (destination, entry) in entries.iter_mut().enumerate() {
            *entry = match next_hops.ports(*router, EndpointId(destination as u16)) {
                [] => NOWHERE,
                [port] => port.0,
                ports => {
                    let known = groups.iter().position(|group| **group == *ports);
                    GROUP
                        | known.unwrap_or_else(|| {
                            groups.push(ports.into());
                            groups.len() - 1
                        }) as u16
                }
            };
        }
    }

    #[inline]
    fn choose<C>(
        &self,
        packet: &Packet<C>,
        ports: &[PortIndex],
        context: &mut Context<'_>,
    ) -> Option<PortIndex> {
        let hash = match self.balance {
            Balance::Ecmp => ecmp::hash(self.salt, packet.who()),
            Balance::Spray => context.bits() as u32,
        };
        ecmp::choose(ports, hash)
    }
}

impl Route for Routing {
    #[inline]
    fn route<C: Copy>(&mut self, packet: &Packet<C>, context: &mut Context<'_>) -> Option<PortIndex> {
        if let Some(table) = &self.forwarding
            && let Some(port) = table.port(packet.destination(), packet.address())
        {
            return Some(port);
        }
        match self.entries[packet.destination().index()] {
            NOWHERE => None,
            entry if entry & GROUP == 0 => Some(PortIndex(entry)),
            entry => self.choose(packet, &self.groups[(entry & !GROUP) as usize], context),
        }
    }

    fn rewire(&mut self, next_hops: &NextHops) {
        self.learn(next_hops);
    }

    fn set_forwarding(&mut self, table: Option<ForwardingTable>) {
        self.forwarding = table.map(Box::new);
    }
}
