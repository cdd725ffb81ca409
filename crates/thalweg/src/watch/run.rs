//! One run of `thalweg watch`: what [`thalweg_watch`] finds is shown.

use std::hash::{BuildHasher, Hasher};
use std::io::{self, BufWriter, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::Context;
use crossbeam_channel::{bounded, unbounded};
use indicatif::{ProgressBar, ProgressStyle};
use signal_hook::consts::{SIGINT, SIGTERM};
use thalweg_daemon::clock::wall_clock;
use thalweg_linux::privileges::drop_privileges;
use thalweg_measure::detect::Finding;
use thalweg_measure::filter::FlowFilter;
use thalweg_measure::meter::flow_table::Output;
use thalweg_watch::options::{Show, WatchOptions};
use thalweg_watch::{Clock, Heard, Message, Totals, ViewFeed, Wants, Watch};

use super::json::{Line, Summary};
use super::live_view::{LiveView, Query, Theme};
use super::report;
use super::tasks::json::WindowLine;
use crate::console;
use crate::figures::grouped;
use crate::terminal;
use thalweg_watch::json::FlowLine;

/// Snapshots that a slow terminal may be behind.
const SNAPSHOTS_IN_FLIGHT: usize = 2;

/// How long the last snapshot waits for a terminal that does not keep up.
const LAST_SNAPSHOT_WAIT: Duration = Duration::from_secs(2);

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Everything was measured.
    Complete,
    /// An input ended before its time: what came before was measured.
    CutShort,
}

