//! One redirection of one flow: its state, its effect, and the rule by which it ends.

use thalweg_wire::{Bytes, FlowKey, Nanos, Timestamp};

use super::message::{FlowCounters, IsolationOptions, QueueReading, Reason, RedirectionId};

/// Time after which a command without an answer counts as failed.
const ANSWER_TIMEOUT: Nanos = Nanos::from_secs(120);

/// Between readings that are further apart than this, nobody knows whether the flow sent.
const READING_GAP: Nanos = Nanos::from_secs(2);

/// The phase of a redirection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Phase {
    /// It waits for the limit of changes per second, or for another attempt after a failure.
    Waiting,
    /// The actuator has been asked to redirect the flow.
    Requested,
    /// The actuator has redirected the flow.
    Redirected,
    /// Packets of the flow were counted, and the scavenger queue has grown or sent packets since.
    Confirmed,
    /// The flow is to be released once its packets have left the scavenger queue.
    Draining,
    /// The actuator has been asked to release the flow, or is asked again after a failure.
    Releasing,
    /// The flow is no longer redirected.
    Released,
    /// The flow could not be redirected.
    Failed,
    /// The flow was not redirected, because of a dry run.
    Withheld,
}

/// Why a redirection ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EndCause {
    /// The detector reports that the flow has ended.
    FlowEnded,
    /// The flow sent nothing for a while.
    Quiet,
    /// A user released it.
    User,
    /// It was redirected for the maximum time.
    MaxTime,
    /// The daemon stops.
    Stop,
}

/// A redirection, for users, logs and subscribers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RedirectionReport {
    /// The number.
    pub id: RedirectionId,
    /// The direction of the flow.
    pub key: FlowKey,
    /// Why the flow is redirected.
    pub reason: Reason,
    /// The phase.
    pub phase: Phase,
    /// When it was requested.
    pub requested: Timestamp,
    /// When the actuator had redirected the flow.
    pub redirected: Option<Timestamp>,
    /// When counters confirmed it.
    pub confirmed: Option<Timestamp>,
    /// When it ended.
    pub ended: Option<Timestamp>,
    /// Why it ends.
    pub end_cause: Option<EndCause>,
    /// Whether it was released although its packets may not have left the scavenger queue.
    pub is_forced: bool,
    /// The redirected packets and bytes; `None` if the actuator counts none.
    pub counters: Option<FlowCounters>,
    /// Bytes in the primary queue when the flow was redirected.
    pub primary_backlog_before: Option<Bytes>,
    /// Mean of the bytes in the primary queue, over the readings before which the redirected flow had sent.
    pub primary_backlog_after: Option<Bytes>,
    /// The last error of the actuator; at first that of the flow's previous redirection, if it has failed.
    pub error: Option<String>,
    /// 1, and one more after each redirection of the flow in a row that has failed.
    pub try_number: u32,
    /// Waiting: when it is requested again. Failed: when the next redirection of the flow is requested. `None` if neither is planned.
    pub retry_at: Option<Timestamp>,
}

/// A moment whose packets leave the scavenger queue, which is first in, first out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Mark {
    /// Packets of the flow that were redirected until then.
    packets: u64,
    /// Bytes that the queue had sent.
    sent_bytes: u64,
    /// Bytes that the queue will have sent when all packets of that moment have left.
    left_at: u64,
}

/// An active redirection.
#[derive(Clone, Debug)]
pub(super) struct Redirection {
    pub(super) report: RedirectionReport,
    /// Waiting: the time of the next attempt. Requested, releasing: the time of the request. Draining: its start.
    pub(super) since: Timestamp,
    /// Failed attempts in a row.
    pub(super) attempts: u32,
    /// When its expiry was extended.
    pub(super) refreshed: Timestamp,
    /// The last reading with new packets; at first when it was redirected.
    pub(super) active: Timestamp,
    /// The last reading; at first when it was redirected.
    read: Timestamp,
    /// Start of the present attempt to release it.
    pub(super) drains_since: Option<Timestamp>,
    /// The flow became a cheetah again while it was being released.
    pub(super) again: Option<Reason>,
    /// Whether a request had an unknown result, so that the flow may be redirected.
    pub(super) is_uncertain: bool,
    /// Why the redirection has failed. It ends once the flow, which may be redirected, is released.
    pub(super) failure: Option<String>,
    /// Releasing: the time of the next request. `None` while the actuator has one.
    pub(super) release_at: Option<Timestamp>,
    /// The scavenger queue when the flow was redirected, or at the first reading after that.
    scavenger_before: Option<QueueReading>,
    /// The scavenger queue at the last reading.
    scavenger: Option<QueueReading>,
    window: Option<Window>,
    mark: Option<Mark>,
    primary: PrimaryBacklog,
}

