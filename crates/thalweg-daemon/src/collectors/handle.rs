//! How others ask a collector: by a mailbox that its thread looks into between two batches of packets.
//!
//! **Nobody waits for who asks.** An answer goes into a channel that has room for it; if who asked has gone, it is
//! dropped. Who asks waits as long as it wishes ([`CollectorHandle::flows`] and others take a patience). A full
//! mailbox refuses, and that is counted.
//!
//! **Many flows** are handed over in pieces of at most [`FLOW_SLOTS`] places of the table, packets between two of
//! them: the list is not that of one moment, but each flow in it is right when it was looked at. Who asks sorts and
//! filters.

use std::ops::Range;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, TrySendError, bounded};
use thalweg_measure::collector::{Collector, Counters, FlowReport, LinkReport, Observation};
use thalweg_measure::meter::intake::IntakeCounters;
use thalweg_measure::samples::SampleRing;
use thalweg_measure::tasks::{TaskResult, TaskSpec, WindowReport};
use thalweg_network::Versions;
use thalweg_sketch::Estimate;
use thalweg_wire::{Bytes, FlowKey, SourceCounters, Timestamp};
use thiserror::Error;

use super::exchange::Exchange;
use super::latency::Latency;
use super::tallies::{RecordsLost, Tallies};
use crate::config::collector::OptionsError;
use crate::event::CollectorState;

/// Questions that wait in a mailbox, at most.
const MAILBOX: usize = 64;

/// Places of the flow table that are looked at between two batches, at most: about 20 us.
pub const FLOW_SLOTS: u32 = 4_096;

/// What can be asked. Each carries the channel for its answer, which needs room for one.
#[derive(Debug)]
#[non_exhaustive]
pub enum Question {
    /// All links of the switch, both ways.
    Links(Sender<Asked<Vec<LinkReport>>>),
    /// One direction of a flow.
    Flow(FlowKey, Sender<Asked<Option<FlowReport>>>),
    /// Flows in these places of the table.
    Flows(Range<u32>, Sender<Asked<FlowChunk>>),
    /// Everything that is counted.
    Counters(Sender<Asked<CollectorCounters>>),
    /// What is known of the network from now on; the answer says if it does not fit.
    Network(Arc<Versions>, Sender<Asked<Result<(), OptionsError>>>),
    /// What to measure with from now on, of the same source; the answer is what it measured with before.
    Exchange(Box<Exchange>, Sender<Asked<Collector>>),
    /// Packets to watch; the answer comes by what the collector tells.
    Observe(Observation),
}

/// An answer, and the collector's clock when it was given: packet time, zero before the first packet.
#[derive(Clone, Debug, PartialEq)]
pub struct Asked<T> {
    /// Packet time.
    pub time: Timestamp,
    /// The answer.
    pub value: T,
}

/// Flows in some places of the table.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FlowChunk {
    /// Both directions, those with samples.
    pub flows: Vec<FlowReport>,
    /// Places that the table has.
    pub slots: u32,
}

/// Everything that a collector counts, with what those of its name counted before it.
#[derive(Clone, Debug, PartialEq)]
pub struct CollectorCounters {
    /// What came, and what was lost on the way.
    pub source: SourceCounters,
    /// What became of the frames.
    pub intake: IntakeCounters,
    /// What became of the packets.
    pub collector: Counters,
    /// Flows in the table.
    pub flows: u64,
    /// Flows that fit in.
    pub flow_capacity: u64,
    /// Memory of flow table, rates and detector.
    pub memory: Bytes,
    /// Share of mirrored packets that arrive here, if TCP flows have shown it.
    pub sampling_ratio: Option<Estimate>,
}

/// What the tasks of a collector say.
#[derive(Clone, Debug, Default)]
pub struct TasksReport {
    /// The last window that is over.
    pub last: Option<Arc<WindowReport>>,
    /// The last answer of each task, with its window: `change` speaks only at the end of a period.
    pub answers: Vec<(TaskSpec, Option<TaskAnswer>)>,
    /// Windows so far.
    pub windows: u64,
}

