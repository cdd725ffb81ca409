//! Superspreaders: keys that many different peers are seen with, such as a source that scans or a destination
//! that is flooded.
//!
//! A Count-Min of distinct counters, as a task that sketches can do posed by Yu, Jose, Miao 2013, "Software defined
//! traffic measurement with OpenSketch". A packet adds its peer to one cell of each row, a [HyperLogLog] of 2^c
//! registers; a key's estimate is the least of its cells. Only when a register grew has anything changed, and
//! only then is the key's estimate read and offered to a [`TopK`]; a packet between hosts that have met before
//! costs three looks at three cache lines. (SpreadSketch, Tang, Huang, Lee 2020, keeps a candidate in each cell
//! instead; ours are in a table of their own, of a size of its own.)
//!
//! **Guarantee.** [`Collisions`] derives it. The estimate is too high by what collides, like Count-Min's, and
//! errs besides by its cell's 1.04/sqrt(2^c), 13 % with 64 registers, to either side. Nothing is corrected for
//! collisions: those of a superspreader are few beside its own peers. Sampling is of no use here (a peer that was
//! not sampled is not counted), so there is none.
//!
//! A key is listed only if it is a candidate; [`Spread::missed_up_to`] says what may be missing.
//!
//! Memory: 2^c bytes for each cell, and the candidates. A packet touches one cache line of each row.
//!
//! [HyperLogLog]: crate::hyper_log_log

mod cells;
mod collisions;

use crate::digest::{Digest, Hasher, Key};
use crate::estimate::Estimate;
use crate::hyper_log_log::size::{RegistersError, SizeError, check_precision, check_registers};
use crate::merge::MergeError;
use crate::shape::Shape;
use crate::top_k::TopK;
use cells::Cells;
pub use collisions::Collisions;

/// Packets whose registers are asked for together.
const GROUP: usize = 32;

/// For each key, how many different peers it was seen with.
#[derive(Clone, Debug, PartialEq)]
pub struct Spread<K: Key> {
    hasher: Hasher,
    cells: Cells,
    top: TopK<K>,
    /// What was missing in the parts that this was merged from.
    missed_in_parts: u64,
}

impl<K: Key> Spread<K> {
    /// The fewest registers of a cell: 2^4, a standard error of 26 %.
    pub const MIN_CELL_PRECISION: u8 = 4;
    /// The most registers of a cell: 2^8, a standard error of 6.5 %.
    pub const MAX_CELL_PRECISION: u8 = 8;
    /// A cell of 2^6 registers is a cache line; its standard error is 13 %.
    pub const CELL_PRECISION: u8 = 6;
    /// Rows, unless told otherwise.
    pub const ROWS: usize = 3;

    /// An empty one, of `shape` cells with 2^`cell_precision` registers each, and room for `k` candidates.
    ///
    /// # Errors
    /// If `cell_precision` is not in 4..=8.
    pub fn new(shape: Shape, cell_precision: u8, k: usize, hasher: Hasher) -> Result<Spread<K>, SizeError> {
        let precision = check_precision(cell_precision, Self::MIN_CELL_PRECISION, Self::MAX_CELL_PRECISION)?;
        Ok(Spread { hasher, cells: Cells::new(shape, precision), top: TopK::new(k), missed_in_parts: 0 })
    }

    /// The widest one of [`Spread::ROWS`] rows that takes at most `memory_bytes`, an eighth of that, or less, for
    /// candidates.
    ///
    /// # Errors
    /// If the memory does not hold the smallest one.
    pub fn for_memory(memory_bytes: u64, hasher: Hasher) -> Result<Spread<K>, SizeError> {
        let cell = 1 << Self::CELL_PRECISION;
        let least = (Self::ROWS * Shape::MIN_WIDTH * cell) as u64 + TopK::<K>::bytes_for(1);
        let too_little = SizeError::Memory { bytes: memory_bytes, least };
        if memory_bytes < least {
            return Err(too_little);
        }
        let for_candidates = (memory_bytes / 8).max(TopK::<K>::bytes_for(1));
        let k = TopK::<K>::for_memory(for_candidates).k();
        let shape =
            Shape::for_memory(memory_bytes - for_candidates, Self::ROWS, cell).map_err(|_| too_little)?;
        Spread::new(shape, Self::CELL_PRECISION, k, hasher)
    }

