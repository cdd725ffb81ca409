//! What endpoints send: when, to whom, how much.
//!
//! | module | contents |
//! |---|---|
//! | [`patterns`] | flows: all to all, RPC, incast, stride, shuffle, random pairings, from a file |
//! | [`sizes`] | flow sizes: published distributions, a user's, fixed, mixed |
//! | [`arrivals`] | when flows start: Poisson or evenly spaced |
//! | [`open_loop`] | packets without feedback: Poisson, constant rate, self-similar bursts |
//! | [`burst_process`] | self-similar bursts in continuous time, for one port |
//! | [`burstiness`] | the variability of traffic |
//! | [`compose`] | merged and limited workloads |
//! | [`random`] | named random number streams; [`alias`] draws from a table of weights |
//!
//! Everything derives from a seed. Each part of a workload has its own random numbers, so another size distribution
//! does not change arrival times, and a rack's packets do not depend on the core that runs it. Logarithms and powers
//! are those of the `libm` crate, so results are the same on every machine.

pub mod alias;
pub mod arrivals;
pub mod burst_process;
pub mod burstiness;
pub mod compose;
pub mod open_loop;
pub mod patterns;
pub mod random;
pub mod sizes;

use thalweg_network::EndpointId;
use thalweg_wire::Timestamp;
use thiserror::Error;

/// The size of an unbounded flow.
pub const UNBOUNDED: u64 = u64::MAX;

/// The highest valid load, as a multiple of the access link's rate. A higher one is a typing error.
pub const MAX_LOAD: f64 = 100.0;

/// A flow that starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowStart {
    /// When its first byte may be sent.
    pub at: Timestamp,
    /// The sender.
    pub source: EndpointId,
    /// The receiver, different from `source`.
    pub destination: EndpointId,
    /// Bytes of payload, at least one; [`UNBOUNDED`] for an unbounded flow.
    pub bytes: u64,
    /// Differentiated services code point of its packets, 0 to 63.
    pub dscp: u8,
}

/// A sequence of flows.
///
/// Flows are numbered from 0 in the order in which [`start`](Workload::start) returns them.
pub trait Workload {
    /// When the next flow starts, as far as is known; `None` if there is none. A completion may add one.
    fn next_start(&self) -> Option<Timestamp>;

    /// The next flow, in order of time. A flow that a completion triggers starts no earlier than the completion.
    fn start(&mut self) -> Option<FlowStart>;

    /// Reports that the receiver of flow `flow` had all bytes at `at`. Call this once per flow, in order of time.
    fn completed(&mut self, flow: u32, at: Timestamp);
}

/// A name in experiment files and its meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Named {
    /// The name.
    pub name: &'static str,
    /// A description in one line.
    pub summary: &'static str,
}

/// Why a workload is invalid.
#[derive(Clone, Debug, Error, PartialEq)]
#[non_exhaustive]
pub enum WorkloadError {
    /// The load is out of range.
    #[error("invalid load {0}: expected more than 0 and at most {MAX_LOAD} times the link's rate")]
    Load(f64),
    /// The access link's rate is zero.
    #[error("invalid link rate 0: expected more, because a load is a share of it")]
    Rate,
    /// A load needs flows that end.
    #[error("unbounded flows have no load: set a size, or use a pattern without a load")]
    Endless,
    /// Not enough endpoints.
    #[error("{given} {role}: expected at least {least}")]
    TooFew {
        /// Their role.
        role: &'static str,
        /// Their number.
        given: usize,
        /// The minimum.
        least: usize,
    },
    /// Too many endpoints.
    #[error("{given} {role}: expected at most {most}")]
    TooMany {
        /// Their role.
        role: &'static str,
        /// Their number.
        given: usize,
        /// The maximum.
        most: usize,
    },
    /// An endpoint is listed twice.
    #[error("endpoint {endpoint} is listed twice in the {role}")]
    Repeated {
        /// The endpoint.
        endpoint: EndpointId,
        /// Its role.
        role: &'static str,
    },
    /// An endpoint would send to itself.
    #[error("endpoint {0} would send to itself")]
    ToItself(EndpointId),
    /// A request asks more servers than there are.
    #[error("invalid fan-in {fan_in}: expected 1 to {servers}, the number of servers that a client can ask")]
    FanIn {
        /// Servers per request.
        fan_in: usize,
        /// Servers other than the client.
        servers: usize,
    },
    /// With this stride, endpoints would send to themselves.
    #[error("invalid stride {stride}: with {endpoints} endpoints each would send to itself")]
    Stride {
        /// The stride.
        stride: usize,
        /// The number of endpoints.
        endpoints: usize,
    },
    /// Not a share between 0 and 1.
    #[error("invalid {what} {value}: expected 0 to 1")]
    Share {
        /// The quantity.
        what: &'static str,
        /// Its value.
        value: f64,
    },
    /// A weight is invalid, or all weights are zero.
    #[error("invalid weight {0}: expected finite weights of at least 0, and one above 0")]
    Weight(f64),
    /// An invalid code point.
    #[error("invalid DSCP {0}: expected 0 to 63")]
    Dscp(u8),
    /// A flow or packet without bytes.
    #[error("{0} of 0 bytes: expected at least 1 byte")]
    Empty(&'static str),
    /// An invalid Hurst parameter.
    #[error("invalid Hurst parameter {0}: expected at least 0.5 and less than 1")]
    Hurst(f64),
    /// Invalid bursts.
    #[error(
        "bursts of {slots} slots at {rate} times the link's rate: expected a packet in each or more, at most 1024 in \
         a slot, and at most 2^24 bursts at once"
    )]
    Bursts {
        /// Mean duration.
        slots: f64,
        /// Rate of each.
        rate: f64,
    },
    /// An invalid burst process.
    #[error(
        "{bursts_per_second} bursts per second of {packets:.3} packets: expected more than 0, at least a packet in \
         each, and at most a million active bursts"
    )]
    BurstProcess {
        /// Starts per second.
        bursts_per_second: f64,
        /// Mean packets of a burst.
        packets: f64,
    },
}

/// Checks a load.
fn checked_load(load: f64) -> Result<f64, WorkloadError> {
    if load > 0.0 && load <= MAX_LOAD { Ok(load) } else { Err(WorkloadError::Load(load)) }
}

/// Checks a share.
fn checked_share(what: &'static str, value: f64) -> Result<f64, WorkloadError> {
    if (0.0..=1.0).contains(&value) { Ok(value) } else { Err(WorkloadError::Share { what, value }) }
}

/// Checks a code point.
fn checked_dscp(dscp: u8) -> Result<u8, WorkloadError> {
    if dscp < 64 { Ok(dscp) } else { Err(WorkloadError::Dscp(dscp)) }
}
