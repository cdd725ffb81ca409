//! Several collectors and the control loop on one thread (`[process] threads = "one"`): nothing waits for another thread to wake up
//! between a packet and the reroute that follows from it.
//!
//! A turn goes once over all collectors, and after each over what it reported. Between turns that found something the thread naps, so
//! that frames that come one by one do not cost a wake-up each; when all interfaces are silent it sleeps until one is not.
//!
//! Only sources that can say whether packets wait can share a thread: interfaces, and the ports of `[emulate]`.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, Sender, unbounded};
use thalweg_capture::live::LinkState;
use thalweg_capture::{AnySource, wait_any};
use thalweg_wire::{Nanos, Source, Timestamp};

use super::backoff::Backoff;
use super::source::{OpenSource, Opened, SourceError};
use super::worker::{SILENCE_MARGIN, Worker, clock_in_silence, words_of};
use crate::clock::wall_clock;
use crate::emulation::EmulatedPort;
use crate::event::CollectorState;

/// Between two turns that found something: what a packet waits at most beyond the wake-up.
const NAP: Duration = Duration::from_micros(50);

/// When nothing comes it is looked again after this, if it may come from where cannot be waited: from an emulation, or from other
/// daemons.
const REST: Duration = Duration::from_micros(500);

/// How often time is let pass for collectors and control loop.
const TICK: Duration = Duration::from_millis(5);

/// How often the sources' counters are read.
const COUNTING_INTERVAL: Duration = Duration::from_millis(200);

/// The thread that collectors share.
#[derive(Debug)]
pub(crate) struct SharedThread {
    joining_sender: Sender<Joining>,
}

/// Who joins.
enum Joining {
    Collector(Box<Member>),
    Other(Box<dyn SharesThread>),
}

impl SharedThread {
    /// Begins. The thread ends when this has been dropped, and all collectors have ended.
    ///
    /// # Errors
    /// If the system has no more threads.
    pub(crate) fn start() -> std::io::Result<(SharedThread, JoinHandle<()>)> {
        let (joining_sender, joining) = unbounded();
        let run = move || Turns { joining, members: Vec::new(), control: None }.run();
        let thread = std::thread::Builder::new().name("collectors".to_owned()).spawn(run)?;
        Ok((SharedThread { joining_sender }, thread))
    }

    /// Has a collector join. Gives what is disconnected when it has ended.
    pub(super) fn join(&self, worker: Worker, opened: Option<Result<Opened, SourceError>>) -> Receiver<()> {
        let (ended, end) = unbounded();
        let (stage, backoff) = (Stage::Opens(opened), Backoff::default());
        let member = Member { worker, stage, backoff, _ended: ended };
        // The thread is there as long as this is; a collector that is not taken has ended.
        let _ = self.joining_sender.send(Joining::Collector(Box::new(member)));
        end
    }

    /// Gives turns to the control loop too.
    pub(crate) fn steer(&self, control: Box<dyn SharesThread>) {
        let _ = self.joining_sender.send(Joining::Other(control));
    }
}

/// Who takes turns on the thread beside collectors: the control loop.
pub(crate) trait SharesThread: Send {
    /// Begins.
    fn start(&mut self);

    /// Deals with what has been reported, and waits for nothing.
    fn take(&mut self);

    /// Lets time pass. To be called every few milliseconds.
    fn tick(&mut self);

    /// Waits until there is something to do, for so long at most. Says whether anybody may still report something.
    fn wait(&mut self, patience: Duration) -> bool;

    /// Whether others than collectors here may report something at any time.
    fn has_remotes(&self) -> bool;

    /// The last word.
    fn finish(&self);
}

/// What the thread does.
struct Turns {
    joining: Receiver<Joining>,
    members: Vec<Member>,
    control: Option<Box<dyn SharesThread>>,
}

impl Turns {
    fn run(mut self) {
        let mut next_tick = Instant::now();
        loop {
            let mut found = false;
            for member in &mut self.members {
                found |= member.turn();
                if let Some(control) = &mut self.control {
                    control.take();
                }
            }
            let now = Instant::now();
            if now >= next_tick {
                next_tick = now + TICK;
                if !self.tick() {
                    break;
                }
            }
            self.rest(found);
        }
        if let Some(control) = &self.control {
            control.finish();
        }
    }

    /// Lets time pass. Says whether to go on.
    fn tick(&mut self) -> bool {
        self.members.iter_mut().for_each(Member::tick);
        self.members.retain(|member| !matches!(member.stage, Stage::Stopped));
        if let Some(control) = &mut self.control {
            control.tick();
        }
        loop {
            match self.joining.try_recv() {
                Ok(Joining::Collector(member)) => self.members.push(*member),
                Ok(Joining::Other(control)) => self.control.insert(control).start(),
                Err(crossbeam_channel::TryRecvError::Empty) => return true,
                Err(crossbeam_channel::TryRecvError::Disconnected) => return !self.members.is_empty(),
            }
        }
    }

