//! `thalweg synth --netflow`.

use std::io::{self, Write};
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context;
use clap::Args;
use serde::Serialize;
use thalweg_synth::records::capture::Capture;
use thalweg_synth::records::datagrams::Datagrams;
use thalweg_synth::records::hour_files::HourFiles;
use thalweg_synth::records::sender::{Prepared, Sender};
use thalweg_synth::records::{Generator, Kind, Options, Truth};
use thalweg_wire::flow_export::RecordBatch;
use thalweg_wire::{Nanos, Timestamp};

use super::output::{Output, Unfinished, write_file};
use super::{STANDARD_OUTPUT, count, progress_bar, size};
use crate::config::value::parse;

/// Rows per batch: a page of Parquet.
const ROWS: usize = 1 << 15;

/// Batches per second at a limited rate, and the minimum and maximum rows of one.
const RATE_STEPS_PER_SECOND: u64 = 500;
const RATE_BATCH: (u64, u64) = (64, 4_096);

/// Datagrams sent between two checks of the clock with --pregenerate.
const SEND_BATCH: usize = 256;

#[derive(Args, Debug)]
#[command(next_help_heading = "Flow records (--netflow)")]
#[group(requires = "netflow")]
pub(super) struct RecordArgs {
    /// Output directory for Parquet files, laid out as by `thalweg collect`.
    #[arg(long, value_name = "DIR")]
    parquet: Option<PathBuf>,

    /// Send NetFlow v9 over UDP to this address. Routers differ by source ID.
    #[arg(long, value_name = "HOST:PORT")]
    send: Option<String>,

    /// Records per second to send [default: unlimited].
    #[arg(long, value_name = "N", requires = "send", value_parser = count)]
    rate: Option<u64>,

    /// Generate all datagrams before sending the first, to reach millions of records per second. Takes about 70 bytes of
    /// memory per record.
    #[arg(long, requires = "send")]
    pregenerate: bool,

    /// Truth file of planted transfers as CSV: flowsets, single flows, ordinary transfers and chains.
    #[arg(long, value_name = "FILE")]
    truth_transfers: Option<PathBuf>,

    /// Total number of records [default: 1M].
    #[arg(long, value_name = "N", value_parser = count)]
    records: Option<u64>,

    /// Sampling interval of the routers: 1 in N packets [default: 1000].
    #[arg(long, value_name = "N")]
    sampling_interval: Option<u32>,

    /// Active timeout of the routers [default: 60s].
    #[arg(long, value_name = "TIME", value_parser = parse::<Nanos>)]
    active_timeout: Option<Nanos>,

    /// Idle timeout of the routers [default: 15s].
    #[arg(long, value_name = "TIME", value_parser = parse::<Nanos>)]
    idle_timeout: Option<Nanos>,

    /// Number of routers, 1 to 254 [default: 66].
    #[arg(long, value_name = "N")]
    routers: Option<u8>,

    /// Routers per path, each of which exports every flow, 1 to 8 [default: 3, or --routers if less].
    #[arg(long, value_name = "N")]
    path_routers: Option<u8>,

    /// Routers meter packets on egress too, not only on ingress.
    #[arg(long)]
    meter_egress: bool,

    /// Number of flowsets with several flows, see --flowset-flows [default: one per 4,000 records].
    #[arg(long, value_name = "N", value_parser = count)]
    flowsets: Option<u64>,

    /// Flows of each flowset, in turn; one with 1 counts as a single flow [default: 2,4,2,8,2,4,2,3,4,16].
    #[arg(long, value_name = "N,N,...", value_delimiter = ',')]
    flowset_flows: Vec<u32>,

    /// Maximum time between the starts of the flows of one flowset [default: 2s].
    #[arg(long, value_name = "TIME", value_parser = parse::<Nanos>)]
    start_spread: Option<Nanos>,

    /// Number of flowsets that cross midnight UTC [default: 1 in 100].
    #[arg(long, value_name = "N", value_parser = count)]
    across_midnight: Option<u64>,

