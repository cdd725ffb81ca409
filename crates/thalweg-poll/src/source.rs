//! The trait of counter sources.
//!
//! A source reads one interface of one target: [`snmp`](crate::snmp), [`openflow`](crate::openflow), [`qdisc`](crate::qdisc).

use thalweg_linux::NetlinkError;
use thalweg_wire::Timestamp;
use thiserror::Error;

use crate::InterfaceReading;

/// Reads the counters of one interface.
pub trait CounterSource: Send {
    /// Returns what it reads: `SNMP v3 of 192.0.2.1:161, interface wan0`.
    fn description(&self) -> String;

    /// Reads the counters. Blocks, for a time that the source limits. `clock` returns the time; it should not be set back.
    ///
    /// # Errors
    /// If the target does not answer, or has no such interface or counter. A later call may succeed.
    fn read(&mut self, clock: &dyn Fn() -> Timestamp) -> Result<InterfaceReading, ReadError>;
}

/// Why counters could not be read.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The target did not answer.
    #[error("no answer from {target}: {message}")]
    Timeout {
        /// The target.
        target: String,
        /// Details.
        message: String,
    },
    /// There is no connection to the target.
    #[error("{target} is not connected: {message}")]
    NotConnected {
        /// The target.
        target: String,
        /// Why the latest connection ended or was refused, and what to do.
        message: String,
    },
    /// The target refused a request.
    #[error("{target} refuses the request for {what}: {message}")]
    Refused {
        /// The target.
        target: String,
        /// What was requested.
        what: String,
        /// The error of the target.
        message: String,
    },
    /// The target refused the credentials.
    #[error(
        "{target} refuses the credentials of {user}: {message}; check user, passwords and protocols of the credentials file"
    )]
    Credentials {
        /// The target.
        target: String,
        /// The user.
        user: String,
        /// What the target reports.
        message: String,
    },
    /// The target has no such interface.
    #[error("{target} has no interface whose {object} is {value:?}; it has {known}")]
    NoInterface {
        /// The target.
        target: String,
        /// The object that names interfaces, such as `ifName`.
        object: &'static str,
        /// The expected name.
        value: String,
        /// Some of the names that it has.
        known: String,
    },
    /// Several interfaces have the name.
    #[error(
        "{target} has {count} interfaces whose {object} is {value:?}: name the interface by a unique object"
    )]
    Ambiguous {
        /// The target.
        target: String,
        /// The object that names interfaces.
        object: &'static str,
        /// The name.
        value: String,
        /// The number of interfaces.
        count: usize,
    },
    /// A counter is missing.
    #[error("{target} does not report {object} of interface {interface}")]
    NoCounter {
        /// The target.
        target: String,
        /// The counter.
        object: String,
        /// The interface.
        interface: String,
    },
    /// The answer is invalid, or an error of the protocol.
    #[error("{target}: {message}")]
    Protocol {
        /// The target.
        target: String,
        /// Details.
        message: String,
    },
    /// The kernel returned an error.
    #[error(transparent)]
    Kernel(#[from] NetlinkError),
}

impl ReadError {
    /// Returns a short name for metrics: `timeout`.
    pub const fn kind(&self) -> &'static str {
        match self {
            ReadError::Timeout { .. } => "timeout",
            ReadError::NotConnected { .. } => "connection",
            ReadError::Refused { .. } => "refused",
            ReadError::Credentials { .. } => "credentials",
            ReadError::NoInterface { .. } | ReadError::Ambiguous { .. } => "interface",
            ReadError::NoCounter { .. } => "counter",
            ReadError::Protocol { .. } => "protocol",
            ReadError::Kernel(_) => "kernel",
        }
    }
}
