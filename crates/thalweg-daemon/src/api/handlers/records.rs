//! Stored flow records: top talkers, traffic over time, flowsets.

use std::collections::BTreeMap;
use std::str::FromStr;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use thalweg_api::problem::{Code, Problem};
use thalweg_api::{
    FlowsetRules, FlowsetSort, FlowsetTotal, KeyValue, RecordCoverage, RecordFlowsets, RecordGroup,
    RecordSeries, RecordSort, RecordTop, RecordTotal, SeriesGroup, StoredFlowset, UnreadableFile, UtcTime,
};
use thalweg_http::input::Query;
use thalweg_http::output::Json;
use thalweg_http::parameters::{Count, Number, Parsed};
use thalweg_linux::clock::realtime;
use thalweg_measure::filter::{FlowFilter, RECORDS};
use thalweg_records::analyse::{self, Flowset, FlowsetOrder, largest_flowsets};
use thalweg_records::select::Selection;
use thalweg_records::top::dimension::Dimensions;
use thalweg_records::top::series::{self, Intervals, series};
use thalweg_records::top::{Once, Options, Order, Top, Value, top_of};
use thalweg_wire::Timestamp;

use crate::api::Api;
use crate::record_store::{MEMORY_BYTES, QueryError, RecordRange, RecordStore, Stopped};

/// Length of the default time range.
const DEFAULT_RANGE: Duration = Duration::from_secs(3600);

/// Maximum number of unreadable files that an answer names.
const MAX_UNREADABLE: usize = 20;

/// Gap between records from which they belong to different flows: the default of `thalweg flows`.
const GAP_US: i64 = 60_000_000;

/// When a client may retry.
const RETRY_AFTER: Duration = Duration::from_secs(2);

/// Lengths of intervals in milliseconds that are easy to read.
const INTERVALS_MS: [u64; 27] = [
    1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 15_000, 30_000, 60_000, 120_000,
    300_000, 600_000, 900_000, 1_800_000, 3_600_000, 7_200_000, 10_800_000, 21_600_000, 43_200_000,
    86_400_000,
];

/// A flow filter for stored records.
pub(super) struct RecordFilter(FlowFilter);

impl FromStr for RecordFilter {
    type Err = String;

    fn from_str(text: &str) -> Result<RecordFilter, String> {
        FlowFilter::compile(text, &RECORDS).map(RecordFilter).map_err(|error| error.message())
    }
}

/// Which groups of records.
#[derive(Deserialize, JsonSchema)]
pub(in crate::api) struct TopParams {
    /// What to group by, separated by commas: src, dst, address, pair, src-port, dst-port, port, protocol, src-as, dst-as, as,
    /// as-pair, exporter, ingress-interface, egress-interface, next-hop, tos, vlan, format; default src.
    #[schemars(example = &"protocol,dst-port")]
    by: Option<Parsed<Dimensions>>,
    /// Only records received at this time or later; default: an hour before the end.
    #[schemars(example = &"2026-11-21T22:00:00Z")]
    start: Option<Parsed<UtcTime>>,
    /// Only records received before this time; default: now.
    #[schemars(example = &"2026-11-21T23:00:00Z")]
    end: Option<Parsed<UtcTime>>,
    /// Maximum number of groups, the largest first: 1 to 1,000; default 10.
    #[serde(default)]
    #[schemars(example = 20)]
    limit: Count<10, 1_000>,
    /// Only records that match this flow filter in nfdump syntax; docs/reference/flow-filter.md lists its terms.
    #[schemars(example = &"dst%20net%2010.0.0.0/8%20and%20proto%20tcp")]
    filter: Option<Parsed<RecordFilter>>,
    /// What to sort by: bytes, packets or flows; default bytes.
    #[schemars(example = &"packets")]
    sort: Option<Parsed<RecordSort>>,
}

/// `GET /v1/records/top`
pub(in crate::api) fn top(api: &Api, Query(params): Query<TopParams>) -> Result<Json<RecordTop>, Problem> {
    let store = store(api)?;
    let range = range(params.start, params.end, params.filter)?;
    let dimensions = params.by.map_or_else(source, |Parsed(by)| by);
    let sort = params.sort.map_or_else(RecordSort::default, |Parsed(sort)| sort);
    let order = match sort {
        RecordSort::Bytes => Order::Bytes,
        RecordSort::Packets => Order::Packets,
        RecordSort::Flows => Order::Flows,
    };
    let options = options(&dimensions, order, params.limit.0);
    let (top, selection) = store
        .query(&range, |selection, progress| Ok(top_of(selection, &options, progress)?))
        .map_err(|error| problem(&error))?;
    let Top { groups, total, total_groups, records_left_out, .. } = top;
    let group = |group: thalweg_records::top::Group| RecordGroup {
        name: name(&group.key),
        key: key(&dimensions, &group.key),
        bytes: count(group.bytes),
        packets: count(group.packets),
        flows: count(group.flows),
        share: group.share,
        flow_start: time(group.flow_start_us),
        flow_end: time(group.flow_end_us),
    };
    Ok(Json(RecordTop {
        coverage: coverage(store, &range, &selection, records_left_out),
        key: names(&dimensions),
        sort,
        total: RecordTotal {
            groups: total_groups,
            bytes: count(total.bytes),
            packets: count(total.packets),
            flows: count(total.flows),
        },
        groups: groups.into_iter().map(group).collect(),
    }))
}

