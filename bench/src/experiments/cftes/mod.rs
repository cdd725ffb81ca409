//! The studies of isolation of the heavy-hitter dissertation (Maji, University of Virginia 2018, section 3.5.2 and chapter 4):
//! one module per figure.
//!
//! | module | figure |
//! |---|---|
//! | [`burstiness`] | 4.3: burstiness of the background traffic |
//! | [`loss_by_rate`] | 4.5: loss by the rate of a cheetah flow, and the threshold that follows |
//! | [`loss_by_lambda`] | 4.6: loss by the number of bursts per second |
//! | [`throughput`] | 4.7: throughput in a scavenger queue |
//! | [`switch_buffer`] | table 3.3, figures 3.9 to 3.12: TCP buffer and switch buffer (section 3.5.2) |
//! | [`closed_loop`] | none: 14 days with a threshold that follows the traffic |
//!
//! [`model`] has the three models that are compared, [`runs`] their runs on all cores, with results that outlive an
//! interruption, [`neighbours`] whether the runs are long enough.

pub(super) mod burstiness;
pub(super) mod closed_loop;
pub(super) mod loss_by_lambda;
pub(super) mod loss_by_rate;
mod model;
mod neighbours;
mod runs;
pub(super) mod switch_buffer;
pub(super) mod throughput;

#[cfg(test)]
mod tests;

use std::path::PathBuf;

use thalweg_plot::axis::Scale;
use thalweg_plot::panel::Panel;
use thalweg_wire::{BitRate, Nanos};

use super::flexplane::Study;
use crate::statistics::{half_interval, mean};
use model::Model;

/// The rate of the port: C.
const PORT: BitRate = BitRate(1_000_000_000);
/// The mean rate of the background traffic.
const BACKGROUND: BitRate = BitRate(200_000_000);
/// The rate of the flow where it does not vary.
const FLOW: BitRate = BitRate(700_000_000);
/// Idle round-trip times of the flow.
const ROUND_TRIPS: [Nanos; 2] = [Nanos::from_millis(10), Nanos::from_millis(100)];
/// Bursts per second: those of the published case file, and 600.
const LAMBDAS: [f64; 17] =
    [6.1, 6.3, 6.7, 7.4, 8.4, 10.0, 12.0, 13.0, 15.0, 20.0, 30.0, 40.0, 50.0, 60.0, 80.0, 100.0, 600.0];
/// The windows of burstiness: T1, in picoseconds.
const WINDOW_PS: u64 = 100_000_000_000;

/// The settings of all runs of an experiment.
#[derive(Clone, Debug)]
struct Size {
    seeds: u64,
    seconds: f64,
    /// The command, by which results of an interrupted run are recognised.
    command: String,
    /// The file with the results so far.
    progress: PathBuf,
}

impl Size {
    /// The size of a study, with this many emulated seconds per run unless it says otherwise.
    fn of(study: &Study<'_>, seconds: f64) -> Size {
        Size {
            seeds: study.seeds,
            seconds: study.seconds.unwrap_or(seconds),
            command: study.command.to_owned(),
            progress: study.plot.with_file_name("progress.jsonl"),
        }
    }

    fn until_ps(&self) -> u64 {
        (self.seconds * 1e12) as u64
    }

    /// The sentence on every page about the runs.
    fn describe(&self) -> String {
        let intervals = "Means over all runs with 95 % confidence intervals.";
        match (self.seeds, self.seconds) {
            (seeds, seconds) if seeds < 60 || seconds < 100.0 => format!(
                "**A small size: {seeds} runs of {seconds} s per value**, instead of at least 60 of 100 s; rare losses and the checks \
                 that depend on them say little. {intervals}"
            ),
            (seeds, seconds) => format!("{seeds} runs of {seconds} s per value. {intervals}"),
        }
    }
}

/// Formats a lambda: `6.1`, `100`.
fn lambda_name(lambda: f64) -> String {
    format!("{lambda}")
}

/// Formats the mean of losses in percent with its interval.
fn loss(sample: &[f64]) -> String {
    let percent: Vec<f64> = sample.iter().map(|loss| 100.0 * loss).collect();
    format!("{} ± {}", significant(mean(&percent)), significant(half_interval(&percent)))
}

/// Formats a number with two significant digits.
fn significant(value: f64) -> String {
    match value {
        0.0 => "0".to_owned(),
        value if !value.is_finite() => "-".to_owned(),
        value => {
            let decimals = (1 - value.abs().log10().floor() as i32).clamp(0, 12) as usize;
            format!("{value:.decimals$}")
        }
    }
}

/// Whether a value is within bounds, both included.
fn within(value: f64, bounds: (f64, f64)) -> bool {
    (bounds.0..=bounds.1).contains(&value)
}

/// Steps in this direction between consecutive values.
fn steps(values: &[f64], is_step: impl Fn(f64, f64) -> bool) -> usize {
    values.windows(2).filter(|pair| is_step(pair[0], pair[1])).count()
}

/// The name of a line in tables: model and round trip.
fn line_name(model: Model, time: usize) -> String {
    format!("{}, {} ms", model.name(), ROUND_TRIPS[time].0 / 1_000_000)
}

/// The losses of background traffic at one round-trip time by model, place and run, with 95 % intervals.
fn loss_panel(time: usize, axis: &str, places: &[(f64, String)], losses: &[Vec<Vec<f64>>]) -> Panel {
    let percents =
        |of_model: &Vec<Vec<f64>>| of_model.iter().map(|runs| 100.0 * mean(runs)).collect::<Vec<f64>>();
    let interval = |runs: &Vec<f64>| {
        let (mean, half) = (100.0 * mean(runs), 100.0 * half_interval(runs));
        (mean - half, mean + half)
    };
    let lines: Vec<Vec<f64>> = losses.iter().map(percents).collect();
    let intervals: Vec<Vec<(f64, f64)>> =
        losses.iter().map(|of_model| of_model.iter().map(interval).collect()).collect();
    let title = format!("loss of background traffic (%), {} ms", ROUND_TRIPS[time].0 / 1_000_000);
    Panel::over_numbers(title, axis, places, Scale::LOGARITHMIC, &lines).with_intervals(&intervals)
}
