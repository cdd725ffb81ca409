//! The canonical bytes of a flow key under a definition: sketches hash, store and save these bytes.
//!
//! Numbers are in network byte order. IPv4 and IPv6 keys of one definition differ in length, so they are never equal;
//! a key contains neither its definition nor its IP version otherwise.
//!
//! | definition | IPv4 | IPv6 |
//! |---|---|---|
//! | `5tuple` | source 4, destination 4, source port 2, destination port 2, protocol 1: 13 bytes | 16, 16, 2, 2, 1: 37 bytes |
//! | `src`, `dst` | address 4 | address 16 |
//! | `src/n`, `dst/n` | address 4, host bits zero | address 16, host bits zero |
//! | `dst+port` | destination 4, destination port 2, protocol 1: 7 bytes | 16, 2, 1: 19 bytes |
//!
//! Ports are those of [`FlowKey`]: zero for protocols without ports.

use std::fmt;

use thalweg_sketch::{Key, WithTopK};
use thalweg_wire::{FlowKey, IpVersion};

use super::prefix::{PrefixLengths, Side};

/// A sketch of keys' weights, with the largest keys.
pub type Ranked<S> = WithTopK<S, FlowBytes>;

/// Up to 37 bytes that identify a flow.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FlowBytes {
    /// Zero beyond `length`.
    bytes: [u8; FlowBytes::MAX_LENGTH],
    length: u8,
}

impl FlowBytes {
    /// The length of the longest key, an IPv6 5-tuple.
    pub const MAX_LENGTH: usize = 37;

    /// Returns the first `length` bytes of a number in network byte order.
    #[inline(always)]
    fn of_number(number: u128, length: u8) -> FlowBytes {
        let mut bytes = [0; FlowBytes::MAX_LENGTH];
        bytes[..16].copy_from_slice(&number.to_be_bytes());
        FlowBytes { bytes, length }
    }

    #[inline(always)]
    pub(super) fn five_tuple(key: &FlowKey) -> FlowBytes {
        let (src, dst) = key.address_words();
        let rest =
            u128::from(key.src_port) << 24 | u128::from(key.dst_port) << 8 | u128::from(key.protocol.0);
        match key.version() {
            IpVersion::V4 => FlowBytes::of_number(u128::from(src[1] << 32 | dst[1]) << 64 | rest << 24, 13),
            IpVersion::V6 => {
                let mut bytes = [0; FlowBytes::MAX_LENGTH];
                bytes[..16].copy_from_slice(&number(src).to_be_bytes());
                bytes[16..32].copy_from_slice(&number(dst).to_be_bytes());
                bytes[32..].copy_from_slice(&rest.to_be_bytes()[11..]);
                FlowBytes { bytes, length: 37 }
            }
        }
    }

    #[inline(always)]
    pub(super) fn address(key: &FlowKey, side: Side) -> FlowBytes {
        let words = words_of(key, side);
        match key.version() {
            IpVersion::V4 => FlowBytes::of_number(u128::from(words[1]) << 96, 4),
            IpVersion::V6 => FlowBytes::of_number(number(words), 16),
        }
    }

    #[inline(always)]
    pub(super) fn prefix(key: &FlowKey, side: Side, lengths: PrefixLengths) -> FlowBytes {
        let words = words_of(key, side);
        // Both lengths are at least one, so no shift is by all bits.
        match key.version() {
            IpVersion::V4 => {
                let network = u128::from(words[1]) << 96 & u128::MAX << (128 - lengths.v4());
                FlowBytes::of_number(network, 4)
            }
            IpVersion::V6 => FlowBytes::of_number(number(words) & u128::MAX << (128 - lengths.v6()), 16),
        }
    }

    #[inline(always)]
    pub(super) fn destination_port(key: &FlowKey) -> FlowBytes {
        let (_, dst) = key.address_words();
        let rest = u128::from(key.dst_port) << 8 | u128::from(key.protocol.0);
        match key.version() {
            IpVersion::V4 => FlowBytes::of_number(u128::from(dst[1]) << 96 | rest << 72, 7),
            IpVersion::V6 => {
                let mut key = FlowBytes::of_number(number(dst), 19);
                key.bytes[16..19].copy_from_slice(&rest.to_be_bytes()[13..]);
                key
            }
        }
    }
}

#[inline(always)]
fn words_of(key: &FlowKey, side: Side) -> [u64; 2] {
    let (src, dst) = key.address_words();
    match side {
        Side::Source => src,
        Side::Destination => dst,
    }
}

#[inline(always)]
fn number([high, low]: [u64; 2]) -> u128 {
    u128::from(high) << 64 | u128::from(low)
}

impl Key for FlowBytes {
    #[inline(always)]
    fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length)]
    }

    fn from_bytes(bytes: &[u8]) -> Option<FlowBytes> {
        let mut key = FlowBytes::default();
        key.bytes.get_mut(..bytes.len())?.copy_from_slice(bytes);
        key.length = bytes.len() as u8;
        Some(key)
    }
}

/// The empty key.
impl Default for FlowBytes {
    fn default() -> FlowBytes {
        FlowBytes { bytes: [0; FlowBytes::MAX_LENGTH], length: 0 }
    }
}

/// Formats as hexadecimal digits.
impl fmt::Debug for FlowBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_bytes().iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}
