//! Comparison of flow meters on the same trace.
//!
//! Each run is a separate process on one processor. The programs take turns, so that other load on the machine affects
//! all of them. Rates are packets of the trace per CPU time (user and system) and per wall time, medians over the runs.
//! Flow counts are compared with the ground truth.

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

/// Options of the benchmark.
#[derive(Clone, Debug, clap::Args)]
pub struct MetersOptions {
    /// Lengths of the traces in packets
    #[arg(long, value_delimiter = ',', default_value = "10000000,38000000")]
    pub packets: Vec<u64>,
    /// Runs of each program on each trace
    #[arg(long, default_value_t = 5)]
    pub runs: usize,
    /// Release build of `thalweg`
    #[arg(long, default_value = "target/release/thalweg")]
    pub thalweg: PathBuf,
    /// Processor to run on [default: the last one]
    #[arg(long)]
    pub cpu: Option<usize>,
    /// Folder for traces (the one of 38 M packets takes about 3 GB)
    #[arg(long, default_value = "target/bench-traces")]
    pub traces: PathBuf,
    /// Output folder
    #[arg(long, default_value = "bench/results")]
    pub output: PathBuf,
}

/// The runs of one program on one trace.
#[derive(Clone, Debug)]
struct Runs {
    contender: Contender,
    usage: Vec<Usage>,
    counted: Counted,
}

/// Runs the benchmark and writes its results.
///
/// # Errors
/// If a trace cannot be generated, `time` or `taskset` is missing, or no program can run.
pub fn run(options: &MetersOptions) -> anyhow::Result<()> {
    let cpu = options.cpu.unwrap_or_else(last_processor);
    let here = std::env::current_exe().context("cannot find the path of this program")?;
    // Programs run in a scratch folder, so relative paths would fail.
    let thalweg = std::path::absolute(&options.thalweg)?;
    let contenders = present(Contender::all(&thalweg, &here));
    if contenders.is_empty() || options.runs == 0 {
        bail!("nothing to run");
    }
    let runs = options.runs;
    let mut page = Page::new(
        "Comparison of flow meters",
        &format!("thalweg-bench meters --runs {runs} (processor {cpu})"),
    );
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

/// Returns the programs that can run; prints why the others cannot.
fn present(contenders: Vec<Contender>) -> Vec<Contender> {
    contenders
        .into_iter()
        .filter(|contender| match contender.missing_reason() {
            None => true,
            Some(reason) => {
                skip(contender.name(), &reason);
                false
            }
        })
        .collect()
}

/// Prints that a program is skipped, and why.
pub(crate) fn skip(name: &str, reason: &str) {
    // Standard error itself: the test runner captures `eprintln!`.
    let _ = std::io::stderr().write_all(format!("skipped: {name}: {reason}\n").as_bytes());
}

fn explain(page: &mut Page, contenders: &[Contender]) {
    page.paragraph(
                "Programs take turns on one processor; medians over the runs. Rates are packets of the trace per CPU time (user \
                 and system) and per wall time; the ratio is our rate divided by theirs, by CPU time. `nfpcapd` counts each \
                 direction as a flow; its biflows are those that `nfdump -B` pairs. `softflowd` expires no flow while it reads \
                 a file, and sends no records here. Peak memory is resident memory, mapped file included.",
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
        "program",
        "M packets/s (CPU)",
        "M packets/s (wall)",
        "ours / theirs",
        "peak memory, MiB",
        "packets counted",
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
    row!(table, "ground truth", "", "", "", "", grouped(contents.packets), grouped(contents.flows), "");
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
