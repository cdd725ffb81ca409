//! Why a scenario did not run.

use std::io;

use thalweg_lab::{LabError, NamespaceError, TableError};
use thalweg_network::state::StateError;
use thalweg_network::topology::file::TopologyFileError;
use thiserror::Error;

/// Why a scenario did not run, or not to its end.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ScenarioError {
    /// The lab cannot be made, found or removed.
    #[error(transparent)]
    Lab(#[from] LabError),
    /// Somebody else uses the lab.
    #[error(
        "there is a lab {prefix} already: remove it with `thalweg lab down --prefix {prefix}`, or choose another prefix"
    )]
    Taken {
        /// Its prefix.
        prefix: String,
    },
    /// No shape and no file.
    #[error(
        "there is no topology {name:?}: expected `leaf-spine`, `fat-tree-4` or a file, and no file is there: {source}"
    )]
    Topology {
        /// What was asked for.
        name: String,
        /// Why the file cannot be read.
        source: io::Error,
    },
    /// The file is no topology.
    #[error(transparent)]
    TopologyFile(#[from] TopologyFileError),
    /// The tables do not belong to the topology.
    #[error(transparent)]
    Network(#[from] StateError),
    /// The switches did not take their tables.
    #[error("cannot install the tables: {0}")]
    Tables(#[from] TableError),
    /// Switches that are told by OpenFlow did not take their routes.
    #[error("cannot install the routes: {0}")]
    Switches(String),
    /// The daemon does not start, or does not do what it is told.
    #[error("the daemon: {0}")]
    Daemon(String),
    /// There are no flows that could be on the same link.
    #[error("in this topology no two flows can collide and be taken apart again")]
    NothingCollides,
    /// The traffic generator is not there.
    #[error("a scenario needs iperf3: install it and try again ({0})")]
    NoIperf(io::Error),
    /// The traffic generator failed.
    #[error("iperf3 from {from} to {to}: {reason}")]
    Iperf {
        /// The sending host.
        from: String,
        /// The receiving host.
        to: String,
        /// What it said.
        reason: String,
    },
    /// A connection between hosts failed.
    #[error("TCP from {from} to {to}: {source}")]
    Transfer {
        /// The sending host.
        from: String,
        /// The receiving host.
        to: String,
        /// What the system said.
        source: io::Error,
    },
    /// The thread that watches and steers has ended.
    #[error("watching ended early: {0}")]
    Watching(String),
    /// A signal ended it.
    #[error("interrupted")]
    Interrupted,
}

impl From<NamespaceError> for ScenarioError {
    fn from(error: NamespaceError) -> ScenarioError {
        LabError::from(error).into()
    }
}
