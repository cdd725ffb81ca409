//! UnivMon: distinct keys, entropy, moments and heavy hitters from one state.
//!
//! Liu, Manousis, Vorsanger, Sekar, Braverman 2016, "One sketch to rule them all"; the theory is Braverman and
//! Ostrovsky 2010, "Zero-one frequency laws". Level 0 contains all keys, and each further level a random half of the
//! keys of the previous one, selected by the key's hash. Each level is a Count Sketch with its k largest keys, Q_j. A
//! sum of g(f) over all keys is computed from the deepest level up (algorithm 2):
//!
//! > Y_last = sum over Q_last of g(f);  Y_j = 2 Y_(j+1) + sum over Q_j of (1 - 2 \[key is in level j+1\]) g(f).
//!
//! **Each packet updates one level, the deepest of its key**, where the paper updates all levels down to that one.
//! With the same hash at all levels, the paper's level j is the sum of ours from j down, counter by counter, as
//! sketches are linear: nothing is lost, and a packet costs d additions instead of 2 d on average. A key's weight is
//! in one level's counters, so it is estimated there, among fewer keys than at level j.
//!
//! **Q_j is all keys that are certainly large**, of those that levels j and deeper track: larger than any key that
//! these levels rejected, and than their noise. The sum is unbiased for any Q_j that does not depend on the coin toss
//! that moves keys to level j + 1. The k largest by noisy estimates do depend on it, since levels differ in noise and
//! in the number of equal keys that they choose from. Smaller keys are counted at deeper levels, as a sample.
//!
//! **Guarantee.** Weights of single keys and F2 have the intervals of [`crate::noise`], each level with its own
//! noise. For other sums the theory promises 1 +- eps for polynomial memory, which does not bound the error of a
//! given state: they have no bound, except that the entropy is at least that of order 2, which follows from F2. A level with at most k keys has all of them, and from there up the error of a
//! count is that of a sample of k keys, about 1/sqrt(k).
//!
//! Memory: levels times (d w counters and a top-k). An update touches d cache lines, and the top-k reads d.

use crate::count_sketch::{self, CountSketch};
use crate::counters::{Counter, Counters, Reading};
use crate::digest::{Digest, Hasher, Key};
use crate::estimate::{Bound, Estimate};
use crate::merge::MergeError;
use crate::nitro::{CounterIndex, RowWise};
use crate::noise::Noise;
use crate::probability::Probability;
use crate::rows::{median_over_rows, signed_row_f2};
use crate::shape::{MAX_LEVELS, Shape, ShapeError};
use crate::stream_statistics::{StreamStatistics, Sums};
use crate::top_k::{Candidate, TopK};

#[cfg(test)]
mod tests;

/// The number of levels, the shape of each, and the number of keys that each tracks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnivMonShape {
    levels: usize,
    shape: Shape,
    k: usize,
}

impl UnivMonShape {
    /// The maximum number of levels: the first, and one for each of the digest's depth bits.
    pub const MAX_LEVELS: usize = MAX_LEVELS;

    /// Creates `levels` Count Sketches of `shape`, each with the `k` largest of its keys.
    ///
    /// # Errors
    /// If `levels` is not in 1..=17.
    pub fn new(levels: usize, shape: Shape, k: usize) -> Result<UnivMonShape, ShapeError> {
        if !(1..=Self::MAX_LEVELS).contains(&levels) {
            return Err(ShapeError::Levels { levels });
        }
        Ok(UnivMonShape { levels, shape, k: k.max(1) })
    }

    /// Returns the widest shape that fits into `memory_bytes`, counters and candidates together; at most a quarter is
    /// for candidates.
    ///
    /// # Errors
    /// If `levels` or `rows` is out of range, or the narrowest shape does not fit.
    pub fn for_memory<K: Key, C: Counter>(
        memory_bytes: u64,
        levels: usize,
        rows: usize,
    ) -> Result<UnivMonShape, ShapeError> {
        let smallest = UnivMonShape::new(levels, Shape::new(rows, Shape::MIN_WIDTH)?, 1)?;
        let level_bytes = memory_bytes / levels as u64;
        let k = TopK::<K>::for_memory(level_bytes / 4).k();
        let shape = Shape::for_memory(level_bytes.saturating_sub(TopK::<K>::bytes_for(k)), rows, C::BYTES)
            .map_err(|_| ShapeError::Memory { bytes: memory_bytes, min: smallest.bytes::<K, C>() })?;
        UnivMonShape::new(levels, shape, k)
    }