/// Which series of records.
#[derive(Deserialize, JsonSchema)]
pub(in crate::api) struct SeriesParams {
    /// What to group by, as for /v1/records/top, without address, port and as; default: all traffic is one group.
    #[schemars(example = &"protocol")]
    by: Option<Parsed<Dimensions>>,
    /// Start of the time range, and only records received at this time or later; default: an hour before the end.
    #[schemars(example = &"2026-11-21T22:00:00Z")]
    start: Option<Parsed<UtcTime>>,
    /// End of the time range, and only records received before this time; default: now.
    #[schemars(example = &"2026-11-21T23:00:00Z")]
    end: Option<Parsed<UtcTime>>,
    /// Maximum number of intervals: 1 to 2,000; default 120. Their length is such as 10 s, 1 min or 1 h.
    #[serde(default)]
    #[schemars(example = 60)]
    buckets: Count<120, 2_000>,
    /// Maximum number of groups, the largest first; all others are one group: 1 to 20; default 5.
    #[serde(default)]
    #[schemars(example = 5)]
    limit: Count<5, 20>,
    /// Only records that match this flow filter in nfdump syntax; docs/reference/flow-filter.md lists its terms.
    #[schemars(example = &"dst%20net%2010.0.0.0/8%20and%20proto%20tcp")]
    filter: Option<Parsed<RecordFilter>>,
}

/// `GET /v1/records/series`
pub(in crate::api) fn over_time(
    api: &Api,
    Query(params): Query<SeriesParams>,
) -> Result<Json<RecordSeries>, Problem> {
    let store = store(api)?;
    let range = range(params.start, params.end, params.filter)?;
    let dimensions = params.by.map(|Parsed(by)| by);
    if dimensions.as_ref().is_some_and(Dimensions::takes_either_end) {
        let text = "by: address, port and as count each record for both ends, so groups do not add up; use src or dst";
        return Err(Problem::new(Code::BadParameter, text));
    }
    let length_us = interval_us(range.start_us, range.end_us, params.buckets.0);
    let intervals = Intervals::of_range(range.start_us, range.end_us, length_us)
        .map_err(|error| Problem::new(Code::BadParameter, error))?;
    let options = match &dimensions {
        Some(dimensions) => options(dimensions, Order::Bytes, params.limit.0),
        None => Options { key: Vec::new(), ..options(&source(), Order::Bytes, 1) },
    };
    let (found, selection) = store
        .query(&range, |selection, progress| Ok(series(selection, &options, intervals, progress)?))
        .map_err(|error| problem(&error))?;
    let seconds = length_us as f64 / 1e6;
    let group = |group: &series::SeriesGroup, is_other: bool| SeriesGroup {
        name: if is_other { "other".to_owned() } else { name(&group.key) },
        key: (!is_other).then(|| dimensions.as_ref().map_or_else(BTreeMap::new, |by| key(by, &group.key))),
        total_bytes: count(group.total_bytes),
        bytes_outside: count(group.bytes_outside()),
        rate_bps: group.bytes.iter().map(|&bytes| bytes as f64 * 8.0 / seconds).collect(),
        bytes: group.bytes.iter().map(|&bytes| count(bytes)).collect(),
    };
    let mut groups: Vec<SeriesGroup> = found.groups.iter().map(|found| group(found, false)).collect();
    groups.extend(found.other.iter().map(|other| group(other, true)));
    let start = |index: usize| time(intervals.first_us + index as i64 * intervals.length_us);
    Ok(Json(RecordSeries {
        coverage: coverage(store, &range, &selection, found.records_left_out),
        key: dimensions.as_ref().map_or_else(Vec::new, names),
        interval_ns: length_us.unsigned_abs() * 1000,
        times: (0..intervals.count).map(start).collect(),
        groups,
    }))
}

