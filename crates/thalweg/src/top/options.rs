//! What to ask, and as whom.

use std::path::PathBuf;

use crate::serve::access::AccessOptions;

/// What `thalweg top` is to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopOptions {
    /// Address of the daemon's API: `http://HOST:PORT` or `https://HOST:PORT`.
    pub api: String,
    /// File with the token.
    pub token_file: Option<PathBuf>,
    /// Certificates of authorities to trust, PEM, in place of those that browsers trust.
    pub ca: Option<PathBuf>,
    /// Chain of certificates to show, PEM, the own first; and the file of its private key.
    pub client_certificate: Option<(PathBuf, PathBuf)>,
    /// How to show it.
    pub show: Show,
}

/// How to show what the daemon says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Show {
    /// Live, on the whole screen.
    LiveView,
    /// The links once, as a table.
    Once,
    /// The links once, as the API says them.
    Json,
}

impl TopOptions {
    /// Where a daemon listens unless configured otherwise.
    pub fn default_api() -> String {
        format!("http://{}", AccessOptions::default().listen)
    }
}

impl Default for TopOptions {
    fn default() -> Self {
        TopOptions {
            api: TopOptions::default_api(),
            token_file: None,
            ca: None,
            client_certificate: None,
            show: Show::LiveView,
        }
    }
}
