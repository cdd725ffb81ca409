//! The 5-tuple that identifies a flow: addresses, ports, protocol.
//!
//! A [`FlowKey`] identifies one direction. [`FlowKey::canonical`] returns the form that both directions share, and
//! [`FlowKey::symmetric_hash`] a hash that both share. IPv4 and IPv6 keys are never equal, even if the IPv6 address
//! maps an IPv4 address.
//!
//! Ports are those of TCP, UDP, SCTP, DCCP and UDP-Lite. ICMP echo uses its identifier as both ports (as in RFC 5508),
//! so a request and its reply are the two directions of a flow, and two pings are two flows. All other protocols have
//! ports zero.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::str::FromStr;

use thiserror::Error;

use crate::protocol::Protocol;

/// An address as a 128-bit number in two halves, high first; an IPv4 address uses the lowest 32 bits.
type Address = [u64; 2];

/// IP version, addresses, ports and protocol of one direction of a flow; 40 bytes.
///
/// Ordered by IP version, then source, destination, ports and protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FlowKey {
    version: IpVersion,
    src: Address,
    dst: Address,
    /// Source port, ICMP echo identifier, or zero.
    pub src_port: u16,
    /// Destination port, ICMP echo identifier, or zero.
    pub dst_port: u16,
    /// The protocol above IP.
    pub protocol: Protocol,
}

/// The IP version of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum IpVersion {
    /// RFC 791.
    V4 = 4,
    /// RFC 8200.
    V6 = 6,
}

/// The direction of a key relative to its canonical form.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Direction {
    /// As the canonical form: the source is the lower endpoint.
    Forward = 0,
    /// Opposite to the canonical form.
    Reverse = 1,
}

impl Direction {
    /// The other direction.
    pub const fn opposite(self) -> Direction {
        match self {
            Direction::Forward => Direction::Reverse,
            Direction::Reverse => Direction::Forward,
        }
    }
}

/// The secret of [`FlowKey::symmetric_hash`], without which nobody can construct colliding flows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HashSeed([u64; 3]);

impl HashSeed {
    /// Creates a seed from a number by SplitMix64 (Steele, Lea and Flood 2014), so that similar numbers give unrelated
    /// seeds.
    pub const fn new(number: u64) -> HashSeed {
        HashSeed([splitmix(number, 1), splitmix(number, 2), splitmix(number, 3)])
    }

    /// Creates a seed from 192 random bits.
    pub const fn from_words(words: [u64; 3]) -> HashSeed {
        HashSeed(words)
    }

    /// Hashes 128 bits to 64 bits.
    ///
    /// Folded multiplications as in wyhash (Wang Yi 2020), after XOR with the secret words. Equal on all machines for
    /// the same seed; not for storage.
    #[inline(always)]
    pub const fn hash_words(&self, a: u64, b: u64) -> u64 {
        let [s0, s1, s2] = self.0;
        fold(fold(a ^ s0, b ^ s1) ^ s2, s0)
    }
}