    /// Number of single large flows [default: one per 4,000 records].
    #[arg(long, value_name = "N", value_parser = count)]
    single_flows: Option<u64>,

    /// Number of transfers below 1 GB, the threshold of elephant flows [default: as many as single flows].
    #[arg(long, value_name = "N", value_parser = count)]
    ordinary: Option<u64>,

    /// Number of chains: large flows of the same hosts, each of which starts within tau (10 s) of the previous one, but the last
    /// more than tau after the first [default: 0].
    ///
    /// `thalweg flows` splits a chain into several flowsets with the rule `span`, and makes it one with the rule `chain`.
    #[arg(long, value_name = "N", value_parser = count)]
    chains: Option<u64>,

    /// Flows per chain [default: 6].
    #[arg(long, value_name = "N")]
    chain_flows: Option<u32>,

    /// Time between flow starts in a chain, at most 10 s [default: 6s].
    #[arg(long, value_name = "TIME", value_parser = parse::<Nanos>)]
    chain_gap: Option<Nanos>,

    /// Minimum time between transfers of the same hosts [default: 30s]. Transfers within tau of each other are one flowset, see --chains.
    #[arg(long, value_name = "TIME", value_parser = parse::<Nanos>)]
    separation: Option<Nanos>,

    /// IP packet size of transfers, 64 to 9000 bytes [default: 1500B].
    #[arg(long, value_name = "SIZE", value_parser = size::<u16>)]
    packet_size: Option<u16>,
}

/// Options shared by packets and records.
pub(super) struct Shared<'a> {
    pub output: Option<&'a Path>,
    pub truth: Option<&'a Path>,
    pub json: bool,
    pub seed: u64,
    pub start: Option<u64>,
    pub duration: Option<Nanos>,
    pub ipv6_share: Option<f64>,
}

/// Summary of the generated records.
#[derive(Debug, Default, Serialize)]
struct Summary {
    records: u64,
    planted_records: u64,
    flowsets: usize,
    single_flows: usize,
    ordinary: usize,
    chains: usize,
    planted_flows: usize,
    planted_bytes: u64,
    /// NetFlow v9 datagrams written or sent.
    datagrams: u64,
    /// Duration of sending with --pregenerate.
    sending_seconds: Option<f64>,
    parquet_files: u64,
    parquet_bytes: u64,
    seconds: f64,
}

impl RecordArgs {
    /// Generates records and writes or sends them.
    ///
    /// # Errors
    /// If options contradict each other, or records cannot be written or sent.
    pub(super) fn run(&self, shared: &Shared<'_>) -> anyhow::Result<()> {
        let started = Instant::now();
        let unfinished = Unfinished::on_signals()?;
        let mut generator = Generator::new(self.options(shared), shared.seed)?;
        self.write_truth(shared.truth, generator.truth(), &unfinished)?;
        let mut summary = Summary::of(generator.truth());
        let mut outputs = self.outputs(shared.output, generator.start(), &unfinished)?;
        let bar = progress_bar(generator.rows_left(), "records");
        let mut batch = RecordBatch::with_capacity(ROWS);
        while generator.fill(&mut batch, self.batch_rows()) > 0 {
            summary.records += batch.len() as u64;
            outputs.push(&batch)?;
            batch.clear();
            bar.set_position(summary.records);
            if let Some(rate) = self.rate.filter(|&rate| rate > 0 && !self.pregenerate) {
                let due = Duration::from_secs_f64(summary.records as f64 / rate as f64);
                thread::sleep(due.saturating_sub(started.elapsed()));
            }
        }
        bar.finish_and_clear();
        outputs.finish(&mut summary, self.rate)?;
        summary.seconds = started.elapsed().as_secs_f64();
        let text = if shared.json { serde_json::to_string(&summary)? + "\n" } else { summary.to_text() };
        match shared.output == Some(Path::new(STANDARD_OUTPUT)) {
            true => std::io::stderr().write_all(text.as_bytes()).context("cannot write the summary"),
            false => crate::cli::print(text),
        }
    }

