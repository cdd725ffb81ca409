//! Distributions as text: `bytes,probability` on each line, probabilities cumulative from 0 to 1.
//!
//! Empty lines and what follows a `#` are passed over; so are rows ahead of the first point that name these two
//! columns. The published distributions are files of this format, and are read by this code.

use thiserror::Error;

use super::distribution::{MAX_POINTS, Point, PointsError, SizeDistribution};

/// The row that names the columns.
const HEADER: &str = "bytes,probability";

/// Why a text is no distribution.
#[derive(Clone, Debug, Error, PartialEq)]
#[non_exhaustive]
pub enum SizesError {
    /// A line that is no point.
    #[error("line {line}: `{text}`: expected a size in bytes and a cumulative probability, as in `1460,0.5`")]
    Line {
        /// Counted from 1.
        line: usize,
        /// What it says, cut to 60 characters.
        text: String,
    },
    /// A point out of place.
    #[error("line {line}: {error}")]
    Point {
        /// Counted from 1.
        line: usize,
        /// What is wrong with it.
        error: PointsError,
    },
}

impl SizeDistribution {
    /// Reads a distribution.
    ///
    /// # Errors
    /// The first line that cannot be read, or that is out of place.
    pub fn from_text(text: &str) -> Result<SizeDistribution, SizesError> {
        let (mut points, mut lines) = (Vec::new(), Vec::new());
        for (number, line) in text.lines().enumerate() {
            let row = line.split('#').next().unwrap_or_default().trim();
            if row.is_empty() || (points.is_empty() && row == HEADER) {
                continue;
            }
            let wrong = || SizesError::Line { line: number + 1, text: row.chars().take(60).collect() };
            points.push(point(row).ok_or_else(wrong)?);
            lines.push(number + 1);
            if points.len() > MAX_POINTS {
                break;
            }
        }
        SizeDistribution::new(points)
            .map_err(|error| SizesError::Point { line: line_of(&error, &lines), error })
    }
}

fn point(row: &str) -> Option<Point> {
    let (bytes, probability) = row.split_once(',')?;
    Some(Point { bytes: bytes.trim().parse().ok()?, probability: probability.trim().parse().ok()? })
}

/// The line that an error is about: that of its point, else the last.
fn line_of(error: &PointsError, lines: &[usize]) -> usize {
    let last = lines.last().copied().unwrap_or(1);
    match *error {
        PointsError::Size { point, .. }
        | PointsError::Probability { point, .. }
        | PointsError::Order { point, .. }
        | PointsError::Last { point, .. } => lines[point],
        PointsError::None | PointsError::TooMany => last,
    }
}
