//! Requests to a collector: a mailbox that its thread reads between two batches of packets.
//!
//! **The collector never waits for a requester.** A reply goes into a channel with room for it. If the requester has gone, the
//! reply is dropped. The requester waits with a timeout. A full mailbox refuses requests and counts them.
//!
//! **All flows** are read in chunks of at most [`FLOW_SLOTS`] slots of the flow table, with packets measured in between. The list
//! is therefore not one snapshot, but each flow is consistent. The requester sorts and filters.

use std::collections::VecDeque;
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
use thalweg_wire::{BitRate, Bytes, FlowKey, SourceCounters, Timestamp};
use thiserror::Error;

use super::latency::Latency;
use super::replacement::Replacement;
use super::stats::{CollectorStats, RecordsLost};
use crate::config::collector::OptionsError;
use crate::event::CollectorState;

/// Maximum number of requests in a mailbox.
const MAILBOX_CAPACITY: usize = 64;

/// Maximum number of slots of the flow table to read between two batches: about 20 us.
pub const FLOW_SLOTS: u32 = 4_096;

/// A request to a collector, with a channel for its reply, which needs room for one.
#[derive(Debug)]
#[non_exhaustive]
pub enum CollectorRequest {
    /// All links of the switch, both directions.
    Links(Sender<CollectorReply<Vec<LinkReport>>>),
    /// One direction of a flow.
    Flow(FlowKey, Sender<CollectorReply<Option<FlowReport>>>),
    /// Flows in these slots of the flow table.
    Flows(Range<u32>, Sender<CollectorReply<FlowChunk>>),
    /// All counters.
    Counters(Sender<CollectorReply<CollectorCounters>>),
    /// Applies new network versions. The reply is an error if the collector does not fit them.
    Network(Arc<Versions>, Sender<CollectorReply<Result<(), OptionsError>>>),
    /// Replaces the collector and keeps the source. The reply is the old collector.
    Replace(Box<Replacement>, Sender<CollectorReply<Collector>>),
    /// Observes packets of a pair. Arrivals are reported by events.
    Observe(Observation),
    /// Changes the rate threshold of cheetah flows. Has no effect if the collector does not detect them.
    RateThreshold(BitRate),
}

/// A reply, and the packet time of the collector when it replied: zero before the first packet.
#[derive(Clone, Debug, PartialEq)]
pub struct CollectorReply<T> {
    /// Packet time.
    pub time: Timestamp,
    /// The value.
    pub value: T,
}

/// Flows in a range of slots of the flow table.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FlowChunk {
    /// The directions that have samples.
    pub flows: Vec<FlowReport>,
    /// Number of slots of the table.
    pub slots: u32,
}

/// All counters of a collector, those of its predecessors of the same name included.
#[derive(Clone, Debug, PartialEq)]
pub struct CollectorCounters {
    /// Frames received and lost.
    pub source: SourceCounters,
    /// Parsing of frames.
    pub intake: IntakeCounters,
    /// Measurement of packets.
    pub collector: Counters,
    /// Number of flows in the flow table.
    pub flows: u64,
    /// Maximum number of flows in the flow table.
    pub flow_capacity: u64,
    /// Memory of flow table, rate estimator and cheetah detector.
    pub memory: Bytes,
    /// Share of mirrored packets that arrive; `None` until TCP flows allow an estimate.
    pub sampling_ratio: Option<Estimate>,
}

/// The results of a collector's measurement tasks.
#[derive(Clone, Debug, Default)]
pub struct TasksReport {
    /// The last completed window.
    pub last: Option<Arc<WindowReport>>,
    /// The tasks, in the order of the configuration.
    pub tasks: Vec<TaskHistory>,
    /// Number of completed windows.
    pub windows: u64,
}

/// A task and its latest answers, the oldest first. `change` has one only after each period.
#[derive(Clone, Debug)]
pub struct TaskHistory {
    /// The task.
    pub spec: TaskSpec,
    /// Its answers.
    pub answers: VecDeque<Arc<TaskAnswer>>,
}

/// An answer of a task.
#[derive(Clone, Debug, PartialEq)]
pub struct TaskAnswer {
    /// Start of its window, and end (exclusive).
    pub window: (Timestamp, Timestamp),
    /// The result.
    pub result: TaskResult,
}

