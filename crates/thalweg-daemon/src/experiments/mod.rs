//! Results of emulated experiments in a folder (`experiments.folder`), as `thalweg emulate --output` writes them.
//!
//! ```text
//!   FOLDER/NAME/{summary.json, links, queues, flows, drops}           a run
//!   FOLDER/NAME/{runs.jsonl, RUN/...}                                 a sweep
//!   FOLDER/GROUP/NAME/...                                             a group of runs and sweeps
//! ```
//!
//! **Bounds.** Names are those of folders: links are not followed, and no name leads out of the folder. Files above
//! [`MAX_TEXT_BYTES`] and [`TABLE_LIMITS`] are refused. Tables are read row by row; series have at most [`MAX_POINTS`] values.
//!
//! | file | contents |
//! |---|---|
//! | `summary` | the summaries of runs and sweeps |
//! | `series` | series for plots, from the tables of a run |

mod series;
mod summary;
#[cfg(test)]
mod tests;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use thalweg_api::{ExperimentEntry, ExperimentKind, ExperimentResults, ExperimentState, UtcTime};
use thalweg_experiment::files::marker::{Running, running};
use thalweg_experiment::files::read::{TableLimits, read_sweep, table};
use thalweg_experiment::files::{SUMMARY_FILE, SWEEP_FILE};
use thalweg_experiment::results::{DropRow, FlowRow, LinkRow, QueueRow};
use thalweg_wire::Timestamp;
use thiserror::Error;

use summary::{Summary, Sweep};

/// Maximum size of a summary.
pub const MAX_TEXT_BYTES: u64 = 8 << 20;

/// Limits of a table.
pub const TABLE_LIMITS: TableLimits = TableLimits { bytes: 32 << 20, rows: 10_000_000 };

/// Maximum number of values in a series.
pub const MAX_POINTS: usize = 400;

/// Maximum number of experiments in the list.
const MAX_LISTED: usize = 1_000;

/// Maximum number of folders that are looked at.
const MAX_FOLDERS: usize = 10_000;

/// Maximum size of all summaries in the list.
const MAX_LIST_BYTES: u64 = 64 << 20;

/// Name of the report of an emulation in real time.
const REAL_TIME_FILE: &str = "real-time.json";

/// Why results cannot be read.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ExperimentsError {
    /// There are no results of this name.
    #[error("unknown experiment {0:?}: GET /v1/experiments lists them")]
    Unknown(String),
    /// The folder cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Folder {
        /// The folder.
        path: PathBuf,
        /// Error of the operating system.
        source: io::Error,
    },
}

/// The folder with results of experiments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Experiments {
    folder: PathBuf,
}

impl Experiments {
    /// Creates access to a folder. It may be missing until there are results.
    pub fn new(folder: PathBuf) -> Experiments {
        Experiments { folder }
    }

    /// Returns all experiments, the latest first.
    ///
    /// # Errors
    /// If the folder cannot be read.
    pub fn list(&self) -> Result<thalweg_api::Experiments, ExperimentsError> {
        let failed = |source| ExperimentsError::Folder { path: self.folder.clone(), source };
        let mut budget = Budget { folders: MAX_FOLDERS, bytes: MAX_LIST_BYTES, omitted: 0 };
        let mut experiments = Vec::new();
        for name in budget.folders(&self.folder).map_err(failed)? {
            let path = self.folder.join(&name);
            if let Some(found) = Found::in_folder(&path, &name, None) {
                experiments.push(found.entry(&mut budget));
                continue;
            }
            let nested = match budget.folders(&path) {
                Ok(nested) => nested,
                Err(error) => {
                    experiments.push(unreadable(&path, &name, &error));
                    continue;
                }
            };
            for nested in nested {
                let path = path.join(&nested);
                let found = Found::in_folder(&path, &nested, Some(&name));
                experiments.extend(found.map(|found| found.entry(&mut budget)));
            }
        }
        experiments.sort_by(|one, other| {
            let name = |entry: &ExperimentEntry| (entry.group.clone(), entry.name.clone());
            other.written.cmp(&one.written).then_with(|| name(one).cmp(&name(other)))
        });
        let beyond = experiments.len().saturating_sub(MAX_LISTED) as u64;
        experiments.truncate(MAX_LISTED);
        Ok(thalweg_api::Experiments { experiments, omitted: budget.omitted + beyond })
    }

    /// Returns the results of an experiment, or with `run` of one in its folder.
    ///
    /// # Errors
    /// If there are none of these names.
    pub fn results(&self, name: &str, run: Option<&str>) -> Result<ExperimentResults, ExperimentsError> {
        let unknown = || {
            let shown = |name: &str| name.chars().take(200).collect::<String>();
            let run = run.map_or_else(String::new, |run| format!("/{}", shown(run)));
            ExperimentsError::Unknown(shown(name) + &run)
        };
        let mut path = self.folder.clone();
        for name in [Some(name), run].into_iter().flatten() {
            path.push(name);
            if !is_plain(name) || !is_folder(&path) {
                return Err(unknown());
            }
        }
        let group = run.map(|_| name);
        let found = Found::in_folder(&path, run.unwrap_or(name), group).ok_or_else(unknown)?;
        Ok(found.results())
    }
}

