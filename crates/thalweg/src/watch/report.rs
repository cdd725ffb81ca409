//! The text report.

use std::fmt::{self, Display};
use std::io::{self, Write};
use std::net::IpAddr;

use thalweg_measure::detect::{Cheetah, CheetahEnd};
use thalweg_measure::filter::FlowFilter;
use thalweg_measure::meter::record::{EndReason, FlowRecord};
use thalweg_records::export::Reason;
use thalweg_records::handoff::HandoffStatus;
use thalweg_wire::parse::Malformed;
use thalweg_wire::{BitRate, FlowKey, Nanos};

use super::groups;
use super::result_names::ResultNames;
use super::row::row;
use super::run::Results;
use super::tasks;
use crate::figures::{grouped, interval, number};
use thalweg_watch::Totals;
use thalweg_watch::groups::Grouping;
use thalweg_watch::in_kernel::InKernelTotals;
use thalweg_watch::options::{Detector, WatchOptions};
use thalweg_watch::snapshot;
use thalweg_watch::tasks::TaskLedger;
use thalweg_watch::{LinkMtu, MeterCounters};

/// Writes the report.
pub(super) fn write(
    out: &mut impl Write,
    totals: &Totals,
    results: &Results<'_>,
    options: &WatchOptions,
) -> io::Result<()> {
    traffic(out, totals, &options.flow_filter)?;
    if let Some(meter) = &totals.meter {
        cheetahs(out, totals, meter, options)?;
        match options.grouping {
            Grouping::Flow => largest(out, totals, &results.names)?,
            grouping => groups::report(out, grouping, &results.groups, &results.names, options.top)?,
        }
        table(out, totals, meter)?;
    }
    if let Some(ledger) = &totals.exported {
        exported(out, ledger)?;
    }
    if let Some(in_kernel) = &totals.in_kernel {
        self::in_kernel(out, in_kernel)?;
    }
    if let Some(ledger) = &totals.tasks {
        tasks(out, totals, ledger, options.top)?;
    }
    notes(out, totals)
}

fn traffic(out: &mut impl Write, totals: &Totals, filter: &FlowFilter) -> io::Result<()> {
    let intake = &totals.intake;
    let accounted = intake.accounted();
    let span = totals.duration();
    writeln!(out, "Traffic")?;
    row(out, "packets", format_args!("{} ({})", grouped(intake.frames.packets), accounted.bytes))?;
    if span > Nanos::ZERO {
        let rate = BitRate::of(accounted.bytes, span);
        let packets = intake.frames.packets as f64 / span.as_secs_f64();
        let (first, _) = totals.span.unwrap_or_default();
        row(out, "time", format_args!("{span} from {first}"))?;
        row(out, "rate", format_args!("{rate}, {} packets/s", grouped(packets as u64)))?;
    }
    if let Some(meter) = &totals.meter {
        row(out, "flows", grouped(meter.table.flows))?;
    }
    if !filter.is_empty() {
        row(out, "filter", format_args!("{} (lists only; all counts are of all traffic)", filter.line()))?;
    }
    writeln!(out)
}

fn cheetahs(
    out: &mut impl Write,
    totals: &Totals,
    meter: &MeterCounters,
    options: &WatchOptions,
) -> io::Result<()> {
    let threshold = options.threshold;
    if options.detector == Detector::None {
        return Ok(());
    }
    let within = match options.detector {
        Detector::Cfinf(_) => "a flight",
        _ => "some window",
    };
    writeln!(
        out,
        "Cheetah flows: {} (over {} in {within} of {})",
        grouped(meter.cheetahs),
        threshold.rate_threshold,
        threshold.flight_duration
    )?;
    let filter = &options.flow_filter;
    let matching =
        || totals.cheetahs.entries().filter(|entry| filter.matches(&snapshot::CheetahRow::from(*entry)));
    let shown: Vec<_> = matching().take(options.top).collect();
    if !shown.is_empty() {
        writeln!(out, "  {:>12} {:>10} {:>12} {:>10}  flow", "flight rate", "age", "bytes", "duration")?;
    }
    for (cheetah, end) in &shown {
        writeln!(out, "  {}", CheetahRow(cheetah, end.as_ref()))?;
    }
    let all = if filter.is_empty() { meter.cheetahs } else { matching().count() as u64 };
    let more = all.saturating_sub(shown.len() as u64);
    if more > 0 {
        writeln!(
            out,
            "  and {} more (--limit {} shows more, --json shows all)",
            grouped(more),
            (options.top * 10).max(10)
        )?;
    }
    writeln!(out)
}

