//! Versions of the network.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Moment;

/// What is known of the network.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
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
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub struct NewTopology {
    /// Its number.
    pub version: u64,
    /// The packet time from which on it holds.
    pub from: Moment,
    /// Collectors that have not confirmed it yet.
    pub unconfirmed: Vec<Unconfirmed>,
}

/// A collector that has not confirmed a new version of the network. It takes it up as soon as it can.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub struct Unconfirmed {
    /// The collector.
    pub collector: String,
    /// Why not.
    pub error: String,
}
