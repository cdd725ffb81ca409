//! Metrics in the Prometheus text format, served with the HTTP server and metric types of the daemon.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use thalweg_api::problem::Problem;
use thalweg_records::collect::{ExporterReport, Report, SocketReport, StreamReport};
use thalweg_records::kafka;
use thalweg_records::store::Statistics;

use thalweg_daemon::metrics::{Kind, Metric, Samples, exposition, rows};
use thalweg_http::access::{Access, Limits};
use thalweg_http::output::MetricsText;
use thalweg_http::route::{Method, Operation, Routes};
use thalweg_http::{Counters, Listener, ServerError};

/// Labels of metrics per exporter.
const EXPORTER: &[&str] = &["exporter", "format", "domain"];

/// Labels of metrics per socket.
const SOCKET: &[&str] = &["address", "socket"];

/// Labels of metrics per dataset.
const DATASET: &[&str] = &["dataset"];

const METRICS: &[Metric<Report>] = &[
    Metric {
        name: "thalweg_collect_records_total",
        kind: Kind::Counter,
        labels: EXPORTER,
        help: "Flow records decoded.",
        read: |report, out| by_exporter(report, out, |row| row.counts.records),
    },
    Metric {
        name: "thalweg_collect_messages_total",
        kind: Kind::Counter,
        labels: EXPORTER,
        help: "Export messages received.",
        read: |report, out| by_exporter(report, out, |row| row.counts.messages),
    },
    Metric {
        name: "thalweg_collect_sequence_lost_total",
        kind: Kind::Counter,
        labels: EXPORTER,
        help: "Losses detected by sequence numbers: flows of NetFlow v5, messages of v9, records of IPFIX, datagrams of sFlow.",
        read: |report, out| by_exporter(report, out, |row| row.counts.lost),
    },
    Metric {
        name: "thalweg_collect_restarts_total",
        kind: Kind::Counter,
        labels: EXPORTER,
        help: "Restarts of the exporter.",
        read: |report, out| by_exporter(report, out, |row| row.counts.restarts),
    },
    Metric {
        name: "thalweg_collect_sampling_interval",
        kind: Kind::Gauge,
        labels: EXPORTER,
        help: "Sampling interval: one packet in N is counted. 0 if the exporter does not report it.",
        read: |report, out| by_exporter(report, out, |row| row.sampling_interval.into()),
    },
    Metric {
        name: "thalweg_collect_last_message_timestamp_seconds",
        kind: Kind::Gauge,
        labels: EXPORTER,
        help: "Arrival of the last message, in seconds since 1970-01-01 UTC.",
        read: |report, out| by_exporter(report, out, |row| row.last_received.seconds()),
    },
    Metric {
        name: "thalweg_collect_dropped_total",
        kind: Kind::Counter,
        labels: &["reason"],
        help: "Messages, sets, records and samples that produced no rows, by reason.",
        read: |report, out| {
            for (name, count) in report.counts().each() {
                if let Some(reason) = name.strip_prefix("dropped_") {
                    out.put(&[reason], count);
                }
            }
            out.put(&["unreadable"], report.totals.dropped_unreadable);
            out.put(&["too_many_domains"], report.totals.dropped_too_many_domains);
        },
    },
    Metric {
        name: "thalweg_collect_kernel_drops_total",
        kind: Kind::Counter,
        labels: SOCKET,
        help: "Datagrams that the kernel dropped because the socket's receive buffer was full.",
        read: |report, out| by_socket(report, out, |socket| socket.kernel_drops),
    },
    Metric {
        name: "thalweg_collect_datagrams_total",
        kind: Kind::Counter,
        labels: SOCKET,
        help: "Datagrams received.",
        read: |report, out| by_socket(report, out, |socket| socket.datagrams),
    },
    Metric {
        name: "thalweg_collect_receive_buffer_bytes",
        kind: Kind::Gauge,
        labels: SOCKET,
        help: "Receive buffer of the socket, as granted by the kernel.",
        read: |report, out| by_socket(report, out, |socket| socket.receive_buffer as u64),
    },
    Metric {
        name: "thalweg_collect_connections",
        kind: Kind::Gauge,
        labels: &["address"],
        help: "Open TCP and TLS connections.",
        read: |report, out| by_stream(report, out, |stream| stream.open),
    },
    Metric {
        name: "thalweg_collect_connections_refused_total",
        kind: Kind::Counter,
        labels: &["address"],
        help: "Connections refused because the limit was reached.",
        read: |report, out| by_stream(report, out, |stream| stream.refused),
    },
    Metric {
        name: "thalweg_collect_template_sessions_left_out",
        kind: Kind::Gauge,
        labels: &[],
        help: "Exporters whose templates are not saved for the next run, because there are too many.",
        read: |report, out| out.put(&[], report.templates.sessions_left_out),
    },
    Metric {
        name: "thalweg_collect_template_file_errors_total",
        kind: Kind::Counter,
        labels: &[],
        help: "Failures to read or write the file of templates. Writes are retried.",
        read: |report, out| out.put(&[], report.templates.errors),
    },
    Metric {
        name: "thalweg_collect_database_reloads_total",
        kind: Kind::Counter,
        labels: &["result"],
        help: "Reads of databases (--mmdb) that had changed, by result: loaded, or failed, after which the earlier contents stay.",
        read: |report, out| {
            if let Some(geo) = &report.geo {
                out.put(&["loaded"], geo.reloads);
                out.put(&["failed"], geo.reload_errors);
            }
        },
    },
    Metric {
        name: "thalweg_collect_store_rows_total",
        kind: Kind::Counter,
        labels: DATASET,
        help: "Rows written to files.",
        read: |report, out| by_dataset(report, out, |store| store.written),
    },
    Metric {
        name: "thalweg_collect_store_bytes_total",
        kind: Kind::Counter,
        labels: DATASET,
        help: "Bytes written to files.",
        read: |report, out| by_dataset(report, out, |store| store.bytes),
    },
    Metric {
        name: "thalweg_collect_store_files_total",
        kind: Kind::Counter,
        labels: DATASET,
        help: "Files written.",
        read: |report, out| by_dataset(report, out, |store| store.files),
    },
    Metric {
        name: "thalweg_collect_store_queued_rows",
        kind: Kind::Gauge,
        labels: DATASET,
        help: "Rows queued in memory.",
        read: |report, out| by_dataset(report, out, |store| store.queued),
    },
    Metric {
        name: "thalweg_collect_store_spool_rows",
        kind: Kind::Gauge,
        labels: DATASET,
        help: "Rows in the spool that are in no file yet.",
        read: |report, out| by_dataset(report, out, |store| store.in_spool),
    },
    Metric {
        name: "thalweg_collect_store_kept_segments",
        kind: Kind::Gauge,
        labels: DATASET,
        help: "Spool segments of an earlier run whose layout is unknown, or which are damaged. They stay in the spool.",
        read: |report, out| by_dataset(report, out, |store| store.kept_segments),
    },
    Metric {
        name: "thalweg_collect_store_rows_lost_total",
        kind: Kind::Counter,
        labels: &["dataset", "reason"],
        help: "Rows that the store lost, by reason.",
        read: |report, out| {
            for (dataset, store) in [("flows", &report.flows), ("interface-counters", &report.counters)] {
                let lost = &store.lost;
                for (reason, count) in [
                    ("queue_full", lost.queue_full),
                    ("spool_full", lost.spool_full),
                    ("spool_failed", lost.spool_failed),
                    ("spool_damaged", lost.spool_damaged),
                ] {
                    out.put(&[dataset, reason], count);
                }
            }
        },
    },
    Metric {
        name: "thalweg_collect_store_errors_total",
        kind: Kind::Counter,
        labels: DATASET,
        help: "Errors of the store. Failed operations are retried.",
        read: |report, out| by_dataset(report, out, |store| store.errors),
    },
    Metric {
        name: "thalweg_collect_kafka_delivered_records_total",
        kind: Kind::Counter,
        labels: &[],
        help: "Flow records that Kafka brokers acknowledged.",
        read: |report, out| of_kafka(report, out, |kafka| kafka.delivered),
    },
    Metric {
        name: "thalweg_collect_kafka_delivered_messages_total",
        kind: Kind::Counter,
        labels: &[],
        help: "Kafka messages that brokers acknowledged.",
        read: |report, out| of_kafka(report, out, |kafka| kafka.messages),
    },
    Metric {
        name: "thalweg_collect_kafka_delivered_bytes_total",
        kind: Kind::Counter,
        labels: &[],
        help: "Bytes of these messages, before compression, keys excluded.",
        read: |report, out| of_kafka(report, out, |kafka| kafka.bytes),
    },
    Metric {
        name: "thalweg_collect_kafka_queued_records",
        kind: Kind::Gauge,
        labels: &[],
        help: "Flow records waiting for Kafka: in memory, or sent and not acknowledged yet.",
        read: |report, out| of_kafka(report, out, |kafka| kafka.queued),
    },
    Metric {
        name: "thalweg_collect_kafka_records_lost_total",
        kind: Kind::Counter,
        labels: &["reason"],
        help: "Flow records that were not delivered to Kafka, by reason. The files still contain them.",
        read: |report, out| {
            let Some(kafka) = &report.kafka else { return };
            let lost = &kafka.lost;
            for (reason, count) in [
                ("queue_full", lost.queue_full),
                ("timed_out", lost.timed_out),
                ("refused", lost.refused),
                ("unanswered", lost.unanswered),
            ] {
                out.put(&[reason], count);
            }
        },
    },
    Metric {
        name: "thalweg_collect_kafka_errors_total",
        kind: Kind::Counter,
        labels: &[],
        help: "Errors of Kafka messages and of connections to brokers.",
        read: |report, out| of_kafka(report, out, |kafka| kafka.errors),
    },
];