struct CheetahRow<'a>(&'a Cheetah, Option<&'a CheetahEnd>);

impl Display for CheetahRow<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let CheetahRow(cheetah, end) = self;
        let age = (cheetah.detected - cheetah.first).to_string();
        let bytes = end.map_or(cheetah.bytes, |end| end.bytes).to_string();
        let duration = end.map_or_else(|| "running".to_owned(), |end| (end.last - end.first).to_string());
        write!(f, "{:>12} {age:>10} {bytes:>12} {duration:>10}  {}", cheetah.rate.to_string(), cheetah.key)
    }
}

fn largest(out: &mut impl Write, totals: &Totals, names: &ResultNames) -> io::Result<()> {
    if totals.largest.is_empty() {
        return Ok(());
    }
    writeln!(out, "Largest flows")?;
    writeln!(
        out,
        "  {:>12} {:>12} {:>10} {:>12}  flow (initiator > responder)",
        "bytes out", "bytes back", "duration", "mean rate"
    )?;
    for record in &totals.largest {
        writeln!(out, "  {}{}", FlowRow(record), names_of(&record.key, names))?;
    }
    writeln!(out)
}

/// Returns `  (name > name)` if a name is known.
fn names_of(key: &FlowKey, names: &ResultNames) -> String {
    let (src, dst) = (key.src(), key.dst());
    if names.of(src).is_none() && names.of(dst).is_none() {
        return String::new();
    }
    let name = |address: IpAddr| names.of(address).map_or_else(|| address.to_string(), str::to_owned);
    format!("  ({} > {})", name(src), name(dst))
}

struct FlowRow<'a>(&'a FlowRecord);

impl Display for FlowRow<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let record = self.0;
        let (forward, reverse) = (record.forward.bytes.to_string(), record.reverse.bytes.to_string());
        let (duration, rate) = match record.duration() {
            Nanos::ZERO => ("-".to_owned(), "-".to_owned()),
            span => (span.to_string(), BitRate::of(record.bytes(), span).to_string()),
        };
        write!(f, "{forward:>12} {reverse:>12} {duration:>10} {rate:>12}  {}", record.key)?;
        if record.forward.cheetah || record.reverse.cheetah { write!(f, "  cheetah") } else { Ok(()) }
    }
}

fn table(out: &mut impl Write, totals: &Totals, meter: &MeterCounters) -> io::Result<()> {
    writeln!(out, "Flow table")?;
    let capacity =
        format_args!("{} flows, up to {} with the detector", grouped(meter.capacity), meter.memory)
            .to_string();
    let workers = if totals.workers > 1 { format!(", {} threads", totals.workers) } else { String::new() };
    row(out, "capacity", format_args!("{capacity}{workers}"))?;
    let ends: Vec<String> = EndReason::ALL
        .iter()
        .filter(|reason| meter.table.ended(**reason) > 0)
        .map(|reason| format!("{} {}", grouped(meter.table.ended(*reason)), end_text(*reason)))
        .collect();
    row(out, "records", if ends.is_empty() { "none".to_owned() } else { ends.join(", ") })?;
    speed(out, totals)
}

/// Writes the counters of flow export.
fn exported(out: &mut impl Write, ledger: &HandoffStatus) -> io::Result<()> {
    if let Some((destination, tallies)) = ledger.export() {
        let sent = tallies.sent();
        let (records, messages) = (grouped(sent.flow_records), grouped(sent.messages));
        row(
            out,
            "exported",
            format_args!("{records} records in {messages} IPFIX messages to {destination}"),
        )?;
    }
    if let Some(store) = ledger.store() {
        let (rows, files) = (grouped(store.written), grouped(store.files));
        row(out, "stored", format_args!("{rows} rows in {files} Parquet files"))?;
    }
    Ok(())
}

