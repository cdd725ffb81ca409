//! What answers the routes: plain functions of what is asked. They may wait for collectors, each for a limited time.

pub(super) mod collectors;
pub(super) mod control;
pub(super) mod events;
pub(super) mod flows;
pub(super) mod health;
pub(super) mod links;
pub(super) mod metrics;
pub(super) mod open_api;
pub(super) mod samples;
pub(super) mod tasks;
pub(super) mod topology;

use std::str::FromStr;
use std::time::{Duration, Instant};

use schemars::JsonSchema;
use serde::Deserialize;
use thalweg_api::Answered;
use thalweg_api::problem::{Code, Problem};
use thalweg_measure::collector::FlowReport;
use thalweg_measure::filter::{FlowFilter, SAMPLED};

use super::Api;
use crate::collectors::CollectorHandle;
use thalweg_http::parameters::{Count, Parsed};

/// How long a request waits for collectors, all of them together.
const PATIENCE: Duration = Duration::from_secs(2);

/// How long it waits for each of them at least, so that those that are slow do not take it all: collectors answer within
/// a batch of packets.
const LEAST_PATIENCE: Duration = Duration::from_millis(20);

/// Whose.
#[derive(Deserialize, JsonSchema)]
pub(super) struct CollectorParam {
    /// Only of the collector of this name.
    #[schemars(example = &"tor0")]
    collector: Option<String>,
}

/// How many, whose, and which.
#[derive(Deserialize, JsonSchema)]
pub(super) struct TopParams {
    /// How many, the fastest first: 1 to 10,000; 20 by default.
    #[serde(default)]
    #[schemars(example = 10)]
    top: Top,
    /// Only of the collector of this name.
    #[schemars(example = &"tor0")]
    collector: Option<String>,
    /// Only flows that match this flow filter, in nfdump's language: docs/reference/flow-filter.md lists its terms.
    #[schemars(example = &"dst%20port%20443%20and%20bps%20%3E%2010m")]
    filter: Option<Parsed<SampledFilter>>,
}

impl TopParams {
    /// Whether the filter selects a flow; without one, every flow.
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

/// Flows in an answer; the most are some 8 MB of JSON.
type Top = Count<20, 10_000>;

/// What is left of a request's patience.
pub(super) struct Patience(Instant);

impl Patience {
    fn new() -> Patience {
        Patience(Instant::now() + PATIENCE)
    }

    /// How long the next collector may take to answer.
    fn left(&self) -> Duration {
        self.0.saturating_duration_since(Instant::now()).max(LEAST_PATIENCE)
    }
}

/// The collectors that a request is about: that of this name, or all.
fn asked(api: &Api, name: Option<&str>) -> Result<Vec<CollectorHandle>, Problem> {
    let Some(name) = name else { return Ok(api.parts().collectors.all()) };
    match api.parts().collectors.named(name) {
        Some(collector) => Ok(vec![collector]),
        None => Err(Problem::new(Code::NotFound, format!("there is no collector {name:?}"))),
    }
}

/// A problem if collectors were asked and none has answered.
fn check_answered(answered: &[Answered]) -> Result<(), Problem> {
    match answered.iter().find_map(|collector| collector.error.as_ref()) {
        Some(error) if answered.iter().all(|collector| collector.error.is_some()) => {
            Err(Problem::new(Code::Unavailable, format!("{}: {error}", answered[0].collector)))
        }
        _ => Ok(()),
    }
}
