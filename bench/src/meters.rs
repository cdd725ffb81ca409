//! Programs that meter flows, side by side on the same trace.
//!
//! Each run is a process of its own on one processor; the contenders take turns, so that whatever else the
//! machine does hits all of them. Rates are packets in the trace over processor time (user and system) and
//! over wall time, medians over the runs. Flow counts stand beside the truth.

use std::fs;
use std::io::Write;
use std::path::PathBuf;

use anyhow::{Context, bail};

use crate::contenders::{Contender, Counted};
use crate::machine::last_processor;
use crate::results::{Page, Table, grouped, save_page, save_rows};
use crate::row;
use crate::statistics::median;
use crate::timed::{self, Usage};
use crate::traces::{self, TraceFile};

/// What to run.
#[derive(Clone, Debug, clap::Args)]
pub struct MetersOptions {
    /// Lengths of the traces, in packets
    #[arg(long, value_delimiter = ',', default_value = "10000000,38000000")]
    pub packets: Vec<u64>,
    /// Runs of each contender on each trace
    #[arg(long, default_value_t = 5)]
    pub runs: usize,
    /// The program `thalweg`, built for release
    #[arg(long, default_value = "target/release/thalweg")]
    pub thalweg: PathBuf,
    /// The processor to run on; by default the last one
    #[arg(long)]
    pub cpu: Option<usize>,
    /// Where traces are kept (the one of 38 M packets takes about 3 GB)
    #[arg(long, default_value = "target/bench-traces")]
    pub traces: PathBuf,
    /// Where results go
    #[arg(long, default_value = "bench/results")]
    pub output: PathBuf,
}

/// The runs of one contender on one trace.
#[derive(Clone, Debug)]
struct Runs {
    contender: Contender,
    usage: Vec<Usage>,
    counted: Counted,
}

/// Runs the benchmark and writes its results.
///
/// # Errors
/// If a trace cannot be made, `time` or `taskset` is missing, or no contender can run.
pub fn run(options: &MetersOptions) -> anyhow::Result<()> {
    let cpu = options.cpu.unwrap_or_else(last_processor);
    let here = std::env::current_exe().context("cannot tell which program this is")?;
    // Contenders run in a folder of their own.
    let thalweg = std::path::absolute(&options.thalweg)?;
    let contenders = present(Contender::all(&thalweg, &here));
    if contenders.is_empty() || options.runs == 0 {
        bail!("nothing to run");
    }
    let runs = options.runs;
    let mut page =
        Page::new("Meters side by side", &format!("thalweg-bench meters --runs {runs} (processor {cpu})"));
    let mut rows = Table::new([
        "contender",
        "packets",
        "run",
        "wall_s",
        "user_s",
        "sys_s",
        "peak_rss_kib",
        "biflows",
        "one_way_flows",
    ]);
    explain(&mut page, &contenders);
    for &packets in &options.packets {
        let trace = traces::file(&options.traces, "normal", &traces::normal(packets))?;
        let results = measure(&contenders, &trace, cpu, runs)?;
        page.section(&format!("{} packets", grouped(packets))).table(&summary(&results, &trace));
        add_rows(&mut rows, &results, packets);
    }
    save_page(&options.output, "meters", &page)?;
    save_rows(&options.output, "meters", &rows)
}

/// Those that can run; says of the others why they cannot.
fn present(contenders: Vec<Contender>) -> Vec<Contender> {
    contenders
        .into_iter()
        .filter(|contender| match contender.absence() {
            None => true,
            Some(reason) => {
                skip(contender.name(), &reason);
                false
            }
        })
        .collect()
}

/// Says that a contender is left out, and why.
pub(crate) fn skip(name: &str, reason: &str) {
    // Standard error itself: a test runner hides what `eprintln!` writes.
    let _ = std::io::stderr().write_all(format!("skipped: {name}: {reason}\n").as_bytes());
}