    /// One as it was saved: `registers` of all cells, row after row, with its candidates and what
    /// [`Spread::missed_up_to`] said.
    ///
    /// # Errors
    /// If the precision is out of range, the registers are not as many as shape and precision say, or one has a
    /// rank that no hash has.
    pub fn from_registers(
        shape: Shape,
        cell_precision: u8,
        hasher: Hasher,
        registers: &[u8],
        candidates: TopK<K>,
        missed_up_to: u64,
    ) -> Result<Spread<K>, RegistersError> {
        check_precision(cell_precision, Self::MIN_CELL_PRECISION, Self::MAX_CELL_PRECISION)?;
        check_registers(registers, shape.counters() << cell_precision, cell_precision)?;
        let mut cells = Cells::new(shape, cell_precision);
        cells.registers_mut().copy_from_slice(registers);
        Ok(Spread { hasher, cells, top: candidates, missed_in_parts: missed_up_to })
    }

    /// Its hash, of keys and of peers.
    pub fn hasher(&self) -> Hasher {
        self.hasher
    }

    /// Its rows and the cells in each.
    pub fn shape(&self) -> Shape {
        self.cells.shape()
    }

    /// c: the binary logarithm of a cell's registers.
    pub fn cell_precision(&self) -> u8 {
        self.cells.precision()
    }

    /// The registers of all cells, row after row.
    pub fn registers(&self) -> &[u8] {
        self.cells.registers()
    }

    /// The keys that may have the most peers, with their estimates when they last met a new one.
    pub fn candidates(&self) -> &TopK<K> {
        &self.top
    }

    /// Memory of its registers and candidates, in bytes.
    pub fn bytes(&self) -> u64 {
        self.cells.bytes() + self.top.bytes()
    }

    /// Counts a peer of a key, unless it was counted before.
    pub fn add(&mut self, key: &K, peer: &impl Key) {
        let digest = self.hasher.digest(key.as_bytes());
        let peer = self.hasher.digest(peer.as_bytes());
        self.add_batch(&[digest], &[peer], |_| *key);
    }

    /// Counts for each i the peer of digest `peers[i]` with the key of digest `keys[i]`, which is `key(i)`.
    ///
    /// # Panics
    /// If there are not as many peers as keys.
    #[inline(always)]
    pub fn add_batch(&mut self, keys: &[Digest], peers: &[Digest], key: impl Fn(usize) -> K) {
        assert_eq!(keys.len(), peers.len(), "each key has a peer");
        for start in (0..keys.len()).step_by(GROUP) {
            let end = keys.len().min(start + GROUP);
            let (grown, count) = self.add_group(&keys[start..end], &peers[start..end]);
            for &number in &grown[..count] {
                let number = start + usize::from(number);
                self.offer(keys[number], || key(number));
            }
        }
    }

    /// Counts up to [`GROUP`] peers: first all registers are found and asked for, then all are raised. Which of
    /// the packets raised one is the answer: a list and its length.
    #[inline(always)]
    fn add_group(&mut self, keys: &[Digest], peers: &[Digest]) -> ([u8; GROUP], usize) {
        let rows = self.cells.shape().rows();
        let mut places = [[0usize; GROUP]; Shape::MAX_ROWS];
        let mut ranks = [0u8; GROUP];
        for (number, (&key, &peer)) in keys.iter().zip(peers).enumerate().take(GROUP) {
            for (row, places) in places.iter_mut().enumerate().take(rows) {
                (places[number], ranks[number]) = self.cells.locate(row, key, peer);
            }
        }
        let (mut grown, mut count) = ([0; GROUP], 0);
        for number in 0..keys.len().min(GROUP) {
            let mut grows = false;
            for places in &places[..rows] {
                grows |= self.cells.raise(places[number], ranks[number]);
            }
            grown[count % GROUP] = number as u8;
            count += usize::from(grows);
        }
        (grown, count)
    }

