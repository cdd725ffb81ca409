//! Errors of the daemon's configuration.

use std::io;

use thalweg_network::topology::file::TopologyFileError;
use thiserror::Error;

use thalweg_config::DocumentError;

/// Why a configuration is invalid.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// An error in the file itself.
    #[error(transparent)]
    Document(#[from] DocumentError),
    /// The topology file could not be read.
    #[error("cannot read the topology file {file}")]
    Topology {
        /// Name of the file.
        file: String,
        /// Error of the system.
        source: io::Error,
    },
    /// The topology is invalid.
    #[error(transparent)]
    TopologyFile(#[from] TopologyFileError),
}
