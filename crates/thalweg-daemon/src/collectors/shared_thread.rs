//! All collectors and the control loop on one thread (`[process] threads = "one"`): no thread has to wake up between a packet
//! and the reroute that it causes.
//!
//! Each round polls all collectors, and processes the events of each at once. After a busy round the thread sleeps briefly, so that
//! single frames do not cost a wake-up each. When all interfaces are silent it sleeps until a frame arrives.
//!
//! Only sources that can report whether packets are waiting can share a thread: interfaces, and ports of `[emulate]`.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, Sender, unbounded};
use thalweg_capture::live::LinkState;
use thalweg_capture::{AnySource, wait_any};
use thalweg_wire::{Nanos, Source, Timestamp};

use super::backoff::Backoff;
use super::source::{OpenSource, OpenedSource, SourceError};
use super::worker::{SILENCE_MARGIN, Worker, clock_in_silence, panic_message};
use crate::emulation::EmulatedPort;
use crate::event::CollectorState;
use thalweg_linux::clock::realtime;

/// Sleep after a busy round: the maximum wait of a packet, wake-up excluded.
const BUSY_SLEEP: Duration = Duration::from_micros(50);

/// Sleep after an idle round, if input may come from an emulation or other daemons, which cannot wake the thread.
const IDLE_SLEEP: Duration = Duration::from_micros(500);

/// Interval of the ticks of collectors and control loop.
const TICK: Duration = Duration::from_millis(5);

/// Interval at which the counters of the sources are read.
const COUNTING_INTERVAL: Duration = Duration::from_millis(200);

/// The thread that collectors share.
#[derive(Debug)]
pub(crate) struct SharedThread {
    new_member_sender: Sender<NewMember>,
}

/// A collector or an event loop to add.
enum NewMember {
    Collector(Box<Member>),
    Control(Box<dyn EventLoop>),
}

impl SharedThread {
    /// Starts the thread. It ends after this is dropped and all collectors have ended.
    ///
    /// # Errors
    /// If the thread cannot be started.
    pub(crate) fn start() -> std::io::Result<(SharedThread, JoinHandle<()>)> {
        let (new_member_sender, new_members) = unbounded();
        let run = move || Scheduler { new_members, members: Vec::new(), control: None }.run();
        let thread = std::thread::Builder::new().name("collectors".to_owned()).spawn(run)?;
        Ok((SharedThread { new_member_sender }, thread))
    }

    /// Adds a collector. The returned channel disconnects when the collector has ended.
    pub(super) fn join(
        &self,
        worker: Worker,
        opened: Option<Result<OpenedSource, SourceError>>,
    ) -> Receiver<()> {
        let (ended, end) = unbounded();
        let (stage, backoff) = (Stage::Opening(opened), Backoff::default());
        let member = Member { worker, stage, backoff, _ended: ended };
        // The thread lives as long as `self`. If it is gone, the collector is dropped and thereby ended.
        let _ = self.new_member_sender.send(NewMember::Collector(Box::new(member)));
        end
    }

    /// Adds the control loop.
    pub(crate) fn add_control(&self, control: Box<dyn EventLoop>) {
        let _ = self.new_member_sender.send(NewMember::Control(control));
    }
}

/// An event loop that can share a thread with collectors: the control loop.
pub(crate) trait EventLoop: Send {
    /// Starts the loop.
    fn start(&mut self);

    /// Processes the events that have arrived. Does not block.
    fn process(&mut self);

    /// Advances time. Called every few milliseconds.
    fn tick(&mut self);

    /// Waits for an event, at most for `timeout`. Returns whether more events can arrive.
    fn wait(&mut self, timeout: Duration) -> bool;

    /// Whether other daemons may send events.
    fn has_remotes(&self) -> bool;

    /// Logs a summary at the end.
    fn finish(&self);
}

/// The loop of the thread.
struct Scheduler {
    new_members: Receiver<NewMember>,
    members: Vec<Member>,
    control: Option<Box<dyn EventLoop>>,
}

impl Scheduler {
    fn run(mut self) {
        let mut next_tick = Instant::now();
        loop {
            let mut is_busy = false;
            for member in &mut self.members {
                is_busy |= member.poll();
                if let Some(control) = &mut self.control {
                    control.process();
                }
            }
            let now = Instant::now();
            if now >= next_tick {
                next_tick = now + TICK;
                if !self.tick() {
                    break;
                }
            }
            self.sleep(is_busy);
        }
        if let Some(control) = &self.control {
            control.finish();
        }
    }

    /// Advances time, and adds new members. Returns whether to continue.
    fn tick(&mut self) -> bool {
        self.members.iter_mut().for_each(Member::tick);
        self.members.retain(|member| !matches!(member.stage, Stage::Stopped));
        if let Some(control) = &mut self.control {
            control.tick();
        }
        loop {
            match self.new_members.try_recv() {
                Ok(NewMember::Collector(member)) => self.members.push(*member),
                Ok(NewMember::Control(control)) => self.control.insert(control).start(),
                Err(crossbeam_channel::TryRecvError::Empty) => return true,
                Err(crossbeam_channel::TryRecvError::Disconnected) => return !self.members.is_empty(),
            }
        }
    }

