//! Drives isolation: passes findings and the time to the decisions, carries out their commands, and publishes changes.
//!
//! Nothing is sent to the isolator while the [`State`](super::state::State) is locked.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crossbeam_channel::Receiver;
use thalweg_actuators::isolation::Isolator;
use thalweg_control::isolate::{Command, Input, Phase, Reason, RedirectionReport};
use thalweg_linux::clock::monotonic;
use thalweg_measure::detect::Finding;

use super::Isolation;
use crate::collectors::findings::CollectorFinding;
use crate::event::{Event, EventKind};
use crate::hub::Hub;
use crate::lifecycle::Lifecycle;

/// Maximum delay of retries.
const TICK: Duration = Duration::from_millis(20);

/// Maximum delay of an answer that is awaited.
const ANSWER_DELAY: Duration = Duration::from_millis(2);

/// Interval at which the counters of a flow are read, unless there are too many for that.
const READ_INTERVAL: Duration = Duration::from_millis(100);

/// Maximum number of flows whose counters are read at once. Findings wait meanwhile.
const READ_AT_ONCE: usize = 512;

/// Interval at which queues, program and rules are checked.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// Maximum number of findings to handle before time advances.
const FINDINGS_PER_TICK: usize = 1_024;

/// Maximum time that a stop waits for flows to be released, before the isolator itself stops.
pub(super) const STOP_LIMIT: Duration = Duration::from_secs(3);

/// The name of isolation in events, where collectors have theirs.
const NAME: &str = "isolation";

/// Minimum time between two ticks: each goes through thousands of redirections.
const MIN_TICK: Duration = Duration::from_millis(10);

/// Readings and ticks each take at most this part of the time, however many redirections there are.
const MAX_PART: u32 = 5;

/// When counters are read next, and when redirections are gone through.
struct Pace {
    read: Instant,
    tick: Instant,
}

impl Pace {
    fn start() -> Pace {
        let now = Instant::now();
        Pace { read: now, tick: now }
    }

    /// Returns the time to wait for findings before something else is due.
    fn wait(&self) -> Duration {
        self.read.saturating_duration_since(Instant::now()).min(TICK)
    }
}

/// Returns the next time of work that started at `start` and is done now.
fn next(start: Instant, interval: Duration) -> Instant {
    (start + interval).max(start + MAX_PART * start.elapsed())
}

/// The driver of isolation.
pub(super) struct Driver {
    isolation: Isolation,
    isolator: Box<dyn Isolator>,
    findings: Receiver<CollectorFinding>,
    /// Wakes the driver for a request of a user.
    wakeups: Receiver<()>,
    hub: Arc<Hub>,
    lifecycle: Lifecycle,
    name: Arc<str>,
    /// Commands that the isolator will answer later.
    unanswered: usize,
    /// Restored redirections that have been logged.
    restored: u64,
}

impl Driver {
    pub(super) fn new(
        isolation: Isolation,
        isolator: Box<dyn Isolator>,
        findings: Receiver<CollectorFinding>,
        wakeups: Receiver<()>,
        hub: Arc<Hub>,
        lifecycle: Lifecycle,
    ) -> Driver {
        Driver {
            isolation,
            isolator,
            findings,
            wakeups,
            hub,
            lifecycle,
            name: NAME.into(),
            unanswered: 0,
            restored: 0,
        }
    }

    /// Starts the isolator, and takes over redirections of an earlier run.
    ///
    /// # Errors
    /// A message, if the isolator cannot start.
    pub(super) fn begin(&mut self) -> Result<(), String> {
        self.isolator.start()?;
        let adopted = self.isolator.adopted();
        if !adopted.is_empty() {
            tracing::info!(flows = adopted.len(), "redirections of an earlier run taken over");
        }
        for key in adopted {
            self.apply(Input::Began { key, reason: Reason::Adopted });
        }
        Ok(())
    }

    /// Runs until the daemon stops, and releases all flows.
    ///
    /// # Errors
    /// A message, if flows may still be redirected.
    pub(super) fn run(mut self) -> Result<(), String> {
        let (mut pace, mut checked) = (Pace::start(), Instant::now());
        while !self.lifecycle.is_stopping() {
            self.wait(match self.unanswered {
                0 => pace.wait(),
                _ => pace.wait().min(ANSWER_DELAY),
            });
            self.advance(&mut pace);
            if checked.elapsed() >= CHECK_INTERVAL {
                checked = Instant::now();
                self.check();
            }
        }
        self.stop()
    }

