//! Results of emulated experiments, as `thalweg emulate --output` writes them.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::UtcTime;

/// Experiments with results.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct Experiments {
    /// The experiments, the latest first.
    pub experiments: Vec<ExperimentEntry>,
    /// Folders beyond the limit, which are not listed.
    pub omitted: u64,
}

/// The folder of a run or a sweep.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct ExperimentEntry {
    /// Name of the folder, for `/v1/experiments/{name}`.
    pub name: String,
    /// Name of the folder that it is in, for `/v1/experiments/{group}/{name}`; null if it is in none.
    pub group: Option<String>,
    /// What it is.
    pub kind: ExperimentKind,
    /// Whether the results are complete.
    pub state: ExperimentState,
    /// When the latest of its files was written.
    pub written: UtcTime,
    /// Why the results, or a part of them, cannot be read; null if they can.
    pub error: Option<String>,
    /// Name of the experiment; null if unknown.
    pub experiment: Option<String>,
    /// Topology; null if unknown.
    pub topology: Option<String>,
    /// Queue management scheme; null if unknown, and if the runs of a sweep have several.
    pub scheme: Option<String>,
    /// Transport, likewise.
    pub transport: Option<String>,
    /// Random seed, likewise.
    pub seed: Option<u64>,
    /// The swept keys; empty for a run.
    pub sweep: Vec<String>,
    /// Number of runs with results; 1 for a run.
    pub runs: u64,
    /// The main results of a run; null for a sweep, and for a run without a summary.
    pub headline: Option<ExperimentHeadline>,
}

/// What the folder of an experiment has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ExperimentKind {
    /// One run.
    Run,
    /// Several runs, each in a folder of its own.
    Sweep,
}

/// Whether the results of an experiment are complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ExperimentState {
    /// All files are there.
    Complete,
    /// The run was stopped before its end. Results cover the time before.
    Interrupted,
    /// The run or the sweep is going on.
    Writing,
    /// Files are missing: the program was killed, or its disk was full.
    Incomplete,
    /// A file cannot be read.
    Unreadable,
}

/// The main results of a run.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct ExperimentHeadline {
    /// Emulated time that was measured.
    pub duration_ns: u64,
    /// Bits per second delivered to endpoints, framing included.
    pub throughput_bps: f64,
    /// Bits per second delivered to applications.
    pub goodput_bps: f64,
    /// Packets sent.
    pub packets_sent: u64,
    /// Packets dropped.
    pub packets_dropped: u64,
    /// Packets marked (ECN).
    pub packets_marked: u64,
    /// Flows completed.
    pub flows_completed: u64,
    /// Flows that had not completed at the end.
    pub flows_unfinished: u64,
    /// Mean flow completion time; null without completed flows.
    pub fct_mean_ns: Option<f64>,
    /// 99th percentile of the flow completion time, likewise.
    pub fct_p99_ns: Option<f64>,
    /// Mean slowdown: completion time divided by that in an idle network, likewise.
    pub slowdown_mean: Option<f64>,
    /// 99th percentile of the slowdown, likewise.
    pub slowdown_p99: Option<f64>,
    /// Mean length of the longest queue, in packets; null without queues.
    pub queue_packets_mean: Option<f64>,
    /// 99th percentile of the length of this queue, likewise.
    pub queue_packets_p99: Option<f64>,
}

/// The results of a run or a sweep.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct ExperimentResults {
    /// The entry of the list.
    #[serde(flatten)]
    pub entry: ExperimentEntry,
    /// The summary of a run: an object as `thalweg emulate --json` prints it; null for a sweep, and without the file.
    pub summary: Option<Map<String, Value>>,
    /// Throughput over time; null without the table of links.
    pub throughput: Option<ThroughputSeries>,
    /// Queue lengths over time; null without the table of queues.
    pub queues: Option<QueueSeries>,
    /// Flow completion times; null without the table of flows.
    pub completions: Option<Completions>,
    /// The runs of a sweep; empty for a run.
    pub table: Vec<SweepEntry>,
    /// What could not be read of these, and why.
    pub problems: Vec<String>,
}

