//! The controller: its state, decisions and actions.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::UtcTime;

/// The state of the controller.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct Control {
    /// The algorithm that decides: `greedy`, `first_fit` or `static`.
    pub decider: String,
    /// How reroutes are carried out: `emulated`, `arp`, `openflow` or `log`.
    pub actuator: String,
    /// The controller's clock, in packet time.
    pub time: UtcTime,
    /// Whether this daemon may change the switches: `false` if another daemon is their master.
    pub master: bool,
    /// Whether routes are installed and confirmed by the collectors. Always `false` for a standby.
    pub has_routes: bool,
    /// Whether the controller only logs its decisions.
    pub dry_run: bool,
    /// Whether the controller is frozen: it decides but does not reroute.
    pub frozen: bool,
    /// Number of trees, which is the number of addresses of each host. Tree 0 belongs to the base address.
    pub trees: u8,
    /// Pinned pairs of hosts.
    pub pins: Vec<PairTree>,
    /// Hosts that do not follow reroutes, or no longer send.
    pub unresponsive_hosts: Vec<UnresponsiveHost>,
    /// Paths that lost packets, the latest last; at most 64.
    pub broken_paths: Vec<PairTree>,
    /// Links that are down, as the ports at their ends: `leaf0:p2 - spine0:p0`.
    pub failed_links: Vec<String>,
    /// Links that are held down because they flapped.
    pub damped_links: Vec<DampedLink>,
    /// Counters since the daemon started.
    pub counts: ControlCounts,
}

/// A link that is held down because it flapped.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub struct DampedLink {
    /// The ports at its ends: `leaf0:p2 - spine0:p0`.
    pub link: String,
    /// When it comes up if it does not fail again, by the controller's clock.
    pub until: UtcTime,
}

/// A host that did not follow several reroutes in a row.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub struct UnresponsiveHost {
    /// Name of the host.
    pub host: String,
    /// How many actions failed in a row.
    pub failed_actions: u32,
}

/// A pair of hosts and the tree of its path.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub struct PairTree {
    /// The sending host.
    pub src: String,
    /// The receiving host.
    pub dst: String,
    /// Number of the tree.
    pub tree: u8,
}

/// The paths from one host to another.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub struct Paths {
    /// The sending host.
    pub src: String,
    /// The receiving host.
    pub dst: String,
    /// The tree to which the pair is pinned; null if it is not pinned.
    pub pinned_tree: Option<u8>,
    /// Number of times that the controller decided to reroute the pair and did, since it started. Pins do not count.
    pub reroutes: u64,
    /// Flows of the pair that events reported recently, and how often each was rerouted; at most 16. Empty unless the decider
    /// is `greedy`.
    pub flows: Vec<FlowMoves>,
    /// The paths by tree. Trees that do not reach the receiver are omitted.
    pub paths: Vec<TreePath>,
}

/// How often a flow was rerouted.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub struct FlowMoves {
    /// The flow: `tcp 10.0.0.1:40000 > 10.0.0.2:5201`.
    pub key: String,
    /// Number of its reroutes, at most 3. While it is 3 and the flow sends, the pair stays on its path.
    pub moves: u32,
}

/// The path to a host by one tree.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub struct TreePath {
    /// Number of the tree; 0 belongs to the base address.
    pub tree: u8,
    /// The destination MAC address that selects this tree.
    pub dst_mac: String,
    /// The output links of the switches on the path, in order.
    pub links: Vec<String>,
    /// The capacity of the slowest of these links, in bits per second.
    pub capacity_bps: u64,
}

/// Counters of the controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub struct ControlCounts {
    /// Events received from collectors.
    pub events: u64,
    /// Events lost because the controller's queue was full.
    pub lost_events: u64,
    /// Congestion events received while routes were installed.
    pub congestion_events: u64,
    /// Polls of all flows.
    pub polls: u64,
    /// Decisions to reroute a pair.
    pub rerouted: u64,
    /// Decisions to keep a pair on its path because no other is sufficiently better.
    pub kept: u64,
    /// Decisions to wait until the previous reroute takes effect.
    pub held_down: u64,
    /// Decisions to keep a pair on its path, although another is better, because one of its flows was rerouted three times.
    pub move_limited: u64,
    /// Decisions about pinned pairs, which stay on their path.
    pub pinned: u64,
    /// Reroutes that were the first, the second and the third of a flow.
    pub flow_moves: [u64; 3],
    /// Reroutes not carried out because the controller was frozen or on a dry run.
    pub withheld: u64,
    /// Reroutes not carried out because too many others were in progress.
    pub throttled: u64,
    /// Actions that the actuator refused.
    pub refused: u64,
    /// Actions started.
    pub started: u64,
    /// Actions confirmed by a packet on the new path.
    pub confirmed: u64,
    /// Actions not confirmed before their deadline.
    pub timed_out: u64,
    /// Actions superseded by another reroute of the same pair.
    pub superseded: u64,
    /// Actions reverted because the new path lost packets.
    pub reverted: u64,
    /// ARP requests repeated to keep the entries of hosts from expiring.
    pub repeated_arp_requests: u64,
    /// Switch rules that were missing, wrong or unexpected, and were repaired.
    pub repaired_rules: u64,
    /// Times that the routes were recomputed because links went down or came up.
    pub recomputed_routes: u64,
    /// Actions that moved a pair of hosts off a path over a failed link.
    pub left_failed_links: u64,
    /// Failures of links, according to switches, carriers and reports.
    pub link_failures: u64,
    /// Those of links that were held down, which changed nothing.
    pub damped_link_failures: u64,
    /// Times that a link was held down because it flapped.
    pub link_holds: u64,
}

