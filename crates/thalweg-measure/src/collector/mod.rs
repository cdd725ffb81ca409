//! A collector: estimates the flow rates and link utilisation of one switch from its monitor port (Rasley et al.,
//! "Planck", SIGCOMM 2014, sections 3.2 and 4.2).
//!
//! Packets pass through once. The flow table counts them and detects cheetahs. Rates are estimated from bursts of
//! samples ([`crate::rates`]). Ports are inferred from the network's forwarding state
//! ([`thalweg_network::inference`]). Links add up the rates of their flows, and rules detect congestion.
//!
//! | file | contents |
//! |---|---|
//! | `options` | configuration of a collector |
//! | `flow_rates` | rate and links of every flow, beside the flow table |
//! | `links` | sums, rules with hysteresis |
//! | `smoothing` | exponential smoothing of the sums of links |
//! | `members` | the flows on each link |
//! | `report` | reports on links and flows |
//! | `arrivals` | whether packets of observed pairs depart and arrive |
//!
//! **Same packets, same events.** Events depend only on packets and their times, not on batches or on queries in
//! between.
//!
//! **Memory** is allocated at construction and depends only on the options; about 450 bytes per flow.

mod arrivals;
mod flow_rates;
mod links;
mod members;
mod options;
mod report;
mod smoothing;

use std::ops::Range;
use std::sync::Arc;

use thalweg_network::versions::Versions;
use thalweg_sketch::Estimate;
use thalweg_wire::{BitRate, Bytes, Direction, FlowKey, HashSeed, Nanos, Packet, Timestamp};
use thiserror::Error;

pub use arrivals::{ArrivalReport, OBSERVATION_SLOTS, Observation, Progress};
pub use flow_rates::RateCounters;
pub use options::{CollectorOptions, LinkRule, MonitorPort};
pub use report::{
    AddressChange, CongestionChange, CongestionEvent, FlowRate, FlowReport, LinkDirection, LinkReport,
    PortDirection,
};

use crate::MemoryError;
use crate::detect::sliding_window::{SlidingWindow, SlidingWindowError};
use crate::meter::flow_table::{self, FlowTable, FlowTableCounters, FlowTableError};
use crate::rates::{Basis, BurstOptions};
use arrivals::Arrivals;
use flow_rates::{FlowRates, LinkChange, NamedFlow, Rated};

/// The assumed speed of the fastest link if the network is not known: the fastest Ethernet, 800 Gbit/s.
const UNKNOWN_CAPACITY: BitRate = BitRate(800_000_000_000);

/// The upper limit of the longest burst; longer bursts make no sense.
const LONGEST_BURST: Nanos = Nanos::from_secs(10);

/// The output of a collector; the caller clears it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Output {
    /// Congestion that began, cleared, or is repeated.
    pub events: Vec<CongestionEvent>,
    /// Flows whose addresses changed: they were rerouted.
    pub address_changes: Vec<AddressChange>,
    /// Reports on observed pairs.
    pub arrivals: Vec<ArrivalReport>,
    /// Flows that ended, cheetahs that began or ended.
    pub flows: flow_table::Output,
}

/// Counters of a collector.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Counters of the flow table.
    pub flow_table: FlowTableCounters,
    /// Milestones of flows for which the cheetah detector had no track left.
    pub untracked: u64,
    /// Directions of ended flows that came within 1/64 of the cheetah threshold, and may have exceeded it.
    pub undecided: u64,
    /// Counters of samples and rates.
    pub rates: RateCounters,
    /// Events emitted.
    pub events: u64,
    /// Changes that were delayed because they occurred too soon after another event of the link.
    pub events_delayed: u64,
}

/// For a collector that continues counting after another one.
impl std::ops::AddAssign for Counters {
    fn add_assign(&mut self, other: Counters) {
        let Counters { flow_table, untracked, undecided, rates, events, events_delayed } = other;
        self.flow_table += flow_table;
        self.untracked += untracked;
        self.undecided += undecided;
        self.rates += rates;
        self.events += events;
        self.events_delayed += events_delayed;
    }
}

