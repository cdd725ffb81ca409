//! Options of a client.

use std::path::PathBuf;

use crate::DEFAULT_PORT;

/// How to reach a daemon.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientOptions {
    /// URL of the API: `http://HOST:PORT` or `https://HOST:PORT`.
    pub api: String,
    /// File with the token.
    pub token_file: Option<PathBuf>,
    /// File with trusted CA certificates in PEM format, instead of the built-in ones.
    pub ca: Option<PathBuf>,
    /// File with the client's certificate chain in PEM format, leaf first, and the file with its private key.
    pub client_certificate: Option<(PathBuf, PathBuf)>,
}

impl ClientOptions {
    /// Returns the URL of a daemon with the default configuration.
    pub fn default_api() -> String {
        format!("http://127.0.0.1:{DEFAULT_PORT}")
    }

    /// Returns the URL without a trailing slash; `None` if it is invalid.
    pub fn base(&self) -> Option<&str> {
        let base = self.api.trim_end_matches('/');
        let host = base.strip_prefix("http://").or(base.strip_prefix("https://"))?;
        let is_host = !host.is_empty() && !host.contains(['/', '?', '#', ' ']);
        (is_host && has_valid_port(host)).then_some(base)
    }

    /// Returns the options for the daemon at this URL, without a token.
    pub fn at(api: impl Into<String>) -> ClientOptions {
        ClientOptions { api: api.into(), token_file: None, ca: None, client_certificate: None }
    }
}

impl Default for ClientOptions {
    fn default() -> Self {
        ClientOptions::at(ClientOptions::default_api())
    }
}

/// Whether the port after a host name or an address, if any, is from 1 to 65535. An IPv6 address is in brackets.
fn has_valid_port(host: &str) -> bool {
    let after_address = host.rsplit_once(']').map_or(host, |(_, rest)| rest);
    after_address.rsplit_once(':').is_none_or(|(_, port)| port.parse().is_ok_and(|port: u16| port > 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_from_1_to_65535() {
        let is_valid = |url: &str| ClientOptions::at(url).base().is_some();
        for url in ["http://a", "http://a:1", "https://[::1]", "https://[::1]:65535/"] {
            assert!(is_valid(url), "{url}");
        }
        for url in ["http://a:0", "http://a:", "http://127.0.0.1:99999", "http://[::1]:x", "a:1"] {
            assert!(!is_valid(url), "{url}");
        }
    }
}
