//! The state of isolation, and requests of users.
//!
//! One lock protects it, held while one input is handled or a report is copied, and never during a system call.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crossbeam_channel::{Receiver, Sender, bounded};
use thalweg_actuators::isolation::IsolatorCounters;
use thalweg_control::isolate::message::{FlowCounters, QueueReading};
use thalweg_control::isolate::{
    Input, Isolation, IsolationCounters, IsolationOptions, Phase, Reason, RedirectionId, RedirectionReport,
};
use thalweg_linux::clock::{monotonic, realtime};
use thalweg_wire::{FlowKey, Nanos, Timestamp};
use thiserror::Error;

/// Readings of both clocks, of which the best is taken.
const CLOCK_ATTEMPTS: u32 = 3;

/// The phases of active redirections, the first ones of [`Phase::ALL`].
const ACTIVE_PHASES: usize = Phase::Releasing as usize + 1;

/// Redirections that are counted while the lock is held.
const COUNTED_AT_ONCE: usize = 1_024;

/// The state of isolation.
#[derive(Debug)]
pub struct State {
    work: Mutex<Work>,
    wake: Sender<()>,
}

/// Decisions, and what the driver reports about the isolator.
#[derive(Debug)]
pub(super) struct Work {
    pub(super) isolation: Isolation,
    pub(super) isolator: IsolatorCounters,
    /// What is wrong with the isolator now.
    pub(super) error: Option<String>,
}

/// Isolation at one moment. Times are of the wall clock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IsolationReport {
    /// Active redirections, the oldest first, as many as were asked for.
    pub active: Vec<RedirectionReport>,
    /// The number of all active redirections.
    pub active_count: usize,
    /// Ended redirections, the latest first, as many as were asked for.
    pub ended: Vec<RedirectionReport>,
    /// Counters of decisions.
    pub counters: IsolationCounters,
    /// Counters of the isolator.
    pub isolator: IsolatorCounters,
    /// The scavenger and the primary queue, if the isolator reads them.
    pub queues: Option<(QueueReading, QueueReading)>,
    /// What is wrong with the isolator now.
    pub error: Option<String>,
}

/// Why a request of a user is refused.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum PinError {
    /// `never_prefixes` or `never_ports` contain the flow.
    #[error("{0} is never redirected: see isolation.never_prefixes and isolation.never_ports")]
    Excluded(FlowKey),
    /// All redirections are in use.
    #[error("{0} redirections are active, the maximum (isolation.max_redirections)")]
    Full(usize),
    /// The flow is not redirected.
    #[error("{0} is not redirected")]
    NotRedirected(FlowKey),
}

