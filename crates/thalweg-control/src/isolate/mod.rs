//! Isolation: cheetah flows are redirected to a scavenger queue, so that they do not delay or drop the packets of others
//! (the heavy-hitter dissertation, University of Virginia 2018, sections 3.2.2, 3.5.1 and 4.2: the traffic-engineering
//! module of CFTES).
//!
//! Like the [control loop](crate::control_loop), it does no I/O and reads no clock: [`Isolation::handle`] takes the time
//! and an input, [`Isolation::next_command`] returns commands. It is a loop of its own because it needs no topology: a
//! router that isolates flows knows its own interface only.
//!
//! | module | contents |
//! |---|---|
//! | [`message`] | inputs, commands and options |
//! | [`redirection`] | the lifecycle of one redirection |
//! | [`exclusions`] | flows that are never redirected |
//! | `limiter` | the limit of changes per second |
//! | `turn` | work on all redirections in parts |
//! | `waiting_list` | flows that wait for a place |
//!
//! **Lifecycle**: waiting, requested, redirected, confirmed, draining, releasing, released. A flow is released when it has
//! ended or is quiet. The dissertation deletes the rule at once, which reorders TCP if packets are still queued. Here a
//! flow drains first: its packets have left the scavenger queue when the queue was empty, or has sent what it contained.
//! The release is conditional: if the flow has sent meanwhile, it stays redirected and drains again. An actuator that cannot read
//! the backlog of the queue reports none; then a flow has drained when it has sent nothing for `drain_time`.
//!
//! **No effect**: if packets of the flow are counted for `confirm_timeout`, and the scavenger queue receives fewer than an eighth as
//! many, the redirection has failed, confirmed or not, and is undone. So other packets in the same queue hide that only if they are
//! more.
//!
//! **Failure**: the next redirection of the flow follows after 10 s, then 20 s, up to 5 minutes, at most seven times in a row. It waits as
//! an active redirection, so the end of the flow or a user cancels it. A flow that fails for a lasting reason is redirected for
//! `confirm_timeout` each time, and then left alone until it is a cheetah again. A pinned flow is not left alone.
//!
//! **Quiet** is a flow whose counter was read and did not grow for `quiet`. Times without readings do not count. Without a report of its end, a
//! cheetah flow that is released as quiet is not redirected when it sends again, because its collector reports it once. So `quiet` is to be longer than
//! the collector's idle timeout.
//!
//! **Unknown result**: a request that timed out may have taken effect. Such a flow is released before its redirection ends, whether it is given
//! up or cancelled. **Releases** are repeated until one succeeds, after 1 s, 2 s, up to a minute. Until then the redirection is active.
//!
//! **Time** is an argument, from a clock that does not step. **Deterministic**: the same inputs give the same commands.
//! **Bounded**: by `max_redirections` and `history` of [`IsolationOptions`]. Each flow that is not redirected is counted. What goes through
//! all redirections does so in parts, so that a finding never waits for long.

pub mod exclusions;
mod limiter;
pub mod message;
pub mod redirection;
mod turn;
mod waiting_list;

use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;

use thalweg_wire::{FlowKey, Nanos, Timestamp};

use limiter::ChangeLimiter;
pub use message::{Command, Input, IsolationOptions, Reading, Reason, RedirectionId};
use message::{FlowCounters, QueueReading, ScavengerName};
use redirection::{Due, Missing, ReadResult, Redirection};
pub use redirection::{EndCause, Phase, RedirectionReport};
use turn::Turn;
use waiting_list::WaitingList;

/// Attempts to redirect a flow before that counts as failed.
const MAX_ATTEMPTS: u32 = 5;

/// Time before the second attempt to redirect or to release a flow; doubles with each, up to [`MAX_RETRY`].
const RETRY_AFTER: Nanos = Nanos::from_secs(1);

/// Maximum time before the next attempt. Those to release a flow have no end.
const MAX_RETRY: Nanos = Nanos::from_secs(60);

/// Redirections of a flow in a row that fail, before it is left alone.
const MAX_TRIES: u32 = 8;