    fn batch_rows(&self) -> usize {
        match self.rate {
            Some(rate) => (rate / RATE_STEPS_PER_SECOND).clamp(RATE_BATCH.0, RATE_BATCH.1) as usize,
            None => ROWS,
        }
    }

    /// Merges the flags with the defaults.
    fn options(&self, shared: &Shared<'_>) -> Options {
        let default = Options::default();
        let routers = self.routers.unwrap_or(default.routers);
        let flowset_flows = match self.flowset_flows.is_empty() {
            true => default.flowset_flows,
            false => self.flowset_flows.clone(),
        };
        Options {
            records: self.records.unwrap_or(default.records),
            start: shared.start.map_or(default.start, |seconds| Timestamp::new(seconds, 0)),
            duration: shared.duration.unwrap_or(default.duration),
            sampling_interval: self.sampling_interval.unwrap_or(default.sampling_interval),
            active_timeout: self.active_timeout.unwrap_or(default.active_timeout),
            inactive_timeout: self.idle_timeout.unwrap_or(default.inactive_timeout),
            routers,
            path_routers: self.path_routers.unwrap_or(default.path_routers.min(routers)),
            meters_egress: self.meter_egress,
            flowsets: self.flowsets,
            flowset_flows,
            start_spread: self.start_spread.unwrap_or(default.start_spread),
            across_midnight: self.across_midnight,
            single_flows: self.single_flows,
            ordinary: self.ordinary,
            chains: self.chains.unwrap_or(default.chains),
            chain_flows: self.chain_flows.unwrap_or(default.chain_flows),
            chain_gap: self.chain_gap.unwrap_or(default.chain_gap),
            separation: self.separation.unwrap_or(default.separation),
            packet_bytes: self.packet_size.unwrap_or(default.packet_bytes),
            ipv6_share: shared.ipv6_share.unwrap_or(default.ipv6_share),
        }
    }

    fn write_truth(
        &self,
        flows: Option<&Path>,
        truth: &Truth,
        unfinished: &Unfinished,
    ) -> anyhow::Result<()> {
        if let Some(path) = flows {
            let is_json = path.extension().is_some_and(|extension| extension == "json");
            write_file(
                path,
                unfinished,
                |to| if is_json { truth.write_json(to) } else { truth.write_flows(to) },
            )?;
        }
        if let Some(path) = &self.truth_transfers {
            write_file(path, unfinished, |to| truth.write_transfers(to))?;
        }
        Ok(())
    }

    fn outputs(
        &self,
        output: Option<&Path>,
        start: Timestamp,
        unfinished: &Unfinished,
    ) -> anyhow::Result<Outputs> {
        let capture = output.map(|path| Output::create(path, unfinished).map(Capture::new)).transpose()?;
        if let Some(folder) = &self.parquet {
            let remark = format!(
                "{} has the complete hours, and the last one as a hidden .part file",
                folder.display()
            );
            unfinished.remark(remark);
        }
        if self.send.is_some() {
            unfinished.remark("the rest of the records was not sent".to_owned());
        }
        let sender = match &self.send {
            Some(collector) => Some(Sender::new(resolve(collector)?).context("cannot open a UDP socket")?),
            None => None,
        };
        Ok(Outputs {
            capture: capture.map(|capture| (Datagrams::new(start), capture)),
            sender: sender.map(|sender| (Datagrams::full(start), sender)),
            pregenerated: self.pregenerate.then(Prepared::default),
            parquet: self.parquet.as_ref().map(HourFiles::new),
        })
    }
}

/// Destinations of records.
struct Outputs {
    capture: Option<(Datagrams, Capture<Output>)>,
    sender: Option<(Datagrams, Sender)>,
    /// Datagrams prepared with --pregenerate.
    pregenerated: Option<Prepared>,
    parquet: Option<HourFiles>,
}

