//! What a run leaves in its folder to look at: plots as SVG.
//!
//! | file | what it shows |
//! |---|---|
//! | `queues.svg` | packets waiting at the busiest ports over time |
//! | `throughput.svg` | what the busiest links carried over time |
//! | `flows.svg` | distributions of completion times and slowdowns, by size class |
//! | `sweep-slowdown.svg` | slowdowns against the key that was swept |
//! | `sweep-throughput.svg` | throughput and drops against it |
//! | `sweep-queues.svg` | the longest queue against it |
//!
//! Colours are told apart without colour vision, too. Lines are thinned to the columns of pixels, extremes kept, so
//! that a file stays small however long the run. Equal results give equal bytes.

mod flows;
mod grid;
mod queues;
mod sweep;
mod throughput;

#[cfg(test)]
mod tests;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use thalweg_plot::strips;
use thiserror::Error;

use super::results::{Results, SweepResults};

/// Why a plot was not drawn.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum DrawError {
    /// The folder cannot be made.
    #[error("cannot make the folder {}", folder.display())]
    Folder {
        /// Of the results.
        folder: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// A file cannot be written.
    #[error("cannot write {}", path.display())]
    File {
        /// Its path.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// The plot cannot be drawn.
    #[error("cannot draw {}", path.display())]
    Plot {
        /// Its path.
        path: PathBuf,
        /// What the plotting library says.
        source: thalweg_plot::DrawError,
    },
}

/// Draws the plots of a run into `folder`, which is made if it is not there, and returns the paths of the files.
///
/// # Errors
/// If the folder cannot be made or a file cannot be written.
pub fn draw(folder: &Path, results: &Results) -> Result<Vec<PathBuf>, DrawError> {
    let times = Times { duration_ns: results.duration_ns, warm_up_ns: results.warm_up_ns };
    let Results { experiment, topology, scheme, transport, .. } = results;
    let title = format!("{experiment}, {topology}, scheme {scheme}, transport {transport}");
    save_all(
        folder,
        vec![
            ("queues.svg", queues::draw(&title, &results.queues, times)),
            ("throughput.svg", throughput::draw(&title, &results.links, times)),
            ("flows.svg", flows::draw(&title, &results.flows, times)),
        ],
    )
}

/// Draws the plots that compare the runs of a sweep into `folder`, which is made if it is not there, and returns the
/// paths of the files. Nothing is drawn of what no run has, such as slowdowns where there are no flows.
///
/// # Errors
/// If the folder cannot be made or a file cannot be written.
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

/// What part of a run a plot shows.
#[derive(Clone, Copy, Debug)]
struct Times {
    duration_ns: u64,
    warm_up_ns: u64,
}

impl Times {
    /// What the shading means, if there is any.
    fn shading(self) -> &'static str {
        if self.warm_up_ns > 0 { "; numbers are without the warm-up, which is shaded" } else { "" }
    }
}

/// The first few by `weight`, the largest first; among equals in the order that they come in.
fn busiest<T>(mut places: Vec<T>, weight: impl Fn(&T) -> f64) -> Vec<T> {
    places.sort_by(|left, right| weight(right).total_cmp(&weight(left)));
    places.truncate(strips::MOST);
    places
}