/// Time before the second of them; doubles with each, up to [`MAX_RENEWAL`].
const RENEW_AFTER: Nanos = Nanos::from_secs(10);

/// Maximum time before the next of them.
const MAX_RENEWAL: Nanos = Nanos::from_secs(300);

/// A redirection that had an effect for this long is not in a row with later ones.
const STEADY: Nanos = Nanos::from_secs(600);

/// Flows that wait for a place.
const MAX_WAITING: usize = 65_536;

/// Redirections that a tick goes through: at least so many, and at least one in [`TICKS`].
const MIN_PER_TICK: usize = 2_048;

/// Ticks that go through all redirections.
const TICKS: usize = 64;

/// Counters of isolation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IsolationCounters {
    /// Cheetah flows and pins that arrived.
    pub requests: u64,
    /// Of those: of flows that were redirected already.
    pub repeated: u64,
    /// Of those: excluded by prefix or port.
    pub excluded: u64,
    /// Of those: refused because of the maximum number of redirections. A cheetah flow waits for a place, if fewer than 65,536 do.
    pub refused: u64,
    /// Of those: not redirected because of a dry run.
    pub withheld: u64,
    /// Flows redirected.
    pub redirected: u64,
    /// Redirections confirmed by counters.
    pub confirmed: u64,
    /// Redirections released.
    pub released: u64,
    /// Of those: released although packets may not have left the scavenger queue.
    pub forced: u64,
    /// Redirections that ended before the flow was redirected.
    pub cancelled: u64,
    /// Redirections that failed.
    pub failed: u64,
    /// Of those: the scavenger queue did not receive the flow.
    pub ineffective: u64,
    /// Redirections that were requested because an earlier one of the same flow had failed.
    pub renewed: u64,
    /// Attempts of the actuator that failed.
    pub errors: u64,
    /// Releases that were put off because the flow sent meanwhile.
    pub put_off: u64,
    /// Redirections that someone else removed, and that were restored.
    pub restored: u64,
    /// Changes that waited for the limit of changes per second, counted per flow and tick.
    pub limited: u64,
    /// Packets of flows that have been released.
    pub packets: u64,
    /// Bytes of flows that have been released.
    pub bytes: u64,
}

/// Decides which flows are redirected.
#[derive(Debug)]
pub struct Isolation {
    options: IsolationOptions,
    active: BTreeMap<RedirectionId, Redirection>,
    by_key: BTreeMap<FlowKey, RedirectionId>,
    waiting: WaitingList,
    limiter: ChangeLimiter,
    commands: VecDeque<Command>,
    /// Ended redirections, the oldest first.
    ended: VecDeque<RedirectionReport>,
    /// Changes of phase since the last call of [`take_changes`](Self::take_changes).
    changes: VecDeque<RedirectionReport>,
    queues: Option<(QueueReading, QueueReading)>,
    tick_turn: Turn,
    read_turn: Turn,
    counters: IsolationCounters,
    last_id: u64,
    is_stopping: bool,
}

impl Isolation {
    /// Creates an empty state at `now`.
    pub fn new(options: IsolationOptions, now: Timestamp) -> Isolation {
        Isolation {
            limiter: ChangeLimiter::new(options.changes_per_second, now),
            waiting: WaitingList::new(MAX_WAITING),
            options,
            active: BTreeMap::new(),
            by_key: BTreeMap::new(),
            commands: VecDeque::new(),
            ended: VecDeque::new(),
            changes: VecDeque::new(),
            queues: None,
            tick_turn: Turn::new(),
            read_turn: Turn::new(),
            counters: IsolationCounters::default(),
            last_id: 0,
            is_stopping: false,
        }
    }

