//! `thalweg collect`.

#![allow(rustdoc::broken_intra_doc_links, reason = "help has brackets that are no links")]

use std::io::{self, IsTerminal};
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use thalweg_records::collect::{CollectOptions, Listen, StreamLimits};
use thalweg_records::kafka::{KafkaOptions, Setting};
use thalweg_records::store::StoreOptions;
use thalweg_wire::flow_export::Limits;
use thalweg_wire::{Bytes, Nanos};

use super::exit_code::ExitCode;
use crate::collect::{self, CollectRequest, RequestError, Sampling, Show};
use crate::config::value::parse;

/// Receive flow records from routers, and keep them as Parquet.
///
/// Reads NetFlow v5 and v9, IPFIX and sFlow, told apart by their version numbers, on any port: over UDP, and IPFIX over TCP
/// and TLS. Records go to files of Parquet, DIR/flows/date=.../hour=.../, each complete and readable at any time; interface
/// counters of sFlow to DIR/interface-counters. What is lost is counted where it is lost. Ctrl-C or SIGTERM ends it when
/// everything is written; SIGUSR1 prints the table of exporters.
#[derive(Args, Debug)]
pub(super) struct CollectArgs {
    /// Where to listen: [udp:|tcp:|tls:][ADDRESS:]PORT [default: 2055 4739 6343, UDP, all addresses].
    ///
    /// Such as 9995, 10.0.0.1:2055, [2001:db8::1]:6343, tcp:4739, tls:4740. Without an address, all of IPv4 and IPv6.
    /// With --replay, UDP ports of the datagrams to read; by default whatever looks like an export message.
    #[arg(value_name = "LISTEN")]
    listen: Vec<Listen>,

    /// Where the files go; made if it is not there.
    #[arg(short, long, value_name = "DIR")]
    out: PathBuf,

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
    /// Read export messages from captures in place of sockets: pcap or pcapng, also compressed; `-` for standard input.
    ///
    /// Time passes as the captures have it. Fragments are not put together, but counted.
    #[arg(long, value_name = "FILE", num_args = 1..)]
    replay: Vec<PathBuf>,

    /// One packet in N is counted, where an exporter does not say so itself; EXPORTER=N for one exporter.
    #[arg(long, value_name = "[EXPORTER=]N")]
    sampling: Vec<Sampling>,

    /// The same from a file: lines "10.0.0.1" = 1000 and default = 100 in a section [sampling].
    #[arg(long, value_name = "FILE")]
    exporters: Option<PathBuf>,

    /// Sockets for each UDP address, each with a thread; the kernel spreads exporters over them.
    #[arg(long, value_name = "N", default_value = "1")]
    receivers: NonZeroUsize,

    /// Receive buffer of each UDP socket.
    ///
    /// What arrives while a thread is busy waits there; what finds it full is lost, and counted. Above net.core.rmem_max it
    /// takes the capability CAP_NET_ADMIN; a warning says if the kernel gave less.
    #[arg(long, value_name = "SIZE", default_value = "64MiB", value_parser = parse::<Bytes>)]
    receive_buffer: Bytes,

    /// Connections to one address of TCP or TLS at a time.
    #[arg(long, value_name = "N", default_value = "256")]
    connections: NonZeroUsize,

    /// Close a connection that has sent no message for so long.
    #[arg(long, value_name = "TIME", default_value = "30min", value_parser = parse::<Nanos>)]
    idle: Nanos,

    /// Stop after this time.
    #[arg(long, value_name = "TIME", value_parser = parse::<Nanos>)]
    duration: Option<Nanos>,

    /// Stop after this many flow records, or a few more.
    #[arg(long, value_name = "N")]
    count: Option<u64>,
}

#[derive(Args, Debug)]
#[command(next_help_heading = "Files")]
struct StoreArgs {
    /// Begins the names of files: collectors that write into one directory have different names.
    #[arg(long, value_name = "NAME", default_value = "collect")]
    name: String,

    /// A crash loses no more than what came within this time.
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = parse::<Nanos>)]
    loss_bound: Nanos,

    /// Time that a file covers; divides the hour.
    #[arg(long, value_name = "TIME", default_value = "5min", value_parser = parse::<Nanos>)]
    file_span: Nanos,

    /// Compression level of zstd.
    #[arg(long, value_name = "1-22", default_value = "1")]
    compression: i32,

    /// Remove files when all their records are so old [default: never].
    #[arg(long, value_name = "TIME", value_parser = parse::<Nanos>)]
    retention_age: Option<Nanos>,

    /// Remove the oldest files while there are more bytes than this [default: never].
    #[arg(long, value_name = "SIZE", value_parser = parse::<Bytes>)]
    retention_size: Option<Bytes>,
}

