//! A collector's thread: opens its source, reads it, and begins again when it fails.

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
use super::core::{CHUNK, Core};
use super::source::{OpenSource, Opened, SourceError};
use crate::clock::wall_clock;
use crate::config::SourceConfig;
use crate::event::CollectorState;
use thalweg_watch::Pace;

/// How late an interface that is silent is against the clock, beyond what the kernel may gather packets for: what its
/// timers are late by.
pub(super) const SILENCE_MARGIN: Nanos = Nanos::from_millis(20);

/// How often the source's counters are read.
const COUNTING_INTERVAL: Duration = Duration::from_millis(200);

/// After an answer to a question that came while no packets did, the next question is waited for: who wants all flows
/// asks many.
const NEXT_QUESTION: Duration = Duration::from_micros(200);

/// Questions that are waited for in a row.
const QUESTIONS_IN_A_ROW: usize = 256;

/// How long a replay waits at most before it looks whether it is to stop.
const NAP: Duration = Duration::from_millis(20);

/// A collector's thread.
pub(super) struct Worker {
    pub(super) core: Core,
    pub(super) stop: Arc<AtomicBool>,
}

/// How reading ended.
enum End {
    /// The source has no more.
    OfInput,
    /// It was told to stop.
    Stopped,
}

impl Worker {
    /// Works until it is told to stop. `first` is the source, if somebody has tried to open it before.
    pub(super) fn run(mut self, first: Option<Result<Opened, SourceError>>) {
        let name = self.core.mailbox.description().name.clone();
        let mut backoff = Backoff::default();
        let mut attempt = first;
        while !self.is_stopped() {
            let opened =
                attempt.take().unwrap_or_else(|| Opened::open(self.core.config(), self.core.emulation()));
            let begun = Instant::now();
            let was_opened = opened.is_ok();
            let failure = match opened.map(|opened| self.work(opened)) {
                Ok(Ok(Ok(End::OfInput))) => {
                    tracing::info!(collector = &*name, "end of input");
                    self.core.set_state(CollectorState::Ended);
                    self.answer_until_stopped();
                    break;
                }
                Ok(Ok(Ok(End::Stopped))) => break,
                Ok(Ok(Err(error))) | Err(error) => error.to_string(),
                Ok(Err(panic)) => {
                    if let Err(error) = self.core.renew() {
                        tracing::error!(collector = &*name, %error, "cannot restart");
                    }
                    format!("a mistake of the program: {}", words_of(&*panic))
                }
            };
            // A file that was read in part would be told of twice.
            if was_opened && !self.core.config().source.is_live() {
                tracing::error!(collector = &*name, error = failure, "input ended early");
                self.core.set_state(CollectorState::Failed { error: failure, retry_at: None });
                self.answer_until_stopped();
                break;
            }
            let wait = backoff.after(begun.elapsed());
            tracing::warn!(
                collector = &*name,
                wait_ms = wait.as_millis() as u64,
                error = failure,
                "source failed, retrying"
            );
            let retry_at = Some(wall_clock() + Nanos(wait.as_nanos() as u64));
            self.core.set_state(CollectorState::Failed { error: failure, retry_at });
            self.wait_for(wait);
            self.core.mailbox.note_restart();
        }
        self.core.finish();
        self.core.set_state(CollectorState::Stopped);
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Waits before the next attempt. Time goes on meanwhile: flows end, and links that nothing is seen of any more are idle.
    fn wait_for(&mut self, wait: Duration) {
        let until = Instant::now() + wait;
        let is_live = self.core.config().source.is_live();
        while !self.is_stopped() && Instant::now() < until {
            let stop = Arc::clone(&self.stop);
            let left = until.saturating_duration_since(Instant::now());
            self.core.answer_for(left.min(COUNTING_INTERVAL), || stop.load(Ordering::Relaxed));
            self.core.catch_up();
            if is_live {
                self.core.advance(wall_clock().saturating_sub(SILENCE_MARGIN));
            }
        }
    }

    fn answer_until_stopped(&mut self) {
        let stop = Arc::clone(&self.stop);
        while !self.is_stopped() {
            self.core.answer_for(NAP, || stop.load(Ordering::Relaxed));
        }
    }

    /// Reads a source; a panic is caught.
    fn work(&mut self, opened: Opened) -> Result<Result<End, SourceError>, Box<dyn Any + Send>> {
        let Opened { source, backend } = opened;
        let name = &*self.core.mailbox.description().name;
        tracing::info!(collector = name, source = self.core.config().source.in_words(), backend, "reading");
        self.core.mailbox.set_backend(backend);
        self.core.set_state(CollectorState::Running);
        let result = catch_unwind(AssertUnwindSafe(|| match source {
            OpenSource::Input(input) => {
                let clock = clock_in_silence(&self.core.config().source);
                self.read(*input, AnySource::is_down, clock)
            }
            OpenSource::Emulation(plan) => self.emulate(*plan),
            OpenSource::Port(port) => {
                let clock = port.clock();
                self.read_filtered(port, move || Some(clock()))
            }
            #[cfg(test)]
            OpenSource::Injected(source) => {
                let clock = clock_in_silence(&self.core.config().source);
                self.read(source, |_| false, clock)
            }
        }));
        self.core.close_source();
        result
    }

    fn emulate(&mut self, plan: Plan) -> Result<End, SourceError> {
        let SourceConfig::Emulation { mirror, .. } = self.core.config().source.clone() else {
            unreachable!("an emulation was opened")
        };
        let topology = plan.topology.clone();
        let feed = MirrorPort::new(plan, &topology, &mirror)?;
        self.read_filtered(feed, || None)
    }

    /// Reads an emulated source through the filter, if there is one.
    fn read_filtered(
        &mut self,
        source: impl Source<Error = Infallible>,
        clock: impl Fn() -> Option<Timestamp>,
    ) -> Result<End, SourceError> {
        match self.core.config().filter.clone() {
            None => self.read(source, |_| false, clock),
            Some(expression) => self.read(Filtered::new(source, expression)?, |_| false, clock),
        }
    }

    /// Reads a source to its end, or until it is told to stop. `clock` is asked when nothing comes: the time up to which
    /// nothing will come any more, if that is known.
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
        let is_live = self.core.config().source.is_live();
        let mut pace = self.core.config().source.speed().map(Pace::new);
        let mut counted = Instant::now();
        let mut was_down = false;
        while !self.is_stopped() {
            self.core.mailbox.beat();
            let batch = match source.next_batch() {
                Ok(Some(batch)) => batch,
                end => {
                    let end = end.map(|_| End::OfInput).map_err(SourceError::from);
                    self.core.source = source.counters();
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
                    self.core.advance(now);
                }
                self.answer_in_silence();
            }
            if counted.elapsed() >= COUNTING_INTERVAL || is_silent {
                counted = arrived;
                self.core.source = source.counters();
                self.core.catch_up();
                if std::mem::replace(&mut was_down, is_down(&source)) != was_down {
                    let name = &*self.core.mailbox.description().name;
                    tracing::warn!(collector = name, "interface {}", if was_down { "down" } else { "up" });
                }
            }
        }
        self.core.source = source.counters();
        Ok(End::Stopped)
    }

