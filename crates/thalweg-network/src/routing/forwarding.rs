//! MAC forwarding tables: what a controller tells a switch to do with each destination address.
//!
//! The entries are by (endpoint, address), which is what default and shadow MAC addresses consist of (see
//! [`address`](crate::address)): address 0 is the base address, and each further address of an endpoint may lead
//! another way to it (Rasley et al., "Planck", SIGCOMM 2014, section 6.2). There is no fallback from one to the other:
//! an address without an entry leads nowhere. (A real switch would flood; a network with loops must not.)
//!
//! # Memory and cost
//! 2 bytes for each endpoint and address. A look-up is a multiplication and a load.

use thiserror::Error;

use crate::identity::{EndpointId, PortIndex};

/// In place of a port: no entry. A router of at most 65,535 ports has none of this number.
const NONE: u16 = u16::MAX;

/// The forwarding table of one router.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForwardingTable {
    /// By endpoint, and within it by address.
    entries: Box<[u16]>,
    /// Addresses an endpoint.
    addresses: usize,
    ports: u16,
}

/// Why an entry was refused. The table is unchanged.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum ForwardingError {
    /// The router has no such port.
    #[error("there is no port {port}: the router has {ports}, counted from p0")]
    Port {
        /// The number given.
        port: PortIndex,
        /// Number of ports.
        ports: u16,
    },
    /// The table has no such endpoint.
    #[error("there is no endpoint {endpoint}: there are {endpoints}, counted from h0")]
    Endpoint {
        /// The number given.
        endpoint: EndpointId,
        /// Number of endpoints.
        endpoints: usize,
    },
    /// The table has fewer addresses an endpoint.
    #[error("there is no address {address}: endpoints have {addresses}, counted from 0")]
    Address {
        /// The number given.
        address: u8,
        /// Number of addresses.
        addresses: usize,
    },
}

impl ForwardingTable {
    /// An empty table for `endpoints` whose addresses are 0 to `highest_address`, at a router of `ports` ports.
    pub fn new(endpoints: u16, highest_address: u8, ports: u16) -> Self {
        let addresses = usize::from(highest_address) + 1;
        let entries = vec![NONE; usize::from(endpoints) * addresses].into();
        ForwardingTable { entries, addresses, ports }
    }

    /// Number of endpoints.
    pub fn endpoints(&self) -> usize {
        self.entries.len() / self.addresses
    }

    /// Number of addresses an endpoint.
    pub fn addresses(&self) -> usize {
        self.addresses
    }

    /// Number of ports of the router.
    pub fn ports(&self) -> usize {
        usize::from(self.ports)
    }

    /// All entries, by endpoint and within it by address.
    pub fn entries(&self) -> impl Iterator<Item = (EndpointId, u8, PortIndex)> + '_ {
        let known = self.entries.iter().enumerate().filter(|&(_, &port)| port != NONE);
        known.map(|(index, &port)| {
            let (endpoint, address) = (index / self.addresses, index % self.addresses);
            (EndpointId(endpoint as u16), address as u8, PortIndex(port))
        })
    }

    /// The port for an address of an endpoint; `None` if there is no entry, or can be none.
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

    /// Makes an address of an endpoint lead to `port`; gives the port it led to before.
    ///
    /// # Errors
    /// If there is no such endpoint, address or port.
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

    /// Makes an address of an endpoint lead nowhere; gives the port it led to before.
    ///
    /// # Errors
    /// If there is no such endpoint or address.
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
        fn it_is_a_map_from_addresses_to_ports(
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
    fn entries_that_cannot_be_are_refused_with_what_there_is() {
        let mut table = ForwardingTable::new(2, 3, 3);
        let refusals = [
            (2, 0, 0, "there is no endpoint h2: there are 2, counted from h0"),
            (1, 4, 0, "there is no address 4: endpoints have 4, counted from 0"),
            (1, 3, 3, "there is no port p3: the router has 3, counted from p0"),
        ];
        for (endpoint, address, port, message) in refusals {
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
