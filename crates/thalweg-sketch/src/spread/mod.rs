//! Superspreaders: keys with many distinct peers, such as a scanning source or a flooded destination.
//!
//! A Count-Min of distinct counters, for the superspreader task of Yu, Jose, Miao 2013, "Software defined traffic
//! measurement with OpenSketch". A packet adds its peer to one cell of each row, a [HyperLogLog] of 2^c registers; a
//! key's estimate is the minimum of its cells. The estimate can only change when a register changes, so only then is
//! it read and offered to a [`TopK`]. A packet between known peers costs three reads of three cache lines.
//! (SpreadSketch, Tang, Huang, Lee 2020, keeps a candidate in each cell; ours are in a separate table of its own
//! size.)
//!
//! **Guarantee.** [`Collisions`] derives it. The estimate is too high by the collisions, like that of Count-Min, and
//! has its cell's standard error of 1.04/sqrt(2^c), 13 % with 64 registers, to either side. Collisions are not
//! corrected: those of a superspreader are few beside its own peers. There is no sampling, because a peer that was
//! not sampled is not counted.
//!
//! A key is listed only if it is a candidate; [`Spread::missed_up_to`] returns the size of the keys that may be
//! missing.
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

/// Packets whose registers are prefetched together.
const GROUP: usize = 32;

/// Counts the distinct peers of each key.
#[derive(Clone, Debug, PartialEq)]
pub struct Spread<K: Key> {
    hasher: Hasher,
    cells: Cells,
    top: TopK<K>,
    /// The estimates that may be missing in the sketches that were merged into this one.
    missed_in_parts: u64,
}

impl<K: Key> Spread<K> {
    /// The minimum registers of a cell: 2^4, a standard error of 26 %.
    pub const MIN_CELL_PRECISION: u8 = 4;
    /// The maximum registers of a cell: 2^8, a standard error of 6.5 %.
    pub const MAX_CELL_PRECISION: u8 = 8;
    /// The default: a cell of 2^6 registers is a cache line, and its standard error is 13 %.
    pub const CELL_PRECISION: u8 = 6;
    /// The default number of rows.
    pub const ROWS: usize = 3;

    /// Creates an empty sketch of `shape` cells with 2^`cell_precision` registers each, and up to `k` candidates.
    ///
    /// # Errors
    /// If `cell_precision` is not in 4..=8.
    pub fn new(shape: Shape, cell_precision: u8, k: usize, hasher: Hasher) -> Result<Spread<K>, SizeError> {
        let precision = check_precision(cell_precision, Self::MIN_CELL_PRECISION, Self::MAX_CELL_PRECISION)?;
        Ok(Spread { hasher, cells: Cells::new(shape, precision), top: TopK::new(k), missed_in_parts: 0 })
    }

    /// Creates the widest sketch of [`Spread::ROWS`] rows that takes at most `memory_bytes`, of which up to an eighth
    /// is for candidates.
    ///
    /// # Errors
    /// If the memory is too small for the smallest one.
    pub fn for_memory(memory_bytes: u64, hasher: Hasher) -> Result<Spread<K>, SizeError> {
        let cell = 1 << Self::CELL_PRECISION;
        let min = (Self::ROWS * Shape::MIN_WIDTH * cell) as u64 + TopK::<K>::bytes_for(1);
        let too_little = SizeError::Memory { bytes: memory_bytes, min };
        if memory_bytes < min {
            return Err(too_little);
        }
        let for_candidates = (memory_bytes / 8).max(TopK::<K>::bytes_for(1));
        let k = TopK::<K>::for_memory(for_candidates).k();
        let shape =
            Shape::for_memory(memory_bytes - for_candidates, Self::ROWS, cell).map_err(|_| too_little)?;
        Spread::new(shape, Self::CELL_PRECISION, k, hasher)
    }

    /// Restores a saved sketch: `registers` of all cells, row by row, its candidates and its
    /// [`Spread::missed_up_to`].
    ///
    /// # Errors
    /// If the precision is out of range, the number of registers does not match shape and precision, or a register
    /// has an impossible rank.
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

    /// Returns the hash of keys and peers.
    pub fn hasher(&self) -> Hasher {
        self.hasher
    }

    /// Returns the number of rows, and of cells in each.
    pub fn shape(&self) -> Shape {
        self.cells.shape()
    }

    /// Returns c, the binary logarithm of a cell's registers.
    pub fn cell_precision(&self) -> u8 {
        self.cells.precision()
    }

    /// Returns the registers of all cells, row by row.
    pub fn registers(&self) -> &[u8] {
        self.cells.registers()
    }

    /// Returns the candidates for the most peers, with their estimates when they last met a new peer.
    pub fn candidates(&self) -> &TopK<K> {
        &self.top
    }

