//! Prometheus' text format (version 0.0.4), over HTTP.

use std::fmt::Write as _;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use thalweg_records::collect::Report;

/// Longest time for a request to come and its answer to go.
const PATIENCE: Duration = Duration::from_secs(2);

/// How often it is looked for questions.
const PAUSE: Duration = Duration::from_millis(50);

/// Most bytes of a request.
const LONGEST_REQUEST: usize = 8192;

/// Takes values with their labels.
type Put<'a> = &'a mut dyn FnMut(&[(&str, &str)], u64);

/// Something that is counted.
struct Metric {
    name: &'static str,
    kind: &'static str,
    labels: &'static str,
    help: &'static str,
    read: fn(&Report, Put<'_>),
}

const METRICS: &[Metric] = &[
    Metric {
        name: "thalweg_collect_records_total",
        kind: "counter",
        labels: "exporter, format, domain",
        help: "Flow records decoded.",
        read: |report, put| by_exporter(report, put, |row| row.counts.records),
    },
    Metric {
        name: "thalweg_collect_messages_total",
        kind: "counter",
        labels: "exporter, format, domain",
        help: "Export messages received.",
        read: |report, put| by_exporter(report, put, |row| row.counts.messages),
    },
    Metric {
        name: "thalweg_collect_sequence_lost_total",
        kind: "counter",
        labels: "exporter, format, domain",
        help: "Lost on the way by sequence numbers: flows of NetFlow v5, messages of v9, records of IPFIX, datagrams of sFlow.",
        read: |report, put| by_exporter(report, put, |row| row.counts.lost),
    },
    Metric {
        name: "thalweg_collect_restarts_total",
        kind: "counter",
        labels: "exporter, format, domain",
        help: "Times that the exporter began anew.",
        read: |report, put| by_exporter(report, put, |row| row.counts.restarts),
    },
    Metric {
        name: "thalweg_collect_sampling_interval",
        kind: "gauge",
        labels: "exporter, format, domain",
        help: "One packet in so many is counted; 0: not told.",
        read: |report, put| by_exporter(report, put, |row| row.sampling_interval.into()),
    },
    Metric {
        name: "thalweg_collect_last_message_seconds",
        kind: "gauge",
        labels: "exporter, format, domain",
        help: "When the last message arrived, seconds since 1970.",
        read: |report, put| by_exporter(report, put, |row| row.last_received.seconds()),
    },
    Metric {
        name: "thalweg_collect_dropped_total",
        kind: "counter",
        labels: "reason",
        help: "Messages, sets, records and samples that gave no rows, by reason.",
        read: |report, put| {
            for (name, count) in report.counts().each() {
                if let Some(reason) = name.strip_prefix("dropped_") {
                    put(&[("reason", reason)], count);
                }
            }
            put(&[("reason", "unreadable")], report.totals.dropped_unreadable);
            put(&[("reason", "too_many_domains")], report.totals.dropped_too_many_domains);
        },
    },
    Metric {
        name: "thalweg_collect_kernel_drops_total",
        kind: "counter",
        labels: "address, socket",
        help: "Datagrams that the kernel dropped: the socket's buffer was full.",
        read: |report, put| by_socket(report, put, |socket| socket.kernel_drops),
    },
    Metric {
        name: "thalweg_collect_datagrams_total",
        kind: "counter",
        labels: "address, socket",
        help: "Datagrams received.",
        read: |report, put| by_socket(report, put, |socket| socket.datagrams),
    },
    Metric {
        name: "thalweg_collect_receive_buffer_bytes",
        kind: "gauge",
        labels: "address, socket",
        help: "The socket's receive buffer, as the kernel gave it.",
        read: |report, put| by_socket(report, put, |socket| socket.receive_buffer as u64),
    },
    Metric {
        name: "thalweg_collect_connections",
        kind: "gauge",
        labels: "address",
        help: "Connections of TCP or TLS now.",
        read: |report, put| by_stream(report, put, |stream| stream.open),
    },
    Metric {
        name: "thalweg_collect_connections_refused_total",
        kind: "counter",
        labels: "address",
        help: "Connections refused for want of room.",
        read: |report, put| by_stream(report, put, |stream| stream.refused),
    },
    Metric {
        name: "thalweg_collect_written_records_total",
        kind: "counter",
        labels: "dataset",
        help: "Rows in files.",
        read: |report, put| by_dataset(report, put, |store| store.written),
    },
    Metric {
        name: "thalweg_collect_written_bytes_total",
        kind: "counter",
        labels: "dataset",
        help: "Bytes of files written.",
        read: |report, put| by_dataset(report, put, |store| store.bytes),
    },
    Metric {
        name: "thalweg_collect_written_files_total",
        kind: "counter",
        labels: "dataset",
        help: "Files written.",
        read: |report, put| by_dataset(report, put, |store| store.files),
    },
    Metric {
        name: "thalweg_collect_queued_records",
        kind: "gauge",
        labels: "dataset",
        help: "Rows in memory.",
        read: |report, put| by_dataset(report, put, |store| store.queued),
    },
    Metric {
        name: "thalweg_collect_spool_records",
        kind: "gauge",
        labels: "dataset",
        help: "Rows in the spool and in no file yet.",
        read: |report, put| by_dataset(report, put, |store| store.in_spool),
    },
    Metric {
        name: "thalweg_collect_store_lost_total",
        kind: "counter",
        labels: "dataset, reason",
        help: "Rows lost in the store, by reason.",
        read: |report, put| {
            for (dataset, store) in [("flows", &report.flows), ("interface-counters", &report.counters)] {
                let lost = &store.lost;
                for (reason, count) in [
                    ("queue_full", lost.queue_full),
                    ("spool_full", lost.spool_full),
                    ("spool_failed", lost.spool_failed),
                    ("spool_damaged", lost.spool_damaged),
                ] {
                    put(&[("dataset", dataset), ("reason", reason)], count);
                }
            }
        },
    },
    Metric {
        name: "thalweg_collect_store_errors_total",
        kind: "counter",
        labels: "dataset",
        help: "Errors of the store; what failed is tried again.",
        read: |report, put| by_dataset(report, put, |store| store.errors),
    },
    Metric {
        name: "thalweg_collect_kafka_delivered_records_total",
        kind: "counter",
        labels: "",
        help: "Flow records that Kafka's brokers have acknowledged.",
        read: |report, put| of_kafka(report, put, |kafka| kafka.delivered),
    },
    Metric {
        name: "thalweg_collect_kafka_delivered_messages_total",
        kind: "counter",
        labels: "",
        help: "Messages with these records.",
        read: |report, put| of_kafka(report, put, |kafka| kafka.messages),
    },
    Metric {
        name: "thalweg_collect_kafka_delivered_bytes_total",
        kind: "counter",
        labels: "",
        help: "Bytes of these messages before compression, without keys.",
        read: |report, put| of_kafka(report, put, |kafka| kafka.bytes),
    },
    Metric {
        name: "thalweg_collect_kafka_queued_records",
        kind: "gauge",
        labels: "",
        help: "Flow records in memory for Kafka, or sent and not acknowledged yet.",
        read: |report, put| of_kafka(report, put, |kafka| kafka.queued),
    },
    Metric {
        name: "thalweg_collect_kafka_lost_total",
        kind: "counter",
        labels: "reason",
        help: "Flow records lost on their way to Kafka, by reason; the files have them all the same.",
        read: |report, put| {
            let Some(kafka) = &report.kafka else { return };
            let lost = &kafka.lost;
            for (reason, count) in [
                ("queue_full", lost.queue_full),
                ("timed_out", lost.timed_out),
                ("refused", lost.refused),
                ("unanswered", lost.unanswered),
            ] {
                put(&[("reason", reason)], count);
            }
        },
    },
    Metric {
        name: "thalweg_collect_kafka_errors_total",
        kind: "counter",
        labels: "",
        help: "Errors of messages to Kafka, and of connections to its brokers.",
        read: |report, put| of_kafka(report, put, |kafka| kafka.errors),
    },
];

fn by_exporter(report: &Report, put: Put<'_>, value: fn(&thalweg_records::collect::ExporterReport) -> u64) {
    for row in &report.exporters {
        let exporter = super::text::name(row);
        let domain = row.observation_domain_id.to_string();
        put(&[("exporter", &exporter), ("format", row.format.name()), ("domain", &domain)], value(row));
    }
}

fn by_socket(report: &Report, put: Put<'_>, value: fn(&thalweg_records::collect::SocketReport) -> u64) {
    for (number, socket) in report.sockets.iter().enumerate() {
        let (address, number) = (socket.address.to_string(), number.to_string());
        put(&[("address", &address), ("socket", &number)], value(socket));
    }
}

fn by_stream(report: &Report, put: Put<'_>, value: fn(&thalweg_records::collect::StreamReport) -> u64) {
    for stream in &report.streams {
        put(&[("address", &stream.listen.to_string())], value(stream));
    }
}

fn by_dataset(report: &Report, put: Put<'_>, value: fn(&thalweg_records::store::Statistics) -> u64) {
    put(&[("dataset", "flows")], value(&report.flows));
    put(&[("dataset", "interface-counters")], value(&report.counters));
}

/// Nothing where Kafka is not fed.
fn of_kafka(report: &Report, put: Put<'_>, value: fn(&thalweg_records::kafka::Statistics) -> u64) {
    if let Some(kafka) = &report.kafka {
        put(&[], value(kafka));
    }
}

/// What scrapers read.
fn page(report: &Report) -> String {
    let mut page = String::new();
    for metric in METRICS {
        let name = metric.name;
        let _ = writeln!(page, "# HELP {name} {}\n# TYPE {name} {}", metric.help, metric.kind);
        (metric.read)(report, &mut |labels, value| {
            let labels: Vec<String> =
                labels.iter().map(|(label, value)| format!("{label}=\"{value}\"")).collect();
            let _ = writeln!(page, "{name}{{{}}} {value}", labels.join(","));
        });
    }
    page
}

/// `docs/reference/collect-metrics.md`.
pub fn reference() -> String {
    let mut page = String::from(
        "# Metrics of the collector\n\n\
         <!-- Generated: THALWEG_REFRESH_GOLDEN=1 cargo test -p thalweg --test it reference -->\n\n\
         What `thalweg collect --metrics ADDRESS` says at `/metrics`, in Prometheus' text format. Counters begin at zero when\n\
         the collector is started; those of an exporter that has been silent for hours are forgotten with it.\n\n\
         | metric | type | labels | meaning |\n|---|---|---|---|\n",
    );
    for metric in METRICS {
        let labels = metric.labels.split(", ").filter(|label| !label.is_empty());
        let labels = labels.map(|label| format!("`{label}`")).collect::<Vec<_>>().join(", ");
        let _ = writeln!(page, "| `{}` | {} | {labels} | {} |", metric.name, metric.kind, metric.help);
    }
    page
}

/// Answers scrapers until it is dropped, one at a time.
pub(super) struct Server {
    report: Arc<Mutex<Report>>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// Listens from now on.
    pub(super) fn start(address: SocketAddr) -> io::Result<Server> {
        let listener = TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        let (report, stop) = (Arc::<Mutex<Report>>::default(), Arc::<AtomicBool>::default());
        let (shown, stopped) = (report.clone(), stop.clone());
        let thread = std::thread::Builder::new().name("metrics".to_owned()).spawn(move || {
            while !stopped.load(Ordering::Relaxed) {
                match listener.accept() {
                    // Who does not listen to the answer has no need of it.
                    Ok((stream, _)) => drop(answer(stream, &shown)),
                    Err(_) => std::thread::sleep(PAUSE),
                }
            }
        })?;
        Ok(Server { report, stop, thread: Some(thread) })
    }

    /// What to say from now on.
    pub(super) fn tell(&self, report: &Report) {
        report.clone_into(&mut self.report.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

fn answer(mut stream: TcpStream, report: &Mutex<Report>) -> io::Result<()> {
    let begun = Instant::now();
    stream.set_nonblocking(false)?;
    stream.set_read_timeout(Some(PATIENCE / 4))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let (mut request, mut length) = ([0; LONGEST_REQUEST], 0);
    while !request[..length].windows(4).any(|end| end == b"\r\n\r\n") {
        match stream.read(&mut request[length..])? {
            0 => return Ok(()),
            _ if begun.elapsed() > PATIENCE => return Ok(()),
            count => length += count,
        }
    }
    let is_for_us = request.starts_with(b"GET /metrics ") || request.starts_with(b"GET /metrics?");
    let (status, body) = match is_for_us {
        true => ("200 OK", page(&report.lock().unwrap_or_else(PoisonError::into_inner))),
        false => ("404 Not Found", "metrics are at /metrics\n".to_owned()),
    };
    write!(
        stream,
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; version=0.0.4\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    )
}