    fn sleep(&mut self, is_busy: bool) {
        if is_busy {
            return std::thread::sleep(BUSY_SLEEP);
        }
        let has_remotes = self.control.as_ref().is_some_and(|control| control.has_remotes());
        let sources = self.members.iter_mut().filter_map(Member::source);
        let interfaces: Option<Vec<&mut AnySource>> = sources.map(PollableSource::interface).collect();
        match (interfaces, &mut self.control) {
            (Some(interfaces), _) if !has_remotes => {
                if wait_any(interfaces, Nanos(TICK.as_nanos() as u64)).is_err() {
                    // The next read returns the error.
                    std::thread::sleep(IDLE_SLEEP);
                }
            }
            // This also waits for requests of users and events of other daemons.
            (_, Some(control)) => drop(control.wait(IDLE_SLEEP)),
            (_, None) => std::thread::sleep(IDLE_SLEEP),
        }
    }
}

/// A collector on the shared thread.
struct Member {
    worker: Worker,
    stage: Stage,
    backoff: Backoff,
    _ended: Sender<()>,
}

/// The stage of a collector.
enum Stage {
    /// The source is to be opened, unless an earlier attempt has a result.
    Opening(Option<Result<OpenedSource, SourceError>>),
    /// The source is being read.
    Reading(OpenReader),
    /// The source has failed. Retry at this time.
    Waiting(Instant),
    /// End of input.
    Ended,
    /// The collector has stopped.
    Stopped,
}

/// A source being read.
struct OpenReader {
    source: Box<dyn PollableSource>,
    start: Instant,
    counted: Instant,
    was_down: bool,
}

/// A source that can report whether packets are waiting.
trait PollableSource: Send {
    /// Whether the next batch can be read without blocking.
    fn is_ready(&self) -> bool;
    /// Measures the waiting frames with `worker`. Returns `false` at the end of input.
    fn read(&mut self, worker: &mut Worker) -> Result<bool, SourceError>;
    /// Updates the counters of the source.
    fn count(&mut self, worker: &mut Worker);
    /// Returns the interface, if the source is one whose frames can be waited for.
    fn interface(&mut self) -> Option<&mut AnySource>;
    /// Returns the time before which no more frames can arrive, if none is waiting.
    fn clock(&self) -> Option<Timestamp>;
}

/// A source with the functions that inspect it.
struct Pollable<S, C> {
    source: S,
    is_ready: fn(&S) -> bool,
    interface: fn(&mut S) -> Option<&mut AnySource>,
    clock: C,
}

impl<S, C> PollableSource for Pollable<S, C>
where
    S: Source + Send,
    SourceError: From<S::Error>,
    C: Fn() -> Option<Timestamp> + Send,
{
    fn is_ready(&self) -> bool {
        (self.is_ready)(&self.source)
    }

    fn read(&mut self, worker: &mut Worker) -> Result<bool, SourceError> {
        let Some(batch) = self.source.next_batch()? else { return Ok(false) };
        let arrived = Instant::now();
        let is_live = worker.pipeline.config().source.is_live();
        worker.measure(&batch, None, is_live.then_some(arrived));
        Ok(true)
    }

    fn count(&mut self, worker: &mut Worker) {
        worker.pipeline.count_source(self.source.counters());
    }

    fn interface(&mut self) -> Option<&mut AnySource> {
        (self.interface)(&mut self.source)
    }

    fn clock(&self) -> Option<Timestamp> {
        (self.clock)()
    }
}

/// Wraps an open source for this thread.
fn pollable(worker: &Worker, source: OpenSource) -> Result<Box<dyn PollableSource>, SourceError> {
    match source {
        OpenSource::Input(input) => {
            let clock = clock_in_silence(&worker.pipeline.config().source);
            Ok(Box::new(Pollable {
                source: *input,
                is_ready: AnySource::is_ready,
                interface: |source| Some(source),
                clock,
            }))
        }
        OpenSource::Port(port) if worker.pipeline.config().capture_filter.is_none() => {
            let until = port.clock();
            let clock = move || Some(until());
            Ok(Box::new(Pollable {
                source: port,
                is_ready: EmulatedPort::is_ready,
                interface: |_| None,
                clock,
            }))
        }
        _ => Err(SourceError::NotPollable),
    }
}

impl Member {
    /// Serves a request and measures waiting frames. Returns whether there were any.
    fn poll(&mut self) -> bool {
        let has_served = self.worker.pipeline.serve_request();
        match &mut self.stage {
            Stage::Reading(reading) if reading.source.is_ready() => self.read(),
            _ => has_served,
        }
    }

    /// Reads once. Returns whether there was anything.
    fn read(&mut self) -> bool {
        let Stage::Reading(reading) = &mut self.stage else { return false };
        let worker = &mut self.worker;
        let read = catch_unwind(AssertUnwindSafe(|| reading.source.read(worker)));
        match read {
            Ok(Ok(true)) => return true,
            Ok(Ok(false)) => {
                self.close();
                tracing::info!(collector = self.name(), "end of input");
                self.stage = Stage::Ended;
                self.worker.pipeline.set_state(CollectorState::Ended);
            }
            Ok(Err(error)) => self.fail(error.to_string()),
            Err(panic) => self.panicked(&*panic),
        }
        true
    }