/// The configured properties of a collector.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Description {
    /// Unique name.
    pub name: Arc<str>,
    /// Name of the monitored switch; the collector's name if none is configured.
    pub switch: Arc<str>,
    /// The packet source: an interface, a file or an experiment.
    pub source: String,
    /// Whether packets arrive in real time, with timestamps of this machine's clock.
    pub is_live: bool,
}

/// Why a request has no reply.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum CollectorRequestError {
    /// The mailbox is full.
    #[error("the collector has too many pending requests")]
    Busy,
    /// The collector did not reply within the timeout.
    #[error("the collector did not reply in time")]
    TimedOut,
    /// The collector has stopped.
    #[error("the collector has stopped")]
    Stopped,
}

/// A handle of a collector. Cheap to clone.
#[derive(Clone, Debug)]
pub struct CollectorHandle {
    shared: Arc<Shared>,
    requests: Sender<CollectorRequest>,
}

/// The collector's end of a handle: it receives requests and publishes its state.
#[derive(Debug)]
pub struct Mailbox {
    shared: Arc<Shared>,
    requests: Receiver<CollectorRequest>,
}

#[derive(Debug)]
struct Shared {
    description: Description,
    stats: Arc<CollectorStats>,
    samples: Option<SampleRing>,
    /// Samples written to rings before this one.
    samples_before: u64,
    state: Mutex<CollectorState>,
    /// The capture backend and the reason for its choice.
    backend: Mutex<String>,
    tasks: Mutex<Arc<TasksReport>>,
}

impl CollectorHandle {
    /// Creates a handle and its mailbox.
    pub fn new(description: Description) -> (CollectorHandle, Mailbox) {
        CollectorHandle::with_stats(description, None, Arc::default())
    }

    /// Creates a handle with a sample ring, and counters that continue those of earlier collectors of the name.
    pub fn with_stats(
        description: Description,
        samples: Option<SampleRing>,
        stats: Arc<CollectorStats>,
    ) -> (CollectorHandle, Mailbox) {
        let shared = Arc::new(Shared {
            description,
            samples,
            samples_before: stats.samples_kept.load(Ordering::Relaxed),
            stats,
            state: Mutex::default(),
            backend: Mutex::default(),
            tasks: Mutex::default(),
        });
        let (sender, receiver) = bounded(MAILBOX_CAPACITY);
        let handle = CollectorHandle { shared: Arc::clone(&shared), requests: sender };
        (handle, Mailbox { shared, requests: receiver })
    }

    /// Returns the name.
    pub fn name(&self) -> &str {
        &self.shared.description.name
    }

    /// Returns the configured properties.
    pub fn description(&self) -> &Description {
        &self.shared.description
    }

    /// Returns the state.
    pub fn state(&self) -> CollectorState {
        lock(&self.shared.state).clone()
    }

    /// Returns the capture backend and the reason for its choice; empty before the source is open.
    pub fn backend(&self) -> String {
        lock(&self.shared.backend).clone()
    }

    /// Returns the sample ring, if any. Sends no request.
    pub fn samples(&self) -> Option<&SampleRing> {
        self.shared.samples.as_ref()
    }

    /// Returns a number that rises several times per second while the collector's thread is healthy.
    pub fn heartbeat(&self) -> u64 {
        self.shared.stats.heartbeat()
    }

    /// Returns how often the source was reopened after a failure.
    pub fn restarts(&self) -> u64 {
        self.shared.stats.restarts.load(Ordering::Relaxed)
    }

    /// Returns the number of requests that found the mailbox full.
    pub fn requests_refused(&self) -> u64 {
        self.shared.stats.requests_refused.load(Ordering::Relaxed)
    }

    /// Returns the number of requests that timed out.
    pub fn requests_timed_out(&self) -> u64 {
        self.shared.stats.requests_timed_out.load(Ordering::Relaxed)
    }

    /// Returns the latencies from a packet in this process's memory to the publication of its event.
    pub fn decision_latency(&self) -> Latency {
        self.shared.stats.decision.read()
    }

    /// Returns the latencies from the kernel's timestamp of a packet to the publication of its event. Empty for sources that
    /// are not live.
    pub fn arrival_latency(&self) -> Latency {
        self.shared.stats.arrival.read()
    }

    /// Returns the number of frames written to the sample ring; `None` without a ring.
    pub fn samples_kept(&self) -> Option<u64> {
        self.samples().map(|ring| self.shared.samples_before + ring.written())
    }

    /// Returns the number of completed windows of measurement tasks.
    pub fn windows(&self) -> u64 {
        self.shared.stats.windows.load(Ordering::Relaxed)
    }

