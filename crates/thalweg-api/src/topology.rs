//! Versions of the topology.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use super::UtcTime;

/// The current topology.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct Topology {
    /// Version number, from 1.
    pub version: u64,
    /// Packet time from which this version is valid.
    pub valid_from: UtcTime,
    /// The network in the format of a topology file. `PUT /v1/topology` accepts it unchanged.
    #[schemars(schema_with = "topology_file")]
    pub network: serde_json::Value,
}

/// Returns the reference to the schema of topology files, which the daemon adds to its OpenAPI document.
fn topology_file(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "$ref": "#/components/schemas/TopologyFile" })
}

/// A new version of the topology.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub struct NewTopology {
    /// Version number.
    pub version: u64,
    /// Packet time from which this version is valid.
    pub valid_from: UtcTime,
    /// Collectors that have not confirmed this version yet.
    pub unconfirmed: Vec<UnconfirmedCollector>,
}

/// A collector that has not confirmed a new version of the topology. It applies the version as soon as it can.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub struct UnconfirmedCollector {
    /// Name of the collector.
    pub collector: String,
    /// Why it has not confirmed.
    pub error: String,
}
