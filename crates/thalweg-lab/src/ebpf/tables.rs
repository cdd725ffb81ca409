//! The forwarding tables of all switches: one map, written while packets are forwarded by it.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use bytemuck::{Pod, Zeroable, must_cast};
use thalweg_linux::bpf::{AnyMap, Map};
use thalweg_network::{Forwarding, MacAddress, PortIndex, RouterId, Topology};
use thiserror::Error;

use crate::layout::Layout;

/// Addresses that every endpoint may have entries for at every switch, on average.
const ADDRESSES: usize = 16;

/// Fewest and most entries that there is room for.
const CAPACITY: (usize, usize) = (64, 1 << 20);

/// Entries that there is room for.
pub(super) fn capacity(topology: &Topology) -> u32 {
    let (fewest, most) = CAPACITY;
    (topology.routers().len() * topology.endpoints().len() * ADDRESSES).clamp(fewest, most) as u32
}

/// An entry of a switch's table: frames to this address leave by this port, with this address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TableEntry {
    /// The switch.
    pub router: RouterId,
    /// Destination address.
    pub mac: MacAddress,
    /// Output port.
    pub port: PortIndex,
    /// The destination address that it leaves with, if another: the base address in place of a shadow address.
    pub rewrite: Option<MacAddress>,
}

/// What installing a network's rules took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Installed {
    /// Entries written, for they were missing or different.
    pub written: usize,
    /// Entries removed, for they are not wanted.
    pub removed: usize,
    /// Entries that were as wanted.
    pub unchanged: usize,
}

/// Why a table was not changed or read.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum TableError {
    /// The switch is not there, or has no such port.
    #[error("the lab has no port {router}{port}")]
    Port {
        /// The switch.
        router: RouterId,
        /// The port.
        port: PortIndex,
    },
    /// Group addresses are not looked up.
    #[error("{mac} is no address of one host")]
    Mac {
        /// The address.
        mac: MacAddress,
    },
    /// There is no room.
    #[error("the tables are full: {capacity} entries")]
    Full {
        /// Entries that there is room for.
        capacity: u32,
    },
    /// The kernel refused, or the lab is gone.
    #[error("the map of the tables: {source}")]
    Map {
        /// What it said.
        #[from]
        source: io::Error,
    },
}

/// `struct destination` of the program.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
struct Destination {
    router: u16,
    mac: [u8; 6],
}

/// `struct route` of the program.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
struct Route {
    interface: u32,
    port: u16,
    mac: [u8; 6],
    rewrites: u32,
}

const KEY: usize = size_of::<Destination>();
const VALUE: usize = size_of::<Route>();

type Key = [u8; KEY];
type Value = [u8; VALUE];

/// The tables of a lab's switches. A change is in force with the next packet, and takes about a microsecond; each entry
/// changes at once, several do not change together.
///
/// It works as long as the lab is up, in any thread and any namespace. There may be several; each sees what the others
/// have written.
pub struct Tables {
    map: Map<KEY, VALUE>,
    layout: Layout,
    topology: Arc<Topology>,
}

impl Tables {
    pub(super) fn new(map: AnyMap, layout: &Layout, topology: &Arc<Topology>) -> io::Result<Tables> {
        Ok(Tables { map: Map::try_from(map)?, layout: layout.clone(), topology: topology.clone() })
    }

    /// Writes an entry, in place of one for the same address.
    ///
    /// # Errors
    /// If there is no such port, the address is no host's, or there is no room. The table is unchanged.
    pub fn set(&mut self, entry: &TableEntry) -> Result<(), TableError> {
        let (key, value) = self.encode(entry)?;
        match self.map.set(&key, &value) {
            Err(error) if error.kind() == io::ErrorKind::ArgumentListTooLong => {
                Err(TableError::Full { capacity: capacity(&self.topology) })
            }
            written => Ok(written?),
        }
    }

    /// Writes entries in their order.
    ///
    /// # Errors
    /// As of [`set`](Self::set), with the index of the entry; those before it are written, it and those after are not.
    pub fn set_all(&mut self, entries: &[TableEntry]) -> Result<(), (usize, TableError)> {
        entries
            .iter()
            .enumerate()
            .try_for_each(|(index, entry)| self.set(entry).map_err(|error| (index, error)))
    }

