//! `thalweg synth`. Flow records are in [`records`].

mod output;
mod records;

use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::{Args, ValueEnum};
use indicatif::{ProgressBar, ProgressStyle};
use thalweg_wire::capture_file::pcap::Precision;
use thalweg_wire::{BitRate, Bytes, LinkType, Nanos, Timestamp};

use self::output::{Output, Unfinished};
use self::records::{RecordArgs, Shared};
use crate::config::value::parse;
use crate::console;
use thalweg_synth::trace::{SynthError, SynthOptions, SynthSummary, generate};

/// Name of standard output.
const STANDARD_OUTPUT: &str = "-";

/// Generate test traffic with known cheetah flows: packets or flow records.
///
/// Writes a pcap file like that of a backbone link: heavy-tailed flow sizes, IPv4 and some IPv6, TCP with valid sequence
/// numbers. Contains planted cheetah flows and near misses, which the truth file lists. The same options give identical
/// bytes on any machine.
///
/// With --netflow, generates the flow records of a research network whose routers sample 1 in 1000 packets. Contains planted
/// flowsets (the parallel flows of a transfer, not the FlowSets of NetFlow v9), single large flows and ordinary transfers. Output is a pcap file of NetFlow v9 (--output), Parquet files, or
/// UDP to a flow receiver.
#[derive(Args, Debug)]
pub(super) struct SynthArgs {
    /// Output pcap file. `-` is standard output.
    #[arg(
        short,
        long,
        value_name = "FILE",
        help_heading = "Output",
        required_unless_present_any = ["parquet", "send"]
    )]
    output: Option<PathBuf>,

    /// Generate flow records instead of packets.
    #[arg(long, help_heading = "Output")]
    netflow: bool,

    /// Truth file: planted flows as CSV [default: none]. With --netflow as JSON if FILE ends in .json.
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    truth: Option<PathBuf>,

    /// Print the summary as JSON.
    #[arg(long, help_heading = "Output")]
    json: bool,

    #[command(flatten)]
    traffic: TrafficArgs,

    #[command(flatten)]
    planted: PlantedArgs,

    #[command(flatten)]
    file: FileArgs,

    #[command(flatten)]
    records: RecordArgs,
}

#[derive(Args, Debug)]
#[command(next_help_heading = "Traffic")]
struct TrafficArgs {
    /// Total number of packets, such as 250000, 500k or 38M [default: 1M].
    #[arg(short = 'n', long, value_name = "N", value_parser = count, conflicts_with = "netflow")]
    packets: Option<u64>,

    /// Total number of bidirectional flows [default: 1.5M per 38M packets].
    #[arg(long, value_name = "N", value_parser = count, conflicts_with = "netflow")]
    flows: Option<u64>,

    /// Duration of the trace [default: 60s per 38M packets, at least 10 T; flow records: 48h].
    #[arg(long, value_name = "TIME", value_parser = parse::<Nanos>)]
    duration: Option<Nanos>,

    /// Start of the trace in seconds since 1970 [default: 1403182800, which is 2014-06-19 13:00 UTC].
    #[arg(long, value_name = "SECONDS")]
    start: Option<u64>,

    /// Random seed [default: 1].
    #[arg(long, value_name = "N")]
    seed: Option<u64>,

    /// Share of IPv6 flows, 0 to 1. Planted flow records are IPv4 [default: 0.03; flow records: 0.1].
    #[arg(long, value_name = "SHARE", value_parser = share)]
    ipv6_share: Option<f64>,

    /// Share of UDP among background flows, 0 to 1 [default: 0.15].
    #[arg(long, value_name = "SHARE", conflicts_with = "netflow")]
    udp_share: Option<f64>,

    /// Shape of the Pareto distribution of flow sizes [default: derived from their mean].
    #[arg(long, value_name = "SHAPE", conflicts_with = "netflow")]
    pareto_shape: Option<f64>,

    /// Share of flood packets, each with a unique 5-tuple [default: 0].
    #[arg(long, value_name = "SHARE", conflicts_with = "netflow")]
    flood_share: Option<f64>,
}

#[derive(Args, Debug)]
#[command(next_help_heading = "Planted flows")]
struct PlantedArgs {
    /// Number of cheetah flows [default: one per 25,000 packets].
    #[arg(long, value_name = "N", value_parser = count, conflicts_with = "netflow")]
    cheetahs: Option<u64>,

