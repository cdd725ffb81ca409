//! The report at the end of a run, for people.

use std::fmt::{self, Display};
use std::io::{self, Write};

use thalweg_measure::detect::{Cheetah, CheetahEnd};
use thalweg_measure::filter::FlowFilter;
use thalweg_measure::meter::record::{EndReason, FlowRecord};
use thalweg_records::export::Reason;
use thalweg_records::handoff::Ledger;
use thalweg_wire::parse::Malformed;
use thalweg_wire::{BitRate, Nanos};

use super::row::row;
use super::tasks;
use crate::figures::grouped;
use thalweg_watch::MeterCounters;
use thalweg_watch::Totals;
use thalweg_watch::options::{Detector, WatchOptions};
use thalweg_watch::snapshot;
use thalweg_watch::tasks::TaskLedger;

/// Writes the report.
pub(super) fn write(out: &mut impl Write, totals: &Totals, options: &WatchOptions) -> io::Result<()> {
    traffic(out, totals, &options.flow_filter)?;
    if let Some(meter) = &totals.meter {
        cheetahs(out, totals, meter, options)?;
        largest(out, totals)?;
        table(out, totals, meter)?;
    }
    if let Some(ledger) = &totals.handed_on {
        handed_on(out, ledger)?;
    }
    if let Some(ledger) = &totals.tasks {
        tasks(out, totals, ledger, options.top)?;
    }
    oddities(out, totals)
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
        _ => "any window",
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
        writeln!(out, "  {:>12} {:>10} {:>12} {:>10}  flow", "flight rate", "after", "bytes", "lasted")?;
    }
    for (cheetah, end) in &shown {
        writeln!(out, "  {}", CheetahRow(cheetah, end.as_ref()))?;
    }
    let all = if filter.is_empty() { meter.cheetahs } else { matching().count() as u64 };
    let more = all.saturating_sub(shown.len() as u64);
    if more > 0 {
        writeln!(
            out,
            "  and {} more (--limit {} shows more, --json all)",
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
        let delay = (cheetah.detected - cheetah.first).to_string();
        let bytes = end.map_or(cheetah.bytes, |end| end.bytes).to_string();
        let lasted = end.map_or_else(|| "running".to_owned(), |end| (end.last - end.first).to_string());
        write!(f, "{:>12} {delay:>10} {bytes:>12} {lasted:>10}  {}", cheetah.rate.to_string(), cheetah.key)
    }
}

fn largest(out: &mut impl Write, totals: &Totals) -> io::Result<()> {
    if totals.largest.is_empty() {
        return Ok(());
    }
    writeln!(out, "Largest flows")?;
    writeln!(
        out,
        "  {:>12} {:>12} {:>10} {:>12}  flow (initiator > responder)",
        "bytes out", "bytes back", "lasted", "mean rate"
    )?;
    for record in &totals.largest {
        writeln!(out, "  {}", FlowRow(record))?;
    }
    writeln!(out)
}

struct FlowRow<'a>(&'a FlowRecord);

impl Display for FlowRow<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let record = self.0;
        let (forward, reverse) = (record.forward.bytes.to_string(), record.reverse.bytes.to_string());
        let (lasted, rate) = match record.duration() {
            Nanos::ZERO => ("-".to_owned(), "-".to_owned()),
            span => (span.to_string(), BitRate::of(record.bytes(), span).to_string()),
        };
        write!(f, "{forward:>12} {reverse:>12} {lasted:>10} {rate:>12}  {}", record.key)?;
        if record.forward.cheetah || record.reverse.cheetah { write!(f, "  cheetah") } else { Ok(()) }
    }
}

fn table(out: &mut impl Write, totals: &Totals, meter: &MeterCounters) -> io::Result<()> {
    writeln!(out, "Flow table")?;
    let room = format_args!("{} flows in at most {}", grouped(meter.capacity), meter.memory).to_string();
    let workers = if totals.workers > 1 { format!(", {} threads", totals.workers) } else { String::new() };
    row(out, "room", format_args!("{room}{workers}"))?;
    let ends: Vec<String> = EndReason::ALL
        .iter()
        .filter(|reason| meter.table.ended(**reason) > 0)
        .map(|reason| format!("{} {}", grouped(meter.table.ended(*reason)), end_in_words(*reason)))
        .collect();
    row(out, "records", if ends.is_empty() { "none".to_owned() } else { ends.join(", ") })?;
    speed(out, totals)
}

