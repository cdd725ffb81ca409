//! Configuration of measurement tasks.

use std::fmt;
use std::str::FromStr;

use thalweg_sketch::{LineRate, Mode, Probability, Target};
use thalweg_wire::{Bytes, Nanos};
use thiserror::Error;

use super::kinds::TaskSpec;

/// Configuration of measurement tasks.
#[derive(Clone, Debug, PartialEq)]
pub struct TasksOptions {
    /// The tasks; at least one, without duplicates.
    pub tasks: Vec<TaskSpec>,
    /// The memory of all sketches of all workers and windows together. Default 2 MiB.
    pub memory: Bytes,
    /// The length of a window. At least [`super::Plan::SHORTEST_WINDOW`]. Windows begin at multiples of it since
    /// 1970. Default 10 s.
    pub window: Nanos,
    /// The number of completed windows to keep; at least one. Default 3.
    pub kept_windows: usize,
    /// How packets are sampled. Default: all are counted.
    pub sampling: Sampling,
    /// The seed of hashes and samplers. Equal seeds give equal results, and states that can be merged.
    pub seed: u64,
    /// The number of monitors that count concurrently; at least one. Default 1.
    pub workers: usize,
}

impl Default for TasksOptions {
    fn default() -> TasksOptions {
        TasksOptions {
            tasks: Vec::new(),
            memory: Bytes(2 << 20),
            window: Nanos::from_secs(10),
            kept_windows: 3,
            sampling: Sampling::default(),
            seed: 0,
            workers: 1,
        }
    }
}

/// How updates of linear sketches are sampled. `distinct` and `spread` always process every packet, because their
/// sketches cannot count a key that was not sampled.
///
/// Written `1/16`, `line-rate`, `correct`.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Sampling {
    /// Each row of a sketch counts a packet with this probability; 1 for all.
    Fixed(Probability),
    /// AlwaysLineRate: the packet rate determines the probability. The tasks share [`LineRate`]'s time budget.
    LineRate,
    /// AlwaysCorrect: counts all packets until sampling keeps the error.
    Correct,
}

/// All packets are counted.
impl Default for Sampling {
    fn default() -> Sampling {
        Sampling::Fixed(Probability::ONE)
    }
}

impl Sampling {
    /// The smallest probability that may be used.
    pub(super) fn min_probability(self) -> Probability {
        match self {
            Sampling::Fixed(probability) => probability,
            Sampling::LineRate => LineRate::default().min_probability,
            Sampling::Correct => Target::for_width(1).min_probability,
        }
    }

    /// The mode of one of `sketches` sketches of this `width`.
    pub(super) fn mode(self, width: usize, sketches: usize) -> Mode {
        match self {
            Sampling::Fixed(probability) => Mode::Fixed(probability),
            Sampling::LineRate => {
                let all = LineRate::default();
                Mode::AlwaysLineRate(LineRate { share: all.share / sketches.max(1) as f64, ..all })
            }
            Sampling::Correct => Mode::AlwaysCorrect(Target::for_width(width)),
        }
    }
}

/// Formats as it is parsed.
impl fmt::Display for Sampling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Sampling::Fixed(probability) => probability.fmt(f),
            Sampling::LineRate => f.pad("line-rate"),
            Sampling::Correct => f.pad("correct"),
        }
    }
}

/// Invalid text for a sampling mode.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("invalid sampling `{text}`: expected 1, 1/2, 1/4, ... 1/1024, line-rate or correct")]
pub struct ParseSamplingError {
    /// The text.
    pub text: String,
}

impl FromStr for Sampling {
    type Err = ParseSamplingError;

    fn from_str(text: &str) -> Result<Sampling, ParseSamplingError> {
        match text.trim() {
            "line-rate" => Ok(Sampling::LineRate),
            "correct" => Ok(Sampling::Correct),
            probability => probability
                .parse()
                .map(Sampling::Fixed)
                .map_err(|_| ParseSamplingError { text: text.to_owned() }),
        }
    }
}
