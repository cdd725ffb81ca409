//! Sockets, until somebody or a limit stops it.

use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context;
use crossbeam_channel::{Sender, bounded, unbounded};
use signal_hook::consts::{SIGINT, SIGTERM, SIGUSR1};
use thalweg_records::collect::{CollectingProcess, ReplayCounts, Report};
use thalweg_records::store::Recovered;

use super::live_view::CollectView;
use super::metrics::Server;
use super::status::Status;
use super::{CollectRequest, Outcome, Show, clock, json, text};
use crate::console;
use crate::figures::grouped;
use crate::terminal::{self, Theme};

/// How often it is looked what there is to do, at least.
const TICK: Duration = Duration::from_millis(50);

/// Statuses that a slow terminal may be behind.
const STATUSES_IN_FLIGHT: usize = 2;

/// What signals say.
pub(super) struct Signals {
    pub(super) stop: Arc<AtomicBool>,
    pub(super) table: Arc<AtomicBool>,
}

impl Signals {
    fn register() -> io::Result<Signals> {
        let [stop, table] = std::array::from_fn(|_| Arc::<AtomicBool>::default());
        for signal in [SIGINT, SIGTERM] {
            // A second one, while stopping takes its time, ends the process.
            signal_hook::flag::register_conditional_shutdown(signal, 128 + signal, Arc::clone(&stop))?;
            signal_hook::flag::register(signal, Arc::clone(&stop))?;
        }
        signal_hook::flag::register(SIGUSR1, Arc::clone(&table))?;
        Ok(Signals { stop, table })
    }

    pub(super) fn say_stop(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    pub(super) fn say_table(&self) -> bool {
        self.table.swap(false, Ordering::Relaxed)
    }
}

/// Collects until it is stopped, or captures end.
///
/// # Errors
/// If it cannot start, or standard output cannot be written. What happens to messages and files later is in the report.
pub fn run(request: CollectRequest) -> anyhow::Result<Outcome> {
    let signals = Signals::register()?;
    if !request.replay.is_empty() {
        return super::replay::run(request, &signals);
    }
    let server = request.metrics.map(Server::start).transpose().context("cannot listen for metrics")?;
    let process = CollectingProcess::start(request.process.clone(), None)?;
    tell_of(process.recovered());
    let mut collecting = Collecting { process, request, server, signals, started: Instant::now() };
    collecting.say_where();
    let report = match collecting.request.show {
        Show::LiveView => collecting.show_live()?,
        _ => collecting.until_stopped(say)?,
    };
    finish(report, &collecting.request, collecting.started.elapsed(), None)?;
    Ok(Outcome::Complete)
}

/// What a crash had left.
pub(super) fn tell_of(recovered: Recovered) {
    if recovered.records > 0 {
        console::note(format_args!(
            "thalweg: recovered {} records of an earlier run",
            grouped(recovered.records)
        ));
    }
    if recovered.torn > 0 {
        eprintln!(
            "thalweg: warning: {} bytes at the end of {} of its spool segments were not whole, and are lost",
            grouped(recovered.torn_bytes),
            recovered.torn
        );
    }
}

/// The last words.
pub(super) fn finish(
    report: Report,
    request: &CollectRequest,
    elapsed: Duration,
    capture: Option<&ReplayCounts>,
) -> anyhow::Result<()> {
    let status = Status::last(report, elapsed, clock());
    let directory: &Path = &request.process.store.directory;
    let mut out = BufWriter::new(io::stdout().lock());
    match request.show {
        Show::Json => json::summary(&mut out, &status, capture),
        _ => out.write_all(text::report(&status, directory, capture).as_bytes()),
    }
    .and_then(|()| out.flush())
    .context("cannot write the report")
}

/// Shows how things stand, the way that was asked for.
fn say(status: &Status, wants_table: bool, show: Show) -> anyhow::Result<()> {
    let mut out = BufWriter::new(io::stdout().lock());
    match (show, wants_table) {
        (Show::Json, false) => json::status(&mut out, status),
        (Show::Json, true) => json::exporters(&mut out, status),
        (_, true) => out.write_all(text::exporters(&status.report).as_bytes()),
        (_, false) => Ok(()),
    }
    .and_then(|()| out.flush())
    .context("cannot write to standard output")
}

struct Collecting {
    process: CollectingProcess,
    request: CollectRequest,
    server: Option<Server>,
    signals: Signals,
    started: Instant,
}

impl Collecting {
    /// Where it listens, and what is not as it was asked for.
    fn say_where(&mut self) {
        for (listen, address) in self.process.addresses() {
            // Where port 0 was asked for, nobody could know it otherwise.
            if listen.port == 0 {
                console::note(format_args!("thalweg: listening on {listen}: {address}"));
            }
        }
        let report = self.process.report();
        let given =
            report.sockets.iter().map(|socket| (socket.receive_buffer, socket.receive_buffer_requested));
        if let Some((given, asked)) = given.filter(|(given, asked)| given < asked).min() {
            eprintln!(
                "thalweg: warning: the kernel gives a socket {} of the {} bytes of receive buffer that it was asked for; \
                 to have them: sysctl -w net.core.rmem_max={asked}, or the capability CAP_NET_ADMIN",
                grouped(given as u64),
                grouped(asked as u64),
            );
        }
    }

