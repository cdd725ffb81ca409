//! Fourteen days of background traffic and cheetah flows.
//!
//! The mean rate follows the day, with the least traffic at three in the morning. So does the number of bursts per second: the
//! more users, the smoother. Each hour deviates at random. On one day a flash crowd has half as much
//! again for three hours. From the eleventh day
//! on, the pattern is six hours later and the traffic a fifth more.

use std::f64::consts::TAU;

use thalweg_emulator::workloads::burst_process::BurstProcess;
use thalweg_emulator::workloads::random::Random;
use thalweg_wire::{BitRate, Nanos};

/// Hours of the study.
pub(super) const HOURS: u64 = 14 * 24;
/// The first hour of the changed pattern.
const CHANGED: u64 = 10 * 24;
/// The hours of the flash crowd.
const CROWD: std::ops::Range<u64> = 6 * 24 + 14..6 * 24 + 17;

/// The least and the greatest mean rate of the usual day, in Mbit/s.
const MEAN: (f64, f64) = (80.0, 280.0);
/// Bursts per second at these.
const BURSTS: (f64, f64) = (12.0, 40.0);
/// Standard deviations of the logarithms of rate and bursts from hour to hour.
const DEVIATION: (f64, f64) = (0.1, 0.15);

/// Mean pause between two cheetah flows, and mean duration of one, in seconds.
const PAUSE: f64 = 1.0;
const DURATION: f64 = 4.0;
/// The slowest and the fastest cheetah flow, in Mbit/s, distributed uniformly by logarithm.
const FLOWS: (f64, f64) = (50.0, 900.0);

/// A kind of hour: its expected traffic. Hours of the same kind differ at random.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Kind {
    /// 0 to 23.
    pub(super) hour_of_day: u64,
    pub(super) is_changed: bool,
    pub(super) is_crowd: bool,
}

impl Kind {
    pub(super) fn of(hour: u64) -> Kind {
        Kind { hour_of_day: hour % 24, is_changed: hour >= CHANGED, is_crowd: CROWD.contains(&hour) }
    }

    pub(super) fn name(self) -> String {
        let Kind { hour_of_day, is_changed, is_crowd } = self;
        format!(
            "{hour_of_day}{}{}",
            if is_changed { " changed" } else { "" },
            if is_crowd { " crowd" } else { "" }
        )
    }

    /// The traffic of an hour of this kind.
    pub(super) fn process(self, seed: u64, hour: u64) -> BurstProcess {
        let mut random = Random::new(seed, "hour", hour);
        let mut deviate = || (0..12).map(|_| random.unit()).sum::<f64>() - 6.0;
        let (of_rate, of_bursts) = (deviate(), deviate());
        let later = if self.is_changed { 6.0 } else { 0.0 };
        let day = 0.5 - 0.5 * (TAU * (self.hour_of_day as f64 - 3.0 - later) / 24.0).cos();
        let factor = match (self.is_changed, self.is_crowd) {
            (_, true) => 1.5,
            (true, _) => 1.2,
            _ => 1.0,
        };
        let between = |(least, most): (f64, f64)| least + day * (most - least);
        let mean = (factor * between(MEAN) * (DEVIATION.0 * of_rate).exp()).min(700.0);
        let bursts = between(BURSTS) * (DEVIATION.1 * of_bursts).exp();
        BurstProcess::of_dissertation(bursts, BitRate((mean * 1e6) as u64))
    }
}

/// A cheetah flow.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Cheetah {
    pub(super) start_ps: u64,
    pub(super) end_ps: u64,
    pub(super) rate: BitRate,
    pub(super) round_trip: Nanos,
}

/// The cheetah flows of an hour of `until_ps`, one after the other.
pub(super) fn cheetahs(seed: u64, hour: u64, until_ps: u64) -> Vec<Cheetah> {
    let mut random = Random::new(seed, "cheetahs", hour);
    let (mut flows, mut now) = (Vec::new(), 0.0);
    loop {
        let start = now + PAUSE * random.exponential();
        let end = start + DURATION * random.exponential();
        let mbps = FLOWS.0 * (FLOWS.1 / FLOWS.0).powf(random.unit());
        let round_trip = if random.unit() < 0.5 { 10 } else { 100 };
        let start_ps = (start * 1e12) as u64;
        if start_ps >= until_ps {
            return flows;
        }
        flows.push(Cheetah {
            start_ps,
            end_ps: ((end * 1e12) as u64).min(until_ps),
            rate: BitRate((mbps * 1e6) as u64),
            round_trip: Nanos::from_millis(round_trip),
        });
        now = end;
    }
}