/// The backlog of the primary queue while the flow is redirected and sends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct PrimaryBacklog {
    bytes: u64,
    readings: u64,
}

/// The last reading at which the scavenger queue had received the packets of the flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Window {
    since: Timestamp,
    /// Packets of the flow that had been redirected.
    packets: u64,
    /// Packets that the queue had sent or dropped.
    received: u64,
}

/// Packets of the flow that the scavenger queue did not receive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Missing {
    /// Packets of the flow that were redirected.
    pub(super) packets: u64,
    /// Packets that the queue received in the same time, of all flows.
    pub(super) received: u64,
    pub(super) time: Nanos,
}

/// A queue that receives fewer than one in this many packets of a flow does not receive the flow. Not one in one: packets may wait
/// in a queue whose backlog is unknown.
const MAX_PACKETS_PER_RECEIVED: u64 = 8;

/// Time after which counters of a silent flow and of the queue agree. Switches may update those of flows a second late.
const SETTLE_TIME: Nanos = Nanos::from_secs(2);

/// The result of a reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReadResult {
    /// The redirection goes on.
    Nothing,
    /// The flow is to be released, and this many packets were redirected, all of which have left the scavenger queue.
    Drained(u64),
    /// For the timeout or longer, the scavenger queue has not received the flow.
    NoEffect(Missing),
}

/// What is due for a redirection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Due {
    /// Another attempt to redirect the flow.
    Request,
    /// The actuator has not answered the request to redirect the flow.
    NoAnswer,
    /// The flow is to be released.
    Drain(EndCause),
    /// The flow is to be released in any case.
    Release,
    /// The actuator has not answered the request to release the flow.
    NoReleaseAnswer,
}

impl Phase {
    /// All phases and their names in JSON, metrics and logs.
    pub const ALL: [(Phase, &'static str); 9] = [
        (Phase::Waiting, "waiting"),
        (Phase::Requested, "requested"),
        (Phase::Redirected, "redirected"),
        (Phase::Confirmed, "confirmed"),
        (Phase::Draining, "draining"),
        (Phase::Releasing, "releasing"),
        (Phase::Released, "released"),
        (Phase::Failed, "failed"),
        (Phase::Withheld, "withheld"),
    ];

    /// The name in JSON, metrics and logs.
    pub fn name(self) -> &'static str {
        Phase::ALL[self as usize].1
    }

    /// Whether the actuator has redirected the flow, as far as known.
    pub fn is_in_force(self) -> bool {
        matches!(self, Phase::Redirected | Phase::Confirmed | Phase::Draining | Phase::Releasing)
    }
}

impl EndCause {
    /// All causes and their names in JSON, metrics and logs.
    pub const ALL: [(EndCause, &'static str); 5] = [
        (EndCause::FlowEnded, "flow_ended"),
        (EndCause::Quiet, "quiet"),
        (EndCause::User, "user"),
        (EndCause::MaxTime, "max_time"),
        (EndCause::Stop, "stop"),
    ];

    /// The name in JSON, metrics and logs.
    pub fn name(self) -> &'static str {
        EndCause::ALL[self as usize].1
    }
}

impl RedirectionReport {
    /// Creates the report of a new redirection.
    pub(super) fn new(id: RedirectionId, key: FlowKey, reason: Reason, now: Timestamp) -> RedirectionReport {
        RedirectionReport {
            id,
            key,
            reason,
            phase: Phase::Waiting,
            requested: now,
            redirected: None,
            confirmed: None,
            ended: None,
            end_cause: None,
            is_forced: false,
            counters: None,
            primary_backlog_before: None,
            primary_backlog_after: None,
            error: None,
            try_number: 1,
            retry_at: None,
        }
    }
}

impl Redirection {
    pub(super) fn new(report: RedirectionReport, now: Timestamp) -> Redirection {
        Redirection {
            report,
            since: now,
            attempts: 0,
            refreshed: now,
            active: now,
            read: now,
            drains_since: None,
            again: None,
            is_uncertain: false,
            failure: None,
            release_at: None,
            scavenger_before: None,
            scavenger: None,
            window: None,
            mark: None,
            primary: PrimaryBacklog::default(),
        }
    }

