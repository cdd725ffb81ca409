//! A batch of keys with their weights; only sampled packets are read.

use crate::digest::{Digest, Hasher, Key};
use crate::memory::prefetch;
use crate::stream_statistics::Sums;

/// A batch of packets as keys and weights. A sampled sketch needs few of the keys, so a batch should build a key only
/// on request.
pub trait Batch {
    /// The key type.
    type Key: Key;

    /// The number of packets.
    fn len(&self) -> usize;

    /// Whether the batch is empty.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the key of packet `number`.
    fn key(&self, number: usize) -> Self::Key;

    /// Prefetches the memory of the key of packet `number`.
    #[inline(always)]
    fn prefetch(&self, _number: usize) {}

    /// Returns the digest of that key. Override it where the key's bytes can be hashed in place: reading a key that
    /// was just built on the stack stalls if the reads are wider than the writes.
    #[inline(always)]
    fn digest(&self, number: usize, hasher: Hasher) -> Digest {
        hasher.digest(self.key(number).as_bytes())
    }

    /// Returns the weight of packet `number`.
    #[inline(always)]
    fn weight(&self, _number: usize) -> i64 {
        1
    }

    /// Returns the totals of the weights of packets `from..to`.
    #[inline(always)]
    fn sums(&self, from: usize, to: usize) -> Sums {
        Sums::of((from..to).map(|number| self.weight(number)))
    }
}

/// Keys, each with a weight of one.
impl<K: Key> Batch for [K] {
    type Key = K;

    fn len(&self) -> usize {
        <[K]>::len(self)
    }

    #[inline(always)]
    fn key(&self, number: usize) -> K {
        self[number]
    }

    #[inline(always)]
    fn prefetch(&self, number: usize) {
        prefetch(&self[number]);
    }

    #[inline(always)]
    fn digest(&self, number: usize, hasher: Hasher) -> Digest {
        hasher.digest(self[number].as_bytes())
    }

    fn sums(&self, from: usize, to: usize) -> Sums {
        Sums::ones(to - from)
    }
}

/// Keys with weights.
impl<K: Key> Batch for [(K, i64)] {
    type Key = K;

    fn len(&self) -> usize {
        <[(K, i64)]>::len(self)
    }

    #[inline(always)]
    fn key(&self, number: usize) -> K {
        self[number].0
    }

    #[inline(always)]
    fn prefetch(&self, number: usize) {
        prefetch(&self[number]);
    }

    #[inline(always)]
    fn digest(&self, number: usize, hasher: Hasher) -> Digest {
        hasher.digest(self[number].0.as_bytes())
    }

    #[inline(always)]
    fn weight(&self, number: usize) -> i64 {
        self[number].1
    }
}