/// Watches the sources until they end, a limit is reached or somebody stops it.
///
/// # Errors
/// If it cannot start: a source cannot be opened, memory does not suffice, an option is out of range. What
/// happens to a source later is told in the report and by [`Outcome::CutShort`].
pub fn run(options: &WatchOptions) -> anyhow::Result<Outcome> {
    let seed = options.seed.unwrap_or_else(random_seed);
    let mut watch = Watch::open(options, seed, Clock { wall: wall_clock, steady: Instant::now })?;
    for notice in watch.notices() {
        console::note(format_args!("thalweg: {notice}"));
    }
    if watch.is_live() {
        drop_privileges().context("cannot give up the privileges that capturing needed")?;
    }
    watch.make_outputs(options)?;
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        // The first one stops; a second one, while stopping takes its time, ends the process.
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

/// The last words: report or summary line, and warnings.
fn finish(totals: &Totals, options: &WatchOptions) -> anyhow::Result<Outcome> {
    let mut out = BufWriter::new(io::stdout().lock());
    let together = totals.tasks.as_ref().and_then(|tasks| tasks.together.as_ref());
    if let (Show::Json { .. }, Some(together)) = (options.show, together) {
        json_line(&mut out, &Line::KeptWindows(WindowLine::from(together)))
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
    for cut in &totals.cut_short {
        eprintln!("thalweg: warning: {}; everything before was measured", cut.reason);
    }
    Ok(if totals.cut_short.is_empty() { Outcome::Complete } else { Outcome::CutShort })
}

/// Seeds are only to be unknown to who sends packets: what the system gives to hash maps will do.
fn random_seed() -> u64 {
    std::hash::RandomState::new().build_hasher().finish()
}

/// The report alone, with a progress bar while files are read.
fn show_summary(watch: Watch, options: &WatchOptions, stop: &AtomicBool) -> anyhow::Result<Totals> {
    let mut progress = FileProgress::new(&watch);
    let filter = options.flow_filter.clone();
    let wants = Wants { records: watch.hands_on(), views: progress.views(), largest: options.top, filter };
    let totals = thalweg_watch::run(watch, wants, stop, |heard, _| progress.hear(&heard));
    progress.bar.finish_and_clear();
    Ok(totals?)
}

/// Lines of JSON as things happen.
fn show_json(watch: Watch, options: &WatchOptions, stop: &AtomicBool, flows: bool) -> anyhow::Result<Totals> {
    let mut progress = FileProgress::new(&watch);
    let filter = &options.flow_filter;
    let records = flows || watch.hands_on();
    let wants = Wants { records, views: progress.views(), largest: options.top, filter: filter.clone() };
    let mut out = BufWriter::with_capacity(1 << 16, io::stdout());
    let mut written = Ok(());
    let totals = thalweg_watch::run(watch, wants, stop, |heard, _| {
        progress.hear(&heard);
        if written.is_ok() {
            written = match heard {
                Heard::Message(Message::Output(output)) => output_lines(&mut out, output, filter, flows),
                Heard::Window(finished) => {
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
    // Findings are not to wait in a buffer.
    if output.findings.is_empty() { Ok(()) } else { out.flush() }
}

fn json_line(out: &mut impl Write, line: &Line<'_>) -> io::Result<()> {
    serde_json::to_writer(&mut *out, line)?;
    out.write_all(b"\n")
}

/// The live view; when it is left, everything stops.
fn show_live(watch: Watch, options: &WatchOptions, stop: &AtomicBool) -> anyhow::Result<Totals> {
    let (snapshots, shown) = bounded(SNAPSHOTS_IN_FLIGHT);
    let (asked, queries) = unbounded::<Query>();
    let filter = &options.flow_filter;
    let query = Arc::new(Mutex::new(Query { filter: filter.clone(), ..Query::default() }));
    let views = Some(Arc::clone(&query));
    let wants = Wants { records: watch.hands_on(), views, largest: options.top, filter: filter.clone() };
    let mut view = LiveView::with_filter(Theme::of_process(), filter.clone());
    let mut feed = ViewFeed::new(watch.workers(), watch.is_live(), watch.is_replayed(), options.table);
    std::thread::scope(|scope| {
        let running = scope.spawn(move || {
            let current = || query.lock().unwrap_or_else(PoisonError::into_inner).clone();
            let totals = thalweg_watch::run(watch, wants, stop, |heard, totals| {
                if let Some(latest) = queries.try_iter().last() {
                    *query.lock().unwrap_or_else(PoisonError::into_inner) = latest;
                }
                if let Heard::Message(Message::View(view)) = heard {
                    feed.add((**view).clone());
                    // A terminal that does not keep up gets a later one; the view may have been left already.
                    let _ = snapshots.try_send(feed.snapshot(&current(), totals, false));
                }
            });
            let totals = totals?;
            let last = feed.snapshot(&current().last(), &totals, true);
            let _ = snapshots.send_timeout(last, LAST_SNAPSHOT_WAIT);
            Ok(totals)
        });
        let left = terminal::run(&mut view, &shown, &asked, stop);
        stop.store(true, Ordering::Relaxed);
        let totals = match running.join() {
            Ok(totals) => totals,
            Err(panic) => std::panic::resume_unwind(panic),
        };
        left.context("cannot show the live view (try --summary or --json)")?;
        totals
    })
}

/// A progress bar on the terminal while files are read: on standard error, so that output can be redirected.
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

    /// Progress comes with views; nobody needs their flows.
    fn views(&self) -> Option<Arc<Mutex<Query>>> {
        let nothing = Query { limit: 0, ..Query::default() };
        (!self.bar.is_hidden()).then(|| Arc::new(Mutex::new(nothing)))
    }

    fn hear(&mut self, heard: &Heard<'_>) {
        let Heard::Message(Message::View(view)) = heard else { return };
        let Some(reading) = &view.reading else { return };
        let progress = reading.inputs.iter().filter_map(|input| input.progress);
        let (done, total) = progress.fold((0, 0), |sum, part| (sum.0 + part.done, sum.1 + part.total));
        self.bar.set_length(total);
        self.bar.set_position(done);
        self.bar.set_message(format!("{} packets", grouped(reading.intake.frames.packets)));
    }
}
