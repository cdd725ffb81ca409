//! Tracks the keys with the largest estimates, beside a sketch that cannot list its keys.
//!
//! It holds at most 2 k candidates. When it is full, the smaller half is dropped, and the smallest remaining estimate
//! becomes the threshold. Most offers do not exceed the threshold and are rejected before any lookup. An offer of an
//! existing candidate costs one lookup and a store. A heap would have to reorder itself for each of these. Halving
//! costs O(k) and happens after k new keys, so an offer costs O(1) on average.
//!
//! Candidates are as good as the estimates offered: a key whose estimate has never exceeded the threshold is not
//! included. All of the k largest are candidates as long as every key is offered with its current estimate when its
//! weight grows, and estimates are exact. With errors, keys within the error of the k-th may be missed.
//!
//! Memory: 2 k entries of a key, a fingerprint and an estimate, and 4 bytes for each of at least 4 k slots.

use crate::digest::{Digest, Key};
use crate::memory::prefetch;

/// Up to k keys with the largest estimates, and up to k more candidates.
#[derive(Clone, Debug)]
pub struct TopK<K> {
    k: usize,
    candidates: Vec<Candidate<K>>,
    /// Open addressing: one more than the candidate's index, or zero; the number of slots is a power of two.
    slots: Vec<u32>,
    /// Estimates up to this value are rejected.
    threshold: i64,
}

/// A key and its estimate when it was last offered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Candidate<K> {
    /// The key.
    pub key: K,
    /// Its digest.
    pub digest: Digest,
    /// The estimate.
    pub estimate: i64,
}

impl<K: Key> TopK<K> {
    /// The maximum number of keys; larger values of k are reduced to it.
    pub const MAX_K: usize = 1 << 24;

    /// Creates an empty top-k of the `k` largest keys; at least one.
    pub fn new(k: usize) -> TopK<K> {
        let k = k.clamp(1, Self::MAX_K);
        let slots = vec![0; (4 * k).next_power_of_two()];
        TopK { k, candidates: Vec::with_capacity(2 * k), slots, threshold: 0 }
    }

    /// Restores a saved top-k; `None` if a key is repeated. It allocates memory for these candidates only and grows
    /// later, so an untrusted `k` costs nothing.
    pub(crate) fn from_candidates(
        k: usize,
        threshold: i64,
        candidates: Vec<Candidate<K>>,
    ) -> Option<TopK<K>> {
        let slots = vec![0; (2 * candidates.len()).next_power_of_two().max(4)];
        let mut top = TopK { k, candidates: Vec::with_capacity(candidates.len()), slots, threshold };
        for candidate in candidates {
            let slot = top.find(&candidate.key, candidate.digest).err()?;
            top.candidates.push(candidate);
            top.slots[slot] = top.candidates.len() as u32;
        }
        Some(top)
    }

    /// Creates an empty top-k with the largest k for which [`TopK::bytes`] is at most `memory_bytes`; at least one.
    pub fn for_memory(memory_bytes: u64) -> TopK<K> {
        // The number of slots is a power of two, so k cannot be computed by a division.
        let (mut fits, mut too_many) = (1, Self::MAX_K + 1);
        while too_many - fits > 1 {
            let k = usize::midpoint(fits, too_many);
            if Self::bytes_for(k) <= memory_bytes {
                fits = k;
            } else {
                too_many = k;
            }
        }
        TopK::new(fits)
    }

    /// Returns k, the number of keys to track.
    pub fn k(&self) -> usize {
        self.k
    }

    /// Returns the memory for `k` keys, in bytes.
    pub fn bytes_for(k: usize) -> u64 {
        (2 * k * size_of::<Candidate<K>>() + (4 * k).next_power_of_two() * size_of::<u32>()) as u64
    }

    /// Returns the memory in bytes.
    pub fn bytes(&self) -> u64 {
        Self::bytes_for(self.k)
    }

