//! Sketches as in the papers: the reference for ours.
//!
//! One independent hash (XXH64 with its own seed) per row, and one more for signs; the counter is the remainder by the
//! width; one packet at a time; the heap is checked for every packet. The code is neither optimised nor deliberately
//! slow.

mod count_min;
mod count_sketch;
mod hyper_log_log;
mod k_ary;
mod nitro;
mod top;
mod univmon;

#[cfg(test)]
mod tests;

pub use count_min::CountMin;
pub use count_sketch::CountSketch;
pub use hyper_log_log::HyperLogLog;
pub use k_ary::KAry;
pub use nitro::NitroCountSketch;
pub use top::{Top, WithTop};
pub use univmon::UnivMon;

use xxhash_rust::xxh64::xxh64;

use super::keys::Key;

/// Maximum number of rows, so that an estimate needs no allocation.
pub const MAX_ROWS: usize = 32;

/// A sketch of packet counts, updated one packet at a time.
pub trait Sketch {
    /// Counts a packet and returns whether a counter changed: a sampled sketch skips most packets.
    fn update(&mut self, key: &Key) -> bool;

    /// Returns the estimated packets of a flow.
    fn estimate(&self, key: &Key) -> f64;

    /// Returns the largest flows with their estimates, in no particular order; `None` without a heap.
    fn top(&self) -> Option<Vec<(Key, f64)>> {
        None
    }
}

/// Rows and columns of a sketch, and the hashes from keys to columns.
#[derive(Clone, Debug)]
struct Shape {
    width: u64,
    /// One hash per row, and as many for signs.
    seeds: Vec<(u64, u64)>,
}

impl Shape {
    /// Hashes of different `family` are independent.
    fn new(rows: usize, width: usize, family: u64) -> Shape {
        assert!((1..=MAX_ROWS).contains(&rows) && width > 0, "a sketch needs 1 to 32 rows, and columns");
        let first = family << 32;
        let seeds = (0..rows as u64).map(|row| (first + 2 * row, first + 2 * row + 1)).collect();
        Shape { width: width as u64, seeds }
    }

    fn rows(&self) -> usize {
        self.seeds.len()
    }

    fn counters(&self) -> usize {
        self.rows() * self.width as usize
    }

    /// Returns the index of the counter of `key` in `row`.
    fn place(&self, row: usize, key: &Key) -> usize {
        row * self.width as usize + (xxh64(key, self.seeds[row].0) % self.width) as usize
    }

    /// Returns 1 or -1 with equal probability.
    fn sign(&self, row: usize, key: &Key) -> i32 {
        if xxh64(key, self.seeds[row].1) & 1 == 0 { 1 } else { -1 }
    }
}

/// Returns the median of at most [`MAX_ROWS`] values.
fn median(values: impl Iterator<Item = f64>) -> f64 {
    let (mut sorted, mut count) = ([0.0; MAX_ROWS], 0);
    for value in values {
        sorted[count] = value;
        count += 1;
    }
    let sorted = &mut sorted[..count];
    sorted.sort_unstable_by(f64::total_cmp);
    let middle = count / 2;
    if count % 2 == 1 { sorted[middle] } else { (sorted[middle - 1] + sorted[middle]) / 2.0 }
}
