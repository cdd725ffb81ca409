//! JSON lines, one object per line, tagged by `type`. Documented in `docs/reference/json.md`.

use serde::Serialize;
pub(super) use thalweg_api::FlowName as Flow;
use thalweg_api::UtcTime;
use thalweg_measure::detect::{Cheetah, CheetahEnd, Finding};
use thalweg_measure::filter::FlowFilter;
use thalweg_measure::meter::intake::Tally;
use thalweg_measure::meter::record::EndReason;
use thalweg_records::export::{Destination, ExportCounters, Reason};
use thalweg_records::store::Statistics;
use thalweg_wire::parse::Malformed;

use super::groups::{GroupLine, GroupsSummary};
use super::tasks::json::{TasksSummary, WindowLine};
use thalweg_watch::MeterCounters;
use thalweg_watch::Totals;
use thalweg_watch::in_kernel::InKernelTotals;
use thalweg_watch::json::{FlatEstimate, FlowLine};

/// A JSON line.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Line<'a> {
    Cheetah(CheetahLine),
    CheetahEnd(CheetahEndLine),
    Flow(FlowLine),
    Host(GroupLine<'a>),
    Pair(GroupLine<'a>),
    Window(WindowLine),
    KeptWindows(WindowLine),
    Summary(Box<Summary<'a>>),
}

#[derive(Debug, Serialize)]
pub(super) struct CheetahLine {
    flow: Flow,
    flow_start: UtcTime,
    detected: UtcTime,
    rate_bps: u64,
    bytes: u64,
}

#[derive(Debug, Serialize)]
pub(super) struct CheetahEndLine {
    flow: Flow,
    flow_start: UtcTime,
    flow_end: UtcTime,
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
    start: Option<UtcTime>,
    end: Option<UtcTime>,
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
    backward_timestamps: u64,
    beyond_snap_length: u64,
    ports_not_captured: u64,
    portless_fragments: u64,
    length_from_frame: u64,
    length_beyond_frame: u64,
    decapsulated: u64,
    merged_frames: u64,
    #[serde(flatten)]
    ends: Option<TableEnds>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tasks: Option<TasksSummary>,
    #[serde(skip_serializing_if = "Option::is_none")]
    groups: Option<GroupsSummary>,
    #[serde(skip_serializing_if = "Option::is_none")]
    in_kernel: Option<InKernelSummary<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ipfix: Option<IpfixSummary>,
    #[serde(skip_serializing_if = "Option::is_none")]
    store: Option<StoreSummary>,
    #[serde(skip_serializing_if = "str::is_empty")]
    filter: &'a str,
    memory_bytes: u64,
    threads: usize,
    elapsed_ns: u64,
    incomplete_sources: Vec<IncompleteSource<'a>>,
}

/// Counts of the flow table and its detector.
#[derive(Debug, Serialize)]
struct TableCounts {
    flows: u64,
    cheetahs: u64,
}

/// End reasons of flows, and counters of detectors.
#[derive(Debug, Serialize)]
struct TableEnds {
    records: serde_json::Map<String, serde_json::Value>,
    evicted: u64,
    untracked: u64,
    undecided: u64,
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

/// Counters of the IPFIX export.
#[derive(Debug, Serialize)]
struct IpfixSummary {
    collector: String,
    messages: u64,
    bytes: u64,
    flow_records: u64,
    lost_records: serde_json::Map<String, serde_json::Value>,
}

/// Counters of the Parquet store.
#[derive(Debug, Serialize)]
struct StoreSummary {
    written: u64,
    files: u64,
    in_spool: u64,
    lost: u64,
}

/// Sketches in the kernel.
#[derive(Debug, Serialize)]
struct InKernelSummary<'a> {
    interface: &'a str,
    hook: &'a str,
    resumed: bool,
    parsed_packets: u64,
    #[serde(flatten)]
    uncounted: FlatEstimate,
    #[serde(flatten)]
    ip_bytes: FlatEstimate,
    missed_keys: u64,
    skew_packets: u64,
    memory_bytes: u64,
}

#[derive(Debug, Serialize)]
struct IncompleteSource<'a> {
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
            flow_start: cheetah.first.into(),
            detected: cheetah.detected.into(),
            rate_bps: cheetah.rate.0,
            bytes: cheetah.bytes.0,
        }
    }
}

