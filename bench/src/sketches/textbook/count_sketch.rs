//! Count Sketch (Charikar, Chen and Farach-Colton 2002).

use super::{Shape, Sketch, median};
use crate::sketches::keys::Key;

/// A counter in each row goes up or down, as a second hash says; the median over rows of what the key's sign
/// makes of its counter is the estimate, which is right in the mean.
#[derive(Clone, Debug)]
pub struct CountSketch {
    shape: Shape,
    counters: Vec<i32>,
}

impl CountSketch {
    /// Empty.
    ///
    /// # Panics
    /// If there is no row or no column, or more than [`MAX_ROWS`](super::MAX_ROWS) rows.
    pub fn new(rows: usize, width: usize) -> CountSketch {
        CountSketch::of_family(rows, width, 0)
    }

    /// With hashes that are independent of those of other families.
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
