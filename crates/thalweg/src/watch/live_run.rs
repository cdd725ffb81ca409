//! Runs the live view: the measurement in one thread, the terminal in another.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::Context;
use crossbeam_channel::{bounded, unbounded};
use thalweg_linux::privileges::{check_writable, user_id};
use thalweg_watch::flow_capture::{FlowCaptureState, FlowCaptureStatus, FlowCaptures};
use thalweg_watch::options::{Names, WatchOptions};
use thalweg_watch::{Message, Totals, ViewFeed, Watch, WatchUpdate, WorkerOptions};

use super::live_view::{LiveView, Query, Snapshot, Theme};
use crate::console;
use crate::figures::grouped;
use crate::names::{Resolver, Services};
use crate::terminal;

/// Capacity of the channel of snapshots to the live view.
const SNAPSHOTS_IN_FLIGHT: usize = 2;

/// Maximum time to wait for a slow terminal to accept the last snapshot.
const LAST_SNAPSHOT_WAIT: Duration = Duration::from_secs(2);

/// Maximum number of addresses whose names a snapshot has.
const MAX_NAMES: usize = 1_000;

/// How long the live view waits for a query after the end of input.
const QUERY_TIMEOUT: Duration = Duration::from_millis(200);

/// Runs the live view. Quitting it stops the run.
pub(super) fn show_live(
    mut watch: Watch,
    options: &WatchOptions,
    stop: &AtomicBool,
) -> anyhow::Result<Totals> {
    let (snapshots, receiver) = bounded(SNAPSHOTS_IN_FLIGHT);
    let (query_sender, queries) = unbounded::<Query>();
    let filter = &options.flow_filter;
    let names = match options.names {
        Names::Auto => watch.is_live(),
        Names::Always => true,
        Names::Never => false,
    };
    let grouping = options.grouping;
    let first = Query { filter: filter.clone(), grouping, names, ..Query::default() };
    let query = Arc::new(Mutex::new(first.clone()));
    let context = watch.flow_context();
    let mut captures = watch.take_flow_captures();
    check_directory(&options.flow_capture.directory)?;
    let resolver = Resolver::start().context("cannot look up names")?;
    let worker_options = WorkerOptions {
        records: watch.exports_flows(),
        views: Some(Arc::clone(&query)),
        largest: options.top,
        grouping: options.grouping,
        filter: filter.clone(),
    };
    let mut view = LiveView::with_query(Theme::of_process(), first, Services::of_system());
    let mut feed = ViewFeed::new(watch.workers(), watch.is_live(), watch.is_replayed(), options.table);
    let is_closed = &AtomicBool::new(false);
    std::thread::scope(|scope| {
        let running = scope.spawn(move || {
            let current = || query.lock().unwrap_or_else(PoisonError::into_inner).clone();
            let complete = |snapshot: &mut Snapshot, query: &Query, captures: &FlowCaptures| {
                snapshot.tags = context.tags();
                snapshot.capture = captures.status();
                if query.names {
                    snapshot.names = resolver.names(snapshot.addresses().take(MAX_NAMES));
                }
            };
            let totals = thalweg_watch::run(watch, worker_options, stop, |update, totals| {
                if let Some(latest) = queries.try_iter().last() {
                    captures.follow(latest.capture);
                    *query.lock().unwrap_or_else(PoisonError::into_inner) = latest;
                }
                if let WatchUpdate::Message(Message::View(view)) = update {
                    feed.add((**view).clone());
                    // Skip a snapshot if the terminal is slow or the view is closed.
                    let query = current();
                    let mut snapshot = feed.snapshot(&query, totals, false);
                    complete(&mut snapshot, &query, &captures);
                    let _ = snapshots.try_send(snapshot);
                }
            });
            let totals: Totals = totals?;
            let mut query = current();
            let mut last = feed.snapshot(&query.clone().last(), &totals, true);
            complete(&mut last, &query, &captures);
            let _ = snapshots.send_timeout(last.clone(), LAST_SNAPSHOT_WAIT);
            // Names still arrive, and files can be read again.
            while !stop.load(Ordering::Relaxed) && !is_closed.load(Ordering::Relaxed) {
                if let Ok(latest) = queries.recv_timeout(QUERY_TIMEOUT) {
                    query = queries.try_iter().last().unwrap_or(latest);
                    captures.follow(query.capture);
                }
                let before = (last.capture.clone(), last.names.len());
                complete(&mut last, &query, &captures);
                if before != (last.capture.clone(), last.names.len()) {
                    let _ = snapshots.try_send(last.clone());
                }
            }
            captures.stop();
            Ok((totals, captures.status()))
        });
        let result = terminal::run(&mut view, &receiver, &query_sender, options.mouse, stop);
        stop.store(true, Ordering::Relaxed);
        is_closed.store(true, Ordering::Relaxed);
        // The view is closed: the thread must not wait for room for the last snapshot.
        drop(receiver);
        let outcome: anyhow::Result<_> = match running.join() {
            Ok(outcome) => outcome,
            Err(panic) => std::panic::resume_unwind(panic),
        };
        result.context("cannot show the live view (try --summary or --json)")?;
        let (totals, capture) = outcome?;
        if let Some(capture) = capture {
            console::note(format_args!("thalweg: {}", capture_text(&capture)));
        }
        Ok(totals)
    })
}

/// Checks that files with packets of flows can be written, if a directory other than the current one is configured. In the current
/// directory, the error comes with the file.
fn check_directory(directory: &Path) -> anyhow::Result<()> {
    if directory == Path::new(".") {
        return Ok(());
    }
    check_writable(directory).with_context(|| {
        format!(
            "--capture-directory: the user as whom packets are read, user ID {}, cannot create files in {}",
            user_id(),
            directory.display()
        )
    })
}

/// Returns what became of a file with packets of a flow, in one line.
pub(super) fn capture_text(capture: &FlowCaptureStatus) -> String {
    let FlowCaptureStatus { path, packets, bytes, lost, state, .. } = capture;
    let path = path.strip_prefix(".").unwrap_or(path).display();
    let lost =
        if *lost > 0 { format!(", {} lost because the disk is slow", grouped(*lost)) } else { String::new() };
    let amount = format!("{} packets, {bytes}{lost}", grouped(*packets));
    match state {
        FlowCaptureState::Running => format!("writing {path}: {amount}"),
        FlowCaptureState::Complete => format!("wrote {path}: {amount}"),
        FlowCaptureState::Full => {
            format!("wrote {path}: {amount}, then its maximum size was reached (--capture-limit)")
        }
        FlowCaptureState::Failed(error) => error.clone(),
    }
}
