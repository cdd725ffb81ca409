//! Sweeps: one experiment with all combinations of some values, several at a time.
//!
//! Every run equals that of a single experiment with these values, to the byte. Runs share nothing.

use std::fmt;
use std::str::FromStr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use thiserror::Error;

use super::execute::{Progress, run};
use super::experiment::{Experiment, ExperimentError};
use super::files::Output;
use super::plan::Plan;
use super::results::{Results, SweepResults, SweepRun};
use super::run::RunError;

/// The largest number of runs. More are a typing error.
pub const MAX_RUNS: usize = 100_000;

/// The default step of a range.
const STEP: f64 = 0.1;

/// A key and its values: `scheme=droptail,dctcp`, `load=0.1..0.8`, `threshold=20..100:20`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Axis {
    /// The path of the key as typed.
    pub key: String,
    /// Values as text.
    pub values: Vec<String>,
}

/// An invalid axis.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum ParseAxisError {
    /// Key or values are missing.
    #[error("expected KEY=VALUE,VALUE,..., KEY=FIRST..LAST or KEY=FIRST..LAST:STEP")]
    Form,
    /// An invalid range.
    #[error("invalid range \"{range}\": {reason}, expected FIRST..LAST or FIRST..LAST:STEP")]
    Range {
        /// The range.
        range: String,
        /// What is wrong.
        reason: &'static str,
    },
}

/// Why a sweep is invalid.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SweepError {
    /// One of its experiments is invalid.
    #[error("{}{error}", with(values, error))]
    Experiment {
        /// Its values, as `key=value`.
        values: Vec<String>,
        /// The mistake.
        error: Box<ExperimentError>,
    },
    /// A key is swept twice.
    #[error("\"{0}\" is swept twice: expected one --sweep {0}=VALUE,VALUE,...")]
    Twice(String),
    /// Too many combinations.
    #[error("{0} runs: expected at most {MAX_RUNS}")]
    TooMany(usize),
}

/// Names the run of an error, unless the error does.
fn with(values: &[String], error: &ExperimentError) -> String {
    match error {
        ExperimentError::Override { .. } => String::new(),
        _ => format!("with {}:\n", values.join(", ")),
    }
}

impl FromStr for Axis {
    type Err = ParseAxisError;

    fn from_str(text: &str) -> Result<Axis, ParseAxisError> {
        let (key, values) = text.split_once('=').ok_or(ParseAxisError::Form)?;
        let mut axis = Axis { key: key.trim().to_owned(), values: Vec::new() };
        for value in values.split(',').map(str::trim) {
            match value.split_once("..") {
                // A range of endpoints is one value.
                Some((first, _)) if first.parse::<f64>().is_ok() => {
                    let invalid = |reason| ParseAxisError::Range { range: value.to_owned(), reason };
                    axis.values.extend(range(value).map_err(invalid)?);
                }
                Some((first, _)) if first.starts_with(|digit: char| digit.is_ascii_digit()) => {
                    let reason = "a range has no units (list the values instead: 1ms,10ms)";
                    return Err(ParseAxisError::Range { range: value.to_owned(), reason });
                }
                _ if value.is_empty() => return Err(ParseAxisError::Form),
                _ => axis.values.push(value.to_owned()),
            }
        }
        if axis.key.is_empty() { Err(ParseAxisError::Form) } else { Ok(axis) }
    }
}

impl fmt::Display for Axis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.key, self.values.join(","))
    }
}

/// The values of `FIRST..LAST` or `FIRST..LAST:STEP`, including both ends, with as many decimals as written.
///
/// # Errors
/// Returns what is wrong with the range.
fn range(text: &str) -> Result<Vec<String>, &'static str> {
    let (first, rest) = text.split_once("..").ok_or("\"..\" is missing")?;
    let (last, step) = rest.split_once(':').unwrap_or((rest, ""));
    let written = [first, last, step].map(|text| text.split_once('.').map_or(0, |(_, part)| part.len()));
    let decimals = written.into_iter().max().unwrap_or(0);
    let (first, last) = (number(first)?, number(last)?);
    let (step, decimals) = match step.trim() {
        "" if decimals == 0 && (first..=last).contains(&(first + 1.0)) => (1.0, 0),
        "" => (STEP, decimals.max(1)),
        step => (number(step)?, decimals),
    };
    let count = ((last - first) / step + 1e-9).floor();
    match () {
        () if first > last => Err("the first number is above the last"),
        () if step <= 0.0 => Err("the step is not above 0"),
        () if count >= MAX_RUNS as f64 => Err("too many values"),
        () if decimals > 12 => Err("more than 12 decimals"),
        () => Ok((0..=count as usize)
            .map(|index| format!("{:.decimals$}", first + step * index as f64))
            .collect()),
    }
}