/// Where flows went.
fn handed_on(out: &mut impl Write, ledger: &Ledger) -> io::Result<()> {
    if let Some((destination, tallies)) = ledger.export() {
        let sent = tallies.sent();
        let (records, messages) = (grouped(sent.flow_records), grouped(sent.messages));
        row(out, "sent", format_args!("{records} records in {messages} messages of IPFIX to {destination}"))?;
    }
    if let Some(store) = ledger.store() {
        let (rows, files) = (grouped(store.written), grouped(store.files));
        row(out, "kept", format_args!("{rows} rows in {files} Parquet files"))?;
    }
    Ok(())
}

/// How long it took.
fn speed(out: &mut impl Write, totals: &Totals) -> io::Result<()> {
    let seconds = totals.elapsed.as_secs_f64();
    let rate = totals.intake.frames.packets as f64 / seconds.max(1e-9);
    row(out, "measured in", format_args!("{seconds:.2} s, {} packets/s", grouped(rate as u64)))
}

fn end_in_words(reason: EndReason) -> &'static str {
    match reason {
        EndReason::Idle => "idle",
        EndReason::Active => "cut at the active timeout",
        EndReason::Fin => "ended by FIN",
        EndReason::Rst => "ended by RST",
        EndReason::EndOfInput => "at the end of the input",
        EndReason::Evicted => "evicted from a full table",
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

/// What was not measured, or was odd: only what happened at all.
fn oddities(out: &mut impl Write, totals: &Totals) -> io::Result<()> {
    let Totals { intake, source, .. } = totals;
    let meter = totals.meter.unwrap_or_default();
    let ledger = totals.tasks.as_ref();
    let mut lines: Vec<(u64, String)> = vec![
        (
            source.kernel_drops,
            "packets dropped by the kernel: not measured (a larger --ring-size or more --threads may help)"
                .into(),
        ),
        (
            meter.untracked,
            "times that the detector had no track left: a cheetah may be missing (raise --tracks)".into(),
        ),
        (
            meter.table.ended(EndReason::Evicted),
            "flows evicted from a full table: their later packets count as new flows (raise --flow-capacity)"
                .into(),
        ),
        (
            ledger.map_or(0, |ledger| ledger.tally.late),
            "packets older than the window under way: counted in that one".into(),
        ),
        (
            ledger.map_or(0, |ledger| ledger.saturations),
            "additions beyond the range of a sketch's counter: its answers have no bound".into(),
        ),
        (intake.non_ip.packets, format!("frames without IP ({})", intake.non_ip.bytes)),
        (intake.unsupported_link.packets, "frames of a link type that is not taken apart".into()),
        (intake.backwards, "time stamps before that of the packet before".into()),
        (source.beyond_snap_length, "frames longer than their snap length".into()),
        (intake.ports_not_captured, "packets whose ports were cut off: counted with ports zero".into()),
        (intake.portless_fragments, "fragments whose first was not seen: counted with ports zero".into()),
        (intake.length_from_frame, "packets whose length was taken from their frame (BIG TCP)".into()),
        (intake.length_beyond_frame, "packets that claim to be longer than their frame was".into()),
        (intake.peeled, "packets taken out of tunnels".into()),
        (source.filtered, "packets that the capture filter refused".into()),
        (source.other_records, "records of the file without a packet (names, statistics)".into()),
    ];
    let malformed = Malformed::ALL.iter().zip(&intake.malformed);
    lines.extend(totals.handed_on.iter().flat_map(|ledger| not_handed_on(ledger)));
    lines.extend(malformed.map(|(kind, tally)| (tally.packets, format!("malformed frames: {kind}"))));
    lines.retain(|(count, _)| *count > 0);
    if !lines.is_empty() {
        writeln!(out, "\nWorth knowing")?;
    }
    for (count, text) in lines {
        writeln!(out, "  {:>12} {text}", grouped(count))?;
    }
    Ok(())
}

/// What was not sent or kept, by why.
fn not_handed_on(ledger: &Ledger) -> Vec<(u64, String)> {
    let mut lines = Vec::new();
    if let Some((destination, tallies)) = ledger.export() {
        let trouble = tallies.trouble().map(|trouble| format!(" ({trouble})")).unwrap_or_default();
        for reason in Reason::ALL {
            let why = match reason {
                Reason::QueueFull => "sending took too long",
                Reason::NoSession => "there was no connection",
                Reason::SendFailed => "they were not taken",
            };
            let text = format!("flow records not sent to {destination}: {why}{trouble}");
            lines.push((tallies.not_sent(reason).flow_records, text));
        }
    }
    if let Some(store) = ledger.store() {
        let error = store.last_error.as_ref().map(|error| format!(" ({error})")).unwrap_or_default();
        lines.push((store.lost.total(), format!("rows of flows not kept{error}")));
        lines.push((store.in_spool, format!("rows of flows that wait in the spool for room{error}")));
    }
    lines
}
