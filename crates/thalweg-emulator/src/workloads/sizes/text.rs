//! Distributions as text: `bytes,probability` on each line, with cumulative probabilities from 0 to 1.
//!
//! Empty lines, comments after `#`, and header lines before the first point are ignored. The published distributions
//! are files in this format.

use thiserror::Error;

use super::distribution::{MAX_POINTS, Point, PointsError, SizeDistribution};

/// The header.
const HEADER: &str = "bytes,probability";

/// Why a text is invalid.
#[derive(Clone, Debug, Error, PartialEq)]
#[non_exhaustive]
pub enum SizesError {
    /// A line is not a point.
    #[error("line {line}: `{text}`: expected a size in bytes and a cumulative probability, as in `1460,0.5`")]
    Line {
        /// Line number, from 1.
        line: usize,
        /// Its text, cut to 60 characters.
        text: String,
    },
    /// A point is invalid.
    #[error("line {line}: {error}")]
    Point {
        /// Line number, from 1.
        line: usize,
        /// The mistake.
        error: PointsError,
    },
}

impl SizeDistribution {
    /// Reads a distribution.
    ///
    /// # Errors
    /// The first invalid line.
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

/// The line of an error: that of its point, or the last.
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