/// Writes what the kernel counted.
fn in_kernel(out: &mut impl Write, totals: &InKernelTotals) -> io::Result<()> {
    let InKernelTotals { interface, hook, .. } = totals;
    let resumed = if totals.is_resumed { ", continued" } else { "" };
    writeln!(out, "Sketches in the kernel")?;
    row(out, "program", format_args!("{interface} at {hook}, {}{resumed}", totals.memory))?;
    row(out, "parsed", format_args!("{} packets", grouped(totals.parsed)))?;
    let uncounted = totals.uncounted;
    row(
        out,
        "not counted",
        format_args!("{} packets, {}", number(uncounted.value, 0), interval(&uncounted, 0)),
    )?;
    writeln!(out)
}

/// Writes the duration and speed of the run.
fn speed(out: &mut impl Write, totals: &Totals) -> io::Result<()> {
    let seconds = totals.elapsed.as_secs_f64();
    let rate = totals.intake.frames.packets as f64 / seconds.max(1e-9);
    row(out, "run time", format_args!("{seconds:.2} s, {} packets/s", grouped(rate as u64)))
}

fn end_text(reason: EndReason) -> &'static str {
    match reason {
        EndReason::Idle => "idle timeout",
        EndReason::Active => "active timeout",
        EndReason::Fin => "FIN",
        EndReason::Rst => "RST",
        EndReason::EndOfInput => "end of input",
        EndReason::Evicted => "evicted",
    }
}

fn tasks(out: &mut impl Write, totals: &Totals, ledger: &TaskLedger, top: usize) -> io::Result<()> {
    match totals.meter {
        Some(_) => {
            writeln!(out)?;
            tasks::report::overview(out, ledger)?;
        }
        None => {
            tasks::report::overview(out, ledger)?;
            speed(out, totals)?;
        }
    }
    tasks::report::answers(out, ledger, top)
}

/// Writes the counters of unmeasured and unusual packets that are above zero.
fn notes(out: &mut impl Write, totals: &Totals) -> io::Result<()> {
    let Totals { intake, source, .. } = totals;
    let meter = totals.meter.unwrap_or_default();
    let ledger = totals.tasks.as_ref();
    let mut lines: Vec<(u64, String)> = vec![
        (
            source.kernel_drops,
            "packets dropped by the kernel and not measured (raise --ring-size or --threads)".into(),
        ),
        (
            meter.untracked,
            "times that no detector track was free: cheetah flows may be missing (raise --tracks)".into(),
        ),
        (
            meter.undecided,
            "flow directions that came within 1/64 of the threshold and may have exceeded it: not reported"
                .into(),
        ),
        (
            meter.table.ended(EndReason::Evicted),
            "flows evicted from the full table: later packets start new flows (raise --flow-capacity)".into(),
        ),
        totals.groups.as_ref().map_or((0, String::new()), |groups| {
            let (rows, bytes) = groups.dropped();
            let name = groups.grouping().plural();
            (rows, format!("small {name} dropped because there were too many ({bytes}): other {name} may lack some of it"))
        }),
        (ledger.map_or(0, |ledger| ledger.tally.late), "late packets, counted in the current window".into()),
        (
            ledger.map_or(0, |ledger| ledger.saturations),
            "sketch counter overflows: affected results have no bounds".into(),
        ),
        (intake.non_ip.packets, format!("frames without IP ({})", intake.non_ip.bytes)),
        (intake.unsupported_link.packets, "frames of an unsupported link type".into()),
        (intake.backwards, "packets with a timestamp before that of the previous packet".into()),
        (source.beyond_snap_length, "frames longer than their snap length".into()),
        (intake.ports_not_captured, "packets with truncated ports, counted with ports 0".into()),
        (intake.portless_fragments, "fragments without their first fragment, counted with ports 0".into()),
        (intake.length_from_frame, "packets without an IP length, measured by frame length (BIG TCP)".into()),
        (intake.length_beyond_frame, "packets with an IP length beyond their frame".into()),
        (intake.decapsulated, "packets decapsulated from tunnels".into()),
        (
            totals.in_kernel.as_ref().map_or(0, |in_kernel| in_kernel.missed_keys),
            "sampled keys overwritten before they were read: large keys may be missing".into(),
        ),
        (source.filtered, "packets rejected by the capture filter".into()),
        (source.other_records, "file records without a packet (names, statistics)".into()),
    ];
    let malformed = Malformed::ALL.iter().zip(&intake.malformed);
    lines.extend(totals.exported.iter().flat_map(|ledger| export_losses(ledger)));
    lines.extend(malformed.map(|(kind, tally)| (tally.packets, format!("malformed frames: {kind}"))));
    lines.extend(totals.merged.iter().map(|(name, merged)| (merged.frames, merged_text(name, merged.mtu))));
    lines.retain(|(count, _)| *count > 0);
    if !lines.is_empty() {
        writeln!(out, "\nNotes")?;
    }
    for (count, text) in lines {
        writeln!(out, "  {:>12} {text}", grouped(count))?;
    }
    Ok(())
}

