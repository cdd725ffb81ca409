//! Options of access control: listen address, credentials and limits.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use super::AccessError;

/// Listen address, credentials and limits of the API.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessOptions {
    /// Listen address. Port 0 selects a free port.
    pub listen: SocketAddr,
    /// Token file; `None` if no tokens are needed.
    pub token_file: Option<PathBuf>,
    /// Server certificate chain in PEM, leaf first.
    pub tls_certificate: Option<PathBuf>,
    /// Private key of the server certificate in PEM.
    pub tls_key: Option<PathBuf>,
    /// CA certificates in PEM that must have issued client certificates.
    pub client_ca_file: Option<PathBuf>,
    /// Additional host names of requests on the loopback interface, such as those of a reverse proxy.
    pub hosts: Vec<String>,
    /// Limits.
    pub limits: Limits,
}

/// Limits of requests and connections. Those beyond a limit are refused and counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Maximum size of a request body.
    pub body_bytes: u64,
    /// Timeout of a request header, and of a TLS handshake.
    pub header_timeout: Duration,
    /// Timeout of a request. Event streams have none.
    pub request_timeout: Duration,
    /// Average request rate limit of one peer: an IPv4 address, or an IPv6 /64 prefix.
    pub requests_per_second: u64,
    /// Request burst limit of one peer.
    pub request_burst: u64,
    /// Maximum number of connections, event streams included.
    pub connections: u64,
    /// Maximum number of event streams.
    pub subscribers: u64,
}

impl Default for AccessOptions {
    fn default() -> Self {
        AccessOptions {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, AccessOptions::DEFAULT_PORT)),
            token_file: None,
            tls_certificate: None,
            tls_key: None,
            client_ca_file: None,
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

/// Key of a limit, its value, minimum and maximum. Times are in milliseconds.
type Range = (&'static str, u64, u64, u64);

impl AccessOptions {
    /// Default port.
    pub const DEFAULT_PORT: u16 = thalweg_api::DEFAULT_PORT;

    /// Whether the API listens on the loopback interface.
    pub fn is_loopback(&self) -> bool {
        self.listen.ip().to_canonical().is_loopback()
    }

    /// Checks that the options are consistent. Does not read files.
    ///
    /// # Errors
    /// If they are not.
    pub fn check(&self) -> Result<(), AccessError> {
        let missing = |key, required| Err(AccessError::MissingKey { key, required });
        match (&self.tls_certificate, &self.tls_key) {
            (Some(_), None) => return missing("api.tls_certificate", "api.tls_key"),
            (None, Some(_)) => return missing("api.tls_key", "api.tls_certificate"),
            (None, None) if self.client_ca_file.is_some() => {
                return missing("api.client_ca_file", "api.tls_certificate and api.tls_key");
            }
            _ => {}
        }
        if !self.is_loopback() && self.token_file.is_none() && self.client_ca_file.is_none() {
            return Err(AccessError::Unprotected { listen: self.listen });
        }
        self.limits.check()
    }
}

impl Limits {
    /// Checks that all limits are within their ranges.
    ///
    /// # Errors
    /// If one is not.
    pub fn check(&self) -> Result<(), AccessError> {
        let is_invalid = |&(_, found, min, max): &Range| !(min..=max).contains(&found);
        match self.ranges().into_iter().find(|range| is_invalid(range)) {
            Some((key, found, min, max)) => Err(AccessError::Limit { key, found, min, max }),
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
