//! The table of a sweep: a line per run, with its values and the figures of its summary.

use std::fs;
use std::path::{Path, PathBuf};

use super::{WriteError, write_text};
use crate::json;
use crate::results::{QueueUse, Results, SIZE_CLASSES, SizeClassRow, SweepResults, SweepRun};
use crate::seeds::{self, Group, Mean};

/// Name of the table as CSV.
pub(super) const CSV_FILE: &str = "runs.csv";
/// Name of the table of means over seeds.
pub(super) const SEEDS_FILE: &str = "seeds.csv";
/// Name of the table as JSON lines.
pub const JSON_FILE: &str = "runs.jsonl";

/// A column after those of the swept keys.
pub(super) struct Column {
    pub(super) name: &'static str,
    pub(super) unit: &'static str,
    pub(super) meaning: &'static str,
    value: fn(&SweepRun) -> String,
}

const fn column(
    name: &'static str,
    unit: &'static str,
    meaning: &'static str,
    value: fn(&SweepRun) -> String,
) -> Column {
    Column { name, unit, meaning, value }
}

/// The columns of every sweep. Those of size classes follow.
pub(super) const COLUMNS: [Column; 14] = [
    column("folder", "", "folder of the run\'s tables", |run| run.folder.clone()),
    column("scheme", "", "queue management scheme", |run| run.results.scheme.clone()),
    column("transport", "", "transport, or `none`", |run| run.results.transport.clone()),
    column("seed", "", "seed", |run| run.results.seed.to_string()),
    column("duration_ns", "ns", "emulated time, without draining", |run| run.results.duration_ns.to_string()),
    column("interrupted", "", "`true` if the run was interrupted before its end", |run| {
        run.results.interrupted.to_string()
    }),
    column("packets_sent", "packets", "packets handed to network interfaces", |run| {
        run.results.summary.packets.sent.to_string()
    }),
    column("packets_dropped", "packets", "packets dropped", |run| {
        run.results.summary.packets.dropped.to_string()
    }),
    column("packets_marked", "packets", "packets marked (ECN)", |run| {
        run.results.summary.packets.marked.to_string()
    }),
    column("throughput_bps", "bit/s", "bits delivered to endpoints per second", |run| {
        run.results.summary.throughput_bps.to_string()
    }),
    column("goodput_bps", "bit/s", "payload delivered to applications per second", |run| {
        run.results.summary.goodput_bps.to_string()
    }),
    column("queue_packets_mean", "packets", "mean queue of the port with the longest mean queue", |run| {
        longest(&run.results, |queue| queue.packets.mean)
    }),
    column("queue_packets_p99", "packets", "99th percentile of that queue", |run| {
        longest(&run.results, |queue| queue.packets.p99)
    }),
    column("flows_unfinished", "flows", "bounded flows that did not complete", |run| {
        run.results.summary.flows.unfinished.to_string()
    }),
];

/// A column of each size class; its name follows that of the class.
pub(super) struct ClassColumn {
    pub(super) name: &'static str,
    pub(super) unit: &'static str,
    pub(super) meaning: &'static str,
    value: fn(&SizeClassRow) -> String,
}

const fn class_column(
    name: &'static str,
    unit: &'static str,
    meaning: &'static str,
    value: fn(&SizeClassRow) -> String,
) -> ClassColumn {
    ClassColumn { name, unit, meaning, value }
}

pub(super) const CLASS_COLUMNS: [ClassColumn; 6] = [
    class_column("completed", "flows", "completed flows", |class| class.completed.to_string()),
    class_column(
        "unfinished",
        "flows",
        "flows that did not complete; the times below are then lower bounds",
        |class| class.unfinished.to_string(),
    ),
    class_column("fct_ns_mean", "ns", "mean completion time", |class| completed(class, class.fct_ns.mean)),
    class_column("fct_ns_p99", "ns", "99th percentile of the completion time", |class| {
        completed(class, class.fct_ns.p99)
    }),
    class_column(
        "slowdown_mean",
        "",
        "mean of completion time divided by that in an idle network",
        |class| completed(class, class.slowdown.mean),
    ),
    class_column("slowdown_p99", "", "99th percentile of the slowdown", |class| {
        completed(class, class.slowdown.p99)
    }),
];

