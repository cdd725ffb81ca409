//! `thalweg emulate`.

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};
use std::thread::available_parallelism;

use anyhow::Context;
use clap::{Args, ValueEnum};
use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use signal_hook::consts::{SIGINT, SIGTERM};
use thalweg_experiment::files::Output;
use thalweg_experiment::files::marker::{RunMarker, Running};
use thalweg_experiment::results::{Results, SweepResults};
use thalweg_experiment::sweep::{Axis, Sweep};
use thalweg_experiment::{Experiment, Plan, Progress, files, json, plots};
use thalweg_wire::Nanos;

use super::exit_code::UsageError;
use super::file_kind::FileKind;
use super::real_time::RealTimeArgs;
use crate::config::OptionsError;
use crate::console;
use crate::emulate::{self, comparison, new_scheme, report};

/// Emulate a network and measure its queues, links and flows.
///
/// The experiment file describes a topology, a queue management scheme, workloads and transports. The emulation runs in
/// virtual time, in timeslots and with individual packets, and reports throughput, queues, drops and flow completion times. The same file and seed
/// give identical results on any machine.
#[derive(Args, Debug)]
pub(super) struct EmulateArgs {
    /// Experiment file, in TOML.
    #[arg(value_name = "EXPERIMENT", required_unless_present_any = ["list", "new_scheme"])]
    experiment: Option<PathBuf>,

    /// Run the experiment for each value of a key. Several sweeps form a matrix.
    ///
    /// Examples: `scheme=droptail,dctcp,hull`, `load=0.1..0.8` (in steps of 0.1), `scheme.threshold=20..100:20`. Without a
    /// step, whole numbers have steps of 1, others of 0.1. Ranges have no units; list values with units: `min_rto=1ms,10ms`. Prefix a key with its section where the name is ambiguous.
    /// Runs execute in parallel.
    #[arg(long, value_name = "KEY=VALUES", value_parser = axis)]
    sweep: Vec<Axis>,

    /// Random seed. Overrides the file. Not with a sweep of `seed`.
    #[arg(long, value_name = "N")]
    seed: Option<u64>,

    /// Number of threads [default: one for each run, at most the number of cores].
    ///
    /// A sweep runs as many experiments at a time. If it has fewer, each uses an equal part of the threads. An experiment with hosts
    /// (`[[workload]]`) or monitor ports (`[[mirror]]`) runs on one thread, one with `[[packets]]` alone on several, which pays off in large
    /// networks. Results do not depend on the number of threads. In real time, one thread receives and sends, and the others run parts of the network; each needs
    /// a processor of its own. With one thread, the default, it does both.
    #[arg(long, value_name = "N")]
    threads: Option<usize>,

    /// Directory for results: flows, queues, links and drops as tables, and plots.
    ///
    /// Created if missing. A sweep creates a subdirectory for each run, and a table of all runs (runs.csv, runs.jsonl).
    #[arg(short, long, value_name = "DIR", help_heading = "Output")]
    output: Option<PathBuf>,

    /// Format of the tables in the directory of `--output` [default: parquet].
    #[arg(long, value_enum, value_name = "FORMAT", help_heading = "Output", hide_default_value = true)]
    format: Option<Format>,

    /// Print one JSON object per run instead of the report.
    #[arg(long, help_heading = "Output")]
    json: bool,

    /// Print the resolved experiment with all defaults and exit.
    #[arg(long, help_heading = "Output", conflicts_with_all = ["json", "output", "sweep"])]
    print_config: bool,

    /// List topologies, schemes, routing, transports, flow patterns, flow sizes and packet senders, and exit.
    #[arg(long, help_heading = "Output", exclusive = true)]
    list: bool,

