//! Pairs of hosts, the unit of rerouting.

use std::fmt;

use thalweg_network::{EndpointId, Topology};
use thalweg_wire::EthernetAddresses;

/// A source host and a destination host. All flows of a pair follow one path, which the destination address selects
/// (Rasley et al., "Planck", SIGCOMM 2014, section 6.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Pair {
    /// The source host.
    pub source: EndpointId,
    /// The destination host.
    pub destination: EndpointId,
}

impl Pair {
    /// Returns the pair of a packet and the index of its destination address. Returns `None` if either host is not in
    /// the topology.
    pub fn of(topology: &Topology, ethernet: &EthernetAddresses) -> Option<(Pair, u8)> {
        let (source, _) = topology.endpoint_with_mac(ethernet.source)?;
        let (destination, address) = topology.endpoint_with_mac(ethernet.destination)?;
        Some((Pair { source, destination }, address))
    }

    /// Returns a display name: `h0 > h8`.
    ///
    /// # Panics
    /// If the topology does not contain both endpoints.
    pub fn name<'a>(&self, topology: &'a Topology) -> impl fmt::Display + 'a {
        let name = |endpoint: EndpointId| topology.endpoints()[endpoint.index()].name.as_str();
        PairName { source: name(self.source), destination: name(self.destination) }
    }
}

struct PairName<'a> {
    source: &'a str,
    destination: &'a str,
}

impl fmt::Display for PairName<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} > {}", self.source, self.destination)
    }
}