    /// Returns the threshold: estimates up to this value are rejected.
    #[inline(always)]
    pub fn threshold(&self) -> i64 {
        self.threshold
    }

    /// Prefetches the memory that an offer reads first.
    #[inline(always)]
    pub fn prefetch(&self, digest: Digest) {
        prefetch(&self.slots[digest.fingerprint() as usize & (self.slots.len() - 1)]);
    }

    /// Offers a key with its estimate. Estimates of zero or less are never kept.
    #[inline(always)]
    pub fn offer(&mut self, key: &K, digest: Digest, estimate: i64) {
        self.offer_with(digest, estimate, || *key);
    }

    /// Offers a key that is built only if it is needed.
    #[inline(always)]
    pub fn offer_with(&mut self, digest: Digest, estimate: i64, key: impl FnOnce() -> K) {
        if estimate > self.threshold {
            self.insert(digest, estimate, &key());
        }
    }

    #[inline(never)]
    fn insert(&mut self, digest: Digest, estimate: i64, key: &K) {
        let slot = match self.find(key, digest) {
            Ok(known) => {
                self.candidates[known].estimate = estimate;
                return;
            }
            Err(slot) => slot,
        };
        self.make_room();
        self.candidates.push(Candidate { key: *key, digest, estimate });
        self.slots[slot] = self.candidates.len() as u32;
        if self.candidates.len() == 2 * self.k {
            self.halve();
        } else if 2 * self.candidates.len() > self.slots.len() {
            self.slots = vec![0; 2 * self.slots.len()];
            self.fill_slots();
        }
    }

    /// Grows the candidates by doubling, like any vector, but never beyond 2 k.
    #[inline(always)]
    fn make_room(&mut self) {
        let taken = self.candidates.len();
        if taken == self.candidates.capacity() {
            let room = (2 * taken).max(4).min(2 * self.k);
            self.candidates.reserve_exact(room.saturating_sub(taken));
        }
    }

    /// Returns the candidate's index, or the free slot where it belongs.
    fn find(&self, key: &K, digest: Digest) -> Result<usize, usize> {
        let mask = self.slots.len() - 1;
        let mut slot = digest.fingerprint() as usize & mask;
        loop {
            match self.slots[slot] {
                0 => return Err(slot),
                number => {
                    let candidate = &self.candidates[number as usize - 1];
                    if candidate.digest == digest && candidate.key == *key {
                        return Ok(number as usize - 1);
                    }
                }
            }
            slot = (slot + 1) & mask;
        }
    }

    /// Keeps the k largest; of equal ones those with the smaller digest.
    fn halve(&mut self) {
        let k = self.k;
        if self.candidates.len() > k {
            self.candidates.select_nth_unstable_by(k - 1, Candidate::before);
            self.candidates.truncate(k);
            self.threshold = self.candidates[k - 1].estimate.max(0);
        }
        self.slots.fill(0);
        self.fill_slots();
    }

    /// Enters every candidate into the empty table.
    fn fill_slots(&mut self) {
        let mask = self.slots.len() - 1;
        for (number, candidate) in self.candidates.iter().enumerate() {
            let mut slot = candidate.digest.fingerprint() as usize & mask;
            while self.slots[slot] != 0 {
                slot = (slot + 1) & mask;
            }
            self.slots[slot] = number as u32 + 1;
        }
    }

    /// Returns the k candidates with the largest estimates, largest first.
    pub fn largest(&self) -> Vec<Candidate<K>> {
        let mut largest = self.candidates.clone();
        largest.sort_unstable_by(Candidate::before);
        largest.truncate(self.k);
        largest
    }

    /// Returns all candidates, unordered: up to 2 k.
    pub fn candidates(&self) -> &[Candidate<K>] {
        &self.candidates
    }

    /// Updates every estimate after the sketch was merged, scaled or cleared; keeps the k largest above zero.
    pub fn refresh(&mut self, estimate: impl Fn(Digest) -> i64) {
        for candidate in &mut self.candidates {
            candidate.estimate = estimate(candidate.digest);
        }
        self.candidates.retain(|candidate| candidate.estimate > 0);
        self.threshold = 0;
        self.halve();
    }

