//! A collector: what one monitor port of one switch shows of the switch's flows and links (Rasley et al., "Planck",
//! SIGCOMM 2014, sections 3.2 and 4.2).
//!
//! Packets go through once: the flow table counts them and looks for cheetahs, rates are estimated from bursts of
//! samples ([`crate::rates`]), ports are inferred from the network's forwarding state
//! ([`thalweg_network::inference`]), links add up the rates of their flows, and rules tell when a link is congested.
//!
//! | file | what it has |
//! |---|---|
//! | `options` | what a collector is to do |
//! | `flow_rates` | rate and links of every flow, beside the flow table |
//! | `links` | sums, rules with hysteresis |
//! | `lag` | the smoothing of all sums |
//! | `members` | which flows are on which link |
//! | `report` | what it says of links and flows |
//! | `arrivals` | whether packets of observed pairs that set out arrive |
//!
//! **Same packets, same events.** Whatever packets are put into batches how, and whenever questions are asked between,
//! events are the same: nothing depends on anything but packets and their times.
//!
//! **Memory** is fixed at construction, all in the options; about 450 bytes a flow.

mod arrivals;
mod flow_rates;
mod lag;
mod links;
mod members;
mod options;
mod report;

use std::ops::Range;
use std::sync::Arc;

use thalweg_network::versions::Versions;
use thalweg_sketch::Estimate;
use thalweg_wire::{BitRate, Bytes, Direction, FlowKey, HashSeed, Nanos, Packet, Timestamp};
use thiserror::Error;

pub use arrivals::{ArrivalReport, Observation, PLACES, Progress};
pub use flow_rates::RateCounters;
pub use options::{CollectorOptions, LinkRule, MonitorPort};
pub use report::{AddressChange, Crossing, FlowRate, FlowReport, LinkEvent, LinkReport, LinkSide, Way};

use crate::MemoryError;
use crate::detect::sliding_window::{SlidingWindow, SlidingWindowError};
use crate::meter::flow_table::{self, FlowTable, FlowTableCounters, FlowTableError};
use crate::rates::{Basis, BurstOptions};
use arrivals::Arrivals;
use flow_rates::{Crossed, FlowRates, Named, Rated};

/// The fastest link of a network that is not known: as fast as Ethernet's were when this was written, 800 Gbit/s.
const UNKNOWN_CAPACITY: BitRate = BitRate(800_000_000_000);

/// A burst that is longer tells of no burst.
const LONGEST_BURST: Nanos = Nanos::from_secs(10);

/// What a collector hands on; the caller empties it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Output {
    /// Links whose utilisation has crossed a threshold.
    pub events: Vec<LinkEvent>,
    /// Flows that have been sent another way.
    pub address_changes: Vec<AddressChange>,
    /// Of pairs that are observed.
    pub arrivals: Vec<ArrivalReport>,
    /// Flows that ended, cheetahs that began or ended.
    pub flows: flow_table::Output,
}

/// What a collector has done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Of the flow table.
    pub flow_table: FlowTableCounters,
    /// Milestones of flows that the detector of cheetahs had no room for.
    pub untracked: u64,
    /// Of samples and rates.
    pub rates: RateCounters,
    /// Events handed on.
    pub events: u64,
    /// Crossings that came too soon after another event of the link, and waited.
    pub events_held_back: u64,
}

/// For one that goes on counting where another has ended.
impl std::ops::AddAssign for Counters {
    fn add_assign(&mut self, other: Counters) {
        let Counters { flow_table, untracked, rates, events, events_held_back } = other;
        self.flow_table += flow_table;
        self.untracked += untracked;
        self.rates += rates;
        self.events += events;
        self.events_held_back += events_held_back;
    }
}

