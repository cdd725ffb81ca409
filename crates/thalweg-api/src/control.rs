//! The controller: how it does, what it has decided, what came of that.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Moment;

/// How the controller does.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct Control {
    /// Who decides: `greedy`, `first_fit` or `static`.
    pub decider: String,
    /// How decisions are carried out: `emulated`, `arp`, `openflow` or `log`.
    pub actuator: String,
    /// The time that it goes by, that of packets.
    pub now: Moment,
    /// Whether there are routes to choose among; collectors are told of new ones first.
    pub has_routes: bool,
    /// Whether it only says what it would do.
    pub dry_run: bool,
    /// Whether it decides and does nothing, until this is taken back.
    pub frozen: bool,
    /// Addresses of a host; 0 is the base address.
    pub addresses: u8,
    /// What is pinned, and to which address.
    pub pins: Vec<Pin>,
    /// Hosts that take no notice of what they are told, or send no more.
    pub unresponsive: Vec<Unresponsive>,
    /// Flows of which packets set out by this address and did not arrive, the latest last; 64 at most.
    pub astray: Vec<Pin>,
    /// What it has done since the daemon was started.
    pub counts: ControlCounts,
}

/// A host of which several actions in a row had no effect.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub struct Unresponsive {
    /// The host.
    pub host: String,
    /// How many actions, in a row.
    pub actions: u32,
}

/// Flows from one host to another that stay where they were put.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub struct Pin {
    /// Who sends.
    pub source: String,
    /// To whom.
    pub destination: String,
    /// To which of its addresses.
    pub address: u8,
}

/// The ways from one host to another.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub struct Ways {
    /// Who sends.
    pub source: String,
    /// To whom.
    pub destination: String,
    /// The address that it is pinned to; null if it is not.
    pub pinned: Option<u8>,
    /// By address; those that lead nowhere are left out.
    pub ways: Vec<Way>,
}

/// The way of packets that are sent to one of the destination's addresses.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub struct Way {
    /// Which; 0 is the base address.
    pub address: u8,
    /// The same as a MAC address.
    pub destination_mac: String,
    /// The links out of the switches on the way, in order.
    pub links: Vec<String>,
    /// The least of what they can carry, in bits per second.
    pub capacity_bps: u64,
}

/// What the controller has done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub struct ControlCounts {
    /// What collectors told it.
    pub notices: u64,
    /// What they told and it had no room for.
    pub notices_lost: u64,
    /// Notices of congestion among these, once there were routes.
    pub congestions: u64,
    /// Times that it looked at all flows.
    pub polls: u64,
    /// Decisions to send flows another way.
    pub goes: u64,
    /// Decisions that no other way is better by enough.
    pub stays: u64,
    /// Decisions to wait what the last one does.
    pub settles: u64,
    /// Decisions to leave what is pinned.
    pub pinned: u64,
    /// Decisions that were not carried out, since it is frozen or on a dry run.
    pub withheld: u64,
    /// Decisions that were not carried out, since too many others waited for their effect.
    pub crowded: u64,
    /// Actions that could not be begun.
    pub refused: u64,
    /// Actions begun.
    pub begun: u64,
    /// Actions whose effect was seen.
    pub confirmed: u64,
    /// Actions whose effect was not seen in time.
    pub expired: u64,
    /// Actions that another one overtook.
    pub superseded: u64,
    /// Actions after which packets did not arrive, so that they were taken back.
    pub astray: u64,
    /// ARP requests that were repeated, so that hosts keep the address they were sent.
    pub refreshed: u64,
    /// Rules of switches that were missing, wrong or not wanted, and were put right.
    pub rules_corrected: u64,
}

/// The latest decisions.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct Decisions {
    /// The latest first.
    pub decisions: Vec<Decision>,
}

/// What was decided of the flows from one host to another, and by what.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct Decision {
    /// When: packet time.
    #[serde(flatten)]
    pub moment: Moment,
    /// Who sends.
    pub source: String,
    /// To whom.
    pub destination: String,
    /// What was decided.
    pub verdict: Verdict,
    /// The congested link that it was about: `SWITCH:pPORT:out`; null if all flows were looked at.
    pub link: Option<String>,
    /// The rate of the flows, in bits per second.
    pub rate_bps: u64,
    /// The address that they were sent to.
    pub from: u8,
    /// The address that they are to be sent to; the same if they stay.
    pub to: u8,
    /// All ways that there were.
    pub alternatives: Vec<Alternative>,
}

/// What is decided of flows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// They go another way.
    Goes,
    /// No other way is better by enough.
    Stays,
    /// They were moved a moment ago, and what that did is not known yet.
    Settles,
    /// They are pinned.
    Pinned,
}

/// A way that flows could go.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub struct Alternative {
    /// By this address of the destination.
    pub address: u8,
    /// What they could expect there, in bits per second.
    pub expected_bps: u64,
    /// The link that leaves no more: `SWITCH:pPORT:out`.
    pub tightest: String,
}

/// The latest actions.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct Actions {
    /// The latest first.
    pub actions: Vec<Action>,
}

/// What was done about the flows from one host to another.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct Action {
    /// Its number: 1 for the first since the daemon was started.
    pub action: u64,
    /// Who sends.
    pub source: String,
    /// To whom.
    pub destination: String,
    /// The address that they are to be sent to.
    pub address: u8,
    /// When that was decided: packet time.
    pub decided: Moment,
    /// When the controller handled the report that caused the decision, by the controller's clock; null if the action
    /// could not be begun.
    pub handled: Option<Moment>,
    /// When the request had been sent to the host or the switch, by the same clock; null if the action could not be
    /// begun.
    pub started: Option<Moment>,
    /// When it has failed, if its effect was not seen.
    pub deadline: Moment,
    /// What came of it.
    pub outcome: Outcome,
    /// From the decision to the first packet with the new address that a collector saw, in nanoseconds; null if none did.
    pub took_ns: Option<u64>,
    /// Why it could not be begun; null if it could.
    pub error: Option<String>,
}

/// What came of an action.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It was begun; its effect has not been seen.
    Begun,
    /// Its effect was seen.
    Confirmed,
    /// Its effect was not seen in time.
    Expired,
    /// The same flows were sent elsewhere before.
    Superseded,
    /// It could not be begun.
    Refused,
}

/// Where flows are to stay.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PinTo {
    /// To which of the destination's addresses they are sent.
    pub address: u8,
}

/// Whether the controller only watches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Frozen {
    /// True to freeze it, false to let it steer again.
    pub frozen: bool,
}
