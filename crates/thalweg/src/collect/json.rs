//! JSON lines: `status` periodically, `exporters` on request, `summary` last.

use std::io::{self, Write};
use std::net::IpAddr;

use serde::Serialize;
use serde_json::{Map, Value};
use thalweg_api::UtcTime;
use thalweg_records::collect::{ExporterReport, Losses, ReplayCounts, Report, TemplateFileReport};
use thalweg_records::geo::GeoStatistics;
use thalweg_records::{kafka, store};
use thalweg_wire::flow_export::decode::{Counts, Transport};

use super::status::Status;

/// A line.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Line {
    Status(Box<Figures>),
    Exporters { time: UtcTime, exporters: Vec<Exporter> },
    Summary(Box<Summary>),
}

#[derive(Serialize)]
struct Figures {
    time: UtcTime,
    elapsed_ns: u64,
    records: u64,
    records_per_second: f64,
    datagrams: u64,
    datagrams_per_second: f64,
    bytes_per_second: f64,
    exporters: usize,
    lost: Lost,
    store: Store,
    kafka: Option<Kafka>,
}

#[derive(Serialize)]
struct Summary {
    #[serde(flatten)]
    figures: Figures,
    counts: Map<String, Value>,
    sockets: Vec<Socket>,
    listeners: Vec<Listener>,
    capture: Option<Capture>,
    by_exporter: Vec<Exporter>,
    last_message_error: Option<String>,
    templates: Templates,
    databases: Option<Databases>,
}

#[derive(Serialize)]
struct Lost {
    kernel_drops: u64,
    in_transit: u64,
    unreadable_messages: u64,
    sets_without_template: u64,
    store_records: u64,
    kafka_records: u64,
    refused_connections: u64,
}

#[derive(Serialize)]
struct Store {
    queued: u64,
    in_spool: u64,
    written: u64,
    files: u64,
    bytes: u64,
    counters_written: u64,
    lost_queue_full: u64,
    lost_spool_full: u64,
    lost_spool_failed: u64,
    lost_spool_damaged: u64,
    kept_segments: u64,
    removed_files: u64,
    errors: u64,
    last_error: Option<String>,
}

#[derive(Serialize)]
struct Kafka {
    queued: u64,
    delivered: u64,
    messages: u64,
    bytes: u64,
    lost_queue_full: u64,
    lost_timed_out: u64,
    lost_refused: u64,
    lost_unanswered: u64,
    errors: u64,
    last_error: Option<String>,
}

#[derive(Serialize)]
struct Templates {
    sessions_read: u64,
    templates_read: u64,
    sessions_left_out: u64,
    errors: u64,
    last_error: Option<String>,
}

#[derive(Serialize)]
struct Databases {
    files: u64,
    reloads: u64,
    reload_errors: u64,
    last_error: Option<String>,
}

#[derive(Serialize)]
struct Exporter {
    address: IpAddr,
    exporter: String,
    format: &'static str,
    transport: &'static str,
    observation_domain_id: u32,
    sessions: u64,
    sampling_interval: u32,
    templates: u64,
    last_received: UtcTime,
    counts: Map<String, Value>,
}

#[derive(Serialize)]
struct Socket {
    listen: String,
    address: String,
    receive_buffer_bytes: usize,
    requested_receive_buffer_bytes: usize,
    datagrams: u64,
    bytes: u64,
    kernel_drops: u64,
    errors: u64,
}

#[derive(Serialize)]
struct Listener {
    listen: String,
    address: String,
    open: u64,
    accepted: u64,
    refused: u64,
    ended: Map<String, Value>,
}

#[derive(Serialize)]
struct Capture {
    frames: u64,
    messages: u64,
    other: u64,
    fragments: u64,
    truncated: u64,
    unparsed: u64,
}

/// Writes a `status` line.
pub(super) fn status(out: &mut impl Write, status: &Status) -> io::Result<()> {
    line(out, &Line::Status(Box::new(figures(status))))
}

/// Writes an `exporters` line.
pub(super) fn exporters(out: &mut impl Write, status: &Status) -> io::Result<()> {
    let exporters = status.report.exporters.iter().map(exporter).collect();
    line(out, &Line::Exporters { time: status.time.into(), exporters })
}

/// Writes the `summary` line.
pub(super) fn summary(
    out: &mut impl Write,
    status: &Status,
    capture: Option<&ReplayCounts>,
) -> io::Result<()> {
    let report = &status.report;
    line(
        out,
        &Line::Summary(Box::new(Summary {
            figures: figures(status),
            counts: counts(&report.counts()),
            sockets: sockets(report),
            listeners: listeners(report),
            capture: capture.map(|counts| Capture {
                frames: counts.frames,
                messages: counts.messages,
                other: counts.other,
                fragments: counts.fragments,
                truncated: counts.truncated,
                unparsed: counts.unparsed,
            }),
            by_exporter: report.exporters.iter().map(exporter).collect(),
            last_message_error: report.last_fault.as_ref().map(ToString::to_string),
            templates: templates(&report.templates),
            databases: report.geo.as_ref().map(databases),
        })),
    )
}