fn number(text: &str) -> Result<f64, &'static str> {
    let number = text.trim().parse().ok().filter(|number: &f64| number.is_finite());
    number.ok_or("its parts are not all numbers")
}

/// The runs of a sweep. The last axis changes fastest.
#[derive(Clone, Debug)]
pub struct Sweep {
    experiment: Experiment,
    axes: Vec<Axis>,
    combinations: Vec<Vec<String>>,
}

impl Sweep {
    /// Checks all combinations.
    ///
    /// # Errors
    /// If a key is swept twice, there are too many runs, or one of them is invalid.
    pub fn new(experiment: &Experiment, axes: Vec<Axis>) -> Result<Sweep, SweepError> {
        let is_repeated =
            |(index, axis): &(usize, &Axis)| axes[..*index].iter().any(|other| other.key == axis.key);
        if let Some((_, axis)) = axes.iter().enumerate().find(is_repeated) {
            return Err(SweepError::Twice(axis.key.clone()));
        }
        let runs = axes.iter().map(|axis| axis.values.len()).fold(1, usize::saturating_mul);
        if runs > MAX_RUNS {
            return Err(SweepError::TooMany(runs));
        }
        let combinations = axes.iter().fold(vec![Vec::new()], |combinations: Vec<Vec<String>>, axis| {
            let longer = |combination: &Vec<String>, value: &String| {
                [&combination[..], std::slice::from_ref(value)].concat()
            };
            combinations
                .iter()
                .flat_map(|combination| axis.values.iter().map(move |value| longer(combination, value)))
                .collect()
        });
        let sweep = Sweep { experiment: experiment.clone(), axes, combinations };
        for run in 0..sweep.runs() {
            sweep.plan(run).map_err(|error| SweepError::Experiment {
                values: sweep.describe(run),
                error: Box::new(error),
            })?;
        }
        Ok(sweep)
    }

    /// The name of the experiment.
    pub fn experiment(&self) -> String {
        // All plans have been checked.
        self.plan(0).map_or_else(|_| String::new(), |plan| plan.name)
    }

    /// The number of runs.
    pub fn runs(&self) -> usize {
        self.combinations.len()
    }

    /// The values of a run, as `key=value`.
    pub fn describe(&self, run: usize) -> Vec<String> {
        let pairs = self.axes.iter().zip(&self.combinations[run]);
        pairs.map(|(axis, value)| format!("{}={value}", axis.key)).collect()
    }

    /// The directory of a run: its values, in characters that are valid in all file systems.
    pub fn folder(&self, run: usize) -> String {
        let harmless = |c: char| if c.is_ascii_alphanumeric() || "._-=".contains(c) { c } else { '_' };
        let name: Vec<String> =
            self.describe(run).iter().map(|told| told.chars().map(harmless).collect()).collect();
        name.join(",").chars().take(200).collect()
    }

    fn plan(&self, run: usize) -> Result<Plan, ExperimentError> {
        Plan::new(&self.changed(run)?)
    }

    /// The experiment of a run.
    fn changed(&self, run: usize) -> Result<Experiment, ExperimentError> {
        let mut experiment = self.experiment.clone();
        let mut changes: Vec<(&Axis, &String)> = self.axes.iter().zip(&self.combinations[run]).collect();
        // Selectors first: they determine the meaning of other keys.
        changes.sort_by_key(|(axis, _)| !experiment.is_selector(&axis.key));
        for (axis, value) in changes {
            experiment.set(&axis.key, value, &format!("--sweep {}={value}", axis.key))?;
        }
        Ok(experiment)
    }

