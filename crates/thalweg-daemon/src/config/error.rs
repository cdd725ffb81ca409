//! What can be wrong with the daemon's configuration.

use std::io;

use thalweg_network::topology::file::TopologyFileError;
use thiserror::Error;

use thalweg_config::DocumentError;

/// Why a configuration is refused.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// The file itself.
    #[error(transparent)]
    Document(#[from] DocumentError),
    /// The topology's file could not be read.
    #[error("cannot read the topology file {file}")]
    Topology {
        /// Its name.
        file: String,
        /// The system's answer.
        source: io::Error,
    },
    /// The topology is wrong.
    #[error(transparent)]
    TopologyFile(#[from] TopologyFileError),
}