    /// Offers a key to the candidates, unless one of its rows has already turned it away.
    #[inline(always)]
    fn offer(&mut self, digest: Digest, key: impl FnOnce() -> K) {
        let threshold = self.top.threshold() as f64 + 0.5;
        let mut least = f64::INFINITY;
        for row in 0..self.cells.shape().rows() {
            least = least.min(self.cells.peers(row, digest));
            if least < threshold {
                return;
            }
        }
        self.top.offer(&key(), digest, least.round() as i64);
    }

    /// How crowded it is now. Looks at every register: ask once for many estimates.
    pub fn collisions(&self) -> Collisions {
        Collisions::of(&self.cells)
    }

    /// Number of different peers of the key of `digest`, with `collisions` as [`Spread::collisions`] gave them.
    /// Exactly zero if a row has seen nothing of it.
    pub fn estimate(&self, digest: Digest, collisions: &Collisions) -> Estimate {
        collisions.estimate(&self.cells, digest)
    }

    /// Number of different peers of a key. For many keys ask [`Spread::collisions`] once and [`Spread::estimate`]
    /// for each.
    pub fn estimate_key(&self, key: &K) -> Estimate {
        self.estimate(self.hasher.digest(key.as_bytes()), &self.collisions())
    }

    /// Keys with more than `threshold` peers by their estimates, most peers first; of those that are candidates,
    /// see [`Spread::missed_up_to`].
    pub fn above(&self, threshold: u64) -> Vec<(K, Estimate)> {
        let collisions = self.collisions();
        let estimated = self.top.candidates().iter().map(|candidate| {
            let estimate = self.estimate(candidate.digest, &collisions);
            (candidate.digest, candidate.key, estimate)
        });
        let mut above: Vec<_> =
            estimated.filter(|(_, _, estimate)| estimate.value > threshold as f64).collect();
        above.sort_unstable_by(|a, b| b.2.value.total_cmp(&a.2.value).then(a.0.cmp(&b.0)));
        above.into_iter().map(|(_, key, estimate)| (key, estimate)).collect()
    }

    /// Keys may be missing from the candidates whose estimate, rounded, was not above this when they last raised a
    /// register. No others are, except keys that never raised one: other keys had raised all of theirs, in every
    /// row, so that they have no more peers than [`Collisions`] allows for.
    ///
    /// Zero until the candidates have been too many. After a merge the sum over the parts, since peers of a key
    /// that was missing in each may add up.
    pub fn missed_up_to(&self) -> u64 {
        self.missed_in_parts.max(self.top.threshold().unsigned_abs())
    }

    /// What [`Spread::missed_up_to`] says apart from the threshold of the candidates.
    pub(crate) fn missed_in_parts(&self) -> u64 {
        self.missed_in_parts
    }

    /// Makes it that of both streams. Candidates of both are estimated anew.
    ///
    /// # Errors
    /// If shapes, precisions or seeds differ; then nothing has changed.
    pub fn merge(&mut self, other: &Spread<K>) -> Result<(), MergeError> {
        MergeError::unless_same_shape(self.shape(), other.shape())?;
        MergeError::unless_same_precision(self.cell_precision(), other.cell_precision())?;
        MergeError::unless_same_seed(self.hasher, other.hasher)?;
        self.missed_in_parts = self.missed_up_to().saturating_add(other.missed_up_to());
        self.cells.join(&other.cells);
        let cells = &self.cells;
        self.top.merge(&other.top, |digest| cells.least(digest).round() as i64);
        Ok(())
    }

    /// Forgets all keys and peers.
    pub fn clear(&mut self) {
        self.cells.clear();
        self.top.clear();
        self.missed_in_parts = 0;
    }
}

#[cfg(test)]
mod tests;