fn by_exporter(report: &Report, out: &mut Samples<'_>, value: fn(&ExporterReport) -> u64) {
    for row in &report.exporters {
        let exporter = super::text::name(row);
        let domain = row.observation_domain_id.to_string();
        out.put(&[&exporter, row.format.name(), &domain], value(row));
    }
}

fn by_socket(report: &Report, out: &mut Samples<'_>, value: fn(&SocketReport) -> u64) {
    for (number, socket) in report.sockets.iter().enumerate() {
        let (address, number) = (socket.address.to_string(), number.to_string());
        out.put(&[&address, &number], value(socket));
    }
}

fn by_stream(report: &Report, out: &mut Samples<'_>, value: fn(&StreamReport) -> u64) {
    for stream in &report.streams {
        out.put(&[&stream.listen.to_string()], value(stream));
    }
}

fn by_dataset(report: &Report, out: &mut Samples<'_>, value: fn(&Statistics) -> u64) {
    out.put(&["flows"], value(&report.flows));
    out.put(&["interface-counters"], value(&report.counters));
}

/// Writes a Kafka metric; nothing without Kafka.
fn of_kafka(report: &Report, out: &mut Samples<'_>, value: fn(&kafka::Statistics) -> u64) {
    if let Some(kafka) = &report.kafka {
        out.put(&[], value(kafka));
    }
}