    /// Handles an input at `now`. Fetch the resulting [commands](Self::next_command) afterwards.
    pub fn handle(&mut self, now: Timestamp, input: Input) {
        match input {
            Input::Tick => self.tick(now),
            Input::Began { key, reason } => self.began(key, reason, now),
            Input::Ended(key) => self.end(&key, EndCause::FlowEnded, now),
            Input::Release(key) => self.end(&key, EndCause::User, now),
            Input::ReleaseAll => self.release_all(now),
            Input::Redirected(id) => self.redirected(id, now),
            Input::Failed(id, error) => self.failed(id, error, now),
            Input::Unknown(id, error) => self.unknown(id, error, now),
            Input::Released(id) => self.released(id, now),
            Input::StillSending(id) => self.still_sending(id, now),
            Input::ReleaseFailed(id, error) => self.release_failed(id, error, now),
            Input::Reading(reading) => self.read(reading, now),
            Input::Lost(id, error) => self.lost(id, error, now),
        }
    }

    /// Returns the next command.
    pub fn next_command(&mut self) -> Option<Command> {
        self.commands.pop_front()
    }

    /// Returns the changes since the last call, the oldest first; at most as many as `history` and `max_redirections`.
    pub fn take_changes(&mut self) -> Vec<RedirectionReport> {
        self.changes.drain(..).collect()
    }

    /// Returns the active redirections by number.
    pub fn active(&self) -> impl Iterator<Item = &RedirectionReport> {
        self.active.values().map(|redirection| &redirection.report)
    }

    /// Returns the active redirections with higher numbers than `id`, by number.
    pub fn active_after(&self, id: RedirectionId) -> impl Iterator<Item = &RedirectionReport> {
        let later = (Bound::Excluded(id), Bound::Unbounded);
        self.active.range(later).map(|(_, redirection)| &redirection.report)
    }

    /// Returns the number of active redirections.
    pub fn active_count(&self) -> usize {
        self.active.len()
    }

    /// Returns the flows whose counters are to be read next: those of the next `count` redirections that are in force. Ask again
    /// before each [reading](Input::Reading).
    pub fn next_to_read(&mut self, count: usize) -> Vec<FlowKey> {
        let mut keys = Vec::with_capacity(count.min(self.active.len()));
        self.read_turn.visit(&mut self.active, count, |_, it| {
            if it.is_in_force() {
                keys.push(it.report.key);
            }
        });
        keys
    }

    /// Returns the redirection of a flow, if it has an active one.
    pub fn of(&self, key: &FlowKey) -> Option<&RedirectionReport> {
        self.by_key.get(key).map(|id| &self.active[id].report)
    }

    /// Returns ended redirections, the latest first.
    pub fn ended(&self) -> impl Iterator<Item = &RedirectionReport> {
        self.ended.iter().rev()
    }

    /// Returns the counters.
    pub fn counters(&self) -> IsolationCounters {
        self.counters
    }

    /// Returns the options.
    pub fn options(&self) -> &IsolationOptions {
        &self.options
    }

    /// Returns the last readings of the scavenger and the primary queue.
    pub fn queues(&self) -> Option<(QueueReading, QueueReading)> {
        self.queues
    }

    fn began(&mut self, key: FlowKey, reason: Reason, now: Timestamp) {
        self.counters.requests += 1;
        if let Some(id) = self.by_key.get(&key).copied() {
            self.counters.repeated += 1;
            return self.began_again(id, reason, now);
        }
        if self.options.exclusions.contain(&key) {
            self.counters.excluded += 1;
        } else if self.active.len() >= self.options.max_redirections || self.is_stopping {
            self.counters.refused += 1;
            if matches!(reason, Reason::Cheetah { .. }) && !self.is_stopping {
                self.waiting.push(key, reason);
            }
        } else {
            self.start(key, reason, now);
        }
    }

    fn next_id(&mut self) -> RedirectionId {
        self.last_id += 1;
        RedirectionId(self.last_id)
    }

    fn start(&mut self, key: FlowKey, reason: Reason, now: Timestamp) {
        let id = self.next_id();
        let mut report = RedirectionReport::new(id, key, reason, now);
        if self.options.dry_run {
            self.counters.withheld += 1;
            (report.phase, report.ended) = (Phase::Withheld, Some(now));
            self.record(report.clone());
            return self.remember(report);
        }
        self.active.insert(id, Redirection::new(report, now));
        self.by_key.insert(key, id);
        self.request(id, now);
    }