    /// Returns the smallest shape that keeps the error of a key's weight below `eps` L2 with probability 1 - `delta`,
    /// with the L2 of the keys of its level (see [`crate::CountSketch::shape_for`]).
    ///
    /// # Errors
    /// If `eps` or `delta` is not between 0 and 1, the sketch would exceed the maximum size, or `levels` is out of
    /// range.
    pub fn for_guarantee(eps: f64, delta: f64, levels: usize, k: usize) -> Result<UnivMonShape, ShapeError> {
        UnivMonShape::new(levels, CountSketch::<i32>::shape_for(eps, delta)?, k)
    }

    /// Returns (eps, delta): the error of a key's weight is at most eps times the L2 of its level with probability 1
    /// - delta. Sums over all keys have no such guarantee.
    pub fn guarantee(self) -> (f64, f64) {
        CountSketch::<i32>::guarantee(self.shape)
    }

    /// Returns the number of levels.
    pub const fn levels(self) -> usize {
        self.levels
    }

    /// Returns the number of rows and columns of each level.
    pub const fn shape(self) -> Shape {
        self.shape
    }

    /// Returns the number of keys that each level tracks.
    pub const fn k(self) -> usize {
        self.k
    }

    /// Returns the memory in bytes.
    pub fn bytes<K: Key, C: Counter>(self) -> u64 {
        self.levels as u64 * (self.shape.bytes(C::BYTES) + TopK::<K>::bytes_for(self.k))
    }
}

/// A UnivMon over keys `K` with counters of type `C`.
#[derive(Clone, Debug, PartialEq)]
pub struct UnivMon<K: Key, C: Counter = i32> {
    pub(crate) hasher: Hasher,
    pub(crate) shape: UnivMonShape,
    pub(crate) statistics: StreamStatistics,
    /// Level z has the keys of depth z; the last level also has all deeper ones.
    pub(crate) levels: Vec<Level<K, C>>,
}

/// The counters of the keys whose deepest level this is, and the largest of these keys.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Level<K: Key, C: Counter> {
    pub(crate) counters: Counters<C>,
    pub(crate) top: TopK<K>,
}

impl<K: Key, C: Counter> UnivMon<K, C> {
    /// Creates an empty UnivMon.
    pub fn new(shape: UnivMonShape, hasher: Hasher) -> UnivMon<K, C> {
        let level = || Level { counters: Counters::new(shape.shape), top: TopK::new(shape.k) };
        let levels = (0..shape.levels).map(|_| level()).collect();
        UnivMon { hasher, shape, statistics: StreamStatistics::default(), levels }
    }

    /// Returns the hash.
    pub fn hasher(&self) -> Hasher {
        self.hasher
    }

    /// Returns the shape.
    pub fn shape(&self) -> UnivMonShape {
        self.shape
    }

    /// Returns the totals of the stream.
    pub fn statistics(&self) -> &StreamStatistics {
        &self.statistics
    }

    /// Returns the memory in bytes.
    pub fn bytes(&self) -> u64 {
        self.shape.bytes::<K, C>()
    }

    /// Returns the number of additions that exceeded a counter's range.
    pub fn saturations(&self) -> u64 {
        self.levels.iter().fold(0, |sum, level| sum.saturating_add(level.counters.saturations()))
    }

    /// Adds `weight` to a key.
    pub fn add(&mut self, key: &K, weight: i64) {
        let digest = self.hasher.digest(key.as_bytes());
        let sums = Sums::of([weight]);
        self.statistics.record(&sums, Probability::ONE);
        self.add_all(&[digest], &sums, |_| weight);
        self.offer(&[digest], |_| *key);
    }

    #[inline(always)]
    fn level_of(&self, digest: Digest) -> usize {
        digest.depth(self.levels.len() as u32 - 1) as usize
    }

    /// Estimates the weight of a key.
    pub fn estimate_key(&self, key: &K) -> Estimate {
        let digest = self.hasher.digest(key.as_bytes());
        let level = &self.levels[self.level_of(digest)];
        self.estimate_in(level, digest, &self.noise_of(level))
    }

