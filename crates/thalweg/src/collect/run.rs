//! Collection from sockets, until a signal or a limit stops it.

use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context;
use crossbeam_channel::{Sender, bounded, unbounded};
use signal_hook::consts::{SIGINT, SIGTERM, SIGUSR1};
use thalweg_linux::clock::realtime;
use thalweg_records::collect::{CollectingProcess, ReplayCounts, Report, TemplateFileReport};
use thalweg_records::store::Recovered;

use super::live_view::CollectView;
use super::metrics::MetricsServer;
use super::status::Status;
use super::{CollectRequest, Outcome, Show, json, text};
use crate::console;
use crate::figures::grouped;
use crate::terminal::{self, Theme};

/// Maximum time between two checks for due work.
const TICK: Duration = Duration::from_millis(50);

/// Capacity of the channel of statuses to the live view.
const STATUSES_IN_FLIGHT: usize = 2;

/// Flags set by signals.
pub(super) struct Signals {
    pub(super) stop: Arc<AtomicBool>,
    pub(super) table: Arc<AtomicBool>,
}

impl Signals {
    fn register() -> io::Result<Signals> {
        let [stop, table] = std::array::from_fn(|_| Arc::<AtomicBool>::default());
        for signal in [SIGINT, SIGTERM] {
            // A second signal ends the process while it is stopping.
            signal_hook::flag::register_conditional_shutdown(signal, 128 + signal, Arc::clone(&stop))?;
            signal_hook::flag::register(signal, Arc::clone(&stop))?;
        }
        signal_hook::flag::register(SIGUSR1, Arc::clone(&table))?;
        Ok(Signals { stop, table })
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    pub(super) fn take_exporters_request(&self) -> bool {
        self.table.swap(false, Ordering::Relaxed)
    }
}

/// Collects until stopped, or until all capture files are read.
///
/// # Errors
/// If collection cannot start, or standard output cannot be written. Later losses and errors are in the report.
pub fn run(request: CollectRequest) -> anyhow::Result<Outcome> {
    let signals = Signals::register()?;
    if !request.replay.is_empty() {
        return super::replay::run(request, &signals);
    }
    let server = request.metrics.map(MetricsServer::start).transpose().context("cannot serve metrics")?;
    let process = CollectingProcess::start(request.process.clone(), None)?;
    print_recovered(&process.recovered());
    let mut collecting = CollectRun { process, request, server, signals, started: Instant::now() };
    collecting.print_listeners();
    let report = match collecting.request.show {
        Show::LiveView => collecting.show_live()?,
        _ => collecting.run_until_stopped(print_status)?,
    };
    finish(report, &collecting.request, collecting.started.elapsed(), None)?;
    Ok(Outcome::Complete)
}

/// Prints what was recovered after a crash.
pub(super) fn print_recovered(recovered: &Recovered) {
    if recovered.records > 0 {
        console::note(format_args!(
            "thalweg: recovered {} records of a previous run",
            grouped(recovered.records)
        ));
    }
    if recovered.torn > 0 {
        console::warn(format_args!(
            "lost {} bytes of incomplete records at the end of spool segments ({})",
            grouped(recovered.torn_bytes),
            recovered.torn
        ));
    }
    for kept in &recovered.kept {
        console::warn(format_args!("kept {}: {}", kept.path.display(), kept.reason));
    }
}

/// Prints the report.
///
/// # Errors
/// If the report cannot be written, or rows could not be stored.
pub(super) fn finish(
    report: Report,
    request: &CollectRequest,
    elapsed: Duration,
    capture: Option<&ReplayCounts>,
) -> anyhow::Result<()> {
    let status = Status::last(report, elapsed, realtime());
    let directory: &Path = &request.process.store.directory;
    let mut out = BufWriter::new(io::stdout().lock());
    match request.show {
        Show::Json => json::summary(&mut out, &status, capture),
        _ => out.write_all(text::report(&status, directory, capture).as_bytes()),
    }
    .and_then(|()| out.flush())
    .context("cannot write the report")?;
    match text::store_failure(&status.report) {
        Some(failure) => anyhow::bail!(failure),
        None => Ok(()),
    }
}

/// Prints the status or the exporters in the selected format.
fn print_status(status: &Status, exporters_requested: bool, show: Show) -> anyhow::Result<()> {
    let mut out = BufWriter::new(io::stdout().lock());
    match (show, exporters_requested) {
        (Show::Json, false) => json::status(&mut out, status),
        (Show::Json, true) => json::exporters(&mut out, status),
        (_, true) => out.write_all(text::exporters(&status.report).as_bytes()),
        (_, false) => Ok(()),
    }
    .and_then(|()| out.flush())
    .context("cannot write to standard output")
}

fn print_templates(templates: &TemplateFileReport) {
    if templates.templates > 0 {
        console::note(format_args!(
            "thalweg: restored {} of {}",
            text::counted(templates.templates as usize, "template"),
            text::counted(templates.sessions as usize, "exporter"),
        ));
    }
    if let Some(error) = &templates.last_error {
        console::warn(format_args!("{error}; data wait until exporters resend their templates"));
    }
}

struct CollectRun {
    process: CollectingProcess,
    request: CollectRequest,
    server: Option<MetricsServer>,
    signals: Signals,
    started: Instant,
}

impl CollectRun {
    /// Prints automatically assigned ports, the templates of an earlier run, and a warning if the receive buffers are smaller
    /// than requested.
    fn print_listeners(&mut self) {
        for (listen, address) in self.process.addresses() {
            // The system assigned this port.
            if listen.port == 0 {
                console::note(format_args!("thalweg: listening on {listen}: {address}"));
            }
        }
        let report = self.process.report();
        print_templates(&report.templates);
        let granted =
            report.sockets.iter().map(|socket| (socket.receive_buffer, socket.receive_buffer_requested));
        if let Some((granted, requested)) = granted.filter(|(granted, requested)| granted < requested).min() {
            console::warn(format_args!(
                "the kernel granted {} of {} bytes of receive buffer per socket; \
                 to raise it: sysctl -w net.core.rmem_max={requested}, or run with CAP_NET_ADMIN",
                grouped(granted as u64),
                grouped(requested as u64),
            ));
        }
    }