    /// Merges the candidates of another top-k, with estimates from the merged sketch.
    pub fn merge(&mut self, other: &TopK<K>, estimate: impl Fn(Digest) -> i64) {
        self.refresh(&estimate);
        for candidate in &other.candidates {
            self.offer(&candidate.key, candidate.digest, estimate(candidate.digest));
        }
    }

    /// Removes all candidates.
    pub fn clear(&mut self) {
        self.candidates.clear();
        self.slots.fill(0);
        self.threshold = 0;
    }
}

impl<K> Candidate<K> {
    /// Larger estimates first; ties are ordered the same way in every run.
    fn before(&self, other: &Self) -> std::cmp::Ordering {
        other.estimate.cmp(&self.estimate).then(self.digest.cmp(&other.digest))
    }
}

/// Equal if k, keys and estimates are the same.
impl<K: Key> PartialEq for TopK<K> {
    fn eq(&self, other: &Self) -> bool {
        let sorted = |of: &Self| {
            let mut all = of.candidates.clone();
            all.sort_unstable_by(Candidate::before);
            all
        };
        self.k == other.k && self.threshold == other.threshold && sorted(self) == sorted(other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::digest::Hasher;

    fn offer(top: &mut TopK<[u8; 4]>, key: u32, estimate: i64) {
        let key = key.to_be_bytes();
        top.offer(&key, Hasher::new(1).digest(&key), estimate);
    }

    #[test]
    fn the_largest_keys_are_kept_whatever_their_order_of_arrival() {
        for order in [1u32, 7, 911, 997] {
            let mut top = TopK::new(10);
            for step in 0..1000u32 {
                let key = step * order % 1009;
                offer(&mut top, key, i64::from(key));
            }
            let offered = |key: &u32| (0..1000u32).any(|step| step * order % 1009 == *key);
            let expected: Vec<u32> = (0..1009).rev().filter(offered).take(10).collect();
            let found: Vec<u32> =
                top.largest().iter().map(|candidate| u32::from_be_bytes(candidate.key)).collect();
            assert_eq!(found, expected);
        }
    }

    #[test]
    fn a_growing_key_is_one_candidate() {
        let mut top = TopK::new(3);
        for estimate in 1..100 {
            offer(&mut top, 5, estimate);
            offer(&mut top, estimate as u32 + 10, 2);
        }
        let largest = top.largest();
        assert_eq!(largest[0].estimate, 99);
        assert_eq!(largest.iter().filter(|candidate| candidate.key == 5u32.to_be_bytes()).count(), 1);
    }

    #[test]
    fn estimates_up_to_the_threshold_are_rejected() {
        let mut top = TopK::new(2);
        (1..=4).for_each(|key| offer(&mut top, key, 10 * i64::from(key)));
        assert_eq!(top.threshold(), 30);
        let before = top.clone();
        offer(&mut top, 9, 30);
        assert_eq!(top, before);
    }

    #[test]
    fn refresh_drops_keys_without_weight() {
        let mut top = TopK::new(4);
        (1..=4).for_each(|key| offer(&mut top, key, 10));
        let gone = Hasher::new(1).digest(&2u32.to_be_bytes());
        top.refresh(|digest| if digest == gone { 0 } else { 5 });
        assert_eq!(top.largest().len(), 3);
        assert!(top.largest().iter().all(|candidate| candidate.estimate == 5));
    }

    #[test]
    fn memory_stays_within_its_limit() {
        for memory in [0u64, 1_000, 65_536, 1 << 20] {
            let top = TopK::<[u8; 13]>::for_memory(memory);
            assert!(top.bytes() <= memory || top.k() == 1, "{memory}: {}", top.bytes());
            assert!(TopK::<[u8; 13]>::bytes_for(top.k() * 2 + 2) > memory);
        }
    }
}