    /// Lets time pass until the end; `say` is told how things stand, and asked for the table of exporters.
    fn until_stopped(
        &mut self,
        mut say: impl FnMut(&Status, bool, Show) -> anyhow::Result<()>,
    ) -> anyhow::Result<Report> {
        let interval = self.request.interval;
        let tick = TICK.min(Duration::from_nanos(self.request.process.store.loss_bound.0 / 8));
        let mut latest = Status::default();
        let mut next = interval;
        loop {
            std::thread::sleep(tick);
            let (elapsed, now) = (self.started.elapsed(), clock());
            self.process.tick(now);
            let wants_table = self.signals.say_table();
            let is_due = elapsed >= next;
            if is_due || wants_table || self.request.count.is_some() {
                let report = self.process.report();
                let is_enough = self.request.count.is_some_and(|count| report.records() >= count);
                let status = Status::after(&latest, report, elapsed, now);
                if let Some(server) = &self.server {
                    server.tell(&status.report);
                }
                if wants_table {
                    say(&status, true, self.request.show)?;
                }
                if is_due {
                    say(&status, false, self.request.show)?;
                    latest = status;
                    next = elapsed + interval;
                }
                if is_enough {
                    break;
                }
            }
            if self.process.has_failed() {
                anyhow::bail!("a thread of the collector ended before its time");
            }
            let is_over = self.request.duration.is_some_and(|duration| elapsed >= duration);
            if is_over || self.signals.say_stop() {
                break;
            }
        }
        Ok(self.process.finish(clock()))
    }

    /// The live view; when it is left, everything stops.
    fn show_live(&mut self) -> anyhow::Result<Report> {
        let (statuses, shown) = bounded::<Status>(STATUSES_IN_FLIGHT);
        let (asked, _) = unbounded::<()>();
        let stop = self.signals.stop.clone();
        let directory = self.request.process.store.directory.clone();
        std::thread::scope(|scope| {
            let running = scope.spawn(|| {
                let statuses: Sender<Status> = statuses;
                let report = self.until_stopped(|status, _, _| {
                    // A terminal that does not keep up gets a later one; the view may have been left already.
                    let _ = statuses.try_send(status.clone());
                    Ok(())
                });
                // Also the view ends.
                self.signals.stop.store(true, Ordering::Relaxed);
                report
            });
            let mut view = CollectView::new(Theme::of_process(), &directory);
            let left = terminal::run(&mut view, &shown, &asked, &stop);
            stop.store(true, Ordering::Relaxed);
            let report = match running.join() {
                Ok(report) => report,
                Err(panic) => std::panic::resume_unwind(panic),
            };
            left.context("cannot show the live view (try --summary or --json)")?;
            report
        })
    }
}
