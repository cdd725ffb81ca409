//! Errors of building a topology.

use std::net::{IpAddr, Ipv6Addr};

use thalweg_wire::{BitRate, Nanos};
use thiserror::Error;

use super::{MAX_DELAY, MAX_NAME, MAX_NODES, MAX_PORTS, MAX_RATE};
use crate::address::MacAddress;
use crate::identity::{EndpointId, RouterId};

/// The reason why a part or the whole topology is rejected. Names are displayed with escaped control characters.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum TopologyError {
    /// Too many endpoints.
    #[error("too many endpoints: at most {MAX_NODES} are allowed")]
    TooManyEndpoints,
    /// Too many routers.
    #[error("too many routers: at most {MAX_NODES} are allowed")]
    TooManyRouters,
    /// A router has too many links.
    #[error("router {router:?} has too many ports: at most {MAX_PORTS} are allowed")]
    TooManyPorts {
        /// The name of the router.
        router: String,
    },
    /// The topology has no endpoints.
    #[error("no endpoints: at least one is required")]
    NoEndpoints,
    /// A name is empty, too long, or has control characters.
    #[error("invalid name {name:?}: expected 1 to {MAX_NAME} bytes without control characters")]
    Name {
        /// The name, truncated to the maximum length.
        name: String,
    },
    /// Two nodes have the same name.
    #[error("duplicate node name {name:?}")]
    DuplicateName {
        /// The name.
        name: String,
    },
    /// The router does not exist.
    #[error("unknown router {router}")]
    UnknownRouter {
        /// The unknown router.
        router: RouterId,
    },
    /// The endpoint does not exist.
    #[error("unknown endpoint {endpoint}")]
    UnknownEndpoint {
        /// The unknown endpoint.
        endpoint: EndpointId,
    },
    /// A link connects a router to itself.
    #[error("a link connects router {router:?} to itself")]
    SelfLink {
        /// The name of the router.
        router: String,
    },
    /// A link's rate is zero or too high.
    #[error("invalid link rate {rate}: expected 1 bit/s to {MAX_RATE}")]
    Rate {
        /// The rate.
        rate: BitRate,
    },
    /// A link's delay is too long.
    #[error("invalid link delay {delay}: expected at most {MAX_DELAY}")]
    Delay {
        /// The delay.
        delay: Nanos,
    },
    /// A link's jitter is larger than its delay.
    #[error("invalid link jitter {jitter}: expected at most the delay, which is {delay}")]
    Jitter {
        /// The jitter.
        jitter: Nanos,
        /// The delay.
        delay: Nanos,
    },
    /// A MAC address is a group address or all zeros.
    #[error("invalid MAC address {mac}: expected a unicast address")]
    Mac {
        /// The address.
        mac: MacAddress,
    },
    /// A MAC address has the form of default and shadow addresses of other endpoints.
    #[error("MAC address {mac} is reserved: 02:54:57 is the prefix of default and shadow addresses")]
    ReservedMac {
        /// The address.
        mac: MacAddress,
    },
    /// Two endpoints have the same MAC address.
    #[error("{first:?} and {second:?} have the same MAC address, {mac}")]
    DuplicateMac {
        /// The address.
        mac: MacAddress,
        /// The name of the first endpoint.
        first: String,
        /// The name of the second endpoint.
        second: String,
    },
    /// An IPv6 address is not one of a single host.
    #[error("invalid IPv6 address {ip}: expected a unicast address, and an IPv4 address as ip")]
    Ipv6 {
        /// The address.
        ip: Ipv6Addr,
    },
    /// Two ports of a router have the same name.
    #[error("router {router:?} has two ports named {name:?}")]
    DuplicatePortName {
        /// The name.
        name: String,
        /// The name of the router.
        router: String,
    },
    /// A port's name has the form of a port number.
    #[error("port name {name:?} is reserved: p and a number mean the port of this number in the topology")]
    NumericPortName {
        /// The name.
        name: String,
    },
    /// Port names without a link.
    #[error("no link whose ports could be named")]
    NoLink,
    /// Two endpoints have the same IP address.
    #[error("{first:?} and {second:?} have the same IP address, {ip}")]
    DuplicateIp {
        /// The address.
        ip: IpAddr,
        /// The name of the first endpoint.
        first: String,
        /// The name of the second endpoint.
        second: String,
    },
    /// The k of a fat tree is odd or zero.
    #[error("invalid k = {k}: a fat tree needs an even number of ports per router, at least 2")]
    FatTreeArity {
        /// The number of ports per router.
        k: u32,
    },
    /// A shape needs another number of sizes.
    #[error("{shape} takes {expected} sizes, got {found}")]
    Sizes {
        /// The name of the shape.
        shape: &'static str,
        /// The expected number of sizes.
        expected: usize,
        /// The given number of sizes.
        found: usize,
    },
}
