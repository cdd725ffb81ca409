//! The contribution of other keys to the cells of a key, and the interval that follows.
//!
//! Let S be the peers of a key, n of them, and X_r the peers of other keys in its cell of row r. The cell counts the
//! union of both.
//!
//! **Upper bound.** Peers choose registers by their own digests, alike in all cells, so each row's registers are at
//! least those that S alone would have raised, and an estimate only grows with registers. So the minimum row is at
//! least the estimate of S alone, and n is above its upper end with probability at most 0.005.
//!
//! **Lower bound.** A key falls on each cell of a row with the same probability, independent of its contents. So with
//! probability at most g, |X_r| is read as more than x_r, where x_r is exceeded by a share g of the cells of the row.
//! The row measures its own noise, and one large scanner does not blur the rest as it would in Markov's inequality
//! over the mean. (The key itself in one of the cells can only raise x_r.) Rows choose cells independently: with d
//! rows, all fail with probability g^d. In a row that does not fail, n is at least the union's lower end minus the
//! upper end of x_r. So n is at least the minimum of these differences. We use g = 1/8.
//!
//! Each end of a distinct counter's interval fails with probability 0.005, and 2 d + 1 of them are used, hence
//!
//! > confidence = 1 - 8^-d - 0.005 (2 d + 1),
//!
//! 0.963 for three rows. This is the probability for one key that was not chosen by its estimate. Among the keys
//! above a threshold, keys lifted there by their error are more frequent.

use super::cells::Cells;
use crate::digest::Digest;
use crate::estimate::Estimate;
use crate::hyper_log_log::estimator::{CONFIDENCE, Ratio};
use crate::shape::Shape;

/// 1/g: one in this many cells of each row may have more peers than the row's noise.
const INVERSE_FAILURE_SHARE: usize = 8;

/// The noise of the rows at one moment; measured once for many estimates.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Collisions {
    /// x_r of each row.
    peers: [f64; Shape::MAX_ROWS],
    ratio: Ratio,
    confidence: f64,
}

impl Collisions {
    pub(super) fn of(cells: &Cells) -> Collisions {
        let (rows, width) = (cells.shape().rows(), cells.shape().width());
        let mut peers = [0.0; Shape::MAX_ROWS];
        for (row, peers) in peers[..rows].iter_mut().enumerate() {
            let mut in_cells: Vec<f64> = cells.row(row).collect();
            let fewer = width - 1 - width / INVERSE_FAILURE_SHARE;
            *peers = *in_cells.select_nth_unstable_by(fewer, f64::total_cmp).1;
        }
        let all_fail = (INVERSE_FAILURE_SHARE as f64).powi(-(rows as i32));
        let ends_fail = (1.0 - CONFIDENCE) / 2.0 * (2 * rows + 1) as f64;
        Collisions { peers, ratio: Ratio::of(cells.precision()), confidence: 1.0 - all_fail - ends_fail }
    }

    /// Returns the number of peers that other keys add to a cell of `row`; seven cells of eight have at most that.
    pub fn peers(&self, row: usize) -> f64 {
        self.peers[row]
    }

    /// Estimates a key's number of peers: the minimum of its cells, with its interval.
    pub(super) fn estimate(&self, cells: &Cells, key: Digest) -> Estimate {
        let (mut value, mut lower) = (f64::INFINITY, f64::INFINITY);
        for (row, &others) in self.peers[..cells.shape().rows()].iter().enumerate() {
            let peers = cells.peers(row, key);
            value = value.min(peers);
            lower = lower.min(self.ratio.lower(peers) - self.ratio.upper(others));
        }
        if value == 0.0 {
            return Estimate::exact(0.0);
        }
        Estimate::within(value, lower, self.ratio.upper(value), self.confidence).at_least_zero()
    }
}
