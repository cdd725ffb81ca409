//! The common part of Count-Min, Count Sketch and K-ary: rows of counters, one hash, statistics of the stream.

use crate::counters::{Counter, Counters, Reading};
use crate::digest::{Digest, Hasher, Key};
use crate::estimate::Estimate;
use crate::merge::MergeError;
use crate::noise::Noise;
use crate::probability::Probability;
use crate::shape::Shape;
use crate::stream_statistics::{StreamStatistics, Sums};

/// The counters of a sketch, with its hash and its statistics.
#[derive(Clone, Debug, PartialEq)]
pub struct Rows<C: Counter> {
    pub(crate) hasher: Hasher,
    pub(crate) counters: Counters<C>,
    pub(crate) statistics: StreamStatistics,
}

impl<C: Counter> Rows<C> {
    pub(crate) fn new(shape: Shape, hasher: Hasher) -> Rows<C> {
        Rows { hasher, counters: Counters::new(shape), statistics: StreamStatistics::default() }
    }

    fn check(&self, other: &Rows<C>) -> Result<(), MergeError> {
        MergeError::unless_same_shape(self.counters.shape(), other.counters.shape())?;
        MergeError::unless_same_seed(self.hasher, other.hasher)
    }

    /// Adds to all rows of each digest; does not update the statistics.
    #[inline(always)]
    pub(crate) fn add_all(
        &mut self,
        signed: bool,
        digests: &[Digest],
        sums: &Sums,
        weight: impl Fn(usize) -> i64,
    ) {
        match signed {
            true => self.counters.add_all::<true>(digests, sums.magnitude, weight),
            false => self.counters.add_all::<false>(digests, sums.magnitude, weight),
        }
    }

    pub(crate) fn merge(&mut self, other: &Rows<C>) -> Result<(), MergeError> {
        self.check(other)?;
        self.counters.join(&other.counters, |ours, theirs| i128::from(ours) + i128::from(theirs));
        self.statistics.merge(&other.statistics);
        Ok(())
    }

    pub(crate) fn subtract(&mut self, other: &Rows<C>) -> Result<(), MergeError> {
        self.check(other)?;
        self.counters.join(&other.counters, |ours, theirs| i128::from(ours) - i128::from(theirs));
        self.statistics.subtract(&other.statistics);
        Ok(())
    }

    pub(crate) fn scale(&mut self, factor: f64) {
        let moved = self.counters.scale(factor);
        self.statistics.scale(factor, moved);
    }

    pub(crate) fn clear(&mut self) {
        self.counters.clear();
        self.statistics = StreamStatistics::default();
    }
}

/// A sketch of counter rows, linear in its stream: one counter of each row holds a key's weight.
///
/// Count-Min, Count Sketch and K-ary implement it; they differ in how a row is read.
pub trait RowSketch: Sized {
    /// The type of the counters.
    type Counter: Counter;

    /// Whether each row gives a key a sign.
    const SIGNED: bool;

    /// Returns the counters.
    fn rows(&self) -> &Rows<Self::Counter>;

    /// Returns the counters, for updates.
    fn rows_mut(&mut self) -> &mut Rows<Self::Counter>;

    /// Measures the current noise. Reads every counter: call it once for many estimates.
    fn noise(&self) -> Noise;

    /// Estimates the weight of the key of `digest`; `noise` comes from [`RowSketch::noise`].
    fn estimate(&self, digest: Digest, noise: &Noise) -> Estimate;

    /// Returns how a key's counters are reduced to a rough estimate.
    fn reading(&self) -> Reading {
        Reading::Median
    }

    /// Calls `take` with the index and a rough weight, without a bound, of each key of `digests`. These are the
    /// estimates that a top-k is offered for each packet.
    #[inline(always)]
    fn estimates_without_bound(&self, digests: &[Digest], mut take: impl FnMut(usize, i64)) {
        let counters = &self.rows().counters;
        let mean = self.rough_mean();
        let take = |number, counter: i64| take(number, counter.saturating_sub(mean));
        if Self::SIGNED {
            counters.read_all::<true>(digests, self.reading(), take);
        } else {
            counters.read_all::<false>(digests, self.reading(), take);
        }
    }

    /// Returns the rough weight of one key.
    fn estimate_without_bound(&self, digest: Digest) -> i64 {
        let counters = &self.rows().counters;
        let counter = match Self::SIGNED {
            true => counters.read::<true>(digest, self.reading()),
            false => counters.read::<false>(digest, self.reading()),
        };
        counter.saturating_sub(self.rough_mean())
    }

