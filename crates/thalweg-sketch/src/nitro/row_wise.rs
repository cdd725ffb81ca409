//! The interface between Nitro and a sketch: updates of single rows.

use crate::counters::Counter;
use crate::digest::{Digest, Hasher, Key};
use crate::noise::Noise;
use crate::rows::RowSketch;
use crate::shape::SignedColumn;
use crate::stream_statistics::{StreamStatistics, Sums};
use crate::top_k::TopK;

/// A counter, and the sign of a key there.
#[derive(Clone, Copy, Debug, Default)]
pub struct CounterIndex {
    pub(crate) index: u32,
    /// The index of the counter matrix, if the sketch has several.
    pub(crate) level: u16,
    pub(crate) minus: bool,
}

impl CounterIndex {
    #[inline(always)]
    pub(crate) const fn signed(self, weight: i64) -> i64 {
        SignedColumn { index: 0, minus: self.minus }.signed(weight)
    }
}

/// A sketch that adds to one counter of each row, over keys of type `K`.
pub trait RowWise<K: Key> {
    /// Returns the hash.
    fn hasher(&self) -> Hasher;

    /// The number of rows, d: additions per packet without sampling.
    fn depth(&self) -> usize;

    /// Returns the totals of the stream.
    fn statistics(&self) -> &StreamStatistics;

    /// Returns the totals of the stream, for updates.
    fn account_mut(&mut self) -> &mut StreamStatistics;

    /// Measures the current noise.
    fn noise(&self) -> Noise;

    /// Adds to all rows of each digest; does not update the statistics.
    fn add_all(&mut self, digests: &[Digest], sums: &Sums, weight: impl Fn(usize) -> i64);

    /// Returns the counter of a key in `row`.
    fn locate(&self, row: usize, digest: Digest) -> CounterIndex;

    /// Prefetches a counter.
    fn prefetch(&self, position: CounterIndex);

    /// Prefetches all the memory that [`RowWise::offer`] will read.
    fn prefetch_offer(&self, _digest: Digest) {}

    /// Adds to one counter of a key. Returns whether the key may belong to the top-k now, and should be offered to it. If the
    /// counter, with the key's sign, stays below the top-k's threshold, the addition cannot have lifted the median over it.
    fn add_at(&mut self, position: CounterIndex, weight: i64) -> bool;

    /// Offers keys whose counters have changed to the top-k; `key(i)` builds the key of `digests[i]` if it is needed.
    fn offer(&mut self, _digests: &[Digest], _key: impl Fn(usize) -> K) {}
}

impl<K: Key, C: Counter, S: RowSketch<Counter = C>> RowWise<K> for S {
    #[inline(always)]
    fn hasher(&self) -> Hasher {
        self.rows().hasher
    }

    #[inline(always)]
    fn depth(&self) -> usize {
        self.rows().counters.shape().rows()
    }

    fn statistics(&self) -> &StreamStatistics {
        &self.rows().statistics
    }

    #[inline(always)]
    fn account_mut(&mut self) -> &mut StreamStatistics {
        &mut self.rows_mut().statistics
    }

    fn noise(&self) -> Noise {
        RowSketch::noise(self)
    }

    #[inline(always)]
    fn add_all(&mut self, digests: &[Digest], sums: &Sums, weight: impl Fn(usize) -> i64) {
        self.rows_mut().add_all(S::SIGNED, digests, sums, weight);
    }

    #[inline(always)]
    fn locate(&self, row: usize, digest: Digest) -> CounterIndex {
        let (index, column) = self.rows().counters.locate(row, digest);
        CounterIndex { index: index as u32, level: 0, minus: S::SIGNED && column.minus }
    }

    #[inline(always)]
    fn prefetch(&self, position: CounterIndex) {
        self.rows().counters.prefetch(position.index as usize);
    }

    #[inline(always)]
    fn add_at(&mut self, position: CounterIndex, weight: i64) -> bool {
        self.rows_mut().counters.add_at(position.index as usize, position.signed(weight));
        false
    }
}

/// A sketch with the keys of its largest estimates.
#[derive(Clone, Debug, PartialEq)]
pub struct WithTopK<S, K: Key> {
    /// The sketch.
    pub sketch: S,
    /// The keys.
    pub top: TopK<K>,
}

