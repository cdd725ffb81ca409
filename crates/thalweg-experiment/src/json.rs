//! JSON lines: one object per run. Documented in `docs/reference/json.md`.

use std::collections::BTreeMap;

use serde::Serialize;

use super::results::{DropRow, Results, Summary, SweepResults};

#[derive(Serialize)]
struct Line<'a> {
    r#type: &'static str,
    experiment: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    sweep: Option<BTreeMap<&'a str, &'a str>>,
    topology: &'a str,
    scheme: &'a str,
    transport: &'a str,
    seed: u64,
    duration_ns: u64,
    drain_ns: u64,
    warm_up_ns: u64,
    slots: u64,
    interrupted: bool,
    warnings: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    elapsed_ns: Option<u64>,
    drops: &'a [DropRow],
    #[serde(flatten)]
    summary: &'a Summary,
}

/// The line of a run, newline included.
pub fn line(results: &Results) -> String {
    written(results, None, Some(elapsed_ns(results)))
}

/// The line of a run without `elapsed_ns`, so that equal runs have equal lines.
pub fn summary(results: &Results) -> String {
    written(results, None, None)
}

/// A line for each run of a sweep, with its values.
pub fn lines(results: &SweepResults) -> String {
    let of_run = |run: &super::results::SweepRun| {
        let keys = results.keys.iter().map(String::as_str);
        let values = keys.zip(run.values.iter().map(String::as_str)).collect();
        written(&run.results, Some(values), Some(elapsed_ns(&run.results)))
    };
    results.runs.iter().map(of_run).collect()
}

fn elapsed_ns(results: &Results) -> u64 {
    (results.wall_seconds * 1e9).round() as u64
}

fn written(results: &Results, sweep: Option<BTreeMap<&str, &str>>, elapsed_ns: Option<u64>) -> String {
    let line = Line {
        r#type: "emulation",
        experiment: &results.experiment,
        sweep,
        topology: &results.topology,
        scheme: &results.scheme,
        transport: &results.transport,
        seed: results.seed,
        duration_ns: results.duration_ns,
        drain_ns: results.drain_ns,
        warm_up_ns: results.warm_up_ns,
        slots: results.slots,
        interrupted: results.interrupted,
        warnings: &results.warnings,
        elapsed_ns,
        drops: &results.drops,
        summary: &results.summary,
    };
    serde_json::to_string(&line).expect("names and numbers can be written") + "\n"
}
