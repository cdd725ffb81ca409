//! The command `thalweg watch`.

use std::hash::{BuildHasher, Hasher};
use std::io::{self, BufWriter, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use anyhow::Context;
use indicatif::{ProgressBar, ProgressStyle};
use signal_hook::consts::{SIGINT, SIGTERM};
use thalweg_linux::clock::realtime;
use thalweg_linux::privileges::{drop_privileges, drop_thread_capabilities};
use thalweg_measure::detect::Finding;
use thalweg_measure::filter::FlowFilter;
use thalweg_measure::meter::flow_table::Output;
use thalweg_watch::groups::{GroupRow, GroupTotals, Grouping};
use thalweg_watch::options::{Names, Show, WatchOptions};
use thalweg_watch::{Clock, FlowContext, Message, Totals, Watch, WatchUpdate, WorkerOptions};

use super::csv::CsvWriter;
use super::groups::{GroupLine, GroupsSummary};
use super::json::{Line, Summary};
use super::live_run::show_live;
use super::live_view::Query;
use super::report;
use super::result_names::ResultNames;
use super::tasks::json::WindowLine;
use crate::console;
use crate::figures::grouped;
use thalweg_capture::dpdk::device_of;
use thalweg_watch::json::FlowLine;

/// Outcome of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// All input was measured.
    Complete,
    /// An input was truncated, failed or could not be read. Everything else is measured.
    CutShort,
}

/// Measures the sources until they end, a limit is reached, or a signal arrives.
///
/// # Errors
/// If the run cannot start: a source cannot be opened, memory is insufficient, an option is out of range. Later errors of
/// a source are in the report, and the outcome is [`Outcome::CutShort`].
pub fn run(options: &WatchOptions) -> anyhow::Result<Outcome> {
    let seed = options.seed.unwrap_or_else(random_seed);
    let stop = Arc::new(AtomicBool::new(false));
    // DPDK takes seconds to start, after which a stopped run reports. Others start at once, or wait for standard input.
    let starts_slowly = options.sources.iter().any(|name| device_of(name).is_some());
    if starts_slowly {
        stop_at_signals(&stop)?;
    }
    let mut watch = Watch::open(options, seed, Clock { wall: realtime, steady: Instant::now })?;
    for skipped in watch.skipped() {
        console::warn(format_args!("{}; skipped", skipped.reason));
    }
    for notice in watch.notices() {
        console::note(format_args!("thalweg: {notice}"));
    }
    if watch.has_dpdk() {
        // The threads of DPDK keep theirs. Those that read packets start later.
        drop_thread_capabilities().context("cannot drop the capabilities for capture")?;
    } else if watch.is_live() {
        drop_privileges().context("cannot drop the privileges for capture")?;
    }
    watch.open_outputs(options)?;
    if !starts_slowly {
        stop_at_signals(&stop)?;
    }
    let totals = match options.show {
        Show::LiveView => show_live(watch, options, &stop)?,
        Show::Summary => show_summary(watch, options, &stop)?,
        Show::Json { flows } => show_json(watch, options, &stop, flows)?,
        Show::Csv => show_csv(watch, options, &stop)?,
    };
    finish(&totals, options)
}

/// Lets the first signal stop the run. A second one ends the process while it is stopping.
fn stop_at_signals(stop: &Arc<AtomicBool>) -> anyhow::Result<()> {
    for signal in [SIGINT, SIGTERM] {
        signal_hook::flag::register_conditional_shutdown(signal, 128 + signal, Arc::clone(stop))?;
        signal_hook::flag::register(signal, Arc::clone(stop))?;
    }
    Ok(())
}

/// Results that need more than the totals.
#[derive(Debug, Default)]
pub(super) struct Results<'a> {
    /// The hosts or pairs of the run, the largest first.
    pub(super) groups: Vec<GroupRow>,
    /// Names of hosts.
    pub(super) names: ResultNames,
    totals: Option<&'a Totals>,
}