    /// A redirected flow is a cheetah again, or is pinned.
    fn began_again(&mut self, id: RedirectionId, reason: Reason, now: Timestamp) {
        let Some(it) = self.active.get_mut(&id) else { return };
        // A user's release holds against the detector.
        if it.report.end_cause == Some(EndCause::User) && reason != Reason::Pinned {
            return;
        }
        match it.report.phase {
            Phase::Draining if !self.is_stopping => it.resume(now),
            Phase::Requested if !self.is_stopping => it.report.end_cause = None,
            Phase::Releasing => it.again = Some(reason.clone()),
            // A user does not want to wait for the next attempt, and a rule of another daemon is there now.
            Phase::Waiting if matches!(reason, Reason::Pinned | Reason::Adopted) => {
                (it.since, it.report.retry_at) = (now, None);
                self.request(id, now);
            }
            _ => {}
        }
        if reason == Reason::Pinned
            && let Some(it) = self.active.get_mut(&id)
        {
            it.report.reason = reason;
        }
    }

    /// Requests a redirection, if the limit of changes allows it.
    fn request(&mut self, id: RedirectionId, now: Timestamp) {
        let Some(it) = self.active.get_mut(&id) else { return };
        // An adopted flow is redirected already: the request only extends its expiry.
        let is_redirected = it.report.reason == Reason::Adopted && it.report.try_number == 1;
        if !is_redirected && !self.limiter.take(now) {
            self.counters.limited += 1;
            return;
        }
        (it.report.phase, it.since, it.report.retry_at) = (Phase::Requested, now, None);
        // The first request of a redirection that follows a failed one.
        self.counters.renewed += u64::from(it.report.try_number > 1 && it.attempts == 0);
        self.commands.push_back(Command::Redirect(id, it.report.key));
        let report = it.report.clone();
        self.record(report);
    }

    fn end(&mut self, key: &FlowKey, cause: EndCause, now: Timestamp) {
        self.waiting.remove(key);
        let Some(id) = self.by_key.get(key).copied() else { return };
        let Some(it) = self.active.get_mut(&id) else { return };
        if it.is_pinned() && cause == EndCause::FlowEnded {
            return;
        }
        match it.report.phase {
            Phase::Waiting => {
                it.report.end_cause = Some(cause);
                match it.is_uncertain {
                    true => self.release_in_doubt(id, now),
                    false => self.finish(id, Phase::Released, now),
                }
            }
            // Acted on when the answer is here.
            Phase::Requested => it.report.end_cause = Some(cause),
            Phase::Redirected | Phase::Confirmed => self.drain(id, cause, now),
            Phase::Draining => (it.report.end_cause, it.again) = (Some(cause), None),
            Phase::Releasing => {
                it.again = None;
                it.report.end_cause.get_or_insert(cause);
                // A user does not want to wait for the next attempt.
                if cause != EndCause::FlowEnded {
                    it.release_at = it.release_at.map(|_| now);
                }
            }
            Phase::Released | Phase::Failed | Phase::Withheld => {}
        }
    }

    fn drain(&mut self, id: RedirectionId, cause: EndCause, now: Timestamp) {
        let Some(it) = self.active.get_mut(&id) else { return };
        it.drain(cause, now);
        let report = it.report.clone();
        self.record(report);
    }

    fn release_all(&mut self, now: Timestamp) {
        self.is_stopping = true;
        let keys: Vec<FlowKey> = self.by_key.keys().copied().collect();
        for key in keys {
            self.end(&key, EndCause::Stop, now);
        }
    }

    fn redirected(&mut self, id: RedirectionId, now: Timestamp) {
        let queues = self.queues;
        let Some(it) = self.active.get_mut(&id).filter(|it| it.report.phase == Phase::Requested) else {
            return;
        };
        it.begin(now, queues);
        self.counters.redirected += 1;
        let report = it.report.clone();
        let cause = report.end_cause;
        self.record(report);
        if let Some(cause) = cause {
            self.drain(id, cause, now);
        }
    }

