//! The flow filter of live views: words separated by blanks, all of which must match.
//!
//! | word | matches a flow |
//! |---|---|
//! | `10.0.0.1`, `2001:db8::1` | with this address at either end |
//! | `10.0.0.1:443`, `[::1]:53` | with this address and this port at the same end |
//! | `10.0.0.0/8`, `2001:db8::/32` | with an address of this prefix at either end |
//! | `443`, `:443`, `port 443` | with this port at either end |
//! | `tcp`, `udp`, `icmp`, `proto-50` | of this protocol |
//! | `cheetah` | that is a cheetah flow now, in either direction |
//!
//! Each word is matched against both ends separately: `10.0.0.1 443` also matches a flow from 10.0.0.1 to port 443 of
//! another host. A bare number is a port, never a protocol number. Bits of a prefix beyond its length are ignored. The
//! empty filter matches every flow. Matching takes a few comparisons per word and allocates nothing.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

use thalweg_wire::{FlowKey, IpVersion, Protocol};
use thiserror::Error;

/// A filter of flows. Parsed with [`FromStr`]; its printed form parses to the same filter.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FlowFilter {
    words: Vec<Word>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Word {
    Prefix(Prefix),
    Endpoint(Prefix, u16),
    Port(u16),
    Protocol(Protocol),
    Cheetah,
}

/// Addresses that share their first `length` bits. A single address is a prefix of full length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Prefix {
    version: IpVersion,
    network: [u64; 2],
    mask: [u64; 2],
    length: u8,
}

impl FlowFilter {
    /// Whether the filter is empty and matches every flow.
    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// Whether every word matches the flow, whatever the direction of `key`. `cheetah` is whether either direction is
    /// currently a cheetah flow.
    pub fn matches(&self, key: &FlowKey, cheetah: bool) -> bool {
        self.words.iter().all(|word| match word {
            Word::Prefix(prefix) => prefix.has_end_of(key, None),
            Word::Endpoint(address, port) => address.has_end_of(key, Some(*port)),
            Word::Port(port) => key.src_port == *port || key.dst_port == *port,
            Word::Protocol(protocol) => key.protocol == *protocol,
            Word::Cheetah => cheetah,
        })
    }
}

impl Prefix {
    /// Returns `None` if the length exceeds that of the address.
    fn new(address: IpAddr, length: u8) -> Option<Prefix> {
        let full = Prefix::of_address(address);
        let free = u32::from(full.length.checked_sub(length)?);
        let mask = words_of(u128::MAX.checked_shl(free).unwrap_or(0));
        let network = [full.network[0] & mask[0], full.network[1] & mask[1]];
        Some(Prefix { network, mask, length, ..full })
    }

    fn of_address(address: IpAddr) -> Prefix {
        let (version, number, length) = match address {
            IpAddr::V4(address) => (IpVersion::V4, u128::from(u32::from(address)), 32),
            IpAddr::V6(address) => (IpVersion::V6, u128::from(address), 128),
        };
        Prefix { version, network: words_of(number), mask: [u64::MAX; 2], length }
    }

    /// Whether the prefix contains an address of the flow whose end has the given port, if any.
    fn has_end_of(&self, key: &FlowKey, port: Option<u16>) -> bool {
        let has = |address: [u64; 2], its_port: u16| {
            address[0] & self.mask[0] == self.network[0]
                && address[1] & self.mask[1] == self.network[1]
                && port.is_none_or(|port| port == its_port)
        };
        let (src, dst) = key.address_words();
        key.version() == self.version && (has(src, key.src_port) || has(dst, key.dst_port))
    }
}

fn words_of(number: u128) -> [u64; 2] {
    [(number >> 64) as u64, number as u64]
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [high, low] = self.network;
        let address = match self.version {
            IpVersion::V4 => IpAddr::V4((low as u32).into()),
            IpVersion::V6 => IpAddr::V6((u128::from(high) << 64 | u128::from(low)).into()),
        };
        match self.mask == [u64::MAX; 2] {
            true => write!(f, "{address}"),
            false => write!(f, "{address}/{}", self.length),
        }
    }
}

