//! One hour: what the traffic analysis module would find, and what each threshold would have led to.

use serde::{Deserialize, Serialize};
use thalweg_control::threshold::loss_curve::{LossCurve, LossPoint};
use thalweg_control::threshold::tag::Tag;
use thalweg_emulator::bottleneck::lane::Lane;
use thalweg_emulator::bottleneck::port::{Origin, Port, Queue};
use thalweg_emulator::bottleneck::round_flow::RoundFlow;
use thalweg_emulator::bottleneck::setup::{Setup, SetupConfig};
use thalweg_emulator::schemes::scavenger::ScavengerConfig;
use thalweg_emulator::workloads::burst_process::{Arrival, BurstPackets, Rounding};
use thalweg_wire::{BitRate, Nanos};

use super::super::PORT;
use super::flows::Cheetahs;
use super::traffic::{Kind, cheetahs};

/// Packets that all lanes process before the next ones are made.
const GROUP: usize = 1_024;

/// Parts of an hour for which the router's counters are read.
pub(super) const PARTS: usize = 6;

/// Thresholds and rates of simulated flows: 5 to 90 % of the port.
pub(super) const RATES: usize = 18;

pub(super) fn rate(place: usize) -> BitRate {
    BitRate(50_000_000 * (place as u64 + 1))
}

/// Returns the place of the greatest rate that is not above `rate`; 0 for less than all.
pub(super) fn place_of(rate: BitRate) -> usize {
    ((rate.0 / 50_000_000) as usize).clamp(1, RATES) - 1
}

/// What one threshold led to in an hour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Outcome {
    /// Background packets, and those that were dropped, in each part of the hour.
    pub(super) offered: [u64; PARTS],
    pub(super) dropped: [u64; PARTS],
    /// Cheetah flows that began, and those that were moved, in each part.
    pub(super) flows: [u64; PARTS],
    pub(super) moved: [u64; PARTS],
    /// Packets of cheetah flows that were queued in each part, and how long the flows that began in it lasted, in milliseconds.
    pub(super) packets: [u64; PARTS],
    pub(super) lasted_ms: [u64; PARTS],
}

/// An hour.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Hour {
    pub(super) mean_rate: u64,
    pub(super) burstiness: f64,
    /// Loss by the rate of an additional flow, by place. Empty if it was not simulated.
    pub(super) losses: Vec<f64>,
    /// By threshold.
    pub(super) outcomes: Vec<Outcome>,
}

impl Hour {
    pub(super) fn tag(&self) -> Tag {
        Tag { mean_rate: BitRate(self.mean_rate), burstiness: self.burstiness }
    }

    pub(super) fn curve(&self, seconds: f64) -> LossCurve {
        let point = |(place, &loss): (usize, &f64)| LossPoint { rate: rate(place), loss, error: 0.0 };
        LossCurve { tag: self.tag(), points: self.losses.iter().enumerate().map(point).collect(), seconds }
    }
}

/// Runs an hour of `until_ps` with all thresholds; with a setup of additional flows, if `has_setup`.
pub(super) fn run(kind: Kind, seed: u64, hour: u64, until_ps: u64, has_setup: bool) -> anyhow::Result<Hour> {
    let rates = if has_setup { RATES } else { 1 };
    let config = SetupConfig {
        port_rate: PORT,
        buffer: ScavengerConfig::default().primary_buffer,
        rates: (0..rates).map(rate).collect(),
        round_trips: vec![Nanos::from_millis(100)],
        window: Nanos::from_millis(100),
    };
    let mut setup = Setup::new(&config, |rate, round_trip| RoundFlow::new(rate, round_trip, PORT))?;
    let flows = cheetahs(seed, hour, until_ps);
    let mut lanes = (0..RATES)
        .map(|place| {
            let port = Port::new(PORT, &ScavengerConfig::default())?;
            Ok(Lane::new(port, Cheetahs::new(flows.clone(), rate(place)), Queue::Primary))
        })
        .collect::<anyhow::Result<Vec<_>>>()?;
    let mut outcomes = vec![Outcome::default(); RATES];
    let mut packets =
        BurstPackets::new(&kind.process(seed, hour), mixed(seed, hour), Rounding::Up)?.peekable();
    let mut group: Vec<Arrival> = Vec::with_capacity(GROUP);
    for part in 0..PARTS {
        let end_ps = until_ps * (part as u64 + 1) / PARTS as u64;
        loop {
            group.clear();
            while group.len() < GROUP
                && let Some(packet) = packets.next_if(|packet| packet.at_ps < end_ps)
            {
                group.push(packet);
            }
            lanes.iter_mut().for_each(|lane| lane.run(&group));
            setup.replay(&group)?;
            if group.len() < GROUP {
                break;
            }
        }
        for (lane, outcome) in lanes.iter_mut().zip(&mut outcomes) {
            lane.run_until(end_ps);
            lane.check_invariants();
            let (tally, moved) = (lane.tally(Origin::Background), lane.flow().moved);
            let add = |parts: &mut [u64; PARTS], total: u64| {
                parts[part] = total - parts[..part].iter().sum::<u64>();
            };
            add(&mut outcome.offered, tally.offered);
            add(&mut outcome.dropped, tally.dropped);
            add(&mut outcome.flows, moved.flows);
            add(&mut outcome.moved, moved.moved);
            add(&mut outcome.packets, moved.packets);
            add(&mut outcome.lasted_ms, moved.lasted_ps / 1_000_000_000);
        }
    }
    let table = setup.table(1.0);
    let losses = if has_setup { table.rows.iter().map(|row| row.loss()).collect() } else { Vec::new() };
    Ok(Hour { mean_rate: table.mean_rate.0, burstiness: table.burstiness, losses, outcomes })
}

/// A seed for the bursts of an hour.
fn mixed(seed: u64, hour: u64) -> u64 {
    seed.wrapping_mul(1_000_003).wrapping_add(hour)
}