    /// Returns the number of windows that were not evaluated because earlier ones took too long.
    pub fn windows_lost(&self) -> u64 {
        self.shared.stats.windows_lost.load(Ordering::Relaxed)
    }

    /// Returns the number of flow records that were not written.
    pub fn records_lost(&self) -> RecordsLost {
        self.shared.stats.records_lost()
    }

    /// Returns the number of flow records that wait to be written.
    pub fn records_waiting(&self) -> u64 {
        self.shared.stats.records_waiting()
    }

    /// Returns the last results of the measurement tasks. Sends no request.
    pub fn tasks(&self) -> Arc<TasksReport> {
        Arc::clone(&lock(&self.shared.tasks))
    }

    /// Returns all links of the switch, both directions.
    ///
    /// # Errors
    /// If there is no reply within `timeout`.
    pub fn links(&self, timeout: Duration) -> Result<CollectorReply<Vec<LinkReport>>, CollectorRequestError> {
        self.request(timeout, CollectorRequest::Links)
    }

    /// Asks for all links of the switch, both directions. The channel returns the reply.
    ///
    /// # Errors
    /// If the mailbox is full or the collector has stopped.
    pub fn begin_links(&self) -> Result<Receiver<CollectorReply<Vec<LinkReport>>>, CollectorRequestError> {
        self.submit(CollectorRequest::Links)
    }

    /// Returns one direction of a flow.
    ///
    /// # Errors
    /// If there is no reply within `timeout`.
    pub fn flow(
        &self,
        key: FlowKey,
        timeout: Duration,
    ) -> Result<CollectorReply<Option<FlowReport>>, CollectorRequestError> {
        self.request(timeout, |reply| CollectorRequest::Flow(key, reply))
    }

    /// Passes all flows to `take`. Returns the packet time of the last chunk.
    ///
    /// # Errors
    /// If not all arrive within `timeout`.
    pub fn flows(
        &self,
        timeout: Duration,
        mut take: impl FnMut(FlowReport),
    ) -> Result<Timestamp, CollectorRequestError> {
        let until = Instant::now() + timeout;
        let mut next = 0;
        loop {
            let slots = next..next + FLOW_SLOTS;
            let left = until.saturating_duration_since(Instant::now());
            let CollectorReply { time, value } =
                self.request(left, |reply| CollectorRequest::Flows(slots, reply))?;
            value.flows.into_iter().for_each(&mut take);
            next = next.saturating_add(FLOW_SLOTS);
            if next >= value.slots {
                return Ok(time);
            }
        }
    }

    /// Returns all counters.
    ///
    /// # Errors
    /// If there is no reply within `timeout`.
    pub fn counters(
        &self,
        timeout: Duration,
    ) -> Result<CollectorReply<CollectorCounters>, CollectorRequestError> {
        self.request(timeout, CollectorRequest::Counters)
    }

    /// Applies new network versions. The reply is an error if the collector does not fit them; it then keeps the old ones.
    ///
    /// # Errors
    /// If there is no reply within `timeout`. The collector may still apply them later.
    pub fn set_network(
        &self,
        network: Arc<Versions>,
        timeout: Duration,
    ) -> Result<CollectorReply<Result<(), OptionsError>>, CollectorRequestError> {
        self.request(timeout, |reply| CollectorRequest::Network(network, reply))
    }

    /// Observes packets of a pair: the collector reports departures and arrivals to the controller.
    ///
    /// # Errors
    /// If the mailbox is full or the collector has stopped.
    pub fn observe(&self, observation: Observation) -> Result<(), CollectorRequestError> {
        self.send(CollectorRequest::Observe(observation))
    }

    /// Changes the rate threshold of cheetah flows. Flows that were found stay cheetah flows.
    ///
    /// # Errors
    /// If the mailbox is full or the collector has stopped.
    pub fn set_rate_threshold(&self, rate: BitRate) -> Result<(), CollectorRequestError> {
        self.send(CollectorRequest::RateThreshold(rate))
    }

    /// Returns the rate threshold of cheetah flows that applies; `None` if the collector does not detect them.
    pub fn rate_threshold(&self) -> Option<BitRate> {
        self.shared.stats.rate_threshold()
    }