fn explain(page: &mut Page, contenders: &[Contender]) {
    page.paragraph(
        "Each contender on one processor, in turns; medians over the runs. Rates are packets of the trace over \
         processor time (user and system) and over wall time; the ratio is ours to theirs by processor time. \
         `nfpcapd` counts each direction as a flow of its own; its biflows are what `nfdump -B` pairs up. `softflowd` expires no flow while \
         it reads a file, and sends no records here. Peak memory is the most resident, mapped file included.",
    );
    for contender in contenders {
        page.paragraph(format_args!("    {}", contender.shown_command()));
    }
}

fn measure(
    contenders: &[Contender],
    trace: &TraceFile,
    cpu: usize,
    runs: usize,
) -> anyhow::Result<Vec<Runs>> {
    let path = std::path::absolute(&trace.path)?;
    traces::warm(&path).with_context(|| format!("cannot read {}", path.display()))?;
    let start = |contender: &Contender| Runs {
        contender: contender.clone(),
        usage: Vec::new(),
        counted: Counted::default(),
    };
    let mut all: Vec<Runs> = contenders.iter().map(start).collect();
    let scratch = path.with_extension("scratch");
    for run in 0..runs {
        for Runs { contender, usage, counted } in &mut all {
            fs::create_dir_all(&scratch)?;
            contender.prepare(&scratch)?;
            let outcome = timed::run(cpu, &scratch, &contender.command(&path, &scratch));
            if let (Ok((printed, _)), 0) = (&outcome, run) {
                *counted = contender.counted(printed, &scratch)?;
            }
            fs::remove_dir_all(&scratch)?;
            let (_, used) = outcome?;
            eprintln!("{} run {}: {:.2} s", contender.name(), run + 1, used.wall_s);
            usage.push(used);
        }
    }
    Ok(all)
}

impl Runs {
    fn median_of(&self, what: impl Fn(&Usage) -> f64) -> f64 {
        median(&self.usage.iter().map(what).collect::<Vec<_>>())
    }

    fn processor_s(&self) -> f64 {
        self.median_of(Usage::processor_s)
    }
}

fn summary(results: &[Runs], trace: &TraceFile) -> Table {
    let mut table = Table::new([
        "contender",
        "M packets/s (processor)",
        "M packets/s (wall)",
        "ours / theirs",
        "peak memory, MiB",
        "packets taken in",
        "biflows",
        "one-way flows",
    ]);
    let contents = trace.contents;
    let millions = |seconds: f64| format!("{:.2}", contents.packets as f64 / seconds.max(0.01) / 1e6);
    let ours = results.iter().find(|runs| matches!(runs.contender, Contender::Thalweg(_)));
    let count = |number: Option<u64>| number.map_or_else(|| "-".to_owned(), grouped);
    for runs in results {
        let ratio = ours
            .map_or_else(|| "-".to_owned(), |ours| format!("{:.1}", runs.processor_s() / ours.processor_s()));
        let memory = runs.median_of(|usage| usage.peak_rss_kib as f64) / 1024.0;
        let Counted { packets, biflows, one_way } = runs.counted;
        row!(
            table,
            runs.contender.name(),
            millions(runs.processor_s()),
            millions(runs.median_of(|usage| usage.wall_s)),
            ratio,
            format!("{memory:.0}"),
            count(packets),
            count(biflows),
            count(one_way),
        );
    }
    row!(table, "the truth", "", "", "", "", grouped(contents.packets), grouped(contents.flows), "");
    table
}

fn add_rows(rows: &mut Table, results: &[Runs], packets: u64) {
    for Runs { contender, usage, counted } in results {
        let count = |number: Option<u64>| number.map_or_else(String::new, |number| number.to_string());
        for (run, Usage { wall_s, user_s, sys_s, peak_rss_kib }) in usage.iter().enumerate() {
            let (biflows, one_way) = (count(counted.biflows), count(counted.one_way));
            row!(
                rows,
                contender.name(),
                packets,
                run + 1,
                wall_s,
                user_s,
                sys_s,
                peak_rss_kib,
                biflows,
                one_way
            );
        }
    }
}
