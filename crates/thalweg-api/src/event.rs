//! Events.

use std::borrow::Cow;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    Action, Alternative, Decision, FlowName, FlowRate, Outcome, Rate, Redirection, State, UtcTime, Verdict,
};

/// An event of a collector or of the controller.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct Event {
    /// Number of the event since the daemon started, from 1, without gaps.
    pub id: u64,
    /// Name of the collector, or `control`.
    pub collector: String,
    /// The switch that the collector monitors. For the controller, the switch at which the flows start.
    pub switch: String,
    /// Packet time of the event.
    pub time: UtcTime,
    /// When the event was published: by the machine's clock for live sources, otherwise packet time.
    pub emitted: UtcTime,
    /// The event.
    #[serde(flatten)]
    pub body: EventBody,
}

/// The fields of an event, by type.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum EventBody {
    /// The congestion of a link began or cleared, or is repeated.
    Congestion {
        /// The link: `SWITCH:pPORT:in|out`.
        link: String,
        /// What changed.
        change: CongestionChangeName,
        /// The threshold as a utilisation, from 0 to 1.
        threshold: f64,
        /// Index of the congestion rule in the collector's configuration, from 0.
        rule: usize,
        /// Capacity of the link in bits per second.
        capacity_bps: u64,
        /// The sum of the rates of the flows on the link, and its bounds.
        #[serde(flatten)]
        rate: Rate,
        /// The smoothed rate in bits per second.
        smoothed_bps: f64,
        /// `smoothed_bps` divided by `capacity_bps`.
        utilisation: f64,
        /// Version of the topology.
        topology_version: u64,
        /// The fastest flows on the link, as many as the congestion rule allows, the fastest first.
        flows: Vec<FlowRate>,
        /// Flows on the link that `flows` does not list.
        omitted_flows: u32,
    },
    /// A flow takes another path: its packets have other MAC addresses than before.
    AddressChange {
        /// The direction of the flow.
        flow: FlowName,
        /// The same as text.
        key: String,
        /// The previous destination MAC address.
        previous_dst_mac: String,
        /// The new destination MAC address.
        dst_mac: String,
        /// The new source MAC address.
        src_mac: String,
    },
    /// A direction of a flow became a cheetah.
    Cheetah {
        /// The direction of the flow.
        flow: FlowName,
        /// The same as text.
        key: String,
        /// First packet of the flow in either direction.
        flow_start: UtcTime,
        /// The flight rate: `bytes` divided by the flight duration, in bits per second.
        rate_bps: u64,
        /// Bytes in the window that exceeded the threshold, at the IP layer.
        bytes: u64,
    },
    /// A flow that was a cheetah ended.
    CheetahEnd {
        /// The direction of the flow.
        flow: FlowName,
        /// The same as text.
        key: String,
        /// First packet of the flow in either direction.
        flow_start: UtcTime,
        /// Last packet of the flow in either direction.
        flow_end: UtcTime,
        /// Sampled packets of this direction.
        packets: u64,
        /// Bytes of these packets, at the IP layer.
        bytes: u64,
    },
    /// The state of a collector changed.
    Collector {
        /// The new state.
        state: State,
    },
    /// The controller decided to reroute a pair. Decisions to keep a pair on its path are not published.
    Decision {
        /// The sending host.
        src: String,
        /// The receiving host.
        dst: String,
        /// What was decided.
        verdict: Verdict,
        /// The congested link that caused the decision; null if a poll of all flows caused it.
        link: Option<String>,
        /// Rate of the pair's flows in bits per second.
        rate_bps: u64,
        /// The tree that the pair used.
        from_tree: u8,
        /// The tree that the pair is to use.
        tree: u8,
        /// Number of reroutes of the pair's flow that was rerouted most, this one included; 0 unless the decider is `greedy`.
        flow_moves: u32,
        /// All paths that were compared.
        alternatives: Vec<Alternative>,
    },
    /// The outcome of an action changed.
    Action {
        /// Number of the action.
        action: u64,
        /// The sending host.
        src: String,
        /// The receiving host.
        dst: String,
        /// The tree that the pair is to use.
        tree: u8,
        /// Packet time of the decision. Its clock is that of the capture or the emulation; `handled` and `started` have another.
        decided: UtcTime,
        /// When the controller handled the report that caused the decision, by its own clock; null if the action was refused.
        handled: Option<UtcTime>,
        /// When the request was sent to the host or the switch; null if the action was refused.
        started: Option<UtcTime>,
        /// When the action times out unless it is confirmed.
        deadline: UtcTime,
        /// The outcome.
        outcome: Outcome,
        /// Time from the decision to the first packet on the new path, in nanoseconds; null before that.
        decision_to_path_ns: Option<u64>,
        /// Why the action was refused; null otherwise.
        error: Option<String>,
    },
    /// Others changed the OpenFlow entries of a switch. The controller repairs them.
    RuleFaults {
        /// Entries that are missing.
        missing: u64,
        /// Entries that were changed.
        changed: u64,
        /// Entries under Thalweg's cookies that Thalweg did not write.
        foreign: u64,
    },
    /// A link went down or came up, and the controller recomputed its routes.
    Link {
        /// The ports or hosts at its ends: `leaf0:p2 - spine0:p0`.
        link: String,
        /// Whether it is up.
        up: bool,
    },
    /// The interface counters of a poll became unavailable, or available again.
    Poll {
        /// Name of the poll.
        poll: String,
        /// Whether its counters can be read.
        available: bool,
        /// Why they cannot be read; null if they can.
        error: Option<String>,
    },
    /// The daemon became the master of the OpenFlow switches, or a standby.
    Mastership {
        /// Whether it is the master.
        master: bool,
    },
    /// The traffic of keys changed between two periods of a `change` task by more than the error bound of the change.
    TrafficChange {
        /// The task as configured.
        task: String,
        /// Start of the later period.
        start: UtcTime,
        /// End of the later period, exclusive.
        end: UtcTime,
        /// The largest changes first, at most 20.
        keys: Vec<KeyChange>,
        /// Keys that changed and that `keys` does not list.
        omitted_keys: u64,
    },
    /// The phase of a redirection changed.
    Redirection {
        /// The redirection.
        redirection: Redirection,
    },
}

