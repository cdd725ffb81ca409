//! An optional IPv4 or IPv6 address in 16 bytes without padding.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// An address, or [`Address::NONE`].
///
/// IPv4 addresses are stored as IPv4-mapped IPv6 addresses (RFC 4291 section 2.5.5.2), so an IPv6 address of that
/// range, which no packet should carry, is treated as IPv4. `NONE` is the address of all ones, which RFC 4291 does not
/// assign.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct Address(pub u128);

/// The prefix of IPv4-mapped addresses.
const V4_MAPPED: u128 = 0xFFFF << 32;

impl Address {
    /// No address.
    pub const NONE: Address = Address(u128::MAX);

    /// Creates an IPv4 address from a number in host order (`10.0.0.1` is `0x0A00_0001`).
    #[inline]
    pub const fn v4(number: u32) -> Address {
        Address(V4_MAPPED | number as u128)
    }

    /// Whether this is an address.
    #[inline]
    pub const fn is_some(self) -> bool {
        self.0 != u128::MAX
    }

    /// Returns the number of an IPv4 address.
    #[inline]
    pub const fn as_v4(self) -> Option<u32> {
        match self.0 >> 32 == 0xFFFF {
            true => Some(self.0 as u32),
            false => None,
        }
    }

    /// Converts to the type of the standard library.
    pub fn ip(self) -> Option<IpAddr> {
        match self.as_v4() {
            Some(number) => Some(Ipv4Addr::from(number).into()),
            None => self.is_some().then(|| Ipv6Addr::from(self.0).into()),
        }
    }
}

impl Default for Address {
    fn default() -> Address {
        Address::NONE
    }
}

impl From<IpAddr> for Address {
    fn from(address: IpAddr) -> Address {
        match address {
            IpAddr::V4(address) => Address::v4(address.into()),
            IpAddr::V6(address) => Address(address.into()),
        }
    }
}

/// Displays dotted decimal or RFC 5952; an empty string for `NONE`.
impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.ip() {
            Some(address) => address.fmt(f),
            None => f.pad(""),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_display_in_the_usual_form() {
        let texts = ["10.1.2.3", "0.0.0.0", "::", "2001:db8::1", "255.255.255.255"];
        for text in texts {
            assert_eq!(Address::from(text.parse::<IpAddr>().unwrap()).to_string(), text);
        }
        assert_eq!(Address::NONE.to_string(), "");
        assert_eq!(Address::NONE.ip(), None);
    }
}