    fn noise_of(&self, level: &Level<K, C>) -> Noise {
        let row_f2 = signed_row_f2(&level.counters);
        count_sketch::noise(row_f2, self.shape.shape, &self.statistics, self.saturations())
    }

    fn estimate_in(&self, level: &Level<K, C>, digest: Digest, noise: &Noise) -> Estimate {
        count_sketch::estimate(&level.counters, digest, noise, &self.statistics)
    }

    /// Returns the k keys with the largest estimates, largest first.
    pub fn largest(&self) -> Vec<(K, Estimate)> {
        let mut all = Vec::new();
        for level in &self.levels {
            let noise = self.noise_of(level);
            let estimated =
                |candidate: &Candidate<K>| (candidate.key, self.estimate_in(level, candidate.digest, &noise));
            all.extend(level.top.candidates().iter().map(estimated));
        }
        all.sort_by(|a, b| b.1.value.total_cmp(&a.1.value).then_with(|| a.0.as_bytes().cmp(b.0.as_bytes())));
        all.truncate(self.shape.k);
        all
    }

    /// Estimates the sum of g(f) over the weights f of all keys (algorithm 2 of the paper).
    pub fn g_sum(&self, g: impl Fn(f64) -> f64) -> f64 {
        let [large, small] = self.g_sums(|weight| [g(weight)])[0];
        large + small
    }

    /// Estimates sums of several g at once, each in two parts: over the keys that are certainly large at the first
    /// level, one by one, and over all others, from their sample.
    fn g_sums<const N: usize>(&self, g: impl Fn(f64) -> [f64; N]) -> [[f64; 2]; N] {
        // Q_j: the weights of keys that are certainly large, and the level of each.
        let mut large: Vec<(i64, usize)> = Vec::new();
        let mut threshold = 0;
        let mut sums = [0.0; N];
        for (number, level) in self.levels.iter().enumerate().rev() {
            let is_deepest = number + 1 == self.levels.len();
            threshold = threshold.max(if is_deepest { 0 } else { level.certain_above() });
            let weight =
                |candidate: &Candidate<K>| level.counters.read::<true>(candidate.digest, Reading::Median);
            let here = level.top.candidates().iter().map(weight).filter(|&weight| weight > 0);
            large.extend(here.map(|weight| (weight, number)));
            large.retain(|&(weight, _)| weight > threshold);
            sums = sums.map(|sum| 2.0 * sum);
            for &(weight, level) in &large {
                let sign = if level == number { 1.0 } else { -1.0 };
                sums.iter_mut().zip(g(weight as f64)).for_each(|(sum, term)| *sum += sign * term);
            }
        }
        let mut parts = sums.map(|sum| [0.0, sum]);
        for &(weight, _) in &large {
            for ([large, small], term) in parts.iter_mut().zip(g(weight as f64)) {
                *large += term;
                *small -= term;
            }
        }
        parts
    }

    /// Estimates the number of distinct keys. A [`crate::HyperLogLog`] is more accurate; sampling misses small keys.
    pub fn distinct(&self) -> Estimate {
        Estimate { value: self.g_sum(|_| 1.0).max(0.0), bound: Bound::Unknown }
    }

    /// Estimates the entropy of the distribution of weights over keys, in bits: log2 N - (1/N) sum of f log2 f, N
    /// their sum (Lall et al. 2006). Zero for an empty stream.
    ///
    /// Keys that are not certainly large are known from a sample, which has too many or too few of them by chance.
    /// But their total weight is known, N minus the weights of the large keys, so the sample's part is scaled to it.
    /// Not if updates were sampled: then the sample lacks the smallest keys altogether.
    ///
    /// **Bound**: at least the entropy of order 2, log2(N^2 / F2) (Renyi 1961), with the upper bound of [`UnivMon::f2`];
    /// at most log2 N, that of N keys.
    pub fn entropy(&self) -> Estimate {
        let total = self.statistics.total() as f64;
        if total <= 0.0 {
            return Estimate::exact(0.0);
        }
        let [[large, small], [large_weight, small_weight]] =
            self.g_sums(|weight| [if weight > 0.0 { weight * weight.log2() } else { 0.0 }, weight]);
        let is_whole = !self.statistics.is_sampled() && !self.statistics.has_negative();
        let scale = match is_whole && small_weight > 0.0 {
            true => (total - large_weight).max(0.0) / small_weight,
            false => 1.0,
        };
        let most = total.log2().max(0.0);
        let value = (total.log2() - (large + small * scale) / total).clamp(0.0, most);
        match self.f2().bound {
            Bound::Interval { upper: f2, confidence, .. } if !self.statistics.has_negative() => {
                let least = (2.0 * total.log2() - f2.log2()).clamp(0.0, most);
                Estimate::within(value.max(least), least, most, confidence)
            }
            _ => Estimate { value, bound: Bound::Unknown },
        }
    }