/// Whether a name is that of a folder: no path, and not hidden.
fn is_plain(name: &str) -> bool {
    !name.is_empty() && !name.starts_with('.') && !name.contains(['/', '\\', '\0'])
}

/// Whether a path is a folder, and not a link to one.
fn is_folder(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|metadata| metadata.is_dir())
}

/// What a list may still read.
struct Budget {
    folders: usize,
    bytes: u64,
    omitted: u64,
}

impl Budget {
    /// Returns the names of the folders in a folder, sorted; none if it is missing.
    fn folders(&mut self, path: &Path) -> io::Result<Vec<String>> {
        let entries = match fs::read_dir(path) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let mut names = Vec::new();
        for entry in entries {
            let entry = entry?;
            if !entry.file_type()?.is_dir() {
                continue;
            }
            match entry.file_name().into_string() {
                Ok(name) if self.folders > 0 && is_plain(&name) => {
                    self.folders -= 1;
                    names.push(name);
                }
                Ok(name) if name.starts_with('.') => {}
                _ => self.omitted += 1,
            }
        }
        names.sort();
        Ok(names)
    }
}

/// A folder with results.
struct Found<'a> {
    path: &'a Path,
    name: &'a str,
    group: Option<&'a str>,
    kind: ExperimentKind,
    written: UtcTime,
    /// What is being written, or was when its program was killed.
    running: Option<(Running, bool)>,
    /// Whether there are all tables of a run.
    has_all_tables: bool,
}