    /// Measures a batch chunk by chunk, when each is due; `arrived` is when it came, of a live source. Says whether to go
    /// on.
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
                    self.core.answer_for(wait.min(NAP), || stop.load(Ordering::Relaxed));
                    if self.is_stopped() {
                        return false;
                    }
                    continue;
                }
                let is_early = |frame: &FrameRef| pace.wait(frame.time, Instant::now()) > Duration::ZERO;
                chunk = frames[..chunk].iter().position(is_early).unwrap_or(chunk);
            }
            let (these, later) = frames.split_at(chunk);
            self.core.take(&Batch { frames: these, ..*batch }, arrived.unwrap_or_else(Instant::now));
            self.core.answer();
            if self.is_stopped() {
                return false;
            }
            frames = later;
        }
        true
    }

    /// Answers while no packets come; a series of questions is not to wait 100 ms for each answer.
    fn answer_in_silence(&mut self) {
        let mut left = if self.core.answer() { QUESTIONS_IN_A_ROW } else { 0 };
        while left > 0 {
            left = if self.core.answer_next(NEXT_QUESTION) { left - 1 } else { 0 };
        }
    }
}

/// The time up to which nothing will come any more of a source that is silent: of an interface.
pub(super) fn clock_in_silence(source: &SourceConfig) -> impl Fn() -> Option<Timestamp> + use<> {
    let margin = match *source {
        // Nothing is gathered.
        SourceConfig::Interface { backend: Some(Backend::Prompt), .. } => Some(SILENCE_MARGIN),
        SourceConfig::Interface { block_timeout, .. } => {
            Some(SILENCE_MARGIN.saturating_add(Nanos(2 * block_timeout.0)))
        }
        _ => None,
    };
    move || margin.map(|margin| wall_clock().saturating_sub(margin))
}

/// What a panic said.
pub(super) fn words_of(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "a panic".to_owned())
}

/// A feed never fails.
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
