//! The forwarding tables of all switches: one map, which can be changed while switches forward.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use bytemuck::{Pod, Zeroable, must_cast};
use thalweg_linux::bpf::{AnyMap, Map};
use thalweg_network::{Forwarding, MacAddress, PortIndex, RouterId, Topology};
use thiserror::Error;

use crate::layout::Layout;

/// Average number of addresses per endpoint and switch for which there is room.
const ADDRESSES: usize = 16;

/// Minimum and maximum capacity of the map, in entries.
const CAPACITY: (usize, usize) = (64, 1 << 20);

/// Returns the capacity of the map, in entries.
pub(super) fn capacity(topology: &Topology) -> u32 {
    let (min, max) = CAPACITY;
    (topology.routers().len() * topology.endpoints().len() * ADDRESSES).clamp(min, max) as u32
}

/// An entry of a switch's table: frames to `mac` leave by `port`, with the destination address `rewrite` if set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TableEntry {
    /// The switch.
    pub router: RouterId,
    /// Destination address.
    pub mac: MacAddress,
    /// Output port.
    pub port: PortIndex,
    /// New destination address: the base address instead of a shadow address.
    pub rewrite: Option<MacAddress>,
}

/// The number of changes made by an installation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Installed {
    /// Entries written because they were missing or different.
    pub written: usize,
    /// Entries removed.
    pub removed: usize,
    /// Entries that were already correct.
    pub unchanged: usize,
}

/// An error while changing or reading a table.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum TableError {
    /// There is no such switch, or it has no such port.
    #[error("unknown port {router}{port}")]
    Port {
        /// The switch.
        router: RouterId,
        /// The port.
        port: PortIndex,
    },
    /// The address is a group address.
    #[error("invalid MAC address {mac}: expected a unicast address")]
    Mac {
        /// The address.
        mac: MacAddress,
    },
    /// The map is full.
    #[error("the tables are full: {capacity} entries")]
    Full {
        /// Capacity of the map, in entries.
        capacity: u32,
    },
    /// The kernel refused the operation, or the lab no longer exists.
    #[error("cannot access the map of the tables: {source}")]
    Map {
        /// The kernel's error.
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

/// The tables of a lab's switches. A change takes about a microsecond and applies to the next packet. Entries change
/// atomically one by one, not together.
///
/// Works as long as the lab is up, from any thread and namespace. Several values may exist; each sees the changes of
/// the others.
pub struct Tables {
    map: Map<KEY, VALUE>,
    layout: Layout,
    topology: Arc<Topology>,
}

impl Tables {
    pub(super) fn new(map: AnyMap, layout: &Layout, topology: &Arc<Topology>) -> io::Result<Tables> {
        Ok(Tables { map: Map::try_from(map)?, layout: layout.clone(), topology: topology.clone() })
    }

    /// Writes an entry, replacing one for the same address.
    ///
    /// # Errors
    /// If there is no such port, the address is not unicast, or the map is full. The table is unchanged.
    pub fn set(&mut self, entry: &TableEntry) -> Result<(), TableError> {
        let (key, value) = self.encode(entry)?;
        match self.map.set(&key, &value) {
            Err(error) if error.kind() == io::ErrorKind::ArgumentListTooLong => {
                Err(TableError::Full { capacity: capacity(&self.topology) })
            }
            written => Ok(written?),
        }
    }

    /// Writes entries in order.
    ///
    /// # Errors
    /// See [`set`](Self::set), with the index of the failed entry: only the entries before it are written.
    pub fn set_all(&mut self, entries: &[TableEntry]) -> Result<(), (usize, TableError)> {
        entries
            .iter()
            .enumerate()
            .try_for_each(|(index, entry)| self.set(entry).map_err(|error| (index, error)))
    }

    /// Removes the entry for an address; returns false if there was none.
    ///
    /// # Errors
    /// If the kernel refuses the operation.
    pub fn remove(&mut self, router: RouterId, mac: MacAddress) -> Result<bool, TableError> {
        Ok(self.map.remove(&key(router, mac))?)
    }

    /// Removes all entries of a switch and returns their number.
    ///
    /// # Errors
    /// If the kernel refuses the operation.
    pub fn clear(&mut self, router: RouterId) -> Result<usize, TableError> {
        let entries = self.entries()?.into_iter().filter(|entry| entry.router == router);
        let removed = entries.map(|entry| self.remove(router, entry.mac).map(usize::from));
        removed.sum()
    }

    /// Returns the entry for an address.
    ///
    /// # Errors
    /// If the kernel refuses the operation.
    pub fn get(&self, router: RouterId, mac: MacAddress) -> Result<Option<TableEntry>, TableError> {
        let key = key(router, mac);
        Ok(self.map.get(&key)?.map(|value| decode(key, value)))
    }

    /// Returns all entries, by switch and address. During concurrent changes an entry may be missing, old or new.
    ///
    /// # Errors
    /// If the kernel refuses the operation.
    pub fn entries(&self) -> Result<Vec<TableEntry>, TableError> {
        let entries = self.map.entries()?.into_iter().map(|(key, value)| decode(key, value));
        let mut entries: Vec<TableEntry> = entries.collect();
        entries.sort_unstable();
        Ok(entries)
    }

    /// Installs `forwarding`: writes missing and different entries, then removes all others. If it asks for write-back,
    /// the destination's switch rewrites shadow addresses to base addresses. Idempotent.
    ///
    /// # Errors
    /// See [`set`](Self::set). Changes made so far stay.
    pub fn install(&mut self, forwarding: &Forwarding) -> Result<Installed, TableError> {
        self.install_where(|_| true, forwarding)
    }

    /// Like [`install`](Self::install), at one switch.
    ///
    /// # Errors
    /// See [`set`](Self::set). Changes made so far stay.
    pub fn install_at(&mut self, router: RouterId, forwarding: &Forwarding) -> Result<Installed, TableError> {
        self.install_where(|other| other == router, forwarding)
    }

    fn install_where(
        &mut self,
        is_selected: impl Fn(RouterId) -> bool,
        forwarding: &Forwarding,
    ) -> Result<Installed, TableError> {
        let mut there = BTreeMap::new();
        for entry in self.entries()?.into_iter().filter(|entry| is_selected(entry.router)) {
            there.insert((entry.router, entry.mac), entry);
        }
        let mut installed = Installed::default();
        for entry in wanted(&self.topology, forwarding).iter().filter(|entry| is_selected(entry.router)) {
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

/// Returns the entries for the tables of `forwarding`, with the last switch's rewrites.
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
    fn encoded_entry_decodes_to_itself() {
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
    fn only_the_last_switch_rewrites_shadow_addresses() {
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
