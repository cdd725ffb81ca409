//! Keys of one length, one behind another in memory.

use super::error::AnyError;
use crate::digest::{Digest, Hasher, Key as _};
use crate::memory::prefetch;
use crate::nitro::Batch;
use crate::state::KeyBytes;
use crate::stream_statistics::Sums;

/// A batch of keys, with their weights if these are not 1.
#[derive(Clone, Copy, Debug)]
pub(super) struct Keys<'a> {
    bytes: &'a [u8],
    key_bytes: usize,
    count: usize,
    weights: Option<&'a [i64]>,
}

impl<'a> Keys<'a> {
    pub(super) fn new(
        bytes: &'a [u8],
        key_bytes: usize,
        weights: Option<&'a [i64]>,
    ) -> Result<Keys<'a>, AnyError> {
        if key_bytes == 0 || key_bytes > KeyBytes::MAX_LENGTH {
            return Err(AnyError::KeyBytes { key_bytes });
        }
        if !bytes.len().is_multiple_of(key_bytes) {
            return Err(AnyError::PartOfAKey { bytes: bytes.len(), key_bytes });
        }
        let count = bytes.len() / key_bytes;
        match weights {
            Some(weights) if weights.len() != count => {
                Err(AnyError::Weights { weights: weights.len(), keys: count })
            }
            _ => Ok(Keys { bytes, key_bytes, count, weights }),
        }
    }

    #[inline(always)]
    fn of(&self, number: usize) -> &'a [u8] {
        &self.bytes[number * self.key_bytes..][..self.key_bytes]
    }
}

impl Batch for Keys<'_> {
    type Key = KeyBytes;

    fn len(&self) -> usize {
        self.count
    }

    #[inline(always)]
    fn key(&self, number: usize) -> KeyBytes {
        KeyBytes::from_bytes(self.of(number)).expect("the length was checked")
    }

    #[inline(always)]
    fn prefetch(&self, number: usize) {
        prefetch(&self.bytes[number * self.key_bytes]);
    }

    #[inline(always)]
    fn digest(&self, number: usize, hasher: Hasher) -> Digest {
        hasher.digest(self.of(number))
    }

    #[inline(always)]
    fn weight(&self, number: usize) -> i64 {
        self.weights.map_or(1, |weights| weights[number])
    }

    #[inline(always)]
    fn sums(&self, from: usize, to: usize) -> Sums {
        match self.weights {
            None => Sums::ones(to - from),
            Some(weights) => Sums::of(weights[from..to].iter().copied()),
        }
    }
}
