//! The packets that passed the switch: the reference for estimates.

use std::collections::BTreeMap;

use thalweg_emulator::workloads::random::Random;
use thalweg_wire::Timestamp;

use super::rack::Pair;

/// Every packet that passed, by flow direction.
#[derive(Clone, Debug, Default)]
pub(super) struct Truth(BTreeMap<Pair, Passed>);

/// The packets of one direction: the time of each, and the bytes up to and including it.
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

    /// Returns the packets of one direction; `None` if none has passed.
    pub(super) fn of(&self, pair: Pair) -> Option<&Passed> {
        self.0.get(&pair)
    }

    /// Samples each packet with this probability.
    pub(super) fn sampled(&self, probability: f64, random: &mut Random) -> Truth {
        let pairs = self.0.iter().map(|(pair, passed)| (*pair, passed.sampled(probability, random)));
        Truth(pairs.collect())
    }

    /// Returns the bits per second between two times over all directions for which `concerns` is true.
    pub(super) fn sum(&self, concerns: impl Fn(Pair) -> bool, from: Timestamp, to: Timestamp) -> f64 {
        self.0.iter().filter(|(pair, _)| concerns(**pair)).map(|(_, passed)| passed.rate(from, to)).sum()
    }
}

impl Passed {
    /// Returns the times of all packets.
    pub(super) fn times(&self) -> &[Timestamp] {
        &self.times
    }

    /// Returns the bytes that passed before `time`.
    fn before(&self, time: Timestamp) -> f64 {
        match self.times.partition_point(|at| *at < time) {
            0 => 0.0,
            packets => self.bytes[packets - 1],
        }
    }

    /// Returns the bits per second on the wire, from the packet at `from` to the one at `to`, exclusive; NaN for an
    /// empty span.
    pub(super) fn rate(&self, from: Timestamp, to: Timestamp) -> f64 {
        8e9 * (self.before(to) - self.before(from)) / to.since(from).0 as f64
    }

    /// Samples packets with this probability, each weighted with its inverse.
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
