//! The counter matrix of every row-wise sketch. It supports two kinds of update: one row of one key, and all rows of
//! many keys.
//!
//! Counters saturate at the limits of their type instead of wrapping; each saturation is counted. A saturated counter
//! breaks linearity, so bounds hold only while [`Counters::saturations`] is zero.

mod counter;
mod kernel;

pub use counter::Counter;
pub use kernel::Reading;

#[cfg(target_arch = "x86_64")]
use kernel::avx2;
use kernel::{LANES, add_rows, read_lanes};

use crate::digest::Digest;
use crate::memory::prefetch;
use crate::shape::{Shape, SignedColumn, Slices};

/// Rows of counters.
#[derive(Clone, Debug)]
pub(crate) struct Counters<C> {
    shape: Shape,
    slices: Slices,
    /// All counters, row by row.
    cells: Vec<C>,
    saturations: u64,
    /// No counter leaves its range before weights of this magnitude were added.
    headroom: i64,
    /// Additions to make with an overflow check each, before headroom is measured again.
    checked_additions: usize,
}

impl<C: Counter> Counters<C> {
    pub(crate) fn new(shape: Shape) -> Counters<C> {
        Self::from_cells(shape, vec![C::default(); shape.counters()], 0)
    }

    /// Restores saved counters; `cells` must have as many as the shape.
    pub(crate) fn from_cells(shape: Shape, cells: Vec<C>, saturations: u64) -> Counters<C> {
        assert_eq!(cells.len(), shape.counters());
        Counters { shape, slices: shape.slices(), cells, saturations, headroom: 0, checked_additions: 0 }
    }

    #[inline(always)]
    pub(crate) fn shape(&self) -> Shape {
        self.shape
    }

    pub(crate) fn cells(&self) -> &[C] {
        &self.cells
    }

    pub(crate) fn row(&self, row: usize) -> &[C] {
        let width = self.shape.width();
        &self.cells[row * width..][..width]
    }

    /// The number of additions that exceeded a counter's range.
    pub(crate) fn saturations(&self) -> u64 {
        self.saturations
    }

    pub(crate) fn clear(&mut self) {
        self.cells.fill(C::default());
        (self.saturations, self.headroom, self.checked_additions) = (0, 0, 0);
    }

    #[inline(always)]
    fn index(&self, row: usize, column: SignedColumn) -> usize {
        row * self.shape.width() + column.index
    }

    #[inline(always)]
    pub(crate) fn column(&self, row: usize, digest: Digest) -> SignedColumn {
        self.slices.of(digest, row)
    }

    /// Returns the index of a key's counter in `row`, and its sign.
    #[inline(always)]
    pub(crate) fn locate(&self, row: usize, digest: Digest) -> (usize, SignedColumn) {
        let column = self.slices.of(digest, row);
        (self.index(row, column), column)
    }

    /// Returns a key's counter in `row`.
    #[inline(always)]
    pub(crate) fn get(&self, row: usize, column: SignedColumn) -> i64 {
        self.cells[self.index(row, column)].get()
    }

    #[inline(always)]
    pub(crate) fn prefetch(&self, index: usize) {
        prefetch(&self.cells[index]);
    }

    /// Prefetches all counters of a key.
    #[inline(always)]
    pub(crate) fn prefetch_rows(&self, digest: Digest) {
        for row in 0..self.shape.rows() {
            prefetch(&self.cells[self.index(row, self.slices.of(digest, row))]);
        }
    }

    /// Adds to the counter at `index`. Returns its new value.
    #[inline(always)]
    pub(crate) fn add_at(&mut self, index: usize, weight: i64) -> C {
        let cell = &mut self.cells[index];
        match cell.checked_plus(weight) {
            Some(sum) => *cell = sum,
            None => {
                *cell = C::limit(weight);
                self.saturations = self.saturations.saturating_add(1);
            }
        }
        self.headroom = self.headroom.saturating_sub_unsigned(weight.unsigned_abs());
        *cell
    }