impl From<&CheetahEnd> for CheetahEndLine {
    fn from(end: &CheetahEnd) -> CheetahEndLine {
        CheetahEndLine {
            flow: Flow::from(&end.key),
            flow_start: end.first.into(),
            flow_end: end.last.into(),
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
            undecided: meter.undecided,
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

impl From<(&Destination, &ExportCounters)> for IpfixSummary {
    fn from((destination, tallies): (&Destination, &ExportCounters)) -> IpfixSummary {
        let sent = tallies.sent();
        let not_sent = |reason: &Reason| count(reason.name(), tallies.not_sent(*reason).flow_records);
        IpfixSummary {
            collector: destination.to_string(),
            messages: sent.messages,
            bytes: sent.octets,
            flow_records: sent.flow_records,
            lost_records: Reason::ALL.iter().map(not_sent).collect(),
        }
    }
}

impl From<Statistics> for StoreSummary {
    fn from(store: Statistics) -> StoreSummary {
        let (written, files) = (store.written, store.files);
        StoreSummary { written, files, in_spool: store.in_spool, lost: store.lost.total() }
    }
}

fn count(name: &str, count: u64) -> (String, serde_json::Value) {
    (name.to_owned(), count.into())
}

impl<'a> From<&'a InKernelTotals> for InKernelSummary<'a> {
    fn from(totals: &'a InKernelTotals) -> InKernelSummary<'a> {
        InKernelSummary {
            interface: &totals.interface,
            hook: &totals.hook,
            resumed: totals.is_resumed,
            parsed_packets: totals.parsed,
            uncounted: FlatEstimate::one_of_several("uncounted_packets", totals.uncounted),
            ip_bytes: FlatEstimate::one_of_several("ip_bytes", totals.ip_bytes),
            missed_keys: totals.missed_keys,
            skew_packets: totals.skew,
            memory_bytes: totals.memory.0,
        }
    }
}

/// Returns the object `in_kernel` of a summary.
pub fn in_kernel_object(totals: &InKernelTotals) -> serde_json::Value {
    serde_json::to_value(InKernelSummary::from(totals)).unwrap_or_default()
}

impl<'a> Summary<'a> {
    /// The totals of all traffic, and the filter that the lines before match.
    pub(super) fn new(
        totals: &'a Totals,
        filter: &'a FlowFilter,
        groups: Option<GroupsSummary>,
    ) -> Summary<'a> {
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
            start: totals.span.map(|(start, _)| start.into()),
            end: totals.span.map(|(_, end)| end.into()),
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
            backward_timestamps: intake.backwards,
            beyond_snap_length: source.beyond_snap_length,
            ports_not_captured: intake.ports_not_captured,
            portless_fragments: intake.portless_fragments,
            length_from_frame: intake.length_from_frame,
            length_beyond_frame: intake.length_beyond_frame,
            decapsulated: intake.decapsulated,
            merged_frames: totals.merged_frames(),
            ends: meter.map(TableEnds::from),
            tasks: totals.tasks.as_ref().map(TasksSummary::from),
            groups,
            in_kernel: totals.in_kernel.as_ref().map(InKernelSummary::from),
            ipfix: totals.exported.as_ref().and_then(|ledger| ledger.export()).map(IpfixSummary::from),
            store: totals.exported.as_ref().and_then(|ledger| ledger.store()).map(StoreSummary::from),
            filter: filter.text(),
            memory_bytes: totals.memory().0,
            threads: totals.workers,
            elapsed_ns: totals.elapsed.as_nanos() as u64,
            incomplete_sources: totals
                .incomplete
                .iter()
                .map(|cut| IncompleteSource { source: &cut.name, reason: &cut.reason })
                .collect(),
        }
    }
}
