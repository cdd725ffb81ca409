//! The state of isolation, and requests of users.
//!
//! One lock protects it, held while one input is handled or a report is copied, and never during a system call.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crossbeam_channel::{Receiver, Sender, bounded};
use thalweg_actuators::isolation::IsolatorCounters;
use thalweg_control::isolate::message::QueueReading;
use thalweg_control::isolate::{
    Input, Isolation, IsolationCounters, IsolationOptions, Phase, Reason, RedirectionId, RedirectionReport,
};
use thalweg_linux::clock::monotonic;
use thalweg_wire::FlowKey;
use thiserror::Error;

use super::clock::ReportClock;
use crate::emulation::Emulation;

/// The phases of active redirections, the first ones of [`Phase::ALL`].
const ACTIVE_PHASES: usize = Phase::Releasing as usize + 1;

/// Redirections that are counted while the lock is held.
const COUNTED_AT_ONCE: usize = 1_024;

/// The state of isolation.
#[derive(Debug)]
pub struct State {
    work: Mutex<Work>,
    clock: ReportClock,
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

/// Isolation at one moment. Times are of the wall clock, or emulated.
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
    /// Creates an empty state. Times are reported by the clock of the `emulation`, if any. Also returns the channel that wakes the
    /// driver.
    pub(super) fn new(options: IsolationOptions, emulation: Option<Emulation>) -> (State, Receiver<()>) {
        let (wake, wakeups) = bounded(1);
        let work = Work {
            isolation: Isolation::new(options, monotonic()),
            isolator: IsolatorCounters::default(),
            error: None,
        };
        (State { work: Mutex::new(work), clock: ReportClock::new(emulation), wake }, wakeups)
    }

    /// Returns the clock of reports.
    pub(super) fn clock(&self) -> &ReportClock {
        &self.clock
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Work> {
        self.work.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns a report with at most `active` active redirections, those with numbers after `after`, and at most `ended` that have
    /// ended.
    pub fn report(&self, after: RedirectionId, active: usize, ended: usize) -> IsolationReport {
        self.clock.observe();
        let work = self.lock();
        let isolation = &work.isolation;
        let convert = |report: &RedirectionReport| self.clock.convert(report.clone());
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
        self.clock.observe();
        let work = self.lock();
        let isolation = &work.isolation;
        let report = isolation.of(key).or_else(|| isolation.ended().find(|ended| ended.key == *key));
        report.cloned().map(|report| self.clock.convert(report))
    }

    /// Whether a flow is redirected now.
    pub fn redirects(&self, key: &FlowKey) -> bool {
        let phase = self.lock().isolation.of(key).map(|report| report.phase);
        phase.is_some_and(Phase::is_in_force)
    }

    /// Redirects a flow until [`release`](Self::release). Returns its redirection.
    ///
    /// # Errors
    /// If the flow is excluded, or the maximum number of redirections is reached.
    pub fn pin(&self, key: FlowKey) -> Result<RedirectionReport, PinError> {
        self.clock.observe();
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
        Ok(self.clock.convert(report))
    }

    /// Releases a flow once its packets have left the scavenger queue. Returns its redirection.
    ///
    /// # Errors
    /// If the flow is not redirected.
    pub fn release(&self, key: FlowKey) -> Result<RedirectionReport, PinError> {
        self.clock.observe();
        let mut work = self.lock();
        if work.isolation.of(&key).is_none() {
            return Err(PinError::NotRedirected(key));
        }
        work.isolation.handle(monotonic(), Input::Release(key));
        let isolation = &work.isolation;
        let report = isolation.of(&key).or_else(|| isolation.ended().next()).cloned();
        self.wake();
        report.map(|report| self.clock.convert(report)).ok_or(PinError::NotRedirected(key))
    }

    /// Wakes the driver. If the channel is full, it wakes already.
    fn wake(&self) {
        let _ = self.wake.try_send(());
    }
}
