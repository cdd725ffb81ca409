//! Speed of a collector on one core, by stage: packets in memory to rates, link utilisation, events and samples; and
//! the latency from a packet to the event that it causes.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use thalweg_measure::collector::{Collector, CollectorOptions, LinkRule, Output};
use thalweg_measure::meter::flow_table::FlowTableOptions;
use thalweg_measure::meter::intake::Intake;
use thalweg_measure::samples::{SampleRing, SampleRingOptions};
use thalweg_network::address::default_mac;
use thalweg_network::state::{Forwarding, NetworkState};
use thalweg_network::topology::shapes::rack;
use thalweg_network::versions::Versions;
use thalweg_network::{EndpointId, LinkSpec, LinkState};
use thalweg_synth::trace::SynthOptions;
use thalweg_wire::parse::Parser;
use thalweg_wire::{Batch, BitRate, FrameRef, HashSeed, Interface, LinkType, Nanos};

use crate::clock::nanos_of;
use crate::results::{Page, Table, grouped, save_page, save_rows};
use crate::row;
use crate::stages::{clear, flow_table};
use crate::statistics::{median, quantile};
use crate::traces::{TraceInMemory, normal};

/// Ports of the switch, each with a host.
const PORTS: u32 = 48;

/// Chunk sizes in packets for the latency measurement.
const CHUNKS: [usize; 4] = [1, 4, 16, 64];

/// Options of the benchmark.
#[derive(Clone, Debug, clap::Args)]
pub struct CollectorBenchOptions {
    /// Length of the trace in packets (200 bytes of memory each)
    #[arg(long, default_value_t = 8_000_000)]
    pub packets: u64,
    /// Number of flows
    #[arg(long, default_value_t = 10_000)]
    pub flows: u64,
    /// Packets per chunk
    #[arg(long, default_value_t = 64)]
    pub chunk: usize,
    /// Runs of each stage
    #[arg(long, default_value_t = 5)]
    pub runs: usize,
    /// Run only one stage once, for a profiler
    #[arg(long, hide = true)]
    pub only: Option<usize>,
    /// Output folder
    #[arg(long, default_value = "bench/results")]
    pub output: PathBuf,
}

/// The last stage that packets reach.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    Parse,
    FlowTable,
    Detector,
    Collector,
    Samples,
}

impl Stage {
    const ALL: [Stage; 5] =
        [Stage::Parse, Stage::FlowTable, Stage::Detector, Stage::Collector, Stage::Samples];

    fn name(self) -> &'static str {
        match self {
            Stage::Parse => "parse",
            Stage::FlowTable => "+ flow table",
            Stage::Detector => "+ cheetah detector",
            Stage::Collector => "+ rates, links, events",
            Stage::Samples => "+ sample ring",
        }
    }
}

/// Mirrored frames in memory, between hosts of one switch.
struct Mirror {
    bytes: Vec<u8>,
    frames: Vec<FrameRef>,
    interfaces: [Interface; 1],
    network: Arc<Versions>,
}

impl Mirror {
    /// Generates the normal trace with this many flows, as a monitor port sends it at 14.88 M packets/s. IP addresses
    /// are assigned to hosts by their last byte.
    fn make(packets: u64, flows: u64) -> anyhow::Result<Mirror> {
        let trace = TraceInMemory::make(&SynthOptions {
            flows: Some(flows),
            duration: Some(Nanos(packets * 1_000_000_000 / 14_880_000)),
            cheetahs: Some(0),
            near_misses: Some(0),
            link_type: LinkType::Ethernet,
            ..normal(packets)
        })?;
        let mut mirror = Mirror {
            bytes: Vec::new(),
            frames: Vec::with_capacity(packets as usize),
            interfaces: [Interface { name: None, link_type: LinkType::Ethernet, snap_length: 96 }],
            network: Arc::new(Versions::new(switch()?)),
        };
        trace.batches(|batch| {
            for frame in batch.iter() {
                mirror.push(&frame);
            }
        });
        Ok(mirror)
    }