    /// Runs all combinations on this many threads: as many runs at a time, each on one thread. If there are fewer runs, each uses an equal
    /// part of the threads where it can ([`Plan::can_use_threads`]). Calls `report` with the progress of each run, and `take` with its
    /// results. `take` returns what to keep. With an `output`, results have rows, and each run may write to its own
    /// directory below its folder.
    ///
    /// # Errors
    /// The first error of a run or of `take`. Then the other runs stop.
    pub fn run<E: From<RunError> + From<ExperimentError> + Send>(
        &self,
        threads: usize,
        output: Option<Output<'_>>,
        stop: &AtomicBool,
        report: &(dyn Fn(usize, Progress) + Sync),
        take: &(dyn Fn(usize, Results) -> Result<Results, E> + Sync),
    ) -> Result<SweepResults, E> {
        let at_once = threads.clamp(1, self.runs().max(1));
        let next = AtomicUsize::new(0);
        let failed = AtomicBool::new(false);
        let done: Mutex<Vec<Option<Result<Results, E>>>> =
            Mutex::new((0..self.runs()).map(|_| None).collect());
        let work = || {
            while !stop.load(Ordering::Relaxed) && !failed.load(Ordering::Relaxed) {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= self.runs() {
                    break;
                }
                let one = || -> Result<Results, E> {
                    let mut plan = self.plan(number)?;
                    plan.threads = (threads / at_once).max(1);
                    let folder = output.map(|output| output.folder.join(self.folder(number)));
                    let own =
                        output.zip(folder.as_deref()).map(|(output, folder)| Output { folder, ..output });
                    let results = run(plan, own, stop, &mut |progress| report(number, progress))?;
                    take(number, results)
                };
                let result = one();
                failed.fetch_or(result.is_err(), Ordering::Relaxed);
                done.lock().expect("no run panics while it holds this")[number] = Some(result);
            }
        };
        std::thread::scope(|scope| {
            for _ in 0..at_once {
                scope.spawn(work);
            }
        });
        let done = done.into_inner().expect("no run panics while it holds this");
        let mut runs = Vec::new();
        for (number, result) in done.into_iter().enumerate() {
            // Runs that did not start before the sweep was stopped have no results.
            let Some(result) = result else { continue };
            runs.push(SweepRun {
                values: self.combinations[number].clone(),
                folder: self.folder(number),
                results: result?,
            });
        }
        let keys = self.axes.iter().map(|axis| axis.key.clone()).collect();
        let name = runs.first().map_or_else(String::new, |run| run.results.experiment.clone());
        Ok(SweepResults { experiment: name, keys, runs })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(text: &str) -> Vec<String> {
        text.parse::<Axis>().unwrap().values
    }

    #[test]
    fn ranges_include_both_ends() {
        assert_eq!(values("load=0.1..0.4"), ["0.1", "0.2", "0.3", "0.4"]);
        assert_eq!(values("load=0.7..0.8"), ["0.7", "0.8"]);
        assert_eq!(values("threshold=20..100:40"), ["20", "60", "100"]);
        assert_eq!(values("gamma=0.90..0.95:0.05,1"), ["0.90", "0.95", "1"]);
        assert_eq!(values("scheme=droptail, dctcp"), ["droptail", "dctcp"]);
        assert_eq!(values("clients=h0..h3"), ["h0..h3"]);
        for text in [
            "load",
            "load=",
            "=1",
            "load=0.1,",
            "load=0.8..0.1",
            "load=0..1:0",
            "load=0..1e9:1e-9",
            "load=0..nan",
        ] {
            assert!(text.parse::<Axis>().is_err(), "{text}");
        }
    }

    #[test]
    fn an_invalid_range_is_explained() {
        for (text, reason) in [
            ("100..10", "the first number is above the last"),
            ("1..5:-1", "the step is not above 0"),
            ("1..5ms", "its parts are not all numbers"),
            ("0..1e9", "too many values"),
            ("1ms..10ms", "a range has no units (list the values instead: 1ms,10ms)"),
        ] {
            let error = format!("load={text}").parse::<Axis>().unwrap_err().to_string();
            let expected =
                format!("invalid range \"{text}\": {reason}, expected FIRST..LAST or FIRST..LAST:STEP");
            assert_eq!(error, expected);
        }
    }
}