    fn rest(&mut self, found: bool) {
        if found {
            return std::thread::sleep(NAP);
        }
        let has_remotes = self.control.as_ref().is_some_and(|control| control.has_remotes());
        let sources = self.members.iter_mut().filter_map(Member::source);
        let interfaces: Option<Vec<&mut AnySource>> = sources.map(Shareable::interface).collect();
        match (interfaces, &mut self.control) {
            (Some(interfaces), _) if !has_remotes => {
                if wait_any(interfaces, Nanos(TICK.as_nanos() as u64)).is_err() {
                    // The next batch says what is wrong.
                    std::thread::sleep(REST);
                }
            }
            // It hears of users and of other daemons meanwhile.
            (_, Some(control)) => drop(control.wait(REST)),
            (_, None) => std::thread::sleep(REST),
        }
    }
}

/// A collector among others.
struct Member {
    worker: Worker,
    stage: Stage,
    backoff: Backoff,
    _ended: Sender<()>,
}

/// Where a collector is.
enum Stage {
    /// Its source is to be opened, unless somebody has tried to.
    Opens(Option<Result<Opened, SourceError>>),
    /// It reads.
    Reads(Reading),
    /// Its source has failed, and is tried again then.
    Waits(Instant),
    /// There is nothing more to read.
    Ended,
    /// It was told to stop, and has.
    Stopped,
}

/// A source that is read.
struct Reading {
    source: Box<dyn Shareable>,
    begun: Instant,
    counted: Instant,
    was_down: bool,
}

/// A source that can say whether packets wait.
trait Shareable: Send {
    /// Whether the next batch comes without waiting.
    fn is_ready(&self) -> bool;
    /// Hands the frames that wait to `worker`. `false` at the end of input.
    fn read(&mut self, worker: &mut Worker) -> Result<bool, SourceError>;
    /// Puts down what was read, and lost.
    fn count(&mut self, worker: &mut Worker);
    /// The interface that it is, at which frames can be waited for.
    fn interface(&mut self) -> Option<&mut AnySource>;
    /// The time up to which nothing will come any more, if nothing waits.
    fn clock(&self) -> Option<Timestamp>;
}

/// A source with what it is asked.
struct Shared<S, C> {
    source: S,
    is_ready: fn(&S) -> bool,
    interface: fn(&mut S) -> Option<&mut AnySource>,
    clock: C,
}

impl<S, C> Shareable for Shared<S, C>
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
        let is_live = worker.core.config().source.is_live();
        worker.measure(&batch, None, is_live.then_some(arrived));
        Ok(true)
    }

    fn count(&mut self, worker: &mut Worker) {
        worker.core.source = self.source.counters();
    }

    fn interface(&mut self) -> Option<&mut AnySource> {
        (self.interface)(&mut self.source)
    }

    fn clock(&self) -> Option<Timestamp> {
        (self.clock)()
    }
}

/// What an open source is to this thread.
fn shareable(worker: &Worker, source: OpenSource) -> Result<Box<dyn Shareable>, SourceError> {
    match source {
        OpenSource::Input(input) => {
            let clock = clock_in_silence(&worker.core.config().source);
            Ok(Box::new(Shared {
                source: *input,
                is_ready: AnySource::is_ready,
                interface: |source| Some(source),
                clock,
            }))
        }
        OpenSource::Port(port) if worker.core.config().filter.is_none() => {
            let until = port.clock();
            let clock = move || Some(until());
            Ok(Box::new(Shared {
                source: port,
                is_ready: EmulatedPort::is_ready,
                interface: |_| None,
                clock,
            }))
        }
        _ => Err(SourceError::NotShareable),
    }
}

impl Member {
    /// Measures what waits. Says whether there was anything.
    fn turn(&mut self) -> bool {
        // Who wants all flows asks many questions.
        let has_answered = self.worker.core.answer();
        match &mut self.stage {
            Stage::Reads(reading) if reading.source.is_ready() => self.read(),
            _ => has_answered,
        }
    }

    /// Reads once. Says whether there was anything.
    fn read(&mut self) -> bool {
        let Stage::Reads(reading) = &mut self.stage else { return false };
        let worker = &mut self.worker;
        let read = catch_unwind(AssertUnwindSafe(|| reading.source.read(worker)));
        match read {
            Ok(Ok(true)) => return true,
            Ok(Ok(false)) => {
                self.close();
                tracing::info!(collector = self.name(), "end of input");
                self.stage = Stage::Ended;
                self.worker.core.set_state(CollectorState::Ended);
            }
            Ok(Err(error)) => self.fail(error.to_string()),
            Err(panic) => self.panicked(&*panic),
        }
        true
    }

