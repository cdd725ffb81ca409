//! JSON lines: one object a line, `type` says which. Documented in `docs/reference/json.md`.

use serde::Serialize;
pub(super) use thalweg_api::FlowName as Flow;
use thalweg_measure::detect::{Cheetah, CheetahEnd, Finding};
use thalweg_measure::filter::FlowFilter;
use thalweg_measure::meter::intake::Tally;
use thalweg_measure::meter::record::EndReason;
use thalweg_records::export::{Destination, Reason, Tallies};
use thalweg_records::store::Statistics;
use thalweg_wire::parse::Malformed;

use super::tasks::json::{TasksSummary, WindowLine};
use thalweg_watch::MeterCounters;
use thalweg_watch::Totals;
use thalweg_watch::json::FlowLine;

/// One line.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Line<'a> {
    Cheetah(CheetahLine),
    CheetahEnd(CheetahEndLine),
    Flow(FlowLine),
    Window(WindowLine),
    KeptWindows(WindowLine),
    Summary(Box<Summary<'a>>),
}

#[derive(Debug, Serialize)]
pub(super) struct CheetahLine {
    flow: Flow,
    first_ns: u64,
    detected_ns: u64,
    rate_bps: u64,
    bytes: u64,
}

#[derive(Debug, Serialize)]
pub(super) struct CheetahEndLine {
    flow: Flow,
    first_ns: u64,
    last_ns: u64,
    packets: u64,
    bytes: u64,
}

#[derive(Debug, Serialize)]
pub(super) struct Summary<'a> {
    packets: u64,
    bytes: u64,
    frame_bytes: u64,
    ip_packets: u64,
    ip_bytes: u64,
    #[serde(flatten)]
    table: Option<TableCounts>,
    first_ns: u64,
    last_ns: u64,
    non_ip: u64,
    non_ip_bytes: u64,
    unsupported_link: u64,
    unsupported_link_bytes: u64,
    malformed: u64,
    malformed_bytes: u64,
    malformed_by_kind: serde_json::Map<String, serde_json::Value>,
    kernel_drops: u64,
    kernel_freezes: u64,
    filtered: u64,
    other_records: u64,
    backwards: u64,
    beyond_snap_length: u64,
    ports_not_captured: u64,
    portless_fragments: u64,
    length_from_frame: u64,
    length_beyond_frame: u64,
    peeled: u64,
    #[serde(flatten)]
    ends: Option<TableEnds>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tasks: Option<TasksSummary>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ipfix: Option<IpfixSummary>,
    #[serde(skip_serializing_if = "Option::is_none")]
    kept: Option<KeptSummary>,
    #[serde(skip_serializing_if = "str::is_empty")]
    filter: &'a str,
    memory_bytes: u64,
    threads: usize,
    elapsed_seconds: f64,
    cut_short: Vec<CutShortLine<'a>>,
}

/// What only the flow table and its detector know of.
#[derive(Debug, Serialize)]
struct TableCounts {
    flows: u64,
    cheetahs: u64,
}

/// How flows ended, and what detectors did.
#[derive(Debug, Serialize)]
struct TableEnds {
    records: serde_json::Map<String, serde_json::Value>,
    evicted: u64,
    untracked: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    cfinf: Option<CfinfSummary>,
}

#[derive(Debug, Serialize)]
struct CfinfSummary {
    protocol_drops: u64,
    length_drops: u64,
    sampling_drops: u64,
    entries_created: u64,
    entries_deleted: u64,
    evictions: u64,
}

/// What was sent as IPFIX.
#[derive(Debug, Serialize)]
struct IpfixSummary {
    collector: String,
    messages: u64,
    bytes: u64,
    flow_records: u64,
    not_sent: serde_json::Map<String, serde_json::Value>,
}

/// What was kept as Parquet.
#[derive(Debug, Serialize)]
struct KeptSummary {
    rows: u64,
    files: u64,
    in_spool: u64,
    lost: u64,
}

#[derive(Debug, Serialize)]
struct CutShortLine<'a> {
    source: &'a str,
    reason: &'a str,
}

impl From<&Finding> for Line<'_> {
    fn from(finding: &Finding) -> Self {
        match finding {
            Finding::Began(cheetah) => Line::Cheetah(cheetah.into()),
            Finding::Ended(end) => Line::CheetahEnd(end.into()),
        }
    }
}

impl From<&Cheetah> for CheetahLine {
    fn from(cheetah: &Cheetah) -> CheetahLine {
        CheetahLine {
            flow: Flow::from(&cheetah.key),
            first_ns: cheetah.first.0,
            detected_ns: cheetah.detected.0,
            rate_bps: cheetah.rate.0,
            bytes: cheetah.bytes.0,
        }
    }
}

