//! `thalweg collect`.

#![allow(rustdoc::broken_intra_doc_links, reason = "help has brackets that are no links")]

use std::io::{self, IsTerminal};
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use thalweg_records::collect::{CollectOptions, Listen, StreamLimits};
use thalweg_records::geo::GeoDatabases;
use thalweg_records::kafka::{KafkaOptions, Setting};
use thalweg_records::store::StoreOptions;
use thalweg_wire::flow_export::Limits;
use thalweg_wire::{Bytes, Nanos};

use super::exit_code::ExitCode;
use crate::collect::{self, CollectRequest, RequestError, Sampling, Show};
use crate::config::value::parse;

/// The number of exporters whose buffers of data without a template may be full at the same time.
const FULL_TEMPLATE_BUFFERS: usize = 64;

/// Receive flow records from routers and write them to Parquet files.
///
/// Accepts NetFlow v5 and v9, IPFIX and sFlow on any UDP port, and IPFIX over TCP and TLS. Writes
/// DIR/flows/date=.../hour=.../*.parquet, where every file is complete and readable at any time, and sFlow interface
/// counters to DIR/interface-counters. Counts every loss where it occurs. Ctrl-C and SIGTERM write all pending records and
/// exit. SIGUSR1 prints the exporters.
#[derive(Args, Debug)]
pub(super) struct CollectArgs {
    /// Listen addresses: [udp:|tcp:|tls:][ADDRESS:]PORT [default: UDP ports 2055, 4739 and 6343].
    ///
    /// Examples: 9995, 10.0.0.1:2055, [2001:db8::1]:6343, tcp:4739, tls:4740. Without ADDRESS, listens on all IPv4 and IPv6
    /// addresses. With --replay: UDP ports to read; by default all that look like export messages.
    #[arg(value_name = "LISTEN")]
    listen: Vec<Listen>,

    /// Output directory. Created if missing.
    #[arg(short, long = "output", value_name = "DIR")]
    output_dir: PathBuf,

    #[command(flatten)]
    input: InputArgs,

    #[command(flatten)]
    store: StoreArgs,

    #[command(flatten)]
    kafka: KafkaArgs,

    #[command(flatten)]
    output: OutputArgs,

    #[command(flatten)]
    tls: TlsArgs,
}

#[derive(Args, Debug)]
#[command(next_help_heading = "Input")]
struct InputArgs {
    /// Read export messages from capture files (pcap, pcapng, .gz, .zst; `-` for standard input) instead of sockets.
    ///
    /// Time follows the packet timestamps. IP fragments are counted, not reassembled.
    #[arg(long, value_name = "FILE", num_args = 1..)]
    replay: Vec<PathBuf>,

    /// Sampling interval: 1 in N packets. N applies to exporters that do not report one, EXPORTER=N to one exporter,
    /// whatever it reports.
    #[arg(long, value_name = "[EXPORTER=]N")]
    sampling: Vec<Sampling>,

    /// File with sampling intervals: a section [sampling] with lines such as "10.0.0.1" = 1000 and default = 100.
    #[arg(long, value_name = "FILE")]
    sampling_file: Option<PathBuf>,

    /// Store the packet in a tunnel instead of the tunnel, where exporters send both headers.
    ///
    /// Applies to sampled packets (sFlow, IPFIX packet sections; GRE, VXLAN, Geneve, IP in IP) and to templates with outer
    /// and inner addresses (SRv6, ...). By default, the columns inner_src, inner_dst, ... have the packet in the tunnel.
    #[arg(long)]
    decapsulate: bool,

    /// Databases of countries and AS numbers in MMDB format: GeoLite2, DB-IP or IPinfo. Fills src_country and dst_country, and
    /// src_as and dst_as where the exporter sends none. The first database that knows an address applies.
    ///
    /// A file that is replaced, as by geoipupdate, is read again within ten seconds. Private addresses are not looked up.
    #[arg(long, value_name = "FILE")]
    mmdb: Vec<PathBuf>,

    /// Replace AS numbers that exporters send by those of the databases.
    #[arg(long, requires = "mmdb")]
    mmdb_replace_as: bool,

    /// Receiving threads per UDP address. The kernel distributes exporters over them.
    #[arg(long, value_name = "N", default_value = "1")]
    threads: NonZeroUsize,

    /// Receive buffer of each UDP socket.
    ///
    /// Datagrams that find the buffer full are lost and counted. Sizes above net.core.rmem_max need CAP_NET_ADMIN; a warning
    /// is logged if the kernel grants less.
    #[arg(long, value_name = "SIZE", default_value = "64MiB", value_parser = parse::<Bytes>)]
    receive_buffer: Bytes,

