//! Why there is no such topology.

use std::net::Ipv4Addr;

use thalweg_wire::{BitRate, Nanos};
use thiserror::Error;

use super::{MAX_DELAY, MAX_NAME, MAX_NODES, MAX_PORTS, MAX_RATE};
use crate::address::MacAddress;
use crate::identity::{EndpointId, RouterId};

/// Why a part was refused, or the whole. Names are shown with control characters escaped.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum TopologyError {
    /// Numbers of endpoints have 16 bits.
    #[error("more than {MAX_NODES} endpoints")]
    TooManyEndpoints,
    /// Numbers of routers have 16 bits.
    #[error("more than {MAX_NODES} routers")]
    TooManyRouters,
    /// A router has too many links.
    #[error("router {router:?} would have more than {MAX_PORTS} ports")]
    TooManyPorts {
        /// Its name.
        router: String,
    },
    /// A network without endpoints has no traffic.
    #[error("there are no endpoints: at least one is needed")]
    NoEndpoints,
    /// A name is empty, too long, or has control characters.
    #[error("{name:?} cannot be a name: expected 1 to {MAX_NAME} bytes without control characters")]
    Name {
        /// The name, or as much of it as a name may have.
        name: String,
    },
    /// Two nodes have the same name.
    #[error("there are two nodes of the name {name:?}")]
    DuplicateName {
        /// The name.
        name: String,
    },
    /// No such router has been added.
    #[error("there is no router {router}")]
    UnknownRouter {
        /// Its number.
        router: RouterId,
    },
    /// No such endpoint has been added.
    #[error("there is no endpoint {endpoint}")]
    UnknownEndpoint {
        /// Its number.
        endpoint: EndpointId,
    },
    /// A link would lead from a router to itself.
    #[error("a link connects router {router:?} with itself")]
    SelfLink {
        /// Its name.
        router: String,
    },
    /// A link's rate is zero or too high.
    #[error("a rate of {rate}: expected 1 bit/s to {MAX_RATE}")]
    Rate {
        /// The rate.
        rate: BitRate,
    },
    /// A link's delay is too long.
    #[error("a delay of {delay}: expected at most {MAX_DELAY}")]
    Delay {
        /// The delay.
        delay: Nanos,
    },
    /// A group address, or all zeros.
    #[error("{mac} is not the address of one interface: expected a unicast address")]
    Mac {
        /// The address.
        mac: MacAddress,
    },
    /// An address of the form that other endpoints' default and shadow addresses have.
    #[error(
        "{mac} may be another endpoint's: addresses that begin with 02:54:57 are kept for default and shadow addresses"
    )]
    ReservedMac {
        /// The address.
        mac: MacAddress,
    },
    /// Two endpoints have the same MAC address.
    #[error("{first:?} and {second:?} have the same MAC address, {mac}")]
    DuplicateMac {
        /// The address.
        mac: MacAddress,
        /// Name of one endpoint.
        first: String,
        /// Name of another, later one.
        second: String,
    },
    /// Two endpoints have the same IPv4 address.
    #[error("{first:?} and {second:?} have the same IPv4 address, {ip}")]
    DuplicateIp {
        /// The address.
        ip: Ipv4Addr,
        /// Name of one endpoint.
        first: String,
        /// Name of another, later one.
        second: String,
    },
    /// A fat tree has an even number of ports a switch.
    #[error("k = {k}: a fat tree is of switches with an even number of ports, 2 or more")]
    FatTreeArity {
        /// Ports a switch.
        k: u32,
    },
    /// A shape takes another number of sizes.
    #[error("{shape} takes {expected} sizes, not {found}")]
    Sizes {
        /// Name of the shape.
        shape: &'static str,
        /// How many it takes.
        expected: usize,
        /// How many it was given.
        found: usize,
    },
}