    /// Adds `weight(i)` to all rows of the key of `digests[i]`, with the row's sign if `SIGNED`.
    ///
    /// The weights' magnitudes add up to `magnitude`. While that certainly keeps every counter in range, no addition
    /// is checked for overflow.
    #[inline(always)]
    pub(crate) fn add_all<const SIGNED: bool>(
        &mut self,
        digests: &[Digest],
        magnitude: u64,
        weight: impl Fn(usize) -> i64,
    ) {
        if !self.slices.is_short || !self.reserve_headroom(magnitude, digests.len()) {
            return self.add_checked::<SIGNED>(digests, weight);
        }
        match self.shape.rows() {
            1 => self.add_rows::<1, SIGNED>(digests, weight),
            2 => self.add_rows::<2, SIGNED>(digests, weight),
            3 => self.add_rows::<3, SIGNED>(digests, weight),
            4 => self.add_rows::<4, SIGNED>(digests, weight),
            5 => self.add_rows::<5, SIGNED>(digests, weight),
            6 => self.add_rows::<6, SIGNED>(digests, weight),
            7 => self.add_rows::<7, SIGNED>(digests, weight),
            _ => self.add_rows::<8, SIGNED>(digests, weight),
        }
    }

    /// Reserves `magnitude` of the headroom, if that much is left.
    #[inline(always)]
    fn reserve_headroom(&mut self, magnitude: u64, additions: usize) -> bool {
        match i64::try_from(magnitude) {
            Ok(magnitude) if magnitude <= self.headroom => {
                self.headroom -= magnitude;
                true
            }
            _ => self.measure_headroom(magnitude, additions),
        }
    }

    /// Measures the headroom again, unless that was done recently: scanning all counters takes as long as adding to
    /// that many.
    #[cold]
    #[inline(never)]
    fn measure_headroom(&mut self, magnitude: u64, additions: usize) -> bool {
        if self.checked_additions == 0 {
            let fullest = self.cells.iter().map(|cell| cell.get().unsigned_abs()).max().unwrap_or(0);
            // One less, so that a weight clamped at the limit of an `i64` is not added without a check.
            let headroom = C::limit(1).get().unsigned_abs().saturating_sub(fullest + 1);
            self.headroom = i64::try_from(headroom).unwrap_or(i64::MAX);
            self.checked_additions = self.cells.len();
            if let Some(headroom) = headroom.checked_sub(magnitude) {
                self.headroom = i64::try_from(headroom).unwrap_or(i64::MAX);
                self.checked_additions = 0;
                return true;
            }
        }
        self.checked_additions = self.checked_additions.saturating_sub(additions);
        false
    }

    fn add_checked<const SIGNED: bool>(&mut self, digests: &[Digest], weight: impl Fn(usize) -> i64) {
        for (number, &digest) in digests.iter().enumerate() {
            for row in 0..self.shape.rows() {
                let (index, column) = self.locate(row, digest);
                let weight = weight(number);
                self.add_at(index, if SIGNED { column.signed(weight) } else { weight });
            }
        }
    }

    #[inline(always)]
    fn add_rows<const ROWS: usize, const SIGNED: bool>(
        &mut self,
        digests: &[Digest],
        weight: impl Fn(usize) -> i64,
    ) {
        let mut cells = self.cells.chunks_exact_mut(self.shape.width());
        let rows: [&mut [C]; ROWS] = std::array::from_fn(|_| cells.next().unwrap_or_default());
        #[cfg(target_arch = "x86_64")]
        if avx2::is_supported() {
            return avx2::add_rows::<C, ROWS, SIGNED>(rows, &self.slices, digests, weight);
        }
        add_rows::<C, ROWS, SIGNED>(rows, &self.slices, digests, weight);
    }

    /// Calls `take` with a rough estimate of each key of `digests`: the median or the minimum of its rows.
    #[inline(always)]
    pub(crate) fn read_all<const SIGNED: bool>(
        &self,
        digests: &[Digest],
        reading: Reading,
        mut take: impl FnMut(usize, i64),
    ) {
        match (self.slices.is_short, self.shape.rows()) {
            (true, 1) => self.read_rows::<1, SIGNED>(digests, reading, take),
            (true, 2) => self.read_rows::<2, SIGNED>(digests, reading, take),
            (true, 3) => self.read_rows::<3, SIGNED>(digests, reading, take),
            (true, 4) => self.read_rows::<4, SIGNED>(digests, reading, take),
            (true, 5) => self.read_rows::<5, SIGNED>(digests, reading, take),
            (true, 6) => self.read_rows::<6, SIGNED>(digests, reading, take),
            (true, 7) => self.read_rows::<7, SIGNED>(digests, reading, take),
            (true, 8) => self.read_rows::<8, SIGNED>(digests, reading, take),
            _ => {
                for (number, &digest) in digests.iter().enumerate() {
                    take(number, self.read::<SIGNED>(digest, reading));
                }
            }
        }
    }