/// A change of a link's congestion.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CongestionChangeName {
    /// Utilisation rose to the upper threshold.
    Began,
    /// Utilisation fell below the lower threshold.
    Cleared,
    /// The link is still congested: a reminder.
    Repeated,
}

/// Sent to a slow subscriber instead of the events that it missed.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub struct Lost {
    /// Always `lost`.
    #[serde(rename = "type")]
    pub kind: Cow<'static, str>,
    /// Lost events of all types, before filters; null if they belong to an earlier run of the daemon.
    pub count: Option<u64>,
    /// Events lost since the subscription began.
    pub total: u64,
    /// Number of the last lost event.
    pub last: u64,
}

/// A change of traffic, in packets or bytes as the task specifies.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct KeyChange {
    /// The key in readable form.
    pub key: String,
    /// Increase of the traffic; negative for a decrease.
    pub change: f64,
    /// Lower bound of `change`; null if there is none.
    pub change_lower: Option<f64>,
    /// Upper bound of `change`; null if there is none.
    pub change_upper: Option<f64>,
    /// Traffic in the earlier period.
    pub before: f64,
    /// Traffic in the later period.
    pub now: f64,
}

impl EventBody {
    /// All values of `type`, in the order of the variants.
    pub const TYPES: [&'static str; 13] = [
        "congestion",
        "address_change",
        "cheetah",
        "cheetah_end",
        "collector",
        "decision",
        "action",
        "rule_faults",
        "link",
        "mastership",
        "redirection",
        "poll",
        "traffic_change",
    ];
}

impl From<Decision> for EventBody {
    fn from(decision: Decision) -> EventBody {
        let Decision {
            time: _,
            src,
            dst,
            verdict,
            link,
            rate_bps,
            from_tree,
            tree,
            flow_moves,
            alternatives,
        } = decision;
        EventBody::Decision { src, dst, verdict, link, rate_bps, from_tree, tree, flow_moves, alternatives }
    }
}

impl From<Action> for EventBody {
    fn from(of: Action) -> EventBody {
        let Action { action, src, dst, tree, decided, handled, started, .. } = of;
        let Action { deadline, outcome, decision_to_path_ns, error, .. } = of;
        EventBody::Action {
            action,
            src,
            dst,
            tree,
            decided,
            handled,
            started,
            deadline,
            outcome,
            decision_to_path_ns,
            error,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn event(body: &Value) -> Value {
        let mut event = json!({
            "id": 7, "collector": "tor0", "switch": "tor0", "time": "2026-11-21T22:16:16.495499720Z",
            "emitted": "2026-11-21T22:16:16.495503920Z",
        });
        event.as_object_mut().unwrap().extend(body.as_object().unwrap().clone());
        event
    }

    /// Parses an event and writes it again.
    fn round_trip(event: &Value) -> Value {
        serde_json::to_value(serde_json::from_value::<Event>(event.clone()).unwrap()).unwrap()
    }

    #[test]
    fn a_congestion_event_round_trips_with_flat_rates() {
        let rate = json!({
            "rate_bps": 9.1e9, "rate_lower_bps": 9.0e9, "rate_upper_bps": null, "confidence": 0.95, "bounds": "lower_bound",
        });
        let mut flow = json!({
            "flow": {"src": "10.0.0.1", "dst": "10.0.0.2", "src_port": 1, "dst_port": 2, "protocol": 6},
            "key": "tcp 10.0.0.1:1 > 10.0.0.2:2", "dst_mac": "02:00:00:00:00:01", "src_mac": "02:00:00:00:00:02",
            "basis": "sampling_ratio",
            "span": {"start": "1970-01-01T00:00:00.000000001Z", "end": "1970-01-01T00:00:00.000000004Z"},
        });
        flow.as_object_mut().unwrap().extend(rate.as_object().unwrap().clone());
        let mut body = json!({
            "type": "congestion", "link": "tor0:p3:out", "change": "repeated", "threshold": 0.9, "rule": 0,
            "capacity_bps": 10_000_000_000_u64, "smoothed_bps": 9.0e9, "utilisation": 0.9, "topology_version": 1,
            "flows": [flow], "omitted_flows": 2,
        });
        body.as_object_mut().unwrap().extend(rate.as_object().unwrap().clone());
        let event = event(&body);
        assert_eq!(round_trip(&event), event);
    }

    #[test]
    fn an_action_event_round_trips() {
        let event = event(&json!({
            "type": "action", "action": 1, "src": "h0", "dst": "h8", "tree": 2,
            "decided": "2026-11-21T22:16:16.000000001Z", "handled": "2026-11-21T22:16:16.000000002Z",
            "started": null, "deadline": "2026-11-21T22:16:16.050000001Z", "outcome": "confirmed",
            "decision_to_path_ns": 2_500_000, "error": null,
        }));
        assert_eq!(round_trip(&event), event);
    }

    #[test]
    fn a_state_event_round_trips() {
        let state = json!({"name": "failed", "error": "no such interface", "retry_at": "2026-11-21T22:16:16.000000001Z"});
        let event = event(&json!({"type": "collector", "state": state}));
        assert_eq!(round_trip(&event), event);
    }
}
