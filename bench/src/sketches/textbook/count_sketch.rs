//! Count Sketch (Charikar, Chen and Farach-Colton 2002).

use super::{Shape, Sketch, median};
use crate::sketches::keys::Key;

/// A second hash decides whether a counter of each row goes up or down. The estimate is the median over rows of the
/// key's sign times its counter, and is unbiased.
#[derive(Clone, Debug)]
pub struct CountSketch {
    shape: Shape,
    counters: Vec<i32>,
}

impl CountSketch {
    /// Creates an empty sketch.
    ///
    /// # Panics
    /// If there is no row or no column, or more than [`MAX_ROWS`](super::MAX_ROWS) rows.
    pub fn new(rows: usize, width: usize) -> CountSketch {
        CountSketch::of_family(rows, width, 0)
    }

    /// Creates an empty sketch whose hashes are independent of those of other families.
    pub(super) fn of_family(rows: usize, width: usize, family: u64) -> CountSketch {
        let shape = Shape::new(rows, width, family);
        CountSketch { counters: vec![0; shape.counters()], shape }
    }

    pub(super) fn rows(&self) -> usize {
        self.shape.rows()
    }

    /// Counts `weight` packets in one row.
    pub(super) fn add(&mut self, row: usize, key: &Key, weight: i32) {
        self.counters[self.shape.place(row, key)] += weight * self.shape.sign(row, key);
    }
}

impl Sketch for CountSketch {
    fn update(&mut self, key: &Key) -> bool {
        for row in 0..self.rows() {
            self.add(row, key, 1);
        }
        true
    }

    fn estimate(&self, key: &Key) -> f64 {
        let row = |row| f64::from(self.counters[self.shape.place(row, key)] * self.shape.sign(row, key));
        median((0..self.rows()).map(row))
    }
}