    /// Advances time: opens the source, retries it, or stops.
    fn tick(&mut self) {
        self.worker.pipeline.mailbox.beat();
        if self.worker.is_stopped() {
            return self.stop();
        }
        match &mut self.stage {
            Stage::Opening(opened) => {
                let opened = opened.take();
                self.open(opened);
            }
            Stage::Reading(reading) => {
                if !reading.source.is_ready()
                    && let Some(now) = reading.source.clock()
                {
                    self.worker.pipeline.advance(now);
                }
                if reading.counted.elapsed() >= COUNTING_INTERVAL {
                    reading.counted = Instant::now();
                    reading.source.count(&mut self.worker);
                    self.worker.pipeline.update_network();
                    self.check_link();
                }
            }
            Stage::Waiting(until) => {
                let is_over = *until <= Instant::now();
                // Time advances meanwhile: flows time out, and links become idle.
                if self.worker.pipeline.config().source.is_live() {
                    self.worker.pipeline.advance(realtime().saturating_sub(SILENCE_MARGIN));
                }
                self.worker.pipeline.update_network();
                if is_over {
                    self.worker.pipeline.mailbox.note_restart();
                    self.stage = Stage::Opening(None);
                }
            }
            Stage::Ended | Stage::Stopped => {}
        }
    }

    /// Checks whether the interface is up and still exists. Without frames, reading does not notice.
    fn check_link(&mut self) {
        let Stage::Reading(reading) = &mut self.stage else { return };
        let Some(interface) = reading.source.interface() else { return };
        interface.update_link_state();
        let is_over = interface.link_state() == Some(LinkState::Gone) && !interface.is_ready();
        let is_down = interface.is_down();
        if std::mem::replace(&mut reading.was_down, is_down) != is_down {
            let name = &*self.worker.pipeline.mailbox.description().name;
            tracing::warn!(collector = name, "interface {}", if is_down { "down" } else { "up" });
        }
        if is_over {
            // Reads the last frames, and then reports the error.
            self.read();
        }
    }

    /// Returns the source being read.
    fn source(&mut self) -> Option<&mut (dyn PollableSource + 'static)> {
        match &mut self.stage {
            Stage::Reading(reading) => Some(&mut *reading.source),
            _ => None,
        }
    }

    fn name(&self) -> &str {
        &self.worker.pipeline.mailbox.description().name
    }

    fn open(&mut self, opened: Option<Result<OpenedSource, SourceError>>) {
        let pipeline = &self.worker.pipeline;
        let opened = opened.unwrap_or_else(|| OpenedSource::open(pipeline.config(), pipeline.emulation()));
        let source = opened
            .and_then(|OpenedSource { source, backend }| Ok((pollable(&self.worker, source)?, backend)));
        match source {
            Ok((source, backend)) => {
                let pipeline = &mut self.worker.pipeline;
                let name = &*pipeline.mailbox.description().name;
                tracing::info!(
                    collector = name,
                    source = pipeline.config().source.description(),
                    backend,
                    "reading"
                );
                pipeline.mailbox.set_backend(backend);
                pipeline.set_state(CollectorState::Running);
                let now = Instant::now();
                self.stage = Stage::Reading(OpenReader { source, start: now, counted: now, was_down: false });
            }
            Err(error) => self.fail(error.to_string()),
        }
    }

    /// Closes the source. Returns how long it was read.
    fn close(&mut self) -> Duration {
        let stage = std::mem::replace(&mut self.stage, Stage::Ended);
        let Stage::Reading(mut reading) = stage else { return Duration::ZERO };
        reading.source.count(&mut self.worker);
        self.worker.pipeline.end_source();
        reading.start.elapsed()
    }

    fn panicked(&mut self, panic: &(dyn Any + Send)) {
        if let Err(error) = self.worker.pipeline.reset_after_panic() {
            tracing::error!(collector = self.name(), %error, "cannot restart");
        }
        self.fail(format!("internal error: {}", panic_message(panic)));
    }

    fn fail(&mut self, failure: String) {
        let was_read = self.close();
        let wait = self.backoff.after(was_read);
        tracing::warn!(
            collector = self.name(),
            wait_ms = wait.as_millis() as u64,
            error = failure,
            "source failed, retrying"
        );
        let retry_at = Some(realtime() + Nanos(wait.as_nanos() as u64));
        self.worker.pipeline.set_state(CollectorState::Failed { error: failure, retry_at });
        self.stage = Stage::Waiting(Instant::now() + wait);
    }

    fn stop(&mut self) {
        if matches!(self.stage, Stage::Stopped) {
            return;
        }
        self.close();
        self.worker.pipeline.finish();
        self.worker.pipeline.set_state(CollectorState::Stopped);
        self.stage = Stage::Stopped;
    }
}
