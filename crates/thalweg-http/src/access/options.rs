//! Where the API listens, what it demands, and its limits.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use super::AccessError;

/// Where the API listens, and what it demands of whoever asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessOptions {
    /// Address and port; port 0 for any that is free.
    pub listen: SocketAddr,
    /// File of tokens; without it nobody needs one.
    pub token_file: Option<PathBuf>,
    /// Chain of certificates, PEM, the server's own first.
    pub tls_certificate: Option<PathBuf>,
    /// Private key of the first of them, PEM.
    pub tls_key: Option<PathBuf>,
    /// Certificates of authorities, PEM; clients then need a certificate of one of them.
    pub client_ca: Option<PathBuf>,
    /// Names beside its own by which the machine may be asked when it listens on the loopback interface: those of a
    /// reverse proxy in front of it.
    pub hosts: Vec<String>,
    /// How much one may ask.
    pub limits: Limits,
}

/// How much one may ask. What is over a limit is refused, and counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Most bytes of a request's body.
    pub body_bytes: u64,
    /// Longest time for the head of a request to come, and for a TLS handshake.
    pub header_timeout: Duration,
    /// Longest time from the head of a request to its answer; events are not held to it.
    pub request_timeout: Duration,
    /// Requests a second that one peer may make on average. A peer is an IPv4 address, or the first 64 bits of an IPv6
    /// address.
    pub requests_per_second: u64,
    /// Requests that a peer may make at once.
    pub request_burst: u64,
    /// Connections at once, events included.
    pub connections: u64,
    /// Subscribers to events at once.
    pub subscribers: u64,
}

impl Default for AccessOptions {
    fn default() -> Self {
        AccessOptions {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, AccessOptions::DEFAULT_PORT)),
            token_file: None,
            tls_certificate: None,
            tls_key: None,
            client_ca: None,
            hosts: Vec::new(),
            limits: Limits::default(),
        }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            body_bytes: 4 << 20,
            header_timeout: Duration::from_secs(10),
            request_timeout: Duration::from_secs(30),
            requests_per_second: 100,
            request_burst: 200,
            connections: 1_280,
            subscribers: 1_024,
        }
    }
}

/// Key of a limit, its value, the least and the most it can be; times in milliseconds.
type Range = (&'static str, u64, u64, u64);

impl AccessOptions {
    /// The port unless configured otherwise.
    pub const DEFAULT_PORT: u16 = thalweg_api::DEFAULT_PORT;

    /// Whether only this machine can reach it.
    pub fn is_loopback(&self) -> bool {
        self.listen.ip().to_canonical().is_loopback()
    }

    /// Whether the options go together; files are not looked at.
    ///
    /// # Errors
    /// If they do not.
    pub fn check(&self) -> Result<(), AccessError> {
        let needs = |key, needs| Err(AccessError::Incomplete { key, needs });
        match (&self.tls_certificate, &self.tls_key) {
            (Some(_), None) => return needs("api.tls_certificate", "api.tls_key"),
            (None, Some(_)) => return needs("api.tls_key", "api.tls_certificate"),
            (None, None) if self.client_ca.is_some() => {
                return needs("api.client_ca", "api.tls_certificate and api.tls_key");
            }
            _ => {}
        }
        if !self.is_loopback() && self.token_file.is_none() && self.client_ca.is_none() {
            return Err(AccessError::Open { listen: self.listen });
        }
        self.limits.check()
    }
}

impl Limits {
    /// Whether each is in its range.
    ///
    /// # Errors
    /// With the first that is not.
    pub fn check(&self) -> Result<(), AccessError> {
        let wrong = |&(_, found, least, most): &Range| !(least..=most).contains(&found);
        match self.ranges().into_iter().find(|range| wrong(range)) {
            Some((key, found, least, most)) => Err(AccessError::Limit { key, found, least, most }),
            None => Ok(()),
        }
    }

    fn ranges(&self) -> [Range; 7] {
        let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        [
            ("max_body", self.body_bytes, 1_024, 1 << 30),
            ("header_timeout", millis(self.header_timeout), 10, 3_600_000),
            ("request_timeout", millis(self.request_timeout), 10, 3_600_000),
            ("requests_per_second", self.requests_per_second, 1, 1_000_000),
            ("request_burst", self.request_burst, 1, 1_000_000),
            ("max_connections", self.connections, 1, 1_000_000),
            ("max_subscribers", self.subscribers, 1, 1_000_000),
        ]
    }
}