    fn failed(&mut self, id: RedirectionId, error: String, now: Timestamp) {
        let Some(it) = self.active.get_mut(&id).filter(|it| it.report.phase == Phase::Requested) else {
            return;
        };
        if self.is_stopping && !it.is_uncertain {
            return self.finish(id, Phase::Released, now);
        }
        self.counters.errors += 1;
        it.attempts += 1;
        let is_last = it.attempts >= MAX_ATTEMPTS || it.report.end_cause.is_some();
        it.failure = (is_last && it.is_uncertain).then(|| error.clone());
        it.report.error = Some(error);
        match (is_last, it.is_uncertain) {
            (true, true) => return self.release_in_doubt(id, now),
            (true, false) => return self.fail(id, now),
            (false, _) => {}
        }
        (it.report.phase, it.since) = (Phase::Waiting, now + retry_after(it.attempts));
        it.report.retry_at = Some(it.since);
        if it.attempts == 1 {
            let report = it.report.clone();
            self.record(report);
        }
    }

    /// The flow may be redirected.
    fn unknown(&mut self, id: RedirectionId, error: String, now: Timestamp) {
        let Some(it) = self.active.get_mut(&id).filter(|it| it.report.phase == Phase::Requested) else {
            return;
        };
        it.is_uncertain = true;
        self.failed(id, error, now);
    }

    /// Releases a flow that may be redirected. Its redirection ends after that.
    fn release_in_doubt(&mut self, id: RedirectionId, now: Timestamp) {
        let Some(it) = self.active.get_mut(&id) else { return };
        (it.report.phase, it.report.retry_at) = (Phase::Releasing, None);
        (it.release_at, it.attempts) = (Some(now), 0);
        let report = it.report.clone();
        self.record(report);
        self.release(id, None, now);
    }

    /// Ends a redirection that has failed. The next one of the flow waits, unless the flow is to be released or fails too often.
    fn fail(&mut self, id: RedirectionId, now: Timestamp) {
        let is_stopping = self.is_stopping;
        let Some(it) = self.active.get_mut(&id) else { return };
        let lasted = it.report.redirected.map_or(Nanos::ZERO, |since| now.since(since));
        let tries = if lasted >= STEADY { 1 } else { it.report.try_number };
        let is_left_alone = tries >= MAX_TRIES && !it.is_pinned();
        let renews = !is_left_alone && it.report.end_cause.is_none() && !is_stopping;
        let retry_at = renews.then(|| now + renew_after(tries));
        it.report.retry_at = retry_at;
        let RedirectionReport { key, reason, error, .. } = it.report.clone();
        self.finish(id, Phase::Failed, now);
        let Some(retry_at) = retry_at else { return };
        let id = self.next_id();
        let report = RedirectionReport {
            try_number: tries.saturating_add(1),
            retry_at: Some(retry_at),
            error,
            ..RedirectionReport::new(id, key, reason, now)
        };
        self.active.insert(id, Redirection::new(report, retry_at));
        self.by_key.insert(key, id);
    }

    fn released(&mut self, id: RedirectionId, now: Timestamp) {
        let Some(it) = self.active.get_mut(&id).filter(|it| it.report.phase == Phase::Releasing) else {
            return;
        };
        if let Some(failure) = it.failure.take() {
            it.report.error = Some(failure);
            if it.again.take().is_some() {
                it.report.end_cause = None;
            }
            return self.fail(id, now);
        }
        let again = it.again.clone();
        let key = it.report.key;
        self.finish(id, Phase::Released, now);
        if let Some(reason) = again.filter(|_| !self.is_stopping) {
            self.start(key, reason, now);
        }
    }