    /// Estimates F2 = L2^2, the sum of the squares of all keys' weights. Levels have no key in common, so their rows'
    /// sums of squares add up.
    pub fn f2(&self) -> Estimate {
        count_sketch::f2_from(self.row_f2(), self.shape.shape, &self.statistics, self.saturations())
    }

    fn row_f2(&self) -> f64 {
        median_over_rows(&self.levels[0].counters, |row| {
            self.levels.iter().map(|level| level.counters.sum_of_squares(row)).sum()
        })
    }

    /// Merges `other` into this sketch.
    ///
    /// # Errors
    /// If levels, shapes or seeds differ; then nothing changes.
    pub fn merge(&mut self, other: &Self) -> Result<(), MergeError> {
        self.join(other, |ours, theirs| i128::from(ours) + i128::from(theirs))?;
        self.statistics.merge(&other.statistics);
        Ok(())
    }

    /// Subtracts `other` from this sketch. The candidates are those of both.
    ///
    /// # Errors
    /// If levels, shapes or seeds differ; then nothing changes.
    pub fn subtract(&mut self, other: &Self) -> Result<(), MergeError> {
        self.join(other, |ours, theirs| i128::from(ours) - i128::from(theirs))?;
        self.statistics.subtract(&other.statistics);
        Ok(())
    }

    fn join(&mut self, other: &Self, join: impl Fn(i64, i64) -> i128) -> Result<(), MergeError> {
        let (ours, theirs) = (self.shape.levels, other.shape.levels);
        if ours != theirs {
            return Err(MergeError::Levels { ours, theirs });
        }
        MergeError::unless_same_shape(self.shape.shape, other.shape.shape)?;
        MergeError::unless_same_seed(self.hasher, other.hasher)?;
        for (ours, theirs) in self.levels.iter_mut().zip(&other.levels) {
            ours.counters.join(&theirs.counters, &join);
            let counters = &ours.counters;
            ours.top.merge(&theirs.top, |digest| counters.read::<true>(digest, Reading::Median));
        }
        Ok(())
    }

    /// Multiplies all weights so far: a decay, for factors below 1.
    ///
    /// # Panics
    /// If the factor is infinite or NaN.
    pub fn scale(&mut self, factor: f64) {
        assert!(factor.is_finite(), "scale factor must be finite");
        let mut moved = 0.0f64;
        for level in &mut self.levels {
            moved = moved.max(level.counters.scale(factor));
            let counters = &level.counters;
            level.top.refresh(|digest| counters.read::<true>(digest, Reading::Median));
        }
        self.statistics.scale(factor, moved);
    }

    /// Resets the sketch.
    pub fn clear(&mut self) {
        for level in &mut self.levels {
            level.counters.clear();
            level.top.clear();
        }
        self.statistics = StreamStatistics::default();
    }
}

impl<K: Key, C: Counter> Level<K, C> {
    /// Returns a threshold above which keys are certainly large and certainly candidates: none was rejected, and
    /// noise does not reach that far. The 90th percentile of the counters' magnitudes, times three, is about five
    /// standard deviations of a row where many keys collide, and zero where few do.
    fn certain_above(&self) -> i64 {
        let mut sizes: Vec<u64> =
            self.counters.cells().iter().map(|cell| cell.get().unsigned_abs()).collect();
        let position = sizes.len() * 9 / 10;
        let (_, noise, _) = sizes.select_nth_unstable(position);
        self.top.threshold().max(i64::try_from(noise.saturating_mul(3)).unwrap_or(i64::MAX))
    }
}

/// Digests that are sorted by level together.
const GROUP: usize = 256;

impl<K: Key, C: Counter> RowWise<K> for UnivMon<K, C> {
    #[inline(always)]
    fn hasher(&self) -> Hasher {
        self.hasher
    }

    #[inline(always)]
    fn depth(&self) -> usize {
        self.shape.shape.rows()
    }

