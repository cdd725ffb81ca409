//! The address of each destination that each source uses: its ARP table.

use thalweg_network::EndpointId;

use crate::packet::Packet;

/// The ARP tables of all hosts.
#[derive(Clone, Debug)]
pub(super) struct Neighbours {
    endpoints: usize,
    /// By source and destination; empty while everybody uses base addresses.
    addresses: Vec<u8>,
}

impl Neighbours {
    /// All sources use base addresses.
    pub(super) fn new(endpoints: usize) -> Neighbours {
        Neighbours { endpoints, addresses: Vec::new() }
    }

    pub(super) fn set(&mut self, source: EndpointId, destination: EndpointId, address: u8) {
        let place = self.place(source, destination);
        if self.addresses.is_empty() {
            self.addresses = vec![0; self.endpoints * self.endpoints];
        }
        self.addresses[place] = address;
    }

    pub(super) fn address(&self, source: EndpointId, destination: EndpointId) -> u8 {
        let place = self.place(source, destination);
        self.addresses.get(place).copied().unwrap_or(0)
    }

    /// Sets the destination's address in a packet.
    #[inline]
    pub(super) fn addressed(&self, packet: Packet) -> Packet {
        if self.addresses.is_empty() {
            return packet;
        }
        packet.with_address(self.address(packet.source(), packet.destination()))
    }

    fn place(&self, source: EndpointId, destination: EndpointId) -> usize {
        assert!(
            source.index() < self.endpoints && destination.index() < self.endpoints,
            "there are such endpoints"
        );
        source.index() * self.endpoints + destination.index()
    }
}
