//! `thalweg-bench`: benchmarks and experiments from the command line.

use std::path::PathBuf;

use clap::{Parser, Subcommand};
use thalweg::watch::options::{Detector, Show, WatchOptions};
use thalweg_bench::{
    collector, dashboard, detectors, emulation_peers, emulator, experiments, flood, hash_map_meter,
    in_kernel, isolation, meters, scaling, sketches, stages, tasks, threshold,
};
use thalweg_capture::backend::Backend;
use thalweg_capture::live::LiveOptions;
use thalweg_measure::detect::CheetahThreshold;
use thalweg_measure::filter::FlowFilter;
use thalweg_measure::meter::flow_table::FlowTableOptions;

/// Benchmarks of Thalweg against comparable programs, and reproductions of figures from papers
#[derive(Debug, Parser)]
#[command(version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Compare flow meters on the same trace
    Meters(meters::MetersOptions),
    /// Measure the time per packet of each stage
    Stages(stages::StagesOptions),
    /// Measure how cost grows with packets and with live flows
    Scaling(scaling::ScalingOptions),
    /// Compare detectors: found, missed and false reports, and delays
    Detectors(detectors::DetectorsOptions),
    /// Measure the cost of measurement tasks
    Tasks(tasks::TasksBenchOptions),
    /// Measure the effect of a flood of random 5-tuples
    Flood(flood::FloodOptions),
    /// Compare sketches, ours and others', on the same keys
    Sketches(sketches::SketchesOptions),
    /// Measure sketches at XDP: ns per packet and error, beside hash maps and another NitroSketch
    InKernel(in_kernel::InKernelOptions),
    /// Measure the emulator's packets per second by scheme, size, load and cores, and compare with ns-3
    Emulator(emulator::EmulatorOptions),
    /// Compare real-time emulation with Mininet and ns-3 in real time: rate, queue, round trip, lateness
    EmulationPeers(emulation_peers::EmulationPeersOptions),
    /// Measure a collector's packets per second by stage, and the latency from packet to event
    Collector(collector::CollectorBenchOptions),
    /// Measure the simulation that finds a rate threshold, and compare with a plain Python model
    Threshold(threshold::ThresholdOptions),
    /// Measure isolation by tc with 100,000 redirections
    Isolation(isolation::IsolationOptions),
    /// Measure the cost of the dashboard's live stream at 1,000 links and 10,000 flows
    Dashboard(dashboard::DashboardOptions),
    /// Reproduce a figure of a paper
    Experiment(experiments::ExperimentOptions),
    /// Meter a capture file with a plain `HashMap`, for comparison
    HashMapMeter {
        /// The capture file
        file: PathBuf,
    },
    /// Run `thalweg watch --summary` through the library, for tests
    #[command(hide = true)]
    Watch {
        /// Accepted for compatibility
        #[arg(long)]
        summary: bool,
        /// The capture file
        file: PathBuf,
    },
}

fn main() -> anyhow::Result<()> {
    match Arguments::parse().command {
        Command::Meters(options) => meters::run(&options),
        Command::Stages(options) => stages::run(&options),
        Command::Scaling(options) => scaling::run(&options),
        Command::Detectors(options) => detectors::run(&options),
        Command::Tasks(options) => tasks::run(&options),
        Command::Flood(options) => flood::run(&options),
        Command::Sketches(options) => sketches::run(&options),
        Command::InKernel(options) => in_kernel::run(&options),
        Command::EmulationPeers(options) => emulation_peers::run(&options),
        Command::Emulator(options) => emulator::run(&options),
        Command::Collector(options) => collector::run(&options),
        Command::Isolation(options) => isolation::run(&options),
        Command::Dashboard(options) => dashboard::run(&options),
        Command::Threshold(options) => threshold::run(&options),
        Command::Experiment(options) => experiments::run(&options),
        Command::HashMapMeter { file } => {
            let totals = hash_map_meter::meter_file(&file)?;
            println!("packets {}\nbytes {}\nflows {}", totals.packets, totals.bytes, totals.flows);
            Ok(())
        }
        Command::Watch { file, .. } => {
            thalweg::watch::run(&watch_options(file))?;
            Ok(())
        }
    }
}

fn watch_options(file: PathBuf) -> WatchOptions {
    WatchOptions {
        sources: vec![file.to_string_lossy().into_owned()],
        show: Show::Summary,
        replay: None,
        workers: None,
        capture_filter: None,
        flow_filter: FlowFilter::default(),
        decapsulate: false,
        mac_addresses: false,
        duration: None,
        flow_table: FlowTableOptions::default(),
        threshold: CheetahThreshold::default(),
        detector: Detector::SlidingWindow { tracks: 32_768 },
        tasks: None,
        table: true,
        save_sketches: None,
        export: None,
        records: None,
        live: LiveOptions::new(""),
        backend: Some(Backend::AfPacket),
        in_kernel: None,
        seed: None,
        top: 10,
        grouping: Default::default(),
        flow_capture: Default::default(),
        names: Default::default(),
        mouse: false,
    }
}