/// A run of a sweep.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct SweepEntry {
    /// Name of its folder, for `/v1/experiments/{name}/{run}`; null if the folder is unknown.
    pub run: Option<String>,
    /// The values of the swept keys.
    pub values: BTreeMap<String, String>,
    /// Queue management scheme.
    pub scheme: String,
    /// Transport.
    pub transport: String,
    /// Random seed.
    pub seed: u64,
    /// Whether the run was stopped before its end.
    pub interrupted: bool,
    /// The main results.
    pub headline: ExperimentHeadline,
}

/// Throughput of a run over time.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct ThroughputSeries {
    /// Usual length of an interval, in emulated time. Lengths differ by some nanoseconds, and the last may be shorter.
    pub interval_ns: u64,
    /// Start of each interval, in emulated time from 0.
    pub times_ns: Vec<u64>,
    /// Bits per second delivered to endpoints, framing included: the sum over all links that lead to one.
    pub delivered_bps: Vec<f64>,
    /// The busiest link directions, the one with most bytes first.
    pub links: Vec<LinkSeries>,
    /// Number of all link directions.
    pub total_links: u64,
}

/// One direction of a link over time.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct LinkSeries {
    /// Sending node.
    pub from: String,
    /// Receiving node.
    pub to: String,
    /// Bits per second in each interval, framing included.
    pub rate_bps: Vec<f64>,
    /// Share of the capacity in each interval, 0 to 1.
    pub utilisation: Vec<f64>,
    /// Packets dropped at the sending port in each interval.
    pub dropped_packets: Vec<u64>,
}

/// Queue lengths of a run over time.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct QueueSeries {
    /// Usual length of an interval, in emulated time. Lengths differ by some nanoseconds, and the last may be shorter.
    pub interval_ns: u64,
    /// Start of each interval, in emulated time from 0.
    pub times_ns: Vec<u64>,
    /// The ports with the longest mean queue, the longest first.
    pub ports: Vec<PortQueue>,
    /// Number of all ports.
    pub total_ports: u64,
}

/// The queue of a port over time.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct PortQueue {
    /// The router.
    pub router: String,
    /// The port, from 0.
    pub port: u16,
    /// The node that the port leads to.
    pub to: String,
    /// Mean number of packets in each interval; null without a sample.
    pub packets_mean: Vec<Option<f64>>,
    /// Largest number of packets in each interval; null without a sample.
    pub packets_max: Vec<Option<u32>>,
    /// Mean number of bytes in each interval; null without a sample.
    pub bytes_mean: Vec<Option<f64>>,
}

/// Flow completion times of a run.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct Completions {
    /// Number of completed flows.
    pub flows: u64,
    /// Completed flows, in the order of their starts: all of them, or an evenly spaced part.
    pub points: Vec<CompletionPoint>,
    /// Distribution of the completion times of all flows, by size class.
    pub classes: Vec<CompletionClass>,
}

/// A completed flow.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct CompletionPoint {
    /// Start of the flow, in emulated time from 0.
    pub start_ns: u64,
    /// Payload bytes.
    pub bytes: u64,
    /// Flow completion time.
    pub fct_ns: u64,
    /// Completion time divided by that in an idle network; null if unknown.
    pub slowdown: Option<f64>,
}

/// Completion times of the flows of a size class.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct CompletionClass {
    /// `small` (up to 100 kB), `medium` (up to 10 MB), `large`, or `all`.
    pub class: String,
    /// Number of completed flows.
    pub flows: u64,
    /// Shares of flows, 0 to 1, that `fct_ns` and `slowdown` refer to.
    pub shares: Vec<f64>,
    /// Completion time that this share of flows does not exceed.
    pub fct_ns: Vec<f64>,
    /// Slowdown that this share of flows does not exceed; empty if unknown.
    pub slowdown: Vec<f64>,
}
