//! Packets as a Poisson process: one draw a slot says how many the whole rack sends, and each goes out from an
//! endpoint drawn evenly. That is the same as independent processes at the endpoints, and costs a fraction of it.

use super::packets::Packets;
use super::{PacketWorkload, Rack};
use crate::outcome::Request;
use crate::slot::Slot;
use crate::workloads::WorkloadError;
use crate::workloads::alias::Alias;
use crate::workloads::random::Random;

/// Largest mean that is accepted: 65,536 endpoints with 256 packets a slot each.
const MAX_MEAN: f64 = (1u64 << 24) as f64;

/// Numbers that are less likely than this, relative to the likeliest, are left out; all of them together have less
/// than 2^-58 of the whole.
const NEGLIGIBLE: f64 = 1.0 / (1u128 << 72) as f64;

/// Poisson distributed numbers, by a table.
///
/// Weights come from p(k+1) = p(k) mean / (k+1), outwards from the likeliest number, so that no exponential is
/// taken and nothing underflows. Exact up to 2^-40 of a probability. About 20 sqrt(mean) + 30 items of 16 bytes.
#[derive(Clone, Debug)]
pub struct PoissonTable {
    /// The number that item 0 stands for.
    least: usize,
    numbers: Alias,
}

impl PoissonTable {
    /// The table for numbers of this mean.
    ///
    /// # Errors
    /// [`WorkloadError::Load`] unless the mean is more than 0 and at most 2^24.
    pub fn new(mean: f64) -> Result<PoissonTable, WorkloadError> {
        if !(mean > 0.0 && mean <= MAX_MEAN) {
            return Err(WorkloadError::Load(mean));
        }
        let likeliest = mean as usize;
        let mut weights = vec![1.0];
        let mut least = likeliest;
        while least > 0 && weights[weights.len() - 1] > NEGLIGIBLE {
            weights.push(weights[weights.len() - 1] * least as f64 / mean);
            least -= 1;
        }
        weights.reverse();
        let mut largest = likeliest;
        while weights[weights.len() - 1] > NEGLIGIBLE {
            largest += 1;
            weights.push(weights[weights.len() - 1] * mean / largest as f64);
        }
        Ok(PoissonTable { least, numbers: Alias::new(&weights)? })
    }

    /// The number that these 64 random bits stand for.
    #[inline]
    pub fn draw(&self, bits: u64) -> usize {
        self.least + self.numbers.draw(bits)
    }

    /// Numbers that can come, each with its probability.
    pub fn probabilities(&self) -> impl Iterator<Item = (usize, f64)> {
        (self.least..).zip(self.numbers.probabilities())
    }
}

/// A rack whose endpoints send packets as independent Poisson processes (Flexplane, section 6).
///
/// A slot costs one random number and a table look-up, a packet one random number and two multiplications.
#[derive(Clone, Debug)]
pub struct PoissonSenders {
    counts: PoissonTable,
    random: Random,
    packets: Packets,
}

impl PoissonSenders {
    /// The senders of a rack.
    ///
    /// # Errors
    /// Whatever is wrong with the rack.
    pub fn new(rack: &Rack) -> Result<PoissonSenders, WorkloadError> {
        let packets = Packets::new(rack)?;
        let counts = PoissonTable::new(rack.packets_per_slot()?)?;
        Ok(PoissonSenders {
            counts,
            random: Random::new(rack.seed, "poisson", u64::from(rack.first.0)),
            packets,
        })
    }
}

impl PacketWorkload for PoissonSenders {
    #[inline]
    fn slot(&mut self, _slot: Slot, requests: &mut Vec<Request>) {
        let count = self.counts.draw(self.random.bits());
        self.packets.send_evenly(count, requests);
    }
}