impl<'a> Results<'a> {
    fn new(totals: &'a Totals, options: &WatchOptions) -> anyhow::Result<Results<'a>> {
        let filter = &options.flow_filter;
        let mut groups = totals.groups.as_ref().map(GroupTotals::rows).unwrap_or_default();
        groups.retain(|row| filter.matches(row));
        let mut names = ResultNames::default();
        if options.names == Names::Always {
            let ends = totals.largest.iter().flat_map(|record| [record.key.src(), record.key.dst()]);
            let hosts = groups.iter().flat_map(|row| row.group.addresses());
            names = match options.grouping {
                Grouping::Flow => ResultNames::look_up(ends),
                Grouping::Host | Grouping::Pair => ResultNames::look_up(hosts),
            }
            .context("cannot look up names")?;
        }
        Ok(Results { groups, names, totals: Some(totals) })
    }

    fn summary(&self) -> Option<GroupsSummary> {
        let groups = self.totals?.groups.as_ref()?;
        Some(GroupsSummary::new(groups, &self.groups))
    }
}

/// Prints the report, the last lines of JSON or CSV, and warnings.
fn finish(totals: &Totals, options: &WatchOptions) -> anyhow::Result<Outcome> {
    let results = Results::new(totals, options)?;
    let mut out = BufWriter::new(io::stdout().lock());
    match options.show {
        Show::Json { .. } => json_results(&mut out, totals, &results, options),
        Show::Csv => csv_groups(&mut out, &results, options.grouping),
        Show::LiveView | Show::Summary => report::write(&mut out, totals, &results, options),
    }
    .and_then(|()| out.flush())
    .context("cannot write the report")?;
    if options.show == Show::Csv {
        report::losses(totals).for_each(|line| console::warn(format_args!("{line}")));
    }
    for cut in totals.incomplete.iter().filter(|incomplete| !incomplete.is_skipped) {
        console::warn(format_args!("{}; everything before is measured", cut.reason));
    }
    if let Some(failure) = totals.exported.as_deref().and_then(report::export_failure) {
        anyhow::bail!(failure);
    }
    Ok(if totals.incomplete.is_empty() { Outcome::Complete } else { Outcome::CutShort })
}

/// Writes the lines of the kept windows, of hosts or pairs, and of the summary.
fn json_results(
    out: &mut impl Write,
    totals: &Totals,
    results: &Results<'_>,
    options: &WatchOptions,
) -> io::Result<()> {
    if let Some(combined) = totals.tasks.as_ref().and_then(|tasks| tasks.combined.as_ref()) {
        json_line(out, &Line::KeptWindows(WindowLine::from(combined)))?;
    }
    for row in &results.groups {
        let line = GroupLine::new(row, &results.names);
        json_line(out, &if line.peer.is_some() { Line::Pair(line) } else { Line::Host(line) })?;
    }
    let summary = Summary::new(totals, &options.flow_filter, results.summary());
    json_line(out, &Line::Summary(Box::new(summary)))
}

/// Writes hosts or pairs. Flows are written as they end.
fn csv_groups(out: &mut impl Write, results: &Results<'_>, grouping: Grouping) -> io::Result<()> {
    if grouping == Grouping::Flow {
        return Ok(());
    }
    let mut writer = CsvWriter::new(out, grouping)?;
    results.groups.iter().try_for_each(|row| writer.group(&GroupLine::new(row, &results.names)))?;
    writer.flush()
}

/// Returns a seed that senders of packets cannot predict.
fn random_seed() -> u64 {
    std::hash::RandomState::new().build_hasher().finish()
}

/// Runs with a progress bar while files are read.
fn show_summary(watch: Watch, options: &WatchOptions, stop: &AtomicBool) -> anyhow::Result<Totals> {
    let mut progress = FileProgress::new(&watch);
    let worker_options = WorkerOptions {
        records: watch.exports_flows(),
        views: progress.views(),
        largest: options.top,
        grouping: options.grouping,
        filter: options.flow_filter.clone(),
    };
    let totals = thalweg_watch::run(watch, worker_options, stop, |update, _| progress.update(&update));
    progress.bar.finish_and_clear();
    Ok(totals?)
}

/// Runs and writes JSON lines.
fn show_json(watch: Watch, options: &WatchOptions, stop: &AtomicBool, flows: bool) -> anyhow::Result<Totals> {
    let mut progress = FileProgress::new(&watch);
    let filter = &options.flow_filter;
    let worker_options = WorkerOptions {
        records: flows || watch.exports_flows(),
        views: progress.views(),
        largest: options.top,
        grouping: options.grouping,
        filter: filter.clone(),
    };
    let context = watch.flow_context();
    let mut out = BufWriter::with_capacity(1 << 16, io::stdout());
    let mut written = Ok(());
    let totals = thalweg_watch::run(watch, worker_options, stop, |update, _| {
        progress.update(&update);
        if written.is_ok() {
            written = match update {
                WatchUpdate::Message(Message::Output(output)) => {
                    output_lines(&mut out, output, filter, flows.then_some(&context))
                }
                WatchUpdate::Window(finished) => {
                    json_line(&mut out, &Line::Window(finished.into())).and_then(|()| out.flush())
                }
                _ => out.flush(),
            };
            if written.is_err() {
                stop.store(true, Ordering::Relaxed);
            }
        }
    });
    progress.bar.finish_and_clear();
    written.and_then(|()| out.flush()).context("cannot write to standard output")?;
    Ok(totals?)
}

/// Runs and writes flow records as CSV, if rows are flows.
fn show_csv(watch: Watch, options: &WatchOptions, stop: &AtomicBool) -> anyhow::Result<Totals> {
    let mut progress = FileProgress::new(&watch);
    let filter = &options.flow_filter;
    let has_flows = options.grouping == Grouping::Flow;
    let worker_options = WorkerOptions {
        records: has_flows || watch.exports_flows(),
        views: progress.views(),
        largest: options.top,
        grouping: options.grouping,
        filter: filter.clone(),
    };
    let out = BufWriter::with_capacity(1 << 16, io::stdout());
    let mut writer = if has_flows { Some(CsvWriter::new(out, Grouping::Flow)) } else { None }
        .transpose()
        .context("cannot write to standard output")?;
    let mut written = Ok(());
    let totals = thalweg_watch::run(watch, worker_options, stop, |update, _| {
        progress.update(&update);
        let Some(writer) = writer.as_mut().filter(|_| written.is_ok()) else { return };
        written = match update {
            WatchUpdate::Message(Message::Output(output)) => output
                .records
                .iter()
                .filter(|record| filter.matches(*record))
                .try_for_each(|record| writer.flow(record)),
            _ => writer.flush(),
        };
        if written.is_err() {
            stop.store(true, Ordering::Relaxed);
        }
    });
    progress.bar.finish_and_clear();
    written
        .and_then(|()| writer.as_mut().map_or(Ok(()), CsvWriter::flush))
        .context("cannot write to standard output")?;
    Ok(totals?)
}

/// Writes detections, and flow records if there is a context for their capture filters.
fn output_lines(
    out: &mut impl Write,
    output: &Output,
    filter: &FlowFilter,
    flows: Option<&FlowContext>,
) -> io::Result<()> {
    let is_shown = |finding: &&Finding| match finding {
        Finding::Began(cheetah) => filter.matches(cheetah),
        Finding::Ended(end) => filter.matches(end),
    };
    for finding in output.findings.iter().filter(is_shown) {
        json_line(out, &Line::from(finding))?;
    }
    if let Some(context) = flows {
        for record in output.records.iter().filter(|record| filter.matches(*record)) {
            json_line(out, &Line::Flow(FlowLine::with_capture_filter(record, context)))?;
        }
    }
    // Detections must not wait in a buffer.
    if output.findings.is_empty() { Ok(()) } else { out.flush() }
}

fn json_line(out: &mut impl Write, line: &Line<'_>) -> io::Result<()> {
    serde_json::to_writer(&mut *out, line)?;
    out.write_all(b"\n")
}

/// A progress bar on standard error while files are read.
struct FileProgress {
    bar: ProgressBar,
}

impl FileProgress {
    fn new(watch: &Watch) -> FileProgress {
        let shown = !watch.is_live() && !watch.is_replayed() && console::shows_progress();
        let style = ProgressStyle::with_template("{bar:40} {bytes}/{total_bytes}  {msg}  {eta} left")
            .unwrap_or_else(|_| ProgressStyle::default_bar());
        FileProgress {
            bar: if shown { ProgressBar::new(0).with_style(style) } else { ProgressBar::hidden() },
        }
    }

    /// Returns a query without flows: only the progress in views is needed.
    fn views(&self) -> Option<Arc<Mutex<Query>>> {
        let no_flows = Query { limit: 0, ..Query::default() };
        (!self.bar.is_hidden()).then(|| Arc::new(Mutex::new(no_flows)))
    }

    fn update(&mut self, update: &WatchUpdate<'_>) {
        let WatchUpdate::Message(Message::View(view)) = update else { return };
        let Some(reading) = &view.reading else { return };
        let progress = reading.inputs.iter().filter_map(|input| input.progress);
        let (done, total) = progress.fold((0, 0), |sum, part| (sum.0 + part.done, sum.1 + part.total));
        self.bar.set_length(total);
        self.bar.set_position(done);
        self.bar.set_message(format!("{} packets", grouped(reading.intake.frames.packets)));
    }
}
