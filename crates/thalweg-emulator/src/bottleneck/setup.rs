//! The setup stage of threshold adaptation: loss by flow rate for recorded traffic (Maji, dissertation, University of
//! Virginia 2018, section 4.2).
//!
//! A port's packets, as times and lengths, are replayed together with a flow of each rate and round-trip time. The
//! result is tagged with the traffic's mean rate and burstiness. The threshold is the largest rate at which the other
//! packets' loss is acceptable, by the results of the longest round trip, because a measurement does not know the round
//! trips of flows, and long ones cause more loss.
//!
//! One pass serves all rates. Packets are handed over in groups, which stay in the cache while all lanes process them.

use thalweg_wire::{BitRate, Nanos};
use thiserror::Error;

use super::SECOND_PS;
use super::lane::{Lane, PortFlow};
use super::port::{Origin, Port, Queue};
use crate::schemes::SchemeError;
use crate::schemes::scavenger::ScavengerConfig;
use crate::workloads::burst_process::Arrival;
use crate::workloads::burstiness::Burstiness;

/// What recorded traffic is replayed with.
#[derive(Clone, Debug, PartialEq)]
pub struct SetupConfig {
    /// The rate of the port: C.
    pub port_rate: BitRate,
    /// The buffer of its queue in bytes.
    pub buffer: u64,
    /// Rates of flows, ascending.
    pub rates: Vec<BitRate>,
    /// Idle round-trip times of flows, ascending.
    pub round_trips: Vec<Nanos>,
    /// The window of burstiness: T1.
    pub window: Nanos,
}

/// Why a setup cannot run.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum SetupError {
    /// No rates, or not in order.
    #[error("flow rates: expected one or more, above 0 and ascending")]
    Rates,
    /// No round-trip times, or not in order.
    #[error("round-trip times: expected one or more, above 0 and ascending")]
    RoundTrips,
    /// The buffer is out of range.
    #[error(transparent)]
    Port(#[from] SchemeError),
    /// A packet is earlier than the one before.
    #[error("packet at {at_ps} ps comes after one at {last_ps} ps: expected packets in order of time")]
    Order {
        /// Its time.
        at_ps: u64,
        /// The time before.
        last_ps: u64,
    },
}

/// A replay under way.
#[derive(Clone, Debug)]
pub struct Setup<F> {
    lanes: Vec<(BitRate, Nanos, Lane<F>)>,
    burstiness: Burstiness,
    last_ps: u64,
}

impl<F: PortFlow> Setup<F> {
    /// A replay without packets. `flow` makes the flow for a rate and a round-trip time.
    ///
    /// # Errors
    /// If a setting is out of range.
    pub fn new(config: &SetupConfig, flow: impl Fn(BitRate, Nanos) -> F) -> Result<Setup<F>, SetupError> {
        let SetupConfig { rates, round_trips, .. } = config;
        let ascend = |values: &[u64]| values.first().is_some_and(|&first| first > 0) && values.is_sorted();
        if !ascend(&rates.iter().map(|rate| rate.0).collect::<Vec<_>>()) {
            return Err(SetupError::Rates);
        }
        if !ascend(&round_trips.iter().map(|time| time.0).collect::<Vec<_>>()) {
            return Err(SetupError::RoundTrips);
        }
        let queues = ScavengerConfig { primary_buffer: config.buffer, ..ScavengerConfig::default() };
        let port = Port::new(config.port_rate, &queues)?;
        let pairs = round_trips.iter().flat_map(|&time| rates.iter().map(move |&rate| (rate, time)));
        let lane = |(rate, time)| (rate, time, Lane::new(port.clone(), flow(rate, time), Queue::Primary));
        Ok(Setup {
            lanes: pairs.map(lane).collect(),
            burstiness: Burstiness::new(config.window.0 * 1_000),
            last_ps: 0,
        })
    }

    /// Replays a group of packets: some hundreds or thousands, in order of time.
    ///
    /// # Errors
    /// If they are not in order. Nothing is replayed then.
    pub fn replay(&mut self, packets: &[Arrival]) -> Result<(), SetupError> {
        let mut last_ps = self.last_ps;
        for packet in packets {
            if packet.at_ps < last_ps {
                return Err(SetupError::Order { at_ps: packet.at_ps, last_ps });
            }
            last_ps = packet.at_ps;
        }
        self.last_ps = last_ps;
        packets.iter().for_each(|packet| self.burstiness.add(packet.at_ps, packet.length));
        self.lanes.iter_mut().for_each(|(_, _, lane)| lane.run(packets));
        Ok(())
    }

    /// The results so far.
    pub fn table(&self) -> LossTable {
        let row = |(rate, round_trip, lane): &(BitRate, Nanos, Lane<F>)| LossRow {
            rate: *rate,
            round_trip: *round_trip,
            offered: lane.tally(Origin::Background).offered,
            dropped: lane.tally(Origin::Background).dropped,
        };
        LossTable {
            mean_rate: BitRate(self.burstiness.mean_bps().max(0.0) as u64),
            burstiness: self.burstiness.value(),
            seconds: self.last_ps as f64 / SECOND_PS as f64,
            rows: self.lanes.iter().map(row).collect(),
        }
    }
}

/// Loss of the recorded packets with one flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LossRow {
    /// The rate of the flow.
    pub rate: BitRate,
    /// Its idle round-trip time.
    pub round_trip: Nanos,
    /// Recorded packets.
    pub offered: u64,
    /// Those that were dropped.
    pub dropped: u64,
}

impl LossRow {
    /// The share of recorded packets that were dropped.
    pub fn loss(&self) -> f64 {
        self.dropped as f64 / self.offered.max(1) as f64
    }
}

/// Loss by flow rate, tagged with the traffic that it holds for.
#[derive(Clone, Debug, PartialEq)]
pub struct LossTable {
    /// The traffic's mean rate.
    pub mean_rate: BitRate,
    /// Its burstiness; NaN if no window is complete.
    pub burstiness: f64,
    /// Its duration.
    pub seconds: f64,
    /// By round-trip time, then by rate, ascending.
    pub rows: Vec<LossRow>,
}

impl LossTable {
    /// The largest rate up to which no rate exceeds the acceptable loss, by the results of the longest round trip;
    /// `None` if the lowest rate already does.
    pub fn threshold(&self, acceptable: f64) -> Option<BitRate> {
        let longest = self.rows.iter().map(|row| row.round_trip).max()?;
        let rows = self.rows.iter().filter(|row| row.round_trip == longest);
        rows.take_while(|row| row.loss() <= acceptable).last().map(|row| row.rate)
    }
}