/// Which flowsets.
#[derive(Deserialize, JsonSchema)]
pub(in crate::api) struct FlowsetParams {
    /// Only records received at this time or later; default: an hour before the end.
    #[schemars(example = &"2026-11-21T22:00:00Z")]
    start: Option<Parsed<UtcTime>>,
    /// Only records received before this time; default: now.
    #[schemars(example = &"2026-11-21T23:00:00Z")]
    end: Option<Parsed<UtcTime>>,
    /// Maximum number of flowsets, the largest first: 1 to 1,000; default 20.
    #[serde(default)]
    #[schemars(example = 20)]
    limit: Count<20, 1_000>,
    /// What to sort by: bytes, duration, rate or flows; default bytes.
    #[schemars(example = &"rate")]
    sort: Option<Parsed<FlowsetSort>>,
    /// `true`: flowsets of all flows; `false`: only of elephants. Default false.
    #[schemars(example = &"true")]
    all_flows: Option<Parsed<bool>>,
    /// An elephant flow sends more than this many bytes within a minute; default 1,000,000,000.
    #[schemars(example = 10_000_000)]
    threshold: Option<Number>,
    /// Only records that match this flow filter in nfdump syntax, before flows are made of them; docs/reference/flow-filter.md
    /// lists its terms.
    #[schemars(example = &"dst%20net%2010.0.0.0/8%20and%20proto%20tcp")]
    filter: Option<Parsed<RecordFilter>>,
}

/// `GET /v1/records/flowsets`
pub(in crate::api) fn flowsets(
    api: &Api,
    Query(params): Query<FlowsetParams>,
) -> Result<Json<RecordFlowsets>, Problem> {
    let store = store(api)?;
    let range = range(params.start, params.end, params.filter)?;
    let sort = params.sort.map_or_else(FlowsetSort::default, |Parsed(sort)| sort);
    let order = match sort {
        FlowsetSort::Bytes => FlowsetOrder::Bytes,
        FlowsetSort::Duration => FlowsetOrder::Duration,
        FlowsetSort::Rate => FlowsetOrder::Rate,
        FlowsetSort::Flows => FlowsetOrder::Flows,
    };
    let defaults = analyse::Options::default();
    let threshold_bytes = match params.threshold {
        Some(Number(bytes)) => i64::try_from(bytes)
            .map_err(|_| Problem::new(Code::BadParameter, "threshold: expected at most 2^63 - 1"))?,
        None => defaults.threshold_bytes,
    };
    let options = analyse::Options {
        threshold_bytes,
        elephants_only: !params.all_flows.is_some_and(|Parsed(all)| all),
        memory_bytes: MEMORY_BYTES,
        threads: 1,
        ..defaults
    };
    let ((found, statistics), selection) = store
        .query(&range, |selection, progress| {
            largest_flowsets(selection, (order, params.limit.0), &options, progress).map_err(Stopped::from)
        })
        .map_err(|error| problem(&error))?;
    let nanos = |us: i64| us.unsigned_abs().saturating_mul(1000);
    Ok(Json(RecordFlowsets {
        // A flow is counted once when it is reconstructed, without leaving records out.
        coverage: coverage(store, &range, &selection, 0),
        sort,
        rules: FlowsetRules {
            all_flows: !options.elephants_only,
            gap_ns: nanos(options.gap_us),
            threshold_bytes: count(options.threshold_bytes),
            window_ns: nanos(options.window_us),
            tau_ns: nanos(options.tau_us),
        },
        total: FlowsetTotal {
            flows: statistics.flows,
            elephants: statistics.elephants,
            flowsets: statistics.flowsets,
            single_flows: statistics.single_flows,
        },
        flowsets: found.iter().map(flowset).collect(),
    }))
}

fn flowset(set: &Flowset) -> StoredFlowset {
    StoredFlowset {
        src: set.source_address.to_string(),
        dst: set.destination_address.to_string(),
        flow_start: time(set.flow_start_us),
        flow_end: time(set.flow_end_us),
        flows: count(set.flows),
        bytes: count(set.octets),
        packets: count(set.packets),
        duration_ns: count(set.duration_us()).saturating_mul(1000),
        rate_bps: set.rate_bps(),
        src_as: set.source_as,
        dst_as: set.destination_as,
    }
}

/// Returns the store; a problem if none is configured.
fn store(api: &Api) -> Result<&RecordStore, Problem> {
    let missing = || {
        let text = "no stored flow records: set records.folder in the configuration of the daemon";
        Problem::new(Code::NotConfigured, text)
    };
    api.parts().record_store.as_deref().ok_or_else(missing)
}

