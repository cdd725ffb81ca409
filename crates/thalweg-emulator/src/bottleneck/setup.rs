//! The setup stage of threshold adaptation: loss by flow rate for recorded traffic (Maji, dissertation, University of
//! Virginia 2018, section 4.2).
//!
//! A port's packets, as times and lengths, are replayed together with a flow of each rate and round-trip time. The
//! result is tagged with the traffic's mean rate and burstiness. The threshold is the largest rate at which the other
//! packets' loss is acceptable, by the results of the longest round trip, because a measurement does not know the round
//! trips of flows, and long ones cause more loss.
//!
//! One pass serves all rates. Packets are handed over in groups, which stay in the cache while all lanes process them.
//!
//! **Samples.** A part of the traffic can stand for all of it: stretches of it, one after the other
//! ([`sample`](super::sample)). [`Setup::end_stretch`] follows each. Loss is then a ratio estimated from a sample of clusters, whose standard error follows from
//! the differences between stretches (Cochran 1977, section 6.3). Where few stretches lose anything, these differences say little about the stretches
//! that were not replayed. So the error also contains one more stretch that loses as much as the worst one did at the next higher rate; where that
//! lost nothing, at the lowest higher rate with a loss, because a slower flow takes no more of the buffer. A packet is the least, so that no error
//! of a sample is 0.

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
    /// By lane.
    stretches: Vec<Stretches>,
    burstiness: Burstiness,
    last_ps: u64,
}

/// Sums over stretches of background packets: d dropped of n offered.
#[derive(Clone, Copy, Debug, Default)]
struct Stretches {
    count: u64,
    /// What ended with the last stretch.
    offered: u64,
    dropped: u64,
    /// Sums of d^2, d n and n^2.
    squares: [f64; 3],
    /// The largest d.
    most: u64,
}

impl Stretches {
    fn end(&mut self, offered: u64, dropped: u64) {
        let (n, d) = ((offered - self.offered) as f64, (dropped - self.dropped) as f64);
        self.most = self.most.max(dropped - self.dropped);
        (self.offered, self.dropped) = (offered, dropped);
        self.count += 1;
        self.squares = [self.squares[0] + d * d, self.squares[1] + d * n, self.squares[2] + n * n];
    }

    /// The standard error of the loss; 0 with fewer than two stretches. `share` is the share of the traffic in them, `unseen` what
    /// one more stretch may drop.
    fn error(&self, share: f64, unseen: u64) -> f64 {
        if self.count < 2 || self.offered == 0 {
            return 0.0;
        }
        let loss = self.dropped as f64 / self.offered as f64;
        let [dd, dn, nn] = self.squares;
        let residuals = (dd - 2.0 * loss * dn + loss * loss * nn).max(0.0);
        let count = self.count as f64;
        let seen = residuals * count / (count - 1.0);
        let variance = (1.0 - share).max(0.0) * (seen + (unseen as f64).powi(2));
        variance.sqrt() / self.offered as f64
    }
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
        let lanes: Vec<_> = pairs.map(lane).collect();
        Ok(Setup {
            stretches: vec![Stretches::default(); lanes.len()],
            lanes,
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

    /// Packets of all lanes so far: recorded ones and those of flows.
    pub fn packets(&self) -> u64 {
        let offered =
            |lane: &Lane<F>| [Origin::Background, Origin::Flow].map(|origin| lane.tally(origin).offered);
        self.lanes.iter().flat_map(|(_, _, lane)| offered(lane)).sum()
    }

    /// Ends a stretch of a sample.
    pub fn end_stretch(&mut self) {
        for ((_, _, lane), stretches) in self.lanes.iter().zip(&mut self.stretches) {
            let tally = lane.tally(Origin::Background);
            stretches.end(tally.offered, tally.dropped);
        }
    }

    /// The results so far, of which `share` is the share of the traffic that was replayed: 1 for all.
    pub fn table(&self, share: f64) -> LossTable {
        let row = |(place, (rate, round_trip, lane)): (usize, &(BitRate, Nanos, Lane<F>))| LossRow {
            rate: *rate,
            round_trip: *round_trip,
            offered: lane.tally(Origin::Background).offered,
            dropped: lane.tally(Origin::Background).dropped,
            error: self.stretches[place].error(share, self.most_dropped(place)),
        };
        LossTable {
            mean_rate: BitRate(self.burstiness.mean_bps().max(0.0) as u64),
            burstiness: self.burstiness.value(),
            seconds: self.last_ps as f64 / SECOND_PS as f64,
            rows: self.lanes.iter().enumerate().map(row).collect(),
        }
    }

    /// The packets that a stretch dropped at most with the flow of a lane, or with that of the next higher rate; if neither
    /// dropped any, with that of the lowest higher rate that did. At least one.
    fn most_dropped(&self, place: usize) -> u64 {
        let (_, round_trip, _) = self.lanes[place];
        let higher = self.lanes.iter().zip(&self.stretches).skip(place + 1);
        let mut higher = higher.take_while(|((_, other, _), _)| *other == round_trip).map(|(_, it)| it.most);
        let next = higher.next().unwrap_or(0);
        match self.stretches[place].most.max(next) {
            0 => higher.find(|most| *most > 0).unwrap_or(1),
            most => most,
        }
    }
}

/// Loss of the recorded packets with one flow.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LossRow {
    /// The rate of the flow.
    pub rate: BitRate,
    /// Its idle round-trip time.
    pub round_trip: Nanos,
    /// Recorded packets.
    pub offered: u64,
    /// Those that were dropped.
    pub dropped: u64,
    /// The standard error of the loss if a sample was replayed; otherwise 0.
    pub error: f64,
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
    /// The rows of the longest round trip, which a threshold is chosen by.
    pub fn of_longest_round_trip(&self) -> impl Iterator<Item = &LossRow> {
        let longest = self.rows.iter().map(|row| row.round_trip).max();
        self.rows.iter().filter(move |row| Some(row.round_trip) == longest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bottleneck::round_flow::RoundFlow;

    /// A stretch without loss says little about the next one if a higher rate lost packets in some.
    #[test]
    fn a_rate_without_loss_has_the_error_of_the_worst_stretch_of_a_higher_rate() {
        let config = SetupConfig {
            port_rate: BitRate(1_000),
            buffer: 150_000,
            rates: vec![BitRate(100), BitRate(150), BitRate(200)],
            round_trips: vec![Nanos::from_millis(10), Nanos::from_millis(100)],
            window: Nanos::from_millis(100),
        };
        let mut setup =
            Setup::new(&config, |rate, time| RoundFlow::new(rate, time, config.port_rate)).unwrap();
        let dropped = [[0, 0], [0, 0], [30, 10], [0, 0], [0, 0], [0, 0]];
        for (stretches, dropped) in setup.stretches.iter_mut().zip(dropped) {
            stretches.end(1_000, dropped[0]);
            stretches.end(2_000, dropped[0] + dropped[1]);
        }
        let errors: Vec<f64> = setup.table(0.75).rows.iter().map(|row| row.error).collect();
        // Of both stretches with a loss, residuals of 10 each. With the longer round trip nothing is lost: a packet may be.
        let (unseen, seen) = (30.0 * 30.0, 2.0 * (10.0 * 10.0 + 10.0 * 10.0));
        let expected = [unseen, unseen, seen + unseen, 1.0, 1.0, 1.0]
            .map(|variance: f64| (0.25 * variance).sqrt() / 2_000.0);
        assert!(
            errors.iter().zip(expected).all(|(error, expected)| (error - expected).abs() < 1e-9),
            "{errors:?}"
        );
    }
}
