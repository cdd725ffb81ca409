//! Sketches written the way the papers put them: what ours are measured against.
//!
//! One independent hash (XXH64 under a seed of its own) for each row, and one more where a row has a sign; a
//! remainder by the width to find the counter; one packet at a time; the heap asked for every packet. Nothing
//! here is slow on purpose, and nothing is made fast.

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

/// Most rows of a sketch, so that an estimate needs no memory from the heap.
pub const MAX_ROWS: usize = 32;

/// A summary of packet counts, fed one packet at a time.
pub trait Sketch {
    /// Counts a packet. Whether a counter changed: a sampled sketch passes most packets over.
    fn update(&mut self, key: &Key) -> bool;

    /// Packets of a flow, as far as the sketch can tell.
    fn estimate(&self, key: &Key) -> f64;

    /// The largest flows that it noted and their estimates, in no order; `None` if it notes no flow.
    fn top(&self) -> Option<Vec<(Key, f64)>> {
        None
    }
}

/// Rows and columns of a sketch, and the hashes that lead from a key to a column.
#[derive(Clone, Debug)]
struct Shape {
    width: u64,
    /// One for each row, and as many again for signs.
    seeds: Vec<(u64, u64)>,
}

impl Shape {
    /// Hashes of different `family` are independent.
    fn new(rows: usize, width: usize, family: u64) -> Shape {
        assert!((1..=MAX_ROWS).contains(&rows) && width > 0, "a sketch has rows, not too many, and columns");
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

    /// Where the counter of `key` in `row` lies.
    fn place(&self, row: usize, key: &Key) -> usize {
        row * self.width as usize + (xxh64(key, self.seeds[row].0) % self.width) as usize
    }

    /// 1 or -1, as likely.
    fn sign(&self, row: usize, key: &Key) -> i32 {
        if xxh64(key, self.seeds[row].1) & 1 == 0 { 1 } else { -1 }
    }
}

/// The middle of at most [`MAX_ROWS`] values, or the mean of the middle two.
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
