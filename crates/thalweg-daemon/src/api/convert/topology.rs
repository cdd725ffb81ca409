//! Versions of the topology.

use thalweg_api::{NewTopology, Topology, UnconfirmedCollector};
use thalweg_network::Version;

use crate::collectors::network::NetworkChange;

/// Converts a version; `network` is its state.
pub fn topology(version: &Version, network: serde_json::Value) -> Topology {
    Topology { version: version.number, valid_from: version.from.into(), network }
}

/// Converts a new version.
pub fn new_topology(change: &NetworkChange) -> NewTopology {
    let unconfirmed = change.unconfirmed.iter();
    NewTopology {
        version: change.version,
        valid_from: change.from.into(),
        unconfirmed: unconfirmed
            .map(|(collector, error)| UnconfirmedCollector {
                collector: collector.clone(),
                error: error.to_string(),
            })
            .collect(),
    }
}
