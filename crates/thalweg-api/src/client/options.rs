//! Which daemon to talk to, and as whom.

use std::path::PathBuf;

use crate::DEFAULT_PORT;

/// How to reach a daemon.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientOptions {
    /// Address of its API: `http://HOST:PORT` or `https://HOST:PORT`.
    pub api: String,
    /// File with the token.
    pub token_file: Option<PathBuf>,
    /// Certificates of authorities to trust, PEM, in place of those that browsers trust.
    pub ca: Option<PathBuf>,
    /// Chain of certificates to show, PEM, the own first; and the file of its private key.
    pub client_certificate: Option<(PathBuf, PathBuf)>,
}

impl ClientOptions {
    /// Where a daemon listens unless configured otherwise.
    pub fn default_api() -> String {
        format!("http://127.0.0.1:{DEFAULT_PORT}")
    }

    /// The address without a slash at the end; `None` if it is none.
    pub fn base(&self) -> Option<&str> {
        let base = self.api.trim_end_matches('/');
        let host = base.strip_prefix("http://").or(base.strip_prefix("https://"))?;
        let is_host = !host.is_empty() && !host.contains(['/', '?', '#', ' ']);
        is_host.then_some(base)
    }

    /// The daemon at this address, without a token.
    pub fn at(api: impl Into<String>) -> ClientOptions {
        ClientOptions { api: api.into(), token_file: None, ca: None, client_certificate: None }
    }
}

impl Default for ClientOptions {
    fn default() -> Self {
        ClientOptions::at(ClientOptions::default_api())
    }
}