/// `docs/reference/collect-metrics.md`.
pub fn reference() -> String {
    let page = String::from(
        "# Metrics of the flow receiver\n\n\
         <!-- Generated: THALWEG_REFRESH_GOLDEN=1 cargo test -p thalweg --test it reference -->\n\n\
         Metrics of `thalweg collect --metrics ADDRESS` at `/metrics`, in the Prometheus text format. Counters start at zero when\n\
         the receiver starts. The counters of an exporter that has been silent for hours are removed.\n\n\
         | metric | type | labels | meaning |\n|---|---|---|---|\n",
    );
    page + &rows(METRICS)
}

/// The latest report, shared with the server.
type SharedReport = Arc<Mutex<Report>>;

/// Serves metrics until dropped.
pub(super) struct MetricsServer {
    report: SharedReport,
    _server: thalweg_http::Server,
}

impl MetricsServer {
    /// Starts the server, without authentication.
    pub(super) fn start(address: SocketAddr) -> Result<MetricsServer, ServerError> {
        let listener = Listener::bind(address)?;
        let report = SharedReport::default();
        let operation = Operation {
            scope: None,
            summary: "Metrics for Prometheus",
            description: "",
            errors: &[],
            waits: false,
        };
        let routes = Routes::new().add(Method::Get, "/metrics", operation, page);
        let access = Arc::new(Access::unrestricted(address));
        let (shown, counters) = (Arc::clone(&report), Arc::<Counters>::default());
        let server = thalweg_http::Server::start(
            listener,
            routes,
            shown,
            access,
            Limits::default(),
            counters,
            || Ok(()),
        )?;
        Ok(MetricsServer { report, _server: server })
    }

    /// Publishes a report.
    pub(super) fn publish(&self, report: &Report) {
        report.clone_into(&mut self.report.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

/// `GET /metrics`
fn page(shared: &SharedReport) -> Result<MetricsText, Problem> {
    let report = shared.lock().unwrap_or_else(PoisonError::into_inner);
    Ok(MetricsText(exposition(METRICS, &report)))
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpStream;

    use super::*;

    #[test]
    fn metrics_show_the_latest_report_under_any_host_name() {
        let server = MetricsServer::start("127.0.0.1:0".parse().unwrap()).unwrap();
        let get = |path: &str| {
            let mut stream = TcpStream::connect(server._server.address()).unwrap();
            let request = format!("GET {path} HTTP/1.1\r\nhost: any.example\r\nconnection: close\r\n\r\n");
            stream.write_all(request.as_bytes()).unwrap();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).unwrap();
            answer
        };
        let mut report = Report::default();
        report.flows.written = 5;
        server.publish(&report);
        let answer = get("/metrics");
        assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
        assert!(answer.contains("content-type: text/plain; version=0.0.4"), "{answer}");
        let line = "\nthalweg_collect_store_rows_total{dataset=\"flows\"} 5\n";
        assert!(answer.contains(line), "{answer}");
        assert!(get("/").starts_with("HTTP/1.1 404 "));
    }
}
