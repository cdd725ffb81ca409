//! Time per packet of the stages of `thalweg watch`: each stage is added to those before it, on a trace in memory.

use std::path::PathBuf;

use thalweg_measure::detect::cfinf::{Cfinf, CfinfParameters};
use thalweg_measure::detect::sliding_window::SlidingWindow;
use thalweg_measure::detect::{CheetahThreshold, Finding};
use thalweg_measure::meter::flow_table::{FlowTable, FlowTableOptions, Output};
use thalweg_measure::meter::intake::Intake;
use thalweg_wire::parse::Parser;
use thalweg_wire::{HashSeed, Packet};

use crate::clock::nanos_of;
use crate::results::{Page, Table, grouped, save_page, save_rows};
use crate::row;
use crate::statistics::median;
use crate::traces::{TraceInMemory, normal};

/// Flows that the default detector tracks at once, as in `thalweg watch`.
const TRACKS: usize = 32_768;

/// Options of the benchmark.
#[derive(Clone, Debug, clap::Args)]
pub struct StagesOptions {
    /// Length of the trace in packets (80 bytes of memory each)
    #[arg(long, default_value_t = 10_000_000)]
    pub packets: u64,
    /// Runs of each stage
    #[arg(long, default_value_t = 5)]
    pub runs: usize,
    /// Output folder
    #[arg(long, default_value = "bench/results")]
    pub output: PathBuf,
}

/// The last stage that packets reach.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Finding the frames in the capture file.
    Decode,
    /// Parsing frames into packets.
    Parse,
    /// Counting packets in flows.
    FlowTable,
    /// The flow table with the default detector.
    SlidingWindow,
    /// The flow table without detector, followed by the published detector.
    Cfinf,
}

impl Stage {
    /// All stages in order; the last two are alternatives.
    pub const ALL: [Stage; 5] =
        [Stage::Decode, Stage::Parse, Stage::FlowTable, Stage::SlidingWindow, Stage::Cfinf];

    /// Returns the name in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Stage::Decode => "decode",
            Stage::Parse => "decode, parse",
            Stage::FlowTable => "decode, parse, flow table",
            Stage::SlidingWindow => "decode, parse, flow table with sliding window",
            Stage::Cfinf => "decode, parse, flow table, CFINF",
        }
    }

    /// Runs a whole trace up to this stage.
    pub fn run(self, trace: &TraceInMemory) {
        let seed = HashSeed::new(1);
        let mut intake = Intake::new(Parser::default(), seed);
        let mut table = self.flow_table(FlowTableOptions::default());
        let mut cfinf = (self == Stage::Cfinf)
            .then(|| Cfinf::new(CfinfParameters::default(), 1).expect("the default parameters are in range"));
        let (mut packets, mut output) = (Vec::<Packet>::new(), Output::default());
        trace.batches(|batch| {
            if self == Stage::Decode {
                std::hint::black_box(batch.frames);
                return;
            }
            packets.clear();
            intake.take(batch, &mut packets);
            if let Some(table) = &mut table {
                table.update(&packets, &mut output);
            }
            if let Some(cfinf) = &mut cfinf {
                packets.iter().for_each(|packet| cfinf.handle(packet, &mut output.findings));
            }
            std::hint::black_box((&packets, &output));
            clear(&mut output);
        });
        if let Some(table) = &mut table {
            table.finish(&mut output);
        }
        std::hint::black_box(output);
    }

    fn flow_table(self, options: FlowTableOptions) -> Option<FlowTable> {
        match self {
            Stage::Decode | Stage::Parse => None,
            Stage::FlowTable | Stage::Cfinf => Some(flow_table(options, false)),
            Stage::SlidingWindow => Some(flow_table(options, true)),
        }
    }
}

/// Creates a flow table, with the default detector if `detects`.
///
/// # Panics
/// If the options are out of range or memory is insufficient.
pub fn flow_table(options: FlowTableOptions, detects: bool) -> FlowTable {
    let detector = detects.then(|| SlidingWindow::new(CheetahThreshold::default(), TRACKS));
    let detector = detector.transpose().expect("the default threshold is in range, and memory suffices");
    FlowTable::new(options, detector, HashSeed::new(1)).expect("options in range, and memory for them")
}

/// Clears the records and findings.
pub fn clear(output: &mut Output) {
    output.records.clear();
    output.findings.clear();
}

/// Runs a trace through the flow table and the default detector; returns the findings and the table before the end of
/// input.
pub fn detect(trace: &TraceInMemory, options: FlowTableOptions) -> (Vec<Finding>, FlowTable) {
    let mut intake = Intake::new(Parser::default(), HashSeed::new(1));
    let mut table = flow_table(options, true);
    let (mut packets, mut output) = (Vec::new(), Output::default());
    trace.batches(|batch| {
        packets.clear();
        intake.take(batch, &mut packets);
        table.update(&packets, &mut output);
        output.records.clear();
    });
    (output.findings, table)
}

/// Runs the benchmark and writes its results.
///
/// # Errors
/// If the trace cannot be generated or the results cannot be written.
pub fn run(options: &StagesOptions) -> anyhow::Result<()> {
    let StagesOptions { packets, runs, ref output } = *options;
    let trace = TraceInMemory::make(&normal(packets))?;
    let mut times = vec![Vec::new(); Stage::ALL.len()];
    for run in 0..runs {
        eprintln!("run {} of {runs}", run + 1);
        for (stage, times) in Stage::ALL.into_iter().zip(&mut times) {
            times.push(nanos_of(|| stage.run(&trace)) / packets as f64);
        }
    }
    let mut summary = Table::new(["stages", "ns per packet", "difference", "M packets/s"]);
    let mut rows = Table::new(["stages", "packets", "run", "ns_per_packet"]);
    let medians: Vec<f64> = times.iter().map(|times| median(times)).collect();
    for (number, stage) in Stage::ALL.into_iter().enumerate() {
        let before = match stage {
            Stage::Decode => 0.0,
            // An alternative to the previous stage.
            Stage::Cfinf => medians[number - 2],
            _ => medians[number - 1],
        };
        let nanos = medians[number];
        let rate = 1e3 / nanos;
        row!(
            summary,
            stage.name(),
            format!("{nanos:.1}"),
            format!("{:+.1}", nanos - before),
            format!("{rate:.1}")
        );
        for (run, nanos) in times[number].iter().enumerate() {
            row!(rows, stage.name(), packets, run + 1, format!("{nanos:.2}"));
        }
    }
    let command = format!("thalweg-bench stages --packets {packets} --runs {runs}");
    let mut page = Page::new("Time per packet by stage", &command);
    page.paragraph(format_args!(
                "The normal trace of {} packets and {} flows in memory; CPU time of one thread, medians over the runs. The \
                 last two rows are alternatives; their difference is relative to the flow table alone.",
        grouped(packets),
        grouped(trace.contents.flows)
    ));
    page.table(&summary);
    save_page(output, "stages", &page)?;
    save_rows(output, "stages", &rows)
}