    fn push(&mut self, frame: &thalweg_wire::Frame<'_>) {
        let offset = self.bytes.len();
        self.bytes.extend_from_slice(frame.bytes);
        let header = &mut self.bytes[offset..];
        // The last bytes of the IPv4 addresses, or the bytes at the same offset of IPv6.
        let host = |at: usize, header: &[u8]| EndpointId(u16::from(header[at]) % PORTS as u16);
        let (source, destination) = (host(29, header), host(33, header));
        header[..6].copy_from_slice(&default_mac(destination).0);
        header[6..12].copy_from_slice(&default_mac(source).0);
        self.frames.push(FrameRef {
            time: frame.time,
            offset,
            captured_length: frame.bytes.len() as u32,
            original_length: frame.original_length,
            interface: 0,
        });
    }

    fn batches(&self, chunk: usize) -> impl Iterator<Item = Batch<'_>> {
        let Mirror { bytes, frames, interfaces, .. } = self;
        frames.chunks(chunk).map(move |frames| Batch { bytes, frames, interfaces })
    }

    fn collector(&self) -> Collector {
        let rules = vec![LinkRule { upper: 0.2, lower: 0.15, ..LinkRule::default() }];
        let flow_table = FlowTableOptions { capacity: 65_536, ..FlowTableOptions::default() };
        let options = CollectorOptions { flow_table, rules, seed: 1, ..CollectorOptions::default() };
        Collector::new(options, Some(self.network.clone())).expect("options in range, and memory for them")
    }

    /// Processes all packets up to a stage and returns the CPU time in nanoseconds, without creating tables and the
    /// ring.
    fn run(&self, stage: Stage, chunk: usize) -> f64 {
        let mut intake = Intake::new(Parser::default(), HashSeed::new(1));
        let options = FlowTableOptions { capacity: 65_536, ..FlowTableOptions::default() };
        let mut table = match stage {
            Stage::FlowTable | Stage::Detector => Some(flow_table(options, stage == Stage::Detector)),
            _ => None,
        };
        let mut collector = (stage >= Stage::Collector).then(|| self.collector());
        let ring = SampleRing::new(SampleRingOptions::default()).expect("default options are valid");
        let (mut writer, _ring) = ring;
        let (mut packets, mut output) = (Vec::new(), Output::default());
        nanos_of(|| {
            for batch in self.batches(chunk) {
                packets.clear();
                intake.take(&batch, &mut packets);
                if let Some(table) = &mut table {
                    table.update(&packets, &mut output.flows);
                }
                if let Some(collector) = &mut collector {
                    collector.update(&packets, &mut output);
                }
                if stage == Stage::Samples {
                    writer.write_batch(&batch);
                }
                std::hint::black_box((&packets, &output));
                clear(&mut output.flows);
                output.events.clear();
            }
        })
    }

    /// Returns the latency in nanoseconds from a chunk of packets in memory to its events, for each chunk that causes
    /// events, and the number of events.
    fn latencies(&self, chunk: usize) -> (Vec<f64>, u64) {
        let mut intake = Intake::new(Parser::default(), HashSeed::new(1));
        let mut collector = self.collector();
        let (mut packets, mut output) = (Vec::new(), Output::default());
        let mut latencies = Vec::new();
        for batch in self.batches(chunk) {
            let in_memory = Instant::now();
            packets.clear();
            intake.take(&batch, &mut packets);
            collector.update(&packets, &mut output);
            if !output.events.is_empty() {
                latencies.push(in_memory.elapsed().as_nanos() as f64);
            }
            clear(&mut output.flows);
            output.events.clear();
        }
        (latencies, collector.counters().events)
    }
}

/// Returns a switch with a host at each port, at 10 Gbit/s.
fn switch() -> anyhow::Result<NetworkState> {
    let topology = rack(PORTS, LinkSpec { rate: BitRate(10_000_000_000), ..LinkSpec::default() })?;
    let links = LinkState::new(&topology);
    Ok(NetworkState::new(topology, links, Forwarding::ecmp(1))?)
}

