//! Count-Min (Cormode and Muthukrishnan 2005).

use super::{Shape, Sketch};
use crate::sketches::keys::Key;

/// One counter per row counts the packet; the minimum is the estimate, which is never too low.
#[derive(Clone, Debug)]
pub struct CountMin {
    shape: Shape,
    counters: Vec<u32>,
}

impl CountMin {
    /// Creates an empty sketch.
    ///
    /// # Panics
    /// If there is no row or no column, or more than [`MAX_ROWS`](super::MAX_ROWS) rows.
    pub fn new(rows: usize, width: usize) -> CountMin {
        let shape = Shape::new(rows, width, 0);
        CountMin { counters: vec![0; shape.counters()], shape }
    }
}

impl Sketch for CountMin {
    fn update(&mut self, key: &Key) -> bool {
        for row in 0..self.shape.rows() {
            self.counters[self.shape.place(row, key)] += 1;
        }
        true
    }

    fn estimate(&self, key: &Key) -> f64 {
        let rows = (0..self.shape.rows()).map(|row| self.counters[self.shape.place(row, key)]);
        rows.min().map_or(0.0, f64::from)
    }
}
