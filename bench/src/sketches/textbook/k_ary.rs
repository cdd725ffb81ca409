//! K-ary sketch (Krishnamurthy, Sen, Zhang and Chen 2003).

use super::{Shape, Sketch, median};
use crate::sketches::keys::Key;

/// Counts as Count-Min does. The estimate is the median over rows of each counter minus the mean contribution of other
/// flows, and is unbiased.
#[derive(Clone, Debug)]
pub struct KAry {
    shape: Shape,
    counters: Vec<u32>,
    packets: u64,
}

impl KAry {
    /// Creates an empty sketch.
    ///
    /// # Panics
    /// If there is no row, more than [`MAX_ROWS`](super::MAX_ROWS), or fewer than two columns.
    pub fn new(rows: usize, width: usize) -> KAry {
        assert!(width > 1, "a sketch needs at least two columns");
        let shape = Shape::new(rows, width, 0);
        KAry { counters: vec![0; shape.counters()], shape, packets: 0 }
    }
}

impl Sketch for KAry {
    fn update(&mut self, key: &Key) -> bool {
        for row in 0..self.shape.rows() {
            self.counters[self.shape.place(row, key)] += 1;
        }
        self.packets += 1;
        true
    }

    fn estimate(&self, key: &Key) -> f64 {
        let width = self.shape.width as f64;
        let mean = self.packets as f64 / width;
        let row = |row| (f64::from(self.counters[self.shape.place(row, key)]) - mean) / (1.0 - 1.0 / width);
        median((0..self.shape.rows()).map(row))
    }
}