    /// Write a crate for a scheme of your own into the folder NAME, and exit.
    ///
    /// Its program is `thalweg emulate` with one more scheme, which has keys of its own in experiment files. The folder has a working scheme
    /// (least slack time first) to change, an experiment and tests.
    #[arg(
        long, value_name = "NAME", help_heading = "Own schemes",
        conflicts_with_all = ["experiment", "sweep", "output", "json", "print_config", "list", "real_time"]
    )]
    new_scheme: Option<String>,

    /// Source of Thalweg that the crate of --new-scheme depends on [default: that of this program].
    #[arg(long, value_name = "DIR", help_heading = "Own schemes", requires = "new_scheme")]
    source: Option<PathBuf>,

    #[command(flatten)]
    real_time: RealTimeArgs,
}

/// Format of result tables.
#[derive(Clone, Copy, Debug, Default, ValueEnum)]
enum Format {
    /// Compressed Parquet, for DuckDB, pandas and Polars
    #[default]
    Parquet,
    /// Comma-separated values with a header
    Csv,
}

impl From<Format> for files::Format {
    fn from(format: Format) -> files::Format {
        match format {
            Format::Parquet => files::Format::Parquet,
            Format::Csv => files::Format::Csv,
        }
    }
}

impl EmulateArgs {
    /// Runs the command.
    ///
    /// # Errors
    /// If the experiment is invalid, the network cannot be emulated, or files cannot be written.
    pub(super) fn run(self) -> anyhow::Result<()> {
        if let Some(name) = &self.new_scheme {
            let source = self.source.clone().unwrap_or_else(new_scheme::default_source);
            let folder = new_scheme::write(Path::new(""), name, &source)
                .map_err(|error| UsageError(error.to_string()))?;
            return super::print(format!(
                "wrote {0}: cd {0} && cargo run --release -- experiment.toml\n",
                folder.display()
            ));
        }
        let Some(path) = self.experiment.as_deref().filter(|_| !self.list) else {
            return super::print(emulate::list());
        };
        self.check_flags()?;
        let mut experiment =
            Experiment::load(path).map_err(|error| FileKind::Experiment.with_hint(error.into(), path))?;
        if let Some(seed) = self.seed {
            experiment.set("seed", &seed.to_string(), "--seed")?;
        }
        let stop = Arc::new(AtomicBool::new(false));
        if self.print_config {
            Plan::new(&experiment)?;
            return super::print(experiment.print());
        }
        if self.real_time.real_time {
            self.create_output()?;
            stop_on_signals(&stop)?;
            let tables =
                self.output.as_deref().map(|folder| (folder, self.format.unwrap_or_default().into()));
            return self.real_time.run(
                (path, &experiment),
                tables,
                self.threads.unwrap_or(1),
                self.json,
                &stop,
            );
        }
        match self.sweep.is_empty() {
            true => self.single(&experiment, &stop),
            false => self.matrix(&experiment, &stop),
        }
    }

    /// Refuses flags that would have no effect.
    fn check_flags(&self) -> anyhow::Result<()> {
        if self.format.is_some() && self.output.is_none() {
            let needs = "tables in the directory of --output";
            return Err(OptionsError::NoEffect { flag: "--format".to_owned(), needs }.into());
        }
        if self.seed.is_some() && self.sweep.iter().any(|axis| axis.key == "seed") {
            let reason = "--seed cannot be combined with --sweep seed=...: remove one of them";
            return Err(UsageError(reason.to_owned()).into());
        }
        Ok(())
    }

    fn single(&self, experiment: &Experiment, stop: &Arc<AtomicBool>) -> anyhow::Result<()> {
        let mut plan = Plan::new(experiment)?;
        let duration = plan.duration;
        plan.warnings.iter().for_each(console::warn);
        plan.threads = self.threads(1);
        if self.threads.is_some_and(|threads| threads > 1) && !plan.can_use_threads() {
            console::note("an experiment with hosts or monitor ports runs on one thread");
        }
        let _marker = self.begin_output(&plan.name, Vec::new(), 1)?;
        let bars = Bars::new(vec![String::new()]);
        stop_on_signals(stop)?;
        let results =
            thalweg_experiment::run(plan, self.tables(), stop, &mut |progress| bars.update(0, progress));
        bars.clear();
        let results = results?;
        if let Some(folder) = &self.output {
            self.write(folder, &results)?;
        }
        if results.interrupted {
            console::warn(format_args!("{}", self.interruption(&results, duration)));
        }
        match self.json {
            true => super::print(json::line(&results)),
            false => {
                super::print(report::report(&results))?;
                console::note(report::pace(&results).trim_end());
                Ok(())
            }
        }
    }

