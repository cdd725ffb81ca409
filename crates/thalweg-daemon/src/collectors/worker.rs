//! The thread of a collector: opens its source, reads it, and retries after a failure.

use std::any::Any;
use std::convert::Infallible;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use thalweg_capture::AnySource;
use thalweg_capture::backend::Backend;
use thalweg_capture::filter::{Filtered, FilteredError};
use thalweg_experiment::Plan;
use thalweg_experiment::mirror::port::MirrorPort;
use thalweg_wire::{Batch, FrameRef, Nanos, Source, Timestamp};

use super::backoff::Backoff;
use super::pipeline::{CHUNK, Pipeline};
use super::source::{OpenSource, OpenedSource, SourceError};
use crate::config::SourceConfig;
use crate::event::CollectorState;
use thalweg_linux::clock::realtime;
use thalweg_watch::Pace;

/// Safety margin for delays of kernel timers. The packet time of an idle interface is the wall clock minus this margin and
/// the time for which the kernel may batch packets.
pub(super) const SILENCE_MARGIN: Nanos = Nanos::from_millis(20);

/// Interval at which the counters of the source are read.
const COUNTING_INTERVAL: Duration = Duration::from_millis(200);

/// How long to wait for another request after serving one in silence. A client that reads all flows sends many.
const NEXT_REQUEST_TIMEOUT: Duration = Duration::from_micros(200);

/// Maximum number of requests to serve in a row.
const MAX_REQUEST_SERIES: usize = 256;

/// Interval at which waiting code checks for a stop request.
const STOP_CHECK_INTERVAL: Duration = Duration::from_millis(20);

/// The thread of a collector.
pub(super) struct Worker {
    pub(super) pipeline: Pipeline,
    pub(super) stop: Arc<AtomicBool>,
}

/// How the reading of a source ended.
enum End {
    /// End of input.
    OfInput,
    /// The collector was stopped.
    Stopped,
}