    /// Lets time pass: opens, waits, answers, stops.
    fn tick(&mut self) {
        self.worker.core.mailbox.beat();
        if self.worker.is_stopped() {
            return self.stop();
        }
        match &mut self.stage {
            Stage::Opens(opened) => {
                let opened = opened.take();
                self.open(opened);
            }
            Stage::Reads(reading) => {
                if !reading.source.is_ready()
                    && let Some(now) = reading.source.clock()
                {
                    self.worker.core.advance(now);
                }
                if reading.counted.elapsed() >= COUNTING_INTERVAL {
                    reading.counted = Instant::now();
                    reading.source.count(&mut self.worker);
                    self.worker.core.catch_up();
                    self.look_at_link();
                }
            }
            Stage::Waits(until) => {
                let is_over = *until <= Instant::now();
                // Time goes on meanwhile: flows end, and links that nothing is seen of any more are idle.
                if self.worker.core.config().source.is_live() {
                    self.worker.core.advance(wall_clock().saturating_sub(SILENCE_MARGIN));
                }
                self.worker.core.catch_up();
                if is_over {
                    self.worker.core.mailbox.note_restart();
                    self.stage = Stage::Opens(None);
                }
            }
            Stage::Ended | Stage::Stopped => {}
        }
    }

    /// Looks whether the interface is up, and still there: where no frames come nobody else does.
    fn look_at_link(&mut self) {
        let Stage::Reads(reading) = &mut self.stage else { return };
        let Some(interface) = reading.source.interface() else { return };
        interface.update_link_state();
        let is_over = interface.link_state() == Some(LinkState::Gone) && !interface.is_ready();
        let is_down = interface.is_down();
        if std::mem::replace(&mut reading.was_down, is_down) != is_down {
            let name = &*self.worker.core.mailbox.description().name;
            tracing::warn!(collector = name, "interface {}", if is_down { "down" } else { "up" });
        }
        if is_over {
            // Waits a little for the last frames, and then says so.
            self.read();
        }
    }

    /// The source that is read.
    fn source(&mut self) -> Option<&mut (dyn Shareable + 'static)> {
        match &mut self.stage {
            Stage::Reads(reading) => Some(&mut *reading.source),
            _ => None,
        }
    }

    fn name(&self) -> &str {
        &self.worker.core.mailbox.description().name
    }

    fn open(&mut self, opened: Option<Result<Opened, SourceError>>) {
        let core = &self.worker.core;
        let opened = opened.unwrap_or_else(|| Opened::open(core.config(), core.emulation()));
        let source =
            opened.and_then(|Opened { source, backend }| Ok((shareable(&self.worker, source)?, backend)));
        match source {
            Ok((source, backend)) => {
                let core = &mut self.worker.core;
                let name = &*core.mailbox.description().name;
                tracing::info!(
                    collector = name,
                    source = core.config().source.in_words(),
                    backend,
                    "reading"
                );
                core.mailbox.set_backend(backend);
                core.set_state(CollectorState::Running);
                let now = Instant::now();
                self.stage = Stage::Reads(Reading { source, begun: now, counted: now, was_down: false });
            }
            Err(error) => self.fail(error.to_string()),
        }
    }

    /// The source is no more.
    fn close(&mut self) -> Duration {
        let stage = std::mem::replace(&mut self.stage, Stage::Ended);
        let Stage::Reads(mut reading) = stage else { return Duration::ZERO };
        reading.source.count(&mut self.worker);
        self.worker.core.close_source();
        reading.begun.elapsed()
    }

    fn panicked(&mut self, panic: &(dyn Any + Send)) {
        if let Err(error) = self.worker.core.renew() {
            tracing::error!(collector = self.name(), %error, "cannot restart");
        }
        self.fail(format!("a mistake of the program: {}", words_of(panic)));
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
        let retry_at = Some(wall_clock() + Nanos(wait.as_nanos() as u64));
        self.worker.core.set_state(CollectorState::Failed { error: failure, retry_at });
        self.stage = Stage::Waits(Instant::now() + wait);
    }

    fn stop(&mut self) {
        if matches!(self.stage, Stage::Stopped) {
            return;
        }
        self.close();
        self.worker.core.finish();
        self.worker.core.set_state(CollectorState::Stopped);
        self.stage = Stage::Stopped;
    }
}