const fn splitmix(seed: u64, step: u64) -> u64 {
    let mut z = seed.wrapping_add(step.wrapping_mul(0x9E37_79B9_7F4A_7C15));
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

impl FlowKey {
    /// Creates an IPv4 key; addresses are numbers in host order (`10.0.0.1` is `0x0A00_0001`).
    #[inline]
    pub const fn v4(src: u32, dst: u32, src_port: u16, dst_port: u16, protocol: Protocol) -> FlowKey {
        let (src, dst) = ([0, src as u64], [0, dst as u64]);
        FlowKey { version: IpVersion::V4, src, dst, src_port, dst_port, protocol }
    }

    /// Creates an IPv6 key; addresses are numbers in host order.
    #[inline]
    pub const fn v6(src: u128, dst: u128, src_port: u16, dst_port: u16, protocol: Protocol) -> FlowKey {
        let (src, dst) = ([(src >> 64) as u64, src as u64], [(dst >> 64) as u64, dst as u64]);
        FlowKey { version: IpVersion::V6, src, dst, src_port, dst_port, protocol }
    }

    /// Creates a key; `None` if the addresses have different versions.
    pub fn new(
        src: IpAddr,
        dst: IpAddr,
        src_port: u16,
        dst_port: u16,
        protocol: Protocol,
    ) -> Option<FlowKey> {
        match (src, dst) {
            (IpAddr::V4(src), IpAddr::V4(dst)) => {
                Some(FlowKey::v4(src.into(), dst.into(), src_port, dst_port, protocol))
            }
            (IpAddr::V6(src), IpAddr::V6(dst)) => {
                Some(FlowKey::v6(src.into(), dst.into(), src_port, dst_port, protocol))
            }
            _ => None,
        }
    }

    /// The IP version.
    #[inline]
    pub const fn version(&self) -> IpVersion {
        self.version
    }

    /// The source address.
    pub fn src(&self) -> IpAddr {
        self.address(self.src)
    }

    /// The destination address.
    pub fn dst(&self) -> IpAddr {
        self.address(self.dst)
    }

    /// The source and destination addresses as numbers, each in two halves, high first.
    #[inline]
    pub const fn address_words(&self) -> ([u64; 2], [u64; 2]) {
        (self.src, self.dst)
    }

    fn address(&self, words: Address) -> IpAddr {
        match self.version {
            IpVersion::V4 => IpAddr::V4(Ipv4Addr::from(words[1] as u32)),
            IpVersion::V6 => IpAddr::V6(Ipv6Addr::from((u128::from(words[0]) << 64) | u128::from(words[1]))),
        }
    }

    /// Returns the key of the other direction.
    #[inline]
    #[must_use]
    pub const fn reversed(self) -> FlowKey {
        FlowKey { src: self.dst, dst: self.src, src_port: self.dst_port, dst_port: self.src_port, ..self }
    }

    /// Returns the key with other ports.
    #[inline]
    #[must_use]
    pub const fn with_ports(self, src_port: u16, dst_port: u16) -> FlowKey {
        FlowKey { src_port, dst_port, ..self }
    }

    /// Returns the direction: forward if (source, source port) is at most (destination, destination port).
    #[inline]
    pub fn direction(&self) -> Direction {
        match (self.src, self.src_port) <= (self.dst, self.dst_port) {
            true => Direction::Forward,
            false => Direction::Reverse,
        }
    }

    /// Returns the form that both directions share, with the lower endpoint first, and the direction of `self`.
    #[inline]
    pub fn canonical(self) -> (FlowKey, Direction) {
        match self.direction() {
            Direction::Forward => (self, Direction::Forward),
            Direction::Reverse => (self.reversed(), Direction::Reverse),
        }
    }

    /// Returns a 64-bit hash that both directions share (see [`HashSeed::hash_words`]).
    #[inline]
    pub fn symmetric_hash(&self, seed: &HashSeed) -> u64 {
        let source = (self.src, self.src_port);
        let destination = (self.dst, self.dst_port);
        let (low, high) = if source <= destination { (source, destination) } else { (destination, source) };
        let [s0, s1, s2] = seed.0;
        let kind = u64::from(self.protocol.0) << 48 | u64::from(self.version as u8) << 56;
        match self.version {
            IpVersion::V4 => {
                let low = low.0[1] << 16 | u64::from(low.1) | kind;
                let high = high.0[1] << 16 | u64::from(high.1);
                seed.hash_words(low, high)
            }
            IpVersion::V6 => {
                let ports = u64::from(low.1) << 16 | u64::from(high.1) | kind;
                let first = fold(low.0[0] ^ s0, low.0[1] ^ s1);
                let second = fold(high.0[0] ^ s1, high.0[1] ^ s2);
                fold(fold(first ^ ports, second ^ s0) ^ s2, s1)
            }
        }
    }
}

/// Returns the XOR of the halves of the 128-bit product.
#[inline]
const fn fold(a: u64, b: u64) -> u64 {
    let product = (a as u128).wrapping_mul(b as u128);
    product as u64 ^ (product >> 64) as u64
}

/// Displays `tcp 10.0.0.1:443 > 10.0.0.2:51000`, `udp [2001:db8::1]:53 > [2001:db8::2]:4096`, or without ports for
/// other protocols: `esp 10.0.0.1 > 10.0.0.2`.
impl fmt::Display for FlowKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = if self.protocol.has_ports() || self.src_port != 0 || self.dst_port != 0 {
            let (src, dst) = (self.src(), self.dst());
            let (src, dst) = (SocketAddr::new(src, self.src_port), SocketAddr::new(dst, self.dst_port));
            format!("{} {src} > {dst}", self.protocol)
        } else {
            format!("{} {} > {}", self.protocol, self.src(), self.dst())
        };
        f.pad(&text)
    }
}

