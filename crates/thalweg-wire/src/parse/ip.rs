//! IP of either version: what the link layer and tunnels hand in, and what the transport layer gets.

use crate::flow_key::IpVersion;
use crate::parse::datagram::Datagram;
use crate::parse::rest::Rest;
use crate::parse::{Unparsed, ipv4, ipv6};

/// An IP packet that the layer below announced, not yet read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Network<'a> {
    /// The version that was announced.
    pub(super) version: IpVersion,
    /// From the IP header on.
    pub(super) rest: Rest<'a>,
}

/// Reads an IP header and what extends it.
#[inline]
pub(super) fn parse(network: Network<'_>) -> Result<Datagram<'_>, Unparsed> {
    match network.version {
        IpVersion::V4 => ipv4::parse(network.rest),
        IpVersion::V6 => ipv6::parse(network.rest),
    }
}
