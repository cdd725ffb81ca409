//! Where to listen, as people write it: `2055`, `10.0.0.1:2055`, `[2001:db8::1]:6343`, `tcp:4739`, `tls:[::]:4740`.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

use thiserror::Error;

/// NetFlow has no assigned port; this one is what its exporters are shipped with.
pub const NETFLOW_PORT: u16 = 2055;
/// `ipfix` of IANA's registry (RFC 7011 section 10.1).
pub const IPFIX_PORT: u16 = 4739;
/// `ipfixs` of IANA's registry: IPFIX over TLS (RFC 7011 section 10.1).
pub const IPFIX_TLS_PORT: u16 = 4740;
/// `sflow` of IANA's registry.
pub const SFLOW_PORT: u16 = 6343;

/// How messages come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Protocol {
    /// A message a datagram, of any format.
    Udp,
    /// IPFIX over TCP.
    Tcp,
    /// IPFIX over TLS.
    Tls,
}

impl Protocol {
    const ALL: [Protocol; 3] = [Protocol::Udp, Protocol::Tcp, Protocol::Tls];

    /// As people write it.
    pub const fn name(self) -> &'static str {
        match self {
            Protocol::Udp => "udp",
            Protocol::Tcp => "tcp",
            Protocol::Tls => "tls",
        }
    }
}

/// Where to listen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Listen {
    /// How messages come.
    pub protocol: Protocol,
    /// On which address; `None` for all addresses, of IPv4 and IPv6.
    pub address: Option<IpAddr>,
    /// On which port; 0 lets the kernel choose one.
    pub port: u16,
}

/// A text that names no place to listen on.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error(
    "{text:?} is no place to listen on: expected [udp:|tcp:|tls:][ADDRESS:]PORT, such as 2055 or tcp:[::1]:4739"
)]
pub struct ParseListenError {
    /// The text.
    pub text: String,
}

impl Listen {
    /// The ports that exporters are shipped with, on all addresses: any format is read on each.
    pub const DEFAULT: [Listen; 3] =
        [Listen::udp(NETFLOW_PORT), Listen::udp(IPFIX_PORT), Listen::udp(SFLOW_PORT)];

    /// A UDP port on all addresses.
    pub const fn udp(port: u16) -> Listen {
        Listen { protocol: Protocol::Udp, address: None, port }
    }

    /// For the system: all addresses are those of IPv6, which take IPv4 in.
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
    fn places_read_as_they_print_and_may_leave_out_what_is_usual() {
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
    fn other_texts_are_refused_by_name() {
        for text in ["", "tcp:", "router:2055", "10.0.0.1", "2055/udp", "65536", "::1:2055x"] {
            assert!(text.parse::<Listen>().unwrap_err().to_string().contains(&format!("{text:?}")));
        }
    }
}
