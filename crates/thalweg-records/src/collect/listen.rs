//! Parses listen addresses: `2055`, `10.0.0.1:2055`, `[2001:db8::1]:6343`, `tcp:4739`, `tls:[::]:4740`.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

use thiserror::Error;

/// The usual default port of NetFlow exporters; IANA assigns none.
pub const NETFLOW_PORT: u16 = 2055;
/// `ipfix` in IANA's registry (RFC 7011 section 10.1).
pub const IPFIX_PORT: u16 = 4739;
/// `ipfixs` in IANA's registry: IPFIX over TLS (RFC 7011 section 10.1).
pub const IPFIX_TLS_PORT: u16 = 4740;
/// `sflow` in IANA's registry.
pub const SFLOW_PORT: u16 = 6343;

/// Transport protocol of a listen address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Protocol {
    /// One message per datagram, in any format.
    Udp,
    /// IPFIX over TCP.
    Tcp,
    /// IPFIX over TLS.
    Tls,
}

impl Protocol {
    const ALL: [Protocol; 3] = [Protocol::Udp, Protocol::Tcp, Protocol::Tls];

    /// Returns the name used in listen addresses.
    pub const fn name(self) -> &'static str {
        match self {
            Protocol::Udp => "udp",
            Protocol::Tcp => "tcp",
            Protocol::Tls => "tls",
        }
    }
}

/// A listen address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Listen {
    /// Transport protocol.
    pub protocol: Protocol,
    /// IP address; `None` for all addresses, IPv4 and IPv6.
    pub address: Option<IpAddr>,
    /// Port; 0 lets the kernel choose one.
    pub port: u16,
}

/// An invalid listen address.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error(
    "invalid listen address {text:?}: expected [udp:|tcp:|tls:][ADDRESS:]PORT, with a numeric ADDRESS and a PORT from 0 to 65535, such as 2055 or tcp:[::1]:4739"
)]
pub struct ParseListenError {
    /// The text that was given.
    pub text: String,
}

impl Listen {
    /// The default ports of exporters, on all addresses. Every port accepts all formats.
    pub const DEFAULT: [Listen; 3] =
        [Listen::udp(NETFLOW_PORT), Listen::udp(IPFIX_PORT), Listen::udp(SFLOW_PORT)];

    /// Returns a UDP port on all addresses.
    pub const fn udp(port: u16) -> Listen {
        Listen { protocol: Protocol::Udp, address: None, port }
    }

    /// Returns the address to bind; all addresses are `[::]`, which includes IPv4.
    pub fn socket_address(&self) -> SocketAddr {
        SocketAddr::new(self.address.unwrap_or(IpAddr::V6(std::net::Ipv6Addr::UNSPECIFIED)), self.port)
    }
}

impl FromStr for Listen {
    type Err = ParseListenError;

    fn from_str(text: &str) -> Result<Listen, ParseListenError> {
        let split =
            |protocol: Protocol| Some((protocol, text.strip_prefix(protocol.name())?.strip_prefix(':')?));
        let (protocol, place) = Protocol::ALL.into_iter().find_map(split).unwrap_or((Protocol::Udp, text));
        if let Ok(port) = place.strip_prefix(':').unwrap_or(place).parse() {
            return Ok(Listen { protocol, address: None, port });
        }
        let address: SocketAddr = place.parse().map_err(|_| ParseListenError { text: text.to_owned() })?;
        Ok(Listen { protocol, address: Some(address.ip()), port: address.port() })
    }
}

/// `udp:2055`, `tcp:[::1]:4739`.
impl fmt::Display for Listen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Listen { protocol, address, port } = *self;
        match address {
            None => write!(f, "{}:{port}", protocol.name()),
            Some(address) => write!(f, "{}:{}", protocol.name(), SocketAddr::new(address, port)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn listen_addresses_round_trip_and_default_to_udp() {
        for (text, printed) in [
            ("2055", "udp:2055"),
            (":2055", "udp:2055"),
            ("udp:10.0.0.1:9995", "udp:10.0.0.1:9995"),
            ("[2001:db8::1]:6343", "udp:[2001:db8::1]:6343"),
            ("tcp:4739", "tcp:4739"),
            ("tls:[::1]:4740", "tls:[::1]:4740"),
        ] {
            let listen: Listen = text.parse().unwrap();
            assert_eq!(listen.to_string(), printed, "{text}");
            assert_eq!(printed.parse(), Ok(listen));
        }
    }

    #[test]
    fn invalid_addresses_are_rejected() {
        for text in ["", "tcp:", "router:2055", "10.0.0.1", "2055/udp", "65536", "::1:2055x"] {
            assert!(text.parse::<Listen>().unwrap_err().to_string().contains(&format!("{text:?}")));
        }
    }
}