    /// Waits for a finding or a request, at most for this time.
    fn wait(&mut self, limit: Duration) {
        let first = crossbeam_channel::select! {
            recv(self.findings) -> finding => match finding {
                Ok(finding) => Some(finding),
                Err(_) => {
                    // All collectors have ended, so the channel waits no longer.
                    std::thread::sleep(TICK);
                    None
                }
            },
            recv(self.wakeups) -> _ => None,
            default(limit) => None,
        };
        let Some(first) = first else { return };
        self.find(first);
        for _ in 1..FINDINGS_PER_TICK {
            match self.findings.try_recv() {
                Ok(finding) => self.find(finding),
                Err(_) => break,
            }
        }
    }

    fn find(&mut self, (collector, finding): CollectorFinding) {
        self.apply(match finding {
            Finding::Began(cheetah) => Input::Began {
                key: cheetah.key,
                reason: Reason::Cheetah {
                    collector,
                    rate: cheetah.rate,
                    bytes: cheetah.bytes,
                    detected: cheetah.detected,
                },
            },
            Finding::Ended(end) => Input::Ended(end.key),
        });
    }

    /// Does what is due: answers, counters, retries. Publishes what has changed.
    fn advance(&mut self, pace: &mut Pace) {
        for answer in self.isolator.answers() {
            if answer.is_answer() {
                self.unanswered = self.unanswered.saturating_sub(1);
            }
            self.apply(answer);
        }
        let now = Instant::now();
        if now >= pace.read {
            let parts = self.read().div_ceil(READ_AT_ONCE).max(1);
            pace.read = next(now, READ_INTERVAL / u32::try_from(parts).unwrap_or(u32::MAX));
        }
        let now = Instant::now();
        if now >= pace.tick {
            self.isolation.state().clock().observe();
            self.apply(Input::Tick);
            pace.tick = next(now, MIN_TICK);
        }
        let isolator = self.isolator.counters();
        let changes = {
            let mut work = self.isolation.state().lock();
            work.isolator = isolator;
            work.isolation.take_changes()
        };
        changes.into_iter().for_each(|report| self.publish(report));
    }

    /// Reads the counters of the next flows. Returns the number of active redirections.
    fn read(&mut self) -> usize {
        let (flows, count) = {
            let isolation = &mut self.isolation.state().lock().isolation;
            (isolation.next_to_read(READ_AT_ONCE), isolation.active_count())
        };
        if count == 0 {
            // A command whose answer was lost is forgotten with its redirection.
            self.unanswered = 0;
        }
        match self.isolator.read(&flows, monotonic()) {
            Ok(Some(reading)) => self.apply(Input::Reading(reading)),
            Ok(None) => {}
            Err(error) => self.report_error(Some(error)),
        }
        count
    }

    /// Checks and repairs queues and program.
    fn check(&mut self) {
        match self.isolator.maintain(monotonic()) {
            Ok(repaired) => {
                for what in repaired {
                    tracing::warn!(what, "isolation repaired");
                }
                self.report_error(None);
            }
            Err(error) => self.report_error(Some(error)),
        }
        let restored = self.isolation.state().lock().isolation.counters().restored;
        let flows = restored - std::mem::replace(&mut self.restored, restored);
        if flows > 0 {
            tracing::warn!(flows, "restored redirections that someone else had removed");
        }
    }

    /// Stores what is wrong, and logs it when it changes.
    fn report_error(&self, error: Option<String>) {
        let mut work = self.isolation.state().lock();
        if work.error == error {
            return;
        }
        match &error {
            Some(error) => tracing::error!(error, "isolation does not work"),
            None => tracing::info!("isolation works again"),
        }
        work.error = error;
    }

    /// Passes an input to the decisions, and carries out their commands.
    fn apply(&mut self, input: Input) {
        let mut input = Some(input);
        loop {
            let command = {
                let mut work = self.isolation.state().lock();
                if let Some(input) = input.take() {
                    work.isolation.handle(monotonic(), input);
                }
                work.isolation.next_command()
            };
            let Some(command) = command else { return };
            let expects_answer = command.expects_answer();
            input = self.isolator.execute(command, monotonic());
            self.unanswered += usize::from(expects_answer && input.is_none());
        }
    }

