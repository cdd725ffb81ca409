//! Plots of a run as SVG.
//!
//! | file | plot |
//! |---|---|
//! | `queues.svg` | queue lengths of the busiest ports over time |
//! | `throughput.svg` | rates of the busiest links over time |
//! | `flows.svg` | distributions of completion times and slowdowns, by size class |
//! | `cwnd.svg`, `rtt.svg` | windows and round-trip times of the flows that sent most, with `[flow_series]` |
//! | `queue_series.svg` | mean queues of the busiest ports and of their classes, with `[queue_series]` |
//! | `sweep-slowdown.svg` | slowdowns over the swept key |
//! | `sweep-throughput.svg` | throughput and drops over the swept key |
//! | `sweep-queues.svg` | the longest queue over the swept key |
//!
//! Colours are distinguishable without colour vision. Lines are thinned to pixel columns and keep their extremes, so
//! files stay small for any run. Equal results give equal bytes.

mod flows;
mod grid;
mod queue_series;
mod queues;
mod series;
mod sweep;
mod throughput;

#[cfg(test)]
mod tests;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use thalweg_plot::strips;
use thalweg_wire::Nanos;
use thiserror::Error;

use super::files::Row;
use super::files::read::TableError;
use super::results::series_rows::{ClassSeriesRow, FlowSeriesRow, QueueSeriesRow};
use super::results::{QueueRow, Results, SweepResults};

/// Why a plot was not drawn.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum DrawError {
    /// A time series cannot be read.
    #[error("cannot draw a time series")]
    Table(#[from] TableError),
    /// The directory cannot be created.
    #[error("cannot create the directory {}", folder.display())]
    Folder {
        /// The directory.
        folder: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// A file cannot be written.
    #[error("cannot write {}", path.display())]
    File {
        /// Its path.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The plot cannot be drawn.
    #[error("cannot draw {}", path.display())]
    Plot {
        /// Its path.
        path: PathBuf,
        /// The plotting library's error.
        source: thalweg_plot::DrawError,
    },
}

/// Draws the plots of a run into `folder`, which is created if missing. Time series are read from the tables there. Returns the
/// paths of the files.
///
/// # Errors
/// If the directory cannot be created, a file cannot be written, or a time series cannot be read.
pub fn draw(folder: &Path, results: &Results) -> Result<Vec<PathBuf>, DrawError> {
    let times = Times { duration_ns: results.duration_ns, warm_up_ns: results.warm_up_ns };
    let Results { experiment, topology, scheme, transport, .. } = results;
    let title = format!("{experiment}, {topology}, scheme {scheme}, transport {transport}");
    let mut plots = vec![
        ("queues.svg", queues::draw(&title, &results.queues, times)),
        ("throughput.svg", throughput::draw(&title, &results.links, times)),
        ("flows.svg", flows::draw(&title, &results.flows, times)),
    ];
    let has = |table| results.summary.series.iter().any(|series| series.table == table);
    if has(FlowSeriesRow::FILE) {
        plots.extend(series::flows(folder, &title, times)?);
    }
    if has(QueueSeriesRow::FILE) {
        plots.push(queue_series::draw(folder, &title, times, has(ClassSeriesRow::FILE))?);
    }
    save_all(folder, plots)
}

/// Draws queue lengths over a `duration` into `folder`, which is created if missing. Returns the path of the file.
///
/// # Errors
/// If the directory cannot be created or the file cannot be written.
pub fn draw_queues(
    folder: &Path,
    title: &str,
    rows: &[QueueRow],
    duration: Nanos,
) -> Result<PathBuf, DrawError> {
    let times = Times { duration_ns: duration.0, warm_up_ns: 0 };
    let mut paths = save_all(folder, vec![("queues.svg", queues::draw(title, rows, times))])?;
    Ok(paths.remove(0))
}

/// Draws the plots of a sweep into `folder`, which is created if missing. Returns the paths of the files. Metrics that
/// no run has, such as slowdowns without flows, are omitted.
///
/// # Errors
/// If the directory cannot be created or a file cannot be written.
pub fn draw_sweep(folder: &Path, results: &SweepResults) -> Result<Vec<PathBuf>, DrawError> {
    save_all(folder, sweep::draw(results))
}

fn save_all(
    folder: &Path,
    plots: Vec<(&'static str, Result<String, thalweg_plot::DrawError>)>,
) -> Result<Vec<PathBuf>, DrawError> {
    fs::create_dir_all(folder).map_err(|source| DrawError::Folder { folder: folder.to_owned(), source })?;
    let save = |(name, svg): (&str, Result<String, thalweg_plot::DrawError>)| {
        let path = folder.join(name);
        let svg = svg.map_err(|source| DrawError::Plot { path: path.clone(), source })?;
        fs::write(&path, svg).map_err(|source| DrawError::File { path: path.clone(), source })?;
        Ok(path)
    };
    plots.into_iter().map(save).collect()
}

/// The part of a run that a plot shows.
#[derive(Clone, Copy, Debug)]
struct Times {
    duration_ns: u64,
    warm_up_ns: u64,
}

impl Times {
    /// The meaning of the shading, if there is any.
    fn shading(self) -> &'static str {
        if self.warm_up_ns > 0 { "; numbers are without the warm-up, which is shaded" } else { "" }
    }
}

/// The first few places by `weight`, largest first; equal ones keep their order.
fn busiest<T>(mut places: Vec<T>, weight: impl Fn(&T) -> f64) -> Vec<T> {
    places.sort_by(|left, right| weight(right).total_cmp(&weight(left)));
    places.truncate(strips::MOST);
    places
}
