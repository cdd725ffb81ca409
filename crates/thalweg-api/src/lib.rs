//! The JSON types of the daemon's HTTP API, and a client.
//!
//! These types are separate from the measurement types, so that measurement code can change without changing the API. Their
//! doc comments are the descriptions in `/v1/openapi.json` and in `docs/reference/http-api.md`. The daemon converts its values
//! to these types, and defines the fields of task results.
//!
//! | file | contents |
//! |---|---|
//! | `time` | instants |
//! | `rate` | rates with error bounds |
//! | `flow`, `link` | flows, links and their names |
//! | `event` | events |
//! | `live` | the live stream, the past of links and flows, alert rules |
//! | `experiment` | results of emulated experiments |
//! | `collector` | collectors: state and counters |
//! | `collector_response` | which collectors responded to a query |
//! | `control` | the controller |
//! | `isolation` | redirections of cheetah flows |
//! | `threshold` | adaptation of the rate threshold |
//! | `samples` | files of samples |
//! | `records` | stored flow records |
//! | `transfers` | reports of agents on transfer hosts |
//! | `task` | results of measurement tasks |
//! | `topology` | versions of the topology |
//! | `problem` | error responses (RFC 9457) |
//! | `client` | a client (feature `client`) |

#[cfg(feature = "client")]
pub mod client;
mod collector;
mod collector_response;
mod control;
mod event;
mod event_log;
mod experiment;
mod flow;
mod interface;
mod isolation;
mod link;
mod live;
pub mod problem;
mod rate;
mod records;
mod samples;
mod task;
mod threshold;
mod time;
mod topology;
mod transfers;

pub use collector::{Collector, Collectors, Counts, Health, State, StateName};
pub use collector_response::CollectorResponse;
pub use control::{
    Action, Actions, Alternative, Control, ControlCounts, DampedLink, Decision, Decisions, FlowMoves,
    FreezeRequest, LinkStateRequest, Outcome, PairTree, Paths, PinRequest, TreePath, UnresponsiveHost,
    Verdict,
};
pub use event::{CongestionChangeName, Event, EventBody, KeyChange, Lost};
pub use event_log::{Gap, LoggedEvent, LoggedEvents};
pub use experiment::{
    CompletionClass, CompletionPoint, Completions, ExperimentEntry, ExperimentHeadline, ExperimentKind,
    ExperimentResults, ExperimentState, Experiments, LinkSeries, PortQueue, QueueSeries, SweepEntry,
    ThroughputSeries,
};
pub use flow::{Basis, Flow, FlowName, FlowRate, Flows, Span};
pub use interface::{
    AverageLoss, CounterScope, InterfaceCounters, InterfaceCounts, InterfaceInterval, Interfaces,
    PolledInterface, PolledQueue, PortTraffic,
};
pub use isolation::{
    QueueState, Queues, Redirection, RedirectionCause, RedirectionCounts, RedirectionPhase,
    RedirectionReason, Redirections,
};
pub use link::{DirectionName, Link, LinkName, Links, ParseLinkNameError};
pub use live::{
    AccessGranted, Alert, Alerts, FlowHistory, LinkHistory, LiveCollector, LiveIsolation, LiveLinks,
    LiveLoads, LiveStatus,
};
pub use rate::{BoundKind, Rate};
pub use records::{
    FlowsetRules, FlowsetSort, FlowsetTotal, KeyValue, RecordCoverage, RecordFlowsets, RecordGroup,
    RecordSeries, RecordSort, RecordTop, RecordTotal, SeriesGroup, StoredFlowset, UnreadableFile,
};
pub use samples::{SampleFile, Samples};
pub use task::{CollectorTasks, Period, Task, TaskResults, Tasks, Window, WindowResult};
pub use threshold::{
    LossCurve, LossPoint, Recording, Simulation, Threshold, ThresholdCounts, ThresholdPeriod,
    ThresholdReason, ThresholdRegulator,
};
pub use time::{ParseUtcTimeError, UtcTime};
pub use topology::{NewTopology, Topology, UnconfirmedCollector};
pub use transfers::{
    AgentReport, ConnectionSample, Delivery, HostParameters, HostSample, MAX_REPORT_ROWS, MAX_REPORT_TEXT,
    ReportAnswer, ReportRows, ReportSubject, Transfer, TransferDirection, TransferHost, TransferHostCounts,
    TransferHosts, TransferReportFile, TransferReports, TransferSubscription, TransferSubscriptions,
    is_token_name,
};

/// The default port of the daemon.
pub const DEFAULT_PORT: u16 = 9_477;