    fn matrix(&self, experiment: &Experiment, stop: &Arc<AtomicBool>) -> anyhow::Result<()> {
        let sweep = Sweep::new(experiment, self.sweep.clone())?;
        let keys = self.sweep.iter().map(|axis| axis.key.clone()).collect();
        let _marker = self.begin_output(&sweep.experiment(), keys, sweep.runs())?;
        let bars = Bars::new((0..sweep.runs()).map(|run| sweep.describe(run).join(" ")).collect());
        stop_on_signals(stop)?;
        let results = sweep.run(
            self.threads(sweep.runs()),
            self.tables(),
            stop,
            &|run, progress| bars.update(run, progress),
            &|run, mut results: Results| {
                if let Some(folder) = &self.output {
                    self.write(&folder.join(sweep.folder(run)), &results)?;
                }
                bars.finish(run, &results);
                // The output files contain them.
                (results.flows, results.queues, results.links) = (Vec::new(), Vec::new(), Vec::new());
                anyhow::Ok(results)
            },
        );
        bars.clear();
        let results = results?;
        if let Some(folder) = &self.output {
            files::write_sweep(folder, &results)?;
            plots::draw_sweep(folder, &results)?;
        }
        self.warn_interrupted_sweep(&sweep, &results);
        for run in &results.runs {
            let values = results.keys.iter().zip(&run.values).map(|(key, value)| format!("{key}={value}"));
            let values: Vec<String> = values.collect();
            for warning in &run.results.warnings {
                console::warn(format_args!("{}: {warning}", values.join(" ")));
            }
        }
        super::print(if self.json { json::lines(&results) } else { comparison::comparison(&results) })
    }

    /// Says what the results of an interrupted run cover.
    fn interruption(&self, results: &Results, duration: Nanos) -> String {
        let emulated = Nanos(results.duration_ns);
        let what = match &self.output {
            Some(folder) => format!("the results, and the files in {}, are incomplete", folder.display()),
            None => "the results are incomplete".to_owned(),
        };
        match emulated < duration {
            true => format!("interrupted after {emulated} of {duration}: {what}"),
            false => format!("interrupted while the network drained: {what}"),
        }
    }

    /// Names the runs of an interrupted sweep that are incomplete or missing.
    fn warn_interrupted_sweep(&self, sweep: &Sweep, results: &SweepResults) {
        for run in results.runs.iter().filter(|run| run.results.interrupted) {
            let folder = self.output.as_ref().map(|folder| folder.join(&run.folder));
            let files = folder
                .map_or_else(String::new, |folder| format!(", and so are the files in {}", folder.display()));
            let (values, emulated) = (run.values.join(" "), Nanos(run.results.duration_ns));
            console::warn(format_args!(
                "{values}: interrupted after {emulated}: the results are incomplete{files}"
            ));
        }
        let missing = sweep.runs() - results.runs.len();
        if missing > 0 {
            console::warn(format_args!("interrupted: {missing} of {} runs did not start", sweep.runs()));
        }
    }

    /// Returns the number of threads for this many runs.
    fn threads(&self, runs: usize) -> usize {
        self.threads.unwrap_or_else(|| available_parallelism().map_or(1, Into::into).min(runs))
    }

