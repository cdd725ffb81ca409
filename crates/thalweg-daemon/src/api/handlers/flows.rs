//! Flows: the fastest flows, one flow by its key, cheetah flows.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use schemars::JsonSchema;
use serde::Deserialize;
use thalweg_api::Flows;
use thalweg_api::problem::{Code, Problem};
use thalweg_measure::collector::FlowReport;
use thalweg_wire::FlowKey;

use super::{CollectorParam, FlowSort, LimitParams, RequestDeadline, SortOrder, check_responses, selected};
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
    pub(super) key: Parsed<FlowKey>,
}

/// `GET /v1/flows`
pub(in crate::api) fn top(api: &Api, Query(params): Query<LimitParams>) -> Result<Json<Flows>, Problem> {
    let collectors = selected(api, params.collector.as_deref())?;
    Ok(Json(Ranking::of(api, &collectors, &params, |flow| params.matches(flow))?))
}

/// `GET /v1/cheetahs`
pub(in crate::api) fn cheetahs(api: &Api, Query(params): Query<LimitParams>) -> Result<Json<Flows>, Problem> {
    let collectors = selected(api, params.collector.as_deref())?;
    Ok(Json(Ranking::of(api, &collectors, &params, |flow| flow.is_cheetah && params.matches(flow))?))
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

/// Collects the first flows in an order, in memory for `room` of them.
pub(super) struct Ranking {
    sort: FlowSort,
    is_ascending: bool,
    room: usize,
    /// The last of them on top, which a better one replaces.
    heap: BinaryHeap<Ranked>,
    total: u64,
}

/// A flow, and the index of the collector that sees it. The first in the order is the least.
struct Ranked {
    /// The value by which flows are sorted, the greatest first.
    rank: f64,
    is_key_reversed: bool,
    report: FlowReport,
    collector: usize,
}

impl Ranking {
    /// Returns the selected flows of these collectors that satisfy `is_wanted`.
    pub(super) fn of(
        api: &Api,
        collectors: &[CollectorHandle],
        params: &LimitParams,
        is_wanted: impl Fn(&FlowReport) -> bool,
    ) -> Result<Flows, Problem> {
        let (offset, Count(limit)) = (params.offset()?, params.limit);
        let Parsed(sort) = params.sort.unwrap_or(Parsed(FlowSort::Rate));
        let is_ascending = matches!(params.order, Some(Parsed(SortOrder::Ascending)));
        let room = offset + limit;
        let mut ranking = Ranking { sort, is_ascending, room, heap: BinaryHeap::new(), total: 0 };
        let deadline = RequestDeadline::new();
        let mut responses = Vec::new();
        for (collector, handle) in collectors.iter().enumerate() {
            let end = handle.flows(deadline.left(), |report| {
                if is_wanted(&report) {
                    ranking.add(report, collector);
                }
            });
            responses.push(convert::collector_response_at(handle, end));
        }
        check_responses(&responses)?;
        let total = ranking.total;
        let view = |ranked: &Ranked| {
            let description = collectors[ranked.collector].description();
            let is_redirected = is_redirected(api, &ranked.report.key);
            convert::flow(&ranked.report, &description.name, &description.switch, is_redirected)
        };
        let flows = ranking.heap.into_sorted_vec().iter().skip(offset).map(view).collect();
        Ok(Flows { responses, total, flows })
    }

    fn add(&mut self, report: FlowReport, collector: usize) {
        let value = self.sort.value(&report);
        let rank = if self.is_ascending { -value } else { value };
        // Keys are sorted from the least to the greatest, unless the order says otherwise.
        let is_key_reversed = self.sort == FlowSort::Key && !self.is_ascending;
        let flow = Ranked { rank, is_key_reversed, report, collector };
        self.total += 1;
        if self.heap.len() < self.room {
            self.heap.push(flow);
        } else if let Some(mut last) = self.heap.peek_mut()
            && flow < *last
        {
            *last = flow;
        }
    }
}

impl FlowSort {
    /// Returns the value by which flows are sorted; equal for flows that are sorted by their key alone.
    fn value(self, report: &FlowReport) -> f64 {
        match self {
            // Below zero before the first estimate.
            FlowSort::Rate => report.rate.map_or(-1.0, |known| known.rate.value),
            FlowSort::Bytes => report.sampled.0 as f64,
            FlowSort::Samples => report.samples as f64,
            FlowSort::Retransmitted => report.repeated.0 as f64,
            FlowSort::Start => report.first.0 as f64,
            FlowSort::End => report.last.0 as f64,
            FlowSort::Key => 0.0,
        }
    }
}

/// Orders by rank, then by key. Equal ranks of most sorts are of flows with few samples.
impl Ord for Ranked {
    fn cmp(&self, other: &Ranked) -> Ordering {
        let by_rank = other.rank.total_cmp(&self.rank);
        let by_key = self.report.key.cmp(&other.report.key);
        let by_key = if self.is_key_reversed { by_key.reverse() } else { by_key };
        by_rank.then(by_key).then_with(|| self.collector.cmp(&other.collector))
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
