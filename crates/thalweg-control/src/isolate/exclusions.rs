//! Flows that are never redirected: by prefix or port.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use thalweg_wire::FlowKey;
use thiserror::Error;

/// Prefixes and ports whose flows are never redirected. A flow is excluded if either end matches.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Exclusions {
    /// Prefixes of addresses.
    pub prefixes: Vec<Prefix>,
    /// Ports.
    pub ports: Vec<u16>,
}

/// A prefix of IPv4 or IPv6 addresses: `192.0.2.0/24`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prefix {
    address: IpAddr,
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
        prefix: Prefix,
    },
}

impl Exclusions {
    /// Whether a flow is excluded.
    pub fn contain(&self, key: &FlowKey) -> bool {
        let ends = [(key.src(), key.src_port), (key.dst(), key.dst_port)];
        let has_ports = key.protocol.has_ports();
        ends.iter().any(|(address, port)| {
            (has_ports && self.ports.contains(port))
                || self.prefixes.iter().any(|prefix| prefix.contains(*address))
        })
    }
}

impl Prefix {
    /// Whether an address has this prefix. IPv4 addresses have no IPv6 prefix.
    pub fn contains(&self, address: IpAddr) -> bool {
        match (self.address, address) {
            (IpAddr::V4(prefix), IpAddr::V4(address)) => {
                let differ = u32::from(prefix) ^ u32::from(address);
                differ.leading_zeros() >= u32::from(self.length)
            }
            (IpAddr::V6(prefix), IpAddr::V6(address)) => {
                let differ = u128::from(prefix) ^ u128::from(address);
                differ.leading_zeros() >= u32::from(self.length)
            }
            _ => false,
        }
    }
}

impl FromStr for Prefix {
    type Err = ParsePrefixError;

    /// Parses `192.0.2.0/24`, or an address alone.
    fn from_str(text: &str) -> Result<Prefix, ParsePrefixError> {
        let wrong = || ParsePrefixError::Format { text: text.to_owned() };
        let (address, length) =
            text.split_once('/').map_or((text, None), |(address, length)| (address, Some(length)));
        let address: IpAddr = address.parse().map_err(|_| wrong())?;
        let longest = if address.is_ipv4() { 32 } else { 128 };
        let length = match length {
            None => longest,
            Some(length) => length.parse().ok().filter(|length| *length <= longest).ok_or_else(wrong)?,
        };
        let prefix = Prefix { address: first_address(address, length), length };
        match prefix.address == address {
            true => Ok(prefix),
            false => Err(ParsePrefixError::HostBits { address, prefix }),
        }
    }
}

/// Returns the first address with the first `length` bits of another.
fn first_address(address: IpAddr, length: u8) -> IpAddr {
    let length = u32::from(length);
    match address {
        IpAddr::V4(address) => {
            let mask = u32::MAX.checked_shl(32 - length).unwrap_or(0);
            IpAddr::V4((u32::from(address) & mask).into())
        }
        IpAddr::V6(address) => {
            let mask = u128::MAX.checked_shl(128 - length).unwrap_or(0);
            IpAddr::V6((u128::from(address) & mask).into())
        }
    }
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn excluded(prefixes: &[&str], ports: &[u16], key: &str) -> bool {
        let prefixes = prefixes.iter().map(|text| text.parse().unwrap()).collect();
        Exclusions { prefixes, ports: ports.to_vec() }.contain(&key.parse().unwrap())
    }

    #[test]
    fn either_end_excludes_a_flow() {
        let key = "tcp 10.0.0.1:40000 > 192.0.2.7:22";
        assert!(excluded(&["192.0.2.0/24"], &[], key) && excluded(&["10.0.0.1"], &[], key));
        assert!(excluded(&["0.0.0.0/0"], &[], key) && excluded(&[], &[22], key));
        assert!(!excluded(&["192.0.3.0/24", "::/0"], &[23], key));
        let key = "udp [2001:db8::1]:53 > [2001:db9::1]:9";
        assert!(
            excluded(&["2001:db8::/32"], &[], key) && !excluded(&["2001:dba::/32", "0.0.0.0/0"], &[], key)
        );
        assert!(!excluded(&[], &[0], "esp 10.0.0.1 > 10.0.0.2"), "a protocol without ports");
    }

    #[test]
    fn invalid_prefixes_are_refused() {
        for text in ["", "10.0.0.0/33", "::/129", "10.0.0/8", "10.0.0.0/x"] {
            let error = text.parse::<Prefix>().unwrap_err().to_string();
            assert!(error.starts_with("invalid prefix"), "{error}");
        }
        for text in ["10.0.0.0/8", "0.0.0.0/0", "::/0", "2001:db8::1/128", "2001:db8::/32"] {
            assert_eq!(text.parse::<Prefix>().unwrap().to_string(), text);
        }
        for (text, prefix) in
            [("10.0.0.1/8", "10.0.0.0/8"), ("1.2.3.4/0", "0.0.0.0/0"), ("2001:db8::1/32", "2001:db8::/32")]
        {
            let error = text.parse::<Prefix>().unwrap_err().to_string();
            assert!(
                error.starts_with(&format!("{text} has bits after its length: expected {prefix} for")),
                "{error}"
            );
        }
    }
}
