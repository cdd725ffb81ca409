//! Addresses and prefixes in filters: `10.0.0.0/8`, `172.16/12`, `10.0.0.0 255.0.0.0`, `2001:db8::/32`.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use thalweg_wire::IpPrefix;

/// A prefix as filters read and print it: host bits are ignored, and an address alone has full length.
///
/// IPv4 and IPv6 never share an address: `::ffff:10.0.0.0/104` becomes `10.0.0.0/8`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Prefix(IpPrefix);

impl Prefix {
    /// Returns the prefix of `bits` that contains this address; `None` if the address has fewer bits.
    fn new(address: IpAddr, bits: u8) -> Option<Prefix> {
        Some(Prefix(IpPrefix::of(address, bits)?.unmapped()))
    }

    /// Parses an address or a prefix.
    pub(super) fn parse(word: &str) -> Option<Prefix> {
        match word.split_once('/') {
            Some((address, bits)) => Prefix::new(network_address(address)?, decimal(bits)?),
            None => Some(Prefix(IpPrefix::host(word.parse().ok()?).unmapped())),
        }
    }

    /// Parses an IPv4 address and its netmask, whose ones must come before its zeros.
    pub(super) fn parse_with_netmask(address: &str, mask: &str) -> Option<Prefix> {
        let address: Ipv4Addr = address.parse().ok()?;
        let mask = u32::from(mask.parse::<Ipv4Addr>().ok()?);
        let bits = mask.leading_ones();
        (mask.count_ones() == bits).then(|| Prefix::new(address.into(), bits as u8))?
    }
}

/// Parses the address before a slash. As in nfdump, octets after the first may be missing for IPv4.
fn network_address(text: &str) -> Option<IpAddr> {
    if text.contains(':') {
        return text.parse::<Ipv6Addr>().ok().map(IpAddr::V6);
    }
    let missing = 3_usize.checked_sub(text.matches('.').count())?;
    format!("{text}{}", ".0".repeat(missing)).parse::<Ipv4Addr>().ok().map(IpAddr::V4)
}

fn decimal(digits: &str) -> Option<u8> {
    let is_number = digits.len() <= 3 && digits.bytes().all(|digit| digit.is_ascii_digit());
    is_number.then(|| digits.parse().ok())?
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.is_host() {
            true => write!(f, "{}", self.0.network()),
            false => write!(f, "{}", self.0),
        }
    }
}

/// A set of addresses and prefixes. A lookup takes logarithmic time for addresses and linear time for prefixes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Networks {
    addresses: Box<[IpAddr]>,
    prefixes: Box<[Prefix]>,
}

impl Networks {
    pub(super) fn contain(&self, address: IpAddr) -> bool {
        self.addresses.binary_search(&address).is_ok()
            || self.prefixes.iter().any(|prefix| prefix.0.contains(address))
    }

    /// Returns the only element of a set of one.
    pub(super) fn only(&self) -> Option<Prefix> {
        let mut all = self.iter();
        all.next().filter(|_| all.next().is_none())
    }

    /// Returns the sorted addresses, then the sorted prefixes.
    pub(super) fn iter(&self) -> impl Iterator<Item = Prefix> {
        let address = |address: &IpAddr| Prefix(IpPrefix::host(*address));
        self.addresses.iter().map(address).chain(self.prefixes.iter().copied())
    }
}

impl From<Vec<Prefix>> for Networks {
    fn from(mut all: Vec<Prefix>) -> Networks {
        all.sort_unstable();
        all.dedup();
        let (addresses, prefixes): (Vec<_>, Vec<_>) = all.into_iter().partition(|prefix| prefix.0.is_host());
        let addresses = addresses.into_iter().map(|prefix| prefix.0.network()).collect();
        Networks { addresses, prefixes: prefixes.into() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_lose_their_host_bits() {
        for (text, printed) in [
            ("10.1.2.3/8", "10.0.0.0/8"),
            ("10.1.2.3/32", "10.1.2.3"),
            ("172.16/12", "172.16.0.0/12"),
            ("10/8", "10.0.0.0/8"),
            ("0.0.0.0/0", "0.0.0.0/0"),
            ("2001:DB8::1/32", "2001:db8::/32"),
            ("::/0", "::/0"),
            ("::1", "::1"),
            ("::ffff:10.0.0.0/104", "10.0.0.0/8"),
            ("::ffff:10.1.2.3", "10.1.2.3"),
            ("::ffff:0:0/95", "::fffe:0:0/95"),
        ] {
            assert_eq!(
                Prefix::parse(text).map(|prefix| prefix.to_string()).as_deref(),
                Some(printed),
                "{text}"
            );
        }
    }

    #[test]
    fn invalid_prefixes_are_refused() {
        for text in [
            "10.0.0.0/33",
            "10.0.0/",
            "10",
            "10.0.0",
            "1.2.3.4.5/8",
            "10.0.0.0/255.0.0.0",
            "10.0.0.256",
            "::/129",
            "fe80::1%eth0",
            "10.0.0.0/+8",
            "10..0/8",
            "/8",
            "",
            "010.0.0.1",
        ] {
            assert_eq!(Prefix::parse(text), None, "{text}");
        }
    }

    #[test]
    fn netmasks_have_ones_before_zeros() {
        let parse = Prefix::parse_with_netmask;
        assert_eq!(parse("10.1.2.3", "255.255.0.0"), Prefix::parse("10.1.0.0/16"));
        assert_eq!(parse("10.1.2.3", "0.0.0.0"), Prefix::parse("0.0.0.0/0"));
        assert_eq!(parse("10.1.2.3", "255.255.255.255"), Prefix::parse("10.1.2.3"));
        assert_eq!(parse("10.1.2.3", "255.0.255.0"), None);
        assert_eq!(parse("2001:db8::", "255.0.0.0"), None);
        assert_eq!(parse("10.1.2.3", "8"), None);
    }
}
