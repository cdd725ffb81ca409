//! MAC forwarding tables: the output port of a switch for each destination address.
//!
//! Entries are indexed by (endpoint, address number), the parts of default and shadow MAC addresses (see
//! [`address`](crate::address)). Address 0 is the base address; each further address of an endpoint may have another
//! path to it (Rasley et al., "Planck", SIGCOMM 2014, section 6.2). An address without an entry has no route, and does
//! not fall back to another address. (A real switch would flood; a network with loops must not.)
//!
//! # Memory and cost
//! 2 bytes per endpoint and address. A look-up is a multiplication and a load.

use thiserror::Error;

use crate::identity::{EndpointId, PortIndex};

/// Marks an empty entry. A router has at most 65,535 ports, so no port has this number.
const NONE: u16 = u16::MAX;

/// The forwarding table of one router.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForwardingTable {
    /// By endpoint, then by address.
    entries: Box<[u16]>,
    /// The number of addresses per endpoint.
    addresses: usize,
    ports: u16,
}

/// The reason why an entry was rejected. The table is unchanged.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum ForwardingError {
    /// The router has no such port.
    #[error("unknown port {port}: the router has {ports} ports, numbered from p0")]
    Port {
        /// The rejected port.
        port: PortIndex,
        /// The number of ports.
        ports: u16,
    },
    /// The table has no such endpoint.
    #[error("unknown endpoint {endpoint}: the table has {endpoints} endpoints, numbered from h0")]
    Endpoint {
        /// The rejected endpoint.
        endpoint: EndpointId,
        /// The number of endpoints.
        endpoints: usize,
    },
    /// The table has fewer addresses per endpoint.
    #[error("unknown address {address}: endpoints have {addresses} addresses, numbered from 0")]
    Address {
        /// The rejected address number.
        address: u8,
        /// The number of addresses.
        addresses: usize,
    },
}

impl ForwardingTable {
    /// Creates an empty table for endpoints with addresses 0 to `highest_address`, at a router with `ports` ports.
    pub fn new(endpoints: u16, highest_address: u8, ports: u16) -> Self {
        let addresses = usize::from(highest_address) + 1;
        let entries = vec![NONE; usize::from(endpoints) * addresses].into();
        ForwardingTable { entries, addresses, ports }
    }

    /// The number of endpoints.
    pub fn endpoints(&self) -> usize {
        self.entries.len() / self.addresses
    }

    /// The number of addresses per endpoint.
    pub fn addresses(&self) -> usize {
        self.addresses
    }

    /// The number of ports of the router.
    pub fn ports(&self) -> usize {
        usize::from(self.ports)
    }

    /// Returns all entries, by endpoint, then by address.
    pub fn entries(&self) -> impl Iterator<Item = (EndpointId, u8, PortIndex)> + '_ {
        let known = self.entries.iter().enumerate().filter(|&(_, &port)| port != NONE);
        known.map(|(index, &port)| {
            let (endpoint, address) = (index / self.addresses, index % self.addresses);
            (EndpointId(endpoint as u16), address as u8, PortIndex(port))
        })
    }

    /// Returns the port for an address of an endpoint; `None` without an entry.
    #[inline]
    pub fn port(&self, destination: EndpointId, address: u8) -> Option<PortIndex> {
        if usize::from(address) >= self.addresses {
            return None;
        }
        match self.entries.get(destination.index() * self.addresses + usize::from(address)) {
            Some(&NONE) | None => None,
            Some(&port) => Some(PortIndex(port)),
        }
    }

    /// Sets the port for an address of an endpoint. Returns the previous port.
    ///
    /// # Errors
    /// If the endpoint, address or port does not exist.
    pub fn set(
        &mut self,
        destination: EndpointId,
        address: u8,
        port: PortIndex,
    ) -> Result<Option<PortIndex>, ForwardingError> {
        if port.0 >= self.ports {
            return Err(ForwardingError::Port { port, ports: self.ports });
        }
        self.replace(destination, address, port.0)
    }

    /// Removes the entry for an address of an endpoint. Returns the previous port.
    ///
    /// # Errors
    /// If the endpoint or address does not exist.
    pub fn clear(
        &mut self,
        destination: EndpointId,
        address: u8,
    ) -> Result<Option<PortIndex>, ForwardingError> {
        self.replace(destination, address, NONE)
    }

    fn replace(
        &mut self,
        endpoint: EndpointId,
        address: u8,
        port: u16,
    ) -> Result<Option<PortIndex>, ForwardingError> {
        let (endpoints, addresses) = (self.endpoints(), self.addresses);
        if usize::from(address) >= addresses {
            return Err(ForwardingError::Address { address, addresses });
        }
        let before = self.port(endpoint, address);
        match self.entries.get_mut(endpoint.index() * addresses + usize::from(address)) {
            Some(entry) => *entry = port,
            None => return Err(ForwardingError::Endpoint { endpoint, endpoints }),
        }
        Ok(before)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_table_behaves_as_a_map_from_addresses_to_ports(
            highest_address in 0u8..5,
            entries in prop::collection::vec((0u16..12, 0u8..6, prop::option::of(0u16..6)), 0..100),
        ) {
            let mut table = ForwardingTable::new(10, highest_address, 4);
            let mut map = BTreeMap::new();
            for (endpoint, address, port) in entries {
                let (endpoint, port) = (EndpointId(endpoint), port.map(PortIndex));
                let key = (endpoint, address);
                let exists = endpoint.0 < 10 && address <= highest_address && port.is_none_or(|port| port.0 < 4);
                let before = match port {
                    Some(port) => table.set(endpoint, address, port),
                    None => table.clear(endpoint, address),
                };
                prop_assert_eq!(before.is_ok(), exists);
                if let Ok(before) = before {
                    let known = match port {
                        Some(port) => map.insert(key, port),
                        None => map.remove(&key),
                    };
                    prop_assert_eq!(before, known);
                }
                let entries = map.iter().map(|(&(endpoint, address), &port)| (endpoint, address, port));
                prop_assert_eq!(table.entries().collect::<Vec<_>>(), entries.collect::<Vec<_>>());
                for (endpoint, address) in (0..12).flat_map(|e| (0..6).map(move |a| (EndpointId(e), a))) {
                    prop_assert_eq!(table.port(endpoint, address), map.get(&(endpoint, address)).copied());
                }
            }
        }
    }

    #[test]
    fn impossible_entries_are_rejected() {
        let mut table = ForwardingTable::new(2, 3, 3);
        let rejected = [
            (2, 0, 0, "unknown endpoint h2: the table has 2 endpoints, numbered from h0"),
            (1, 4, 0, "unknown address 4: endpoints have 4 addresses, numbered from 0"),
            (1, 3, 3, "unknown port p3: the router has 3 ports, numbered from p0"),
        ];
        for (endpoint, address, port, message) in rejected {
            let error = table.set(EndpointId(endpoint), address, PortIndex(port)).unwrap_err();
            assert_eq!(error.to_string(), message);
        }
        assert_eq!(table, ForwardingTable::new(2, 3, 3));
    }

    #[test]
    fn every_endpoint_can_have_all_256_addresses() {
        let mut table = ForwardingTable::new(65_535, 255, 1_024);
        assert_eq!(table.set(EndpointId(65_534), 255, PortIndex(1_023)), Ok(None));
        assert_eq!(table.port(EndpointId(65_534), 255), Some(PortIndex(1_023)));
        assert_eq!(table.port(EndpointId(65_534), 254), None);
        assert_eq!(table.port(EndpointId(65_535), 0), None);
    }
}