    /// Maximum connections per TCP or TLS listen address.
    ///
    /// At this limit, and at that per source, a new connection replaces the oldest that has sent no message within ten seconds,
    /// or is refused.
    #[arg(long, value_name = "N", default_value = "256")]
    connections: NonZeroUsize,

    /// Maximum connections per listen address and source: an IPv4 address or an IPv6 subnet of 64 bits.
    #[arg(long, value_name = "N", default_value = "64")]
    connections_per_source: NonZeroUsize,

    /// Close TCP and TLS connections that sent no message for this long.
    #[arg(long, value_name = "TIME", default_value = "30min", value_parser = parse::<Nanos>)]
    connection_timeout: Nanos,

    /// Maximum observation domains per exporter and source port. Messages of others are dropped and counted.
    #[arg(long, value_name = "N", default_value = "256")]
    domains: NonZeroUsize,

    /// Memory for data that wait for their template, per exporter and source port.
    ///
    /// The oldest data are dropped and counted when it is full. All exporters of a thread together have 64 times as much.
    #[arg(long, value_name = "SIZE", default_value = "256KiB", value_parser = parse::<Bytes>)]
    template_buffer: Bytes,

    /// Drop data whose template has not arrived after this long, counted.
    #[arg(long, value_name = "TIME", default_value = "10min", value_parser = parse::<Nanos>)]
    template_wait: Nanos,

    /// Stop after this long.
    #[arg(long, value_name = "TIME", value_parser = parse::<Nanos>)]
    duration: Option<Nanos>,

    /// Stop after about this many flow records.
    #[arg(long, value_name = "N")]
    count: Option<u64>,
}

#[derive(Args, Debug)]
#[command(next_help_heading = "Files")]
struct StoreArgs {
    /// Prefix of file names. Must be unique among processes that write to one directory.
    #[arg(long, value_name = "NAME", default_value = "collect")]
    name: String,

    /// Sync records to disk at least this often: a crash loses at most the records of this time.
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = parse::<Nanos>)]
    sync_interval: Nanos,

    /// Time span of one file. Must divide one hour, such as 1min, 5min, 15min or 1h.
    #[arg(long, value_name = "TIME", default_value = "5min", value_parser = parse::<Nanos>)]
    file_span: Nanos,

    /// zstd compression level.
    #[arg(long, value_name = "1-22", default_value = "1")]
    compression: i32,

    /// Delete files older than this [default: never].
    #[arg(long, value_name = "TIME", value_parser = parse::<Nanos>)]
    retention_age: Option<Nanos>,

    /// Delete the oldest files above this total size [default: never].
    #[arg(long, value_name = "SIZE", value_parser = parse::<Bytes>)]
    retention_size: Option<Bytes>,
}

#[derive(Args, Debug)]
#[command(next_help_heading = "Kafka")]
struct KafkaArgs {
    /// Also send flow records to these Kafka bootstrap brokers. Needs a build with the feature `kafka`.
    ///
    /// Records are JSON objects with the column names of the files, keyed by exporter address. Slow brokers never delay
    /// collection: records that they cannot take are dropped and counted. The files remain complete.
    #[arg(long, value_name = "HOST:PORT,...")]
    kafka: Option<String>,

    /// Kafka topic.
    #[arg(long, value_name = "TOPIC", default_value = "flows", requires = "kafka")]
    kafka_topic: String,

    /// Maximum records per Kafka message, one per line. More records per message take less CPU time; most consumers expect
    /// one.
    #[arg(long, value_name = "N", default_value = "1", requires = "kafka")]
    kafka_records_per_message: NonZeroUsize,

    /// librdkafka property, such as security.protocol=SASL_SSL. KEY=@FILE reads the value from a file.
    #[arg(long, value_name = "KEY=VALUE", requires = "kafka")]
    kafka_option: Vec<Setting>,
}

#[derive(Args, Debug)]
#[command(next_help_heading = "Output")]
struct OutputArgs {
    /// Write JSON lines: a status every --interval and a summary at the end.
    #[arg(long, conflicts_with = "summary")]
    json: bool,

    /// Print a report at the end instead of the live view.
    #[arg(long)]
    summary: bool,

    /// Status interval.
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = parse::<Nanos>)]
    interval: Nanos,

    /// Serve Prometheus metrics at http://ADDRESS:PORT/metrics.
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = socket_address)]
    metrics: Option<SocketAddr>,
}

