//! UnivMon (Liu, Manousis, Vorsanger, Sekar and Braverman 2016).

use xxhash_rust::xxh64::xxh64;

use super::{CountSketch, Sketch, Top};
use crate::sketches::keys::Key;

/// Seeds of the hashes that sample flows, disjoint from those of rows and signs.
const SAMPLING: u64 = u64::MAX << 32;

/// Levels of Count Sketch with a heap each. The first level sees every flow, each further level half of the previous
/// one's flows. The heaps yield the sum of any function of the flow sizes.
#[derive(Clone, Debug)]
pub struct UnivMon {
    levels: Vec<(CountSketch, Top)>,
}

impl UnivMon {
    /// Creates an empty sketch; each level has `rows` by `width` counters and a heap of `top` flows.
    ///
    /// # Panics
    /// If there is no level, no row or no column, or more than [`MAX_ROWS`](super::MAX_ROWS) rows.
    pub fn new(levels: usize, rows: usize, width: usize, top: usize) -> UnivMon {
        assert!(levels > 0, "at least one level");
        let level = |level| (CountSketch::of_family(rows, width, level), Top::new(top));
        UnivMon { levels: (0..levels as u64).map(level).collect() }
    }

    /// Returns the sum of `g` of the sizes of all flows (section 4.2 of the paper): each level doubles the next level's
    /// sum over half of its flows, and corrects it for the flows in its own heap.
    pub fn sum_over_flows(&self, g: impl Fn(f64) -> f64) -> f64 {
        let last = self.levels.len() - 1;
        let sizes = |level: usize| self.levels[level].1.flows().filter(|(_, size)| *size > 0.0);
        let deepest: f64 = sizes(last).map(|(_, size)| g(size)).sum();
        (0..last).rev().fold(deepest, |sum, level| {
            let own =
                sizes(level).map(|(key, size)| if samples(level + 1, &key) { -g(size) } else { g(size) });
            2.0 * sum + own.sum::<f64>()
        })
    }
}

/// Whether `level` sees a flow of the previous level.
fn samples(level: usize, key: &Key) -> bool {
    xxh64(key, SAMPLING + level as u64) & 1 == 1
}

impl Sketch for UnivMon {
    fn update(&mut self, key: &Key) -> bool {
        for (level, (sketch, top)) in self.levels.iter_mut().enumerate() {
            if level > 0 && !samples(level, key) {
                break;
            }
            sketch.update(key);
            top.offer(key, sketch.estimate(key));
        }
        true
    }

    fn estimate(&self, key: &Key) -> f64 {
        let (sketch, top) = &self.levels[0];
        top.get(key).unwrap_or_else(|| sketch.estimate(key))
    }

    fn top(&self) -> Option<Vec<(Key, f64)>> {
        Some(self.levels[0].1.flows().collect())
    }
}
