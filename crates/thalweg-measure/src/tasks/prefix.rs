//! The side of a packet that a key is about, and how much of its address.

/// One of the two ends of a packet's way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Side {
    /// Where it comes from.
    Source,
    /// Where it goes to.
    Destination,
}

impl Side {
    /// The other end.
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

/// Lengths of a prefix in bits, for IPv4 and for IPv6.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PrefixLengths {
    v4: u8,
    v6: u8,
}

impl PrefixLengths {
    /// The first `v4` bits of an IPv4 address and the first `v6` of an IPv6 address; `None` unless they are in
    /// 1..=32 and 1..=128.
    pub const fn new(v4: u8, v6: u8) -> Option<PrefixLengths> {
        let is_valid = matches!((v4, v6), (1..=32, 1..=128));
        if is_valid { Some(PrefixLengths { v4, v6 }) } else { None }
    }

    /// `v4` bits of an IPv4 address, and twice as many of an IPv6 address: where networks end in the one they end
    /// about there in the other (/16 and /32 are a provider's, /24 and /48 the longest that are routed between
    /// providers, /32 and /64 a host's). `None` unless `v4` is in 1..=32.
    pub const fn of_v4(v4: u8) -> Option<PrefixLengths> {
        PrefixLengths::new(v4, v4.saturating_mul(2))
    }

    /// Bits of an IPv4 address, 1 to 32.
    #[inline(always)]
    pub const fn v4(self) -> u8 {
        self.v4
    }

    /// Bits of an IPv6 address, 1 to 128.
    #[inline(always)]
    pub const fn v6(self) -> u8 {
        self.v6
    }
}
