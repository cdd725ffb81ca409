//! What is counted: a batch of keys with their weights, looked at only where it is sampled.

use crate::account::Sums;
use crate::digest::{Digest, Hasher, Key};
use crate::memory::prefetch;

/// A batch of packets, seen as keys and weights. A sampled sketch asks for few of the keys, so a key is best made
/// when it is asked for.
pub trait Batch {
    /// What is counted.
    type Key: Key;

    /// Packets.
    fn len(&self) -> usize;

    /// Whether there are none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The key of packet `number`.
    fn key(&self, number: usize) -> Self::Key;

    /// Asks for the memory that the key of packet `number` is in.
    #[inline(always)]
    fn prefetch(&self, _number: usize) {}

    /// The digest of that key. To be overridden where the key's bytes can be hashed in their place: a key that was
    /// just put together on the stack cannot be read at once in larger pieces than it was written in.
    #[inline(always)]
    fn digest(&self, number: usize, hasher: Hasher) -> Digest {
        hasher.digest(self.key(number).as_bytes())
    }

    /// The weight of packet `number`.
    #[inline(always)]
    fn weight(&self, _number: usize) -> i64 {
        1
    }

    /// What the weights of packets `from..to` add up to.
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