/// Returns the records of a time range, by default the last hour.
fn range(
    start: Option<Parsed<UtcTime>>,
    end: Option<Parsed<UtcTime>>,
    filter: Option<Parsed<RecordFilter>>,
) -> Result<RecordRange, Problem> {
    let end = end.map_or_else(realtime, |Parsed(UtcTime(end))| end);
    let start = start.map_or_else(
        || Timestamp(end.0.saturating_sub(DEFAULT_RANGE.as_nanos() as u64)),
        |Parsed(UtcTime(start))| start,
    );
    if start >= end {
        let text = format!("start: expected a time before the end, {end}, not {start}");
        return Err(Problem::new(Code::BadParameter, text));
    }
    let (start_us, end_us) = ((start.0 / 1000) as i64, end.0.div_ceil(1000) as i64);
    let filter = filter.map_or_else(FlowFilter::default, |Parsed(RecordFilter(filter))| filter);
    Ok(RecordRange { start_us, end_us, filter })
}

/// Returns the default dimension.
fn source() -> Dimensions {
    "src".parse().expect("a known dimension")
}

fn options(dimensions: &Dimensions, order: Order, limit: usize) -> Options {
    Options {
        key: dimensions.key().to_vec(),
        order,
        limit: Some(limit),
        once: Some(Once { gap_us: GAP_US, per_exporter: dimensions.is_per_router() }),
        memory_bytes: MEMORY_BYTES,
        threads: 1,
    }
}

/// Returns the shortest length of an interval with at most so many intervals.
fn interval_us(start_us: i64, end_us: i64, max: usize) -> i64 {
    let is_enough = |&length_us: &i64| {
        let first_us = start_us - start_us.rem_euclid(length_us);
        (end_us - first_us).unsigned_abs().div_ceil(length_us.unsigned_abs()) <= max as u64
    };
    let days = (1..).map(|days| days * 86_400_000_000);
    let lengths = INTERVALS_MS.into_iter().map(|length_ms| length_ms as i64 * 1000);
    lengths.chain(days).find(is_enough).expect("a range is shorter than all days since 1970")
}

fn problem(error: &QueryError) -> Problem {
    match error {
        QueryError::Busy => Problem::new(Code::TooManyRequests, error).retry_after(RETRY_AFTER),
        QueryError::Slow(_) | QueryError::Memory(_) => Problem::new(Code::Unavailable, error),
        QueryError::Failed(_) => Problem::new(Code::Internal, error),
    }
}

fn coverage(
    store: &RecordStore,
    range: &RecordRange,
    selection: &Selection,
    duplicate_records: u64,
) -> RecordCoverage {
    let unreadable = selection.unreadable().iter().take(MAX_UNREADABLE).map(|file| UnreadableFile {
        file: file.path.strip_prefix(store.folder()).unwrap_or(&file.path).display().to_string(),
        error: file.error.clone(),
    });
    RecordCoverage {
        start: time(range.start_us),
        end: time(range.end_us),
        partial: selection.is_partial(),
        covered_start: time(selection.covered_start_us()),
        files: selection.files() as u64,
        unreadable_files: selection.unreadable().len() as u64,
        unreadable: unreadable.collect(),
        records: selection.rows(),
        matching_records: selection.selected(),
        duplicate_records,
        pending_records: store.pending_records(),
    }
}

fn names(dimensions: &Dimensions) -> Vec<String> {
    dimensions.names().iter().map(|&name| name.to_owned()).collect()
}

fn key(dimensions: &Dimensions, values: &[Value]) -> BTreeMap<String, KeyValue> {
    names(dimensions).into_iter().zip(values.iter().map(key_value)).collect()
}

fn name(values: &[Value]) -> String {
    values.iter().map(|value| key_value(value).to_string()).collect::<Vec<_>>().join(" ")
}

fn key_value(value: &Value) -> KeyValue {
    match value {
        Value::Address(address) => KeyValue::Text(address.to_string()),
        Value::Number(number) => KeyValue::Number((*number).into()),
        Value::Count(number) => KeyValue::Number(*number),
        Value::Mac(mac) => KeyValue::Text(mac.to_string()),
        Value::Name(name) => KeyValue::Text(name.text().to_owned()),
        Value::Format(format) => KeyValue::Text(format.name().to_owned()),
    }
}

/// Converts a count, which is not negative.
fn count(count: i64) -> u64 {
    count.max(0).unsigned_abs()
}

fn time(us: i64) -> UtcTime {
    Timestamp((us.max(0) as u64).saturating_mul(1000)).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_are_the_shortest_that_suffice() {
        let minute_us = 60_000_000;
        for (length_us, max, expected_us) in [
            (60 * minute_us, 120, 30_000_000),
            (60 * minute_us, 119, minute_us),
            (1000, 1, 1000),
            (400 * 24 * 60 * minute_us, 120, 4 * 24 * 60 * minute_us),
        ] {
            assert_eq!(interval_us(0, length_us, max), expected_us, "{length_us} {max}");
        }
        // An interval that begins before the range counts.
        assert_eq!(interval_us(1_000_000, 61_000_000, 1), 2 * minute_us);
    }
}