    fn still_sending(&mut self, id: RedirectionId, now: Timestamp) {
        let Some(it) = self.active.get_mut(&id).filter(|it| it.report.phase == Phase::Releasing) else {
            return;
        };
        self.counters.put_off += 1;
        let is_again = it.again.take().is_some();
        let cause = it.report.end_cause.unwrap_or(EndCause::Quiet);
        match is_again && !self.is_stopping {
            true => it.resume(now),
            false => it.drain(cause, now),
        }
    }

    fn release_failed(&mut self, id: RedirectionId, error: String, now: Timestamp) {
        let Some(it) = self.active.get_mut(&id).filter(|it| it.report.phase == Phase::Releasing) else {
            return;
        };
        self.counters.errors += 1;
        it.attempts = it.attempts.saturating_add(1);
        it.report.error = Some(format!("cannot release the flow: {error}"));
        if it.attempts == 1 {
            let report = it.report.clone();
            self.record(report);
        }
        let Some(it) = self.active.get_mut(&id) else { return };
        let retry_at = now + retry_after(it.attempts);
        // Without counters nobody knows whether the flow still is redirected. So it is not taken for redirected again.
        if !self.options.reads_counters || it.report.redirected.is_none() {
            it.release_at = Some(retry_at);
            return;
        }
        if it.again.take().is_some() && !self.is_stopping {
            return it.resume(now);
        }
        let cause = it.report.end_cause.unwrap_or(EndCause::Quiet);
        it.drain(cause, now);
        // The next attempt.
        it.since = retry_at;
    }

    /// Ends a redirection.
    fn finish(&mut self, id: RedirectionId, phase: Phase, now: Timestamp) {
        let Some(mut it) = self.active.remove(&id) else { return };
        self.by_key.remove(&it.report.key);
        (it.report.phase, it.report.ended) = (phase, Some(now));
        match phase {
            Phase::Failed => self.counters.failed += 1,
            _ if it.report.redirected.is_some() => {
                self.counters.released += 1;
                self.counters.forced += u64::from(it.report.is_forced);
            }
            _ => self.counters.cancelled += 1,
        }
        let FlowCounters { packets, bytes, .. } = it.report.counters.unwrap_or_default();
        self.counters.packets += packets;
        self.counters.bytes += bytes.0;
        self.record(it.report.clone());
        self.remember(it.report);
    }

    fn remember(&mut self, report: RedirectionReport) {
        if self.ended.len() >= self.options.history.max(1) {
            self.ended.pop_front();
        }
        self.ended.push_back(report);
    }

    /// Records a change of phase. If nobody takes them, the oldest are dropped.
    fn record(&mut self, report: RedirectionReport) {
        if self.changes.len() >= self.options.history.max(1) + self.options.max_redirections {
            self.changes.pop_front();
        }
        self.changes.push_back(report);
    }

    fn read(&mut self, reading: Reading, now: Timestamp) {
        let Reading { scavenger, primary, flows } = reading;
        self.queues = Some((scavenger, primary));
        for (key, flow) in flows {
            let Some(id) = self.by_key.get(&key).copied() else { continue };
            let Some(it) = self.active.get_mut(&id).filter(|it| it.is_in_force()) else { continue };
            let Some(flow) = flow else {
                self.is_missing(id, now);
                continue;
            };
            let before = it.report.phase;
            let result = it.read(now, flow, &scavenger, &primary, &self.options);
            if before == Phase::Redirected && it.report.phase == Phase::Confirmed {
                let report = it.report.clone();
                self.counters.confirmed += 1;
                self.record(report);
            }
            match result {
                ReadResult::Nothing => {}
                ReadResult::Drained(packets) => self.release(id, Some(packets), now),
                ReadResult::NoEffect(missing) => self.has_no_effect(id, missing, now),
            }
        }
    }