/// The latest decisions.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct Decisions {
    /// The latest first.
    pub decisions: Vec<Decision>,
}

/// A decision about a pair of hosts.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct Decision {
    /// Packet time of the decision.
    pub time: UtcTime,
    /// The sending host.
    pub src: String,
    /// The receiving host.
    pub dst: String,
    /// What was decided.
    pub verdict: Verdict,
    /// The congested link that caused the decision, `SWITCH:pPORT:out`; null if a poll of all flows caused it.
    pub link: Option<String>,
    /// Rate of the pair's flows in bits per second.
    pub rate_bps: u64,
    /// The tree that the pair used.
    pub from_tree: u8,
    /// The tree that the pair is to use; equal to `from_tree` unless it is rerouted.
    pub tree: u8,
    /// Number of reroutes of the pair's flow that was rerouted most, this one included; 0 unless the decider is `greedy`.
    pub flow_moves: u32,
    /// All paths that were compared.
    pub alternatives: Vec<Alternative>,
}

/// What the controller decided about a pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Reroute the pair.
    Reroute,
    /// Keep the pair on its path: no other is sufficiently better.
    Keep,
    /// Wait: the previous reroute has not taken effect yet.
    HoldDown,
    /// Keep the pair on its path, although another is better: one of its flows was rerouted three times.
    MoveLimit,
    /// The pair is pinned.
    Pinned,
    /// Reroute the pair, but the controller is frozen, in a dry run or has too many pending actions.
    Withheld,
}

/// A path that was considered for a pair.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub struct Alternative {
    /// Number of the tree.
    pub tree: u8,
    /// The rate expected on this path, in bits per second.
    pub expected_rate_bps: u64,
    /// The link that limits this rate: `SWITCH:pPORT:out`.
    pub bottleneck: String,
}

/// The latest actions.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct Actions {
    /// The latest first.
    pub actions: Vec<Action>,
}

/// A reroute of one pair, from the decision to its outcome.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct Action {
    /// Number of the action since the daemon started, from 1.
    pub action: u64,
    /// The sending host.
    pub src: String,
    /// The receiving host.
    pub dst: String,
    /// The tree that the pair is to use.
    pub tree: u8,
    /// Packet time of the decision. Its clock is that of the capture or the emulation; `handled` and `started` have another.
    pub decided: UtcTime,
    /// When the controller handled the report that caused the decision, by the controller's clock; null if the action was
    /// refused.
    pub handled: Option<UtcTime>,
    /// When the request was sent to the host or the switch, by the controller's clock; null if the action was refused.
    pub started: Option<UtcTime>,
    /// When the action times out unless it is confirmed.
    pub deadline: UtcTime,
    /// The outcome.
    pub outcome: Outcome,
    /// Time from the decision to the first packet on the new path that a collector saw, in nanoseconds; null before that.
    pub decision_to_path_ns: Option<u64>,
    /// Why the action was refused; null otherwise.
    pub error: Option<String>,
}

/// The outcome of an action.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// Started, not confirmed yet.
    Started,
    /// Confirmed by a packet on the new path.
    Confirmed,
    /// Not confirmed before the deadline.
    TimedOut,
    /// Superseded by another reroute of the same pair.
    Superseded,
    /// Refused by the actuator.
    Refused,
}

/// A request to pin a pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PinRequest {
    /// Number of the tree that the pair is to use.
    pub tree: u8,
}

/// A report of the state of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LinkStateRequest {
    /// Whether the link is up.
    pub up: bool,
}

/// A request to freeze the controller or to resume it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FreezeRequest {
    /// True freezes the controller, false resumes it.
    pub frozen: bool,
}
