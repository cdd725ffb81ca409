//! What Nitro needs of a sketch: that its rows can be updated one at a time.

use crate::account::{Account, Sums};
use crate::counters::Counter;
use crate::digest::{Digest, Hasher, Key};
use crate::noise::Noise;
use crate::rows::RowSketch;
use crate::shape::Slice;
use crate::top_k::TopK;

/// A counter, and the sign with which a key counts there.
#[derive(Clone, Copy, Debug, Default)]
pub struct Place {
    pub(crate) index: u32,
    /// Among several matrices of counters, which one.
    pub(crate) level: u16,
    pub(crate) minus: bool,
}

impl Place {
    #[inline(always)]
    pub(crate) const fn signed(self, weight: i64) -> i64 {
        Slice { column: 0, minus: self.minus }.signed(weight)
    }
}

/// A sketch whose update is one addition in each of its rows, and that counts keys of type `K`.
pub trait RowWise<K: Key> {
    /// Its hash.
    fn hasher(&self) -> Hasher;

    /// Rows, d: additions for each packet when nothing is left out.
    fn depth(&self) -> usize;

    /// What it was fed.
    fn account(&self) -> &Account;

    /// What it was fed, to enter more.
    fn account_mut(&mut self) -> &mut Account;

    /// How noisy it is now.
    fn noise(&self) -> Noise;

    /// Adds to all rows of each digest; enters nothing into the account.
    fn add_all(&mut self, digests: &[Digest], sums: &Sums, weight: impl Fn(usize) -> i64);

    /// Where `row` counts a key.
    fn place(&self, row: usize, digest: Digest) -> Place;

    /// Asks for the memory of a place.
    fn prefetch(&self, place: Place);

    /// Asks for all the memory that [`RowWise::offer`] will look at.
    fn prefetch_offer(&self, _digest: Digest) {}

    /// Adds to one counter.
    fn add_at(&mut self, place: Place, weight: i64);

    /// Packets of these keys have changed counters; `key` makes the key of `digests[i]`, where it is needed.
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

    fn account(&self) -> &Account {
        &self.rows().account
    }

    #[inline(always)]
    fn account_mut(&mut self) -> &mut Account {
        &mut self.rows_mut().account
    }

    fn noise(&self) -> Noise {
        RowSketch::noise(self)
    }

    #[inline(always)]
    fn add_all(&mut self, digests: &[Digest], sums: &Sums, weight: impl Fn(usize) -> i64) {
        self.rows_mut().add_all(S::SIGNED, digests, sums, weight);
    }

    #[inline(always)]
    fn place(&self, row: usize, digest: Digest) -> Place {
        let (index, slice) = self.rows().counters.locate(row, digest);
        Place { index: index as u32, level: 0, minus: S::SIGNED && slice.minus }
    }

    #[inline(always)]
    fn prefetch(&self, place: Place) {
        self.rows().counters.prefetch(place.index as usize);
    }

    #[inline(always)]
    fn add_at(&mut self, place: Place, weight: i64) {
        self.rows_mut().counters.add_at(place.index as usize, place.signed(weight));
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
    /// Remembers the `k` largest keys of a sketch, which is best empty.
    pub fn new(sketch: S, k: usize) -> WithTopK<S, K> {
        WithTopK { sketch, top: TopK::new(k) }
    }

    /// Makes it that of both streams.
    ///
    /// # Errors
    /// If shapes or seeds differ; then nothing has changed.
    pub fn merge(&mut self, other: &Self) -> Result<(), crate::merge::MergeError> {
        self.sketch.merge(&other.sketch)?;
        self.top.merge(&other.top, |digest| self.sketch.rough_estimate(digest));
        Ok(())
    }

    /// Makes it that of the difference, this stream less the other, with the candidates of both that grew.
    ///
    /// # Errors
    /// If shapes or seeds differ; then nothing has changed.
    pub fn subtract(&mut self, other: &Self) -> Result<(), crate::merge::MergeError> {
        self.sketch.subtract(&other.sketch)?;
        self.top.merge(&other.top, |digest| self.sketch.rough_estimate(digest));
        Ok(())
    }

    /// Multiplies all weights seen so far: decay, for factors below 1.
    ///
    /// # Panics
    /// If the factor is infinite or no number.
    pub fn scale(&mut self, factor: f64) {
        self.sketch.scale(factor);
        self.top.refresh(|digest| self.sketch.rough_estimate(digest));
    }

    /// Forgets the stream.
    pub fn clear(&mut self) {
        self.sketch.clear();
        self.top.clear();
    }

    /// The k keys with the largest estimates now, largest first, each with its bound.
    pub fn largest(&self) -> Vec<(K, crate::estimate::Estimate)> {
        largest(&self.sketch, &self.top)
    }
}

/// The candidates with the largest estimates now, largest first, each with its bound: as many as are wanted.
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

    fn account(&self) -> &Account {
        RowSketch::account(&self.sketch)
    }

    #[inline(always)]
    fn account_mut(&mut self) -> &mut Account {
        &mut self.sketch.rows_mut().account
    }

    fn noise(&self) -> Noise {
        RowSketch::noise(&self.sketch)
    }

    #[inline(always)]
    fn add_all(&mut self, digests: &[Digest], sums: &Sums, weight: impl Fn(usize) -> i64) {
        RowWise::<K>::add_all(&mut self.sketch, digests, sums, weight);
    }

    #[inline(always)]
    fn place(&self, row: usize, digest: Digest) -> Place {
        RowWise::<K>::place(&self.sketch, row, digest)
    }

    #[inline(always)]
    fn prefetch(&self, place: Place) {
        RowWise::<K>::prefetch(&self.sketch, place);
    }

    #[inline(always)]
    fn prefetch_offer(&self, digest: Digest) {
        self.sketch.rows().counters.prefetch_rows(digest);
    }

    #[inline(always)]
    fn add_at(&mut self, place: Place, weight: i64) {
        RowWise::<K>::add_at(&mut self.sketch, place, weight);
    }

    #[inline(always)]
    fn offer(&mut self, digests: &[Digest], key: impl Fn(usize) -> K) {
        let top = &mut self.top;
        self.sketch.rough_estimates(digests, |number, estimate| {
            top.offer_with(digests[number], estimate, || key(number));
        });
    }
}
