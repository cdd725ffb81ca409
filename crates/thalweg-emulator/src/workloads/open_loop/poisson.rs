//! Packets as a Poisson process: one draw per slot gives the number of packets of the whole rack, and each leaves a
//! uniformly drawn endpoint. This is equivalent to independent processes at the endpoints, at a fraction of the cost.

use super::packets::Packets;
use super::{PacketWorkload, Rack};
use crate::outcome::Request;
use crate::slot::Slot;
use crate::workloads::WorkloadError;
use crate::workloads::alias::Alias;
use crate::workloads::random::Random;

/// The largest valid mean: 65,536 endpoints with 256 packets per slot each.
const MAX_MEAN: f64 = (1u64 << 24) as f64;

/// Numbers less likely than this, relative to the most likely one, are omitted. Together they have a probability below
/// 2^-58.
const NEGLIGIBLE: f64 = 1.0 / (1u128 << 72) as f64;

/// Poisson distributed numbers from a table.
///
/// Weights follow p(k+1) = p(k) mean / (k+1), outwards from the most likely number, so there is no exponential and no
/// underflow. Exact to 2^-40 of a probability. About 20 sqrt(mean) + 30 items of 16 bytes.
#[derive(Clone, Debug)]
pub struct PoissonTable {
    /// The number of item 0.
    least: usize,
    numbers: Alias,
}

impl PoissonTable {
    /// A table for this mean.
    ///
    /// # Errors
    /// [`WorkloadError::Load`] unless the mean is above 0 and at most 2^24.
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

    /// The number for these 64 random bits.
    #[inline]
    pub fn draw(&self, bits: u64) -> usize {
        self.least + self.numbers.draw(bits)
    }

    /// The possible numbers with their probabilities.
    pub fn probabilities(&self) -> impl Iterator<Item = (usize, f64)> {
        (self.least..).zip(self.numbers.probabilities())
    }
}

/// A rack whose endpoints send packets as independent Poisson processes (Flexplane, section 6).
///
/// A slot costs a random number and a table lookup, a packet a random number and two multiplications.
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
    /// If the rack is invalid.
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
