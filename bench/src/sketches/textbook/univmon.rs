//! UnivMon (Liu, Manousis, Vorsanger, Sekar and Braverman 2016).

use xxhash_rust::xxh64::xxh64;

use super::{CountSketch, Sketch, Top};
use crate::sketches::keys::Key;

/// Seeds of the hashes that sample flows, apart from those of rows and signs.
const SAMPLING: u64 = u64::MAX << 32;

/// Levels of Count Sketch with a heap each. The first sees every flow, each further one half of the flows that
/// the one before it sees. Any sum of a function of the flow sizes is put together from the heaps.
#[derive(Clone, Debug)]
pub struct UnivMon {
    levels: Vec<(CountSketch, Top)>,
}

impl UnivMon {
    /// Empty; each level has a sketch of `rows` by `width` counters and a heap of `top` flows.
    ///
    /// # Panics
    /// If there is no level, no row or no column, or more than [`MAX_ROWS`](super::MAX_ROWS) rows.
    pub fn new(levels: usize, rows: usize, width: usize, top: usize) -> UnivMon {
        assert!(levels > 0, "at least one level");
        let level = |level| (CountSketch::of_family(rows, width, level), Top::new(top));
        UnivMon { levels: (0..levels as u64).map(level).collect() }
    }

    /// The sum over all flows of `g` of their sizes (section 4.2 of the paper): each level doubles what the next
    /// one found of half its flows, and sets right what its own heap knows exactly.
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

/// Whether `level` keeps a flow that the level before it sees.
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
