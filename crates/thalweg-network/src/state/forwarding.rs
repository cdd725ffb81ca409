//! What all switches of a network do with the packets that they forward.

use thiserror::Error;

use crate::address::MacAddress;
use crate::identity::{EndpointId, PortIndex, RouterId};
use crate::routing::ForwardingTable;
use crate::topology::{Node, Topology};

/// Most places in the tables of all routers together: one for each router, endpoint and address; a quarter of a GiB.
pub const MAX_PLACES: usize = 1 << 27;

/// The rules of a network: forwarding tables, and for what they have no entry, nothing or ECMP.
///
/// That is the order in which an emulated router looks. ECMP does not look at which of an endpoint's addresses a
/// packet has; tables do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Forwarding {
    /// By router; those at the end may have none.
    tables: Vec<ForwardingTable>,
    seed: Option<u64>,
    writes_back: bool,
    /// Addresses an endpoint may have: the most of any table, at least 1.
    addresses: usize,
}

/// An entry of a router's table: packets to this address leave by this port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Entry {
    /// The router.
    pub router: RouterId,
    /// Destination address: an endpoint's base address, or one of its shadow addresses.
    pub mac: MacAddress,
    /// Output port.
    pub port: PortIndex,
}

/// Why a list of entries is refused.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum EntryError {
    /// There is no such router.
    #[error("there is no router {router}")]
    Router {
        /// The number given.
        router: RouterId,
    },
    /// The router has no such port.
    #[error("router {router:?} has no port {port}: it has {ports}, counted from 0")]
    Port {
        /// Name of the router.
        router: String,
        /// The number given.
        port: u16,
        /// How many it has.
        ports: usize,
    },
    /// Nobody has this address.
    #[error("no endpoint has the address {mac}")]
    Mac {
        /// The address.
        mac: MacAddress,
    },
    /// Two entries of a router are for the same address.
    #[error("router {router:?} has two entries for {mac}")]
    Twice {
        /// Name of the router.
        router: String,
        /// The address.
        mac: MacAddress,
    },
    /// The tables would be too large.
    #[error(
        "tables of {routers} routers for {endpoints} endpoints and their addresses take more than {MAX_PLACES} places"
    )]
    TooLarge {
        /// How many routers have entries.
        routers: usize,
        /// Number of endpoints.
        endpoints: usize,
    },
}

impl Forwarding {
    /// ECMP over shortest paths with the [known hash](crate::routing::ecmp); `seed` is the whole network's.
    pub fn ecmp(seed: u64) -> Forwarding {
        Forwarding { tables: Vec::new(), seed: Some(seed), writes_back: true, addresses: 1 }
    }

    /// Tables by router, and no other way. Routers beyond the last table have none.
    pub fn tables(tables: Vec<ForwardingTable>) -> Forwarding {
        Forwarding { tables: Vec::new(), seed: None, writes_back: true, addresses: 1 }.with_tables(tables)
    }

    /// With these tables in place of its own: before ECMP, if it has that.
    #[must_use]
    pub fn with_tables(self, tables: Vec<ForwardingTable>) -> Forwarding {
        let of_table = |table: &ForwardingTable| if table.endpoints() > 0 { table.addresses() } else { 1 };
        let addresses = tables.iter().map(of_table).max().unwrap_or(1);
        Forwarding { tables, addresses, ..self }
    }

    /// Whether the last switch writes an endpoint's base address in place of a shadow address, without which hosts do
    /// not take such packets. So it is unless this says otherwise. In the emulator packets keep their address.
    #[must_use]
    pub fn with_write_back(self, writes_back: bool) -> Forwarding {
        Forwarding { writes_back, ..self }
    }

    /// Tables by router from a list of entries in any order.
    ///
    /// # Errors
    /// With the index of the first entry that cannot be, and why.
    pub fn table_list(
        topology: &Topology,
        entries: &[Entry],
    ) -> Result<Vec<ForwardingTable>, (usize, EntryError)> {
        let mut resolved = Vec::with_capacity(entries.len());
        // By router, the highest address, if it has an entry.
        let mut highest = vec![None; topology.routers().len()];
        for (index, entry) in entries.iter().enumerate() {
            let (destination, address) = resolve(topology, entry).map_err(|error| (index, error))?;
            let known = &mut highest[entry.router.index()];
            *known = (*known).max(Some(address));
            resolved.push((entry, destination, address));
        }
        let (routers, endpoints) = (highest.iter().flatten().count(), topology.endpoints().len());
        let addresses: usize = highest.iter().flatten().map(|&address: &u8| usize::from(address) + 1).sum();
        if addresses.saturating_mul(endpoints) > MAX_PLACES {
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
            if before.expect("the table was made for all entries").is_some() {
                let router = topology.name(Node::Router(entry.router)).to_owned();
                return Err((index, EntryError::Twice { router, mac: entry.mac }));
            }
        }
        Ok(tables)
    }

    /// The seed of ECMP; `None` if there are tables only.
    pub fn seed(&self) -> Option<u64> {
        self.seed
    }

    /// The table of a router, if it has one.
    #[inline]
    pub fn table(&self, router: RouterId) -> Option<&ForwardingTable> {
        self.tables.get(router.index())
    }

    /// Tables by router; those at the end may have none.
    pub fn all_tables(&self) -> &[ForwardingTable] {
        &self.tables
    }

    /// Whether the last switch writes base addresses back.
    pub fn writes_back(&self) -> bool {
        self.writes_back
    }

    /// Addresses an endpoint may have, its base address among them.
    #[inline]
    pub fn addresses(&self) -> usize {
        self.addresses
    }

    /// The entries of all tables, by router, endpoint and address.
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

/// Endpoint and address of an entry that can be.
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
