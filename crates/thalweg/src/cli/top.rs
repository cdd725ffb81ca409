//! `thalweg top`.

use std::io::{self, IsTerminal};

use clap::Args;
use thalweg_measure::filter::{FilterError, FlowFilter, SAMPLED};

use super::api::ApiArgs;
use super::exit_code::UsageError;
use crate::top::{self, Show, TopOptions};

/// Show the links, flows and events of a running daemon.
///
/// Polls the API of `thalweg serve` four times per second, locally or remotely, and subscribes to its events. Prints the
/// links once if standard output is not a terminal.
#[derive(Args, Debug)]
pub(super) struct TopArgs {
    #[command(flatten)]
    api: ApiArgs,

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

    /// Leave the mouse to the terminal, to select text in the live view.
    ///
    /// By default a click selects a row, a second click opens it, a click on a column title sorts, and the wheel moves the
    /// selection. Most terminals select text with Shift held down.
    #[arg(long, conflicts_with_all = ["once", "json"])]
    no_mouse: bool,
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
        TopOptions {
            client: self.api.options(),
            show,
            filter: self.filter.unwrap_or_default(),
            mouse: !self.no_mouse,
        }
    }
}

fn filter(text: &str) -> Result<FlowFilter, FilterError> {
    FlowFilter::compile(text, &SAMPLED)
}
