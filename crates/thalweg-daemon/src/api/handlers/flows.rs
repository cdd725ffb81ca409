//! Flows: the fastest flows, one flow by its key, cheetah flows.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use schemars::JsonSchema;
use serde::Deserialize;
use thalweg_api::Flows;
use thalweg_api::problem::{Code, Problem};
use thalweg_measure::collector::FlowReport;
use thalweg_wire::FlowKey;

use super::{CollectorParam, Limit, LimitParams, RequestDeadline, check_responses, selected};
use crate::api::{Api, convert};
use crate::collectors::CollectorHandle;
use thalweg_http::input::{Path, Query};
use thalweg_http::output::Json;
use thalweg_http::parameters::{Count, Parsed};

/// One direction of a flow.
#[derive(Deserialize, JsonSchema)]
pub(in crate::api) struct FlowPath {
    /// The `key` of one direction of a flow in other responses, percent-encoded: PROTOCOL SRC:PORT > DST:PORT, or
    /// PROTOCOL SRC > DST for protocols without ports.
    #[schemars(example = &"tcp%2010.0.0.1:443%20%3E%2010.0.0.2:51000")]
    key: Parsed<FlowKey>,
}

/// `GET /v1/flows`
pub(in crate::api) fn top(api: &Api, Query(params): Query<LimitParams>) -> Result<Json<Flows>, Problem> {
    let collectors = selected(api, params.collector.as_deref())?;
    Ok(Json(Fastest::of(api, &collectors, params.limit, |flow| params.matches(flow))?))
}

/// `GET /v1/cheetahs`
pub(in crate::api) fn cheetahs(api: &Api, Query(params): Query<LimitParams>) -> Result<Json<Flows>, Problem> {
    let collectors = selected(api, params.collector.as_deref())?;
    Ok(Json(Fastest::of(api, &collectors, params.limit, |flow| flow.is_cheetah && params.matches(flow))?))
}

/// `GET /v1/flows/{key}`
pub(in crate::api) fn one(
    api: &Api,
    Path(FlowPath { key: Parsed(key) }): Path<FlowPath>,
    Query(CollectorParam { collector }): Query<CollectorParam>,
) -> Result<Json<Flows>, Problem> {
    let deadline = RequestDeadline::new();
    let (mut responses, mut flows) = (Vec::new(), Vec::new());
    for collector in selected(api, collector.as_deref())? {
        let answer = collector.flow(key, deadline.left());
        responses.push(convert::collector_response(&collector, &answer));
        let found = answer.ok().and_then(|asked| asked.value);
        let switch = &collector.description().switch;
        flows.extend(
            found.map(|report| convert::flow(&report, collector.name(), switch, is_redirected(api, &key))),
        );
    }
    check_responses(&responses)?;
    match flows.is_empty() {
        true => Err(Problem::new(Code::NotFound, format!("no collector sees the flow {key}"))),
        false => Ok(Json(Flows { responses, total: flows.len() as u64, flows })),
    }
}

/// Whether isolation redirects this direction of a flow.
fn is_redirected(api: &Api, key: &FlowKey) -> bool {
    api.parts().isolation.as_ref().is_some_and(|isolation| isolation.state().redirects(key))
}

/// Collects the fastest flows, in memory for `room` of them.
pub(super) struct Fastest {
    room: usize,
    /// The slowest on top, which a faster flow replaces.
    heap: BinaryHeap<Ranked>,
    total: u64,
}

/// A flow, and the index of the collector that sees it.
struct Ranked {
    report: FlowReport,
    collector: usize,
}

impl Fastest {
    /// Returns the fastest `room` flows of these collectors that satisfy `is_wanted`.
    pub(super) fn of(
        api: &Api,
        collectors: &[CollectorHandle],
        Count(room): Limit,
        is_wanted: impl Fn(&FlowReport) -> bool,
    ) -> Result<Flows, Problem> {
        let mut fastest = Fastest { room, heap: BinaryHeap::new(), total: 0 };
        let deadline = RequestDeadline::new();
        let mut responses = Vec::new();
        for (collector, handle) in collectors.iter().enumerate() {
            let end = handle.flows(deadline.left(), |report| {
                if is_wanted(&report) {
                    fastest.add(Ranked { report, collector });
                }
            });
            responses.push(convert::collector_response_at(handle, end));
        }
        check_responses(&responses)?;
        let total = fastest.total;
        let view = |ranked: &Ranked| {
            let description = collectors[ranked.collector].description();
            let is_redirected = is_redirected(api, &ranked.report.key);
            convert::flow(&ranked.report, &description.name, &description.switch, is_redirected)
        };
        let flows = fastest.heap.into_sorted_vec().iter().map(view).collect();
        Ok(Flows { responses, total, flows })
    }

    fn add(&mut self, flow: Ranked) {
        self.total += 1;
        if self.heap.len() < self.room {
            self.heap.push(flow);
        } else if let Some(mut slowest) = self.heap.peek_mut()
            && flow < *slowest
        {
            *slowest = flow;
        }
    }
}

impl Ranked {
    /// Returns the rate in bits per second; below zero before the first estimate.
    fn rate(&self) -> f64 {
        self.report.rate.map_or(-1.0, |known| known.rate.value)
    }
}

/// Orders by rate, then by samples, both descending, then by key.
impl Ord for Ranked {
    fn cmp(&self, other: &Ranked) -> Ordering {
        let by_rate = other.rate().total_cmp(&self.rate());
        by_rate
            .then_with(|| other.report.samples.cmp(&self.report.samples))
            .then_with(|| self.report.key.cmp(&other.report.key))
            .then_with(|| self.collector.cmp(&other.collector))
    }
}

impl PartialOrd for Ranked {
    fn partial_cmp(&self, other: &Ranked) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Ranked {
    fn eq(&self, other: &Ranked) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Ranked {}
