//! `thalweg top`.

use std::io::{self, IsTerminal};
use std::path::PathBuf;

use clap::Args;
use thalweg_api::client::ClientOptions;

use crate::top::{self, Show, TopOptions};

/// Watch a running daemon: links by utilisation, flows on a link, events.
///
/// Asks a daemon that `thalweg serve` runs, here or on another machine, four times a second, and shows what it says on the
/// whole screen, with its events as they come. Where standard output is no terminal, it prints the links once.
#[derive(Args, Debug)]
pub(super) struct TopArgs {
    /// Address of the daemon's API: http://HOST:PORT or https://HOST:PORT.
    #[arg(long, value_name = "URL", default_value_t = ClientOptions::default_api())]
    api: String,

    /// Print the links once, as a table.
    #[arg(long, conflicts_with = "json")]
    once: bool,

    /// Print the links once, as the API says them: one JSON object.
    #[arg(long)]
    json: bool,

    /// A file with the token, which nobody else can read.
    ///
    /// A token by itself, or a line NAME SCOPE SECRET as in the daemon's own file. The scope read is enough.
    #[arg(long, value_name = "FILE", help_heading = "Access")]
    token_file: Option<PathBuf>,

    /// Certificates of the authorities to trust, PEM, in place of those that browsers trust.
    #[arg(long, value_name = "FILE", help_heading = "Access")]
    ca: Option<PathBuf>,

    /// A chain of certificates to show, PEM, the own first.
    #[arg(long, value_name = "FILE", help_heading = "Access", requires = "client_key")]
    client_certificate: Option<PathBuf>,

    /// The private key of that certificate, PEM.
    #[arg(long, value_name = "FILE", help_heading = "Access", requires = "client_certificate")]
    client_key: Option<PathBuf>,
}

impl TopArgs {
    /// Does it.
    ///
    /// # Errors
    /// As [`top::run`].
    pub(super) fn run(self) -> anyhow::Result<()> {
        match top::run(&self.options(io::stdout().is_terminal()))? {
            Some(text) => super::print(text),
            None => Ok(()),
        }
    }

    fn options(self, is_terminal: bool) -> TopOptions {
        let show = match () {
            () if self.json => Show::Json,
            () if self.once || !is_terminal => Show::Once,
            () => Show::LiveView,
        };
        let client = ClientOptions {
            api: self.api,
            token_file: self.token_file,
            ca: self.ca,
            client_certificate: self.client_certificate.zip(self.client_key),
        };
        TopOptions { client, show }
    }
}