impl Outputs {
    fn push(&mut self, batch: &RecordBatch) -> anyhow::Result<()> {
        if let Some((datagrams, capture)) = &mut self.capture {
            datagrams.push(batch, capture).context("cannot write the capture")?;
        }
        if let Some((datagrams, sender)) = &mut self.sender {
            let sent = match &mut self.pregenerated {
                Some(prepared) => datagrams.push(batch, prepared),
                None => datagrams.push(batch, sender).and_then(|()| sender.flush()),
            };
            sent.context("cannot send to the flow receiver")?;
        }
        if let Some(parquet) = &mut self.parquet {
            parquet.push(batch).context("cannot write Parquet")?;
        }
        Ok(())
    }

    fn finish(self, summary: &mut Summary, rate: Option<u64>) -> anyhow::Result<()> {
        if let Some((mut datagrams, mut capture)) = self.capture {
            let written = datagrams.finish(&mut capture).and_then(|()| capture.finish());
            let written = written.and_then(Output::finish);
            written.context("cannot write the capture")?;
            summary.datagrams += datagrams.sent();
        }
        if let Some((mut datagrams, mut sender)) = self.sender {
            let sent = match self.pregenerated {
                Some(mut prepared) => {
                    let pace = rate.map(|rate| rate as f64 / summary.records as f64);
                    let made = datagrams.finish(&mut prepared);
                    let sent = made.and_then(|()| send(&prepared, &mut sender, pace));
                    sent.map(|seconds| summary.sending_seconds = Some(seconds))
                }
                None => datagrams.finish(&mut sender).and_then(|()| sender.flush()),
            };
            sent.context("cannot send to the flow receiver")?;
            summary.datagrams += datagrams.sent();
        }
        if let Some(parquet) = self.parquet {
            let (files, bytes) = parquet.finish().context("cannot write Parquet")?;
            (summary.parquet_files, summary.parquet_bytes) = (files, bytes);
        }
        Ok(())
    }
}

/// Sends the prepared datagrams at `pace` times their number per second. Returns the seconds that it took.
fn send(prepared: &Prepared, sender: &mut Sender, pace: Option<f64>) -> io::Result<f64> {
    let started = Instant::now();
    let all = prepared.len();
    for first in (0..all).step_by(SEND_BATCH) {
        if let Some(pace) = pace.filter(|&pace| pace > 0.0) {
            let due = Duration::from_secs_f64(first as f64 / all as f64 / pace);
            thread::sleep(due.saturating_sub(started.elapsed()));
        }
        sender.send(prepared, first..all.min(first + SEND_BATCH))?;
    }
    Ok(started.elapsed().as_secs_f64())
}

impl Summary {
    fn of(truth: &Truth) -> Summary {
        let transfers = truth.transfers();
        let of_kind = |kind| transfers.iter().filter(|transfer| transfer.kind == kind).count();
        Summary {
            planted_records: truth.flows.iter().map(|flow| flow.records).sum(),
            flowsets: of_kind(Kind::Flowset),
            single_flows: of_kind(Kind::Single),
            ordinary: of_kind(Kind::Ordinary),
            chains: of_kind(Kind::Chain),
            planted_flows: truth.flows.len(),
            planted_bytes: truth.flows.iter().map(|flow| flow.octets).sum(),
            ..Summary::default()
        }
    }

    fn to_text(&self) -> String {
        let Summary { records, planted_records, flowsets, single_flows, ordinary, chains, .. } = self;
        let Summary { planted_flows, datagrams, parquet_files, seconds, .. } = self;
        let mut text = format!(
            "{records} records in {seconds:.1} s, {planted_records} of them from {planted_flows} planted flows\n\
             {flowsets} flowsets, {single_flows} single flows, {ordinary} ordinary transfers, {chains} chains\n"
        );
        if *datagrams > 0 {
            text += &format!("{datagrams} NetFlow v9 datagrams\n");
        }
        if *parquet_files > 0 {
            text += &format!("{parquet_files} Parquet files, {} bytes\n", self.parquet_bytes);
        }
        text
    }
}

/// Resolves HOST:PORT to its first address.
fn resolve(collector: &str) -> anyhow::Result<SocketAddr> {
    let mut addresses = collector
        .to_socket_addrs()
        .with_context(|| format!("invalid destination {collector}: expected HOST:PORT"))?;
    addresses.next().with_context(|| format!("{collector} has no address"))
}