    pub(super) fn is_pinned(&self) -> bool {
        self.report.reason == Reason::Pinned
    }

    /// Whether the actuator has redirected the flow, as far as known.
    pub(super) fn is_in_force(&self) -> bool {
        self.report.phase.is_in_force()
    }

    /// Whether the expiry is to be extended. Not while the flow is released: the command would redirect it again.
    pub(super) fn refresh_is_due(&self, now: Timestamp, options: &IsolationOptions) -> bool {
        self.is_in_force()
            && self.report.phase != Phase::Releasing
            && now.since(self.refreshed) >= options.refresh
    }

    /// Returns what is due at `now`, if anything.
    pub(super) fn due(&self, now: Timestamp, is_stopping: bool, options: &IsolationOptions) -> Option<Due> {
        let has_no_answer = now.since(self.since) >= ANSWER_TIMEOUT;
        match self.report.phase {
            Phase::Waiting => (now >= self.since).then_some(Due::Request),
            Phase::Requested => has_no_answer.then_some(Due::NoAnswer),
            Phase::Redirected | Phase::Confirmed if self.is_pinned() => None,
            // Without a reading, nobody knows whether the flow sends.
            Phase::Redirected | Phase::Confirmed if options.reads_counters => {
                (self.read.since(self.active) >= options.quiet).then_some(Due::Drain(EndCause::Quiet))
            }
            Phase::Redirected | Phase::Confirmed => {
                let age = now.since(self.report.redirected.unwrap_or(now));
                (age >= options.max_time).then_some(Due::Drain(EndCause::MaxTime))
            }
            Phase::Draining => {
                let time = self.draining_for(now);
                let is_due = match options.reads_counters {
                    true => time >= options.release_timeout,
                    false => time >= options.quiet || is_stopping,
                };
                is_due.then_some(Due::Release)
            }
            Phase::Releasing => match self.release_at {
                Some(at) => (now >= at).then_some(Due::Release),
                None => has_no_answer.then_some(Due::NoReleaseAnswer),
            },
            Phase::Released | Phase::Failed | Phase::Withheld => None,
        }
    }

    /// The actuator has redirected the flow. `queues` are the last readings of the scavenger and the primary queue.
    pub(super) fn begin(&mut self, now: Timestamp, queues: Option<(QueueReading, QueueReading)>) {
        self.report.phase = Phase::Redirected;
        self.report.redirected = Some(now);
        self.report.error = None;
        (self.refreshed, self.active, self.read, self.attempts) = (now, now, now, 0);
        self.is_uncertain = false;
        if let Some((scavenger, primary)) = queues {
            (self.scavenger_before, self.scavenger) = (Some(scavenger), Some(scavenger));
            self.report.primary_backlog_before = primary.backlog;
        }
    }

    /// The flow is to be released once its packets have left the scavenger queue.
    pub(super) fn drain(&mut self, cause: EndCause, now: Timestamp) {
        self.report.phase = Phase::Draining;
        self.report.end_cause = Some(cause);
        (self.since, self.mark) = (now, None);
        self.drains_since.get_or_insert(now);
    }

    /// The flow stays redirected after all.
    pub(super) fn resume(&mut self, now: Timestamp) {
        self.report.phase = match self.report.confirmed {
            Some(_) => Phase::Confirmed,
            None => Phase::Redirected,
        };
        (self.report.end_cause, self.drains_since, self.mark) = (None, None, None);
        (self.active, self.attempts) = (now, 0);
    }

