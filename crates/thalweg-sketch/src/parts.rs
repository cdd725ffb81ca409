//! Sketches from counters that something else counted, such as a program in the kernel: with the same hash, columns and
//! signs they are the sketches that this crate would have counted.

use crate::count_min::CountMin;
use crate::count_sketch::CountSketch;
use crate::counters::{Counter, Counters};
use crate::digest::{Digest, Hasher, Key};
use crate::k_ary::KAry;
use crate::probability::Probability;
use crate::rows::Rows;
use crate::shape::{Shape, Slices};
use crate::stream_statistics::StreamStatistics;
use crate::top_k::TopK;
use crate::univmon::{Level, UnivMon, UnivMonShape};

/// The columns of keys in the rows of a shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Columns(Slices);

impl Columns {
    /// Returns the columns of a shape.
    pub fn of(shape: Shape) -> Columns {
        Columns(shape.slices())
    }

    /// Returns the column of a key in `row`, and whether its sign there is minus.
    #[inline(always)]
    pub fn column(&self, digest: Digest, row: usize) -> (usize, bool) {
        let column = self.0.of(digest, row);
        (column.index, column.minus)
    }

    /// Returns the word of the digest and its lowest bit from which a row takes its sign, and above it its column. Words 2
    /// and 3 are products of the first two; `docs/reference/sketch-state.md` defines them.
    pub fn slice(&self, row: usize) -> (u8, u8) {
        self.0.position(row)
    }
}

impl StreamStatistics {
    /// The statistics of a stream of weights of which none is negative. `squares` are the sums of the squares of the
    /// weights by the probability with which they were sampled.
    pub fn of_counted_stream(
        total: u64,
        max_weight: f64,
        squares: impl IntoIterator<Item = (Probability, f64)>,
    ) -> StreamStatistics {
        let total = i64::try_from(total).unwrap_or(i64::MAX);
        let mut statistics = StreamStatistics {
            total,
            magnitude: total.unsigned_abs(),
            max_weight,
            ..StreamStatistics::default()
        };
        for (probability, squares) in squares.into_iter().filter(|&(_, squares)| squares > 0.0) {
            statistics.min_probability = statistics.min_probability.min(probability);
            statistics.sampling_f2 += squares * probability.excess();
            statistics.sampling_variance =
                statistics.sampling_variance.max(max_weight * probability.excess());
        }
        statistics
    }
}

impl<C: Counter> Rows<C> {
    fn of_counted(
        (shape, hasher): (Shape, Hasher),
        cells: Vec<C>,
        statistics: StreamStatistics,
        saturations: u64,
    ) -> Rows<C> {
        Rows { hasher, counters: Counters::from_cells(shape, cells, saturations), statistics }
    }

    /// The counters, row by row.
    pub fn cells(&self) -> &[C] {
        self.counters.cells()
    }
}

/// Implements the construction of a sketch of rows.
macro_rules! of_counted {
    ($($sketch:ident),*) => {
        $(impl<C: Counter> $sketch<C> {
            /// Creates the sketch with these counters, row by row. `saturations` counts additions beyond their range.
            ///
            /// # Panics
            /// If the counters are not as many as the shape has.
            pub fn of_counted(
                shape: Shape,
                hasher: Hasher,
                cells: Vec<C>,
                statistics: StreamStatistics,
                saturations: u64,
            ) -> $sketch<C> {
                $sketch { rows: Rows::of_counted((shape, hasher), cells, statistics, saturations) }
            }
        })*
    };
}

of_counted!(CountMin, CountSketch, KAry);

impl<K: Key, C: Counter> UnivMon<K, C> {
    /// Creates the sketch with these counters, level by level and row by row, without candidates: offer it the keys
    /// ([`RowWise::offer`](crate::nitro::RowWise::offer)). `saturations` counts additions beyond the counters' range.
    ///
    /// # Panics
    /// If the counters are not as many as the shape has.
    pub fn of_counted(
        shape: UnivMonShape,
        hasher: Hasher,
        cells: &[C],
        statistics: StreamStatistics,
        saturations: u64,
    ) -> UnivMon<K, C> {
        let per_level = shape.shape().counters();
        assert_eq!(cells.len(), shape.levels() * per_level, "counters of all levels");
        let level = |(number, cells): (usize, &[C])| Level {
            counters: Counters::from_cells(
                shape.shape(),
                cells.to_vec(),
                if number == 0 { saturations } else { 0 },
            ),
            top: TopK::new(shape.k()),
        };
        let levels = cells.chunks_exact(per_level).enumerate().map(level).collect();
        UnivMon { hasher, shape, statistics, levels }
    }

    /// The counters of a level, row by row.
    ///
    /// # Panics
    /// If there are fewer levels.
    pub fn cells(&self, level: usize) -> &[C] {
        self.levels[level].counters.cells()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nitro::{Mode, Nitro, RowWise};
    use crate::rows::RowSketch;

    fn keys() -> Vec<[u8; 4]> {
        (0..20_000u32).map(|n| (n % 97 * (n % 3)).to_be_bytes()).collect()
    }

    #[test]
    fn a_sketch_of_counted_cells_is_the_sketch_that_counted_them() {
        let (shape, hasher) = (Shape::new(5, 256).unwrap(), Hasher::new(3));
        for log2 in [0, 4] {
            let probability = Probability::new(log2).unwrap();
            let sketch = CountSketch::<i32>::new(shape, hasher);
            let mut nitro = Nitro::new(sketch, Mode::Fixed(probability), 1);
            nitro.update(keys().as_slice());
            let counted = nitro.into_sketch();
            let statistics = StreamStatistics::of_counted_stream(20_000, 1.0, [(probability, 20_000.0)]);
            let cells = counted.rows().cells().to_vec();
            assert_eq!(CountSketch::of_counted(shape, hasher, cells, statistics, 0), counted);
        }
    }

    #[test]
    fn a_univmon_of_counted_cells_finds_the_same_keys_once_offered() {
        let shape = UnivMonShape::new(4, Shape::new(3, 64).unwrap(), 8).unwrap();
        let mut counted = UnivMon::<[u8; 4], i32>::new(shape, Hasher::new(3));
        keys().iter().for_each(|key| counted.add(key, 1));
        let cells: Vec<i32> = (0..4).flat_map(|level| counted.cells(level).to_vec()).collect();
        let mut built =
            UnivMon::<[u8; 4], i32>::of_counted(shape, Hasher::new(3), &cells, *counted.statistics(), 0);
        for key in keys() {
            built.offer(&[Hasher::new(3).digest(&key)], |_| key);
        }
        assert_eq!(built.largest(), counted.largest());
    }

    #[test]
    fn slices_locate_the_columns_of_every_row() {
        for shape in [Shape::new(5, 1024).unwrap(), Shape::new(8, 1 << 20).unwrap()] {
            let columns = Columns::of(shape);
            for key in 0..100u32 {
                let digest = Hasher::new(1).digest(&key.to_be_bytes());
                for row in 0..shape.rows() {
                    let (word, shift) = columns.slice(row);
                    let Some(word) = digest.0.get(usize::from(word)) else { continue };
                    let (column, minus) = columns.column(digest, row);
                    assert_eq!(column as u64, (word >> shift >> 1) & (shape.width() as u64 - 1));
                    assert_eq!(minus, word >> shift & 1 == 1);
                }
            }
        }
    }
}
