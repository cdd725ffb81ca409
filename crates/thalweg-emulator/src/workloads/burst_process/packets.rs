//! The packets of bursts, each with its own.

use std::collections::VecDeque;
use std::iter::Peekable;

use super::{Arrival, BurstProcess, Bursts, PACKET_BYTES};
use crate::workloads::WorkloadError;
use crate::workloads::random::Random;

/// How the packets of a burst are counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Rounding {
    /// Rounded up (dissertation, section 4.3.1). The load is higher by half a packet per burst.
    #[default]
    Up,
    /// Up or down at random, so that the load is exact.
    Random,
}

/// Packets of bursts in order of time. The first packet of a burst is at its start.
///
/// All bursts have the same gap, so active ones are a plain queue in order of time, at constant cost per packet.
#[derive(Clone, Debug)]
pub struct BurstPackets {
    bursts: Peekable<Bursts>,
    gap_ps: u64,
    rounding: Rounding,
    random: Random,
    /// The next packet of each active burst, and the number of packets left.
    active: VecDeque<(u64, u64)>,
}

impl BurstPackets {
    /// The packets of `process` with `seed`.
    ///
    /// # Errors
    /// If the parameters are invalid.
    pub fn new(process: &BurstProcess, seed: u64, rounding: Rounding) -> Result<BurstPackets, WorkloadError> {
        Ok(BurstPackets {
            bursts: process.bursts(seed)?.peekable(),
            gap_ps: process.gap_ps().round() as u64,
            rounding,
            random: Random::new(seed, "rounding of bursts", 0),
            active: VecDeque::new(),
        })
    }

    fn packets_of(&mut self, duration_ps: u64) -> u64 {
        let (whole, rest) = (duration_ps / self.gap_ps, duration_ps % self.gap_ps);
        match self.rounding {
            Rounding::Up => whole + u64::from(rest > 0),
            Rounding::Random => whole + u64::from(self.random.below(self.gap_ps) < rest),
        }
    }
}

impl Iterator for BurstPackets {
    type Item = Arrival;

    #[inline]
    fn next(&mut self) -> Option<Arrival> {
        loop {
            let due_ps = self.active.front().map_or(u64::MAX, |packet| packet.0);
            let (at_ps, left) = match self.bursts.next_if(|burst| burst.start_ps <= due_ps) {
                Some(burst) => (burst.start_ps, self.packets_of(burst.end_ps - burst.start_ps)),
                None => self.active.pop_front()?,
            };
            if left > 1 {
                self.active.push_back((at_ps + self.gap_ps, left - 1));
            }
            if left > 0 {
                return Some(Arrival { at_ps, length: PACKET_BYTES });
            }
        }
    }
}
