//! Errors of labs.

use std::io;
use std::path::PathBuf;

use thalweg_linux::{KernelVersion, NamespaceError, NetlinkError};
use thalweg_network::routing::NextHopsError;
use thiserror::Error;

use crate::plan::PlanError;

/// An error while creating, finding, querying or removing a lab.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum LabError {
    /// The plan is not valid.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// The topology is too large for shortest paths.
    #[error(transparent)]
    Routes(#[from] NextHopsError),
    /// Namespaces, interfaces and eBPF programs need root.
    #[error("a lab needs root: run as root, or with sudo")]
    NotRoot,
    /// The switch program is not compiled for this byte order.
    #[error("this build has no eBPF switch program: it supports little-endian processors only")]
    NoSwitchProgram,
    /// A required program is not installed.
    #[error("a lab with these switches needs {program}: install the package {package}")]
    MissingProgram {
        /// Name of the program.
        program: &'static str,
        /// Name of its Debian package.
        package: &'static str,
    },
    /// A program that a lab runs failed.
    #[error("{program}: {reason}")]
    Program {
        /// Name of the program.
        program: &'static str,
        /// Its error message.
        reason: String,
    },
    /// The kernel is too old for endpoints.
    #[error("the kernel is {version}: an emulated lab needs Linux 6.6 or newer, because of its endpoints")]
    OldKernel {
        /// The running one.
        version: KernelVersion,
    },
    /// The kernel has no TAP interfaces.
    #[error("an emulated lab needs TAP interfaces, and /dev/net/tun is missing: run modprobe tun")]
    NoTap,
    /// The operation needs switches.
    #[error(
        "the network of the lab with the prefix {prefix:?} is emulated, it has no switches: its failures are those of the experiment \
         file ([[failure]])"
    )]
    Emulated {
        /// The prefix.
        prefix: String,
    },
    /// A file of an emulated lab could not be written.
    #[error("cannot write {}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// An arbiter or an endpoint ended while the lab was created.
    #[error("{process} has ended: {message}")]
    ProcessEnded {
        /// The process, such as `the endpoint of h0`.
        process: String,
        /// The end of its log.
        message: String,
    },
    /// An endpoint has not reached the arbiter in time.
    #[error("the endpoint of {host} does not reach the arbiter: {message}")]
    NotJoined {
        /// The host.
        host: String,
        /// The end of its log.
        message: String,
    },
    /// An arbiter or an endpoint could not be ended.
    #[error("cannot end process {pid}: {source}")]
    Signal {
        /// Its number.
        pid: u32,
        /// The system's error.
        source: io::Error,
    },
    /// The operation needs eBPF switches.
    #[error("not supported with Open vSwitch: its switches are controlled by OpenFlow")]
    NotEbpf,
    /// No lab with this prefix is up, or it is incomplete.
    #[error("no lab with the name prefix {prefix:?} is up: {reason}")]
    NotUp {
        /// The prefix.
        prefix: String,
        /// The missing part.
        reason: String,
    },
    /// No host has this name.
    #[error("unknown host {name:?}: see `thalweg lab status`")]
    UnknownHost {
        /// The name given.
        name: String,
    },
    /// The lab has no such switch.
    #[error("unknown switch {name:?}")]
    UnknownSwitch {
        /// The name given.
        name: String,
    },
    /// The topology has no such link.
    #[error(transparent)]
    UnknownLink(#[from] thalweg_network::link_state::UnknownLink),
    /// A namespace could not be created, entered or removed.
    #[error("network namespace {name:?}: cannot {what}: {source}")]
    Namespace {
        /// Its name.
        name: String,
        /// The failed operation.
        what: &'static str,
        /// The system's error.
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
        /// The system's error.
        source: io::Error,
    },
    /// An operation on the switch program or one of its maps failed.
    #[error("eBPF: cannot {what}: {source}")]
    Ebpf {
        /// The failed operation.
        what: String,
        /// The error of the loader or the kernel.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The record of a lab could not be read or written.
    #[error("{path}: {source}")]
    Record {
        /// The file.
        path: PathBuf,
        /// The error.
        source: io::Error,
    },
    /// Links do not carry frames within 5 s of their creation.
    #[error("{count} links did not come up within 5 s")]
    LinksDown {
        /// The number of links.
        count: usize,
    },
    /// A command could not be started.
    #[error("host {host}: cannot run {program:?}: {source}")]
    Exec {
        /// The host.
        host: String,
        /// The program.
        program: String,
        /// The system's error.
        source: io::Error,
    },
    /// A delay line could not be set up.
    #[error("delay line: {source}")]
    DelayLine {
        /// The system's error.
        source: io::Error,
    },
    /// The idle time of the processors could not be read.
    #[error("{path}: {source}")]
    Headroom {
        /// The file.
        path: &'static str,
        /// The error.
        source: io::Error,
    },
}

impl LabError {
    /// Creates an [`Ebpf`](Self::Ebpf) error.
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
            NamespaceError::Missing { name } => {
                let source = std::io::Error::new(std::io::ErrorKind::NotFound, "it does not exist");
                LabError::Namespace { name, what: "enter it", source }
            }
            NamespaceError::Operation { name, operation, source } => {
                LabError::Namespace { name, what: operation, source }
            }
        }
    }
}