    /// The flow sends, and the scavenger queue does not receive it: the redirection has failed, and is undone.
    fn has_no_effect(&mut self, id: RedirectionId, missing: Missing, now: Timestamp) {
        let ScavengerName { name, advice } = &self.options.scavenger;
        let Missing { packets, received, time } = missing;
        let Some(it) = self.active.get_mut(&id) else { return };
        let what = format!("{packets} packets of the flow were redirected in {time}");
        let error = match received {
            0 => format!("the {name} receives nothing: {what}, and its counters did not change. {advice}"),
            _ => format!(
                "the {name} does not receive the flow: {what}, and it received {received} of all flows. {advice}"
            ),
        };
        it.report.error = Some(error.trim_end().to_owned());
        self.counters.ineffective += 1;
        self.commands.push_back(Command::Release { id, key: it.report.key, if_packets: None });
        self.fail(id, now);
    }

    /// The actuator has lost a redirection for good.
    fn lost(&mut self, id: RedirectionId, error: String, now: Timestamp) {
        let Some(it) = self.active.get_mut(&id) else { return };
        it.report.error = Some(error);
        self.counters.errors += 1;
        self.finish(id, Phase::Failed, now);
    }

    /// Someone else has removed the entry of a redirected flow.
    fn is_missing(&mut self, id: RedirectionId, now: Timestamp) {
        let Some(it) = self.active.get_mut(&id) else { return };
        match it.report.phase {
            Phase::Redirected | Phase::Confirmed => {
                self.counters.restored += 1;
                self.commands.push_back(Command::Restore(id, it.report.key));
                it.refreshed = now;
            }
            Phase::Draining => self.finish(id, Phase::Released, now),
            _ => {}
        }
    }

    /// Requests a release, if the limit of changes allows it and no attempt has failed just now.
    fn release(&mut self, id: RedirectionId, if_packets: Option<u64>, now: Timestamp) {
        let is_stopping = self.is_stopping;
        let Some(it) = self.active.get_mut(&id) else { return };
        if it.attempts > 0 && now < it.since {
            return;
        }
        if !is_stopping && !self.limiter.take(now) {
            self.counters.limited += 1;
            return;
        }
        let is_repeated = it.report.phase == Phase::Releasing;
        (it.report.phase, it.since, it.release_at) = (Phase::Releasing, now, None);
        it.report.is_forced = self.options.reads_counters && if_packets.is_none();
        self.commands.push_back(Command::Release { id, key: it.report.key, if_packets });
        let report = it.report.clone();
        if !is_repeated {
            self.record(report);
        }
    }

    /// Does what is due at `now`, for the next part of the redirections.
    fn tick(&mut self, now: Timestamp) {
        let count = MIN_PER_TICK.max(self.active.len().div_ceil(TICKS));
        let (is_stopping, options) = (self.is_stopping, &self.options);
        let (mut refreshed, mut all_due) = (Vec::new(), Vec::new());
        self.tick_turn.visit(&mut self.active, count, |id, it| {
            if it.refresh_is_due(now, options) {
                it.refreshed = now;
                refreshed.push((id, it.report.key));
            }
            all_due.extend(it.due(now, is_stopping, options).map(|due| (id, due)));
        });
        if !refreshed.is_empty() {
            self.commands.push_back(Command::Refresh(refreshed));
        }
        while !is_stopping
            && self.active.len() < self.options.max_redirections
            && let Some((key, reason)) = self.waiting.pop()
        {
            self.start(key, reason, now);
        }
        for (id, due) in all_due {
            match due {
                Due::Request => self.request(id, now),
                Due::NoAnswer => self.unknown(id, "no answer".to_owned(), now),
                Due::Drain(cause) => self.drain(id, cause, now),
                Due::Release => self.release(id, None, now),
                Due::NoReleaseAnswer => self.release_failed(id, "no answer".to_owned(), now),
            }
        }
    }
}

/// Returns the time before the next redirection of a flow, after so many that have failed.
fn renew_after(tries: u32) -> Nanos {
    Nanos(RENEW_AFTER.0 << tries.saturating_sub(1).min(MAX_TRIES)).min(MAX_RENEWAL)
}

/// Returns the time before the next attempt.
fn retry_after(attempts: u32) -> Nanos {
    Nanos(RETRY_AFTER.0 << attempts.saturating_sub(1).min(6)).min(MAX_RETRY)
}

#[cfg(test)]
mod tests;