impl From<&CheetahEnd> for CheetahEndLine {
    fn from(end: &CheetahEnd) -> CheetahEndLine {
        CheetahEndLine {
            flow: Flow::from(&end.key),
            first_ns: end.first.0,
            last_ns: end.last.0,
            packets: end.packets,
            bytes: end.bytes.0,
        }
    }
}

impl From<&MeterCounters> for TableEnds {
    fn from(meter: &MeterCounters) -> TableEnds {
        TableEnds {
            records: EndReason::ALL.iter().map(|end| count(end.name(), meter.table.ended(*end))).collect(),
            evicted: meter.table.ended(EndReason::Evicted),
            untracked: meter.untracked,
            cfinf: meter.cfinf.map(|cfinf| CfinfSummary {
                protocol_drops: cfinf.protocol_drops,
                length_drops: cfinf.length_drops,
                sampling_drops: cfinf.sampling_drops,
                entries_created: cfinf.created,
                entries_deleted: cfinf.deleted,
                evictions: cfinf.evictions,
            }),
        }
    }
}

impl From<(&Destination, &Tallies)> for IpfixSummary {
    fn from((destination, tallies): (&Destination, &Tallies)) -> IpfixSummary {
        let sent = tallies.sent();
        let not_sent = |reason: &Reason| count(reason.name(), tallies.not_sent(*reason).flow_records);
        IpfixSummary {
            collector: destination.to_string(),
            messages: sent.messages,
            bytes: sent.octets,
            flow_records: sent.flow_records,
            not_sent: Reason::ALL.iter().map(not_sent).collect(),
        }
    }
}

impl From<Statistics> for KeptSummary {
    fn from(store: Statistics) -> KeptSummary {
        let (rows, files) = (store.written, store.files);
        KeptSummary { rows, files, in_spool: store.in_spool, lost: store.lost.total() }
    }
}

fn count(name: &str, count: u64) -> (String, serde_json::Value) {
    (name.to_owned(), count.into())
}

impl<'a> Summary<'a> {
    /// The totals of all traffic, and the filter that the lines before match.
    pub(super) fn new(totals: &'a Totals, filter: &'a FlowFilter) -> Summary<'a> {
        let Totals { intake, source, .. } = totals;
        let meter = totals.meter.as_ref();
        let accounted = intake.accounted();
        let malformed = intake.malformed_total();
        let kinds = Malformed::ALL.iter().zip(&intake.malformed);
        Summary {
            packets: intake.frames.packets,
            bytes: accounted.bytes.0,
            frame_bytes: intake.frames.bytes.0,
            ip_packets: intake.ip.packets,
            ip_bytes: intake.ip.bytes.0,
            table: meter.map(|meter| TableCounts { flows: meter.table.flows, cheetahs: meter.cheetahs }),
            first_ns: totals.span.unwrap_or_default().0.0,
            last_ns: totals.span.unwrap_or_default().1.0,
            non_ip: intake.non_ip.packets,
            non_ip_bytes: intake.non_ip.bytes.0,
            unsupported_link: intake.unsupported_link.packets,
            unsupported_link_bytes: intake.unsupported_link.bytes.0,
            malformed: malformed.packets,
            malformed_bytes: malformed.bytes.0,
            malformed_by_kind: kinds
                .map(|(kind, Tally { packets, .. })| count(kind.name(), *packets))
                .collect(),
            kernel_drops: source.kernel_drops,
            kernel_freezes: source.kernel_freezes,
            filtered: source.filtered,
            other_records: source.other_records,
            backwards: intake.backwards,
            beyond_snap_length: source.beyond_snap_length,
            ports_not_captured: intake.ports_not_captured,
            portless_fragments: intake.portless_fragments,
            length_from_frame: intake.length_from_frame,
            length_beyond_frame: intake.length_beyond_frame,
            peeled: intake.peeled,
            ends: meter.map(TableEnds::from),
            tasks: totals.tasks.as_ref().map(TasksSummary::from),
            ipfix: totals.handed_on.as_ref().and_then(|ledger| ledger.export()).map(IpfixSummary::from),
            kept: totals.handed_on.as_ref().and_then(|ledger| ledger.store()).map(KeptSummary::from),
            filter: filter.text(),
            memory_bytes: totals.memory().0,
            threads: totals.workers,
            elapsed_seconds: totals.elapsed.as_secs_f64(),
            cut_short: totals
                .cut_short
                .iter()
                .map(|cut| CutShortLine { source: &cut.name, reason: &cut.reason })
                .collect(),
        }
    }
}
