//! What is told without being asked.

use std::borrow::Cow;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Action, Alternative, Decision, FlowName, FlowRate, Moment, Outcome, Rate, State, Verdict};

/// Something that happened at a collector, or that the controller did.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct Event {
    /// Its number: 1 for the first since the daemon was started, no gaps.
    pub id: u64,
    /// The collector; `control` of the controller.
    pub collector: String,
    /// The switch that it watches; of the controller, the one at which the flows begin.
    pub switch: String,
    /// When it happened: packet time.
    #[serde(flatten)]
    pub moment: Moment,
    /// When it was told: by the clock of the machine for live sources, else packet time.
    pub emitted: Moment,
    /// What happened.
    #[serde(flatten)]
    pub body: EventBody,
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum EventBody {
    /// The utilisation of a link crossed a threshold.
    Link {
        /// The link: `SWITCH:pPORT:WAY`.
        link: String,
        /// Which way.
        crossing: CrossingName,
        /// The threshold, as a share of the capacity.
        threshold: f64,
        /// Which of the collector's rules it was, from 0 in the order of the configuration.
        rule: usize,
        /// What the link can carry, in bits per second.
        capacity_bps: u64,
        /// Sum of the rates of its flows, in bits per second.
        rate_bps: Rate,
        /// The same, smoothed.
        smoothed_bps: f64,
        /// `smoothed_bps` as a share of the capacity.
        utilisation: f64,
        /// Version of the network at that time.
        version: u64,
        /// Flows on the link, the fastest first; as many as the rule asks for.
        flows: Vec<FlowRate>,
        /// Flows on the link that are not named.
        flows_left_out: u32,
    },
    /// Packets of a direction of a flow have other addresses than those before: it goes another way.
    AddressChange {
        /// The direction.
        flow: FlowName,
        /// The same as text.
        key: String,
        /// The destination MAC address that its packets had.
        from: String,
        /// The destination MAC address that they have.
        to: String,
        /// The source MAC address that they have.
        source: String,
    },
    /// A direction of a flow became a cheetah.
    Cheetah {
        /// The direction.
        flow: FlowName,
        /// The same as text.
        key: String,
        /// First packet of the flow, either direction.
        first: Moment,
        /// Bytes over the flight duration, in bits per second.
        flight_rate_bps: u64,
        /// Bytes in the window that gave it away, of the IP layer.
        bytes: u64,
    },
    /// A flow that was a cheetah ended.
    CheetahEnd {
        /// The direction that was one.
        flow: FlowName,
        /// The same as text.
        key: String,
        /// First packet of the flow, either direction.
        first: Moment,
        /// Last packet of the flow, either direction.
        last: Moment,
        /// Packets of this direction that were seen.
        packets: u64,
        /// Bytes of those, of the IP layer.
        bytes: u64,
    },
    /// A collector is in another state.
    Collector {
        /// What it is doing now.
        state: State,
    },
    /// The controller sends the flows from one host to another by another way. Decisions to let them stay are not told.
    Decision {
        /// Who sends.
        source: String,
        /// To whom.
        destination: String,
        /// What was decided.
        verdict: Verdict,
        /// The congested link that it was about; null if all flows were looked at.
        link: Option<String>,
        /// The rate of the flows, in bits per second.
        rate_bps: u64,
        /// The address that they were sent to.
        from: u8,
        /// The address that they are to be sent to.
        to: u8,
        /// All ways that there were.
        alternatives: Vec<Alternative>,
    },
    /// Something came of what the controller did.
    Action {
        /// Number of the action.
        action: u64,
        /// Who sends.
        source: String,
        /// To whom.
        destination: String,
        /// The address that they are to be sent to.
        address: u8,
        /// When that was decided.
        decided: Moment,
        /// When the controller handled the report that caused the decision; null if the action could not be begun.
        handled: Option<Moment>,
        /// When the request had been sent to the host or the switch; null if the action could not be begun.
        started: Option<Moment>,
        /// When it has failed, if its effect was not seen.
        deadline: Moment,
        /// What came of it.
        outcome: Outcome,
        /// From the decision to the first packet with the new address, in nanoseconds; null if none was seen.
        took_ns: Option<u64>,
        /// Why it could not be begun; null if it could.
        error: Option<String>,
    },
}

/// Which way a threshold was crossed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CrossingName {
    /// Utilisation rose to the upper threshold.
    Upwards,
    /// Utilisation fell to the lower threshold, having been above the upper one.
    Downwards,
    /// It has not fallen to the lower threshold since it was told, and is told again.
    Remains,
}

/// Told to a subscriber in place of events that it was too slow for.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub struct Lost {
    /// Always `lost`.
    #[serde(rename = "type")]
    pub kind: Cow<'static, str>,
    /// How many events it lost, of any kind, before filters; null if they were those of another run of the daemon.
    pub count: Option<u64>,
    /// How many it has lost since it subscribed.
    pub total: u64,
    /// Number of the last of them.
    pub last: u64,
}

impl EventBody {
    /// All values of `type`, in the order of their variants.
    pub const TYPES: [&'static str; 7] =
        ["link", "address_change", "cheetah", "cheetah_end", "collector", "decision", "action"];
}

impl From<Decision> for EventBody {
    fn from(decision: Decision) -> EventBody {
        let Decision { moment: _, source, destination, verdict, link, rate_bps, from, to, alternatives } =
            decision;
        EventBody::Decision { source, destination, verdict, link, rate_bps, from, to, alternatives }
    }
}

impl From<Action> for EventBody {
    fn from(done: Action) -> EventBody {
        let Action { action, source, destination, address, decided, handled, started, .. } = done;
        let Action { deadline, outcome, took_ns, error, .. } = done;
        EventBody::Action {
            action,
            source,
            destination,
            address,
            decided,
            handled,
            started,
            deadline,
            outcome,
            took_ns,
            error,
        }
    }
}
