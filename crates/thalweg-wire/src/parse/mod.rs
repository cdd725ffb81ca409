//! Headers: bytes of a frame in, a [`Packet`] out.

use thiserror::Error;

use crate::packet::Packet;
use crate::source::Frame;

/// Takes frames apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Parser {
    /// Whether tunnels (GRE, ERSPAN, VXLAN, Geneve, IP in IP) are peeled, so that the key is the inner packet's.
    pub peel_tunnels: bool,
}

/// Why a frame gave no packet.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum Unparsed {
    /// It carries no IP.
    #[error("no IP: EtherType {ethertype:#06x}")]
    NonIp {
        /// EtherType, or what its link layer has in its place.
        ethertype: u16,
    },
    /// Its interface has a link type that is not taken apart.
    #[error("link type {0} is not taken apart")]
    UnsupportedLinkType(u16),
    /// It claims to carry IP but does not hold to its own format.
    #[error("malformed: {0}")]
    Malformed(Malformed),
}

/// How a frame breaks the format that it claims to have.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum Malformed {
    /// The capture ends inside the headers up to the IP addresses.
    #[error("the capture ends before the IP addresses")]
    Truncated,
}

impl Parser {
    /// Takes one frame apart.
    ///
    /// # Errors
    /// [`Unparsed`] if the frame carries no IP or breaks its format.
    #[inline]
    pub fn parse(&self, frame: &Frame<'_>) -> Result<Packet, Unparsed> {
        let _ = frame;
        Err(Unparsed::Malformed(Malformed::Truncated))
    }
}
