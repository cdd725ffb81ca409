//! Runs on all cores, with results that outlive an interruption.

use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{available_parallelism, scope};

use anyhow::Context;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::Size;

/// The first line of a progress file: what its results are of.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Subject {
    command: String,
    version: String,
}

impl Subject {
    fn of(size: &Size) -> Subject {
        Subject { command: size.command.clone(), version: env!("CARGO_PKG_VERSION").to_owned() }
    }
}

/// A result in a progress file.
#[derive(Debug, Serialize, Deserialize)]
struct Done<T> {
    run: String,
    result: T,
}

/// Runs `run` for each of `tasks` and each seed on all cores, and returns the results of each task by seed. `name` is
/// that of a task, different from all others.
///
/// Each result is appended to the progress file at once. Results of an interrupted run of the same command are not
/// computed again. [`finish`] removes the file.
pub(super) fn run_all<Task, T>(
    size: &Size,
    tasks: &[Task],
    name: impl Fn(&Task) -> String + Sync,
    run: impl Fn(&Task, u64) -> anyhow::Result<T> + Sync,
) -> anyhow::Result<Vec<Vec<T>>>
where
    Task: Sync,
    T: Serialize + DeserializeOwned + Send,
{
    let named = |task: &Task, seed: u64| format!("{} seed {seed}", name(task));
    let known: HashMap<String, T> = load(size)?;
    let missing: Vec<(usize, u64)> = (1..=size.seeds)
        .flat_map(|seed| (0..tasks.len()).map(move |index| (index, seed)))
        .filter(|&(index, seed)| !known.contains_key(&named(&tasks[index], seed)))
        .collect();
    if !known.is_empty() {
        eprintln!("{} results of an interrupted run, {} to go", known.len(), missing.len());
    }
    let (next, finished) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let state = Mutex::new((known, open(size)?));
    let worker = || -> anyhow::Result<()> {
        while let Some(&(index, seed)) = missing.get(next.fetch_add(1, Ordering::Relaxed)) {
            let result = run(&tasks[index], seed)?;
            let done = Done { run: named(&tasks[index], seed), result };
            let line = serde_json::to_string(&done)? + "\n";
            let mut state = state.lock().map_err(|_| anyhow::anyhow!("another run failed"))?;
            state.1.write_all(line.as_bytes()).context("cannot write the progress file")?;
            state.0.insert(done.run, done.result);
            let finished = finished.fetch_add(1, Ordering::Relaxed) + 1;
            if finished.is_multiple_of(missing.len().div_ceil(20).max(1)) {
                eprintln!("{finished} of {} runs", missing.len());
            }
        }
        Ok(())
    };
    let cores = available_parallelism().map_or(1, Into::into);
    scope(|scope| {
        let workers: Vec<_> = (0..cores).map(|_| scope.spawn(worker)).collect();
        workers.into_iter().try_for_each(|worker| worker.join().expect("runs do not panic"))
    })?;
    let (mut known, _) = state.into_inner().map_err(|_| anyhow::anyhow!("a run failed"))?;
    let mut of_seed = |task: &Task, seed| known.remove(&named(task, seed)).context("a run has no result");
    tasks.iter().map(|task| (1..=size.seeds).map(|seed| of_seed(task, seed)).collect()).collect()
}

/// Loads the results of an interrupted run of the same command. The last line may be incomplete.
fn load<T: DeserializeOwned>(size: &Size) -> anyhow::Result<HashMap<String, T>> {
    let Ok(text) = fs::read_to_string(&size.progress) else { return Ok(HashMap::new()) };
    let mut lines = text.split_inclusive('\n').filter(|line| line.ends_with('\n'));
    let subject = lines.next().and_then(|line| serde_json::from_str::<Subject>(line).ok());
    if subject != Some(Subject::of(size)) {
        eprintln!("{} is of another command or version: starting again", size.progress.display());
        return finish(size).map(|()| HashMap::new());
    }
    let wrong = || format!("{} is damaged: remove it to start again", size.progress.display());
    let done = lines.map(|line| {
        let Done { run, result } = serde_json::from_str(line).with_context(wrong)?;
        Ok((run, result))
    });
    done.collect()
}

/// Opens the progress file for more lines, after the last complete one.
fn open(size: &Size) -> anyhow::Result<File> {
    let path: &Path = &size.progress;
    fs::create_dir_all(path.parent().unwrap_or(Path::new(".")))?;
    let text = fs::read(path).unwrap_or_default();
    let complete = text.iter().rposition(|byte| *byte == b'\n').map_or(0, |place| place + 1);
    let open = OpenOptions::new().create(true).append(true).open(path);
    let mut file = open.with_context(|| format!("cannot write {}", path.display()))?;
    file.set_len(complete as u64)?;
    if complete == 0 {
        file.write_all((serde_json::to_string(&Subject::of(size))? + "\n").as_bytes())?;
    }
    Ok(file)
}

/// Removes the progress file: the experiment is complete.
///
/// # Errors
/// If the file is there and cannot be removed.
pub(super) fn finish(size: &Size) -> anyhow::Result<()> {
    match fs::remove_file(&size.progress) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("cannot remove {}", size.progress.display()))
        }
        _ => Ok(()),
    }
}