    /// Returns the same for one key.
    pub(crate) fn read<const SIGNED: bool>(&self, digest: Digest, reading: Reading) -> i64 {
        let mut values = [C::default(); Shape::MAX_ROWS];
        let values = &mut values[..self.shape.rows()];
        for (row, value) in values.iter_mut().enumerate() {
            let (index, column) = self.locate(row, digest);
            let cell = self.cells[index];
            *value = cell.signed(SIGNED && column.minus);
        }
        values.sort_unstable();
        let middle = values.len() / 2;
        let value = match reading {
            Reading::Minimum => values[0],
            Reading::Median if values.len() % 2 == 1 => values[middle],
            Reading::Median => values[middle - 1].midpoint(values[middle]),
        };
        value.get()
    }

    #[inline(always)]
    fn read_rows<const ROWS: usize, const SIGNED: bool>(
        &self,
        digests: &[Digest],
        reading: Reading,
        mut take: impl FnMut(usize, i64),
    ) {
        let mut cells = self.cells.chunks_exact(self.shape.width());
        let rows: [&[C]; ROWS] = std::array::from_fn(|_| cells.next().unwrap_or_default());
        for (number, digests) in digests.chunks(LANES).enumerate() {
            let mut lanes = [Digest::default(); LANES];
            lanes[..digests.len()].copy_from_slice(digests);
            #[cfg(target_arch = "x86_64")]
            let values = if avx2::is_supported() {
                avx2::read_lanes::<C, ROWS, SIGNED>(rows, &self.slices, &lanes, reading)
            } else {
                read_lanes::<C, ROWS, SIGNED>(rows, &self.slices, &lanes, reading)
            };
            #[cfg(not(target_arch = "x86_64"))]
            let values = read_lanes::<C, ROWS, SIGNED>(rows, &self.slices, &lanes, reading);
            for (lane, value) in values[..digests.len()].iter().enumerate() {
                take(number * LANES + lane, value.get());
            }
        }
    }

    /// Applies `join` to each pair of counters; results saturate.
    pub(crate) fn join(&mut self, other: &Counters<C>, join: impl Fn(i64, i64) -> i128) {
        debug_assert_eq!(self.shape, other.shape);
        let mut saturations = 0;
        for (ours, theirs) in self.cells.iter_mut().zip(&other.cells) {
            let sum = join(ours.get(), theirs.get());
            *ours =
                i64::try_from(sum).ok().and_then(|sum| C::default().checked_plus(sum)).unwrap_or_else(|| {
                    saturations += 1;
                    C::limit(if sum < 0 { -1 } else { 1 })
                });
        }
        self.saturations = self.saturations.saturating_add(other.saturations).saturating_add(saturations);
        (self.headroom, self.checked_additions) = (0, 0);
    }

    /// Multiplies each counter and rounds to the nearest integer, halves away from zero. Returns the largest rounding
    /// error.
    pub(crate) fn scale(&mut self, factor: f64) -> f64 {
        let mut furthest = 0.0f64;
        for cell in &mut self.cells {
            let exact = cell.get() as f64 * factor;
            let (scaled, moved) = C::saturate(exact);
            *cell = scaled;
            match moved {
                true => self.saturations = self.saturations.saturating_add(1),
                false => furthest = furthest.max((exact - scaled.get() as f64).abs()),
            }
        }
        (self.headroom, self.checked_additions) = (0, 0);
        furthest
    }

    /// Returns the sum of the squares of a row.
    pub(crate) fn sum_of_squares(&self, row: usize) -> f64 {
        self.row(row).iter().map(|cell| (cell.get() as f64) * (cell.get() as f64)).sum()
    }

    /// Returns the sum of a row.
    pub(crate) fn sum(&self, row: usize) -> f64 {
        self.row(row).iter().map(|cell| cell.get() as i128).sum::<i128>() as f64
    }
}

/// Returns the median of some values, the mean of the middle two if their number is even. Sorts the slice.
pub(crate) fn median(values: &mut [f64]) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    let middle = values.len() / 2;
    if values.len() % 2 == 1 { values[middle] } else { values[middle - 1] / 2.0 + values[middle] / 2.0 }
}

/// Compares only the counts, not the headroom.
impl<C: Counter> PartialEq for Counters<C> {
    fn eq(&self, other: &Self) -> bool {
        (self.shape, self.saturations) == (other.shape, other.saturations) && self.cells == other.cells
    }
}

#[cfg(test)]
mod tests;
