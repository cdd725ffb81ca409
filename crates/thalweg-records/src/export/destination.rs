//! The address of an IPFIX collector.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

/// Transport protocol (RFC 7011 section 10; SCTP is not supported).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// Datagrams, without retransmission.
    Udp,
    /// A TCP stream.
    Tcp,
    /// A TLS stream (RFC 7011 section 11.1).
    Tls,
}

impl Transport {
    /// All transports.
    const ALL: [Transport; 3] = [Transport::Udp, Transport::Tcp, Transport::Tls];

    /// Returns the URL scheme.
    pub const fn name(self) -> &'static str {
        match self {
            Transport::Udp => "udp",
            Transport::Tcp => "tcp",
            Transport::Tls => "tls",
        }
    }

    /// Returns the port assigned by IANA: `ipfix`, or `ipfixs` (RFC 7011 section 10.1).
    pub const fn default_port(self) -> u16 {
        match self {
            Transport::Udp | Transport::Tcp => 4739,
            Transport::Tls => 4740,
        }
    }
}

/// A collector's address: `host`, `host:port`, `tcp://host`, `tls://[2001:db8::1]:4740`. The default is UDP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Destination {
    /// Transport protocol.
    pub transport: Transport,
    /// Host name or address, IPv6 without brackets. With TLS, the name that the collector's certificate must have.
    pub host: String,
    /// Port.
    pub port: u16,
}

/// An invalid collector address.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error(
    "invalid collector address {text:?}: expected [udp://|tcp://|tls://]HOST[:PORT], such as 10.0.0.1:4739 or tcp://[::1]"
)]
pub struct ParseDestinationError {
    /// The text that was given.
    pub text: String,
}

impl FromStr for Destination {
    type Err = ParseDestinationError;

    fn from_str(text: &str) -> Result<Destination, ParseDestinationError> {
        parse(text).ok_or_else(|| ParseDestinationError { text: text.to_owned() })
    }
}

fn parse(text: &str) -> Option<Destination> {
    let (transport, address) = match text.split_once("://") {
        Some((name, address)) => (Transport::ALL.into_iter().find(|t| t.name() == name)?, address),
        None => (Transport::Udp, text),
    };
    let (host, port) = match address.strip_prefix('[') {
        Some(rest) => {
            let (host, rest) = rest.split_once(']')?;
            host.parse::<std::net::Ipv6Addr>().ok()?;
            (host, if rest.is_empty() { None } else { Some(rest.strip_prefix(':')?) })
        }
        None => address.split_once(':').map_or((address, None), |(host, port)| (host, Some(port))),
    };
    let port = match port {
        Some(port) => port.parse().ok().filter(|port| *port != 0)?,
        None => transport.default_port(),
    };
    let is_host = |host: &str| !host.is_empty() && !host.contains(|c: char| c == '/' || c.is_whitespace());
    is_host(host).then(|| Destination { transport, host: host.to_owned(), port })
}

/// Formats the address so that it can be parsed again.
impl fmt::Display for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Destination { transport, host, port } = self;
        match host.contains(':') {
            true => write!(f, "{}://[{host}]:{port}", transport.name()),
            false => write!(f, "{}://{host}:{port}", transport.name()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_round_trip_and_have_default_ports() {
        for (text, whole) in [
            ("10.0.0.1:2055", "udp://10.0.0.1:2055"),
            ("collector.example", "udp://collector.example:4739"),
            ("tcp://[::1]", "tcp://[::1]:4739"),
            ("tls://collector.example", "tls://collector.example:4740"),
            ("udp://[2001:db8::1]:9995", "udp://[2001:db8::1]:9995"),
        ] {
            let destination: Destination = text.parse().unwrap();
            assert_eq!(destination.to_string(), whole);
            assert_eq!(whole.parse(), Ok(destination));
        }
    }

    #[test]
    fn invalid_addresses_are_rejected() {
        for text in [
            "",
            ":4739",
            "host:0",
            "host:70000",
            "host:x",
            "sctp://host",
            "::1",
            "[::1",
            "[host]:1",
            "a b",
            "h/x",
        ] {
            assert_eq!(text.parse::<Destination>(), Err(ParseDestinationError { text: text.to_owned() }));
        }
    }
}
