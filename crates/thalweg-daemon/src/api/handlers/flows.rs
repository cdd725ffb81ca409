//! Flows: the fastest, one by its key, those that are cheetahs.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use schemars::JsonSchema;
use serde::Deserialize;
use thalweg_api::Flows;
use thalweg_api::problem::{Code, Problem};
use thalweg_measure::collector::FlowReport;
use thalweg_wire::FlowKey;

use super::{CollectorParam, Patience, Top, TopParams, asked, check_answered};
use crate::api::{Api, convert};
use crate::collectors::CollectorHandle;
use thalweg_http::input::{Path, Query};
use thalweg_http::output::Json;
use thalweg_http::parameters::{Count, Parsed};

/// One direction of a flow.
#[derive(Deserialize, JsonSchema)]
pub(in crate::api) struct FlowPath {
    /// The flow's direction, as `key` in other answers, percent-encoded: PROTOCOL SOURCE > DESTINATION.
    #[schemars(example = &"tcp%2010.0.0.1:443%20%3E%2010.0.0.2:51000")]
    key: Parsed<FlowKey>,
}

/// `GET /v1/flows`
pub(in crate::api) fn top(api: &Api, Query(params): Query<TopParams>) -> Result<Json<Flows>, Problem> {
    let collectors = asked(api, params.collector.as_deref())?;
    Ok(Json(Fastest::of(&collectors, params.top, |flow| params.matches(flow))?))
}

/// `GET /v1/cheetahs`
pub(in crate::api) fn cheetahs(api: &Api, Query(params): Query<TopParams>) -> Result<Json<Flows>, Problem> {
    let collectors = asked(api, params.collector.as_deref())?;
    Ok(Json(Fastest::of(&collectors, params.top, |flow| flow.is_cheetah && params.matches(flow))?))
}

/// `GET /v1/flows/{key}`
pub(in crate::api) fn one(
    api: &Api,
    Path(FlowPath { key: Parsed(key) }): Path<FlowPath>,
    Query(CollectorParam { collector }): Query<CollectorParam>,
) -> Result<Json<Flows>, Problem> {
    let patience = Patience::new();
    let (mut answered, mut flows) = (Vec::new(), Vec::new());
    for collector in asked(api, collector.as_deref())? {
        let answer = collector.flow(key, patience.left());
        answered.push(convert::answered(&collector, &answer));
        let found = answer.ok().and_then(|asked| asked.value);
        flows.extend(
            found.map(|report| convert::flow(&report, collector.name(), &collector.description().switch)),
        );
    }
    check_answered(&answered)?;
    match flows.is_empty() {
        true => Err(Problem::new(Code::NotFound, format!("no collector sees a flow {key}"))),
        false => Ok(Json(Flows { answered, total: flows.len() as u64, flows })),
    }
}

/// The fastest flows of those that come by, in memory for as many as are asked for.
pub(super) struct Fastest {
    room: usize,
    /// The slowest on top, to make room for a faster one.
    heap: BinaryHeap<Ranked>,
    total: u64,
}

/// A flow, and which of the collectors that were asked sees it.
struct Ranked {
    report: FlowReport,
    collector: usize,
}

impl Fastest {
    /// The fastest flows of these collectors that are wanted, as many as `room`.
    pub(super) fn of(
        collectors: &[CollectorHandle],
        Count(room): Top,
        is_wanted: impl Fn(&FlowReport) -> bool,
    ) -> Result<Flows, Problem> {
        let mut fastest = Fastest { room, heap: BinaryHeap::new(), total: 0 };
        let patience = Patience::new();
        let mut answered = Vec::new();
        for (collector, handle) in collectors.iter().enumerate() {
            let end = handle.flows(patience.left(), |report| {
                if is_wanted(&report) {
                    fastest.add(Ranked { report, collector });
                }
            });
            answered.push(convert::answered_at(handle, end));
        }
        check_answered(&answered)?;
        let total = fastest.total;
        let view = |ranked: &Ranked| {
            let description = collectors[ranked.collector].description();
            convert::flow(&ranked.report, &description.name, &description.switch)
        };
        let flows = fastest.heap.into_sorted_vec().iter().map(view).collect();
        Ok(Flows { answered, total, flows })
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
    /// Bits per second; below zero before the first estimate.
    fn rate(&self) -> f64 {
        self.report.rate.map_or(-1.0, |known| known.rate.value)
    }
}

/// The faster comes first; of two that are as fast the one with more samples, and then by key.
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