/// The last answer of a task.
#[derive(Clone, Debug, PartialEq)]
pub struct TaskAnswer {
    /// First moment of its window, and the first after it.
    pub window: (Timestamp, Timestamp),
    /// What it says.
    pub result: TaskResult,
}

/// What a collector is, by its configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Description {
    /// Its name; no other collector has it.
    pub name: Arc<str>,
    /// Name of the switch that it watches; of an unknown one the collector's own.
    pub switch: Arc<str>,
    /// Where packets come from: an interface, a file, an experiment.
    pub source: String,
    /// Whether they come as they happen, by the clock of this machine.
    pub is_live: bool,
}

/// Why a question has no answer.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum AskError {
    /// Too many questions wait already.
    #[error("the collector has too many questions waiting")]
    Busy,
    /// It took too long.
    #[error("the collector did not answer in time")]
    Late,
    /// The collector has been stopped.
    #[error("the collector has been stopped")]
    Gone,
}

/// A collector as others see it. Cheap to clone.
#[derive(Clone, Debug)]
pub struct CollectorHandle {
    shared: Arc<Shared>,
    questions: Sender<Question>,
}

/// The collector's own end: where it finds questions, and says how it is.
#[derive(Debug)]
pub struct Mailbox {
    shared: Arc<Shared>,
    questions: Receiver<Question>,
}

#[derive(Debug)]
struct Shared {
    description: Description,
    tallies: Arc<Tallies>,
    samples: Option<SampleRing>,
    /// Samples that were put into rings before this one.
    samples_before: u64,
    state: Mutex<CollectorState>,
    /// How packets come: which backend, and why.
    backend: Mutex<String>,
    tasks: Mutex<Arc<TasksReport>>,
}

impl CollectorHandle {
    /// A collector to be asked, and the end at which it answers.
    pub fn new(description: Description) -> (CollectorHandle, Mailbox) {
        CollectorHandle::with_tallies(description, None, Arc::default())
    }

    /// The same, of a collector that may keep samples, and goes on counting where others of its name have ended.
    pub fn with_tallies(
        description: Description,
        samples: Option<SampleRing>,
        tallies: Arc<Tallies>,
    ) -> (CollectorHandle, Mailbox) {
        let shared = Arc::new(Shared {
            description,
            samples,
            samples_before: tallies.samples_kept.load(Ordering::Relaxed),
            tallies,
            state: Mutex::default(),
            backend: Mutex::default(),
            tasks: Mutex::default(),
        });
        let (sender, receiver) = bounded(MAILBOX);
        let handle = CollectorHandle { shared: Arc::clone(&shared), questions: sender };
        (handle, Mailbox { shared, questions: receiver })
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.shared.description.name
    }

    /// What it is.
    pub fn description(&self) -> &Description {
        &self.shared.description
    }

    /// What it is doing.
    pub fn state(&self) -> CollectorState {
        lock(&self.shared.state).clone()
    }

    /// How packets come to it, and why so; empty before its source is open.
    pub fn backend(&self) -> String {
        lock(&self.shared.backend).clone()
    }

    /// The last frames, if they are kept; asks nobody.
    pub fn samples(&self) -> Option<&SampleRing> {
        self.shared.samples.as_ref()
    }

    /// A number that goes up several times a second as long as the collector's thread does its work.
    pub fn heartbeat(&self) -> u64 {
        self.shared.tallies.heartbeat()
    }

    /// How often its source has been opened again after a failure.
    pub fn restarts(&self) -> u64 {
        self.shared.tallies.restarts.load(Ordering::Relaxed)
    }

    /// Questions that found the mailbox full.
    pub fn refused(&self) -> u64 {
        self.shared.tallies.refused.load(Ordering::Relaxed)
    }

    /// Questions that were not answered in time.
    pub fn late(&self) -> u64 {
        self.shared.tallies.late.load(Ordering::Relaxed)
    }

