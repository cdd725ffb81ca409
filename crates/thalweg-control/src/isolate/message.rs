//! Inputs and commands of isolation.

use std::sync::Arc;

use thalweg_wire::{BitRate, Bytes, FlowKey, Nanos, Timestamp};

/// The number of a redirection, unique within a run, counted from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RedirectionId(pub u64);

/// Why a flow is redirected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reason {
    /// A collector found that it is a cheetah flow.
    Cheetah {
        /// The collector.
        collector: Arc<str>,
        /// The flight rate.
        rate: BitRate,
        /// The bytes of the flight that exceeded the threshold.
        bytes: Bytes,
        /// The time of the packet by which it was found, by the clock of the collector's packets.
        detected: Timestamp,
    },
    /// A user pinned it.
    Pinned,
    /// An earlier run redirected it, and it still was at the start.
    Adopted,
}

/// An input of isolation.
#[derive(Clone, Debug)]
pub enum Input {
    /// Time has passed. Send one at least every 100 ms.
    Tick,
    /// A flow became a cheetah flow, or a user pins it.
    Began {
        /// The direction of the flow.
        key: FlowKey,
        /// The reason.
        reason: Reason,
    },
    /// A cheetah flow has ended.
    Ended(FlowKey),
    /// A user releases a flow.
    Release(FlowKey),
    /// The daemon stops: release all flows.
    ReleaseAll,
    /// A flow is redirected from now on.
    Redirected(RedirectionId),
    /// A flow could not be redirected; nothing has changed.
    Failed(RedirectionId, String),
    /// Nobody knows whether a flow is redirected: the actuator was asked, and did not say. The reason.
    Unknown(RedirectionId, String),
    /// A flow is no longer redirected.
    Released(RedirectionId),
    /// The flow has sent since the [reading](Input::Reading) on which its release was based. It is still redirected.
    StillSending(RedirectionId),
    /// A flow could not be released. It may still be redirected.
    ReleaseFailed(RedirectionId, String),
    /// Counters of the queues and of redirected flows.
    Reading(Reading),
    /// A flow is no longer redirected, and the actuator cannot redirect it again.
    Lost(RedirectionId, String),
}

/// A command of isolation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// Redirect a flow. Answer with [`Input::Redirected`], [`Input::Failed`] or [`Input::Unknown`].
    Redirect(RedirectionId, FlowKey),
    /// Extend the expiry of these redirections. No answer.
    Refresh(Vec<(RedirectionId, FlowKey)>),
    /// Redirect a flow again, which someone else has released. No answer.
    Restore(RedirectionId, FlowKey),
    /// Release a flow. Answer with [`Input::Released`], [`Input::StillSending`] or [`Input::ReleaseFailed`].
    Release {
        /// The redirection.
        id: RedirectionId,
        /// The flow.
        key: FlowKey,
        /// Release only if exactly this many of its packets were redirected: all of them have left the scavenger queue.
        /// `None` to release in any case.
        if_packets: Option<u64>,
    },
}

impl Command {
    /// Whether an actuator answers this command, at once or later.
    pub fn expects_answer(&self) -> bool {
        matches!(self, Command::Redirect(..) | Command::Release { .. })
    }
}

impl Input {
    /// Whether this answers a command.
    pub fn is_answer(&self) -> bool {
        let is_of_redirect = matches!(self, Input::Redirected(_) | Input::Failed(..) | Input::Unknown(..));
        is_of_redirect
            || matches!(self, Input::Released(_) | Input::StillSending(_) | Input::ReleaseFailed(..))
    }
}

/// Counters of the queues, and of redirected flows. Flows are read before queues.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reading {
    /// The queue of redirected flows.
    pub scavenger: QueueReading,
    /// The queue of all others.
    pub primary: QueueReading,
    /// The flows that were read, in any order; `None` for those that are no longer redirected.
    pub flows: Vec<(FlowKey, Option<FlowCounters>)>,
}

/// Counters of a queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueReading {
    /// Packets that left the queue.
    pub sent_packets: u64,
    /// Bytes that left the queue.
    pub sent_bytes: u64,
    /// Packets dropped.
    pub dropped_packets: u64,
    /// Bytes in the queue; `None` if the actuator cannot read that.
    pub backlog: Option<Bytes>,
}

/// Packets of a flow that were redirected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlowCounters {
    /// Packets.
    pub packets: u64,
    /// Bytes, link layer included.
    pub bytes: Bytes,
    /// When the first of them entered the scavenger queue; `None` before, and if the actuator does not know.
    pub first: Option<Timestamp>,
}

/// The scavenger queue in errors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScavengerName {
    /// Such as `scavenger queue 1 of port eth2`.
    pub name: String,
    /// What to check if it receives nothing: a sentence or a question.
    pub advice: String,
}

impl Default for ScavengerName {
    fn default() -> ScavengerName {
        ScavengerName { name: "scavenger queue".to_owned(), advice: String::new() }
    }
}

/// Options of isolation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IsolationOptions {
    /// Flows redirected at the same time. Default 1,024.
    pub max_redirections: usize,
    /// Redirections and releases per second; as many at once after a pause. Default 100.
    pub changes_per_second: u32,
    /// A redirected flow without packets for this long is released. Default 2 s.
    pub quiet: Nanos,
    /// Interval at which the expiry of a redirection is extended. Default 1 s.
    pub refresh: Nanos,
    /// A redirection has failed if its flow sends for this long and the scavenger queue does not receive it. Default 5 s.
    pub confirm_timeout: Nanos,
    /// With actuators that cannot read the backlog: a flow that has sent nothing for this long has no packets in the scavenger
    /// queue. Default 2 s.
    pub drain_time: Nanos,
    /// The scavenger queue, in errors.
    pub scavenger: ScavengerName,
    /// A flow whose packets have not left the scavenger queue for this long is released all the same. Default 30 s.
    pub release_timeout: Nanos,
    /// With actuators that count no packets: a redirection ends after this time. Default 1 h.
    pub max_time: Nanos,
    /// Whether the actuator reads counters.
    pub reads_counters: bool,
    /// Whether to record what would be redirected, and redirect nothing. Default no.
    pub dry_run: bool,
    /// Flows that are never redirected.
    pub exclusions: super::exclusions::Exclusions,
    /// Ended redirections to remember. Default 1,000.
    pub history: usize,
}

impl Default for IsolationOptions {
    fn default() -> IsolationOptions {
        IsolationOptions {
            max_redirections: 1_024,
            changes_per_second: 100,
            quiet: Nanos::from_secs(2),
            refresh: Nanos::from_secs(1),
            confirm_timeout: Nanos::from_secs(5),
            drain_time: Nanos::from_secs(2),
            scavenger: ScavengerName::default(),
            release_timeout: Nanos::from_secs(30),
            max_time: Nanos::from_secs(3_600),
            reads_counters: true,
            dry_run: false,
            exclusions: super::exclusions::Exclusions::default(),
            history: 1_000,
        }
    }
}
