//! The effect of a flood of random 5-tuples, every packet a new flow, on memory, speed and detection.

use std::path::PathBuf;

use thalweg_measure::meter::flow_table::FlowTableOptions;
use thalweg_measure::meter::record::EndReason;

use crate::clock::Stopwatch;
use crate::detectors::{Score, delays};
use crate::machine::anonymous_memory;
use crate::results::{Page, Table, grouped, percent, save_page, save_rows};
use crate::row;
use crate::stages::detect;
use crate::statistics::median;
use crate::traces::{TraceInMemory, flooded, normal};

/// Capacity of a flow table that the flood fills within 0.1 s.
const SMALL_CAPACITY: u32 = 65_536;

/// Options of the benchmark.
#[derive(Clone, Debug, clap::Args)]
pub struct FloodOptions {
    /// Length of each trace in packets (80 bytes of memory each)
    #[arg(long, default_value_t = 10_000_000)]
    pub packets: u64,
    /// Runs on each trace
    #[arg(long, default_value_t = 5)]
    pub runs: usize,
    /// Output folder
    #[arg(long, default_value = "bench/results")]
    pub output: PathBuf,
}

/// The results of one trace and table size.
struct Case {
    name: &'static str,
    capacity: u32,
    nanos: Vec<f64>,
    memory: Option<u64>,
    bound: u64,
    evicted: u64,
    score: Score,
}

/// Runs the benchmark and writes its results.
///
/// # Errors
/// If a trace cannot be generated or the results cannot be written.
pub fn run(options: &FloodOptions) -> anyhow::Result<()> {
    let capacity = FlowTableOptions::default().capacity;
    let mut cases = Vec::new();
    for (name, synth) in [("normal", normal(options.packets)), ("flood", flooded(options.packets))] {
        let trace = TraceInMemory::make(&synth)?;
        for capacity in [capacity, SMALL_CAPACITY] {
            eprintln!("{name} trace, at most {} flows", grouped(capacity.into()));
            cases.push(measure(name, &trace, capacity, options.runs));
        }
    }
    let command = format!("thalweg-bench flood --packets {} --runs {}", options.packets, options.runs);
    let mut page = Page::new("A flood of random 5-tuples", &command);
    page.paragraph(
                "In the flood trace nine of ten packets are the only one of a random 5-tuple. Parser, flow table and default \
                 detector, trace in memory; CPU time of one thread, medians over the runs. The slowdown is relative to the \
                 normal trace with the same table. Memory is the growth of anonymous memory while metering, next to the \
                 table's own bound. Delays after crossing are defined as in the comparison of detectors.",
    );
    page.table(&summary(&cases));
    save_page(&options.output, "flood", &page)?;
    save_rows(&options.output, "flood", &rows(&cases, options.packets))
}

fn measure(name: &'static str, trace: &TraceInMemory, capacity: u32, runs: usize) -> Case {
    let options = FlowTableOptions { capacity, ..FlowTableOptions::default() };
    let mut case = Case {
        name,
        capacity,
        nanos: Vec::new(),
        memory: None,
        bound: 0,
        evicted: 0,
        score: Score::default(),
    };
    for _ in 0..runs.max(1) {
        let before = anonymous_memory();
        let stopwatch = Stopwatch::start();
        let (findings, table) = detect(trace, options);
        case.nanos.push(stopwatch.nanos() / trace.contents.packets as f64);
        let gained = anonymous_memory().zip(before).map(|(after, before)| after.saturating_sub(before));
        case.memory = case.memory.max(gained);
        case.bound = table.bytes().0;
        case.evicted = table.counters().ended(EndReason::Evicted);
        assert!(table.live() <= capacity, "a table never exceeds its capacity");
        case.score = Score::of(&findings, &trace.truth);
    }
    case
}

fn summary(cases: &[Case]) -> Table {
    let mut table = Table::new([
        "trace",
        "capacity, flows",
        "ns per packet",
        "slowdown",
        "memory, MiB",
        "bound, MiB",
        "evicted",
        "cheetahs found",
        "false",
        "after crossing, ms",
    ]);
    let mib = |bytes: u64| format!("{:.0}", bytes as f64 / f64::from(1 << 20));
    for case in cases {
        let normal = cases.iter().find(|other| other.capacity == case.capacity).unwrap_or(case);
        let nanos = median(&case.nanos);
        let Score { found, missed, false_reports, .. } = case.score;
        row!(
            table,
            case.name,
            grouped(case.capacity.into()),
            format!("{nanos:.1}"),
            format!("{:.2} x", nanos / median(&normal.nanos).max(1e-9)),
            case.memory.map_or_else(|| "-".to_owned(), mib),
            mib(case.bound),
            grouped(case.evicted),
            format!("{found} of {} ({})", found + missed, percent(found, found + missed)),
            false_reports,
            delays(&case.score.after_crossing_ms),
        );
    }
    table
}

fn rows(cases: &[Case], packets: u64) -> Table {
    let mut table = Table::new([
        "trace",
        "packets",
        "capacity",
        "run",
        "ns_per_packet",
        "memory_bytes",
        "bound_bytes",
        "evicted",
        "found",
        "missed",
        "false",
    ]);
    for case in cases {
        let Score { found, missed, false_reports, .. } = case.score;
        let memory = case.memory.map_or_else(String::new, |bytes| bytes.to_string());
        for (run, nanos) in case.nanos.iter().enumerate() {
            row!(
                table,
                case.name,
                packets,
                case.capacity,
                run + 1,
                format!("{nanos:.2}"),
                memory,
                case.bound,
                case.evicted,
                found,
                missed,
                false_reports,
            );
        }
    }
    table
}
