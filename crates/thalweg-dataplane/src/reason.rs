//! Why a sampled packet cannot be counted.

use crate::layout::REASONS;

/// Why a sampled packet is not counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The frame has no IP packet.
    NotIp,
    /// The IP addresses are beyond the first 512 bytes.
    Truncated,
    /// The frame ends before the IP addresses.
    TooShort,
    /// The version field is not that of the layer below.
    IpVersion,
    /// The IPv4 header length is below 20 bytes.
    HeaderLength,
    /// The IPv4 total length is shorter than the header.
    TotalLength,
    /// A defect of the program; counted so that it is seen.
    Fault,
}

impl Reason {
    /// All reasons, in the order of the programs.
    pub const ALL: [Reason; REASONS - 1] = [
        Reason::NotIp,
        Reason::Truncated,
        Reason::TooShort,
        Reason::IpVersion,
        Reason::HeaderLength,
        Reason::TotalLength,
        Reason::Fault,
    ];

    /// The name in counters.
    pub const fn name(self) -> &'static str {
        match self {
            Reason::NotIp => "non_ip",
            Reason::Truncated => "truncated",
            Reason::TooShort => "frame_too_short",
            Reason::IpVersion => "ip_version",
            Reason::HeaderLength => "header_length",
            Reason::TotalLength => "total_length",
            Reason::Fault => "fault",
        }
    }

    pub(crate) const fn index(self) -> usize {
        self as usize + 1
    }
}
