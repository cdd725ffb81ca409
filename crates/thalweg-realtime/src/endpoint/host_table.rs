//! Which endpoint of the emulated network has which addresses: a text file.
//!
//! ```text
//! # endpoint  addresses and prefixes
//! 0           10.0.0.1  fd00::1
//! 1           10.0.0.2  10.1.0.0/16
//! ```
//!
//! A line has the number of an endpoint, 0 to 65,535, and its addresses. `#` starts a comment. An endpoint may have
//! several lines. If prefixes contain each other, the longest one that contains an address decides.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fs;
use std::io;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use thalweg_wire::{IpPrefix, ParsePrefixError};
use thiserror::Error;

/// The maximum number of entries.
const MAX_ENTRIES: usize = 1 << 20;

/// The endpoints of addresses. A look-up takes as many hash look-ups as there are different lengths of prefixes of its IP version.
#[derive(Clone, Debug, Default)]
pub struct HostTable {
    endpoints: HashMap<IpPrefix, u16>,
    /// The lengths in use, longest first.
    ipv4_lengths: Vec<u8>,
    ipv6_lengths: Vec<u8>,
}

/// Why a table is invalid.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum HostTableError {
    /// The file cannot be read.
    #[error("cannot read the host table {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// A line is invalid.
    #[error("{}:{line}: {reason}", path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// The number of the line, from 1.
        line: usize,
        /// What is wrong.
        reason: LineError,
    },
    /// The file has no entries.
    #[error("{}: no entries: expected lines such as \"1 10.0.0.1\"", path.display())]
    Empty {
        /// The file.
        path: PathBuf,
    },
}

/// What is wrong with a line.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum LineError {
    /// The line does not start with the number of an endpoint.
    #[error("invalid endpoint {found:?}: expected a number from 0 to 65535")]
    Endpoint {
        /// The text.
        found: String,
    },
    /// The line has no address.
    #[error("endpoint {endpoint} has no address: expected one or more addresses or prefixes")]
    NoAddress {
        /// The endpoint.
        endpoint: u16,
    },
    /// An address is invalid.
    #[error("invalid address {found:?}: expected an IP address or a prefix, such as 10.0.0.1 or fd00::/64")]
    Address {
        /// The text.
        found: String,
    },
    /// A prefix has bits after its length.
    #[error("prefix {found} has bits after its length: expected {expected}")]
    Bits {
        /// The text.
        found: String,
        /// The prefix without them.
        expected: String,
    },
    /// An address or prefix has several entries.
    #[error("duplicate entry {found}: endpoint {endpoint} has it")]
    Duplicate {
        /// The text.
        found: String,
        /// The endpoint of the earlier entry.
        endpoint: u16,
    },
    /// The file is too long.
    #[error("more than {MAX_ENTRIES} entries")]
    TooMany,
}

impl HostTable {
    /// Reads a file.
    ///
    /// # Errors
    /// If the file cannot be read, the first invalid line, or if there is no entry.
    pub fn load(path: &Path) -> Result<HostTable, HostTableError> {
        let text = fs::read_to_string(path);
        let text = text.map_err(|source| HostTableError::Read { path: path.to_owned(), source })?;
        HostTable::parse(&text, path)
    }

    /// Reads the text of a file. `path` is for errors only.
    ///
    /// # Errors
    /// As [`load`](HostTable::load).
    pub fn parse(text: &str, path: &Path) -> Result<HostTable, HostTableError> {
        let mut table = HostTable::default();
        for (line, number) in text.lines().zip(1..) {
            let added = table.add_line(line);
            added.map_err(|reason| HostTableError::Line { path: path.to_owned(), line: number, reason })?;
        }
        match table.endpoints.is_empty() {
            true => Err(HostTableError::Empty { path: path.to_owned() }),
            false => Ok(table),
        }
    }

    fn add_line(&mut self, line: &str) -> Result<(), LineError> {
        let mut words = line.split('#').next().unwrap_or_default().split_whitespace();
        let Some(first) = words.next() else { return Ok(()) };
        let endpoint = first.parse().map_err(|_| LineError::Endpoint { found: first.to_owned() })?;
        let mut has_address = false;
        for word in words {
            has_address = true;
            self.add(endpoint, word)?;
        }
        if has_address { Ok(()) } else { Err(LineError::NoAddress { endpoint }) }
    }

    fn add(&mut self, endpoint: u16, text: &str) -> Result<(), LineError> {
        let prefix = parse(text)?;
        if self.endpoints.len() >= MAX_ENTRIES {
            return Err(LineError::TooMany);
        }
        match self.endpoints.entry(prefix) {
            Entry::Occupied(entry) => {
                return Err(LineError::Duplicate { found: text.to_owned(), endpoint: *entry.get() });
            }
            Entry::Vacant(entry) => drop(entry.insert(endpoint)),
        }
        let lengths = match prefix.network() {
            IpAddr::V4(_) => &mut self.ipv4_lengths,
            IpAddr::V6(_) => &mut self.ipv6_lengths,
        };
        if let Err(place) = lengths.binary_search_by(|length| prefix.length().cmp(length)) {
            lengths.insert(place, prefix.length());
        }
        Ok(())
    }

    /// The endpoint with this address.
    #[inline]
    pub fn endpoint_of(&self, address: IpAddr) -> Option<u16> {
        let address = address.to_canonical();
        let lengths = match address {
            IpAddr::V4(_) => &self.ipv4_lengths,
            IpAddr::V6(_) => &self.ipv6_lengths,
        };
        let mut prefixes = lengths.iter().filter_map(|&length| IpPrefix::of(address, length));
        prefixes.find_map(|prefix| self.endpoints.get(&prefix).copied())
    }

