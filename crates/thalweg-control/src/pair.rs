//! What is steered.

use std::fmt;

use thalweg_network::{EndpointId, Topology};
use thalweg_wire::EthernetAddresses;

/// A source and a destination. All flows of a pair go the same way: by the destination address that the source sends to
/// (Rasley et al., "Planck", SIGCOMM 2014, section 6.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Pair {
    /// Where its packets begin.
    pub source: EndpointId,
    /// Where they end.
    pub destination: EndpointId,
}

impl Pair {
    /// The pair that packets with these addresses belong to, and which of the destination's addresses it is; `None` if
    /// one of the two is not in the network.
    pub fn of(topology: &Topology, ethernet: &EthernetAddresses) -> Option<(Pair, u8)> {
        let (source, _) = topology.endpoint_with_mac(ethernet.source)?;
        let (destination, address) = topology.endpoint_with_mac(ethernet.destination)?;
        Some((Pair { source, destination }, address))
    }

    /// The pair as people read it: `h0 > h8`.
    ///
    /// # Panics
    /// If the topology does not have these endpoints.
    pub fn name<'a>(&self, topology: &'a Topology) -> impl fmt::Display + 'a {
        let name = |endpoint: EndpointId| topology.endpoints()[endpoint.index()].name.as_str();
        Named { source: name(self.source), destination: name(self.destination) }
    }
}

struct Named<'a> {
    source: &'a str,
    destination: &'a str,
}

impl fmt::Display for Named<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} > {}", self.source, self.destination)
    }
}