    /// Replaces the collector, and keeps source, samples and tasks. The channel returns the old collector, whose flows the caller
    /// exports.
    ///
    /// # Errors
    /// If the mailbox is full or the collector has stopped.
    pub(super) fn replace(
        &self,
        replace: Replacement,
    ) -> Result<Receiver<CollectorReply<Collector>>, CollectorRequestError> {
        self.submit(|reply| CollectorRequest::Replace(Box::new(replace), reply))
    }

    /// Sends a request, and waits for the reply.
    ///
    /// # Errors
    /// If there is no reply within `timeout`.
    pub fn request<T>(
        &self,
        timeout: Duration,
        request: impl FnOnce(Sender<CollectorReply<T>>) -> CollectorRequest,
    ) -> Result<CollectorReply<T>, CollectorRequestError> {
        let reply = self.submit(request)?;
        reply.recv_timeout(timeout).map_err(|error| match error {
            RecvTimeoutError::Timeout => {
                self.shared.stats.requests_timed_out.fetch_add(1, Ordering::Relaxed);
                CollectorRequestError::TimedOut
            }
            RecvTimeoutError::Disconnected => CollectorRequestError::Stopped,
        })
    }

    /// Sends a request. The channel returns the reply.
    fn submit<T>(
        &self,
        request: impl FnOnce(Sender<CollectorReply<T>>) -> CollectorRequest,
    ) -> Result<Receiver<CollectorReply<T>>, CollectorRequestError> {
        let (sender, reply) = bounded(1);
        self.send(request(sender))?;
        Ok(reply)
    }

    fn send(&self, request: CollectorRequest) -> Result<(), CollectorRequestError> {
        self.requests.try_send(request).map_err(|error| match error {
            TrySendError::Full(_) => {
                self.shared.stats.requests_refused.fetch_add(1, Ordering::Relaxed);
                CollectorRequestError::Busy
            }
            TrySendError::Disconnected(_) => CollectorRequestError::Stopped,
        })
    }
}

impl Mailbox {
    /// Returns the next request, if any.
    #[inline]
    pub fn next(&self) -> Option<CollectorRequest> {
        self.requests.try_recv().ok()
    }

    /// Whether there is no request.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.requests.is_empty()
    }

    /// Waits up to `timeout` for the next request.
    pub fn wait(&self, timeout: Duration) -> Option<CollectorRequest> {
        self.requests.recv_timeout(timeout).ok()
    }

    /// Returns the configured properties of the collector.
    pub fn description(&self) -> &Description {
        &self.shared.description
    }

    /// Advances the heartbeat.
    #[inline]
    pub fn beat(&self) {
        self.shared.stats.beat();
    }

    /// Sets the state of the collector.
    pub fn set_state(&self, state: CollectorState) {
        *lock(&self.shared.state) = state;
    }

    /// Sets the capture backend and the reason for its choice.
    pub fn set_backend(&self, backend: String) {
        *lock(&self.shared.backend) = backend;
    }

    /// Counts a restart after a failure.
    pub fn note_restart(&self) {
        self.shared.stats.restarts.fetch_add(1, Ordering::Relaxed);
    }

    /// Keeps the sample count for a successor of the same name.
    pub(super) fn keep_sample_count(&self) {
        if let Some(ring) = &self.shared.samples {
            self.shared.stats.samples_kept.fetch_add(ring.written(), Ordering::Relaxed);
        }
    }

    /// Returns the writer of task results, for the evaluation thread.
    pub fn task_report_writer(&self) -> TaskReportWriter {
        TaskReportWriter(Arc::clone(&self.shared))
    }
}

/// Publishes task results.
#[derive(Clone, Debug)]
pub struct TaskReportWriter(Arc<Shared>);

impl TaskReportWriter {
    /// Publishes a report.
    pub fn set(&self, report: TasksReport) {
        *lock(&self.0.tasks) = Arc::new(report);
    }

    /// Counts completed windows.
    pub(super) fn note_windows(&self, windows: u64) {
        self.0.stats.windows.fetch_add(windows, Ordering::Relaxed);
    }

    /// Counts a window that found the queue full.
    pub(super) fn note_lost(&self) {
        self.0.stats.windows_lost.fetch_add(1, Ordering::Relaxed);
    }
}

/// Ignores poisoning: each lock is held for one assignment, so a panic leaves a whole value.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Sends a reply. If the requester has gone, the reply is dropped.
pub fn reply_to<T>(reply: &Sender<CollectorReply<T>>, time: Timestamp, value: T) {
    let _ = reply.try_send(CollectorReply { time, value });
}