    /// From a packet's being in this process's memory to its event's being told.
    pub fn decision_latency(&self) -> Latency {
        self.shared.tallies.decision.read()
    }

    /// From the kernel's time stamp of a packet to its event's being told. Nothing is counted for sources that are not
    /// live.
    pub fn arrival_latency(&self) -> Latency {
        self.shared.tallies.arrival.read()
    }

    /// Frames put into the ring of samples; `None` if they are not kept.
    pub fn samples_kept(&self) -> Option<u64> {
        self.samples().map(|ring| self.shared.samples_before + ring.written())
    }

    /// Windows of tasks that are over.
    pub fn windows(&self) -> u64 {
        self.shared.tallies.windows.load(Ordering::Relaxed)
    }

    /// Windows that were not evaluated, because those before them took too long.
    pub fn windows_lost(&self) -> u64 {
        self.shared.tallies.windows_lost.load(Ordering::Relaxed)
    }

    /// Flow records that were not written.
    pub fn records_lost(&self) -> RecordsLost {
        self.shared.tallies.records_lost()
    }

    /// Flow records that have been handed on and are not written yet.
    pub fn records_waiting(&self) -> u64 {
        self.shared.tallies.records_waiting()
    }

    /// What its tasks said last; asks nobody.
    pub fn tasks(&self) -> Arc<TasksReport> {
        Arc::clone(&lock(&self.shared.tasks))
    }

    /// All links of the switch, both ways.
    ///
    /// # Errors
    /// If there is no answer within `patience`.
    pub fn links(&self, patience: Duration) -> Result<Asked<Vec<LinkReport>>, AskError> {
        self.ask(patience, Question::Links)
    }

    /// One direction of a flow.
    ///
    /// # Errors
    /// If there is no answer within `patience`.
    pub fn flow(&self, key: FlowKey, patience: Duration) -> Result<Asked<Option<FlowReport>>, AskError> {
        self.ask(patience, |reply| Question::Flow(key, reply))
    }

    /// All flows, given to `take` as they come. The time is that of the last of them.
    ///
    /// # Errors
    /// If not all came within `patience`.
    pub fn flows(&self, patience: Duration, mut take: impl FnMut(FlowReport)) -> Result<Timestamp, AskError> {
        let until = Instant::now() + patience;
        let mut next = 0;
        loop {
            let slots = next..next + FLOW_SLOTS;
            let left = until.saturating_duration_since(Instant::now());
            let Asked { time, value } = self.ask(left, |reply| Question::Flows(slots, reply))?;
            value.flows.into_iter().for_each(&mut take);
            next = next.saturating_add(FLOW_SLOTS);
            if next >= value.slots {
                return Ok(time);
            }
        }
    }

    /// Everything that is counted.
    ///
    /// # Errors
    /// If there is no answer within `patience`.
    pub fn counters(&self, patience: Duration) -> Result<Asked<CollectorCounters>, AskError> {
        self.ask(patience, Question::Counters)
    }

    /// Tells it what the network is like from now on.
    ///
    /// # Errors
    /// If it has not heard of it within `patience`; it may do so later. The answer says if the collector does not fit
    /// into the network, and then goes on with the one before.
    pub fn set_network(
        &self,
        network: Arc<Versions>,
        patience: Duration,
    ) -> Result<Asked<Result<(), OptionsError>>, AskError> {
        self.ask(patience, |reply| Question::Network(network, reply))
    }

    /// Has it watch whether packets set out, or arrive; it tells the controller.
    ///
    /// # Errors
    /// If it cannot be asked.
    pub fn observe(&self, observation: Observation) -> Result<(), AskError> {
        self.send(Question::Observe(observation))
    }

    /// Gives it something else to measure with; its source, and what is kept of samples and tasks, stay as they are. What
    /// it measured with before comes by the channel: who takes it hands on its flows.
    ///
    /// # Errors
    /// If it cannot be asked.
    pub(super) fn exchange(&self, exchange: Exchange) -> Result<Receiver<Asked<Collector>>, AskError> {
        self.put(|reply| Question::Exchange(Box::new(exchange), reply))
    }

