//! Cost of measurement tasks in `thalweg watch`: each task alone, relative to reading alone, on a trace in memory.

use std::path::PathBuf;

use thalweg_measure::meter::intake::Intake;
use thalweg_measure::tasks::{Monitor, Plan, Sampling, TaskList, TasksOptions, Windows};
use thalweg_wire::parse::Parser;
use thalweg_wire::{Bytes, HashSeed, Nanos};

use crate::clock::nanos_of;
use crate::results::{Page, Table, grouped, save_page, save_rows};
use crate::row;
use crate::stages::Stage;
use crate::statistics::median;
use crate::traces::{TraceInMemory, normal};

/// One task of each kind, then several together.
const TASKS: [&str; 9] = [
    "heavy:0.1%",
    "heavy:0.1%:bytes",
    "change:10s",
    "entropy:src",
    "moments",
    "hhh:1%",
    "distinct",
    "spread:dst>1000",
    "heavy:0.1%,entropy:src,distinct,change:10s,spread:dst>1000",
];

/// Sampling modes to compare.
const SAMPLINGS: [&str; 4] = ["1", "1/16", "1/128", "correct"];

/// Options of the benchmark.
#[derive(Clone, Debug, clap::Args)]
pub struct TasksBenchOptions {
    /// Length of the trace in packets (80 bytes of memory each)
    #[arg(long, default_value_t = 38_000_000)]
    pub packets: u64,
    /// Runs of each combination
    #[arg(long, default_value_t = 3)]
    pub runs: usize,
    /// Memory of the sketches in MiB
    #[arg(long, default_value_t = 2)]
    pub memory: u64,
    /// Output folder
    #[arg(long, default_value = "bench/results")]
    pub output: PathBuf,
}

/// Reads the trace and runs the tasks of `plan`.
fn watch(trace: &TraceInMemory, plan: &Plan) {
    let mut intake = Intake::new(Parser::default(), HashSeed::new(1));
    let (mut monitor, mut windows) = (Monitor::new(plan, 0), Windows::new(plan));
    let mut packets = Vec::new();
    trace.batches(|batch| {
        packets.clear();
        intake.take(batch, &mut packets);
        let mut over = |state| {
            windows.add(state);
            std::iter::from_fn(|| windows.next_report()).for_each(|report| {
                std::hint::black_box(report);
            });
        };
        monitor.packets(&packets, &mut over);
        if let Some(last) = packets.last() {
            monitor.advance(last.time, &mut over);
        }
    });
    monitor.finish(|state| windows.add(state));
    windows.finish();
    std::iter::from_fn(|| windows.next_report()).for_each(|report| {
        std::hint::black_box(report);
    });
}

fn plan(tasks: &str, sampling: Sampling, memory: u64) -> anyhow::Result<Plan> {
    let TaskList(tasks) = tasks.parse()?;
    Ok(Plan::new(TasksOptions {
        tasks,
        sampling,
        memory: Bytes(memory << 20),
        window: Nanos::from_secs(10),
        seed: 1,
        ..TasksOptions::default()
    })?)
}

/// Runs the benchmark and writes its results.
///
/// # Errors
/// If the trace cannot be generated or the results cannot be written.
pub fn run(options: &TasksBenchOptions) -> anyhow::Result<()> {
    let TasksBenchOptions { packets, runs, memory, ref output } = *options;
    let trace = TraceInMemory::make(&normal(packets))?;
    let mut rows = Table::new(["tasks", "sampling", "packets", "run", "reading_ns", "watching_ns"]);
    let header = ["tasks", "p = 1", "p = 1/16", "p = 1/128", "AlwaysCorrect"];
    let mut summary = Table::new(header);
    let mut all_reading = Vec::new();
    for tasks in TASKS {
        let mut cells = vec![format!("`{tasks}`")];
        for sampling in SAMPLINGS {
            eprintln!("{tasks}, sampling {sampling}");
            let plan = plan(tasks, sampling.parse()?, memory)?;
            let mut over = Vec::new();
            for run in 1..=runs {
                // Other load on the machine slows both down, so reading is timed next to each run.
                let reading = nanos_of(|| Stage::Parse.run(&trace)) / packets as f64;
                let watching = nanos_of(|| watch(&trace, &plan)) / packets as f64;
                all_reading.push(reading);
                over.push(watching - reading);
                let [reading, watching] = [reading, watching].map(|nanos| format!("{nanos:.2}"));
                row!(rows, tasks, sampling, packets, run, reading, watching);
            }
            cells.push(format!("{:.1}", median(&over)));
        }
        summary.push(cells);
    }
    let table: Vec<f64> =
        (0..runs).map(|_| nanos_of(|| Stage::SlidingWindow.run(&trace)) / packets as f64).collect();
    let reading = median(&all_reading);
    let command = format!("thalweg-bench tasks --packets {packets} --runs {runs} --memory {memory}");
    let mut page = Page::new("Cost of measurement tasks", &command);
    page.paragraph(format_args!(
                "Nanoseconds per packet beyond reading (finding and parsing frames), which takes {reading:.1}. The normal trace \
                 of {} packets in memory, windows of 10 s, {memory} MiB for sketches; CPU time of one thread, medians over the \
                 runs. `distinct` and `spread` process every packet with any sampling. The flow table with the default \
                 detector takes {:.1} beyond reading.",
        grouped(packets),
        median(&table) - reading,
    ));
    page.table(&summary);
    save_page(output, "tasks", &page)?;
    save_rows(output, "tasks", &rows)
}