/// Runs the benchmark and writes its results.
///
/// # Errors
/// If the trace cannot be generated or the results cannot be written.
pub fn run(options: &CollectorBenchOptions) -> anyhow::Result<()> {
    let CollectorBenchOptions { packets, flows, chunk, runs, only, ref output } = *options;
    let chunk = chunk.max(1);
    let mirror = Mirror::make(packets, flows)?;
    if let Some(stage) = only.and_then(|only| Stage::ALL.get(only)) {
        let nanos = mirror.run(*stage, chunk) / packets as f64;
        println!("{}: {nanos:.1} ns per packet, {:.1} M packets/s", stage.name(), 1e3 / nanos);
        return Ok(());
    }
    let mut times = vec![Vec::new(); Stage::ALL.len()];
    for run in 0..runs {
        eprintln!("run {} of {runs}", run + 1);
        for (stage, times) in Stage::ALL.into_iter().zip(&mut times) {
            times.push(mirror.run(stage, chunk) / packets as f64);
        }
    }
    let mut summary = Table::new(["stages", "ns per packet", "difference", "M packets/s", "fastest run"]);
    let mut rows = Table::new(["stages", "packets", "flows", "run", "ns_per_packet"]);
    let mut before = 0.0;
    for (stage, times) in Stage::ALL.into_iter().zip(&times) {
        let (nanos, least) = (median(times), quantile(times, 0.0));
        let (rate, fastest) = (1e3 / nanos, 1e3 / least);
        row!(
            summary,
            stage.name(),
            format!("{nanos:.1}"),
            format!("{:+.1}", nanos - before),
            format!("{rate:.1}"),
            format!("{fastest:.1}")
        );
        before = nanos;
        for (run, nanos) in times.iter().enumerate() {
            row!(rows, stage.name(), packets, flows, run + 1, format!("{nanos:.2}"));
        }
    }
    let mut decisions = Table::new(["packets per chunk", "events", "p50, us", "p99, us", "max, us"]);
    for chunk in CHUNKS {
        let (latencies, events) = mirror.latencies(chunk);
        let micros = |share: f64| format!("{:.1}", quantile(&latencies, share) / 1e3);
        row!(decisions, chunk, grouped(events), micros(0.5), micros(0.99), micros(1.0));
    }
    let command =
        format!("thalweg-bench collector --packets {packets} --flows {flows} --chunk {chunk} --runs {runs}");
    let mut page = Page::new("Speed of a collector", &command);
    page.paragraph(format_args!(
                "The normal trace of {} packets and {} flows in memory, at 14.88 M packets/s of packet time, between {PORTS} \
                 hosts of one switch, in chunks of {chunk} packets. CPU time of one thread, median and fastest run.",
        grouped(packets),
        grouped(flows)
    ));
    page.table(&summary);
    page.section("Latency from packet to event");
    page.paragraph(format_args!(
                "Wall time from packets in memory to the events that they cause. A source delivers what is available: single \
                 packets while the collector keeps up, larger chunks when it lags."
    ));
    page.table(&decisions);
    save_page(output, "collector", &page)?;
    save_rows(output, "collector", &rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_run_passes_all_stages_and_raises_events() {
        let folder = tempfile::tempdir().unwrap();
        let options = CollectorBenchOptions {
            packets: 20_000,
            flows: 200,
            chunk: 16,
            runs: 1,
            only: None,
            output: folder.path().to_owned(),
        };
        run(&options).unwrap();
        let mirror = Mirror::make(20_000, 200).unwrap();
        let mut collector = mirror.collector();
        let mut intake = Intake::new(Parser::default(), HashSeed::new(1));
        let mut packets = Vec::new();
        for batch in mirror.batches(64) {
            intake.take(&batch, &mut packets);
        }
        collector.update(&packets, &mut Output::default());
        let counters = collector.counters().rates;
        assert_eq!(counters.samples, 20_000);
        assert!(counters.estimates > 1_000, "{counters:?}");
        assert_eq!(counters.cases.iter().sum::<u64>(), 0, "ports of all packets are inferred");
    }
}