/// Why a collector could not be made.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum CollectorError {
    /// The flow table could not be made.
    #[error(transparent)]
    FlowTable(#[from] FlowTableError),
    /// The detector could not be made.
    #[error(transparent)]
    Detector(#[from] SlidingWindowError),
    /// Rates did not fit into memory.
    #[error(transparent)]
    Memory(#[from] MemoryError),
    /// A rule cannot be followed.
    #[error("rule {}: congestion begins at {upper} and ends at {lower} of the capacity: expected 0 < end <= begin", rule + 1)]
    Thresholds {
        /// Its place.
        rule: usize,
        /// Where congestion begins.
        upper: f64,
        /// Where it ends.
        lower: f64,
    },
    /// Bursts that never end, or have no length.
    #[error("bursts of at most {longest}, {gap} apart: expected a gap above 0, and from as long up to 10 s", longest = .0.longest, gap = .0.gap)]
    Bursts(BurstOptions),
    /// Too many rules.
    #[error("{rules} rules: at most {} are followed", CollectorOptions::MAX_RULES)]
    Rules {
        /// How many.
        rules: usize,
    },
}

/// A collector at work.
#[derive(Debug)]
pub struct Collector {
    options: CollectorOptions,
    table: FlowTable,
    rates: FlowRates,
    arrivals: Arrivals,
    events: u64,
}

impl Collector {
    /// A collector that has seen nothing yet. Without a network no ports are inferred, and no link is known.
    ///
    /// # Errors
    /// If an option is out of range, or memory does not suffice.
    pub fn new(
        options: CollectorOptions,
        network: Option<Arc<Versions>>,
    ) -> Result<Collector, CollectorError> {
        options.validate()?;
        let detector = options.threshold.map(|threshold| SlidingWindow::new(threshold, options.tracks));
        let seed = HashSeed::new(options.seed);
        let table = FlowTable::new(options.flow_table, detector.transpose()?, seed)?;
        let rates = FlowRates::new(&options, network)?;
        Ok(Collector { options, table, rates, arrivals: Arrivals::default(), events: 0 })
    }

    /// What it was made with.
    pub fn options(&self) -> &CollectorOptions {
        &self.options
    }

    /// Memory that it takes when it is full.
    pub fn bytes(&self) -> Bytes {
        Bytes(self.table.bytes().0 + self.rates.bytes())
    }

    /// Packet time.
    pub fn clock(&self) -> Timestamp {
        self.table.clock()
    }

    /// Takes packets, in their order. Events are told when all of them are through: for the least delay, a few dozen
    /// at a time.
    pub fn update(&mut self, packets: &[Packet], output: &mut Output) {
        self.table.update_with(packets, &mut output.flows, &mut self.rates);
        if self.arrivals.is_active() {
            self.arrivals.take(packets, &mut output.arrivals);
        }
        self.tell(output);
    }

    /// Lets time pass without packets.
    pub fn advance(&mut self, now: Timestamp, output: &mut Output) {
        self.rates.advance(now);
        self.table.advance_with(now, &mut output.flows, &mut self.rates);
        if self.arrivals.is_active() {
            self.arrivals.advance(now, &mut output.arrivals);
        }
        self.tell(output);
    }

    /// Observes a pair of addresses from now on: reports whether its packets set out, or arrive, at this switch. `false`
    /// if the network does not have the pair at this switch, or too much is observed already.
    pub fn observe(&mut self, observation: Observation) -> bool {
        let Some(network) = self.rates.network() else { return false };
        let topology = network.newest().state.topology();
        self.arrivals.observe(observation, topology, self.options.router, self.table.clock())
    }

    /// Goes on with what another collector of the same switch observed.
    pub fn observe_as(&mut self, other: &Collector) {
        self.arrivals = other.arrivals.clone();
    }

    /// Hands on every flow that is left. That links are empty then is no event.
    pub fn finish(&mut self, output: &mut Output) {
        self.table.finish_with(&mut output.flows, &mut self.rates);
        self.rates.crossed().clear();
    }

    /// From now on the network is another, or has changed.
    pub fn set_network(&mut self, network: Option<Arc<Versions>>) {
        self.rates.set_network(&self.options, network);
    }

    /// All links of the switch: input and output of each port, in the order of ports.
    pub fn links(&self) -> Vec<LinkReport> {
        (0..self.rates.links()).map(|link| self.rates.report(link, self.clock())).collect()
    }

    /// Flows lie in slots from 0 up to here.
    pub fn slots(&self) -> u32 {
        self.table.slots()
    }

    /// The flows in some slots: each direction that there are samples of.
    pub fn flows(&self, slots: Range<u32>) -> impl Iterator<Item = FlowReport> + '_ {
        let slots = slots.start..slots.end.min(self.slots());
        slots.flat_map(move |slot| {
            let directions = [Direction::Forward, Direction::Reverse];
            directions.into_iter().filter_map(move |direction| self.flow_at(slot, direction))
        })
    }

    /// The flow with this key, in the key's direction.
    pub fn flow(&self, key: &FlowKey) -> Option<FlowReport> {
        let (slot, direction) = self.table.slot_of(key)?;
        self.flow_at(slot, direction)
    }

    /// The share of mirrored packets that reach this collector, if TCP flows have shown it.
    pub fn sampling_ratio(&self) -> Option<Estimate> {
        self.rates.sampling_ratio()
    }

    /// What it has done so far.
    pub fn counters(&self) -> Counters {
        Counters {
            flow_table: self.table.counters(),
            untracked: self.table.detector().map_or(0, SlidingWindow::untracked),
            rates: self.rates.counters(),
            events: self.events,
            events_held_back: self.rates.held_back(),
        }
    }

    fn flow_at(&self, slot: u32, direction: Direction) -> Option<FlowReport> {
        let seen = self.table.seen(slot, direction)?;
        let track = self.rates.track(slot, direction);
        let [input, output] = FlowRates::ports(track);
        Some(FlowReport {
            key: seen.key,
            rate: self.rates.rated(flow_rates::track_of(slot, direction)).map(|rated| rated.of(seen.key)),
            input,
            output,
            first: seen.first,
            last: seen.last,
            samples: seen.packets,
            sampled: seen.bytes,
            repeated: Bytes(u64::from(track.repeated())),
            reordered: u64::from(track.reordered()),
            is_cheetah: seen.is_cheetah,
        })
    }

    /// Turns what rules have found into events.
    fn tell(&mut self, output: &mut Output) {
        output.address_changes.append(self.rates.address_changes());
        let crossed = std::mem::take(self.rates.crossed());
        for crossed in crossed {
            let event = self.event(crossed);
            output.events.push(event);
            self.events += 1;
        }
    }

    fn event(&self, crossed: Crossed) -> LinkEvent {
        let Crossed { told, link, version, time, flows } = crossed;
        for named in &flows {
            self.table.prefetch(flow_rates::slot_of(named.track).0);
        }
        let named = flows.into_iter().filter_map(|Named { track, key, rated }| {
            let (slot, direction) = flow_rates::slot_of(track);
            Some(rated.of(key.or_else(|| Some(self.table.seen(slot, direction)?.key))?))
        });
        let flows: Vec<FlowRate> = named.collect();
        let flows_left_out = link.flows.saturating_sub(flows.len() as u32);
        LinkEvent {
            crossing: told.crossing,
            link,
            rule: told.rule,
            threshold: told.threshold,
            version,
            time,
            flows,
            flows_left_out,
        }
    }
}

impl Rated {
    fn of(self, key: FlowKey) -> FlowRate {
        let Rated { rate, ethernet, basis, span } = self;
        let basis = if rate.value == 0.0 { Basis::Nothing } else { basis };
        FlowRate { key, ethernet, rate, basis, span }
    }
}

impl CollectorOptions {
    /// Checks what does not depend on how much memory there is.
    ///
    /// # Errors
    /// If an option is out of range.
    pub fn validate(&self) -> Result<(), CollectorError> {
        if self.rules.len() > CollectorOptions::MAX_RULES {
            return Err(CollectorError::Rules { rules: self.rules.len() });
        }
        let BurstOptions { gap, longest } = self.bursts;
        if gap == Nanos::ZERO || longest < gap || longest > LONGEST_BURST {
            return Err(CollectorError::Bursts(self.bursts));
        }
        let wrong = self.rules.iter().position(|rule| !(0.0 < rule.lower && rule.lower <= rule.upper));
        match wrong {
            Some(rule) => {
                let LinkRule { upper, lower, .. } = self.rules[rule];
                Err(CollectorError::Thresholds { rule, upper, lower })
            }
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests;
