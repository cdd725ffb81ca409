//! The simulated network between endpoint and arbiters: it loses, duplicates, delays and damages datagrams.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use thalweg_realtime::protocol::Arbiter;
use thalweg_wire::Timestamp;

use crate::random::Random;

/// The path of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Path {
    To(Arbiter),
    From(Arbiter),
}

/// What the network does to datagrams.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Conditions {
    pub(crate) lost_per_mille: u64,
    pub(crate) duplicated_per_mille: u64,
    pub(crate) damaged_per_mille: u64,
    pub(crate) delay_ns: u64,
    /// Added at random, so that datagrams overtake each other.
    pub(crate) jitter_ns: u64,
}

/// A datagram at its destination.
pub(crate) struct Delivery {
    pub(crate) path: Path,
    pub(crate) bytes: Vec<u8>,
    pub(crate) is_damaged: bool,
}

pub(crate) struct Wire {
    conditions: Conditions,
    arrivals: BinaryHeap<Reverse<(Timestamp, usize)>>,
    deliveries: Vec<Option<Delivery>>,
    /// Datagrams that were damaged and delivered.
    pub(crate) damaged: u64,
}

impl Wire {
    pub(crate) fn new(conditions: Conditions) -> Wire {
        Wire { conditions, arrivals: BinaryHeap::new(), deliveries: Vec::new(), damaged: 0 }
    }

    pub(crate) fn send(&mut self, now: Timestamp, path: Path, bytes: &[u8], random: &mut Random) {
        let Conditions { lost_per_mille, duplicated_per_mille, .. } = self.conditions;
        if random.per_mille(lost_per_mille) {
            return;
        }
        for _ in 0..1 + u64::from(random.per_mille(duplicated_per_mille)) {
            self.carry(now, path, bytes.to_vec(), random);
        }
    }

    fn carry(&mut self, now: Timestamp, path: Path, mut bytes: Vec<u8>, random: &mut Random) {
        let Conditions { damaged_per_mille, delay_ns, jitter_ns, .. } = self.conditions;
        let is_damaged = random.per_mille(damaged_per_mille);
        if is_damaged {
            damage(&mut bytes, random);
        }
        let at = Timestamp(now.0 + delay_ns + random.below(jitter_ns + 1));
        self.deliver_at(at, Delivery { path, bytes, is_damaged });
    }

    pub(crate) fn deliver_at(&mut self, at: Timestamp, delivery: Delivery) {
        self.arrivals.push(Reverse((at, self.deliveries.len())));
        self.deliveries.push(Some(delivery));
    }

    pub(crate) fn next_arrival(&self) -> Option<Timestamp> {
        self.arrivals.peek().map(|Reverse((at, _))| *at)
    }

    /// Takes the next datagram that has arrived.
    pub(crate) fn arrived(&mut self, now: Timestamp) -> Option<Delivery> {
        self.next_arrival().filter(|at| *at <= now)?;
        let Reverse((_, at)) = self.arrivals.pop()?;
        self.deliveries[at].take()
    }
}

/// Cuts off bytes, or changes one to three bits: the checksum detects every such change.
fn damage(bytes: &mut Vec<u8>, random: &mut Random) {
    if random.per_mille(250) {
        return bytes.truncate(random.below(bytes.len() as u64) as usize);
    }
    let bits = 8 * bytes.len() as u64;
    let first = random.below(bits);
    let span = random.between(1, 3);
    for bit in (0..span).map(|n| (first + n * 11) % bits) {
        bytes[bit as usize / 8] ^= 1 << (bit % 8);
    }
}