    /// Returns the memory of registers and candidates, in bytes.
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
    /// If the numbers of keys and peers differ.
    #[inline(always)]
    pub fn add_batch(&mut self, keys: &[Digest], peers: &[Digest], key: impl Fn(usize) -> K) {
        assert_eq!(keys.len(), peers.len(), "number of keys and peers");
        for start in (0..keys.len()).step_by(GROUP) {
            let end = keys.len().min(start + GROUP);
            let (grown, count) = self.add_group(&keys[start..end], &peers[start..end]);
            for &number in &grown[..count] {
                let number = start + usize::from(number);
                self.offer(keys[number], || key(number));
            }
        }
    }

    /// Counts up to [`GROUP`] peers: first locates and prefetches all registers, then raises them. Returns the
    /// indices of the packets that changed a register: a list and its length.
    #[inline(always)]
    fn add_group(&mut self, keys: &[Digest], peers: &[Digest]) -> ([u8; GROUP], usize) {
        let rows = self.cells.shape().rows();
        let mut registers = [[0usize; GROUP]; Shape::MAX_ROWS];
        let mut ranks = [0u8; GROUP];
        for (number, (&key, &peer)) in keys.iter().zip(peers).enumerate().take(GROUP) {
            for (row, registers) in registers.iter_mut().enumerate().take(rows) {
                (registers[number], ranks[number]) = self.cells.locate(row, key, peer);
            }
        }
        let (mut grown, mut count) = ([0; GROUP], 0);
        for number in 0..keys.len().min(GROUP) {
            let mut grows = false;
            for registers in &registers[..rows] {
                grows |= self.cells.raise(registers[number], ranks[number]);
            }
            grown[count % GROUP] = number as u8;
            count += usize::from(grows);
        }
        (grown, count)
    }

    /// Offers a key to the candidates, unless one of its rows already excludes it.
    #[inline(always)]
    fn offer(&mut self, digest: Digest, key: impl FnOnce() -> K) {
        let threshold = self.top.threshold() as f64 + 0.5;
        let mut min = f64::INFINITY;
        for row in 0..self.cells.shape().rows() {
            min = min.min(self.cells.peers(row, digest));
            if min < threshold {
                return;
            }
        }
        self.top.offer(&key(), digest, min.round() as i64);
    }

    /// Measures the current collisions. Reads every register: call it once for many estimates.
    pub fn collisions(&self) -> Collisions {
        Collisions::of(&self.cells)
    }

    /// Estimates the number of distinct peers of the key of `digest`; `collisions` comes from [`Spread::collisions`].
    /// Exactly zero if a row has no peer for it.
    pub fn estimate(&self, digest: Digest, collisions: &Collisions) -> Estimate {
        collisions.estimate(&self.cells, digest)
    }

    /// Estimates the number of distinct peers of a key. For many keys call [`Spread::collisions`] once and
    /// [`Spread::estimate`] for each.
    pub fn estimate_key(&self, key: &K) -> Estimate {
        self.estimate(self.hasher.digest(key.as_bytes()), &self.collisions())
    }

    /// Returns the candidates with an estimate above `threshold`, most peers first. See [`Spread::missed_up_to`] for
    /// keys that are not candidates.
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

    /// Returns the largest estimate that a missing key may have had, rounded, when it last raised a register. Keys
    /// that never raised one may be missing too: other keys had raised all of their registers, in every row, so that
    /// they have no more peers than [`Collisions`] allows for.
    ///
    /// Zero until the candidates have exceeded their limit. After a merge it is the sum over the parts, since the
    /// peers of a key that is missing in each part may add up.
    pub fn missed_up_to(&self) -> u64 {
        self.missed_in_parts.max(self.top.threshold().unsigned_abs())
    }

    /// Returns the part of [`Spread::missed_up_to`] that does not come from the threshold of the candidates.
    pub(crate) fn missed_in_parts(&self) -> u64 {
        self.missed_in_parts
    }

    /// Merges `other` into this sketch. Candidates of both get new estimates.
    ///
    /// # Errors
    /// If shapes, precisions or seeds differ; then nothing changes.
    pub fn merge(&mut self, other: &Spread<K>) -> Result<(), MergeError> {
        MergeError::unless_same_shape(self.shape(), other.shape())?;
        MergeError::unless_same_precision(self.cell_precision(), other.cell_precision())?;
        MergeError::unless_same_seed(self.hasher, other.hasher)?;
        self.missed_in_parts = self.missed_up_to().saturating_add(other.missed_up_to());
        self.cells.join(&other.cells);
        let cells = &self.cells;
        self.top.merge(&other.top, |digest| cells.min_peers(digest).round() as i64);
        Ok(())
    }

    /// Resets the sketch.
    pub fn clear(&mut self) {
        self.cells.clear();
        self.top.clear();
        self.missed_in_parts = 0;
    }
}

#[cfg(test)]
mod tests;
