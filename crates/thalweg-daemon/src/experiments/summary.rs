//! The summaries of runs and sweeps: JSON objects as `thalweg emulate --json` prints them.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Map, Value};
use thalweg_api::{ExperimentEntry, ExperimentHeadline, SweepEntry};
use thalweg_experiment::files::read::SweepIndex;

/// The summary of a run.
pub(super) struct Summary {
    json: Map<String, Value>,
    line: Line,
}

/// What the list needs of a summary. A field of another version is as good as missing.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Line {
    experiment: Option<String>,
    sweep: BTreeMap<String, String>,
    topology: Option<String>,
    scheme: Option<String>,
    transport: Option<String>,
    seed: Option<u64>,
    duration_ns: u64,
    interrupted: bool,
    packets: Packets,
    throughput_bps: f64,
    goodput_bps: f64,
    flows: Flows,
    sizes: Vec<Size>,
    longest_queues: Vec<Queue>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Packets {
    sent: u64,
    dropped: u64,
    marked: u64,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Flows {
    completed: u64,
    unfinished: u64,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Size {
    class: String,
    completed: u64,
    fct_ns: Spread,
    slowdown: Spread,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Spread {
    mean: f64,
    p99: f64,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Queue {
    packets: Spread,
}

impl Summary {
    /// Parses a summary.
    ///
    /// # Errors
    /// A message, if it is no JSON object, or its fields have other types.
    pub(super) fn parse(text: &str) -> Result<Summary, String> {
        let wrong = |error: serde_json::Error| format!("the summary is invalid: {error}");
        let json: Map<String, Value> = serde_json::from_str(text).map_err(wrong)?;
        let line = serde_json::from_str(text).map_err(wrong)?;
        Ok(Summary { json, line })
    }

    /// Whether the run was stopped before its end.
    pub(super) fn is_interrupted(&self) -> bool {
        self.line.interrupted
    }

    /// Fills in the entry of the list.
    pub(super) fn describe(&self, entry: &mut ExperimentEntry) {
        let Line { experiment, topology, scheme, transport, seed, .. } = &self.line;
        entry.experiment.clone_from(experiment);
        entry.topology.clone_from(topology);
        entry.scheme.clone_from(scheme);
        entry.transport.clone_from(transport);
        entry.seed = *seed;
        entry.headline = self.line.headline();
    }

    /// Returns the JSON object.
    pub(super) fn into_json(self) -> Map<String, Value> {
        self.json
    }
}

impl Line {
    /// Returns the main results; `None` if it is a summary of something else.
    fn headline(&self) -> Option<ExperimentHeadline> {
        self.experiment.as_ref()?;
        let all = self.sizes.iter().find(|size| size.class == "all" && size.completed > 0);
        let queue = self.longest_queues.first();
        Some(ExperimentHeadline {
            duration_ns: self.duration_ns,
            throughput_bps: self.throughput_bps,
            goodput_bps: self.goodput_bps,
            packets_sent: self.packets.sent,
            packets_dropped: self.packets.dropped,
            packets_marked: self.packets.marked,
            flows_completed: self.flows.completed,
            flows_unfinished: self.flows.unfinished,
            fct_mean_ns: all.map(|size| size.fct_ns.mean),
            fct_p99_ns: all.map(|size| size.fct_ns.p99),
            slowdown_mean: all.map(|size| size.slowdown.mean),
            slowdown_p99: all.map(|size| size.slowdown.p99),
            queue_packets_mean: queue.map(|queue| queue.packets.mean),
            queue_packets_p99: queue.map(|queue| queue.packets.p99),
        })
    }
}

/// The table of a sweep.
pub(super) struct Sweep {
    runs: Vec<Line>,
    /// The swept keys, and the folder of each run; none if the table does not say.
    index: SweepIndex,
}

impl Sweep {
    /// Parses a line per run. `index` is of the same runs.
    ///
    /// # Errors
    /// A message, if a line is no JSON object, or its fields have other types.
    pub(super) fn parse(text: &str, index: SweepIndex) -> Result<Sweep, String> {
        let line = |(number, line): (usize, &str)| {
            serde_json::from_str(line)
                .map_err(|error| format!("line {} of the table is invalid: {error}", number + 1))
        };
        let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
        let runs = lines.map(line).collect::<Result<Vec<Line>, String>>()?;
        Ok(Sweep { runs, index })
    }

    /// Whether a run was stopped before its end.
    pub(super) fn is_interrupted(&self) -> bool {
        self.runs.iter().any(|run| run.interrupted)
    }

    /// Fills in the entry of the list: what all runs share.
    pub(super) fn describe(&self, entry: &mut ExperimentEntry) {
        entry.experiment = self.shared(|run| run.experiment.clone());
        entry.topology = self.shared(|run| run.topology.clone());
        entry.scheme = self.shared(|run| run.scheme.clone());
        entry.transport = self.shared(|run| run.transport.clone());
        entry.seed = self.shared(|run| run.seed);
        entry.sweep = match &self.index.keys[..] {
            [] => self.runs.first().map_or_else(Vec::new, |run| run.sweep.keys().cloned().collect()),
            keys => keys.to_vec(),
        };
        entry.runs = self.runs.len() as u64;
    }

    fn shared<T: PartialEq>(&self, value: impl Fn(&Line) -> Option<T>) -> Option<T> {
        let first = self.runs.first().and_then(&value)?;
        self.runs.iter().all(|run| value(run).as_ref() == Some(&first)).then_some(first)
    }

    /// Returns the runs. `has_folder` says whether there is a folder of a run.
    pub(super) fn table(self, has_folder: impl Fn(&str) -> bool) -> Vec<SweepEntry> {
        let folders = self.index.folders;
        let entry = |(number, run): (usize, Line)| {
            let headline = run.headline()?;
            Some(SweepEntry {
                run: folders.get(number).filter(|folder| has_folder(folder)).cloned(),
                values: run.sweep,
                scheme: run.scheme.unwrap_or_default(),
                transport: run.transport.unwrap_or_default(),
                seed: run.seed.unwrap_or_default(),
                interrupted: run.interrupted,
                headline,
            })
        };
        self.runs.into_iter().enumerate().filter_map(entry).collect()
    }
}
