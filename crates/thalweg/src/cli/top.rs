//! `thalweg top`.

use std::io::{self, IsTerminal};
use std::path::PathBuf;

use clap::Args;
use thalweg_api::client::ClientOptions;
use thalweg_measure::filter::{FilterError, FlowFilter, SAMPLED};

use super::exit_code::UsageError;
use crate::top::{self, Show, TopOptions};

/// Show the links, flows and events of a running daemon.
///
/// Polls the API of `thalweg serve` four times per second, locally or remotely, and subscribes to its events. Prints the
/// links once if standard output is not a terminal.
#[derive(Args, Debug)]
pub(super) struct TopArgs {
    /// URL of the daemon's API: http://HOST:PORT or https://HOST:PORT.
    #[arg(long, value_name = "URL", default_value_t = ClientOptions::default_api())]
    api: String,

    /// Print a table of links and exit.
    #[arg(long, conflicts_with = "json")]
    once: bool,

    /// Print the links as one JSON object and exit.
    #[arg(long)]
    json: bool,

    /// Show only the flows that match a filter in nfdump syntax.
    ///
    /// For example 'dst port 443 and bps > 10m', see docs/reference/flow-filter.md. Applies to the flows of the live view,
    /// where `f` changes it. Links count all their flows.
    #[arg(long, value_name = "FILTER", value_parser = filter, conflicts_with_all = ["once", "json"])]
    filter: Option<FlowFilter>,

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

impl TopArgs {
    /// Runs the command.
    ///
    /// # Errors
    /// As [`top::run`].
    pub(super) fn run(self) -> anyhow::Result<()> {
        let is_terminal = io::stdout().is_terminal();
        if !is_terminal && self.filter.is_some() {
            let reason =
                "--filter selects the flows of the live view, which needs a terminal as standard output";
            return Err(UsageError(reason.to_owned()).into());
        }
        match top::run(&self.options(is_terminal))? {
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
            ca: self.ca_file,
            client_certificate: self.client_certificate.zip(self.client_key),
        };
        TopOptions { client, show, filter: self.filter.unwrap_or_default() }
    }
}

fn filter(text: &str) -> Result<FlowFilter, FilterError> {
    FlowFilter::compile(text, &SAMPLED)
}
