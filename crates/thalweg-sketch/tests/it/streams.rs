//! Streams with known truth.

#![allow(dead_code, reason = "each test uses some of them")]

use std::collections::HashMap;

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

pub(crate) type FlowKey = [u8; 4];

/// Packets, and the total weight of each key.
pub(crate) struct Stream {
    pub(crate) packets: Vec<(FlowKey, i64)>,
    pub(crate) truth: HashMap<FlowKey, i64>,
}

impl Stream {
    pub(crate) fn of(packets: Vec<(FlowKey, i64)>) -> Stream {
        let mut truth = HashMap::new();
        for &(key, weight) in &packets {
            *truth.entry(key).or_default() += weight;
        }
        Stream { packets, truth }
    }

    fn of_keys(keys: impl Iterator<Item = u32>) -> Stream {
        Stream::of(keys.map(|key| (key.to_be_bytes(), 1)).collect())
    }

    /// The n-th of `keys` has a probability proportional to n^-exponent.
    pub(crate) fn zipf(exponent: f64, keys: u32, packets: usize) -> Stream {
        let mut below = Vec::new();
        let mut sum = 0.0;
        for rank in 1..=keys {
            sum += f64::from(rank).powf(-exponent);
            below.push(sum);
        }
        let mut random = random(exponent.to_bits());
        Stream::of_keys((0..packets).map(|_| {
            let draw = uniform(&mut random) * sum;
            below.partition_point(|&below| below < draw).min(below.len() - 1) as u32
        }))
    }

    /// All of `keys` equally often.
    pub(crate) fn uniform(keys: u32, packets: usize) -> Stream {
        Stream::of_keys((0..packets as u32).map(|number| number % keys))
    }

    /// Every other packet is of key 0; each of the others has a key of its own.
    pub(crate) fn one_giant(packets: usize) -> Stream {
        Stream::of_keys((0..packets as u32).map(|number| if number.is_multiple_of(2) { 0 } else { number }))
    }

    pub(crate) fn one_key(packets: usize) -> Stream {
        Stream::uniform(1, packets)
    }

    /// The same packets with lengths of 64 to 1,500 bytes.
    pub(crate) fn in_bytes(self) -> Stream {
        let mut random = random(5);
        let mut length = || [64, 64, 64, 576, 1500, 1500][(random.next_u64() % 6) as usize];
        Stream::of(self.packets.into_iter().map(|(key, _)| (key, length())).collect())
    }

    pub(crate) fn l1(&self) -> f64 {
        self.truth.values().map(|&weight| weight as f64).sum()
    }

    pub(crate) fn f2(&self) -> f64 {
        self.truth.values().map(|&weight| (weight as f64).powi(2)).sum()
    }

    /// The heaviest `each` keys, as many others, and as many absent ones, with their weights.
    pub(crate) fn queries(&self, each: usize) -> Vec<(FlowKey, f64)> {
        let mut all: Vec<_> = self.truth.iter().map(|(&key, &weight)| (key, weight as f64)).collect();
        all.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        let others = all.len().saturating_sub(each);
        let step = (others / each).max(1);
        let rest: Vec<_> = all.iter().skip(each).step_by(step).take(each).copied().collect();
        all.truncate(each);
        all.extend(rest);
        all.extend((0..each as u32).map(|number| ((u32::MAX - number).to_be_bytes(), 0.0)));
        all
    }
}

pub(crate) fn random(seed: u64) -> Xoshiro256PlusPlus {
    Xoshiro256PlusPlus::seed_from_u64(seed)
}

/// In 0..1.
pub(crate) fn uniform(random: &mut impl Rng) -> f64 {
    (random.next_u64() >> 11) as f64 / 2f64.powi(53)
}
