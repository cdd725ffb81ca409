//! The Poisson Pareto burst process: long-range dependent packet traffic, like measured traffic.
//!
//! Zukerman, Neame, Addie 2003, "Internet traffic modeling and future technology implications", INFOCOM. Bursts start
//! as a Poisson process, last for a Pareto distributed time with shape alpha, 1 < alpha <= 2, and send at a constant
//! rate. The variance of the traffic's mean over a time t decreases as t^(2H - 2), with the Hurst parameter H = (3 -
//! alpha) / 2.
//!
//! All bursts have the same rate and therefore the same gap between packets. After a packet, a burst goes to the back
//! of the queue with its next packet, behind all that are due earlier. So active bursts are a plain queue in order of
//! time, at constant cost per packet.
//!
//! Where we differ: a burst starts at any point between two of its packets, not with one. So its number of packets is
//! its duration divided by the gap, rounded up or down at random, and the load is exact. Fixed rounding would be off by
//! up to half a packet per burst. The process starts in its stationary state, with active bursts, as if it had run
//! forever; otherwise, with H near 1, the load would take very long to build up. At most `mean + 10 sqrt(mean) + 64`
//! bursts are active. More (probability below 1e-20 at any time) are refused and counted.

use std::collections::VecDeque;

use super::packets::Packets;
use super::poisson::PoissonTable;
use super::{PacketWorkload, Rack};
use crate::outcome::Request;
use crate::slot::Slot;
use crate::workloads::WorkloadError;
use crate::workloads::random::Random;

/// The properties of bursts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bursts {
    /// The Hurst parameter H, at least 0.5 (no long-range dependence) and less than 1.
    pub hurst: f64,
    /// Mean duration in slots.
    pub mean_slots: f64,
    /// The rate of each, as a share of the access link's.
    pub rate: f64,
}

impl Bursts {
    /// The shape of the Pareto distribution, alpha = 3 - 2 H: above 1, so that the mean exists.
    pub fn shape(&self) -> f64 {
        3.0 - 2.0 * self.hurst
    }

    /// The shortest duration in slots: the mean times (alpha - 1) / alpha.
    pub fn shortest(&self) -> f64 {
        self.mean_slots * (self.shape() - 1.0) / self.shape()
    }

    /// Draws the duration of a burst in slots.
    pub(in crate::workloads) fn duration(&self, random: &mut Random) -> f64 {
        random.pareto(self.shape(), self.shortest())
    }

    /// Draws the rest of a burst that is active at a random time, with density P(duration > x) / mean: with probability
    /// (alpha - 1) / alpha uniform below the shortest duration, otherwise Pareto with shape alpha minus 1.
    pub(in crate::workloads) fn residual(&self, random: &mut Random) -> f64 {
        let shape = self.shape();
        if random.unit() < (shape - 1.0) / shape {
            random.unit() * self.shortest()
        } else {
            random.pareto(shape - 1.0, self.shortest())
        }
    }

    fn check(&self) -> Result<(), WorkloadError> {
        if !(0.5..1.0).contains(&self.hurst) {
            return Err(WorkloadError::Hurst(self.hurst));
        }
        let positive = |value: f64| value > 0.0 && value.is_finite();
        if !(positive(self.mean_slots) && positive(self.rate)) {
            return Err(WorkloadError::Bursts { slots: self.mean_slots, rate: self.rate });
        }
        Ok(())
    }
}

/// Time has a resolution of 2^-20 slots: enough for 2^44 slots, months at the highest rates.
const TICKS_PER_SLOT: u64 = 1 << 20;

/// The largest mean number of active bursts.
const MAX_UNDER_WAY: f64 = (1u64 << 24) as f64;

/// An active burst.
#[derive(Clone, Copy, Debug)]
struct Burst {
    /// When its next packet is due, in ticks.
    next: u64,
    packets_left: u64,
    source: u16,
    destination: u16,
}

/// A rack whose endpoints send bursts. 24 bytes per active burst.
#[derive(Clone, Debug)]
pub struct BurstSenders {
    bursts: Bursts,
    /// Ticks between the packets of a burst.
    gap: u64,
    /// Mean ticks between starts of bursts.
    mean_between: f64,
    /// When the next burst starts, in ticks.
    next_burst: u64,
    under_way: VecDeque<Burst>,
    most: usize,
    refused: u64,
    random: Random,
    packets: Packets,
}