/// The error of parsing a flow key.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error(
    "invalid flow `{text}`{}: expected e.g. tcp 10.0.0.1:443 > 10.0.0.2:51000 or udp [2001:db8::1]:53 > [2001:db8::2]:4096",
    no_port(.without_port)
)]
pub struct ParseFlowKeyError {
    /// The invalid text.
    pub text: String,
    /// The address that lacks its port, if that is the fault.
    pub without_port: Option<IpAddr>,
}

fn no_port(address: &Option<IpAddr>) -> String {
    address.map_or_else(String::new, |address| format!(": {address} has no port"))
}

impl FromStr for FlowKey {
    type Err = ParseFlowKeyError;

    /// Parses what [`Display`](fmt::Display) writes. Protocols with ports need both ports, others both or none.
    fn from_str(text: &str) -> Result<Self, ParseFlowKeyError> {
        parse_key(text).map_err(|without_port| ParseFlowKeyError { text: text.to_owned(), without_port })
    }
}

/// Returns the address that lacks its port as error, if that is the fault.
fn parse_key(text: &str) -> Result<FlowKey, Option<IpAddr>> {
    let (protocol, endpoints) = text.trim().split_once(char::is_whitespace).ok_or(None)?;
    let (src, dst) = endpoints.split_once('>').ok_or(None)?;
    let protocol: Protocol = protocol.parse().map_err(|()| None)?;
    let ends = [src, dst].map(|end| parse_endpoint(end.trim()));
    let [Some((src, src_port)), Some((dst, dst_port))] = ends else { return Err(None) };
    if protocol.has_ports() || src_port.is_some() != dst_port.is_some() {
        src_port.ok_or(Some(src))?;
        dst_port.ok_or(Some(dst))?;
    }
    FlowKey::new(src, dst, src_port.unwrap_or(0), dst_port.unwrap_or(0), protocol).ok_or(None)
}