    fn statistics(&self) -> &StreamStatistics {
        &self.statistics
    }

    #[inline(always)]
    fn account_mut(&mut self) -> &mut StreamStatistics {
        &mut self.statistics
    }

    fn noise(&self) -> Noise {
        count_sketch::noise(self.row_f2(), self.shape.shape, &self.statistics, self.saturations())
    }

    #[inline(always)]
    fn add_all(&mut self, digests: &[Digest], sums: &Sums, weight: impl Fn(usize) -> i64) {
        let mut by_level = ByLevel::default();
        for (first, digests) in (0..).step_by(GROUP).zip(digests.chunks(GROUP)) {
            by_level.sort(digests, self.levels.len());
            for (level, digests, indices) in by_level.levels(&mut self.levels) {
                level.counters.add_all::<true>(digests, sums.magnitude, |position| {
                    weight(first + usize::from(indices[position]))
                });
            }
        }
    }

    #[inline(always)]
    fn locate(&self, row: usize, digest: Digest) -> CounterIndex {
        let level = self.level_of(digest);
        let (index, column) = self.levels[level].counters.locate(row, digest);
        CounterIndex { index: index as u32, level: level as u16, minus: column.minus }
    }

    #[inline(always)]
    fn prefetch(&self, position: CounterIndex) {
        self.levels[usize::from(position.level)].counters.prefetch(position.index as usize);
    }

    #[inline(always)]
    fn prefetch_offer(&self, digest: Digest) {
        self.levels[self.level_of(digest)].counters.prefetch_rows(digest);
    }

    #[inline(always)]
    fn add_at(&mut self, position: CounterIndex, weight: i64) -> bool {
        let level = &mut self.levels[usize::from(position.level)];
        let counter = level.counters.add_at(position.index as usize, position.signed(weight));
        counter.signed(position.minus).get() > level.top.threshold()
    }

    #[inline(always)]
    fn offer(&mut self, digests: &[Digest], key: impl Fn(usize) -> K) {
        let mut by_level = ByLevel::default();
        for (first, digests) in (0..).step_by(GROUP).zip(digests.chunks(GROUP)) {
            by_level.sort(digests, self.levels.len());
            for (level, digests, indices) in by_level.levels(&mut self.levels) {
                level.counters.read_all::<true>(digests, Reading::Median, |position, estimate| {
                    let key = || key(first + usize::from(indices[position]));
                    level.top.offer_with(digests[position], estimate, key);
                });
            }
        }
    }
}

/// Digests of a batch, grouped by level, so that each level gets its own loop.
struct ByLevel {
    digests: [Digest; GROUP],
    /// The index of each in the batch.
    indices: [u8; GROUP],
    /// The end of each level.
    ends: [u16; UnivMonShape::MAX_LEVELS],
}

impl Default for ByLevel {
    fn default() -> ByLevel {
        let ends = [0; UnivMonShape::MAX_LEVELS];
        ByLevel { digests: [Digest::default(); GROUP], indices: [0; GROUP], ends }
    }
}

impl ByLevel {
    /// Counting sort.
    #[inline(always)]
    fn sort(&mut self, digests: &[Digest], levels: usize) {
        let deepest = levels as u32 - 1;
        let mut next = [0u16; UnivMonShape::MAX_LEVELS + 1];
        for digest in digests {
            next[digest.depth(deepest) as usize + 1] += 1;
        }
        for level in 0..levels {
            next[level + 1] += next[level];
        }
        self.ends.copy_from_slice(&next[1..]);
        for (position, &digest) in digests.iter().enumerate() {
            let next = &mut next[digest.depth(deepest) as usize];
            self.digests[usize::from(*next)] = digest;
            self.indices[usize::from(*next)] = position as u8;
            *next += 1;
        }
    }

    /// Returns each level that has digests, with the digests and their indices in the batch.
    #[inline(always)]
    fn levels<'a, L>(
        &'a self,
        levels: &'a mut [L],
    ) -> impl Iterator<Item = (&'a mut L, &'a [Digest], &'a [u8])> {
        let mut begin = 0;
        levels.iter_mut().zip(&self.ends).filter_map(move |(level, &end)| {
            let span = std::mem::replace(&mut begin, usize::from(end))..usize::from(end);
            (!span.is_empty()).then(|| (level, &self.digests[span.clone()], &self.indices[span]))
        })
    }
}