impl State {
    /// Creates an empty state. Also returns the channel that wakes the driver.
    pub(super) fn new(options: IsolationOptions) -> (State, Receiver<()>) {
        let (wake, wakeups) = bounded(1);
        let work = Work {
            isolation: Isolation::new(options, monotonic()),
            isolator: IsolatorCounters::default(),
            error: None,
        };
        (State { work: Mutex::new(work), wake }, wakeups)
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Work> {
        self.work.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns a report with at most `active` active redirections, those with numbers after `after`, and at most `ended` that have
    /// ended.
    pub fn report(&self, after: RedirectionId, active: usize, ended: usize) -> IsolationReport {
        let clock = WallClock::now();
        let work = self.lock();
        let isolation = &work.isolation;
        let convert = |report: &RedirectionReport| clock.convert(report.clone());
        IsolationReport {
            active: isolation.active_after(after).take(active).map(convert).collect(),
            active_count: isolation.active_count(),
            ended: isolation.ended().take(ended).map(convert).collect(),
            counters: isolation.counters(),
            isolator: work.isolator,
            queues: isolation.queues(),
            error: work.error.clone(),
        }
    }

    /// Returns the number of active redirections in each phase that they can be in.
    pub fn phases(&self) -> [(Phase, usize); ACTIVE_PHASES] {
        let mut phases = std::array::from_fn(|at| (Phase::ALL[at].0, 0));
        // The lock is held for one part at a time.
        let mut last = RedirectionId(0);
        loop {
            let work = self.lock();
            let before = last;
            for report in work.isolation.active_after(before).take(COUNTED_AT_ONCE) {
                phases[report.phase as usize].1 += 1;
                last = report.id;
            }
            if last == before {
                return phases;
            }
        }
    }

    /// Returns the active redirection of a flow, otherwise its latest that has ended.
    pub fn of(&self, key: &FlowKey) -> Option<RedirectionReport> {
        let work = self.lock();
        let isolation = &work.isolation;
        let report = isolation.of(key).or_else(|| isolation.ended().find(|ended| ended.key == *key));
        report.cloned().map(|report| WallClock::now().convert(report))
    }

    /// Redirects a flow until [`release`](Self::release). Returns its redirection.
    ///
    /// # Errors
    /// If the flow is excluded, or the maximum number of redirections is reached.
    pub fn pin(&self, key: FlowKey) -> Result<RedirectionReport, PinError> {
        let mut work = self.lock();
        let isolation = &mut work.isolation;
        if isolation.options().exclusions.contain(&key) {
            return Err(PinError::Excluded(key));
        }
        isolation.handle(monotonic(), Input::Began { key, reason: Reason::Pinned });
        let active = isolation.of(&key);
        // On a dry run, it has ended already.
        let withheld = || isolation.ended().next().filter(|_| isolation.options().dry_run);
        let report =
            active.or_else(withheld).cloned().ok_or_else(|| PinError::Full(isolation.active_count()))?;
        self.wake();
        Ok(WallClock::now().convert(report))
    }

    /// Releases a flow once its packets have left the scavenger queue. Returns its redirection.
    ///
    /// # Errors
    /// If the flow is not redirected.
    pub fn release(&self, key: FlowKey) -> Result<RedirectionReport, PinError> {
        let mut work = self.lock();
        if work.isolation.of(&key).is_none() {
            return Err(PinError::NotRedirected(key));
        }
        work.isolation.handle(monotonic(), Input::Release(key));
        let isolation = &work.isolation;
        let report = isolation.of(&key).or_else(|| isolation.ended().next()).cloned();
        self.wake();
        report.map(|report| WallClock::now().convert(report)).ok_or(PinError::NotRedirected(key))
    }

    /// Wakes the driver. If the channel is full, it wakes already.
    fn wake(&self) {
        let _ = self.wake.try_send(());
    }
}

/// Converts times of the monotonic clock.
#[derive(Clone, Copy, Debug)]
pub(super) struct WallClock {
    wall: Timestamp,
    monotonic: Timestamp,
}

impl WallClock {
    /// Reads both clocks, as close to each other as in the best of a few attempts: the thread may be stopped in between.
    pub(super) fn now() -> WallClock {
        let attempt = || {
            let (before, wall, after) = (monotonic(), realtime(), monotonic());
            let gap = after.since(before);
            (gap, WallClock { wall, monotonic: before + Nanos(gap.0 / 2) })
        };
        let attempts = (0..CLOCK_ATTEMPTS).map(|_| attempt());
        attempts.min_by_key(|(gap, _)| *gap).map_or_else(|| attempt().1, |(_, clock)| clock)
    }

    fn time(self, time: Timestamp) -> Timestamp {
        self.wall.saturating_sub(self.monotonic.since(time))
    }

    /// Returns a report whose times are of the wall clock.
    pub(super) fn convert(self, report: RedirectionReport) -> RedirectionReport {
        RedirectionReport {
            requested: self.time(report.requested),
            redirected: report.redirected.map(|time| self.time(time)),
            confirmed: report.confirmed.map(|time| self.time(time)),
            ended: report.ended.map(|time| self.time(time)),
            counters: report.counters.map(|counters| FlowCounters {
                first: counters.first.map(|time| self.time(time)),
                ..counters
            }),
            ..report
        }
    }
}
