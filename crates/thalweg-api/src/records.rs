//! Stored flow records: top talkers, traffic over time, and parallel flowsets.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::UtcTime;

/// The largest groups of stored flow records.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct RecordTop {
    /// Which records were read.
    #[serde(flatten)]
    pub coverage: RecordCoverage,
    /// The columns of the key.
    pub key: Vec<String>,
    /// What the groups are sorted by.
    pub sort: RecordSort,
    /// Sums over all groups, the ones that are not listed included.
    pub total: RecordTotal,
    /// The largest groups, the largest first.
    pub groups: Vec<RecordGroup>,
}

/// What groups of flow records are sorted by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RecordSort {
    /// Bytes.
    #[default]
    Bytes,
    /// Packets.
    Packets,
    /// Records, which are flows or parts of flows.
    Flows,
}

impl FromStr for RecordSort {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<RecordSort, &'static str> {
        match text {
            "bytes" => Ok(RecordSort::Bytes),
            "packets" => Ok(RecordSort::Packets),
            "flows" => Ok(RecordSort::Flows),
            _ => Err("expected bytes, packets or flows"),
        }
    }
}

/// Sums over all flow records that count.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub struct RecordTotal {
    /// Number of groups.
    pub groups: u64,
    /// Bytes of the IP layer, scaled by the sampling interval. A record that belongs to two groups counts once.
    pub bytes: u64,
    /// Packets, scaled by the sampling interval.
    pub packets: u64,
    /// Number of records.
    pub flows: u64,
}

/// A group of flow records and its sums.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct RecordGroup {
    /// The values that its records share, by column.
    pub key: BTreeMap<String, KeyValue>,
    /// The same as text, separated by blanks.
    pub name: String,
    /// Bytes of the IP layer, scaled by the sampling interval.
    pub bytes: u64,
    /// Packets, scaled by the sampling interval.
    pub packets: u64,
    /// Number of records, which are flows or parts of flows.
    pub flows: u64,
    /// Share of the total of what groups are sorted by, 0 to 1; null if that is 0.
    pub share: Option<f64>,
    /// Time of the first packet.
    pub flow_start: UtcTime,
    /// Time of the last packet.
    pub flow_end: UtcTime,
}

/// A value of a key: a number such as a port, or text such as an address.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum KeyValue {
    /// A number.
    Number(u64),
    /// Text; empty if the record has no such address.
    Text(String),
}

impl fmt::Display for KeyValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            KeyValue::Number(number) => number.fmt(f),
            KeyValue::Text(text) => text.fmt(f),
        }
    }
}

/// Traffic of stored flow records over time.
///
/// The bytes of a record are spread evenly from its first packet to its last.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct RecordSeries {
    /// Which records were read.
    #[serde(flatten)]
    pub coverage: RecordCoverage,
    /// The columns of the key; empty if there is one group for all traffic.
    pub key: Vec<String>,
    /// Length of an interval. Intervals start at its multiples since 1970 (UTC).
    pub interval_ns: u64,
    /// Start of each interval.
    pub times: Vec<UtcTime>,
    /// The largest groups by bytes, the largest first, and at the end all others together.
    pub groups: Vec<SeriesGroup>,
}

/// A group of flow records over time.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct SeriesGroup {
    /// The values that its records share, by column; null for all other groups together.
    pub key: Option<BTreeMap<String, KeyValue>>,
    /// The same as text, separated by blanks; `other` for all other groups together.
    pub name: String,
    /// Bytes of all its records.
    pub total_bytes: u64,
    /// Bytes of these that belong to times before the first interval or after the last.
    pub bytes_outside: u64,
    /// Bytes in each interval.
    pub bytes: Vec<u64>,
    /// Mean rate in each interval, bits per second.
    pub rate_bps: Vec<f64>,
}

