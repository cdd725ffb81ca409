//! The side of a packet that a key refers to, and the prefix length of its address.

/// One of the two ends of a packet's path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Side {
    /// The source.
    Source,
    /// The destination.
    Destination,
}

impl Side {
    /// Returns the other side.
    pub const fn opposite(self) -> Side {
        match self {
            Side::Source => Side::Destination,
            Side::Destination => Side::Source,
        }
    }

    pub(super) const fn name(self) -> &'static str {
        match self {
            Side::Source => "src",
            Side::Destination => "dst",
        }
    }
}

/// The prefix lengths in bits for IPv4 and IPv6.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PrefixLengths {
    v4: u8,
    v6: u8,
}

impl PrefixLengths {
    /// Creates lengths for the first `v4` bits of an IPv4 address and the first `v6` of an IPv6 address; `None`
    /// unless they are in 1..=32 and 1..=128.
    pub const fn new(v4: u8, v6: u8) -> Option<PrefixLengths> {
        let is_valid = matches!((v4, v6), (1..=32, 1..=128));
        if is_valid { Some(PrefixLengths { v4, v6 }) } else { None }
    }

    /// Creates lengths of `v4` bits of an IPv4 address, and twice as many of an IPv6 address, where networks of the
    /// same kind usually end (/16 and /32 are a provider's, /24 and /48 the longest that are routed between
    /// providers, /32 and /64 a host's). `None` unless `v4` is in 1..=32.
    pub const fn of_v4(v4: u8) -> Option<PrefixLengths> {
        PrefixLengths::new(v4, v4.saturating_mul(2))
    }

    /// Returns the bits of an IPv4 address, 1 to 32.
    #[inline(always)]
    pub const fn v4(self) -> u8 {
        self.v4
    }

    /// Returns the bits of an IPv6 address, 1 to 128.
    #[inline(always)]
    pub const fn v6(self) -> u8 {
        self.v6
    }
}
