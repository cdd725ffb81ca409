//! What hosts send: when, to whom, how much.
//!
//! | module | what it has |
//! |---|---|
//! | [`patterns`] | flows: all to all, RPC, incast, stride, shuffle, random pairings, from a file |
//! | [`sizes`] | how many bytes a flow has: published distributions, a user's, fixed, mixed |
//! | [`arrivals`] | when flows begin: Poisson or evenly spaced |
//! | [`open_loop`] | packets that are sent whatever becomes of them: Poisson, constant, bursts that are self-similar |
//! | [`compose`] | workloads merged in order of time, and workloads cut short |
//! | [`random`] | named streams of chance; [`alias`] draws from a table of weights |
//!
//! Everything follows from a seed. Each part of a workload draws from a stream of its own, so that another
//! distribution of sizes leaves the times as they were, and a rack's packets are the same whichever core runs it.
//! Logarithms and powers are those of the `libm` crate, and so the same on every machine.

pub mod alias;
pub mod arrivals;
pub mod compose;
pub mod open_loop;
pub mod patterns;
pub mod random;
pub mod sizes;

use thalweg_network::EndpointId;
use thalweg_wire::Timestamp;
use thiserror::Error;

/// Size of a flow that goes on for ever.
pub const UNBOUNDED: u64 = u64::MAX;

/// Highest load that is accepted, in times the access link's rate: beyond it, something was mistyped.
pub const MAX_LOAD: f64 = 100.0;

/// A flow that begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowStart {
    /// When its first byte may be sent.
    pub at: Timestamp,
    /// Who sends.
    pub source: EndpointId,
    /// Who receives; another than `source`.
    pub destination: EndpointId,
    /// Bytes of payload, at least one; [`UNBOUNDED`] is a flow without end.
    pub bytes: u64,
    /// Differentiated services code point of its packets, 0 to 63.
    pub dscp: u8,
}

/// Flows that begin one after another.
///
/// Flows are numbered by the order in which [`start`](Workload::start) gives them, from 0 on.
pub trait Workload {
    /// When the next flow begins, as far as is known now; `None` if none is waiting. A completion may bring one.
    fn next_start(&self) -> Option<Timestamp>;

    /// The next flow. They come in order of time: one that a completion brings forth begins at the completion's
    /// time at the earliest.
    fn start(&mut self) -> Option<FlowStart>;

    /// Flow `flow` has reached its receiver whole, at `at`. To be called once a flow that ends, in order of time.
    fn completed(&mut self, flow: u32, at: Timestamp);
}

/// A name that an experiment may use, and what it stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Named {
    /// As an experiment writes it.
    pub name: &'static str,
    /// One line for a person who chooses.
    pub summary: &'static str,
}

/// Why there can be no such workload.
#[derive(Clone, Debug, Error, PartialEq)]
#[non_exhaustive]
pub enum WorkloadError {
    /// The load makes no sense.
    #[error("a load of {0}: expected more than 0, and at most {MAX_LOAD} times the link's rate")]
    Load(f64),
    /// The access link's rate is zero.
    #[error("a link rate of 0: a load is a share of it, so it must be more")]
    Rate,
    /// A load of flows that do not end.
    #[error("flows that go on for ever have no load: give them a size, or use a pattern without a load")]
    Endless,
    /// Not enough endpoints.
    #[error("{given} {role}: expected {least} or more")]
    TooFew {
        /// What they are there for.
        role: &'static str,
        /// How many there are.
        given: usize,
        /// How many it takes.
        least: usize,
    },
    /// Too many endpoints.
    #[error("{given} {role}: expected {most} at most")]
    TooMany {
        /// What they are there for.
        role: &'static str,
        /// How many there are.
        given: usize,
        /// How many there may be.
        most: usize,
    },
    /// An endpoint was named twice where it counts once.
    #[error("endpoint {endpoint} is named twice among the {role}")]
    Repeated {
        /// Which.
        endpoint: EndpointId,
        /// What it was named for.
        role: &'static str,
    },
    /// Somebody would send to itself.
    #[error("endpoint {0} would send to itself")]
    ToItself(EndpointId),
    /// More servers a request than there are to ask.
    #[error("a fan-in of {fan_in}: expected 1 to {servers}, the servers that a client can ask")]
    FanIn {
        /// Servers that each request asks.
        fan_in: usize,
        /// Servers that there are, but for the client itself.
        servers: usize,
    },
    /// Everybody would send to itself.
    #[error("a stride of {stride} over {endpoints} endpoints leads back to where it began")]
    Stride {
        /// The stride.
        stride: usize,
        /// Endpoints it goes round.
        endpoints: usize,
    },
    /// Not a part of one.
    #[error("{what} of {value}: expected 0 to 1")]
    Share {
        /// What it is a part of.
        what: &'static str,
        /// What was given.
        value: f64,
    },
    /// Not a weight, or weights that add up to nothing.
    #[error("a weight of {0}: expected finite weights of at least 0, one of them more")]
    Weight(f64),
    /// Not a code point.
    #[error("a DSCP of {0}: expected 0 to 63")]
    Dscp(u8),
    /// A flow or a packet of no bytes.
    #[error("{0} of 0 bytes: expected at least one")]
    Empty(&'static str),
    /// Not the Hurst parameter of a Poisson Pareto burst process.
    #[error("a Hurst parameter of {0}: expected at least 0.5 and less than 1")]
    Hurst(f64),
    /// Bursts that cannot be.
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
}

/// The load, if it is one.
fn checked_load(load: f64) -> Result<f64, WorkloadError> {
    if load > 0.0 && load <= MAX_LOAD { Ok(load) } else { Err(WorkloadError::Load(load)) }
}

/// A part of one, if it is.
fn checked_share(what: &'static str, value: f64) -> Result<f64, WorkloadError> {
    if (0.0..=1.0).contains(&value) { Ok(value) } else { Err(WorkloadError::Share { what, value }) }
}

/// A code point, if it is one.
fn checked_dscp(dscp: u8) -> Result<u8, WorkloadError> {
    if dscp < 64 { Ok(dscp) } else { Err(WorkloadError::Dscp(dscp)) }
}