impl fmt::Display for Word {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Word::Prefix(prefix) => prefix.fmt(f),
            Word::Endpoint(address, port) => match address.version {
                IpVersion::V4 => write!(f, "{address}:{port}"),
                IpVersion::V6 => write!(f, "[{address}]:{port}"),
            },
            Word::Port(port) => write!(f, ":{port}"),
            Word::Protocol(protocol) => protocol.fmt(f),
            Word::Cheetah => f.write_str("cheetah"),
        }
    }
}

impl fmt::Display for FlowFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words: Vec<String> = self.words.iter().map(Word::to_string).collect();
        f.pad(&words.join(" "))
    }
}

/// A filter that cannot be parsed. Each error names the word.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum FlowFilterError {
    /// An unknown word.
    #[error("`{word}`: expected an address, prefix, port, protocol or `cheetah`")]
    UnknownWord {
        /// The word.
        word: String,
    },
    /// Invalid address before the slash.
    #[error("`{word}`: expected an address before the slash, such as 10.0.0.0/8")]
    PrefixAddress {
        /// The word.
        word: String,
    },
    /// Invalid length after the slash.
    #[error("`{word}`: expected a prefix length from 0 to {max}")]
    PrefixLength {
        /// The word.
        word: String,
        /// 32 for IPv4, 128 for IPv6.
        max: u8,
    },
    /// Invalid port.
    #[error("`{word}`: expected a port from 0 to 65535")]
    Port {
        /// The port.
        word: String,
    },
    /// `port` is the last word.
    #[error("expected a number after `port`")]
    PortMissing,
}

impl FromStr for FlowFilter {
    type Err = FlowFilterError;

    fn from_str(text: &str) -> Result<Self, FlowFilterError> {
        let mut typed = text.split_whitespace();
        let mut words = Vec::new();
        while let Some(word) = typed.next() {
            words.push(match word.eq_ignore_ascii_case("port") {
                true => parse_port(typed.next().ok_or(FlowFilterError::PortMissing)?)?,
                false => parse_word(word)?,
            });
        }
        Ok(FlowFilter { words })
    }
}

fn parse_word(word: &str) -> Result<Word, FlowFilterError> {
    if word.eq_ignore_ascii_case("cheetah") {
        return Ok(Word::Cheetah);
    }
    if let Some((address, length)) = word.split_once('/') {
        return parse_prefix(word, address, length);
    }
    // `::1` and `:443` both start with a colon, so try addresses first.
    if let Ok(address) = word.parse::<IpAddr>() {
        return Ok(Word::Prefix(Prefix::of_address(address)));
    }
    if let Ok(endpoint) = word.parse::<SocketAddr>() {
        return Ok(Word::Endpoint(Prefix::of_address(endpoint.ip()), endpoint.port()));
    }
    let digits = word.strip_prefix(':').unwrap_or(word);
    if digits.starts_with(|c: char| c.is_ascii_digit()) && !digits.contains(['.', ':']) {
        return parse_port(digits);
    }
    word.parse().map(Word::Protocol).map_err(|()| unknown(word))
}

fn unknown(word: &str) -> FlowFilterError {
    FlowFilterError::UnknownWord { word: word.to_owned() }
}

fn parse_prefix(word: &str, address: &str, length: &str) -> Result<Word, FlowFilterError> {
    let address: IpAddr =
        address.parse().map_err(|_| FlowFilterError::PrefixAddress { word: word.to_owned() })?;
    let max = if address.is_ipv4() { 32 } else { 128 };
    let prefix = length.parse().ok().and_then(|length| Prefix::new(address, length));
    prefix.map(Word::Prefix).ok_or_else(|| FlowFilterError::PrefixLength { word: word.to_owned(), max })
}

fn parse_port(word: &str) -> Result<Word, FlowFilterError> {
    let digits = word.strip_prefix(':').unwrap_or(word);
    digits.parse().map(Word::Port).map_err(|_| FlowFilterError::Port { word: word.to_owned() })
}

#[cfg(test)]
mod tests;
