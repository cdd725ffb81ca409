//! Prefixes of IPv4 and IPv6 addresses.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use thiserror::Error;

/// A prefix of IPv4 or IPv6 addresses: `192.0.2.0/24`. IPv4 addresses have no IPv6 prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct IpPrefix {
    /// Bits after the length are 0.
    network: IpAddr,
    length: u8,
}

/// Why a text is not a prefix.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum ParsePrefixError {
    /// It has another form.
    #[error(
        "invalid prefix {text:?}: expected an address and a length, such as 192.0.2.0/24 or 2001:db8::/32"
    )]
    Format {
        /// The text.
        text: String,
    },
    /// Its address has bits beyond the length, so that it may mean the address or the prefix.
    #[error(
        "{address}/{} has bits after its length: expected {prefix} for all addresses of the prefix, or {address} for one",
        prefix.length
    )]
    HostBits {
        /// The address.
        address: IpAddr,
        /// The prefix without these bits.
        prefix: IpPrefix,
    },
}

/// The number of bits of an address.
const fn bits_of(address: IpAddr) -> u8 {
    match address {
        IpAddr::V4(_) => 32,
        IpAddr::V6(_) => 128,
    }
}

impl IpPrefix {
    /// The prefix of this length that contains an address; `None` if the address has fewer bits.
    pub fn of(address: IpAddr, length: u8) -> Option<IpPrefix> {
        let network = match address {
            IpAddr::V4(address) if length <= 32 => {
                IpAddr::V4((u32::from(address) & !u32::MAX.checked_shr(length.into()).unwrap_or(0)).into())
            }
            IpAddr::V6(address) if length <= 128 => {
                IpAddr::V6((u128::from(address) & !u128::MAX.checked_shr(length.into()).unwrap_or(0)).into())
            }
            _ => return None,
        };
        Some(IpPrefix { network, length })
    }

    /// The prefix of full length: one address.
    pub const fn host(address: IpAddr) -> IpPrefix {
        IpPrefix { network: address, length: bits_of(address) }
    }

    /// The first address.
    pub const fn network(self) -> IpAddr {
        self.network
    }

    /// The length in bits.
    pub const fn length(self) -> u8 {
        self.length
    }

    /// Whether the prefix has full length.
    pub const fn is_host(self) -> bool {
        self.length == bits_of(self.network)
    }

    /// Converts an IPv4-mapped IPv6 prefix to IPv4 (RFC 4291, section 2.5.5.2): `::ffff:10.0.0.0/104` to `10.0.0.0/8`.
    #[must_use]
    pub fn unmapped(self) -> IpPrefix {
        match self.network {
            IpAddr::V6(network) if self.length >= 96 => match network.to_ipv4_mapped() {
                Some(network) => IpPrefix { network: network.into(), length: self.length - 96 },
                None => self,
            },
            _ => self,
        }
    }

    /// Whether an address has this prefix.
    #[inline]
    pub fn contains(self, address: IpAddr) -> bool {
        match (self.network, address) {
            (IpAddr::V4(network), IpAddr::V4(address)) => {
                (u32::from(network) ^ u32::from(address)).leading_zeros() >= self.length.into()
            }
            (IpAddr::V6(network), IpAddr::V6(address)) => {
                (u128::from(network) ^ u128::from(address)).leading_zeros() >= self.length.into()
            }
            _ => false,
        }
    }
}

impl FromStr for IpPrefix {
    type Err = ParsePrefixError;

    /// Parses `192.0.2.0/24`, or an address alone.
    fn from_str(text: &str) -> Result<IpPrefix, ParsePrefixError> {
        let wrong = || ParsePrefixError::Format { text: text.to_owned() };
        let (address, length) =
            text.split_once('/').map_or((text, None), |(address, length)| (address, Some(length)));
        let address: IpAddr = address.parse().map_err(|_| wrong())?;
        let length = length.map_or(Ok(bits_of(address)), |length| length.parse().map_err(|_| wrong()))?;
        let prefix = IpPrefix::of(address, length).ok_or_else(wrong)?;
        match prefix.network == address {
            true => Ok(prefix),
            false => Err(ParsePrefixError::HostBits { address, prefix }),
        }
    }
}

impl fmt::Display for IpPrefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.network, self.length)
    }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, Ipv6Addr};

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_prefix_contains_the_addresses_with_its_first_bits(
            bits: u128,
            other: u128,
            is_ipv4: bool,
            length in 0_u8..=128,
        ) {
            let address = |bits: u128| match is_ipv4 {
                true => IpAddr::V4(Ipv4Addr::from_bits((bits >> 96) as u32)),
                false => IpAddr::V6(Ipv6Addr::from_bits(bits)),
            };
            let whole = bits_of(address(0));
            let found = IpPrefix::of(address(bits), length);
            prop_assert_eq!(found.is_some(), length <= whole);
            let Some(prefix) = found else { return Ok(()) };
            let rest = u128::MAX.checked_shr(length.into()).unwrap_or(0);
            prop_assert!(prefix.contains(address(bits & !rest | other & rest)), "the first bits are equal");
            if length > 0 {
                prop_assert!(!prefix.contains(address(bits ^ 1 << (128 - u32::from(length)))));
            }
            prop_assert_eq!(prefix.to_string().parse(), Ok(prefix));
            prop_assert_eq!(prefix.is_host(), prefix == IpPrefix::host(address(bits)));
        }
    }

    #[test]
    fn ipv4_and_ipv6_share_no_address() {
        let all: [IpPrefix; 2] = ["0.0.0.0/0", "::/0"].map(|text| text.parse().unwrap());
        let [v4, v6]: [IpAddr; 2] = ["10.0.0.1", "2001:db8::1"].map(|text| text.parse().unwrap());
        assert!(all[0].contains(v4) && !all[0].contains(v6) && all[1].contains(v6) && !all[1].contains(v4));
        for (mapped, expected) in [
            ("::ffff:10.0.0.0/104", "10.0.0.0/8"),
            ("::ffff:10.1.2.3/128", "10.1.2.3/32"),
            ("::fffe:0:0/95", "::fffe:0:0/95"),
        ] {
            assert_eq!(mapped.parse::<IpPrefix>().unwrap().unmapped().to_string(), expected);
        }
    }

    #[test]
    fn invalid_prefixes_are_refused() {
        for text in ["", "10.0.0.0/33", "::/129", "10.0.0/8", "10.0.0.0/x", "10.0.0.0/"] {
            let error = text.parse::<IpPrefix>().unwrap_err().to_string();
            assert!(error.starts_with("invalid prefix"), "{error}");
        }
        for (text, prefix) in
            [("10.0.0.1/8", "10.0.0.0/8"), ("1.2.3.4/0", "0.0.0.0/0"), ("2001:db8::1/32", "2001:db8::/32")]
        {
            let error = text.parse::<IpPrefix>().unwrap_err().to_string();
            assert!(
                error.starts_with(&format!("{text} has bits after its length: expected {prefix} for")),
                "{error}"
            );
        }
    }
}
