//! What has really passed the switch.

use std::collections::BTreeMap;

use thalweg_emulator::workloads::random::Random;
use thalweg_wire::Timestamp;

use super::rack::Pair;

/// Every packet that has passed, by direction of flow.
#[derive(Clone, Debug, Default)]
pub(super) struct Truth(BTreeMap<Pair, Passed>);

/// Of one direction: for each packet when it had passed, and the bytes up to and with it.
#[derive(Clone, Debug, Default)]
pub(super) struct Passed {
    times: Vec<Timestamp>,
    bytes: Vec<f64>,
}

impl Truth {
    pub(super) fn add(&mut self, pair: Pair, at: Timestamp, length: u16) {
        let passed = self.0.entry(pair).or_default();
        let before = passed.bytes.last().copied().unwrap_or(0.0);
        passed.times.push(at);
        passed.bytes.push(before + f64::from(length));
    }

    /// Of one direction; `None` if nothing of it has passed.
    pub(super) fn of(&self, pair: Pair) -> Option<&Passed> {
        self.0.get(&pair)
    }

    /// What a sampler would say that takes each packet with this probability.
    pub(super) fn sampled(&self, probability: f64, random: &mut Random) -> Truth {
        let pairs = self.0.iter().map(|(pair, passed)| (*pair, passed.sampled(probability, random)));
        Truth(pairs.collect())
    }

    /// Bits per second between two times, over all directions that `concerns` holds of.
    pub(super) fn sum(&self, concerns: impl Fn(Pair) -> bool, from: Timestamp, to: Timestamp) -> f64 {
        self.0.iter().filter(|(pair, _)| concerns(**pair)).map(|(_, passed)| passed.rate(from, to)).sum()
    }
}

impl Passed {
    /// Times of all packets.
    pub(super) fn times(&self) -> &[Timestamp] {
        &self.times
    }

    /// Bytes that had passed before `time`.
    fn before(&self, time: Timestamp) -> f64 {
        match self.times.partition_point(|at| *at < time) {
            0 => 0.0,
            packets => self.bytes[packets - 1],
        }
    }

    /// Bits per second on the wire, from the packet at `from` on up to that at `to`, which does not count; no
    /// number over an empty span.
    pub(super) fn rate(&self, from: Timestamp, to: Timestamp) -> f64 {
        8e9 * (self.before(to) - self.before(from)) / to.since(from).0 as f64
    }

    /// Packets taken with this probability, each counted for as many.
    fn sampled(&self, probability: f64, random: &mut Random) -> Passed {
        let mut sampled = Passed::default();
        let (mut before, mut sum) = (0.0, 0.0);
        for (time, bytes) in self.times.iter().zip(&self.bytes) {
            if random.unit() < probability {
                sum += (bytes - before) / probability;
                sampled.times.push(*time);
                sampled.bytes.push(sum);
            }
            before = *bytes;
        }
        sampled
    }
}