fn line(out: &mut impl Write, line: &Line) -> io::Result<()> {
    serde_json::to_writer(&mut *out, line)?;
    out.write_all(b"\n")?;
    out.flush()
}

fn figures(status: &Status) -> Figures {
    let report = &status.report;
    let Losses {
        kernel_datagrams,
        sequence_gaps: on_the_way,
        unreadable_messages,
        sets_without_template,
        stored_records,
        kafka_records,
        connections_refused,
        ..
    } = report.losses();
    Figures {
        time: status.time.into(),
        elapsed_ns: status.elapsed.as_nanos() as u64,
        records: report.records(),
        records_per_second: status.rates.records,
        datagrams: report.datagrams(),
        datagrams_per_second: status.rates.datagrams,
        bytes_per_second: status.rates.bytes,
        exporters: report.exporters.len(),
        lost: Lost {
            kernel_drops: kernel_datagrams,
            in_transit: on_the_way,
            unreadable_messages,
            sets_without_template,
            store_records: stored_records,
            kafka_records,
            refused_connections: connections_refused,
        },
        store: store(&report.flows, &report.counters),
        kafka: report.kafka.as_ref().map(kafka),
    }
}

fn store(flows: &store::Statistics, counters: &store::Statistics) -> Store {
    Store {
        queued: flows.queued,
        in_spool: flows.in_spool,
        written: flows.written,
        files: flows.files,
        bytes: flows.bytes,
        counters_written: counters.written,
        lost_queue_full: flows.lost.queue_full,
        lost_spool_full: flows.lost.spool_full,
        lost_spool_failed: flows.lost.spool_failed,
        lost_spool_damaged: flows.lost.spool_damaged,
        kept_segments: flows.kept_segments + counters.kept_segments,
        removed_files: flows.removed_files,
        errors: flows.errors,
        last_error: flows.last_error.clone(),
    }
}

fn kafka(kafka: &kafka::Statistics) -> Kafka {
    Kafka {
        queued: kafka.queued,
        delivered: kafka.delivered,
        messages: kafka.messages,
        bytes: kafka.bytes,
        lost_queue_full: kafka.lost.queue_full,
        lost_timed_out: kafka.lost.timed_out,
        lost_refused: kafka.lost.refused,
        lost_unanswered: kafka.lost.unanswered,
        errors: kafka.errors,
        last_error: kafka.last_error.clone(),
    }
}

fn templates(templates: &TemplateFileReport) -> Templates {
    Templates {
        sessions_read: templates.sessions,
        templates_read: templates.templates,
        sessions_left_out: templates.sessions_left_out,
        errors: templates.errors,
        last_error: templates.last_error.clone(),
    }
}

fn databases(geo: &GeoStatistics) -> Databases {
    let GeoStatistics { files, reloads, reload_errors, last_error } = geo.clone();
    Databases {
        files,
        reloads,
        reload_errors,
        last_error: Some(last_error).filter(|error| !error.is_empty()),
    }
}

fn exporter(report: &ExporterReport) -> Exporter {
    Exporter {
        address: report.from,
        exporter: report.exporter.to_string(),
        format: report.format.name(),
        transport: match report.transport {
            Transport::Datagram => "datagram",
            Transport::Stream => "stream",
        },
        observation_domain_id: report.observation_domain_id,
        sessions: report.sessions,
        sampling_interval: report.sampling_interval,
        templates: report.templates,
        last_received: report.last_received.into(),
        counts: counts(&report.counts),
    }
}

fn counts(counts: &Counts) -> Map<String, Value> {
    counts.each().map(|(name, count)| (name.to_owned(), count.into())).collect()
}

fn sockets(report: &Report) -> Vec<Socket> {
    let socket = |socket: &thalweg_records::collect::SocketReport| Socket {
        listen: socket.listen.to_string(),
        address: socket.address.to_string(),
        receive_buffer_bytes: socket.receive_buffer,
        requested_receive_buffer_bytes: socket.receive_buffer_requested,
        datagrams: socket.datagrams,
        bytes: socket.bytes,
        kernel_drops: socket.kernel_drops,
        errors: socket.errors,
    };
    report.sockets.iter().map(socket).collect()
}

fn listeners(report: &Report) -> Vec<Listener> {
    let listener = |stream: &thalweg_records::collect::StreamReport| Listener {
        listen: stream.listen.to_string(),
        address: stream.address.to_string(),
        open: stream.open,
        accepted: stream.accepted,
        refused: stream.refused,
        ended: stream.ended.iter().map(|(end, &count)| (end.name().to_owned(), count.into())).collect(),
    };
    report.streams.iter().map(listener).collect()
}