    /// Whether the endpoint has an entry.
    pub fn has_endpoint(&self, endpoint: u16) -> bool {
        self.endpoints.values().any(|&other| other == endpoint)
    }

    /// The number of entries.
    pub fn len(&self) -> usize {
        self.endpoints.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.endpoints.is_empty()
    }
}

/// Parses an address or a prefix. Those of IPv4-mapped IPv6 addresses are IPv4 ones.
fn parse(text: &str) -> Result<IpPrefix, LineError> {
    let prefix = text.parse::<IpPrefix>().map_err(|error| match error {
        ParsePrefixError::HostBits { prefix, .. } => {
            LineError::Bits { found: text.to_owned(), expected: prefix.to_string() }
        }
        _ => LineError::Address { found: text.to_owned() },
    })?;
    Ok(prefix.unmapped())
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, Ipv6Addr};

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn any_text_is_accepted_or_refused_without_panic(text in "([0-9]{1,6}( [0-9a-f.:/#]{0,12}){0,3}\n){0,5}") {
            if let Ok(table) = HostTable::parse(&text, Path::new("hosts")) {
                prop_assert!(!table.is_empty());
                table.endpoint_of(Ipv4Addr::LOCALHOST.into());
            }
        }

        #[test]
        fn an_address_is_found_by_each_of_its_prefixes(address: u128, is_ipv4: bool, length in 0..=128_u8) {
            let (ip, length) = match is_ipv4 {
                true => (IpAddr::V4(Ipv4Addr::from_bits(address as u32)), length % 33),
                false => (IpAddr::V6(Ipv6Addr::from_bits(address)), length),
            };
            let whole = if is_ipv4 { 32 } else { 128 };
            let prefix = IpPrefix::of(ip, length).unwrap();
            let table = HostTable::parse(&format!("7 {prefix}"), Path::new("hosts")).unwrap();
            prop_assert_eq!(table.endpoint_of(ip), Some(7));
            let last = 1_u128 << (whole - u32::from(length).max(1));
            let other = match ip {
                IpAddr::V4(ip) => IpAddr::V4(Ipv4Addr::from_bits(ip.to_bits() ^ last as u32)),
                IpAddr::V6(ip) => IpAddr::V6(Ipv6Addr::from_bits(ip.to_bits() ^ last)),
            };
            prop_assert_eq!(table.endpoint_of(other), (length == 0).then_some(7), "the last bit differs");
        }
    }

    fn table_of(text: &str) -> Result<HostTable, String> {
        HostTable::parse(text, Path::new("hosts")).map_err(|error| error.to_string())
    }

    #[test]
    fn the_longest_prefix_that_contains_an_address_decides() {
        let text =
            "# all\n0 10.0.0.0/8 ::/0\n1\t10.1.0.0/16   fd00::/64 # one\n\n2 10.1.2.3 fd00::3\n3 0.0.0.0/0";
        let table = table_of(text).unwrap();
        for (address, endpoint) in [
            ("10.9.9.9", 0),
            ("10.1.9.9", 1),
            ("10.1.2.3", 2),
            ("192.0.2.1", 3),
            ("fd00::3", 2),
            ("fd00::4", 1),
            ("2001:db8::1", 0),
        ] {
            assert_eq!(table.endpoint_of(address.parse().unwrap()), Some(endpoint), "{address}");
        }
        assert!(table.has_endpoint(3) && !table.has_endpoint(4) && table.len() == 7);
        let table = table_of("1 10.0.0.1").unwrap();
        assert_eq!(table.endpoint_of("10.0.0.2".parse().unwrap()), None);
        assert_eq!(table.endpoint_of("::1".parse().unwrap()), None);
        assert_eq!(table.endpoint_of("::ffff:10.0.0.1".parse().unwrap()), Some(1), "IPv4-mapped");
        let table = table_of("1 ::ffff:10.0.0.0/104 ::/0").unwrap();
        assert_eq!(table.endpoint_of("10.9.9.9".parse().unwrap()), Some(1));
        assert_eq!(table.endpoint_of("11.9.9.9".parse().unwrap()), None, "::/0 is IPv6");
    }

    #[test]
    fn an_invalid_entry_is_named_with_its_line() {
        for (text, expected) in [
            (
                "1 10.0.0.1\nh2 10.0.0.2",
                "hosts:2: invalid endpoint \"h2\": expected a number from 0 to 65535",
            ),
            ("65536 ::1", "hosts:1: invalid endpoint \"65536\": expected a number from 0 to 65535"),
            ("# a\n7 # b", "hosts:2: endpoint 7 has no address: expected one or more addresses or prefixes"),
            (
                "1 10.0.0.1/33",
                "hosts:1: invalid address \"10.0.0.1/33\": expected an IP address or a prefix, such as 10.0.0.1 or fd00::/64",
            ),
            ("1 10.0.0.1/8", "hosts:1: prefix 10.0.0.1/8 has bits after its length: expected 10.0.0.0/8"),
            ("1 fd00::1/16", "hosts:1: prefix fd00::1/16 has bits after its length: expected fd00::/16"),
            ("1 10.0.0.1\n2 ::1 10.0.0.1", "hosts:2: duplicate entry 10.0.0.1: endpoint 1 has it"),
            ("1 10.0.0.1\n2 10.0.0.1/32", "hosts:2: duplicate entry 10.0.0.1/32: endpoint 1 has it"),
            ("\n# nothing\n", "hosts: no entries: expected lines such as \"1 10.0.0.1\""),
        ] {
            assert_eq!(table_of(text).unwrap_err(), expected);
        }
        let error = HostTable::load(Path::new("/no/such/file")).unwrap_err().to_string();
        assert!(error.starts_with("cannot read the host table /no/such/file: No such file"), "{error}");
    }
}