impl<S: RowSketch, K: Key> WithTopK<S, K> {
    /// Tracks the `k` largest keys of a sketch, which should be empty.
    pub fn new(sketch: S, k: usize) -> WithTopK<S, K> {
        WithTopK { sketch, top: TopK::new(k) }
    }

    /// Merges `other` into this sketch.
    ///
    /// # Errors
    /// If shapes or seeds differ; then nothing changes.
    pub fn merge(&mut self, other: &Self) -> Result<(), crate::merge::MergeError> {
        self.sketch.merge(&other.sketch)?;
        self.top.merge(&other.top, |digest| self.sketch.estimate_without_bound(digest));
        Ok(())
    }

    /// Subtracts `other` from this sketch. The candidates are those of both that grew.
    ///
    /// # Errors
    /// If shapes or seeds differ; then nothing changes.
    pub fn subtract(&mut self, other: &Self) -> Result<(), crate::merge::MergeError> {
        self.sketch.subtract(&other.sketch)?;
        self.top.merge(&other.top, |digest| self.sketch.estimate_without_bound(digest));
        Ok(())
    }

    /// Multiplies all weights so far: a decay, for factors below 1.
    ///
    /// # Panics
    /// If the factor is infinite or NaN.
    pub fn scale(&mut self, factor: f64) {
        self.sketch.scale(factor);
        self.top.refresh(|digest| self.sketch.estimate_without_bound(digest));
    }

    /// Resets the sketch and its keys.
    pub fn clear(&mut self) {
        self.sketch.clear();
        self.top.clear();
    }

    /// Returns the k keys with the largest current estimates, largest first, with bounds.
    pub fn largest(&self) -> Vec<(K, crate::estimate::Estimate)> {
        largest(&self.sketch, &self.top)
    }
}

/// Returns the candidates with the largest current estimates, largest first, with bounds: at most k.
pub(crate) fn largest<S: RowSketch, K: Key>(
    sketch: &S,
    top: &TopK<K>,
) -> Vec<(K, crate::estimate::Estimate)> {
    let noise = sketch.noise();
    let estimated =
        |candidate: &crate::top_k::Candidate<K>| (candidate.key, sketch.estimate(candidate.digest, &noise));
    let mut all: Vec<_> = top.candidates().iter().map(estimated).collect();
    all.sort_by(|a, b| b.1.value.total_cmp(&a.1.value).then_with(|| a.0.as_bytes().cmp(b.0.as_bytes())));
    all.truncate(top.k());
    all
}

impl<S: RowSketch, K: Key> RowWise<K> for WithTopK<S, K> {
    #[inline(always)]
    fn hasher(&self) -> Hasher {
        RowSketch::hasher(&self.sketch)
    }

    #[inline(always)]
    fn depth(&self) -> usize {
        self.sketch.shape().rows()
    }

    fn statistics(&self) -> &StreamStatistics {
        RowSketch::statistics(&self.sketch)
    }

    #[inline(always)]
    fn account_mut(&mut self) -> &mut StreamStatistics {
        &mut self.sketch.rows_mut().statistics
    }

    fn noise(&self) -> Noise {
        RowSketch::noise(&self.sketch)
    }

    #[inline(always)]
    fn add_all(&mut self, digests: &[Digest], sums: &Sums, weight: impl Fn(usize) -> i64) {
        RowWise::<K>::add_all(&mut self.sketch, digests, sums, weight);
    }

    #[inline(always)]
    fn locate(&self, row: usize, digest: Digest) -> CounterIndex {
        RowWise::<K>::locate(&self.sketch, row, digest)
    }

    #[inline(always)]
    fn prefetch(&self, position: CounterIndex) {
        RowWise::<K>::prefetch(&self.sketch, position);
    }

    #[inline(always)]
    fn prefetch_offer(&self, digest: Digest) {
        self.sketch.rows().counters.prefetch_rows(digest);
    }

    #[inline(always)]
    fn add_at(&mut self, position: CounterIndex, weight: i64) -> bool {
        let counters = &mut self.sketch.rows_mut().counters;
        let counter =
            counters.add_at(position.index as usize, position.signed(weight)).signed(position.minus);
        counter.get().saturating_sub(self.sketch.rough_mean()) > self.top.threshold()
    }

    #[inline(always)]
    fn offer(&mut self, digests: &[Digest], key: impl Fn(usize) -> K) {
        let top = &mut self.top;
        self.sketch.estimates_without_bound(digests, |number, estimate| {
            top.offer_with(digests[number], estimate, || key(number));
        });
    }
}
