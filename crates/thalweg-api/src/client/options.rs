//! Options of a client.

use std::fmt;
use std::path::PathBuf;

use thalweg_wire::WebUrl;
use thalweg_wire::web_url::hide_secrets;

use crate::DEFAULT_PORT;

/// How to reach a daemon.
#[derive(Clone, PartialEq, Eq)]
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

    /// Returns the URL without a trailing slash; `None` if it is invalid, or has a user: the API knows tokens only.
    pub fn base(&self) -> Option<&str> {
        let base = self.api.trim_end_matches('/');
        let url: WebUrl = base.parse().ok()?;
        (url.after_host().is_empty() && !url.has_user()).then_some(base)
    }

    /// Returns the URL for messages, even if it is invalid: without user, password and query.
    pub fn shown_api(&self) -> String {
        hide_secrets(&self.api)
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

impl fmt::Debug for ClientOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ClientOptions { api: _, token_file, ca, client_certificate } = self;
        f.debug_struct("ClientOptions")
            .field("api", &self.shown_api())
            .field("token_file", token_file)
            .field("ca", ca)
            .field("client_certificate", client_certificate)
            .finish()
    }
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
        for url in
            ["http://a:0", "http://a:", "http://127.0.0.1:99999", "http://[::1]:x", "a:1", "https://[::1"]
        {
            assert!(!is_valid(url), "{url}");
        }
    }

    #[test]
    fn a_user_is_refused_and_not_shown() {
        let options = ClientOptions::at("https://user:geheim@host");
        assert_eq!(options.base(), None);
        assert!(!format!("{options:?}").contains("geheim"));
        assert_eq!(options.shown_api(), "https://***@host");
    }
}