#[derive(Args, Debug)]
#[command(next_help_heading = "Kafka")]
struct KafkaArgs {
    /// Send every flow record to Kafka as well: brokers to begin with, commas between; takes a build with the feature `kafka`.
    ///
    /// As JSON with the names of the files' columns; the exporter's address is the message's key. Nothing waits for brokers: what
    /// they are too slow for is not sent, and counted. The files stay the safe copy.
    #[arg(long, value_name = "HOST:PORT,...")]
    kafka: Option<String>,

    /// The topic.
    #[arg(long, value_name = "TOPIC", default_value = "flows", requires = "kafka")]
    kafka_topic: String,

    /// Most records of a message, a line each. Many in one cost less; for one alone any reader is good.
    #[arg(long, value_name = "N", default_value = "1", requires = "kafka")]
    kafka_rows: NonZeroUsize,

    /// A setting of librdkafka, such as security.protocol=SASL_SSL; =@FILE takes the value from a file.
    #[arg(long, value_name = "KEY=VALUE", requires = "kafka")]
    kafka_option: Vec<Setting>,
}

#[derive(Args, Debug)]
#[command(next_help_heading = "Output")]
struct OutputArgs {
    /// One JSON object a line: a status every --interval, and the summary last.
    #[arg(long, conflicts_with = "summary")]
    json: bool,

    /// A report at the end, in place of the live view.
    #[arg(long)]
    summary: bool,

    /// How often to show how things stand.
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = parse::<Nanos>)]
    interval: Nanos,

    /// Answer Prometheus at http://ADDRESS:PORT/metrics.
    #[arg(long, value_name = "ADDRESS:PORT")]
    metrics: Option<SocketAddr>,
}

#[derive(Args, Debug)]
#[command(next_help_heading = "TLS")]
struct TlsArgs {
    /// Chain of certificates to show, PEM, the own first.
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_certificate: Option<PathBuf>,

    /// Private key of that certificate, PEM.
    #[arg(long, value_name = "FILE", requires = "tls_certificate")]
    tls_key: Option<PathBuf>,

    /// Certificates of authorities, PEM: exporters need a certificate of one of them.
    #[arg(long, value_name = "FILE", requires = "tls_certificate")]
    tls_client_ca: Option<PathBuf>,
}

impl CollectArgs {
    /// Does it.
    ///
    /// # Errors
    /// If flags or files make no sense, or as [`collect::run`].
    pub(super) fn run(self) -> anyhow::Result<ExitCode> {
        let request = self.request(io::stdout().is_terminal())?;
        Ok(collect::run(request)?.into())
    }

    fn request(self, is_terminal: bool) -> Result<CollectRequest, RequestError> {
        let CollectArgs { listen, out, input, store, kafka, output, tls } = self;
        let files = input.exporters.as_deref().map(Sampling::load).transpose()?.unwrap_or_default();
        let default = CollectOptions::new(StoreOptions::new(out), collect::clock);
        let tls = tls
            .tls_certificate
            .zip(tls.tls_key)
            .map(|(certificate, key)| collect::load_tls(&certificate, &key, tls.tls_client_ca.as_deref()));
        let mut process = CollectOptions {
            receivers: input.receivers,
            receive_buffer: usize::try_from(input.receive_buffer.0).unwrap_or(usize::MAX),
            streams: StreamLimits {
                connections: input.connections.get(),
                idle: input.idle,
                ..StreamLimits::default()
            },
            tls: tls.transpose()?,
            store: StoreOptions {
                name: store.name,
                loss_bound: store.loss_bound,
                file_span: store.file_span,
                compression_level: store.compression,
                keep: store.retention_age,
                keep_bytes: store.retention_size.map(|size| size.0),
                ..default.store.clone()
            },
            kafka: kafka.kafka.map(|brokers| KafkaOptions {
                rows: kafka.kafka_rows,
                settings: kafka.kafka_option,
                ..KafkaOptions::new(brokers, kafka.kafka_topic)
            }),
            ..default
        };
        // With captures, no ports are any ports.
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
