//! `thalweg-bench`: benchmarks and experiments from the command line.

use std::path::PathBuf;

use clap::{Parser, Subcommand};
use thalweg::watch::options::{Detector, Show, WatchOptions};
use thalweg_bench::{
    collector, detectors, emulator, experiments, flood, hash_map_meter, meters, scaling, sketches, stages,
    tasks,
};
use thalweg_capture::backend::Backend;
use thalweg_capture::live::LiveOptions;
use thalweg_measure::detect::CheetahThreshold;
use thalweg_measure::filter::FlowFilter;
use thalweg_measure::meter::flow_table::FlowTableOptions;

/// Measures Thalweg against its peers and repeats the figures of papers
#[derive(Debug, Parser)]
#[command(version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Programs that meter flows, side by side on the same trace
    Meters(meters::MetersOptions),
    /// Where the time of a packet goes
    Stages(stages::StagesOptions),
    /// How cost grows with packets and with live flows
    Scaling(scaling::ScalingOptions),
    /// What detectors find, miss and report falsely, and how late
    Detectors(detectors::DetectorsOptions),
    /// What measurement tasks cost
    Tasks(tasks::TasksBenchOptions),
    /// What a flood of random 5-tuples costs
    Flood(flood::FloodOptions),
    /// Sketches, ours and others', side by side on the same keys
    Sketches(sketches::SketchesOptions),
    /// The emulator: packets a second by scheme, size, load and cores, and beside ns-3
    Emulator(emulator::EmulatorOptions),
    /// A collector: packets a second, stage by stage, and from packets to events
    Collector(collector::CollectorBenchOptions),
    /// Repeat a figure of a paper
    Experiment(experiments::ExperimentOptions),
    /// Meter a capture file with a plain `HashMap`; one of the contenders
    HashMapMeter {
        /// The capture file
        file: PathBuf,
    },
    /// As `thalweg watch --summary`, through the library: stands in for the program in tests
    #[command(hide = true)]
    Watch {
        /// Always so
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
        Command::Emulator(options) => emulator::run(&options),
        Command::Collector(options) => collector::run(&options),
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
        peel_tunnels: false,
        duration: None,
        flow_table: FlowTableOptions::default(),
        threshold: CheetahThreshold::default(),
        detector: Detector::SlidingWindow { tracks: 32_768 },
        tasks: None,
        table: true,
        save_states: None,
        export: None,
        records: None,
        live: LiveOptions::new(""),
        backend: Some(Backend::AfPacket),
        seed: None,
        top: 10,
    }
}