    /// Returns the average that collisions add to a counter. It grows with the stream: if it were not subtracted,
    /// early keys would look small beside later ones.
    #[inline(always)]
    fn rough_mean(&self) -> i64 {
        match (Self::SIGNED, self.reading()) {
            (false, Reading::Median) => self.statistics().total() >> self.shape().width().trailing_zeros(),
            _ => 0,
        }
    }

    /// Estimates the weight of a key. For many keys call [`RowSketch::noise`] once and [`RowSketch::estimate`] for
    /// each.
    fn estimate_key(&self, key: &impl Key) -> Estimate {
        self.estimate(self.hasher().digest(key.as_bytes()), &self.noise())
    }

    /// Returns the hash.
    fn hasher(&self) -> Hasher {
        self.rows().hasher
    }

    /// Returns the number of rows and columns.
    fn shape(&self) -> Shape {
        self.rows().counters.shape()
    }

    /// Returns the totals of the stream.
    fn statistics(&self) -> &StreamStatistics {
        &self.rows().statistics
    }

    /// Returns the number of additions that exceeded a counter's range; bounds hold only while it is zero.
    fn saturations(&self) -> u64 {
        self.rows().counters.saturations()
    }

    /// Returns the memory of the counters, in bytes.
    fn bytes(&self) -> u64 {
        self.shape().bytes(Self::Counter::BYTES)
    }

    /// Adds `weight` to a key.
    fn add(&mut self, key: &impl Key, weight: i64) {
        let digest = self.hasher().digest(key.as_bytes());
        self.add_batch(&[digest], &Sums::of([weight]), |_| weight);
    }

    /// Adds `weight(i)` to the key of `digests[i]`; `sums` are the totals of all these weights.
    #[inline(always)]
    fn add_batch(&mut self, digests: &[Digest], sums: &Sums, weight: impl Fn(usize) -> i64) {
        let rows = self.rows_mut();
        rows.statistics.record(sums, Probability::ONE);
        rows.add_all(Self::SIGNED, digests, sums, weight);
    }

    /// Merges `other` into this sketch.
    ///
    /// # Errors
    /// If shapes or seeds differ; then nothing changes.
    fn merge(&mut self, other: &Self) -> Result<(), MergeError> {
        self.rows_mut().merge(other.rows())
    }

    /// Subtracts `other` from this sketch.
    ///
    /// # Errors
    /// If shapes or seeds differ; then nothing changes.
    fn subtract(&mut self, other: &Self) -> Result<(), MergeError> {
        self.rows_mut().subtract(other.rows())
    }

    /// Multiplies all weights so far, each counter rounded to the nearest integer: a decay, for factors below 1.
    /// Rounding changes each counter by up to 0.5. The statistics record it ([`StreamStatistics::rounding`]), and bounds widen
    /// by it.
    ///
    /// # Panics
    /// If the factor is infinite or NaN.
    fn scale(&mut self, factor: f64) {
        assert!(factor.is_finite(), "scale factor must be finite");
        self.rows_mut().scale(factor);
    }

    /// Resets the sketch.
    fn clear(&mut self) {
        self.rows_mut().clear();
    }
}

/// Returns the median of the rows' sums of squares, for a sketch whose rows have signs.
pub(crate) fn signed_row_f2<C: Counter>(counters: &Counters<C>) -> f64 {
    median_over_rows(counters, |row| counters.sum_of_squares(row))
}

/// Returns the same for a sketch without signs: the sum of squares around the mean, (w * sum of C^2 - S^2) / (w - 1)
/// (Krishnamurthy et al. 2003, section 3.1).
pub(crate) fn unsigned_row_f2<C: Counter>(counters: &Counters<C>) -> f64 {
    let width = counters.shape().width() as f64;
    median_over_rows(counters, |row| {
        let sum = counters.sum(row);
        ((width * counters.sum_of_squares(row) - sum * sum) / (width - 1.0)).max(0.0)
    })
}

/// Returns the median of a value per row.
#[inline(always)]
pub(crate) fn median_over_rows<C: Counter>(counters: &Counters<C>, row: impl Fn(usize) -> f64) -> f64 {
    let mut values = [0.0; Shape::MAX_ROWS];
    let rows = counters.shape().rows();
    for (number, value) in values[..rows].iter_mut().enumerate() {
        *value = row(number);
    }
    crate::counters::median(&mut values[..rows])
}