    /// Runs until stopped. Passes each status to `report_status`, with a flag if the exporters were requested by a signal.
    fn run_until_stopped(
        &mut self,
        mut report_status: impl FnMut(&Status, bool, Show) -> anyhow::Result<()>,
    ) -> anyhow::Result<Report> {
        let interval = self.request.interval;
        let tick = TICK.min(Duration::from_nanos(self.request.process.store.sync_interval.0 / 8));
        let mut latest = Status::default();
        let mut next = interval;
        loop {
            std::thread::sleep(tick);
            let (elapsed, now) = (self.started.elapsed(), realtime());
            self.process.tick(now);
            let exporters_requested = self.signals.take_exporters_request();
            let is_due = elapsed >= next;
            if is_due || exporters_requested || self.request.count.is_some() {
                let report = self.process.report();
                let count_reached = self.request.count.is_some_and(|count| report.records() >= count);
                let status = Status::after(&latest, report, elapsed, now);
                if let Some(server) = &self.server {
                    server.publish(&status.report);
                }
                if exporters_requested {
                    report_status(&status, true, self.request.show)?;
                }
                if is_due {
                    report_status(&status, false, self.request.show)?;
                    latest = status;
                    next = elapsed + interval;
                }
                if count_reached {
                    break;
                }
            }
            if self.process.has_failed() {
                anyhow::bail!("a collector thread ended unexpectedly");
            }
            let is_over = self.request.duration.is_some_and(|duration| elapsed >= duration);
            if is_over || self.signals.is_stopped() {
                break;
            }
        }
        Ok(self.process.finish(realtime()))
    }

    /// Runs the live view. Quitting it stops the collection.
    fn show_live(&mut self) -> anyhow::Result<Report> {
        let (statuses, receiver) = bounded::<Status>(STATUSES_IN_FLIGHT);
        let (queries, _) = unbounded::<()>();
        let stop = self.signals.stop.clone();
        let directory = self.request.process.store.directory.clone();
        std::thread::scope(|scope| {
            let running = scope.spawn(|| {
                let statuses: Sender<Status> = statuses;
                let report = self.run_until_stopped(|status, _, _| {
                    // Skip a status if the terminal is slow or the view is closed.
                    let _ = statuses.try_send(status.clone());
                    Ok(())
                });
                // Close the view too.
                self.signals.stop.store(true, Ordering::Relaxed);
                report
            });
            let mut view = CollectView::new(Theme::of_process(), &directory);
            let result = terminal::run(&mut view, &receiver, &queries, false, &stop);
            stop.store(true, Ordering::Relaxed);
            let report = match running.join() {
                Ok(report) => report,
                Err(panic) => std::panic::resume_unwind(panic),
            };
            result.context("cannot show the live view (try --summary or --json)")?;
            report
        })
    }
}