/// The largest parallel flowsets of stored flow records: flows between two hosts that start together.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct RecordFlowsets {
    /// Which records were read.
    #[serde(flatten)]
    pub coverage: RecordCoverage,
    /// What the flowsets are sorted by.
    pub sort: FlowsetSort,
    /// What is counted as a flow and a flowset.
    pub rules: FlowsetRules,
    /// Sums over all flowsets, the ones that are not listed included.
    pub total: FlowsetTotal,
    /// The largest flowsets, the largest first.
    pub flowsets: Vec<StoredFlowset>,
}

/// What flowsets are sorted by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FlowsetSort {
    /// Bytes.
    #[default]
    Bytes,
    /// Duration.
    Duration,
    /// Mean rate.
    Rate,
    /// Number of flows.
    Flows,
}

impl FromStr for FlowsetSort {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<FlowsetSort, &'static str> {
        match text {
            "bytes" => Ok(FlowsetSort::Bytes),
            "duration" => Ok(FlowsetSort::Duration),
            "rate" => Ok(FlowsetSort::Rate),
            "flows" => Ok(FlowsetSort::Flows),
            _ => Err("expected bytes, duration, rate or flows"),
        }
    }
}

/// What is counted as a flow and a flowset.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub struct FlowsetRules {
    /// Whether flowsets contain all flows, not only elephants.
    pub all_flows: bool,
    /// Maximum gap between records of one flow.
    pub gap_ns: u64,
    /// An elephant flow sends more than this many bytes within `window_ns`.
    pub threshold_bytes: u64,
    /// Length of the window.
    pub window_ns: u64,
    /// Maximum time between the first and the last start of a flow in a flowset.
    pub tau_ns: u64,
}

/// Counts of flows and flowsets.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub struct FlowsetTotal {
    /// Flows, reconstructed from records. A flow that several routers exported counts once.
    pub flows: u64,
    /// Flows that are elephants.
    pub elephants: u64,
    /// Flowsets, the ones of a single flow included.
    pub flowsets: u64,
    /// Flowsets of a single flow.
    pub single_flows: u64,
}

/// Flows from one host to another that start together.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct StoredFlowset {
    /// Source address.
    pub src: String,
    /// Destination address.
    pub dst: String,
    /// Time of the first packet.
    pub flow_start: UtcTime,
    /// Time of the last packet.
    pub flow_end: UtcTime,
    /// Number of flows.
    pub flows: u64,
    /// Bytes of the IP layer, scaled by the sampling interval.
    pub bytes: u64,
    /// Packets, scaled by the sampling interval.
    pub packets: u64,
    /// Time from the first packet to the last.
    pub duration_ns: u64,
    /// Mean rate in bits per second; null if the duration is 0.
    pub rate_bps: Option<f64>,
    /// Autonomous system of the source; 0 if unknown.
    pub src_as: u32,
    /// Autonomous system of the destination; 0 if unknown.
    pub dst_as: u32,
}

/// Which stored records an answer covers.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub struct RecordCoverage {
    /// Start of the time range. Records are selected by their time of reception.
    pub start: UtcTime,
    /// End of the time range, exclusive.
    pub end: UtcTime,
    /// Whether the range has more records than can be read in time. The answer then covers only its end, from
    /// `covered_start`.
    pub partial: bool,
    /// Start of the time that the answer covers; `start` unless it is partial.
    pub covered_start: UtcTime,
    /// Files with records of this time.
    pub files: u64,
    /// Files that could not be read. Their records are missing.
    pub unreadable_files: u64,
    /// The first of these files, with the error of each.
    pub unreadable: Vec<UnreadableFile>,
    /// Records read.
    pub records: u64,
    /// Records of these that are in the time range and match the filter.
    pub matching_records: u64,
    /// Matching records that do not count, because another router counts their flow.
    pub duplicate_records: u64,
    /// Records that were received but are not in a file yet, usually of the last five minutes. No answer has them.
    pub pending_records: u64,
}

/// A file that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub struct UnreadableFile {
    /// Path of the file, relative to the directory of the store.
    pub file: String,
    /// What is wrong with it.
    pub error: String,
}
