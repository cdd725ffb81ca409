//! `thalweg flows import`.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::available_parallelism;
use std::time::Instant;

use anyhow::Context;
use clap::{Command, CommandFactory, FromArgMatches, Parser};
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::json;
use signal_hook::consts::{SIGINT, SIGTERM};
use thalweg_records::import::sources::Sources;
use thalweg_records::import::{ImportOptions, Imported, Progress, import};

use super::collect::databases;
use super::exit_code::ExitCode;
use super::print_clap_error;
use crate::console;
use crate::figures::grouped;

/// Import files of nfdump.
///
/// Reads files of nfcapd, sfcapd and nfpcapd (nfdump 1.7, uncompressed or LZO, LZ4, bzip2, zstd) into a directory of Parquet files, beside those
/// of `thalweg collect`, which all `thalweg flows` commands read. Nothing is imported twice: repeat the command after an interruption, or for
/// new files.
#[derive(Debug, Parser)]
#[command(name = "import", max_term_width = 100)]
pub(super) struct ImportArgs {
    /// Files, or directories, which are searched for `nfcapd.*`.
    #[arg(value_name = "SOURCE", required = true)]
    sources: Vec<PathBuf>,

    /// Directory of flow records. Created if missing.
    #[arg(short, long, value_name = "DIR")]
    output: PathBuf,

    /// Number of files read at a time [default: one for each processor].
    #[arg(long, value_name = "N")]
    threads: Option<usize>,

    /// Import files again that were imported before. They replace what they became then.
    #[arg(long)]
    again: bool,

    /// Databases of countries and AS numbers in MMDB format, as of `thalweg collect`. With --again also for files that were imported before.
    #[arg(long, value_name = "FILE")]
    mmdb: Vec<PathBuf>,

    /// Replace AS numbers of the records by those of the databases.
    #[arg(long, requires = "mmdb")]
    mmdb_replace_as: bool,

    /// Print one JSON object instead of the summary.
    #[arg(long)]
    json: bool,
}

/// What all files had together.
#[derive(Debug, Default)]
struct Sums {
    files: u64,
    known: u64,
    failed: u64,
    bytes: u64,
    all: Imported,
}

impl Sums {
    fn add(&mut self, bytes: u64, imported: &Imported) {
        self.files += 1;
        self.bytes += bytes;
        self.all.packets = self.all.packets.saturating_add(imported.packets);
        self.all.octets = self.all.octets.saturating_add(imported.octets);
        let (tally, of_file) = (&mut self.all.tally, &imported.tally);
        tally.flows += of_file.flows;
        tally.output_counters += of_file.output_counters;
        tally.without_addresses += of_file.without_addresses;
        tally.about_exporters += of_file.about_exporters;
        tally.names += of_file.names;
        tally.names_refused += of_file.names_refused;
        tally.unknown += of_file.unknown;
    }
}

/// Runs the command with the arguments after `thalweg flows import`.
///
/// # Errors
/// If no file is found, or the directory cannot be written.
pub(super) fn run(arguments: &[OsString]) -> anyhow::Result<ExitCode> {
    let parsed = command().try_get_matches_from([&[OsString::from("import")], arguments].concat());
    match parsed.and_then(|matches| ImportArgs::from_arg_matches(&matches)) {
        Ok(arguments) => arguments.run(),
        Err(error) => Ok(print_clap_error(&error)),
    }
}

/// The definition of the command.
pub(super) fn command() -> Command {
    ImportArgs::command().bin_name("thalweg flows import")
}

impl ImportArgs {
    fn run(self) -> anyhow::Result<ExitCode> {
        let Sources { files, being_written } = Sources::find(&self.sources)?;
        for path in &being_written {
            console::note(format_args!("{}: still being written, left out", path.display()));
        }
        let options = ImportOptions {
            directory: self.output.clone(),
            threads: self.threads.unwrap_or_else(|| available_parallelism().map_or(1, Into::into)).max(1),
            again: self.again,
            geo: databases(&self.mmdb, self.mmdb_replace_as)?,
        };
        let stop = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM] {
            signal_hook::flag::register_conditional_shutdown(signal, 128 + signal, Arc::clone(&stop))
                .and_then(|_| signal_hook::flag::register(signal, Arc::clone(&stop)))
                .context("cannot install signal handlers")?;
        }
        let (bar, start, mut sums) = (bar(files.len()), Instant::now(), Sums::default());
        import(&files, &options, &stop, |progress| {
            match progress {
                Progress::Imported { bytes, imported, .. } => sums.add(bytes, &imported),
                Progress::Known(_) => sums.known += 1,
                Progress::Failed(error) => {
                    sums.failed += 1;
                    bar.suspend(|| console::error(format_args!("{error}")));
                }
            }
            bar.inc(1);
            bar.set_message(format!("{} flows", grouped(sums.all.tally.flows)));
        })?;
        bar.finish_and_clear();
        let is_interrupted = stop.load(Ordering::Relaxed);
        if is_interrupted {
            console::warn("interrupted: repeat the command to import the rest");
        }
        let seconds = start.elapsed().as_secs_f64();
        super::print(if self.json { json_line(&sums, seconds) } else { text(&sums, &self.output, seconds) })?;
        Ok(if sums.failed > 0 || is_interrupted { ExitCode::Failed } else { ExitCode::Complete })
    }
}

fn bar(files: usize) -> ProgressBar {
    if !console::shows_progress() {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template("{wide_bar} {pos}/{len} files, {msg}, {eta} left");
    ProgressBar::new(files as u64).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}

fn text(sums: &Sums, directory: &Path, seconds: f64) -> String {
    let (tally, all) = (&sums.all.tally, &sums.all);
    let mut text = format!(
        "imported {} flows of {} into {}: {} packets, {} bytes; {} flows/s\n",
        grouped(tally.flows),
        counted(sums.files, "file"),
        directory.display(),
        grouped(all.packets),
        grouped(all.octets),
        grouped((tally.flows as f64 / seconds.max(1e-3)) as u64),
    );
    if sums.known > 0 {
        text += &format!("  imported before: {}\n", counted(sums.known, "file"));
    }
    if sums.failed > 0 {
        text += &format!("  not imported, see the messages: {}\n", counted(sums.failed, "file"));
    }
    let mut note = |count: u64, what: &str| {
        if count > 0 {
            text += &format!("  {} {what}\n", grouped(count));
        }
    };
    note(
        tally.output_counters,
        "flows have output counters (reverse direction, or after the device), which were left out",
    );
    note(tally.without_addresses, "flows have no addresses");
    note(tally.names_refused, "names of interfaces or VRFs were left out: too many");
    note(tally.unknown, "records of unknown types were left out");
    text
}

fn counted(count: u64, what: &str) -> String {
    format!("{} {what}{}", grouped(count), if count == 1 { "" } else { "s" })
}

fn json_line(sums: &Sums, seconds: f64) -> String {
    let (tally, all) = (&sums.all.tally, &sums.all);
    let line = json!({
        "files": sums.files,
        "known_files": sums.known,
        "failed_files": sums.failed,
        "read_bytes": sums.bytes,
        "flows": tally.flows,
        "packets": all.packets,
        "bytes": all.octets,
        "output_counters": tally.output_counters,
        "without_addresses": tally.without_addresses,
        "names_refused": tally.names_refused,
        "unknown_records": tally.unknown,
        "elapsed_ns": (seconds * 1e9) as u64,
    });
    format!("{line}\n")
}