impl Worker {
    /// Runs until stopped. `first` is the result of an earlier attempt to open the source.
    pub(super) fn run(mut self, first: Option<Result<OpenedSource, SourceError>>) {
        let name = self.pipeline.mailbox.description().name.clone();
        let mut backoff = Backoff::default();
        let mut attempt = first;
        while !self.is_stopped() {
            let opened = attempt
                .take()
                .unwrap_or_else(|| OpenedSource::open(self.pipeline.config(), self.pipeline.emulation()));
            let start = Instant::now();
            let was_opened = opened.is_ok();
            let failure = match opened.map(|opened| self.work(opened)) {
                Ok(Ok(Ok(End::OfInput))) => {
                    tracing::info!(collector = &*name, "end of input");
                    self.pipeline.set_state(CollectorState::Ended);
                    self.serve_requests_until_stopped();
                    break;
                }
                Ok(Ok(Ok(End::Stopped))) => break,
                Ok(Ok(Err(error))) | Err(error) => error.to_string(),
                Ok(Err(panic)) => {
                    if let Err(error) = self.pipeline.reset_after_panic() {
                        tracing::error!(collector = &*name, %error, "cannot restart");
                    }
                    format!("internal error: {}", panic_message(&*panic))
                }
            };
            // Rereading a partly read file would report its packets twice.
            if was_opened && !self.pipeline.config().source.is_live() {
                tracing::error!(collector = &*name, error = failure, "input ended early");
                self.pipeline.set_state(CollectorState::Failed { error: failure, retry_at: None });
                self.serve_requests_until_stopped();
                break;
            }
            let wait = backoff.after(start.elapsed());
            tracing::warn!(
                collector = &*name,
                wait_ms = wait.as_millis() as u64,
                error = failure,
                "source failed, retrying"
            );
            let retry_at = Some(realtime() + Nanos(wait.as_nanos() as u64));
            self.pipeline.set_state(CollectorState::Failed { error: failure, retry_at });
            self.wait_for(wait);
            self.pipeline.mailbox.note_restart();
        }
        self.pipeline.finish();
        self.pipeline.set_state(CollectorState::Stopped);
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Waits before the next attempt. Time advances meanwhile: flows time out, and links become idle.
    fn wait_for(&mut self, wait: Duration) {
        let until = Instant::now() + wait;
        let is_live = self.pipeline.config().source.is_live();
        while !self.is_stopped() && Instant::now() < until {
            let stop = Arc::clone(&self.stop);
            let left = until.saturating_duration_since(Instant::now());
            self.pipeline.serve_requests_for(left.min(COUNTING_INTERVAL), || stop.load(Ordering::Relaxed));
            self.pipeline.update_network();
            if is_live {
                self.pipeline.advance(realtime().saturating_sub(SILENCE_MARGIN));
            }
        }
    }

    fn serve_requests_until_stopped(&mut self) {
        let stop = Arc::clone(&self.stop);
        while !self.is_stopped() {
            self.pipeline.serve_requests_for(STOP_CHECK_INTERVAL, || stop.load(Ordering::Relaxed));
        }
    }

    /// Reads a source, and catches panics.
    fn work(&mut self, opened: OpenedSource) -> Result<Result<End, SourceError>, Box<dyn Any + Send>> {
        let OpenedSource { source, backend } = opened;
        let name = &*self.pipeline.mailbox.description().name;
        tracing::info!(
            collector = name,
            source = self.pipeline.config().source.description(),
            backend,
            "reading"
        );
        self.pipeline.mailbox.set_backend(backend);
        self.pipeline.set_state(CollectorState::Running);
        let result = catch_unwind(AssertUnwindSafe(|| match source {
            OpenSource::Input(input) => {
                let clock = clock_in_silence(&self.pipeline.config().source);
                self.read(*input, AnySource::is_down, clock)
            }
            OpenSource::Emulation(plan) => self.emulate(*plan),
            OpenSource::Port(port) => {
                let clock = port.clock();
                self.read_filtered(port, move || Some(clock()))
            }
            #[cfg(test)]
            OpenSource::Injected(source) => {
                let clock = clock_in_silence(&self.pipeline.config().source);
                self.read(source, |_| false, clock)
            }
        }));
        self.pipeline.end_source();
        result
    }

    fn emulate(&mut self, plan: Plan) -> Result<End, SourceError> {
        let SourceConfig::Emulation { mirror, .. } = self.pipeline.config().source.clone() else {
            unreachable!("an emulation was opened")
        };
        let topology = plan.topology.clone();
        let feed = MirrorPort::new(plan, &topology, &mirror)?;
        self.read_filtered(feed, || None)
    }

    /// Reads an emulated source through the configured filter.
    fn read_filtered(
        &mut self,
        source: impl Source<Error = Infallible>,
        clock: impl Fn() -> Option<Timestamp>,
    ) -> Result<End, SourceError> {
        match self.pipeline.config().capture_filter.clone() {
            None => self.read(source, |_| false, clock),
            Some(expression) => self.read(Filtered::new(source, expression)?, |_| false, clock),
        }
    }

    /// Reads a source until its end, or until stopped. In silence, `clock` returns the time before which no more packets can
    /// arrive, if known.
    fn read<S>(
        &mut self,
        mut source: S,
        is_down: impl Fn(&S) -> bool,
        clock: impl Fn() -> Option<Timestamp>,
    ) -> Result<End, SourceError>
    where
        S: Source,
        SourceError: From<S::Error>,
    {
        let is_live = self.pipeline.config().source.is_live();
        let mut pace = self.pipeline.config().source.speed().map(Pace::new);
        let mut counted = Instant::now();
        let mut was_down = false;
        while !self.is_stopped() {
            self.pipeline.mailbox.beat();
            let batch = match source.next_batch() {
                Ok(Some(batch)) => batch,
                end => {
                    let end = end.map(|_| End::OfInput).map_err(SourceError::from);
                    self.pipeline.count_source(source.counters());
                    return end;
                }
            };
            let arrived = Instant::now();
            let is_silent = batch.frames.is_empty();
            if !self.measure(&batch, pace.as_mut(), is_live.then_some(arrived)) {
                break;
            }
            if is_silent {
                if let Some(now) = clock() {
                    self.pipeline.advance(now);
                }
                self.serve_requests_in_silence();
            }
            if counted.elapsed() >= COUNTING_INTERVAL || is_silent {
                counted = arrived;
                self.pipeline.count_source(source.counters());
                self.pipeline.update_network();
                if std::mem::replace(&mut was_down, is_down(&source)) != was_down {
                    let name = &*self.pipeline.mailbox.description().name;
                    tracing::warn!(collector = name, "interface {}", if was_down { "down" } else { "up" });
                }
            }
        }
        self.pipeline.count_source(source.counters());
        Ok(End::Stopped)
    }

    /// Measures a batch in chunks, each when it is due. `arrived` is the arrival time of a live batch. Returns whether to
    /// continue.
    #[inline]
    pub(super) fn measure(
        &mut self,
        batch: &Batch<'_>,
        mut pace: Option<&mut Pace>,
        arrived: Option<Instant>,
    ) -> bool {
        let mut frames = batch.frames;
        while let Some(first) = frames.first() {
            let mut chunk = frames.len().min(CHUNK);
            if let Some(pace) = pace.as_deref_mut() {
                let wait = pace.wait(first.time, Instant::now());
                if wait > Duration::ZERO {
                    let stop = Arc::clone(&self.stop);
                    self.pipeline
                        .serve_requests_for(wait.min(STOP_CHECK_INTERVAL), || stop.load(Ordering::Relaxed));
                    if self.is_stopped() {
                        return false;
                    }
                    continue;
                }
                let is_early = |frame: &FrameRef| pace.wait(frame.time, Instant::now()) > Duration::ZERO;
                chunk = frames[..chunk].iter().position(is_early).unwrap_or(chunk);
            }
            let (these, later) = frames.split_at(chunk);
            self.pipeline.measure(&Batch { frames: these, ..*batch }, arrived.unwrap_or_else(Instant::now));
            self.pipeline.serve_request();
            if self.is_stopped() {
                return false;
            }
            frames = later;
        }
        true
    }

    /// Serves requests while no packets arrive. Without this, each of a series of requests would wait 100 ms.
    fn serve_requests_in_silence(&mut self) {
        let mut left = if self.pipeline.serve_request() { MAX_REQUEST_SERIES } else { 0 };
        while left > 0 {
            left = if self.pipeline.serve_next_request(NEXT_REQUEST_TIMEOUT) { left - 1 } else { 0 };
        }
    }
}

/// Returns a function for the time before which no more packets of a silent interface can arrive; `None` for other sources.
pub(super) fn clock_in_silence(source: &SourceConfig) -> impl Fn() -> Option<Timestamp> + use<> {
    let margin = match *source {
        // This backend does not batch packets.
        SourceConfig::Interface { backend: Some(Backend::Prompt), .. } => Some(SILENCE_MARGIN),
        SourceConfig::Interface { block_timeout, .. } => {
            Some(SILENCE_MARGIN.saturating_add(Nanos(2 * block_timeout.0)))
        }
        _ => None,
    };
    move || margin.map(|margin| realtime().saturating_sub(margin))
}

/// Returns the message of a panic.
pub(super) fn panic_message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "a panic".to_owned())
}

/// Emulated sources do not fail.
impl From<Infallible> for SourceError {
    fn from(never: Infallible) -> SourceError {
        match never {}
    }
}

impl From<FilteredError<Infallible>> for SourceError {
    fn from(error: FilteredError<Infallible>) -> SourceError {
        match error {
            FilteredError::Filter(error) => SourceError::Filter(error),
            FilteredError::Source(never) => match never {},
        }
    }
}