    /// Creates the output directory before a long run, not after.
    fn create_output(&self) -> anyhow::Result<()> {
        let Some(folder) = &self.output else { return Ok(()) };
        std::fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))
    }

    /// Creates the output directory, and marks it as being written until the result is dropped.
    fn begin_output(
        &self,
        experiment: &str,
        sweep: Vec<String>,
        runs: usize,
    ) -> anyhow::Result<Option<RunMarker>> {
        self.create_output()?;
        let Some(folder) = &self.output else { return Ok(None) };
        let running = Running { experiment: experiment.to_owned(), sweep, runs: runs as u64 };
        let marker = RunMarker::create(folder, &running);
        Ok(Some(marker.with_context(|| format!("cannot write to {}", folder.display()))?))
    }

    /// Where tables go, if they are asked for.
    fn tables(&self) -> Option<Output<'_>> {
        let format = self.format.unwrap_or_default().into();
        self.output.as_deref().map(|folder| Output { folder, format })
    }

    fn write(&self, folder: &Path, results: &Results) -> anyhow::Result<()> {
        files::write(folder, self.format.unwrap_or_default().into(), results)?;
        plots::draw(folder, results)?;
        Ok(())
    }
}

/// The first signal ends the run and keeps its results. A second one ends the program.
fn stop_on_signals(stop: &Arc<AtomicBool>) -> anyhow::Result<()> {
    for signal in [SIGINT, SIGTERM] {
        signal_hook::flag::register_conditional_shutdown(signal, 128 + signal, Arc::clone(stop))
            .and_then(|_| signal_hook::flag::register(signal, Arc::clone(stop)))
            .context("cannot install signal handlers")?;
    }
    Ok(())
}

/// Progress bars of all runs, on standard error if it is a terminal.
struct Bars {
    all: MultiProgress,
    /// One per run, created when the run starts.
    bars: Vec<OnceLock<ProgressBar>>,
    names: Vec<String>,
    are_shown: bool,
}

impl Bars {
    /// Creates the bars of these runs.
    fn new(names: Vec<String>) -> Bars {
        let widest = names.iter().map(String::len).max().unwrap_or(0);
        Bars {
            all: MultiProgress::new(),
            bars: names.iter().map(|_| OnceLock::new()).collect(),
            names: names.into_iter().map(|name| format!("{name:widest$}  ")).collect(),
            are_shown: console::shows_progress(),
        }
    }

    fn update(&self, run: usize, progress: Progress) {
        if !self.are_shown {
            return;
        }
        let bar = self.bars[run].get_or_init(|| self.all.add(bar(progress.duration, &self.names[run])));
        let seconds = bar.elapsed().as_secs_f64().max(1e-3);
        let ratio = progress.emulated.as_secs_f64() / seconds;
        let rate = progress.packets as f64 / seconds / 1e6;
        bar.set_position(progress.emulated.min(progress.duration).0);
        let speed = format!("{}, {rate:.1} M packets/s, {ratio:.2} x real time", progress.emulated);
        bar.set_message(match progress.unfinished {
            Some(flows) => format!("{speed}, draining {flows} flows"),
            None => speed,
        });
    }

    /// Replaces the bar of a finished run by a line.
    fn finish(&self, run: usize, results: &Results) {
        if let Some(bar) = self.bars[run].get() {
            bar.finish_and_clear();
            // The terminal may be gone.
            let _ = self.all.println(format!("{}{}", self.names[run], report::pace(results).trim_end()));
        }
    }

    fn clear(&self) {
        let _ = self.all.clear();
    }
}

fn bar(duration: Nanos, name: &str) -> ProgressBar {
    let style = ProgressStyle::with_template("{prefix}{bar:24} {msg}, {eta} left")
        .unwrap_or_else(|_| ProgressStyle::default_bar());
    ProgressBar::new(duration.0).with_style(style).with_prefix(name.trim_start().to_owned())
}

fn axis(text: &str) -> Result<Axis, String> {
    text.parse().map_err(|error: thalweg_experiment::sweep::ParseAxisError| error.to_string())
}
