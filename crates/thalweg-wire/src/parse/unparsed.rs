//! Errors of parsing frames.

use thiserror::Error;

/// The reason why a frame gives no packet. Exhaustive, so that counters cover every case.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum Unparsed {
    /// The frame is not IP.
    #[error("not IP: EtherType {ethertype:#06x}")]
    NonIp {
        /// The EtherType, or the equivalent of other link layers: an address family, or the DSAP and SSAP of an LLC
        /// frame (spanning tree is 0x4242).
        ethertype: u16,
    },
    /// The link type of the interface is not supported.
    #[error("unsupported link type {0}")]
    UnsupportedLinkType(u16),
    /// A header is malformed.
    #[error("malformed header at offset {offset}: {kind}")]
    Malformed {
        /// The violated rule.
        kind: Malformed,
        /// The offset of the malformed header in the frame, in bytes.
        offset: u32,
    },
}

/// The rule that a malformed frame violates.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[repr(u8)]
pub enum Malformed {
    /// The capture ends before the end of the IP addresses; the snap length is too short.
    #[error("the capture ends before the IP addresses")]
    Truncated,
    /// The frame itself, as on the wire, ends before the end of the IP addresses.
    #[error("the frame ends before the IP addresses")]
    FrameTooShort,
    /// The version field of the IP header differs from the version that the layer below announced, or is neither 4 nor
    /// 6.
    #[error("unexpected IP version")]
    IpVersion,
    /// The IPv4 header length is below 20 bytes (RFC 791 section 3.1, IHL).
    #[error("the IPv4 header length is below 20 bytes")]
    HeaderLength,
    /// The IPv4 total length is shorter than the header (RFC 791 section 3.1).
    #[error("the IPv4 total length is shorter than the header")]
    TotalLength,
}

impl Malformed {
    /// All kinds in the order of [`Malformed::index`].
    pub const ALL: [Malformed; 5] = [
        Malformed::Truncated,
        Malformed::FrameTooShort,
        Malformed::IpVersion,
        Malformed::HeaderLength,
        Malformed::TotalLength,
    ];

    /// The index in [`Malformed::ALL`], for arrays of counters.
    #[inline]
    pub const fn index(self) -> usize {
        self as usize
    }

    /// The name in counters.
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
