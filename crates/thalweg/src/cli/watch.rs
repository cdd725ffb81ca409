//! `thalweg watch`.

use std::io::{self, IsTerminal};
use std::path::PathBuf;

use clap::Args;

use super::exit_code::ExitCode;
use crate::config::settings::{Output, ShowChoice};
use crate::config::{self, Config, Flags, Request};
use crate::watch;

/// Measure packets, and show the strongest flows.
///
/// Reads packets from capture files or interfaces, meters every flow, and finds cheetah flows while they run.
/// Shows them in a live view on a terminal, in a summary at the end, or as JSON.
#[derive(Args, Debug)]
pub(super) struct WatchArgs {
    /// Capture files, `-` for standard input, or interfaces.
    ///
    /// Files are pcap or pcapng, also compressed (.gz, .zst), and are read one after the other. Interfaces are
    /// named as `ip link` shows them, are watched all at once, and need CAP_NET_RAW. A name with a slash, such
    /// as ./eth0, is always a file's.
    #[arg(required = true, value_name = "SOURCE")]
    sources: Vec<String>,

    /// Read settings from a file; flags override it.
    ///
    /// `thalweg config` prints one with every default. No file is read unless it is named.
    #[arg(short, long, value_name = "FILE")]
    config: Option<PathBuf>,

    /// One JSON object a line: same as --show json.
    ///
    /// Cheetahs as they are found, flows as they end with --flows, and the summary last.
    #[arg(long, help_heading = "Output", conflicts_with_all = ["summary", "show"])]
    json: bool,

    /// A report at the end: same as --show summary.
    #[arg(long, help_heading = "Output", conflicts_with = "show")]
    summary: bool,

    /// Read files at the pace they were recorded at, or SPEED times that.
    ///
    /// Time passes as the time stamps of the packets say; without this, files are read as fast as possible.
    #[arg(long, value_name = "SPEED", help_heading = "Input", value_parser = speed,
          num_args = 0..=1, require_equals = true, default_missing_value = "1")]
    replay: Option<f64>,

    #[command(flatten)]
    flags: Flags,
}

impl WatchArgs {
    /// Does it.
    ///
    /// # Errors
    /// If flags or configuration file are wrong, or as [`watch::run`].
    pub(super) fn run(self) -> anyhow::Result<ExitCode> {
        let config = self.config.as_deref().map(Config::load).transpose()?.unwrap_or_default();
        let options = config::resolve(&self.request(), &config, io::stdout().is_terminal())?;
        Ok(watch::run(&options)?.into())
    }

    /// Shorthands written out.
    pub(super) fn request(self) -> Request {
        let mut flags = self.flags;
        if self.json {
            flags.set(Output::show, ShowChoice::Json.name());
        }
        if self.summary {
            flags.set(Output::show, ShowChoice::Summary.name());
        }
        Request { sources: self.sources, replay: self.replay, flags }
    }
}

fn speed(text: &str) -> Result<f64, String> {
    let speed = text.parse().ok().filter(|&speed: &f64| speed > 0.0 && speed.is_finite());
    speed.ok_or_else(|| "expected a number above 0, such as 0.5 or 10".to_owned())
}
