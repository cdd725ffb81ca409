//! The forwarding state of a network.

use thiserror::Error;

use crate::address::MacAddress;
use crate::identity::{EndpointId, PortIndex, RouterId};
use crate::routing::ForwardingTable;
use crate::topology::{Node, Topology};

/// The maximum number of table slots in all routers, one per router, endpoint and address: 0.25 GiB.
pub const MAX_TABLE_SLOTS: usize = 1 << 27;

/// The rules of all switches: forwarding tables, and optionally ECMP for addresses without an entry.
///
/// An emulated router looks in the same order. Tables distinguish the addresses of an endpoint; ECMP does not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Forwarding {
    /// By router; routers beyond the last table have none.
    tables: Vec<ForwardingTable>,
    seed: Option<u64>,
    writes_back: bool,
    /// The number of addresses per endpoint: the maximum over all tables, at least 1.
    addresses: usize,
}

/// A table entry of a router: the output port for a destination address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Entry {
    /// The router.
    pub router: RouterId,
    /// The destination address: a base address or a shadow address of an endpoint.
    pub mac: MacAddress,
    /// The output port.
    pub port: PortIndex,
}

/// The reason why an entry is rejected.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum EntryError {
    /// The router does not exist.
    #[error("unknown router {router}")]
    Router {
        /// The unknown router.
        router: RouterId,
    },
    /// The router has no such port.
    #[error("router {router:?} has no port {port}: it has {ports} ports, numbered from 0")]
    Port {
        /// The name of the router.
        router: String,
        /// The rejected port.
        port: u16,
        /// The number of ports.
        ports: usize,
    },
    /// No endpoint has this address.
    #[error("no endpoint has the address {mac}")]
    Mac {
        /// The address.
        mac: MacAddress,
    },
    /// A router has two entries for the same address.
    #[error("router {router:?} has two entries for {mac}")]
    Duplicate {
        /// The name of the router.
        router: String,
        /// The address.
        mac: MacAddress,
    },
    /// The tables would be too large.
    #[error(
        "tables of {routers} routers for {endpoints} endpoints and their addresses need more than {MAX_TABLE_SLOTS} slots"
    )]
    TooLarge {
        /// The number of routers with entries.
        routers: usize,
        /// The number of endpoints.
        endpoints: usize,
    },
}

impl Forwarding {
    /// Creates ECMP over shortest paths with the [known hash](crate::routing::ecmp); `seed` is the same for the whole
    /// network.
    pub fn ecmp(seed: u64) -> Forwarding {
        Forwarding { tables: Vec::new(), seed: Some(seed), writes_back: true, addresses: 1 }
    }

    /// Creates forwarding by tables alone, given by router. Routers beyond the last table have none.
    pub fn tables(tables: Vec<ForwardingTable>) -> Forwarding {
        Forwarding { tables: Vec::new(), seed: None, writes_back: true, addresses: 1 }.with_tables(tables)
    }

    /// Replaces the tables, which take precedence over ECMP.
    #[must_use]
    pub fn with_tables(self, tables: Vec<ForwardingTable>) -> Forwarding {
        let of_table = |table: &ForwardingTable| if table.endpoints() > 0 { table.addresses() } else { 1 };
        let addresses = tables.iter().map(of_table).max().unwrap_or(1);
        Forwarding { tables, addresses, ..self }
    }

    /// Sets whether the last switch replaces a shadow address by the base address; default `true`, because hosts drop
    /// packets to shadow addresses. In the emulator packets keep their address.
    #[must_use]
    pub fn with_write_back(self, writes_back: bool) -> Forwarding {
        Forwarding { writes_back, ..self }
    }

    /// Builds tables by router from entries in any order.
    ///
    /// # Errors
    /// Returns the index of the first invalid entry, and the reason.
    pub fn table_list(
        topology: &Topology,
        entries: &[Entry],
    ) -> Result<Vec<ForwardingTable>, (usize, EntryError)> {
        let mut resolved = Vec::with_capacity(entries.len());
        // By router, the highest address of its entries.
        let mut highest = vec![None; topology.routers().len()];
        for (index, entry) in entries.iter().enumerate() {
            let (destination, address) = resolve(topology, entry).map_err(|error| (index, error))?;
            let known = &mut highest[entry.router.index()];
            *known = (*known).max(Some(address));
            resolved.push((entry, destination, address));
        }
        let (routers, endpoints) = (highest.iter().flatten().count(), topology.endpoints().len());
        let addresses: usize = highest.iter().flatten().map(|&address: &u8| usize::from(address) + 1).sum();
        if addresses.saturating_mul(endpoints) > MAX_TABLE_SLOTS {
            return Err((0, EntryError::TooLarge { routers, endpoints }));
        }
        let mut tables: Vec<_> = highest
            .iter()
            .zip(topology.router_ids())
            .map(|(&highest, router)| {
                let endpoints = if highest.is_some() { endpoints as u16 } else { 0 };
                ForwardingTable::new(endpoints, highest.unwrap_or(0), topology.ports(router) as u16)
            })
            .collect();
        for (index, &(entry, destination, address)) in resolved.iter().enumerate() {
            let before = tables[entry.router.index()].set(destination, address, entry.port);
            if before.expect("the table has room for all entries").is_some() {
                let router = topology.name(Node::Router(entry.router)).to_owned();
                return Err((index, EntryError::Duplicate { router, mac: entry.mac }));
            }
        }
        Ok(tables)
    }

    /// The seed of ECMP; `None` with tables alone.
    pub fn seed(&self) -> Option<u64> {
        self.seed
    }

    /// Returns the table of a router, if it has one.
    #[inline]
    pub fn table(&self, router: RouterId) -> Option<&ForwardingTable> {
        self.tables.get(router.index())
    }

    /// The tables by router; routers beyond the last table have none.
    pub fn all_tables(&self) -> &[ForwardingTable] {
        &self.tables
    }

    /// Whether the last switch restores base addresses.
    pub fn writes_back(&self) -> bool {
        self.writes_back
    }

    /// The number of addresses per endpoint, the base address included.
    #[inline]
    pub fn addresses(&self) -> usize {
        self.addresses
    }

    /// Returns the entries of all tables, by router, endpoint and address.
    pub fn entries<'a>(&'a self, topology: &'a Topology) -> impl Iterator<Item = Entry> + 'a {
        self.tables.iter().zip((0..).map(RouterId)).flat_map(move |(table, router)| {
            table.entries().map(move |(destination, address, port)| Entry {
                router,
                mac: topology.mac(destination, address),
                port,
            })
        })
    }
}

/// Validates an entry, and returns its endpoint and address number.
fn resolve(topology: &Topology, entry: &Entry) -> Result<(EndpointId, u8), EntryError> {
    let &Entry { router, mac, port } = entry;
    if router.index() >= topology.routers().len() {
        return Err(EntryError::Router { router });
    }
    let ports = topology.ports(router);
    if port.index() >= ports {
        let router = topology.name(Node::Router(router)).to_owned();
        return Err(EntryError::Port { router, port: port.0, ports });
    }
    topology.endpoint_with_mac(mac).ok_or(EntryError::Mac { mac })
}
