//! Handlers of the routes: plain functions of the request. They may wait for collectors for a limited time.

pub(super) mod alerts;
pub(super) mod collectors;
pub(super) mod control;
pub(super) mod event_log;
pub(super) mod events;
pub(super) mod experiments;
pub(super) mod flows;
pub(super) mod health;
pub(super) mod interfaces;
pub(super) mod links;
pub(super) mod live;
pub(super) mod metrics;
pub(super) mod open_api;
pub(super) mod records;
pub(super) mod redirections;
pub(super) mod samples;
pub(super) mod tasks;
pub(super) mod threshold;
pub(super) mod topology;
pub(super) mod transfers;

use std::str::FromStr;
use std::time::{Duration, Instant};

use schemars::JsonSchema;
use serde::Deserialize;
use thalweg_api::CollectorResponse;
use thalweg_api::problem::{Code, Problem};
use thalweg_measure::collector::FlowReport;
use thalweg_measure::filter::{FlowFilter, SAMPLED};

use super::Api;
use crate::collectors::CollectorHandle;
use thalweg_http::parameters::{Count, Number, Parsed};

/// How long a request waits for all collectors together.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(2);

/// How long it waits for each collector at least, so that slow ones do not use up the time of the others. Collectors respond
/// within a batch of packets.
const MIN_REPLY_TIMEOUT: Duration = Duration::from_millis(20);

/// A filter by collector.
#[derive(Deserialize, JsonSchema)]
pub(super) struct CollectorParam {
    /// Only data of this collector.
    #[schemars(example = &"tor0")]
    collector: Option<String>,
}

/// A limit of flows, a filter by collector and a flow filter.
#[derive(Deserialize, JsonSchema)]
pub(super) struct LimitParams {
    /// Maximum number of flows: 1 to 10,000; default 20.
    #[serde(default)]
    #[schemars(example = 10)]
    limit: Limit,
    /// Only data of this collector.
    #[schemars(example = &"tor0")]
    collector: Option<String>,
    /// Only flows that match this flow filter in nfdump syntax; docs/reference/flow-filter.md lists its terms.
    #[schemars(example = &"dst%20port%20443%20and%20bps%20%3E%2010m")]
    filter: Option<Parsed<SampledFilter>>,
    /// Sort by: rate, bytes (sampled), samples, retransmitted, start, end, or key; default rate.
    #[schemars(example = &"rate")]
    sort: Option<Parsed<FlowSort>>,
    /// Sort order: desc (default) or asc.
    #[schemars(example = &"desc")]
    order: Option<Parsed<SortOrder>>,
    /// Number of flows to skip, for pages: 0 to 100,000; default 0.
    #[schemars(example = 100)]
    offset: Option<Number>,
}

/// By what to sort flows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FlowSort {
    Rate,
    Bytes,
    Samples,
    Retransmitted,
    Start,
    End,
    Key,
}

/// A sort order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SortOrder {
    Descending,
    Ascending,
}

impl FromStr for FlowSort {
    type Err = String;

    fn from_str(text: &str) -> Result<FlowSort, String> {
        Ok(match text {
            "rate" => FlowSort::Rate,
            "bytes" => FlowSort::Bytes,
            "samples" => FlowSort::Samples,
            "retransmitted" => FlowSort::Retransmitted,
            "start" => FlowSort::Start,
            "end" => FlowSort::End,
            "key" => FlowSort::Key,
            _ => {
                return Err("expected rate, bytes, samples, retransmitted, start, end or key".to_owned());
            }
        })
    }
}

impl FromStr for SortOrder {
    type Err = String;

    fn from_str(text: &str) -> Result<SortOrder, String> {
        match text {
            "desc" => Ok(SortOrder::Descending),
            "asc" => Ok(SortOrder::Ascending),
            _ => Err("expected desc or asc".to_owned()),
        }
    }
}

impl LimitParams {
    /// Returns the number of flows to skip.
    fn offset(&self) -> Result<usize, Problem> {
        let Number(offset) = self.offset.unwrap_or(Number(0));
        match usize::try_from(offset) {
            Ok(offset) if offset <= MAX_OFFSET => Ok(offset),
            _ => Err(Problem::new(
                Code::BadParameter,
                format!("offset is {offset}: expected 0 to {MAX_OFFSET}"),
            )),
        }
    }

    /// Whether the filter selects a flow. No filter selects every flow.
    fn matches(&self, flow: &FlowReport) -> bool {
        self.filter.as_ref().is_none_or(|Parsed(SampledFilter(filter))| filter.matches(flow))
    }
}

/// A flow filter for sampled flows.
pub(super) struct SampledFilter(FlowFilter);

impl FromStr for SampledFilter {
    type Err = String;

    fn from_str(text: &str) -> Result<SampledFilter, String> {
        FlowFilter::compile(text, &SAMPLED).map(SampledFilter).map_err(|error| error.message())
    }
}

/// Maximum number of flows to skip.
const MAX_OFFSET: usize = 100_000;

/// Flows in a response; the maximum takes about 8 MB of JSON.
type Limit = Count<20, 10_000>;

/// The deadline of a request.
pub(super) struct RequestDeadline(Instant);

impl RequestDeadline {
    fn new() -> RequestDeadline {
        RequestDeadline(Instant::now() + REQUEST_TIMEOUT)
    }

    /// Returns how long the next collector may take to respond.
    fn left(&self) -> Duration {
        self.0.saturating_duration_since(Instant::now()).max(MIN_REPLY_TIMEOUT)
    }
}

/// Returns the collector of this name, or all collectors.
fn selected(api: &Api, name: Option<&str>) -> Result<Vec<CollectorHandle>, Problem> {
    let Some(name) = name else { return Ok(api.parts().collectors.all()) };
    match api.parts().collectors.named(name) {
        Some(collector) => Ok(vec![collector]),
        None => Err(Problem::new(Code::NotFound, format!("unknown collector {name:?}"))),
    }
}

/// Returns a problem if collectors were queried and none responded.
fn check_responses(responses: &[CollectorResponse]) -> Result<(), Problem> {
    match responses.iter().find_map(|collector| collector.error.as_ref()) {
        Some(error) if responses.iter().all(|collector| collector.error.is_some()) => {
            Err(Problem::new(Code::Unavailable, format!("{}: {error}", responses[0].collector)))
        }
        _ => Ok(()),
    }
}