/// Returns the note on merged frames.
fn merged_text(name: &str, mtu: LinkMtu) -> String {
    let longer = format!("frames longer than {} bytes", grouped(mtu.bytes().into()));
    match mtu {
        LinkMtu::Interface(_) => format!(
            "{longer}, the MTU of {name}: merged by GRO or TSO, so packet counts are too low (to see packets as on the wire: \
             {})",
            ethtool_command(name)
        ),
        LinkMtu::Unknown => format!(
            "{longer} in {name}: merged by GRO or TSO of the host that captured them, so packet counts are too low"
        ),
    }
}

/// Returns the command that stops an interface from merging frames.
pub(crate) fn ethtool_command(interface: &str) -> String {
    format!("sudo ethtool -K {interface} gro off gso off tso off lro off")
}

/// Returns what was lost, for output without a report.
pub(super) fn losses(totals: &Totals) -> impl Iterator<Item = String> {
    let groups = totals.groups.as_ref().map_or(0, |groups| groups.dropped().0);
    let lines = [
        (
            totals.source.kernel_drops,
            "packets dropped by the kernel and not measured (raise --ring-size or --threads)",
        ),
        (groups, "hosts or pairs dropped because there were too many: others may lack some of their traffic"),
    ];
    lines
        .into_iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, text)| format!("{} {text}", grouped(count)))
}

/// Returns a message if all flow records were lost on their way to the receiver or to the store.
pub(super) fn export_failure(status: &HandoffStatus) -> Option<String> {
    if let Some((destination, counters)) = status.export() {
        let lost: u64 = Reason::ALL.iter().map(|&reason| counters.not_sent(reason).flow_records).sum();
        if lost > 0 && counters.sent().flow_records == 0 {
            let cause = counters.last_error().map(|error| format!(": {error}")).unwrap_or_default();
            return Some(format!(
                "none of {} flow records was exported to {destination}{cause}",
                grouped(lost)
            ));
        }
    }
    let store = status.store().filter(|store| store.written == 0 && store.lost.total() > 0)?;
    let cause = store.last_error.as_ref().map(|error| format!(": {error}")).unwrap_or_default();
    Some(format!("none of {} flow rows was stored{cause}", grouped(store.lost.total())))
}

/// Returns the flow records that were not exported or stored, by reason.
fn export_losses(ledger: &HandoffStatus) -> Vec<(u64, String)> {
    let mut lines = Vec::new();
    if let Some((destination, tallies)) = ledger.export() {
        let trouble = tallies.last_error().map(|trouble| format!(" ({trouble})")).unwrap_or_default();
        for reason in Reason::ALL {
            let why = match reason {
                Reason::QueueFull => "queue full",
                Reason::NoSession => "no connection",
                Reason::SendFailed => "send failed",
            };
            let text = format!("flow records not exported to {destination}: {why}{trouble}");
            lines.push((tallies.not_sent(reason).flow_records, text));
        }
    }
    if let Some(store) = ledger.store() {
        let error = store.last_error.as_ref().map(|error| format!(" ({error})")).unwrap_or_default();
        lines.push((store.lost.total(), format!("flow rows not stored{error}")));
        lines.push((store.in_spool, format!("flow rows waiting in the spool{error}")));
    }
    lines
}