impl<'a> Found<'a> {
    /// Looks at the files of a folder; `None` if they are no results.
    fn in_folder(path: &'a Path, name: &'a str, group: Option<&'a str>) -> Option<Found<'a>> {
        let running = running(path);
        let tables =
            [table::<FlowRow>(path), table::<QueueRow>(path), table::<LinkRow>(path), table::<DropRow>(path)];
        let texts = [SUMMARY_FILE, SWEEP_FILE, REAL_TIME_FILE].map(|file| path.join(file));
        let is_sweep = is_file(&texts[1]) || running.as_ref().is_some_and(|(it, _)| !it.sweep.is_empty());
        let files = tables.iter().flatten().map(|(path, _)| path).chain(&texts).filter(|path| is_file(path));
        let latest = files.filter_map(|file| modified(file)).max();
        let latest = match (&running, latest) {
            (_, Some(latest)) => latest,
            (Some(_), None) => modified(path).unwrap_or_default(),
            (None, None) => return None,
        };
        Some(Found {
            path,
            name,
            group,
            kind: if is_sweep { ExperimentKind::Sweep } else { ExperimentKind::Run },
            written: latest.into(),
            running,
            has_all_tables: tables.iter().all(Option::is_some),
        })
    }

    /// Returns what is known without a summary.
    fn plain_entry(&self) -> ExperimentEntry {
        let is_complete = match self.kind {
            ExperimentKind::Run => self.has_all_tables,
            ExperimentKind::Sweep => false,
        };
        let (running, is_running) = self.running.clone().unzip();
        ExperimentEntry {
            name: self.name.to_owned(),
            group: self.group.map(str::to_owned),
            kind: self.kind,
            state: match is_running {
                Some(true) => ExperimentState::Writing,
                Some(false) => ExperimentState::Incomplete,
                None if is_complete => ExperimentState::Complete,
                None => ExperimentState::Incomplete,
            },
            written: self.written,
            error: None,
            experiment: running.as_ref().map(|it| it.experiment.clone()).filter(|name| !name.is_empty()),
            topology: None,
            scheme: None,
            transport: None,
            seed: None,
            sweep: running.map_or_else(Vec::new, |running| running.sweep),
            runs: match self.kind {
                ExperimentKind::Run => 1,
                ExperimentKind::Sweep => 0,
            },
            headline: None,
        }
    }

    /// Returns the entry of the list.
    fn entry(&self, budget: &mut Budget) -> ExperimentEntry {
        let file = self.summary_file();
        let bytes = file.as_ref().and_then(|file| file.metadata().ok()).map_or(0, |file| file.len());
        let mut entry = self.plain_entry();
        if bytes <= MAX_TEXT_BYTES && bytes > budget.bytes {
            entry.error =
                Some("the summaries of all experiments together are too large for this list".to_owned());
            return entry;
        }
        if bytes <= MAX_TEXT_BYTES {
            budget.bytes -= bytes;
        }
        match self.kind {
            ExperimentKind::Run => drop(self.add_summary(&mut entry)),
            ExperimentKind::Sweep => drop(self.add_sweep(&mut entry)),
        }
        entry
    }

    /// Returns the file with the summary, if there is one.
    fn summary_file(&self) -> Option<PathBuf> {
        let names: &[&str] = match self.kind {
            ExperimentKind::Run => &[SUMMARY_FILE, REAL_TIME_FILE],
            ExperimentKind::Sweep => &[SWEEP_FILE],
        };
        names.iter().map(|name| self.path.join(name)).find(|path| is_file(path))
    }

    /// Adds what the summary of a run says, and returns it.
    fn add_summary(&self, entry: &mut ExperimentEntry) -> Option<Summary> {
        let read = read_text(&self.summary_file()?).and_then(|text| Summary::parse(&text));
        match read {
            Ok(summary) => {
                summary.describe(entry);
                if self.running.is_none() {
                    entry.state = match summary.is_interrupted() {
                        true => ExperimentState::Interrupted,
                        false => ExperimentState::Complete,
                    };
                }
                Some(summary)
            }
            Err(error) => {
                fail(entry, error);
                None
            }
        }
    }

    /// Adds what the table of a sweep says, and returns it.
    fn add_sweep(&self, entry: &mut ExperimentEntry) -> Option<Sweep> {
        let Some(file) = self.summary_file() else {
            // Runs that are done have folders before there is a table.
            let mut budget = Budget { folders: MAX_FOLDERS, bytes: 0, omitted: 0 };
            let runs = budget.folders(self.path).unwrap_or_default();
            let has_summary = |run: &&String| is_file(&self.path.join(run).join(SUMMARY_FILE));
            entry.runs = runs.iter().filter(has_summary).count() as u64;
            return None;
        };
        let index = read_sweep(self.path, MAX_TEXT_BYTES);
        match index
            .map_err(|error| error.to_string())
            .and_then(|index| Sweep::parse(&read_text(&file)?, index))
        {
            Ok(sweep) => {
                sweep.describe(entry);
                if self.running.is_none() {
                    entry.state = match sweep.is_interrupted() {
                        true => ExperimentState::Interrupted,
                        false => ExperimentState::Complete,
                    };
                }
                Some(sweep)
            }
            Err(error) => {
                fail(entry, error);
                None
            }
        }
    }

    /// Returns all results.
    fn results(&self) -> ExperimentResults {
        let mut entry = self.plain_entry();
        if self.kind == ExperimentKind::Sweep {
            let sweep = self.add_sweep(&mut entry);
            let problems = entry.error.iter().cloned().collect();
            let has_folder = |run: &str| is_plain(run) && is_folder(&self.path.join(run));
            let table = sweep.map_or_else(Vec::new, |sweep| sweep.table(has_folder));
            return ExperimentResults { table, problems, ..empty(entry) };
        }
        let summary = self.add_summary(&mut entry);
        let mut problems: Vec<String> = entry.error.iter().cloned().collect();
        let mut note = |problem: String| problems.push(problem);
        let throughput = series::throughput(self.path).unwrap_or_else(|error| {
            note(error);
            None
        });
        let queues = series::queues(self.path).unwrap_or_else(|error| {
            note(error);
            None
        });
        let completions = series::completions(self.path).unwrap_or_else(|error| {
            note(error);
            None
        });
        if let (None, Some(problem)) = (&entry.error, problems.first()) {
            entry.error = Some(problem.clone());
            entry.state = ExperimentState::Unreadable;
        }
        let summary = summary.map(Summary::into_json);
        ExperimentResults { summary, throughput, queues, completions, problems, ..empty(entry) }
    }
}

/// Results without anything.
fn empty(entry: ExperimentEntry) -> ExperimentResults {
    ExperimentResults {
        entry,
        summary: None,
        throughput: None,
        queues: None,
        completions: None,
        table: Vec::new(),
        problems: Vec::new(),
    }
}

/// The entry of a folder that cannot be read.
fn unreadable(path: &Path, name: &str, error: &io::Error) -> ExperimentEntry {
    let written = modified(path).unwrap_or_default().into();
    let found = Found {
        path,
        name,
        group: None,
        kind: ExperimentKind::Run,
        written,
        running: None,
        has_all_tables: false,
    };
    let mut entry = found.plain_entry();
    fail(&mut entry, format!("cannot read the folder: {error}"));
    entry
}

fn fail(entry: &mut ExperimentEntry, error: String) {
    entry.error = Some(error);
    entry.state = ExperimentState::Unreadable;
}

/// Whether a path is a file, and not a link to one.
fn is_file(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|metadata| metadata.is_file())
}

/// Returns when a file was written.
fn modified(path: &Path) -> Option<Timestamp> {
    let modified: SystemTime = path.symlink_metadata().ok()?.modified().ok()?;
    let since = modified.duration_since(UNIX_EPOCH).unwrap_or_default();
    Some(Timestamp(u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)))
}

/// Reads a file within [`MAX_TEXT_BYTES`].
fn read_text(path: &Path) -> Result<String, String> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    match path.metadata().map(|metadata| metadata.len()) {
        Ok(bytes) if bytes > MAX_TEXT_BYTES => {
            Err(format!("{name} has {bytes} bytes, at most {MAX_TEXT_BYTES} are read"))
        }
        _ => fs::read_to_string(path).map_err(|error| format!("cannot read {name}: {error}")),
    }
}
