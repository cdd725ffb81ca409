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
        is_host.then_some(base)
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