    /// Takes a reading of the flow and the queues.
    pub(super) fn read(
        &mut self,
        now: Timestamp,
        flow: FlowCounters,
        scavenger: &QueueReading,
        primary: &QueueReading,
        options: &IsolationOptions,
    ) -> ReadResult {
        let (before, was_active) = (self.report.counters, self.active);
        let gap = now.since(self.read);
        self.read = now;
        if before.is_none_or(|before| before.packets != flow.packets) {
            self.active = now;
            if (self.report.phase, self.report.end_cause) == (Phase::Draining, Some(EndCause::Quiet)) {
                self.resume(now);
            }
        } else if gap > READING_GAP {
            self.active = (self.active + gap).min(now);
        }
        self.report.counters = Some(flow);
        // An adopted flow has been counted before.
        let uncounted = if self.report.reason == Reason::Adopted { flow.packets } else { 0 };
        let packets_before = before.map_or(uncounted, |before| before.packets);
        // The queue of a silent flow says nothing about its effect.
        if let Some(backlog) = primary.backlog.filter(|_| flow.packets > packets_before) {
            self.primary.bytes = self.primary.bytes.saturating_add(backlog.0);
            self.primary.readings += 1;
            self.report.primary_backlog_after = Some(Bytes(self.primary.bytes / self.primary.readings));
        }
        let missing = self.missing(now, packets_before, flow.packets, now.since(was_active), scavenger);
        let scavenger_before = self.scavenger_before.get_or_insert(*scavenger);
        let is_shown = flow.packets > 0 && missing.is_none() && has_grown(scavenger_before, scavenger);
        if self.report.phase == Phase::Redirected && is_shown {
            self.report.phase = Phase::Confirmed;
            self.report.confirmed = Some(now);
        }
        match (self.report.phase, missing) {
            (Phase::Draining, _) => {
                let drained = self.drained(now, flow.packets, scavenger, options.drain_time);
                drained.map_or(ReadResult::Nothing, ReadResult::Drained)
            }
            // Packets that are followed by silence say nothing: counters of flow and queue may be read at different times.
            (_, Some(missing))
                if flow.packets > packets_before && missing.time >= options.confirm_timeout =>
            {
                ReadResult::NoEffect(missing)
            }
            _ => ReadResult::Nothing,
        }
    }

    /// Returns the packets of the flow that the scavenger queue has not received, if those are too many. `idle` is the time without
    /// packets before this reading.
    fn missing(
        &mut self,
        now: Timestamp,
        packets_before: u64,
        packets: u64,
        idle: Nanos,
        queue: &QueueReading,
    ) -> Option<Missing> {
        let received = received(queue);
        let last = match self.scavenger.replace(*queue) {
            Some(before) => Window { since: now, packets: packets_before, received: self::received(&before) },
            // Nobody knows what the queue had received when the flow was redirected.
            None => Window { since: now, packets, received },
        };
        let window = *self.window.get_or_insert(last);
        let window = if idle >= SETTLE_TIME { last } else { window };
        let missing = Missing {
            packets: packets.saturating_sub(window.packets),
            received: received.saturating_sub(window.received),
            time: now.since(window.since),
        };
        let is_queued = queue.backlog.is_some_and(|backlog| backlog.0 > 0);
        // A queue that was replaced counts from zero.
        let is_replaced = received < window.received;
        let is_received = missing.received.saturating_mul(MAX_PACKETS_PER_RECEIVED) >= missing.packets;
        if is_queued || is_replaced || is_received {
            self.window = Some(Window { since: now, packets, received });
            return None;
        }
        self.window = Some(window);
        Some(missing)
    }

    /// Returns `packets` if all of them have left the queue: it was empty after they were counted, or it has sent since
    /// what it contained when the same number was counted. If its backlog is unknown, the last of them was counted at least
    /// `drain_time` ago.
    fn drained(
        &mut self,
        now: Timestamp,
        packets: u64,
        queue: &QueueReading,
        drain_time: Nanos,
    ) -> Option<u64> {
        let Some(backlog) = queue.backlog else {
            return (now.since(self.active) >= drain_time).then_some(packets);
        };
        let is_current = |mark: &Mark| mark.packets == packets && queue.sent_bytes >= mark.sent_bytes;
        let mark = match self.mark.filter(is_current) {
            Some(mark) => mark,
            None => Mark {
                packets,
                sent_bytes: queue.sent_bytes,
                left_at: queue.sent_bytes.saturating_add(backlog.0),
            },
        };
        self.mark = Some(mark);
        (backlog.0 == 0 || queue.sent_bytes >= mark.left_at).then_some(packets)
    }

    /// Time since the first attempt to release it.
    pub(super) fn draining_for(&self, now: Timestamp) -> Nanos {
        self.drains_since.map_or(Nanos::ZERO, |since| now.since(since))
    }
}

/// Returns the packets that a queue has sent or dropped.
fn received(queue: &QueueReading) -> u64 {
    queue.sent_packets.saturating_add(queue.dropped_packets)
}