    /// Puts a question, and waits for the answer.
    ///
    /// # Errors
    /// If there is no answer within `patience`.
    pub fn ask<T>(
        &self,
        patience: Duration,
        question: impl FnOnce(Sender<Asked<T>>) -> Question,
    ) -> Result<Asked<T>, AskError> {
        let answer = self.put(question)?;
        answer.recv_timeout(patience).map_err(|error| match error {
            RecvTimeoutError::Timeout => {
                self.shared.tallies.late.fetch_add(1, Ordering::Relaxed);
                AskError::Late
            }
            RecvTimeoutError::Disconnected => AskError::Gone,
        })
    }

    /// Puts a question; the answer comes by the channel.
    fn put<T>(
        &self,
        question: impl FnOnce(Sender<Asked<T>>) -> Question,
    ) -> Result<Receiver<Asked<T>>, AskError> {
        let (reply, answer) = bounded(1);
        self.send(question(reply))?;
        Ok(answer)
    }

    fn send(&self, question: Question) -> Result<(), AskError> {
        self.questions.try_send(question).map_err(|error| match error {
            TrySendError::Full(_) => {
                self.shared.tallies.refused.fetch_add(1, Ordering::Relaxed);
                AskError::Busy
            }
            TrySendError::Disconnected(_) => AskError::Gone,
        })
    }
}

impl Mailbox {
    /// The next question, if there is one.
    #[inline]
    pub fn next(&self) -> Option<Question> {
        self.questions.try_recv().ok()
    }

    /// Whether no question waits.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.questions.is_empty()
    }

    /// The next question, if there is one within `patience`.
    pub fn wait(&self, patience: Duration) -> Option<Question> {
        self.questions.recv_timeout(patience).ok()
    }

    /// What the collector is.
    pub fn description(&self) -> &Description {
        &self.shared.description
    }

    /// Says that the collector's thread is at work.
    #[inline]
    pub fn beat(&self) {
        self.shared.tallies.beat();
    }

    /// Says what the collector is doing.
    pub fn set_state(&self, state: CollectorState) {
        *lock(&self.shared.state) = state;
    }

    /// Says how packets come, and why so.
    pub fn set_backend(&self, backend: String) {
        *lock(&self.shared.backend) = backend;
    }

    /// Counts a new beginning after a failure.
    pub fn note_restart(&self) {
        self.shared.tallies.restarts.fetch_add(1, Ordering::Relaxed);
    }

    /// Keeps the number of samples for a collector of the same name that comes after this one.
    pub(super) fn end_samples(&self) {
        if let Some(ring) = &self.shared.samples {
            self.shared.tallies.samples_kept.fetch_add(ring.written(), Ordering::Relaxed);
        }
    }

    /// Where what tasks say is put; of a thread of its own.
    pub fn tasks_board(&self) -> TasksBoard {
        TasksBoard(Arc::clone(&self.shared))
    }
}

/// Where what tasks say is put.
#[derive(Clone, Debug)]
pub struct TasksBoard(Arc<Shared>);

impl TasksBoard {
    /// Puts it there.
    pub fn set(&self, report: TasksReport) {
        *lock(&self.0.tasks) = Arc::new(report);
    }

    /// Counts windows that are over.
    pub(super) fn note_windows(&self, windows: u64) {
        self.0.tallies.windows.fetch_add(windows, Ordering::Relaxed);
    }

    /// Counts a window that found no room.
    pub(super) fn note_lost(&self) {
        self.0.tallies.windows_lost.fetch_add(1, Ordering::Relaxed);
    }
}

/// What a thread leaves behind when it panics is whole: each lock is held for one assignment.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Answers; if who asked has gone, nobody is to know.
pub fn answer<T>(reply: &Sender<Asked<T>>, time: Timestamp, value: T) {
    let _ = reply.try_send(Asked { time, value });
}
