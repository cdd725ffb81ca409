//! Dispatches to the parser of the IP version.

use crate::flow_key::IpVersion;
use crate::parse::datagram::Datagram;
use crate::parse::frame_cursor::FrameCursor;
use crate::parse::{Unparsed, ipv4, ipv6};

/// An unparsed IP packet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Network<'a> {
    /// The version that the layer below announced.
    pub(super) version: IpVersion,
    /// The bytes from the IP header.
    pub(super) rest: FrameCursor<'a>,
}

/// Parses an IP header and its extensions.
#[inline]
pub(super) fn parse(network: Network<'_>) -> Result<Datagram<'_>, Unparsed> {
    match network.version {
        IpVersion::V4 => ipv4::parse(network.rest),
        IpVersion::V6 => ipv6::parse(network.rest),
    }
}
