//! The command `thalweg watch`.

use std::hash::{BuildHasher, Hasher};
use std::io::{self, BufWriter, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::Context;
use crossbeam_channel::{bounded, unbounded};
use indicatif::{ProgressBar, ProgressStyle};
use signal_hook::consts::{SIGINT, SIGTERM};
use thalweg_linux::clock::realtime;
use thalweg_linux::privileges::{drop_privileges, drop_thread_capabilities};
use thalweg_measure::detect::Finding;
use thalweg_measure::filter::FlowFilter;
use thalweg_measure::meter::flow_table::Output;
use thalweg_watch::options::{Show, WatchOptions};
use thalweg_watch::{Clock, Message, Totals, ViewFeed, Watch, WatchUpdate, WorkerOptions};

use super::json::{Line, Summary};
use super::live_view::{LiveView, Query, Theme};
use super::report;
use super::tasks::json::WindowLine;
use crate::console;
use crate::figures::grouped;
use crate::terminal;
use thalweg_watch::json::FlowLine;

/// Capacity of the channel of snapshots to the live view.
const SNAPSHOTS_IN_FLIGHT: usize = 2;

/// Maximum time to wait for a slow terminal to accept the last snapshot.
const LAST_SNAPSHOT_WAIT: Duration = Duration::from_secs(2);

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
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        // The first signal stops the run. A second one ends the process while it is stopping.
        signal_hook::flag::register_conditional_shutdown(signal, 128 + signal, Arc::clone(&stop))?;
        signal_hook::flag::register(signal, Arc::clone(&stop))?;
    }
    let totals = match options.show {
        Show::LiveView => show_live(watch, options, &stop)?,
        Show::Summary => show_summary(watch, options, &stop)?,
        Show::Json { flows } => show_json(watch, options, &stop, flows)?,
    };
    finish(&totals, options)
}

/// Prints the report or the summary line, and warnings.
fn finish(totals: &Totals, options: &WatchOptions) -> anyhow::Result<Outcome> {
    let mut out = BufWriter::new(io::stdout().lock());
    let combined = totals.tasks.as_ref().and_then(|tasks| tasks.combined.as_ref());
    if let (Show::Json { .. }, Some(combined)) = (options.show, combined) {
        json_line(&mut out, &Line::KeptWindows(WindowLine::from(combined)))
            .context("cannot write to standard output")?;
    }
    match options.show {
        Show::Json { .. } => {
            json_line(&mut out, &Line::Summary(Box::new(Summary::new(totals, &options.flow_filter))))
        }
        Show::LiveView | Show::Summary => report::write(&mut out, totals, options),
    }
    .and_then(|()| out.flush())
    .context("cannot write the report")?;
    for cut in totals.incomplete.iter().filter(|incomplete| !incomplete.is_skipped) {
        console::warn(format_args!("{}; everything before is measured", cut.reason));
    }
    if let Some(failure) = totals.exported.as_deref().and_then(report::export_failure) {
        anyhow::bail!(failure);
    }
    Ok(if totals.incomplete.is_empty() { Outcome::Complete } else { Outcome::CutShort })
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
        filter: filter.clone(),
    };
    let mut out = BufWriter::with_capacity(1 << 16, io::stdout());
    let mut written = Ok(());
    let totals = thalweg_watch::run(watch, worker_options, stop, |update, _| {
        progress.update(&update);
        if written.is_ok() {
            written = match update {
                WatchUpdate::Message(Message::Output(output)) => {
                    output_lines(&mut out, output, filter, flows)
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

fn output_lines(out: &mut impl Write, output: &Output, filter: &FlowFilter, flows: bool) -> io::Result<()> {
    let is_shown = |finding: &&Finding| match finding {
        Finding::Began(cheetah) => filter.matches(cheetah),
        Finding::Ended(end) => filter.matches(end),
    };
    for finding in output.findings.iter().filter(is_shown) {
        json_line(out, &Line::from(finding))?;
    }
    for record in output.records.iter().filter(|record| flows && filter.matches(*record)) {
        json_line(out, &Line::Flow(FlowLine::from(record)))?;
    }
    // Detections must not wait in a buffer.
    if output.findings.is_empty() { Ok(()) } else { out.flush() }
}

fn json_line(out: &mut impl Write, line: &Line<'_>) -> io::Result<()> {
    serde_json::to_writer(&mut *out, line)?;
    out.write_all(b"\n")
}

/// Runs the live view. Quitting it stops the run.
fn show_live(watch: Watch, options: &WatchOptions, stop: &AtomicBool) -> anyhow::Result<Totals> {
    let (snapshots, receiver) = bounded(SNAPSHOTS_IN_FLIGHT);
    let (query_sender, queries) = unbounded::<Query>();
    let filter = &options.flow_filter;
    let query = Arc::new(Mutex::new(Query { filter: filter.clone(), ..Query::default() }));
    let worker_options = WorkerOptions {
        records: watch.exports_flows(),
        views: Some(Arc::clone(&query)),
        largest: options.top,
        filter: filter.clone(),
    };
    let mut view = LiveView::with_filter(Theme::of_process(), filter.clone());
    let mut feed = ViewFeed::new(watch.workers(), watch.is_live(), watch.is_replayed(), options.table);
    std::thread::scope(|scope| {
        let running = scope.spawn(move || {
            let current = || query.lock().unwrap_or_else(PoisonError::into_inner).clone();
            let totals = thalweg_watch::run(watch, worker_options, stop, |update, totals| {
                if let Some(latest) = queries.try_iter().last() {
                    *query.lock().unwrap_or_else(PoisonError::into_inner) = latest;
                }
                if let WatchUpdate::Message(Message::View(view)) = update {
                    feed.add((**view).clone());
                    // Skip a snapshot if the terminal is slow or the view is closed.
                    let _ = snapshots.try_send(feed.snapshot(&current(), totals, false));
                }
            });
            let totals = totals?;
            let last = feed.snapshot(&current().last(), &totals, true);
            let _ = snapshots.send_timeout(last, LAST_SNAPSHOT_WAIT);
            Ok(totals)
        });
        let result = terminal::run(&mut view, &receiver, &query_sender, stop);
        stop.store(true, Ordering::Relaxed);
        // The view is closed: the thread must not wait for room for the last snapshot.
        drop(receiver);
        let totals = match running.join() {
            Ok(totals) => totals,
            Err(panic) => std::panic::resume_unwind(panic),
        };
        result.context("cannot show the live view (try --summary or --json)")?;
        totals
    })
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