#[derive(Args, Debug)]
#[command(next_help_heading = "TLS")]
struct TlsArgs {
    /// Server certificate chain (PEM), leaf first.
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_certificate: Option<PathBuf>,

    /// Private key of the server certificate (PEM).
    #[arg(long, value_name = "FILE", requires = "tls_certificate")]
    tls_key: Option<PathBuf>,

    /// CA certificates (PEM) that must have issued the exporters' certificates.
    #[arg(long, value_name = "FILE", requires = "tls_certificate")]
    tls_client_ca_file: Option<PathBuf>,
}

impl CollectArgs {
    /// Runs the command.
    ///
    /// # Errors
    /// If flags or files are invalid, or as [`collect::run`].
    pub(super) fn run(self) -> anyhow::Result<ExitCode> {
        let request = self.request(io::stdout().is_terminal())?;
        Ok(collect::run(request)?.into())
    }

    fn request(self, is_terminal: bool) -> Result<CollectRequest, RequestError> {
        let CollectArgs { listen, output_dir, input, store, kafka, output, tls } = self;
        let files = input.sampling_file.as_deref().map(Sampling::load).transpose()?.unwrap_or_default();
        let default = CollectOptions::new(StoreOptions::new(output_dir), thalweg_linux::clock::realtime);
        let tls = tls.tls_certificate.zip(tls.tls_key).map(|(certificate, key)| {
            collect::load_tls(&certificate, &key, tls.tls_client_ca_file.as_deref())
        });
        let mut process = CollectOptions {
            receivers: input.threads,
            receive_buffer: in_memory(input.receive_buffer),
            limits: Limits {
                domains: input.domains.get(),
                held_bytes: in_memory(input.template_buffer),
                total_held_bytes: in_memory(input.template_buffer).saturating_mul(FULL_TEMPLATE_BUFFERS),
                held_for: input.template_wait,
                ..default.limits
            },
            decapsulate: input.decapsulate,
            geo: databases(&input.mmdb, input.mmdb_replace_as)?,
            streams: StreamLimits {
                connections: input.connections.get(),
                connections_per_source: input.connections_per_source.get(),
                idle_timeout: input.connection_timeout,
                ..StreamLimits::default()
            },
            tls: tls.transpose()?,
            store: StoreOptions {
                name: store.name,
                sync_interval: store.sync_interval,
                file_span: store.file_span,
                compression_level: store.compression,
                keep: store.retention_age,
                keep_bytes: store.retention_size.map(|size| size.0),
                ..default.store.clone()
            },
            kafka: kafka.kafka.map(|brokers| KafkaOptions {
                records_per_message: kafka.kafka_records_per_message,
                settings: kafka.kafka_option,
                ..KafkaOptions::new(brokers, kafka.kafka_topic)
            }),
            ..default
        };
        // Without ports, captures are read whole.
        if !listen.is_empty() || !input.replay.is_empty() {
            process.listen = listen;
        }
        // Flags after the file: they override it.
        for Sampling { exporter, interval } in files.into_iter().chain(input.sampling) {
            match exporter {
                None => process.limits = Limits { default_sampling: interval, ..process.limits },
                Some(exporter) => drop(process.sampling.insert(exporter, interval)),
            }
        }
        let show = match () {
            () if output.json => Show::Json,
            () if output.summary || !is_terminal || !input.replay.is_empty() => Show::Summary,
            () => Show::LiveView,
        };
        Ok(CollectRequest {
            process,
            replay: input.replay,
            show,
            interval: Duration::from_nanos(output.interval.0),
            metrics: output.metrics,
            duration: input.duration.map(|time| Duration::from_nanos(time.0)),
            count: input.count,
        })
    }
}

/// Opens the databases of `--mmdb`.
pub(super) fn databases(
    paths: &[PathBuf],
    replaces_as: bool,
) -> Result<Option<Arc<GeoDatabases>>, RequestError> {
    if paths.is_empty() {
        return Ok(None);
    }
    Ok(Some(Arc::new(GeoDatabases::open(paths)?.replace_as(replaces_as))))
}

/// Returns a size in memory.
fn in_memory(size: Bytes) -> usize {
    usize::try_from(size.0).unwrap_or(usize::MAX)
}

/// Parses a socket address.
fn socket_address(text: &str) -> Result<SocketAddr, &'static str> {
    text.parse().map_err(|_| "expected an IP address and a port, such as 127.0.0.1:9478")
}