impl BurstSenders {
    /// The senders of a rack.
    ///
    /// # Errors
    /// If the rack or the bursts are invalid.
    pub fn new(rack: &Rack, bursts: Bursts) -> Result<BurstSenders, WorkloadError> {
        bursts.check()?;
        let packets = Packets::new(rack)?;
        let gap_slots = rack.mix.mean_length() / (bursts.rate * f64::from(rack.slot_bytes));
        let mean_under_way = rack.packets_per_slot()? * gap_slots;
        // Less than a packet per burst would mean many bursts that send nothing.
        let sound =
            (1.0 / 1024.0..1e12).contains(&gap_slots) && (gap_slots..1e12).contains(&bursts.mean_slots);
        if !sound || mean_under_way > MAX_UNDER_WAY {
            return Err(WorkloadError::Bursts { slots: bursts.mean_slots, rate: bursts.rate });
        }
        let mut senders = BurstSenders {
            bursts,
            gap: (gap_slots * TICKS_PER_SLOT as f64).round() as u64,
            // Little's law: active bursts are those that start in a mean duration.
            mean_between: bursts.mean_slots * TICKS_PER_SLOT as f64 / mean_under_way,
            next_burst: 0,
            under_way: VecDeque::new(),
            most: (mean_under_way + 10.0 * mean_under_way.sqrt()) as usize + 64,
            refused: 0,
            random: Random::new(rack.seed, "bursts", u64::from(rack.first.0)),
            packets,
        };
        senders.settle(mean_under_way)?;
        senders.schedule_burst();
        Ok(senders)
    }

    /// Bursts refused because too many were active.
    pub fn refused(&self) -> u64 {
        self.refused
    }

    /// The number of active bursts.
    pub fn under_way(&self) -> usize {
        self.under_way.len()
    }

    /// Draws the bursts that are active at the start: a Poisson distributed number, each at any point between two
    /// packets.
    fn settle(&mut self, mean_under_way: f64) -> Result<(), WorkloadError> {
        let count = PoissonTable::new(mean_under_way)?.draw(self.random.bits()).min(self.most);
        for _ in 0..count {
            let next = self.random.below(self.gap);
            let left = self.bursts.residual(&mut self.random) * TICKS_PER_SLOT as f64;
            if left > next as f64 {
                let packets_left = 1 + ((left - next as f64) / self.gap as f64) as u64;
                let (source, destination) = self.packets.draw_pair();
                self.under_way.push_back(Burst { next, packets_left, source, destination });
            }
        }
        self.under_way.make_contiguous().sort_by_key(|burst| burst.next);
        Ok(())
    }

    fn schedule_burst(&mut self) {
        let wait = self.random.exponential() * self.mean_between;
        self.next_burst = self.next_burst.saturating_add(wait.round() as u64);
    }

    /// Sends the first packet of a burst.
    ///
    /// Bursts start as a Poisson process, each at some point between two of its packets. So first packets are a Poisson
    /// process too, and are drawn. The age of the burst is drawn then. If it exceeds the time since slot 0, the burst
    /// is one of those that were active at the start.
    fn begin_burst(&mut self, requests: &mut Vec<Request>) {
        let next = self.next_burst;
        let gap = self.gap as f64;
        let lasted = self.random.unit() * gap;
        let duration = self.bursts.duration(&mut self.random) * TICKS_PER_SLOT as f64;
        let packets_left = (1.0 + (duration - lasted) / gap).max(0.0) as u64;
        let (source, destination) = self.packets.draw_pair();
        if packets_left > 0 && lasted <= next as f64 {
            if self.under_way.len() < self.most {
                self.send(Burst { next, packets_left, source, destination }, requests);
            } else {
                self.refused += 1;
            }
        }
        self.schedule_burst();
    }

    /// Sends the packet that is due, and moves the burst to the back of the queue.
    #[inline]
    fn send(&mut self, burst: Burst, requests: &mut Vec<Request>) {
        self.packets.send_one(burst.source, burst.destination, requests);
        if burst.packets_left > 1 {
            let next = burst.next + self.gap;
            self.under_way.push_back(Burst { next, packets_left: burst.packets_left - 1, ..burst });
        }
    }
}

impl PacketWorkload for BurstSenders {
    fn slot(&mut self, slot: Slot, requests: &mut Vec<Request>) {
        let end = (slot.0 + 1).saturating_mul(TICKS_PER_SLOT);
        loop {
            let due = self.under_way.front().map_or(u64::MAX, |burst| burst.next);
            if due.min(self.next_burst) >= end {
                return;
            }
            if self.next_burst < due {
                self.begin_burst(requests);
            } else if let Some(burst) = self.under_way.pop_front() {
                self.send(burst, requests);
            }
        }
    }
}