fn parse_endpoint(text: &str) -> Option<(IpAddr, Option<u16>)> {
    if let Ok(address) = text.parse::<IpAddr>() {
        return Some((address, None));
    }
    let endpoint: SocketAddr = text.parse().ok()?;
    Some((endpoint.ip(), Some(endpoint.port())))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn any_key() -> impl Strategy<Value = FlowKey> {
        let v4 = (any::<u32>(), any::<u32>(), any::<u16>(), any::<u16>(), any::<u8>())
            .prop_map(|(s, d, sp, dp, p)| FlowKey::v4(s, d, sp, dp, Protocol(p)));
        let v6 = (any::<u128>(), any::<u128>(), any::<u16>(), any::<u16>(), any::<u8>())
            .prop_map(|(s, d, sp, dp, p)| FlowKey::v6(s, d, sp, dp, Protocol(p)));
        prop_oneof![v4, v6]
    }

    proptest! {
        #[test]
        fn a_printed_key_parses_back(key in any_key()) {
            prop_assert_eq!(key.to_string().parse(), Ok(key));
        }

        #[test]
        fn both_directions_share_canonical_form_and_hash(key in any_key(), seed in any::<u64>()) {
            let seed = HashSeed::new(seed);
            prop_assert_eq!(key.canonical().0, key.reversed().canonical().0);
            prop_assert_eq!(key.symmetric_hash(&seed), key.reversed().symmetric_hash(&seed));
            prop_assert_eq!(key.reversed().reversed(), key);
        }
    }

    #[test]
    fn a_mapped_address_differs_from_its_ipv4_address() {
        let mapped = FlowKey::v6(0xFFFF_0A00_0001, 0xFFFF_0A00_0002, 1, 2, Protocol::TCP);
        assert_ne!(mapped, FlowKey::v4(0x0A00_0001, 0x0A00_0002, 1, 2, Protocol::TCP));
        assert_eq!(mapped.to_string().parse(), Ok(mapped));
    }

    #[test]
    fn keys_have_the_documented_form() {
        let key = FlowKey::v4(0x0A00_0001, 0x0A00_0002, 443, 51000, Protocol::TCP);
        assert_eq!(key.to_string(), "tcp 10.0.0.1:443 > 10.0.0.2:51000");
        let key = FlowKey::v6(1, 2, 53, 4096, Protocol::UDP);
        assert_eq!(key.to_string(), "udp [::1]:53 > [::2]:4096");
        let key = FlowKey::v4(1, 2, 0, 0, Protocol(50));
        assert_eq!(key.to_string(), "esp 0.0.0.1 > 0.0.0.2");
        for wrong in ["", "tcp", "tcp 10.0.0.1:1", "tcp 10.0.0.1:1 > [::1]:2", "xyz 1.1.1.1 > 2.2.2.2"] {
            assert!(wrong.parse::<FlowKey>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_missing_port_is_not_port_zero() {
        for (text, address) in [
            ("tcp 10.0.0.4:1 > 10.0.0.1", "10.0.0.1"),
            ("udp 10.0.0.4 > 10.0.0.1:1", "10.0.0.4"),
            ("sctp 10.0.0.4 > 10.0.0.1", "10.0.0.4"),
            ("tcp [2001:db8::1]:53 > 2001:db8::2", "2001:db8::2"),
            ("icmp 10.0.0.4:7 > 10.0.0.1", "10.0.0.1"),
        ] {
            let error = text.parse::<FlowKey>().unwrap_err().to_string();
            let expected =
                format!("invalid flow `{text}`: {address} has no port: expected e.g. tcp 10.0.0.1:443 > ");
            assert!(error.starts_with(&expected), "{error}");
        }
        for text in
            ["tcp 10.0.0.4:0 > 10.0.0.1:0", "icmp 10.0.0.4:7 > 10.0.0.1:7", "icmp 10.0.0.4 > 10.0.0.1"]
        {
            assert_eq!(text.parse::<FlowKey>().unwrap().to_string(), text);
        }
    }

    /// 2^18 neighbouring keys in 2^12 bins, 64 expected per bin. A fair hash gives a chi-square of 4095 with a standard
    /// deviation of 90. The tolerance of eight deviations gives a false alarm with probability below 1e-12.
    #[test]
    fn neighbouring_keys_spread_evenly_over_high_and_low_bits() {
        let seed = HashSeed::new(1);
        let mut bins = [vec![0f64; 4096], vec![0f64; 4096]];
        for n in 0..1u32 << 18 {
            let key =
                FlowKey::v4(0x0A00_0000 + (n >> 9), 0xC0A8_0001, 1024 + (n & 511) as u16, 80, Protocol::TCP);
            let hash = key.symmetric_hash(&seed);
            bins[0][hash as usize % 4096] += 1.0;
            bins[1][(hash >> 52) as usize] += 1.0;
        }
        for bins in bins {
            let chi_square: f64 = bins.iter().map(|count| (count - 64.0).powi(2) / 64.0).sum();
            assert!((chi_square - 4095.0).abs() < 8.0 * 90.5, "{chi_square}");
        }
    }
}