    /// Number of planted near misses: flows with 0.6 to 0.95 times the threshold within T [default: one per 25,000 packets].
    #[arg(long, value_name = "N", value_parser = count, conflicts_with = "netflow")]
    near_misses: Option<u64>,

    /// T, the flight duration of cheetah flows [default: 100ms].
    #[arg(short = 'T', long, value_name = "TIME", value_parser = parse::<Nanos>, conflicts_with = "netflow")]
    flight_duration: Option<Nanos>,

    /// R: a cheetah flow sends more than R*T bytes within T [default: 50mbps].
    #[arg(short = 'R', long, value_name = "RATE", value_parser = parse::<BitRate>, conflicts_with = "netflow")]
    rate_threshold: Option<BitRate>,
}

#[derive(Args, Debug)]
#[command(next_help_heading = "File")]
struct FileArgs {
    /// Captured bytes per packet [default: 64B].
    #[arg(long, value_name = "SIZE", value_parser = size::<u32>, conflicts_with = "netflow")]
    snap_length: Option<u32>,

    /// Link type of the file [default: raw-ip].
    #[arg(long, value_enum, value_name = "NAME", conflicts_with = "netflow")]
    link_type: Option<LinkName>,

    /// Timestamp precision [default: nanoseconds].
    #[arg(long, value_enum, value_name = "NAME", conflicts_with = "netflow")]
    precision: Option<PrecisionName>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum LinkName {
    /// No link header
    RawIp,
    /// Ethernet
    Ethernet,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum PrecisionName {
    /// As tcpdump by default
    Microseconds,
    /// For fast links
    Nanoseconds,
}

impl SynthArgs {
    /// Runs the command.
    ///
    /// # Errors
    /// If options contradict each other, or a file cannot be written.
    pub(super) fn run(self) -> anyhow::Result<()> {
        match self.netflow {
            true => self.records.run(&self.shared()),
            false => self.write_packets(),
        }
    }

    fn shared(&self) -> Shared<'_> {
        Shared {
            output: self.output.as_deref(),
            truth: self.truth.as_deref(),
            json: self.json,
            seed: self.traffic.seed.unwrap_or(SynthOptions::default().seed),
            start: self.traffic.start,
            duration: self.traffic.duration,
            ipv6_share: self.traffic.ipv6_share,
        }
    }

    fn write_packets(&self) -> anyhow::Result<()> {
        let options = self.options();
        options.validate()?;
        let output = self.output.as_deref().unwrap_or(Path::new(STANDARD_OUTPUT));
        let goes_to_stdout = output == Path::new(STANDARD_OUTPUT);
        let unfinished = Unfinished::on_signals()?;
        let mut trace = Output::create(output, &unfinished)?;
        let truth = self.truth.as_deref().map(|path| Output::create(path, &unfinished)).transpose()?;
        let mut truth = BufWriter::new(OptionalOutput(truth));
        let bar = progress_bar(options.packets, "packets");
        let summary = generate(&options, &mut trace, &mut truth, &mut |packets| bar.set_position(packets));
        bar.finish_and_clear();
        let summary = summary.map_err(classify_error)?;
        trace.finish().context("cannot write the trace")?;
        let truth = truth.into_inner().map_err(io::IntoInnerError::into_error);
        truth.and_then(OptionalOutput::finish).context("cannot write the truth file")?;
        let text = if self.json { to_json(&summary)? } else { to_text(&summary) };
        match goes_to_stdout {
            true => io::stderr().write_all(text.as_bytes()).context("cannot write the summary"),
            false => super::print(text),
        }
    }

    /// Merges the flags with the defaults.
    fn options(&self) -> SynthOptions {
        let SynthArgs { traffic, planted, file, .. } = self;
        let default = SynthOptions::default();
        SynthOptions {
            packets: traffic.packets.unwrap_or(default.packets),
            flows: traffic.flows,
            duration: traffic.duration,
            seed: traffic.seed.unwrap_or(default.seed),
            ipv6_share: traffic.ipv6_share.unwrap_or(default.ipv6_share),
            udp_share: traffic.udp_share.unwrap_or(default.udp_share),
            pareto_shape: traffic.pareto_shape,
            flood_share: traffic.flood_share.unwrap_or(default.flood_share),
            cheetahs: planted.cheetahs,
            near_misses: planted.near_misses,
            flight_duration: planted.flight_duration.unwrap_or(default.flight_duration),
            rate_threshold: planted.rate_threshold.unwrap_or(default.rate_threshold),
            snap_length: file.snap_length.unwrap_or(default.snap_length),
            link_type: file.link_type.map_or(default.link_type, LinkName::link_type),
            precision: file.precision.map_or(default.precision, PrecisionName::precision),
            start: traffic.start.map_or(default.start, |seconds| Timestamp::new(seconds, 0)),
        }
    }
}

impl LinkName {
    fn link_type(self) -> LinkType {
        match self {
            LinkName::RawIp => LinkType::RawIp,
            LinkName::Ethernet => LinkType::Ethernet,
        }
    }
}

impl PrecisionName {
    fn precision(self) -> Precision {
        match self {
            PrecisionName::Microseconds => Precision::Micros,
            PrecisionName::Nanoseconds => Precision::Nanos,
        }
    }
}

/// An output, or nothing.
struct OptionalOutput(Option<Output>);

impl OptionalOutput {
    fn finish(self) -> io::Result<()> {
        self.0.map_or(Ok(()), Output::finish)
    }
}

impl Write for OptionalOutput {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.as_mut().map_or(Ok(bytes.len()), |output| output.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.as_mut().map_or(Ok(()), Output::flush)
    }
}

/// Converts an error so that [`super::exit_code::ExitCode::of`] distinguishes invalid options from write failures.
fn classify_error(error: SynthError) -> anyhow::Error {
    match error {
        SynthError::Options(error) => error.into(),
        SynthError::Trace(error) => anyhow::Error::new(error).context("cannot write the trace"),
        SynthError::Truth(error) => anyhow::Error::new(error).context("cannot write the truth file"),
        error => anyhow::Error::new(error),
    }
}

/// Returns a progress bar on standard error, hidden if that is not a terminal.
fn progress_bar(total: u64, name: &str) -> ProgressBar {
    if !console::shows_progress() {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template(&format!(
        "{{bar:40}} {{pos}}/{{len}} {name}  {{per_sec}}  {{eta}} left"
    ))
    .unwrap_or_else(|_| ProgressStyle::default_bar());
    ProgressBar::new(total).with_style(style)
}

fn to_json(summary: &SynthSummary) -> anyhow::Result<String> {
    Ok(serde_json::to_string(summary)? + "\n")
}

fn to_text(summary: &SynthSummary) -> String {
    let SynthSummary { packets, flows, bytes, ipv6_packets, cheetahs, near_misses, duration } = summary;
    format!(
        "{packets} packets ({ipv6_packets} IPv6) of {flows} flows in {duration}, {} at the IP layer\n\
         {cheetahs} cheetah flows, and {near_misses} other flows above half the threshold, planted or not\n",
        Bytes(*bytes)
    )
}

/// Parses a share.
fn share(text: &str) -> Result<f64, &'static str> {
    let share = text.parse().ok().filter(|share| (0.0..=1.0).contains(share));
    share.ok_or("expected a number from 0 to 1, such as 0.03")
}

/// Parses a count: `250000`, `500k`, `38M`, `1.5M`.
fn count(text: &str) -> Result<u64, String> {
    let (number, scale) = match text.char_indices().next_back() {
        Some((end, 'k' | 'K')) => (&text[..end], 1e3),
        Some((end, 'M')) => (&text[..end], 1e6),
        Some((end, 'G')) => (&text[..end], 1e9),
        _ => (text, 1.0),
    };
    let is_number = number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let count = number.parse::<f64>().ok().map(|number| number * scale);
    match count.filter(|&count| is_number && count.fract() == 0.0 && count < u64::MAX as f64) {
        Some(count) => Ok(count as u64),
        None => Err("expected a whole number, such as 250000, 500k or 38M".to_owned()),
    }
}

/// Parses a size in bytes: `1500`, `1500B`, `64KiB`.
fn size<T: TryFrom<u64>>(text: &str) -> Result<T, String> {
    let Bytes(bytes) = parse(text)?;
    T::try_from(bytes).map_err(|_| "too large".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_accept_decimal_suffixes() {
        assert_eq!(count("250000"), Ok(250_000));
        assert_eq!(count("500k"), Ok(500_000));
        assert_eq!(count("1.5M"), Ok(1_500_000));
        assert_eq!(count("4G"), Ok(4_000_000_000));
        for text in ["", "M", "-1", "1e6", "0.5", "12Q", "inf", "µ"] {
            assert!(count(text).is_err(), "{text}");
        }
    }
}
