//! `thalweg watch`.

use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};

use clap::Args;
use thalweg_dataplane::PinName;

use super::exit_code::{ExitCode, UsageError};
use super::file_kind::FileKind;
use crate::config::settings::{NamesName, Output, ShowChoice};
use crate::config::{self, Config, Flags, Request};
use crate::console;
use crate::watch;

/// Measure the flows of a capture file or interface.
///
/// Meters every flow exactly and detects cheetah flows while they run. Shows a live view on a terminal, or a
/// summary at the end, or JSON lines.
#[derive(Args, Debug)]
pub(super) struct WatchArgs {
    /// Capture files, directories of them, interfaces, DPDK ports, or `-` for standard input.
    ///
    /// Files are pcap or pcapng, optionally compressed (.gz, .zst, .bz2, .xz, .lz4), and are read one after another. Interfaces are
    /// captured at the same time and need CAP_NET_RAW. A name with a slash, such as ./eth0, is always a file.
    /// dpdk:DEVICE is a DPDK port, such as dpdk:net_af_packet0,iface=eth0, in builds with the feature dpdk.
    /// Without a source, the interfaces are listed.
    #[arg(value_name = "SOURCE")]
    sources: Vec<String>,

    /// Configuration file. Flags override it.
    ///
    /// `thalweg config watch` prints an example with all defaults. No file is read by default.
    #[arg(short, long, value_name = "FILE")]
    config: Option<PathBuf>,

    /// Write JSON lines (same as --show json).
    ///
    /// Cheetah flows as they are detected, flow records as flows end (with --flows), and a summary at the end.
    #[arg(long, help_heading = "Output", conflicts_with_all = ["summary", "show"])]
    json: bool,

    /// Write CSV (same as --show csv).
    ///
    /// Flow records as flows end, or with --by hosts or pairs at the end.
    #[arg(long, help_heading = "Output", conflicts_with_all = ["json", "summary", "show"])]
    csv: bool,

    /// Look up no names of hosts (same as --names never).
    #[arg(long, help_heading = "Output", conflicts_with = "names")]
    no_names: bool,

    /// Print a report at the end (same as --show summary).
    #[arg(long, help_heading = "Output", conflicts_with = "show")]
    summary: bool,

    /// Replay files in real time, or at SPEED times real time.
    ///
    /// Follows packet timestamps. By default files are read as fast as possible.
    #[arg(long, value_name = "SPEED", help_heading = "Input", value_parser = speed,
          num_args = 0..=1, require_equals = true, default_missing_value = "1")]
    replay: Option<f64>,

    #[command(flatten)]
    flags: Flags,

    /// List the interfaces and end.
    ///
    /// Shows their state, addresses, speed and packets, and whether they can be captured. With --json, one object per line.
    #[arg(short = 'D', long, help_heading = "Live capture", conflicts_with_all = ["sources", "unpin"])]
    list_interfaces: bool,

    /// Detach and remove the sketches that --pin left in the kernel, and end.
    #[arg(long, value_name = "NAME", help_heading = "Live capture", exclusive = true)]
    unpin: Option<PinName>,
}

impl WatchArgs {
    /// Runs the command.
    ///
    /// # Errors
    /// If flags or the configuration file are invalid, or as [`watch::run`].
    pub(super) fn run(self) -> anyhow::Result<ExitCode> {
        if let Some(name) = &self.unpin {
            name.remove()?;
            console::note(format_args!("thalweg: removed the pinned sketches {name}"));
            return Ok(ExitCode::Complete);
        }
        if self.list_interfaces {
            watch::list_interfaces(self.json)?;
            return Ok(ExitCode::Complete);
        }
        if self.sources.is_empty() {
            return Err(UsageError(watch::no_source_text()).into());
        }
        let load =
            |path: &Path| Config::load(path).map_err(|error| FileKind::Watch.with_hint(error.into(), path));
        let config = self.config.as_deref().map(load).transpose()?.unwrap_or_default();
        let options = config::resolve(&self.request(), &config, io::stdout().is_terminal())?;
        Ok(watch::run(&options)?.into())
    }

    /// Resolves shorthand flags.
    pub(super) fn request(self) -> Request {
        let mut flags = self.flags;
        if self.json {
            flags.set(Output::show, ShowChoice::Json.name());
        }
        if self.csv {
            flags.set(Output::show, ShowChoice::Csv.name());
        }
        if self.no_names {
            flags.set(Output::names, NamesName::Never.name());
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
