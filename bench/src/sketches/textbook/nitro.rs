//! NitroSketch over a Count Sketch (Liu et al. 2019, Algorithm 1).

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

use super::{CountSketch, Sketch};
use crate::sketches::keys::Key;

/// Each pair (packet, row) is counted with probability `p` and weight `1 / p`. The number of pairs to skip is drawn
/// from the geometric distribution, with one logarithm per draw.
#[derive(Clone, Debug)]
pub struct NitroCountSketch {
    sketch: CountSketch,
    /// `1 / p`.
    one_in: i32,
    /// Pairs to skip before the next counted one, from the current packet's first row.
    pass_over: u64,
    random: Xoshiro256PlusPlus,
}

impl NitroCountSketch {
    /// Creates an empty sketch with `p` = 1 / `one_in`.
    ///
    /// # Panics
    /// If there is no row or no column, more than [`MAX_ROWS`](super::MAX_ROWS) rows, or `one_in` is not positive.
    pub fn new(rows: usize, width: usize, one_in: i32, seed: u64) -> NitroCountSketch {
        assert!(one_in > 0, "one_in must be positive");
        let (sketch, random) = (CountSketch::new(rows, width), Xoshiro256PlusPlus::seed_from_u64(seed));
        let mut nitro = NitroCountSketch { sketch, one_in, pass_over: 0, random };
        nitro.pass_over = nitro.step() - 1;
        nitro
    }

    /// Draws the distance to the next counted pair, at least 1.
    fn step(&mut self) -> u64 {
        let uniform = (self.random.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
        let p = 1.0 / f64::from(self.one_in);
        ((1.0 - uniform).ln() / (1.0 - p).ln()).ceil().max(1.0) as u64
    }
}

impl Sketch for NitroCountSketch {
    fn update(&mut self, key: &Key) -> bool {
        let rows = self.sketch.rows() as u64;
        let mut row = self.pass_over;
        let counts = row < rows;
        while row < rows {
            self.sketch.add(row as usize, key, self.one_in);
            row += self.step();
        }
        self.pass_over = row - rows;
        counts
    }

    fn estimate(&self, key: &Key) -> f64 {
        self.sketch.estimate(key)
    }
}