/// Why a collector could not be created.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum CollectorError {
    /// The flow table could not be created.
    #[error(transparent)]
    FlowTable(#[from] FlowTableError),
    /// The detector could not be created.
    #[error(transparent)]
    Detector(#[from] SlidingWindowError),
    /// Rates did not fit into memory.
    #[error(transparent)]
    Memory(#[from] MemoryError),
    /// A rule is invalid.
    #[error("rule {}: thresholds upper = {upper}, lower = {lower}: expected 0 < lower <= upper", rule + 1)]
    Thresholds {
        /// The index of the rule.
        rule: usize,
        /// The upper threshold, a share of the capacity.
        upper: f64,
        /// The lower threshold, a share of the capacity.
        lower: f64,
    },
    /// The burst options are out of range.
    #[error("bursts: gap {gap}, longest {longest}: expected 0 < gap <= longest <= 10 s", longest = .0.longest, gap = .0.gap)]
    Bursts(BurstOptions),
    /// There are too many rules.
    #[error("{rules} rules: expected at most {}", CollectorOptions::MAX_RULES)]
    Rules {
        /// The number of rules.
        rules: usize,
    },
}

/// Estimates flow rates and link utilisation of one switch.
#[derive(Debug)]
pub struct Collector {
    options: CollectorOptions,
    table: FlowTable,
    rates: FlowRates,
    arrivals: Arrivals,
    events: u64,
}

impl Collector {
    /// Creates a collector. Without a network no ports are inferred, and no links are known.
    ///
    /// # Errors
    /// If an option is out of range, or memory is insufficient.
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

    /// Sets whether packets have the time of this machine's clock: if that is set back, all flows end and begin anew. As
    /// [`FlowTable::with_live_clock`].
    pub fn with_live_clock(self, is_live: bool) -> Collector {
        Collector { table: self.table.with_live_clock(is_live), ..self }
    }

    /// Returns the options.
    pub fn options(&self) -> &CollectorOptions {
        &self.options
    }

    /// Returns the memory of a full collector.
    pub fn bytes(&self) -> Bytes {
        Bytes(self.table.bytes().0 + self.rates.bytes())
    }

    /// Returns the packet time.
    pub fn clock(&self) -> Timestamp {
        self.table.clock()
    }

    /// Processes packets in order. Events are emitted after all of them: for the least delay, pass a few dozen at a
    /// time.
    pub fn update(&mut self, packets: &[Packet], output: &mut Output) {
        self.table.update_with(packets, &mut output.flows, &mut self.rates);
        if self.arrivals.is_active() {
            self.arrivals.process(packets, &mut output.arrivals);
        }
        self.emit_events(output);
    }

    /// Advances the time without packets.
    pub fn advance(&mut self, now: Timestamp, output: &mut Output) {
        self.rates.advance(now);
        self.table.advance_with(now, &mut output.flows, &mut self.rates);
        if self.arrivals.is_active() {
            self.arrivals.advance(now, &mut output.arrivals);
        }
        self.emit_events(output);
    }

    /// Replaces the cheetah detector, whose threshold then applies; returns the one before. As
    /// [`FlowTable::replace_detector`].
    ///
    /// # Errors
    /// If the flow table cannot use it.
    pub fn replace_detector(
        &mut self,
        detector: SlidingWindow,
    ) -> Result<Option<SlidingWindow>, FlowTableError> {
        let threshold = detector.threshold();
        let before = self.table.replace_detector(detector)?;
        self.options.threshold = Some(threshold);
        Ok(before)
    }

    /// Starts to observe a pair of addresses: reports whether its packets depart or arrive at this switch. Returns
    /// `false` if the pair is not attached to this switch, or the maximum number of observations is reached.
    pub fn observe(&mut self, observation: Observation) -> bool {
        let Some(network) = self.rates.network() else { return false };
        let topology = network.newest().state.topology();
        self.arrivals.observe(observation, topology, self.options.router, self.table.clock())
    }

    /// Continues the observations of another collector of the same switch.
    pub fn observe_as(&mut self, other: &Collector) {
        self.arrivals = other.arrivals.clone();
    }

    /// Outputs every remaining flow. The links become empty without an event.
    pub fn finish(&mut self, output: &mut Output) {
        self.table.finish_with(&mut output.flows, &mut self.rates);
        self.rates.link_changes().clear();
    }

    /// Sets a new network, or a new version of it.
    pub fn set_network(&mut self, network: Option<Arc<Versions>>) {
        self.rates.set_network(&self.options, network);
    }

    /// Returns all links of the switch: input and output of each port, in the order of ports.
    pub fn links(&self) -> Vec<LinkReport> {
        (0..self.rates.links()).map(|link| self.rates.report(link, self.clock())).collect()
    }

    /// Returns the end of the range of slots that flows use, from 0.
    pub fn slots(&self) -> u32 {
        self.table.slots()
    }

    /// Returns the flows in a range of slots: each direction with samples.
    pub fn flows(&self, slots: Range<u32>) -> impl Iterator<Item = FlowReport> + '_ {
        let slots = slots.start..slots.end.min(self.slots());
        slots.flat_map(move |slot| {
            let directions = [Direction::Forward, Direction::Reverse];
            directions.into_iter().filter_map(move |direction| self.flow_at(slot, direction))
        })
    }

    /// Returns the flow with this key, in the key's direction.
    pub fn flow(&self, key: &FlowKey) -> Option<FlowReport> {
        let (slot, direction) = self.table.slot_of(key)?;
        self.flow_at(slot, direction)
    }

    /// Returns the sampling ratio of the monitor port, if recent TCP flows allow an estimate.
    pub fn sampling_ratio(&self) -> Option<Estimate> {
        self.rates.sampling_ratio()
    }

    /// Returns the counters.
    pub fn counters(&self) -> Counters {
        Counters {
            flow_table: self.table.counters(),
            untracked: self.table.detector().map_or(0, SlidingWindow::untracked),
            undecided: self.table.detector().map_or(0, SlidingWindow::undecided),
            rates: self.rates.counters(),
            events: self.events,
            events_delayed: self.rates.delayed(),
        }
    }

    fn flow_at(&self, slot: u32, direction: Direction) -> Option<FlowReport> {
        let seen = self.table.direction_counts(slot, direction)?;
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

    /// Turns changes of congestion into events.
    fn emit_events(&mut self, output: &mut Output) {
        output.address_changes.append(self.rates.address_changes());
        let changes = std::mem::take(self.rates.link_changes());
        for change in changes {
            let event = self.event(change);
            output.events.push(event);
            self.events += 1;
        }
    }

    fn event(&self, change: LinkChange) -> CongestionEvent {
        let LinkChange { fired, link, version, time, flows } = change;
        for named in &flows {
            self.table.prefetch(flow_rates::slot_of(named.track).0);
        }
        let named = flows.into_iter().filter_map(|NamedFlow { track, key, rated }| {
            let (slot, direction) = flow_rates::slot_of(track);
            Some(rated.of(key.or_else(|| Some(self.table.direction_counts(slot, direction)?.key))?))
        });
        let flows: Vec<FlowRate> = named.collect();
        let flows_left_out = link.flows.saturating_sub(flows.len() as u32);
        CongestionEvent {
            change: fired.change,
            link,
            rule: fired.rule,
            threshold: fired.threshold,
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
    /// Checks the options, except for memory.
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