    fn publish(&self, report: RedirectionReport) {
        log(&report);
        let clock = self.isolation.state().clock();
        let now = clock.now();
        let report = clock.convert(report);
        let (collector, switch) = (Arc::clone(&self.name), "".into());
        let kind = EventKind::Redirection(report);
        self.hub.publish(Event { collector, switch, time: now, emitted: now, kind });
    }

    /// Releases all flows, unless they are to stay for the next start.
    fn stop(&mut self) -> Result<(), String> {
        if !self.isolation.config().isolator.keeps_at_stop() {
            self.isolator.prepare_stop();
            self.apply(Input::ReleaseAll);
            let until = Instant::now() + STOP_LIMIT;
            let mut pace = Pace::start();
            while self.isolation.state().lock().isolation.active_count() > 0 && Instant::now() < until {
                std::thread::sleep(pace.wait());
                self.advance(&mut pace);
            }
            self.release_rest();
        }
        let stopped = self.isolator.stop();
        if let Err(error) = &stopped {
            tracing::error!(error, "isolation not removed: flows may still be redirected");
        }
        let counters = self.isolation.state().lock().isolation.counters();
        tracing::info!(
            redirected = counters.redirected,
            confirmed = counters.confirmed,
            released = counters.released,
            failed = counters.failed,
            "isolation stopped"
        );
        stopped
    }

    /// Releases flows whose packets are still queued.
    fn release_rest(&mut self) {
        let rest: Vec<RedirectionReport> =
            self.isolation.state().lock().isolation.active().cloned().collect();
        for report in &rest {
            let command = Command::Release { id: report.id, key: report.key, if_packets: None };
            self.isolator.execute(command, monotonic());
        }
        match () {
            () if rest.is_empty() => {}
            () if self.isolator.reads_counters() => {
                tracing::warn!(flows = rest.len(), "released flows whose packets were still queued")
            }
            () => tracing::warn!(flows = rest.len(), "flows not released in time, removing all at once"),
        }
    }
}

/// Logs a change of phase.
fn log(report: &RedirectionReport) {
    let RedirectionReport { id, key, phase, .. } = report;
    let (id, phase, flow) = (id.0, phase.name(), key.to_string());
    let cause = report.end_cause.map_or("", |cause| cause.name());
    let packets = report.counters.map_or(0, |counters| counters.packets);
    let error = report.error.as_deref().unwrap_or_default();
    let try_number = report.try_number;
    match report.phase {
        // A flow that fails for a lasting reason does not fill the log: only its first and its last failure are logged.
        Phase::Failed if try_number > 1 && report.retry_at.is_some() => {
            tracing::debug!(id, flow, error, try_number, "redirection failed again")
        }
        Phase::Redirected if try_number > 1 => tracing::debug!(id, flow, try_number, "flow redirected again"),
        Phase::Confirmed if try_number > 1 => tracing::info!(id, flow, try_number, "flow redirected again"),
        Phase::Failed if try_number > 1 => {
            tracing::warn!(id, flow, error, try_number, "redirection failed, not tried again")
        }
        Phase::Failed => tracing::warn!(id, flow, error, "redirection failed"),
        // The first of its failures; later ones change nothing.
        Phase::Waiting if try_number == 1 && !error.is_empty() => {
            tracing::warn!(id, flow, error, "redirection failed, trying again")
        }
        Phase::Releasing if report.redirected.is_none() => {
            tracing::warn!(id, flow, error, "releasing a flow that may be redirected")
        }
        Phase::Releasing if !error.is_empty() => {
            tracing::warn!(id, flow, error, "release failed, trying again")
        }
        Phase::Released if report.redirected.is_none() => {
            tracing::info!(id, flow, cause, "redirection cancelled")
        }
        Phase::Released => tracing::info!(id, flow, cause, packets, "flow released"),
        Phase::Redirected => tracing::info!(id, flow, "flow redirected"),
        Phase::Withheld => tracing::info!(id, flow, "redirection withheld"),
        _ => tracing::debug!(id, flow, phase, cause, "redirection changed"),
    }
}
