//! The live stream: link loads and the state of the daemon, and the past of links and flows.

use std::borrow::Cow;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Control, State, UtcTime};

/// The links of the following `loads` messages, in their order.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub struct LiveLinks {
    /// Number of this list. It changes when links are added or removed.
    pub list: u64,
    /// Names of the link directions.
    pub links: Vec<String>,
}

/// Loads of link directions: all of them, or those that have changed since the message before.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub struct LiveLoads {
    /// Number of the list of links.
    pub list: u64,
    /// When the loads were read, by the clock of the daemon's machine.
    pub time: UtcTime,
    /// The smoothed utilisation of each link direction in thousandths of its capacity, -1 if its collector did not respond; null in a message
    /// that has changes only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loads: Option<Vec<i16>>,
    /// Pairs of the index of a link direction and its utilisation; null in a message that has all of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changed: Option<Vec<i32>>,
}

/// The state of the daemon, sent once a second.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct LiveStatus {
    /// The time of this state, by the clock of the daemon's machine.
    pub time: UtcTime,
    /// The latest packet time of a collector; null before the first packet. Emulated if the network is.
    pub packet_time: Option<UtcTime>,
    /// Emulated seconds per second; null if the network is not emulated.
    pub pace: Option<f64>,
    /// Optional parts that are configured: control, event_log, experiments, flow_store, interfaces, isolation, tasks, threshold, topology,
    /// transfers. Requests for others are refused.
    pub configured: Vec<Cow<'static, str>>,
    /// The state of each collector.
    pub collectors: Vec<LiveCollector>,
    /// The controller; null without one.
    pub control: Option<Control>,
    /// Isolation of cheetah flows; null without it.
    pub isolation: Option<LiveIsolation>,
}

/// The state of a collector.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub struct LiveCollector {
    /// Name of the collector.
    pub name: String,
    /// Its state.
    pub state: State,
    /// Whether it keeps samples, which `/v1/samples` returns.
    pub keeps_samples: bool,
}

/// A summary of isolation.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub struct LiveIsolation {
    /// Number of active redirections.
    pub active: u64,
    /// Whether redirections are decided and not carried out.
    pub dry_run: bool,
    /// Why the actuator does not work; null if it does.
    pub error: Option<String>,
}

/// The utilisation of a link direction in the last ten minutes.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct LinkHistory {
    /// Name of the link direction.
    pub link: String,
    /// End of the last second, by the clock of the daemon's machine.
    pub end: UtcTime,
    /// The mean of the smoothed utilisation in each second, the latest last; null where it is unknown.
    pub mean: Vec<Option<f32>>,
    /// The greatest reading in each second. A second has one reading, and ten while somebody watches the live stream.
    pub max: Vec<Option<f32>>,
}

/// The rate of one direction of a flow in the last ten minutes.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct FlowHistory {
    /// The flow.
    pub key: String,
    /// End of the last second, by the clock of the daemon's machine.
    pub end: UtcTime,
    /// The rate in bits per second at each second, the latest last; null where it is unknown. The greatest if several collectors see the flow.
    pub rate_bps: Vec<Option<f32>>,
}

/// What the client may do.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub struct AccessGranted {
    /// Name of the client's token; null if the daemon has no token file.
    pub token: Option<String>,
    /// Whether it may change the network.
    pub write: bool,
}

/// Alert rules.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub struct Alerts {
    /// In the order of the configuration.
    pub alerts: Vec<Alert>,
}

/// A rule that sends events to a webhook.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub struct Alert {
    /// Name of the rule.
    pub name: String,
    /// Types of events that it sends; null for all.
    pub types: Option<Vec<String>>,
    /// The link whose events it sends; null for all.
    pub link: Option<String>,
    /// The collector whose events it sends; null for all.
    pub collector: Option<String>,
    /// Scheme and host of the webhook, without the path, which may be secret.
    pub webhook: String,
    /// Events that were sent.
    pub sent: u64,
    /// Events that were not sent.
    pub lost: u64,
    /// Requests that failed. They are repeated.
    pub failures: u64,
}
