//! Isolation: redirections of cheetah flows to a scavenger queue.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{FlowName, UtcTime};

/// Redirections of cheetah flows.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub struct Redirections {
    /// How flows are redirected: `tc`, `openflow`, `exec`, `webhook`, `flowspec`, `emulated` or `log`.
    pub actuator: String,
    /// Whether nothing is redirected, only recorded.
    pub dry_run: bool,
    /// What is wrong with the actuator now; null if nothing is.
    pub error: Option<String>,
    /// Active redirections, the oldest first. There may be more: see `active_count`, and ask with `after`.
    pub active: Vec<Redirection>,
    /// Number of all active redirections.
    pub active_count: u64,
    /// Redirections that have ended, the latest first.
    pub ended: Vec<Redirection>,
    /// Both queues of the link; null if the actuator reads none.
    pub queues: Option<Queues>,
    /// Counters since the daemon started.
    pub counts: RedirectionCounts,
}

/// A redirection of one direction of a flow.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub struct Redirection {
    /// Number of the redirection since the daemon started, from 1.
    pub id: u64,
    /// The direction of the flow.
    pub flow: FlowName,
    /// The same as text, for `/v1/redirections/{key}`.
    pub key: String,
    /// Why the flow is redirected.
    pub reason: RedirectionReason,
    /// The collector that found the cheetah flow; null for other reasons.
    pub found_by: Option<String>,
    /// The flight rate of the cheetah flow in bits per second; null for other reasons.
    pub rate_bps: Option<u64>,
    /// The time of the packet by which the cheetah flow was found, by the clock of the collector's packets; null for other reasons.
    pub detected: Option<UtcTime>,
    /// The phase.
    pub phase: RedirectionPhase,
    /// When it was requested. These times are of the machine's clock; with `[emulate]`, they are emulated time.
    pub requested: UtcTime,
    /// When the actuator had redirected the flow; null before that.
    pub redirected: Option<UtcTime>,
    /// When its first packet entered the scavenger queue; null before that, and for actuators that do not know.
    pub first_packet: Option<UtcTime>,
    /// When counters of the flow and of the queue confirmed it; null before that, and for actuators that read none.
    pub confirmed: Option<UtcTime>,
    /// When it ended; null while it is active.
    pub ended: Option<UtcTime>,
    /// Why it ends; null before that.
    pub cause: Option<RedirectionCause>,
    /// Whether the flow was released although its packets may not have left the scavenger queue.
    pub forced: bool,
    /// Redirected packets; null if the actuator counts none.
    pub packets: Option<u64>,
    /// Redirected bytes, link layer included; null if the actuator counts none.
    pub bytes: Option<u64>,
    /// Bytes in the primary queue when the flow was redirected; null if unknown.
    pub primary_backlog_before: Option<u64>,
    /// Bytes in the primary queue while the flow was redirected and sent: the mean of all readings, up to ten per second, before which
    /// the flow had sent. Null if unknown.
    pub primary_backlog_after: Option<u64>,
    /// The last error of the actuator, at first that of the flow's previous redirection if it has failed; null if there was none.
    pub error: Option<String>,
    /// 1, and one more after each redirection of the flow in a row that has failed; at most 8.
    pub try_number: u32,
    /// If it waits after a failure: when it is requested again. If it has failed: when the next redirection of the flow is requested,
    /// unless the flow ends before. Otherwise null.
    pub retry_at: Option<UtcTime>,
}

/// Why a flow is redirected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RedirectionReason {
    /// A collector found that it is a cheetah flow.
    Cheetah,
    /// A user redirects it.
    Pinned,
    /// An earlier run of the daemon redirected it, and it still was at the start.
    Adopted,
}

/// The phase of a redirection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RedirectionPhase {
    /// It waits for the limit of changes per second, or for another attempt after a failure.
    Waiting,
    /// The actuator has been asked to redirect the flow.
    Requested,
    /// The actuator has redirected the flow.
    Redirected,
    /// Counters of the flow and of the scavenger queue confirm it.
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RedirectionCause {
    /// The collector reports that the flow has ended.
    FlowEnded,
    /// The flow sent nothing for the time `quiet`.
    Quiet,
    /// A user released it.
    User,
    /// It lasted for `max_time`.
    MaxTime,
    /// The daemon stops.
    Stop,
}

/// Both queues of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub struct Queues {
    /// The queue of all other packets.
    pub primary: QueueState,
    /// The queue of redirected flows.
    pub scavenger: QueueState,
}

/// A queue of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub struct QueueState {
    /// Packets that left the queue.
    pub sent_packets: u64,
    /// Bytes that left the queue.
    pub sent_bytes: u64,
    /// Packets dropped because it was full.
    pub dropped_packets: u64,
    /// Bytes in the queue; null if the actuator cannot read that.
    pub backlog_bytes: Option<u64>,
}

/// Counters of isolation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub struct RedirectionCounts {
    /// Cheetah flows and pins.
    pub requests: u64,
    /// Requests for flows that were redirected already.
    pub repeated: u64,
    /// Requests that a prefix or port excludes.
    pub excluded: u64,
    /// Requests that were refused because of the maximum number of redirections.
    pub refused: u64,
    /// Requests that were only recorded, on a dry run.
    pub withheld: u64,
    /// Cheetah flows that were lost because the queue from the collectors was full.
    pub lost: u64,
    /// Flows redirected.
    pub redirected: u64,
    /// Redirections confirmed by counters.
    pub confirmed: u64,
    /// Flows released.
    pub released: u64,
    /// Flows released although packets may have been queued.
    pub forced: u64,
    /// Redirections that ended before the flow was redirected.
    pub cancelled: u64,
    /// Redirections that failed.
    pub failed: u64,
    /// Redirections that failed because the scavenger queue did not receive the flow.
    pub ineffective: u64,
    /// Redirections that were requested because an earlier one of the same flow had failed.
    pub renewed: u64,
    /// Attempts of the actuator that failed.
    pub errors: u64,
    /// Releases that were put off because the flow had sent meanwhile.
    pub put_off: u64,
    /// Redirections that others removed and that were restored.
    pub restored: u64,
    /// Queues, classes and programs that others changed, and rules that a router dropped with its BGP session, and that were set again.
    pub repairs: u64,
    /// Packets of redirections that had expired. With `tc` also those while no daemon ran, since the queues were set up.
    pub expired_packets: u64,
}