/// Whether the scavenger queue has sent, dropped or queued packets since `before`. A queue that was replaced counts from zero.
fn has_grown(before: &QueueReading, now: &QueueReading) -> bool {
    now.sent_packets != before.sent_packets
        || now.dropped_packets != before.dropped_packets
        || now.backlog > before.backlog
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_in_the_order_of_the_phases() {
        assert!(Phase::ALL.iter().all(|(phase, name)| phase.name() == *name));
        assert!(EndCause::ALL.iter().all(|(cause, name)| cause.name() == *name));
    }

    fn queue(sent_bytes: u64, backlog: u64) -> QueueReading {
        QueueReading { sent_bytes, backlog: Some(Bytes(backlog)), ..QueueReading::default() }
    }

    fn draining() -> Redirection {
        let key = "tcp 10.0.0.1:1 > 10.0.0.2:2".parse().unwrap();
        let report = RedirectionReport::new(RedirectionId(1), key, Reason::Pinned, Timestamp(0));
        let mut redirection = Redirection::new(report, Timestamp(0));
        redirection.begin(Timestamp(0), None);
        redirection.drain(EndCause::User, Timestamp(0));
        redirection
    }

    #[test]
    fn a_flow_has_drained_when_the_queue_has_sent_what_it_contained() {
        let mut it = draining();
        assert_eq!(it.drained(Timestamp(0), 7, &queue(1_000, 500), Nanos::ZERO), None);
        assert_eq!(it.drained(Timestamp(0), 7, &queue(1_499, 900), Nanos::ZERO), None, "others queue more");
        assert_eq!(it.drained(Timestamp(0), 7, &queue(1_500, 900), Nanos::ZERO), Some(7));
    }

    #[test]
    fn a_new_packet_or_a_new_queue_starts_anew() {
        let mut it = draining();
        assert_eq!(it.drained(Timestamp(0), 7, &queue(1_000, 500), Nanos::ZERO), None);
        assert_eq!(
            it.drained(Timestamp(0), 8, &queue(1_500, 500), Nanos::ZERO),
            None,
            "the eighth packet is in the queue"
        );
        assert_eq!(it.drained(Timestamp(0), 8, &queue(2_000, 500), Nanos::ZERO), Some(8));
        assert_eq!(draining().drained(Timestamp(0), 9, &queue(3, 0), Nanos::ZERO), Some(9), "an empty queue");
        let mut it = draining();
        assert_eq!(it.drained(Timestamp(0), 7, &queue(1_000, 500), Nanos::ZERO), None);
        assert_eq!(it.drained(Timestamp(0), 7, &queue(10, 500), Nanos::ZERO), None, "the queue was replaced");
        assert_eq!(it.drained(Timestamp(0), 7, &queue(510, 1), Nanos::ZERO), Some(7));
    }

    #[test]
    fn the_primary_queue_counts_while_the_flow_sends() {
        let mut it = draining();
        it.resume(Timestamp(0));
        let mut read = |now, packets, primary| {
            let flow = FlowCounters { packets, bytes: Bytes(packets), first: None };
            it.read(
                Timestamp(now),
                flow,
                &queue(packets, 0),
                &queue(0, primary),
                &IsolationOptions::default(),
            );
            it.report.primary_backlog_after
        };
        assert_eq!(read(100, 0, 9_000), None, "it has not sent");
        assert_eq!(read(200, 7, 100), Some(Bytes(100)));
        assert_eq!(read(300, 8, 300), Some(Bytes(200)), "the mean");
        assert_eq!(read(400, 8, 9_000), Some(Bytes(200)), "it is silent");
    }

    #[test]
    fn with_an_unknown_backlog_a_flow_has_drained_when_it_was_silent_for_long_enough() {
        let unknown = QueueReading { sent_packets: 5, ..QueueReading::default() };
        let options = IsolationOptions { drain_time: Nanos(30), ..IsolationOptions::default() };
        let mut it = draining();
        let mut read = |now, packets| {
            let flow = FlowCounters { packets, bytes: Bytes(packets), first: None };
            it.read(Timestamp(now), flow, &unknown, &unknown, &options)
        };
        assert_eq!(read(100, 7), ReadResult::Nothing);
        assert_eq!(read(120, 8), ReadResult::Nothing);
        assert_eq!(read(149, 8), ReadResult::Nothing, "the eighth packet may be queued");
        assert_eq!(read(150, 8), ReadResult::Drained(8));
    }
}
