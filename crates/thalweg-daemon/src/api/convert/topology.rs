//! Versions of the network.

use thalweg_api::{NewTopology, Topology, Unconfirmed};
use thalweg_network::Version;

use crate::collectors::network::NetworkChange;

/// A version; `network` is its state.
pub fn topology(version: &Version, network: serde_json::Value) -> Topology {
    Topology { version: version.number, from: version.from.into(), network }
}

/// A new version of the network.
pub fn new_topology(change: &NetworkChange) -> NewTopology {
    let unconfirmed = change.unconfirmed.iter();
    NewTopology {
        version: change.version,
        from: change.from.into(),
        unconfirmed: unconfirmed
            .map(|(collector, error)| Unconfirmed { collector: collector.clone(), error: error.to_string() })
            .collect(),
    }
}
