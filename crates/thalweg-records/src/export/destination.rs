//! Where records are exported to.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

/// How messages travel (RFC 7011 section 10; SCTP is not spoken here).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// Datagrams: nobody waits, and what is lost is lost.
    Udp,
    /// A stream.
    Tcp,
    /// A stream, encrypted (RFC 7011 section 11.1).
    Tls,
}

impl Transport {
    /// All of them.
    const ALL: [Transport; 3] = [Transport::Udp, Transport::Tcp, Transport::Tls];

    /// As in front of `://`.
    pub const fn name(self) -> &'static str {
        match self {
            Transport::Udp => "udp",
            Transport::Tcp => "tcp",
            Transport::Tls => "tls",
        }
    }

    /// IANA's port: `ipfix`, or `ipfixs` (RFC 7011 section 10.1).
    pub const fn default_port(self) -> u16 {
        match self {
            Transport::Udp | Transport::Tcp => 4739,
            Transport::Tls => 4740,
        }
    }
}

/// A collector's address: `host`, `host:port`, `tcp://host`, `tls://[2001:db8::1]:4740`; UDP unless it says otherwise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Destination {
    /// How to send.
    pub transport: Transport,
    /// Name or address, IPv6 without brackets. For TLS also who the collector's certificate is to be for.
    pub host: String,
    /// Port.
    pub port: u16,
}

/// Why a text is no destination.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error(
    "`{text}` is no collector: expected [udp://|tcp://|tls://]HOST[:PORT], as in 10.0.0.1:4739 or tcp://[::1]"
)]
pub struct ParseDestinationError {
    /// What was typed.
    pub text: String,
}

impl FromStr for Destination {
    type Err = ParseDestinationError;

    fn from_str(text: &str) -> Result<Destination, ParseDestinationError> {
        parse(text).ok_or_else(|| ParseDestinationError { text: text.to_owned() })
    }
}

fn parse(text: &str) -> Option<Destination> {
    let (transport, place) = match text.split_once("://") {
        Some((name, place)) => (Transport::ALL.into_iter().find(|t| t.name() == name)?, place),
        None => (Transport::Udp, text),
    };
    let (host, port) = match place.strip_prefix('[') {
        Some(rest) => {
            let (host, rest) = rest.split_once(']')?;
            host.parse::<std::net::Ipv6Addr>().ok()?;
            (host, if rest.is_empty() { None } else { Some(rest.strip_prefix(':')?) })
        }
        None => place.split_once(':').map_or((place, None), |(host, port)| (host, Some(port))),
    };
    let port = match port {
        Some(port) => port.parse().ok().filter(|port| *port != 0)?,
        None => transport.default_port(),
    };
    let is_host = |host: &str| !host.is_empty() && !host.contains(|c: char| c == '/' || c.is_whitespace());
    is_host(host).then(|| Destination { transport, host: host.to_owned(), port })
}

/// As it can be typed.
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
    fn a_destination_is_read_as_people_write_it() {
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
    fn what_is_no_destination_is_refused() {
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
