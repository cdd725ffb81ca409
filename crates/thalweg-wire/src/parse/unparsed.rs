//! Why a frame gave no packet.

use thiserror::Error;

/// Why a frame gave no packet. Exhaustive, so that whoever counts packets counts each of these.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum Unparsed {
    /// It carries no IP.
    #[error("no IP: EtherType {ethertype:#06x}")]
    NonIp {
        /// EtherType, or what its link layer has in its place: an address family, or the DSAP and SSAP of an
        /// LLC frame (spanning tree is 0x4242).
        ethertype: u16,
    },
    /// Its interface has a link type that is not taken apart.
    #[error("link type {0} is not taken apart")]
    UnsupportedLinkType(u16),
    /// It claims to carry IP but does not hold to its own format.
    #[error("malformed at byte {offset}: {kind}")]
    Malformed {
        /// Which rule it breaks.
        kind: Malformed,
        /// Where in the frame the header lies that breaks it, in bytes from the frame's start.
        offset: u32,
    },
}

/// How a frame breaks the format that it claims to have.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[repr(u8)]
pub enum Malformed {
    /// The capture ends inside the headers up to the IP addresses; the snap length is too short.
    #[error("the capture ends before the IP addresses")]
    Truncated,
    /// The frame itself, as it was on the wire, ends inside those headers.
    #[error("the frame ends before the IP addresses")]
    FrameTooShort,
    /// The version field of the IP header is not the one that the layer below announced, or not 4 or 6 where
    /// that leaves it open.
    #[error("the IP version is not the one announced")]
    IpVersion,
    /// The IPv4 header claims to be shorter than 20 bytes (RFC 791 section 3.1, IHL).
    #[error("the IPv4 header length is below 20 bytes")]
    HeaderLength,
    /// The IPv4 total length does not even cover the header (RFC 791 section 3.1).
    #[error("the IPv4 total length does not cover the header")]
    TotalLength,
}

impl Malformed {
    /// Every kind, in the order of [`Malformed::index`].
    pub const ALL: [Malformed; 5] = [
        Malformed::Truncated,
        Malformed::FrameTooShort,
        Malformed::IpVersion,
        Malformed::HeaderLength,
        Malformed::TotalLength,
    ];

    /// Place in [`Malformed::ALL`], for arrays of counters.
    #[inline]
    pub const fn index(self) -> usize {
        self as usize
    }

    /// Short name, as counters show it.
    pub const fn name(self) -> &'static str {
        match self {
            Malformed::Truncated => "truncated",
            Malformed::FrameTooShort => "frame_too_short",
            Malformed::IpVersion => "ip_version",
            Malformed::HeaderLength => "header_length",
            Malformed::TotalLength => "total_length",
        }
    }
}
