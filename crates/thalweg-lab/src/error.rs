//! What can go wrong with a lab.

use std::io;
use std::path::PathBuf;

use thalweg_linux::{NamespaceError, NetlinkError};
use thalweg_network::routing::NextHopsError;
use thiserror::Error;

use crate::plan::PlanError;

/// Why a lab could not be made, found, asked or removed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum LabError {
    /// There can be no such lab.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// The topology is too large to find its shortest paths.
    #[error(transparent)]
    Routes(#[from] NextHopsError),
    /// Namespaces, interfaces and eBPF programs are root's.
    #[error("a lab needs root")]
    NotRoot,
    /// The switch program is not compiled for this byte order.
    #[error("this build has no switch program: it is compiled for little-endian processors only")]
    NoSwitchProgram,
    /// Something that a lab calls is not installed.
    #[error("a lab with these switches needs {program}: install {package}")]
    NoProgram {
        /// What is called.
        program: &'static str,
        /// The package that has it, by Debian's name.
        package: &'static str,
    },
    /// Something that a lab calls has failed.
    #[error("{program}: {reason}")]
    Program {
        /// What was called.
        program: &'static str,
        /// What it said.
        reason: String,
    },
    /// Switches of Open vSwitch have no tables of ours.
    #[error("switches of Open vSwitch are told by OpenFlow what to do")]
    NotEbpf,
    /// There is no lab of this prefix, or not all of it.
    #[error("there is no lab {prefix:?}: {reason}")]
    NotUp {
        /// The prefix.
        prefix: String,
        /// What is missing.
        reason: String,
    },
    /// There is no host of this name.
    #[error("the lab has no host {name:?}")]
    UnknownHost {
        /// The name given.
        name: String,
    },
    /// There is no such switch.
    #[error("the lab has no switch {name:?}")]
    UnknownSwitch {
        /// The name given.
        name: String,
    },
    /// There is no such link.
    #[error(transparent)]
    UnknownLink(#[from] thalweg_network::link_state::UnknownLink),
    /// A namespace could not be made, entered or removed.
    #[error("network namespace {name:?}: cannot {what}: {source}")]
    Namespace {
        /// Its name.
        name: String,
        /// What was to be done.
        what: &'static str,
        /// What the system said.
        source: io::Error,
    },
    /// The kernel refused a request about interfaces or queues.
    #[error(transparent)]
    Netlink(#[from] NetlinkError),
    /// A kernel parameter could not be read or written.
    #[error("kernel parameter {path}: {source}")]
    Sysctl {
        /// Its file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The switch program or one of its maps.
    #[error("eBPF: cannot {what}: {source}")]
    Ebpf {
        /// What was to be done.
        what: String,
        /// What the loader or the kernel said.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The record of what a lab is could not be read or written.
    #[error("{path}: {source}")]
    Record {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        source: io::Error,
    },
    /// Links were made and do not carry frames.
    #[error("{count} links do not come up")]
    LinksDown {
        /// How many.
        count: usize,
    },
    /// A command could not be started.
    #[error("host {host}: cannot run {program:?}: {source}")]
    Exec {
        /// Where.
        host: String,
        /// What.
        program: String,
        /// What the system said.
        source: io::Error,
    },
    /// The idle time of the processors could not be read.
    #[error("{path}: {source}")]
    Headroom {
        /// The file.
        path: &'static str,
        /// What is wrong.
        source: io::Error,
    },
}

impl LabError {
    /// An [`Ebpf`](Self::Ebpf) error.
    pub(crate) fn ebpf(
        what: impl Into<String>,
        source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> LabError {
        LabError::Ebpf { what: what.into(), source: source.into() }
    }
}

impl From<NamespaceError> for LabError {
    fn from(error: NamespaceError) -> LabError {
        match error {
            NamespaceError::Run { name, program, source } => LabError::Exec { host: name, program, source },
            NamespaceError::Operation { name, operation, source } => {
                LabError::Namespace { name, what: operation, source }
            }
        }
    }
}
