//! Versions of the network.

use schemars::JsonSchema;
use serde::Serialize;
use thalweg_network::Version;

use super::Moment;
use crate::serve::daemon::NetworkChange;

/// What is known of the network.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Topology {
    /// Number of this version, from 1.
    pub version: u64,
    /// The packet time from which on it holds.
    pub from: Moment,
    /// The network as in a topology file; the answer to `PUT /v1/topology` with this as its body changes nothing but the
    /// version.
    pub network: serde_json::Value,
}

/// A new version of the network.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct NewTopology {
    /// Its number.
    pub version: u64,
    /// The packet time from which on it holds.
    pub from: Moment,
    /// Collectors that have not confirmed it yet.
    pub unconfirmed: Vec<Unconfirmed>,
}

/// A collector that has not confirmed a new version of the network. It takes it up as soon as it can.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Unconfirmed {
    /// The collector.
    pub collector: String,
    /// Why not.
    pub error: String,
}

impl Topology {
    /// A version; `network` is its state.
    pub fn new(version: &Version, network: serde_json::Value) -> Topology {
        Topology { version: version.number, from: version.from.into(), network }
    }
}

impl From<&NetworkChange> for NewTopology {
    fn from(change: &NetworkChange) -> NewTopology {
        let unconfirmed = change.unconfirmed.iter();
        NewTopology {
            version: change.version,
            from: change.from.into(),
            unconfirmed: unconfirmed
                .map(|(collector, error)| Unconfirmed {
                    collector: collector.clone(),
                    error: error.to_string(),
                })
                .collect(),
        }
    }
}
