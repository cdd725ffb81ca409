//! The Poisson Pareto burst process in continuous time, for one port.
//!
//! Zukerman, Neame, Addie 2003, "Internet traffic modeling and future technology implications", INFOCOM; with the
//! parameters of Maji's dissertation (University of Virginia 2018, section 4.3.1 and table 4.1). Bursts start as a
//! Poisson process with `lambda` per second, last for a Pareto distributed time with shape 3 - 2 H, and send at a
//! constant rate r. The mean rate is d r lambda, where d is the mean duration (equation 4.1).
//!
//! | emission | packets |
//! |---|---|
//! | [`BurstPackets`] | each burst sends its own packets, evenly spaced, the first at its start, as the text says |
//! | [`SegmentPackets`] | all active bursts together, evenly spaced between two changes of their number, at most at the rate of one interface, as the dissertation's published program does |
//!
//! The same seed gives the same bursts to both, so that a difference of results is one of the emission. The other
//! process of this crate, [`BurstSenders`](super::open_loop::BurstSenders), sends from many endpoints slot by slot.
//!
//! Times are in picoseconds: a `u64` holds 213 days.

mod packets;
mod segments;

pub use packets::{BurstPackets, Rounding};
pub use segments::{Segment, SegmentPackets, Segments, published_burstiness};

use thalweg_wire::BitRate;

use super::WorkloadError;
use super::open_loop::{Bursts as Durations, PoissonTable};
use super::random::Random;

/// Picoseconds per second.
pub const SECOND_PS: u64 = 1_000_000_000_000;
const PS: f64 = SECOND_PS as f64;

/// Bytes of all packets (dissertation, section 4.3.1).
pub const PACKET_BYTES: u16 = 1_500;

/// A packet on its way to a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// When its last byte arrives, in picoseconds.
    pub at_ps: u64,
    /// Bytes on the link.
    pub length: u16,
}

/// How the process begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Start {
    /// With one burst that starts, as in the published program. The load is short of its mean by a share of 0.025 s
    /// divided by the time since the start, with the dissertation's durations.
    #[default]
    Empty,
    /// With as many bursts as if it had run forever.
    Stationary,
}

/// The parameters of the process.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BurstProcess {
    /// Bursts that start per second, on average: lambda.
    pub bursts_per_second: f64,
    /// The Hurst parameter H, at least 0.5 and less than 1.
    pub hurst: f64,
    /// Mean duration of a burst in seconds: d.
    pub mean_seconds: f64,
    /// The rate of each burst: r.
    pub rate: BitRate,
    /// How it begins.
    pub start: Start,
}

impl BurstProcess {
    /// The process of the dissertation: H = 0.5, d = 100 ms, and r such that the mean rate is `mean_rate`.
    pub fn of_dissertation(bursts_per_second: f64, mean_rate: BitRate) -> BurstProcess {
        let mean_seconds = 0.1;
        let rate = BitRate((mean_rate.0 as f64 / (bursts_per_second * mean_seconds)).round() as u64);
        BurstProcess { bursts_per_second, hurst: 0.5, mean_seconds, rate, start: Start::Empty }
    }

    /// Checks the parameters.
    ///
    /// # Errors
    /// If a burst has no packet on average, too many are active, or the Hurst parameter is out of range.
    pub fn validate(&self) -> Result<(), WorkloadError> {
        if !(0.5..1.0).contains(&self.hurst) {
            return Err(WorkloadError::Hurst(self.hurst));
        }
        let active = self.bursts_per_second * self.mean_seconds;
        let packets = self.mean_seconds * PS / self.gap_ps();
        match active > 0.0 && active < 1e6 && (1.0..1e12).contains(&packets) {
            true => Ok(()),
            false => Err(WorkloadError::BurstProcess { bursts_per_second: self.bursts_per_second, packets }),
        }
    }

    /// The bursts of `seed`, in order of their starts.
    ///
    /// # Errors
    /// If the parameters are [invalid](Self::validate).
    pub fn bursts(&self, seed: u64) -> Result<Bursts, WorkloadError> {
        self.validate()?;
        let durations = Durations { hurst: self.hurst, mean_slots: self.mean_seconds * PS, rate: 1.0 };
        let mut bursts = Bursts {
            durations,
            mean_between_ps: PS / self.bursts_per_second,
            next_start_ps: 0.0,
            active_at_start: Vec::new(),
            random: Random::new(seed, "burst process", 0),
        };
        if self.start == Start::Stationary {
            bursts.settle(self.bursts_per_second * self.mean_seconds, self.gap_ps())?;
        }
        Ok(bursts)
    }

    /// Picoseconds between the packets of a burst.
    pub fn gap_ps(&self) -> f64 {
        8.0 * f64::from(PACKET_BYTES) * PS / self.rate.0 as f64
    }
}

/// A burst.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Burst {
    /// Its start.
    pub start_ps: u64,
    /// Its end.
    pub end_ps: u64,
}

/// An endless iterator of bursts, in order of their starts.
#[derive(Clone, Debug)]
pub struct Bursts {
    durations: Durations,
    mean_between_ps: f64,
    next_start_ps: f64,
    /// Bursts that were active at the start, last first.
    active_at_start: Vec<Burst>,
    random: Random,
}

impl Bursts {
    /// Draws the bursts that are active at the start. Their first packets are at any point of a gap.
    fn settle(&mut self, mean_active: f64, gap_ps: f64) -> Result<(), WorkloadError> {
        let count = PoissonTable::new(mean_active)?.draw(self.random.bits());
        for _ in 0..count {
            let start_ps = (self.random.unit() * gap_ps) as u64;
            let left_ps = self.durations.residual(&mut self.random) as u64;
            if left_ps > start_ps {
                self.active_at_start.push(Burst { start_ps, end_ps: left_ps });
            }
        }
        self.active_at_start.sort_by_key(|burst| std::cmp::Reverse(burst.start_ps));
        self.schedule();
        Ok(())
    }

    fn schedule(&mut self) {
        self.next_start_ps += self.random.exponential() * self.mean_between_ps;
    }
}

impl Iterator for Bursts {
    type Item = Burst;

    fn next(&mut self) -> Option<Burst> {
        let start_ps = self.next_start_ps as u64;
        if self.active_at_start.last().is_some_and(|burst| burst.start_ps <= start_ps) {
            return self.active_at_start.pop();
        }
        let end_ps = start_ps.saturating_add(self.durations.duration(&mut self.random) as u64);
        self.schedule();
        Some(Burst { start_ps, end_ps })
    }
}

#[cfg(test)]
mod tests;
