//! Exact counts of a stream.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use xxhash_rust::xxh3::xxh3_64;

use super::keys::Key;

/// A map by key with a fast hash: XXH3 instead of SipHash.
pub type KeyMap<V> = HashMap<Key, V, BuildHasherDefault<KeyHasher>>;

/// Packets of each flow of a stream.
#[derive(Clone, Debug, Default)]
pub struct Truth {
    counts: KeyMap<u64>,
    packets: u64,
}

impl Truth {
    /// Counts a stream.
    pub fn of(keys: &[Key]) -> Truth {
        let mut truth = Truth::default();
        truth.extend(keys);
        truth
    }

    /// Counts more packets of the stream.
    pub fn extend(&mut self, keys: &[Key]) {
        for key in keys {
            *self.counts.entry(*key).or_default() += 1;
        }
        self.packets += keys.len() as u64;
    }

    /// Returns the packets of a flow.
    pub fn count(&self, key: &Key) -> u64 {
        self.counts.get(key).copied().unwrap_or(0)
    }

    /// Returns all flows and their packets, in no particular order.
    pub fn counts(&self) -> impl Iterator<Item = (&Key, u64)> {
        self.counts.iter().map(|(key, count)| (key, *count))
    }

    /// Returns the `k` flows with the most packets, largest first, ties by key; all flows if there are fewer.
    pub fn top(&self, k: usize) -> Vec<(Key, u64)> {
        let mut flows: Vec<(Key, u64)> = self.counts.iter().map(|(key, count)| (*key, *count)).collect();
        let order = |(key, count): &(Key, u64)| (Reverse(*count), *key);
        if k > 0 && k < flows.len() {
            flows.select_nth_unstable_by_key(k - 1, order);
        }
        flows.truncate(k);
        flows.sort_unstable_by_key(order);
        flows
    }

    /// Returns the flows with more than `share` of all packets, largest first.
    pub fn above(&self, share: f64) -> Vec<(Key, u64)> {
        let threshold = share * self.packets as f64;
        self.top(self.counts.values().filter(|count| **count as f64 > threshold).count())
    }

    /// Returns the number of packets: the L1 norm of the counts.
    pub fn l1(&self) -> u64 {
        self.packets
    }

    /// Returns the L2 norm of the counts.
    pub fn l2(&self) -> f64 {
        let squares: u128 = self.counts.values().map(|count| u128::from(*count).pow(2)).sum();
        (squares as f64).sqrt()
    }

    /// Returns the number of flows.
    pub fn distinct(&self) -> usize {
        self.counts.len()
    }

    /// Returns the entropy of flows over packets in bits; zero for an empty stream.
    pub fn entropy(&self) -> f64 {
        let packets = self.packets as f64;
        let surprise = |count: &u64| *count as f64 / packets * (packets / *count as f64).log2();
        self.counts.values().map(surprise).sum()
    }
}

/// Returns the mean of `|estimate - count| / count` over flows.
pub fn mean_relative_error(flows: &[(Key, u64)], estimate: impl Fn(&Key) -> f64) -> f64 {
    let error = |(key, count): &(Key, u64)| (estimate(key) - *count as f64).abs() / *count as f64;
    flows.iter().map(error).sum::<f64>() / flows.len().max(1) as f64
}

/// XXH3 of the bytes of a key.
#[derive(Clone, Copy, Debug, Default)]
pub struct KeyHasher(u64);

impl Hasher for KeyHasher {
    fn write(&mut self, bytes: &[u8]) {
        self.0 = xxh3_64(bytes);
    }

    /// Ignores the length before an array's bytes, which is the same for all keys.
    fn write_usize(&mut self, _length: usize) {}

    fn finish(&self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(number: u8) -> Key {
        [number; 13]
    }

    /// Four packets of one flow, two of another, one each of two more.
    fn truth() -> Truth {
        Truth::of(&[1, 1, 2, 1, 3, 2, 1, 4].map(key))
    }

    #[test]
    fn norms_entropy_and_distinct_flows_are_exact() {
        let truth = truth();
        assert_eq!((truth.l1(), truth.distinct(), truth.count(&key(2))), (8, 4, 2));
        assert_eq!(truth.count(&key(9)), 0);
        assert!((truth.l2() - 22f64.sqrt()).abs() < 1e-12);
        assert!((truth.entropy() - 1.75).abs() < 1e-12);
        assert_eq!(Truth::default().entropy(), 0.0);
    }

    #[test]
    fn top_flows_are_sorted_by_count_then_key() {
        let expected = [(key(1), 4), (key(2), 2), (key(3), 1), (key(4), 1)];
        for k in 0..=4 {
            assert_eq!(truth().top(k), expected[..k]);
        }
        assert_eq!(truth().top(9), expected);
        assert_eq!(truth().above(0.25), expected[..1], "two of eight are not above a quarter");
        assert_eq!(truth().above(0.24), expected[..2]);
    }

    #[test]
    fn error_is_the_mean_of_relative_errors() {
        assert_eq!(mean_relative_error(&truth().top(2), |_| 3.0), (0.25 + 0.5) / 2.0);
    }
}