    /// Removes the entry for an address, and says whether there was one.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn remove(&mut self, router: RouterId, mac: MacAddress) -> Result<bool, TableError> {
        Ok(self.map.remove(&key(router, mac))?)
    }

    /// Removes all entries of a switch, and says how many there were.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn clear(&mut self, router: RouterId) -> Result<usize, TableError> {
        let entries = self.entries()?.into_iter().filter(|entry| entry.router == router);
        let removed = entries.map(|entry| self.remove(router, entry.mac).map(usize::from));
        removed.sum()
    }

    /// The entry for an address.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn get(&self, router: RouterId, mac: MacAddress) -> Result<Option<TableEntry>, TableError> {
        let key = key(router, mac);
        Ok(self.map.get(&key)?.map(|value| decode(key, value)))
    }

    /// All entries, by switch and address. While somebody writes, an entry may be missing or come from either time.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn entries(&self) -> Result<Vec<TableEntry>, TableError> {
        let entries = self.map.entries()?.into_iter().map(|(key, value)| decode(key, value));
        let mut entries: Vec<TableEntry> = entries.collect();
        entries.sort_unstable();
        Ok(entries)
    }

    /// Makes the tables those of `forwarding`: writes what is missing or different, then removes what is not in it. At
    /// the destination's own switch shadow addresses are written back to base addresses, if it says so. Installing
    /// the same again changes nothing.
    ///
    /// # Errors
    /// As of [`set`](Self::set). What was written so far stays.
    pub fn install(&mut self, forwarding: &Forwarding) -> Result<Installed, TableError> {
        self.install_where(|_| true, forwarding)
    }

    /// As [`install`](Self::install), at one switch.
    ///
    /// # Errors
    /// As of [`set`](Self::set). What was written so far stays.
    pub fn install_at(&mut self, router: RouterId, forwarding: &Forwarding) -> Result<Installed, TableError> {
        self.install_where(|other| other == router, forwarding)
    }

    fn install_where(
        &mut self,
        is_meant: impl Fn(RouterId) -> bool,
        forwarding: &Forwarding,
    ) -> Result<Installed, TableError> {
        let mut there = BTreeMap::new();
        for entry in self.entries()?.into_iter().filter(|entry| is_meant(entry.router)) {
            there.insert((entry.router, entry.mac), entry);
        }
        let mut installed = Installed::default();
        for entry in wanted(&self.topology, forwarding).iter().filter(|entry| is_meant(entry.router)) {
            if there.remove(&(entry.router, entry.mac)) == Some(*entry) {
                installed.unchanged += 1;
            } else {
                self.set(entry)?;
                installed.written += 1;
            }
        }
        for (router, mac) in there.into_keys() {
            installed.removed += usize::from(self.remove(router, mac)?);
        }
        Ok(installed)
    }

    fn encode(&self, entry: &TableEntry) -> Result<(Key, Value), TableError> {
        let &TableEntry { router, mac, port, rewrite } = entry;
        if let Some(mac) = [Some(mac), rewrite].into_iter().flatten().find(|mac| !mac.is_unicast()) {
            return Err(TableError::Mac { mac });
        }
        let interface = self.layout.interface(router, port).ok_or(TableError::Port { router, port })?;
        let address = rewrite.unwrap_or_default().0;
        let route = Route { interface, port: port.0, mac: address, rewrites: u32::from(rewrite.is_some()) };
        Ok((key(router, mac), must_cast(route)))
    }
}

/// The entries that the tables of `forwarding` come to, with what the last switch rewrites.
fn wanted(topology: &Topology, forwarding: &Forwarding) -> Vec<TableEntry> {
    let entry = |entry: thalweg_network::state::Entry| {
        let thalweg_network::state::Entry { router, mac, port } = entry;
        let rewrite = topology.endpoint_with_mac(mac).and_then(|(endpoint, address)| {
            let is_last = topology.router_of(endpoint) == router && topology.port_of(endpoint) == port;
            (forwarding.writes_back() && address != 0 && is_last).then(|| topology.mac(endpoint, 0))
        });
        TableEntry { router, mac, port, rewrite }
    };
    forwarding.entries(topology).map(entry).collect()
}

fn key(router: RouterId, mac: MacAddress) -> Key {
    must_cast(Destination { router: router.0, mac: mac.0 })
}

fn decode(key: Key, value: Value) -> TableEntry {
    let (destination, route) = (must_cast::<Key, Destination>(key), must_cast::<Value, Route>(value));
    TableEntry {
        router: RouterId(destination.router),
        mac: MacAddress(destination.mac),
        port: PortIndex(route.port),
        rewrite: (route.rewrites != 0).then_some(MacAddress(route.mac)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{DEFAULT_RATE, Plan};
    use crate::routes::shortest_path_tables;

    #[test]
    fn an_entry_is_read_back_as_it_was_written() {
        let (shadow, base) = (MacAddress([2, 0x54, 0x57, 3, 0, 1]), MacAddress([2, 0x54, 0x57, 0, 0, 1]));
        for rewrite in [None, Some(base)] {
            let route = Route {
                interface: 7,
                port: 5,
                mac: rewrite.unwrap_or_default().0,
                rewrites: u32::from(rewrite.is_some()),
            };
            let entry = decode(key(RouterId(0x1234), shadow), must_cast(route));
            assert_eq!(
                entry,
                TableEntry { router: RouterId(0x1234), mac: shadow, port: PortIndex(5), rewrite }
            );
        }
    }

    #[test]
    fn shadow_addresses_are_written_back_at_the_last_switch_and_nowhere_else() {
        let topology = Plan::leaf_spine(DEFAULT_RATE).unwrap().topology;
        let forwarding = shortest_path_tables(&topology, 3).unwrap();
        let entries = wanted(&topology, &forwarding);
        assert_eq!(entries.len(), 5 * 6 * 3);
        for entry in entries {
            let (endpoint, address) = topology.endpoint_with_mac(entry.mac).unwrap();
            let is_last = topology.router_of(endpoint) == entry.router;
            let base = (is_last && address != 0).then(|| topology.mac(endpoint, 0));
            assert_eq!(entry.rewrite, base, "{entry:?}");
        }
        let kept = wanted(&topology, &forwarding.with_write_back(false));
        assert!(kept.iter().all(|entry| entry.rewrite.is_none()));
    }
}
