//! Adaptation of the rate threshold to the traffic.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::UtcTime;

/// The rate threshold R of cheetah flows, and how it follows the traffic.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct Threshold {
    /// The collector whose packets are recorded.
    pub collector: String,
    /// The collectors to which R applies.
    pub applies_to: Vec<String>,
    /// R in bits per second, as it applies.
    pub rate_bps: u64,
    /// R as the traffic suggests it, in bits per second.
    pub suggested_bps: u64,
    /// Why.
    pub reason: ThresholdReason,
    /// With reason `days`: the number of earlier days whose thresholds were used; null otherwise.
    pub days: Option<u64>,
    /// With reasons `latest` and `equation`: start of the period whose traffic was used; null otherwise.
    pub since: Option<UtcTime>,
    /// What R = alpha (C - r) gives for the latest traffic, in bits per second; null if there is none of the last day.
    pub equation_bps: Option<u64>,
    /// Maximum share of packets of other flows that may be lost.
    pub acceptable_loss: f64,
    /// Start of the current period.
    pub period: UtcTime,
    /// Length of a period in nanoseconds.
    pub period_ns: u64,
    /// Mean of |forecast / threshold - 1| over past periods; null before two consecutive thresholds are known.
    pub forecast_error: Option<f64>,
    /// The same if the threshold of each period were that of the period before.
    pub previous_period_error: Option<f64>,
    /// The recording; null before the first packet.
    pub recording: Option<Recording>,
    /// The simulation that runs; null if none does.
    pub simulation: Option<Simulation>,
    /// Recorded periods that wait for a simulation, including the one that runs.
    pub waiting: u64,
    /// What the losses that a router counts change; null without a poll.
    pub regulator: Option<ThresholdRegulator>,
    /// What is wrong with the stored state; null if nothing is.
    pub error: Option<String>,
    /// Periods that have ended, the latest first.
    pub periods: Vec<ThresholdPeriod>,
    /// Loss by rate, for traffic with similar rate and burstiness.
    pub curves: Vec<LossCurve>,
    /// Counters since the daemon started.
    pub counts: ThresholdCounts,
}

/// The regulator of R, by the losses that a router counts.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct ThresholdRegulator {
    /// The poll of the link's interface.
    pub poll: String,
    /// By how much R is lowered, in bits per second.
    pub reduction_bps: u64,
    /// Loss of the primary queue in the last complete window of intervals; null before the first.
    pub loss: Option<f64>,
    /// Why R changed or stays: `collecting`, `unusable`, `sum_of_queues`, `above`, `unproven`, `at_floor`, `calming`, `too_close`,
    /// `low` or `at_base`; null before the first interval.
    pub reason: Option<String>,
    /// The same as a sentence.
    pub explanation: Option<String>,
    /// How often R was lowered since the daemon started.
    pub lowered: u64,
    /// How often R was raised again.
    pub raised: u64,
}

/// Why R is what it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ThresholdReason {
    /// Thresholds of the same period on earlier days.
    Days,
    /// The threshold of the latest period.
    Latest,
    /// R = alpha (C - r): traffic was recorded, but not simulated yet.
    Equation,
    /// Nothing is known: the configured rate_threshold.
    Configured,
}

/// The period that is being recorded.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub struct Recording {
    /// Its start.
    pub period: UtcTime,
    /// Background packets so far.
    pub packets: u64,
    /// Why it will be of no use: `incomplete`, `dropped`, `lost`, `clock_stepped`, `idle` or `not_written`; null so far.
    pub trouble: Option<String>,
}

/// The period that is being simulated.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct Simulation {
    /// Its start.
    pub period: UtcTime,
    /// The share that is done, 0 to 1.
    pub progress: f64,
}

/// A period that has ended.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct ThresholdPeriod {
    /// Its start.
    pub period: UtcTime,
    /// `known`; `waiting` for its simulation; `unknown`, not simulated; or why its recording is of no use, as `trouble`.
    pub state: String,
    /// Mean rate of the background traffic in bits per second; null if the recording is of no use.
    pub mean_rate_bps: Option<u64>,
    /// Standard deviation of the bytes in windows, divided by their mean; null if the recording is of no use.
    pub burstiness: Option<f64>,
    /// The largest rate with an acceptable loss, in bits per second; null if unknown.
    pub threshold_bps: Option<u64>,
    /// Whether loss is acceptable at that rate. False if even the lowest rate loses too much. Null if unknown.
    pub acceptable: Option<bool>,
    /// The threshold that was forecast, in bits per second; null if none was.
    pub forecast_bps: Option<u64>,
}

/// Loss of other packets by the rate of a flow.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct LossCurve {
    /// Mean rate of the traffic in bits per second.
    pub mean_rate_bps: u64,
    /// Burstiness of the traffic.
    pub burstiness: f64,
    /// How much traffic was replayed, in seconds.
    pub seconds: f64,
    /// Start of the latest period that used it.
    pub used: UtcTime,
    /// Loss by rate, in ascending order of rates.
    pub points: Vec<LossPoint>,
}

/// The loss that a flow of one rate causes.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct LossPoint {
    /// The rate of the flow in bits per second.
    pub rate_bps: u64,
    /// Share of packets of other flows that were lost.
    pub loss: f64,
    /// Standard error of the loss; 0 if all packets were replayed.
    pub error: f64,
}

/// Counters of the adaptation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub struct ThresholdCounts {
    /// Periods that were recorded completely.
    pub recorded: u64,
    /// Recorded periods whose traffic was similar to simulated traffic.
    pub matched: u64,
    /// Recordings of no use.
    pub unusable: u64,
    /// Simulations that finished.
    pub simulated: u64,
    /// Simulations that failed.
    pub failed: u64,
    /// Recordings that were not simulated, because too many waited.
    pub skipped: u64,
}
