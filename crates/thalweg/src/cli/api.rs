//! The options with which a command reaches the API of a daemon.

use std::path::PathBuf;

use clap::Args;
use thalweg_api::client::ClientOptions;

/// How to reach the daemon.
#[derive(Args, Debug)]
pub(super) struct ApiArgs {
    /// URL of the daemon's API: http://HOST:PORT or https://HOST:PORT.
    #[arg(long, value_name = "URL", default_value_t = ClientOptions::default_api())]
    api: String,

    /// File with the API token, readable only by you.
    ///
    /// Contains the token alone, or a line NAME SCOPE SECRET as in the daemon's token file. Needs the scope `read`.
    #[arg(long, value_name = "FILE", help_heading = "Access")]
    token_file: Option<PathBuf>,

    /// CA certificates to trust (PEM) instead of the public ones.
    #[arg(long, value_name = "FILE", help_heading = "Access")]
    ca_file: Option<PathBuf>,

    /// Client certificate chain (PEM), leaf first.
    #[arg(long, value_name = "FILE", help_heading = "Access", requires = "client_key")]
    client_certificate: Option<PathBuf>,

    /// Private key of the client certificate (PEM).
    #[arg(long, value_name = "FILE", help_heading = "Access", requires = "client_certificate")]
    client_key: Option<PathBuf>,
}

impl ApiArgs {
    /// Returns the options of a client.
    pub(super) fn options(self) -> ClientOptions {
        ClientOptions {
            api: self.api,
            token_file: self.token_file,
            ca: self.ca_file,
            client_certificate: self.client_certificate.zip(self.client_key),
        }
    }
}
