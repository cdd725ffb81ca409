//! The text report and the table of exporters.

use std::fmt::Write;
use std::path::Path;

use thalweg_records::collect::{ExporterReport, ReplayCounts, Report};
use thalweg_wire::Bytes;
use thalweg_wire::flow_export::decode::Transport;

use super::status::Status;
use crate::figures::{date_time, grouped};

/// Formats the report.
pub(super) fn report(status: &Status, directory: &Path, capture: Option<&ReplayCounts>) -> String {
    let report = &status.report;
    let mut text = String::new();
    let _ = writeln!(
        text,
        "{} flow records from {} in {:.1} s ({} records/s)",
        grouped(report.records()),
        counted(report.exporters.len(), "exporter"),
        status.elapsed.as_secs_f64(),
        grouped(status.rates.records.round() as u64),
    );
    let (flows, counters) = (&report.flows, &report.counters);
    let _ = writeln!(
        text,
        "written: {} records in {} ({}) in {}{}",
        grouped(flows.written),
        counted(flows.files as usize, "file"),
        Bytes(flows.bytes),
        directory.display(),
        match counters.written {
            0 => String::new(),
            rows => format!(", and {} interface counters", grouped(rows)),
        },
    );
    if let Some(kafka) = &report.kafka {
        let _ = writeln!(
            text,
            "acknowledged by Kafka: {} records in {} ({})",
            grouped(kafka.delivered),
            counted(kafka.messages as usize, "message"),
            Bytes(kafka.bytes),
        );
    }
    if let Some(counts) = capture {
        let _ = writeln!(
            text,
            "replayed: {} frames, {} export messages, {} other, {} fragments, {} truncated, {} without IP or damaged",
            grouped(counts.frames),
            grouped(counts.messages),
            grouped(counts.other),
            grouped(counts.fragments),
            grouped(counts.truncated),
            grouped(counts.unparsed),
        );
    }
    text.push_str(&losses(report));
    text.push('\n');
    text.push_str(&exporters(report));
    text
}

/// Returns a message if rows could not be stored, for example on a full disk.
pub(super) fn store_failure(report: &Report) -> Option<String> {
    let stores = [&report.flows, &report.counters];
    let lost: u64 = stores.iter().map(|store| store.lost.total()).sum();
    let error = stores.iter().find_map(|store| store.last_error.as_ref());
    let cause = error.map_or_else(String::new, |error| format!(": {error}"));
    (lost > 0).then(|| format!("{} rows could not be stored and are lost{cause}", grouped(lost)))
}

/// Formats the losses, one line per cause.
fn losses(report: &Report) -> String {
    let (losses, counts) = (report.losses(), report.counts());
    let mut lines: Vec<(u64, String)> = vec![
        (losses.kernel_datagrams, "datagrams dropped by the kernel (see --receive-buffer)".to_owned()),
        (losses.sequence_gaps, "messages or records missing (gaps in sequence numbers)".to_owned()),
        (report.totals.dropped_unreadable, "datagrams of unknown format".to_owned()),
        (
            report.totals.dropped_too_many_domains,
            "messages of observation domains above the limit (see --domains)".to_owned(),
        ),
        (losses.connections_refused, "connections refused (see --connections-per-source)".to_owned()),
        (report.templates.sessions_left_out, "exporters whose templates were not saved: too many".to_owned()),
    ];
    lines.push((counts.names_refused, "names of interfaces, VRFs or exporters refused: too many".to_owned()));
    let dropped = counts.each().filter_map(|(name, count)| Some((count, name.strip_prefix("dropped_")?)));
    lines.extend(dropped.map(|(count, reason)| (count, format!("dropped: {}", reason.replace('_', " ")))));
    for (store, of) in [(&report.flows, "records"), (&report.counters, "interface counters")] {
        let lost = &store.lost;
        for (count, reason) in [
            (lost.queue_full, "disk too slow"),
            (lost.spool_full, "spool full"),
            (lost.spool_failed, "spool not writable"),
            (lost.spool_damaged, "spool not readable"),
        ] {
            lines.push((count, format!("{of} lost: {reason}")));
        }
        lines.push((store.in_spool, format!("{of} left in the spool for the next run")));
        lines.push((
            store.kept_segments,
            format!("spool segments of {of} kept: of another version, or damaged"),
        ));
    }
    if let Some(kafka) = &report.kafka {
        for (count, reason) in [
            (kafka.lost.queue_full, "brokers too slow or unreachable"),
            (kafka.lost.timed_out, "not acknowledged in time"),
            (kafka.lost.refused, "refused"),
            (kafka.lost.unanswered, "no answer before exit"),
        ] {
            lines.push((count, format!("records not delivered to Kafka: {reason}")));
        }
    }
    let mut text = String::new();
    for (count, what) in lines.into_iter().filter(|&(count, _)| count > 0) {
        let _ = writeln!(text, "{:>13}  {what}", grouped(count));
    }
    for error in [&report.flows, &report.counters].into_iter().filter_map(|store| store.last_error.as_ref()) {
        let _ = writeln!(text, "last error of the store: {error}");
    }
    if let Some(error) = report.geo.as_ref().map(|geo| &geo.last_error).filter(|error| !error.is_empty()) {
        let _ = writeln!(text, "last error of a database, whose earlier contents stay: {error}");
    }
    if let Some(error) = &report.templates.last_error {
        let _ = writeln!(text, "last error of saved templates: {error}");
    }
    if let Some(error) = report.kafka.as_ref().and_then(|kafka| kafka.last_error.as_ref()) {
        let _ = writeln!(text, "Kafka: last error: {error}");
    }
    if let Some(fault) = &report.last_fault {
        let _ = writeln!(text, "last fault: {fault}");
    }
    if text.is_empty() { "lost: nothing\n".to_owned() } else { text }
}

/// Formats a table with a line per observation domain of each exporter.
pub(super) fn exporters(report: &Report) -> String {
    let mut text = format!(
        "{:<24} {:<9} {:<9} {:>10} {:>8} {:>13} {:>13} {:>10} {:>9}  {}\n",
        "exporter",
        "format",
        "transport",
        "domain",
        "sampling",
        "messages",
        "records",
        "lost",
        "templates",
        "last message"
    );
    report.exporters.iter().for_each(|exporter| line(&mut text, exporter));
    text
}

fn line(text: &mut String, exporter: &ExporterReport) {
    let over = match exporter.transport {
        Transport::Datagram => "UDP",
        Transport::Stream => "stream",
    };
    let sampling = match exporter.sampling_interval {
        0 => "-".to_owned(),
        interval => grouped(interval.into()),
    };
    let _ = writeln!(
        text,
        "{:<24} {:<9} {:<9} {:>10} {:>8} {:>13} {:>13} {:>10} {:>9}  {}",
        name(exporter),
        exporter.format.name(),
        over,
        exporter.observation_domain_id,
        sampling,
        grouped(exporter.counts.messages),
        grouped(exporter.counts.records),
        grouped(exporter.counts.lost),
        exporter.templates,
        date_time(exporter.last_received),
    );
}

/// Returns the address of the exporter, and the sender of its messages if it differs.
pub(super) fn name(exporter: &ExporterReport) -> String {
    let (from, exporter) = (exporter.from.to_string(), exporter.exporter.to_string());
    if exporter.is_empty() || exporter == from { from } else { format!("{exporter} by {from}") }
}

/// Formats a number with its noun.
pub(super) fn counted(count: usize, noun: &str) -> String {
    format!("{} {noun}{}", grouped(count as u64), if count == 1 { "" } else { "s" })
}
