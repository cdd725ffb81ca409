//! Definitions of flow keys: which packets count as one flow.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use thalweg_sketch::Key;
use thalweg_wire::{FlowKey, Protocol};
use thiserror::Error;

use super::fields::hint;
use super::flow_bytes::FlowBytes;
use super::flow_name::FlowName;
use super::prefix::{PrefixLengths, Side};
use thalweg_wire::nearest::nearest;

/// The fields of a packet that identify its flow.
///
/// Written `5tuple`, `src`, `dst`, `dst+port`, `src/24`, `dst/16`, `src/24/56` (the second number is for IPv6).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum KeyDefinition {
    /// Addresses, ports and protocol: one direction of a flow.
    #[default]
    FiveTuple,
    /// One of the two addresses.
    Address(Side),
    /// Destination address, destination port and protocol: a service.
    DestinationPort,
    /// The first bits of an address: a network.
    Prefix(Side, PrefixLengths),
}

impl KeyDefinition {
    /// Returns the key of a packet with this 5-tuple.
    #[inline(always)]
    pub fn of(self, packet: &FlowKey) -> FlowBytes {
        match self {
            KeyDefinition::FiveTuple => FlowBytes::five_tuple(packet),
            KeyDefinition::Address(side) => FlowBytes::address(packet, side),
            KeyDefinition::DestinationPort => FlowBytes::destination_port(packet),
            KeyDefinition::Prefix(side, lengths) => FlowBytes::prefix(packet, side, lengths),
        }
    }

    /// Returns the meaning of a key's bytes under this definition; `None` if they are not a key of it.
    pub fn name(self, key: &FlowBytes) -> Option<FlowName> {
        let bytes = key.as_bytes();
        match self {
            KeyDefinition::FiveTuple => {
                let (addresses, rest) = bytes.split_at_checked(bytes.len().checked_sub(5)?)?;
                let (src, dst) = addresses.split_at(addresses.len() / 2);
                let [src_port, dst_port] = [port(&rest[..2])?, port(&rest[2..4])?];
                FlowKey::new(address(src)?, address(dst)?, src_port, dst_port, Protocol(rest[4]))
                    .map(FlowName::Flow)
            }
            KeyDefinition::Address(_) => address(bytes).map(FlowName::Address),
            KeyDefinition::DestinationPort => {
                let (destination, rest) = bytes.split_at_checked(bytes.len().checked_sub(3)?)?;
                let (address, port) = (address(destination)?, port(&rest[..2])?);
                Some(FlowName::Service { address, port, protocol: Protocol(rest[2]) })
            }
            KeyDefinition::Prefix(_, lengths) => {
                let address = address(bytes)?;
                let length = if address.is_ipv4() { lengths.v4() } else { lengths.v6() };
                Some(FlowName::Prefix { address, length })
            }
        }
    }

    /// Returns the side whose address or prefix is the key; `None` for other keys.
    pub const fn side(self) -> Option<Side> {
        match self {
            KeyDefinition::Address(side) | KeyDefinition::Prefix(side, _) => Some(side),
            KeyDefinition::FiveTuple | KeyDefinition::DestinationPort => None,
        }
    }
}

fn address(bytes: &[u8]) -> Option<IpAddr> {
    let v4 = |bytes: [u8; 4]| IpAddr::V4(Ipv4Addr::from(bytes));
    let v6 = |bytes: [u8; 16]| IpAddr::V6(Ipv6Addr::from(bytes));
    bytes.try_into().map(v4).or_else(|_| bytes.try_into().map(v6)).ok()
}

fn port(bytes: &[u8]) -> Option<u16> {
    bytes.try_into().map(u16::from_be_bytes).ok()
}

/// Formats as it is parsed, with the length for IPv6 only if it is not twice the other.
impl fmt::Display for KeyDefinition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            KeyDefinition::FiveTuple => f.pad("5tuple"),
            KeyDefinition::Address(side) => f.pad(side.name()),
            KeyDefinition::DestinationPort => f.pad("dst+port"),
            KeyDefinition::Prefix(side, lengths) => {
                let (v4, v6) = (lengths.v4(), lengths.v6());
                let text = match PrefixLengths::of_v4(v4) == Some(lengths) {
                    true => format!("{}/{v4}", side.name()),
                    false => format!("{}/{v4}/{v6}", side.name()),
                };
                f.pad(&text)
            }
        }
    }
}

/// Why a key definition could not be parsed.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum ParseKeyError {
    /// The definition is unknown.
    #[error("invalid flow key `{text}`{}: expected 5tuple, src, dst, dst+port, src/24 or dst/24", hint(*.nearest))]
    Unknown {
        /// The text.
        text: String,
        /// The most similar name, if any.
        nearest: Option<&'static str>,
    },
    /// The prefix length is out of range.
    #[error(
        "invalid prefix `{text}`: expected an IPv4 length of 1 to 32, optionally followed by / and an IPv6 length of 1 to 128, as in src/24 or src/24/56"
    )]
    Prefix {
        /// The text.
        text: String,
    },
}

impl FromStr for KeyDefinition {
    type Err = ParseKeyError;

    fn from_str(text: &str) -> Result<KeyDefinition, ParseKeyError> {
        const NAMES: [(&str, KeyDefinition); 4] = [
            ("5tuple", KeyDefinition::FiveTuple),
            ("src", KeyDefinition::Address(Side::Source)),
            ("dst", KeyDefinition::Address(Side::Destination)),
            ("dst+port", KeyDefinition::DestinationPort),
        ];
        if let Some((_, definition)) = NAMES.iter().find(|(name, _)| *name == text) {
            return Ok(*definition);
        }
        let prefix = [Side::Source, Side::Destination].into_iter().find_map(|side| {
            let lengths = text.strip_prefix(side.name())?.strip_prefix('/')?;
            Some(prefix_lengths(lengths).map(|lengths| KeyDefinition::Prefix(side, lengths)))
        });
        match prefix {
            Some(Some(definition)) => Ok(definition),
            Some(None) => Err(ParseKeyError::Prefix { text: text.to_owned() }),
            None => {
                let nearest = nearest(text, NAMES.iter().map(|(name, _)| *name));
                Err(ParseKeyError::Unknown { text: text.to_owned(), nearest })
            }
        }
    }
}

/// Parses `24` or `24/48`.
fn prefix_lengths(text: &str) -> Option<PrefixLengths> {
    match text.split_once('/') {
        Some((v4, v6)) => PrefixLengths::new(v4.parse().ok()?, v6.parse().ok()?),
        None => PrefixLengths::of_v4(text.parse().ok()?),
    }
}
