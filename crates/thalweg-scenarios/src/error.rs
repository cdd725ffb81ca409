//! Errors of scenarios.

use std::io;

use thalweg_lab::{LabError, NamespaceError, TableError};
use thalweg_network::state::StateError;
use thalweg_network::topology::file::TopologyFileError;
use thiserror::Error;

/// An error that prevented or ended a scenario.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ScenarioError {
    /// The lab cannot be created, found or removed.
    #[error(transparent)]
    Lab(#[from] LabError),
    /// A lab with this prefix exists already.
    #[error(
        "lab {prefix} exists already: remove it with `thalweg lab down --prefix {prefix}`, or choose another prefix"
    )]
    PrefixInUse {
        /// Its prefix.
        prefix: String,
    },
    /// Neither a shape nor a readable file has this name.
    #[error(
        "unknown topology {name:?}: expected `leaf-spine`, `fat-tree-4` or a topology file; reading it as a file failed: {source}"
    )]
    Topology {
        /// The name given.
        name: String,
        /// The error of reading it as a file.
        source: io::Error,
    },
    /// The file is not a valid topology.
    #[error(transparent)]
    TopologyFile(#[from] TopologyFileError),
    /// The tables do not belong to the topology.
    #[error(transparent)]
    Network(#[from] StateError),
    /// Installing the switches' tables failed.
    #[error("cannot install the tables: {0}")]
    Tables(#[from] TableError),
    /// Installing routes by OpenFlow failed.
    #[error("cannot install the routes: {0}")]
    Switches(String),
    /// The daemon did not start, or refused a request.
    #[error("daemon: {0}")]
    Daemon(String),
    /// No two flows share a link and have disjoint alternatives.
    #[error("this topology has no two flows that share a link and can be rerouted around it")]
    NoCollision,
    /// iperf3 is not installed.
    #[error("a scenario needs iperf3: install it and try again ({0})")]
    IperfMissing(io::Error),
    /// iperf3 failed.
    #[error("iperf3 from {from} to {to}: {reason}")]
    Iperf {
        /// The sending host.
        from: String,
        /// The receiving host.
        to: String,
        /// Its error message.
        reason: String,
    },
    /// A connection between hosts failed.
    #[error("TCP from {from} to {to}: {source}")]
    Transfer {
        /// The sending host.
        from: String,
        /// The receiving host.
        to: String,
        /// The system's error.
        source: io::Error,
    },
    /// Monitoring failed before the scenario ended.
    #[error("monitoring ended early: {0}")]
    Monitoring(String),
    /// A signal interrupted the scenario.
    #[error("interrupted")]
    Interrupted,
}

impl From<NamespaceError> for ScenarioError {
    fn from(error: NamespaceError) -> ScenarioError {
        LabError::from(error).into()
    }
}
