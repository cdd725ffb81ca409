//! One hash per key: 128 bits, from which every sketch takes the slices it needs.
//!
//! The hash is XXH3-128 with a seed, as published by its author (Collet, xxHash specification 0.2). It is the same on
//! every machine and in every language that has the library, so a state written in one place can be read and merged
//! in another. Its name and version are part of every saved state ([`HASH_NAME`]).
//!
//! The guarantees of this crate assume that the hash is a random function. That is a good model as long as the seed
//! is secret. An attacker who knows the seed can prepare colliding keys, so a program that monitors hostile traffic
//! draws its seed at random and saves it with the state.

use xxhash_rust::xxh3::xxh3_128_with_seed;

/// The name of the hash in saved states.
pub const HASH_NAME: &str = "XXH3-128";

/// The hash that all sketches share, with its seed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Hasher {
    seed: u64,
}

impl Hasher {
    /// Creates the hash with this seed.
    pub const fn new(seed: u64) -> Hasher {
        Hasher { seed }
    }

    /// Returns the seed.
    pub const fn seed(&self) -> u64 {
        self.seed
    }

    /// Returns the digest of a key's bytes.
    #[inline(always)]
    pub fn digest(&self, key: &[u8]) -> Digest {
        let hash = xxh3_128_with_seed(key, self.seed);
        Digest([hash as u64, (hash >> 64) as u64])
    }
}

/// A key's hash: the low and the high half of XXH3-128.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, bytemuck::Pod, bytemuck::Zeroable,
)]
#[repr(transparent)]
pub struct Digest(pub [u64; 2]);

impl Digest {
    /// Bits at the top of the second word that no row uses: they choose a key's depth in UnivMon.
    pub const DEPTH_BITS: u32 = 16;

    /// Returns the deepest level of the key in nested substreams, each of which keeps half of the keys of the
    /// previous one: the number of leading ones of the second word, at most `deepest`.
    #[inline(always)]
    pub const fn depth(self, deepest: u32) -> u32 {
        let ones = self.0[1].leading_ones();
        if ones < deepest { ones } else { deepest }
    }

    /// Returns 64 bits that distinguish keys in a table.
    #[inline(always)]
    pub const fn fingerprint(self) -> u64 {
        self.0[0] ^ self.0[1].rotate_left(32)
    }
}

/// A key that a sketch can count: a small value with canonical bytes, which are hashed and stored.
pub trait Key: Copy + Eq {
    /// Returns the bytes; two keys have equal bytes exactly if they are equal.
    fn as_bytes(&self) -> &[u8];

    /// Returns the key with these bytes, if it exists: the inverse of [`Key::as_bytes`].
    fn from_bytes(bytes: &[u8]) -> Option<Self>;
}

impl<const N: usize> Key for [u8; N] {
    #[inline(always)]
    fn as_bytes(&self) -> &[u8] {
        self
    }

    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The output of the reference implementation (xxHash 0.8.4, through its Python binding) for these 13 bytes with
    /// seed 7.
    #[test]
    fn a_digest_is_the_reference_hash() {
        let words = [0xbb2e_8794_7eb2_03bb, 0x8ad1_9ed4_759b_51c0];
        assert_eq!(Hasher::new(7).digest(b"thalweg-flows"), Digest(words));
        assert_ne!(Hasher::new(8).digest(b"thalweg-flows"), Digest(words));
    }

    #[test]
    fn each_level_has_half_of_the_keys_of_the_level_below() {
        let hasher = Hasher::new(1);
        let mut at_depth = [0u32; 5];
        for key in 0u32..40_000 {
            at_depth[hasher.digest(&key.to_le_bytes()).depth(4) as usize] += 1;
        }
        // 40,000 coin tosses; five standard deviations of the first bin are 500.
        for (depth, expected) in [20_000, 10_000, 5_000, 2_500, 2_500].into_iter().enumerate() {
            assert!(at_depth[depth].abs_diff(expected) < 500, "{at_depth:?}");
        }
    }
}