/// Writes the table of a sweep to `folder` as CSV and as JSON lines (`thalweg emulate --json`). Returns the paths.
///
/// # Errors
/// If a file cannot be written.
pub fn write_sweep(folder: &Path, results: &SweepResults) -> Result<Vec<PathBuf>, WriteError> {
    fs::create_dir_all(folder).map_err(|source| WriteError::Folder { folder: folder.to_owned(), source })?;
    let table = table(results).map_err(|source| WriteError::Csv { path: folder.join(CSV_FILE), source })?;
    let mut paths =
        vec![write_text(folder, CSV_FILE, table)?, write_text(folder, JSON_FILE, json::lines(results))?];
    if let Some((keys, groups)) = seeds::groups(results) {
        let table = means(results, &keys, &groups);
        let table = table.map_err(|source| WriteError::Csv { path: folder.join(SEEDS_FILE), source })?;
        paths.push(write_text(folder, SEEDS_FILE, table)?);
    }
    Ok(paths)
}

/// A figure of a run; empty if the run has none.
type Figure = Box<dyn Fn(&SweepRun) -> String>;

/// Returns the means over seeds as CSV: a line for each combination of the other keys, and for each figure its mean and half the
/// width of its 95 % confidence interval.
fn means(results: &SweepResults, keys: &[String], groups: &[Group]) -> Result<Vec<u8>, csv::Error> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    let mut figures: Vec<(String, Figure)> = Vec::new();
    for column in COLUMNS.iter().filter(|column| !column.unit.is_empty() && column.name != "duration_ns") {
        figures.push((column.name.to_owned(), Box::new(column.value)));
    }
    for (class, _) in SIZE_CLASSES {
        for column in &CLASS_COLUMNS {
            let of_class = move |run: &SweepRun| {
                let row = run.results.summary.sizes.iter().find(|row| row.class == class);
                row.map(column.value).unwrap_or_default()
            };
            figures.push((format!("{class}_{}", column.name), Box::new(of_class)));
        }
    }
    let mut header = keys.to_vec();
    header.push("runs".to_owned());
    header.extend(figures.iter().flat_map(|(name, _)| [name.clone(), format!("{name}_ci95")]));
    writer.write_record(&header)?;
    for group in groups {
        let mut cells = group.values.clone();
        cells.push(group.runs.len().to_string());
        for (_, figure) in &figures {
            let values = group.runs.iter().filter_map(|&run| figure(&results.runs[run]).parse().ok());
            let mean = Mean::of(values);
            cells.push(mean.map_or_else(String::new, |mean| mean.mean.to_string()));
            let half_width = mean.and_then(|mean| mean.half_width);
            cells.push(half_width.map_or_else(String::new, |half| half.to_string()));
        }
        writer.write_record(&cells)?;
    }
    writer.into_inner().map_err(|error| error.into_error().into())
}

/// Returns the table as CSV. Values that a run does not have are empty.
fn table(results: &SweepResults) -> Result<Vec<u8>, csv::Error> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    // A swept key and a column of one name have the same values.
    let columns: Vec<&Column> =
        COLUMNS.iter().filter(|column| !results.keys.iter().any(|key| key == column.name)).collect();
    let mut header = results.keys.clone();
    header.extend(columns.iter().map(|column| column.name.to_owned()));
    for (class, _) in SIZE_CLASSES {
        header.extend(CLASS_COLUMNS.iter().map(|column| format!("{class}_{}", column.name)));
    }
    writer.write_record(&header)?;
    for run in &results.runs {
        let mut cells = run.values.clone();
        cells.extend(columns.iter().map(|column| (column.value)(run)));
        for (class, _) in SIZE_CLASSES {
            let row = run.results.summary.sizes.iter().find(|row| row.class == class);
            cells.extend(CLASS_COLUMNS.iter().map(|column| row.map(column.value).unwrap_or_default()));
        }
        writer.write_record(&cells)?;
    }
    writer.into_inner().map_err(|error| error.into_error().into())
}

/// Returns a figure of the port with the longest mean queue; empty without queues.
fn longest(results: &Results, figure: fn(&QueueUse) -> f64) -> String {
    results.summary.longest_queues.first().map_or_else(String::new, |queue| figure(queue).to_string())
}

/// Returns a figure of completed flows; empty without any.
fn completed(class: &SizeClassRow, figure: f64) -> String {
    if class.completed == 0 { String::new() } else { figure.to_string() }
}
