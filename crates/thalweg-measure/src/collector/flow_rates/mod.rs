//! The per-flow state of a collector beside the flow table: the rate of each flow, and its links.
//!
//! **One pass.** The flow table finds a packet's slot, and prefetches the two cache lines here for that slot and
//! direction. A sample within a burst only updates these. The first sample of a burst closes a span: the rate
//! changes, and with it the sums of two links.
//!
//! **Time** is packet time. Timers are processed when a packet passes the end of a [`TICK`], so results depend on
//! packets and not on how they are batched.

mod counters;
mod flag;
mod link_changes;
mod measure;
mod ports;
mod silence;

use std::sync::Arc;

use thalweg_network::versions::Versions;
use thalweg_network::{PortIndex, RouterId};
use thalweg_sketch::Estimate;
use thalweg_wire::{Direction, EthernetAddresses, FlowKey, MacAddress, Nanos, Packet, Protocol, Timestamp};

use super::links::{self, Links, index_of};
use super::members::Members;
use super::options::{CollectorOptions, MonitorPort};
use super::report::{AddressChange, LinkDirection, LinkReport, PortDirection};
use crate::memory::{LargeArray, MemoryError, prefetch};
use crate::meter::ages::Ages;
use crate::meter::observer::Observer;
use crate::rates::bounds::Bounds;
use crate::rates::burst::{Sampled, Span, TURNED_BACK, Track, TrackContext};
use crate::rates::frame_sizes::{self, FrameSizes, Framing};
use crate::rates::sampling::SamplingRatio;
use crate::rates::shared_counters::SharedCounters;
use crate::rates::unseen::UnseenBytes;
use crate::rates::{Basis, BurstOptions};
pub use counters::RateCounters;
pub(super) use link_changes::{LinkChange, NamedFlow};
use measure::Measured;
use ports::capacities;

/// The interval of timer processing: flows that have become idle, rules that wait.
pub(super) const TICK: Nanos = Nanos::from_micros(250);

/// The maximum idle timeout of a rate. Less than the 1 s that a flow lingers after its end, so that flows leave the
/// links before they leave the flow table.
const MAX_IDLE_TIMEOUT: u64 = 900_000_000;

/// Half of all sequence numbers: beyond that, the advance between two samples is ambiguous.
const SEQUENCE_NUMBERS: f64 = 2_147_483_648.0;

/// A rate above this multiple of the fastest link is not a rate: another connection has the same ports.
const PLAUSIBLE: f64 = 1.25;

/// The rate in a track.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rated {
    pub(super) rate: Estimate,
    pub(super) ethernet: EthernetAddresses,
    pub(super) basis: Basis,
    pub(super) span: (Timestamp, Timestamp),
}

/// Rates and links of all flows.
#[derive(Debug)]
pub(super) struct FlowRates {
    /// By slot, and within it by direction.
    tracks: LargeArray<Track>,
    members: Members,
    idle_order: Ages,
    links: Links,
    ratio: SamplingRatio,
    unseen: UnseenBytes,
    shared: SharedCounters,
    /// Until then rates from identifications are in use.
    identified_until: Timestamp,
    frames: FrameSizes,
    /// The configured bursts, for full-sized frames.
    configured_bursts: BurstOptions,
    /// The same for the frames that arrive.
    bursts: BurstOptions,
    monitor: Option<MonitorPort>,
    /// The bytes of a full-sized frame, including framing.
    full_frame: f64,
    router: RouterId,
    network: Option<Arc<Versions>>,
    /// Incremented whenever port inference may give new results: a version begins, or its transition time is over.
    era: u32,
    era_ends: Timestamp,
    /// The uncertainty of a sample's time in nanoseconds, if known.
    jitter: Option<f64>,
    /// The inverse of the monitor port's rate in bits per second; zero if unknown.
    per_monitor_rate: f64,
    longest_span: u64,
    /// The maximum idle timeout of a rate.
    max_idle_timeout: u64,
    /// The rate of the fastest link in bits per second.
    fastest: f64,
    context: TrackContext,
    /// The latest packet time.
    now: Timestamp,
    next_tick: u64,
    counters: RateCounters,
    /// The maximum number of flows to name, by rule.
    named: Vec<usize>,
    /// Reused from event to event.
    largest: Vec<(u64, u32)>,
    link_changes: Vec<LinkChange>,
    address_changes: Vec<AddressChange>,
}

impl FlowRates {
    /// Allocates state for as many flows as the flow table has.
    pub(super) fn new(
        options: &CollectorOptions,
        network: Option<Arc<Versions>>,
    ) -> Result<Self, MemoryError> {
        let directions = 2 * options.flow_table.capacity as usize;
        let mut rates = FlowRates {
            tracks: LargeArray::zeroed(directions)?,
            members: Members::new(directions)?,
            idle_order: Ages::new(directions)?,
            links: Links::new(&[], &options.rules, options.smoothing),
            ratio: SamplingRatio::new(options.bursts.longest),
            unseen: UnseenBytes::default(),
            shared: SharedCounters::default(),
            identified_until: Timestamp(0),
            frames: FrameSizes::default(),
            configured_bursts: options.bursts,
            bursts: options.bursts,
            monitor: options.monitor,
            full_frame: f64::from(frame_sizes::FULL_FRAME),
            router: options.router,
            network,
            era: 0,
            era_ends: Timestamp(0),
            jitter: None,
            per_monitor_rate: options.monitor.map_or(0.0, |monitor| 1.0 / monitor.rate.0.max(1) as f64),
            longest_span: 0,
            max_idle_timeout: options.flow_table.linger.0.saturating_sub(2 * TICK.0).min(MAX_IDLE_TIMEOUT),
            fastest: 0.0,
            context: TrackContext { bytes_per_ns: 0.0, is_all: false, jitter_ns: 0, framing: Framing::PLAIN },
            now: Timestamp(0),
            next_tick: 0,
            counters: RateCounters::default(),
            named: options.rules.iter().map(|rule| rule.flows).collect(),
            largest: Vec::new(),
            link_changes: Vec::new(),
            address_changes: Vec::new(),
        };
        rates.set_up_links(options);
        rates.adapt_to_frames();
        Ok(rates)
    }

    /// Sets up the links of the newest topology.
    fn set_up_links(&mut self, options: &CollectorOptions) {
        let capacities = capacities(self.network.as_deref(), self.router);
        let fastest = capacities.iter().copied().max().unwrap_or(super::UNKNOWN_CAPACITY);
        self.fastest = fastest.0 as f64;
        self.context.bytes_per_ns = PLAUSIBLE * self.fastest / 8e9;
        self.longest_span = (SEQUENCE_NUMBERS / self.context.bytes_per_ns).min(1e18) as u64;
        self.links.set_up(&capacities, &options.rules);
        self.members.set_up(self.links.len());
    }

    /// Sets a new network version; ports are inferred again as packets arrive. If the links have changed, rates and
    /// sums restart too.
    pub(super) fn set_network(&mut self, options: &CollectorOptions, network: Option<Arc<Versions>>) {
        let ports = |network: &Option<Arc<Versions>>| capacities(network.as_deref(), self.router);
        let same = ports(&self.network) == ports(&network);
        self.network = network;
        self.era_ends = Timestamp(0);
        if !same {
            for link in 0..self.links.len() {
                let tracks: Vec<u32> = self.members.of(link).flatten().collect();
                for track in tracks {
                    let track = &mut self.tracks[track as usize];
                    (track.rate, track.ports.input, track.ports.output) = (0, 0, 0);
                    track.ports.flags &= !flag::HAS_RATE;
                }
            }
            self.set_up_links(options);
        }
    }

    /// Returns the network, if known.
    pub(super) fn network(&self) -> Option<&Versions> {
        self.network.as_deref()
    }

    pub(super) fn counters(&self) -> RateCounters {
        self.counters
    }

    /// Returns the number of link directions.
    pub(super) fn links(&self) -> usize {
        self.links.len()
    }

    /// Returns the current state of a link.
    pub(super) fn report(&self, link: usize, now: Timestamp) -> LinkReport {
        let mut rate = Estimate::exact(0.0);
        self.each_member(link, |_, track| rate = links::sum(rate, track.bounds.of(track.rate)));
        let rate = self.link_rate(link, rate, now);
        self.links.report(link, now, rate, self.members.count(link))
    }

    /// Calls `show` with every track on a link, prefetching the cache lines with the rates.
    #[inline]
    fn each_member(&self, link: usize, mut show: impl FnMut(u32, &Track)) {
        let mut fetched = None;
        for coming in self.members.of(link).map(Some).chain([None]) {
            for track in coming.iter().cloned().flatten() {
                prefetch(&self.tracks[track as usize].rate);
            }
            for track in std::mem::replace(&mut fetched, coming).into_iter().flatten() {
                show(track, &self.tracks[track as usize]);
            }
        }
    }

    /// Returns the number of changes that occurred too soon after another event of the link.
    pub(super) fn delayed(&self) -> u64 {
        self.links.delayed()
    }

    /// Returns the sampling ratio of the monitor port, if recent TCP flows allow an estimate.
    pub(super) fn sampling_ratio(&self) -> Option<Estimate> {
        self.ratio.estimate(self.now)
    }

    pub(super) fn bytes(&self) -> u64 {
        self.tracks.bytes().0 + self.members.bytes() + self.idle_order.bytes().0
    }

    /// Returns the changes of links' congestion since the last call.
    pub(super) fn link_changes(&mut self) -> &mut Vec<LinkChange> {
        &mut self.link_changes
    }

    /// Returns the flows whose addresses changed since the last call.
    pub(super) fn address_changes(&mut self) -> &mut Vec<AddressChange> {
        &mut self.address_changes
    }

    /// Returns the track of a direction.
    pub(super) fn track(&self, slot: u32, direction: Direction) -> &Track {
        &self.tracks[track_of(slot, direction) as usize]
    }

    /// Returns the rate of a direction, if it has been estimated. That of a silent one covers the time since its last
    /// sample.
    pub(super) fn rated(&self, track: u32) -> Option<Rated> {
        let track = &self.tracks[track as usize];
        if track.ports.flags & flag::HAS_RATE == 0 {
            return None;
        }
        let last = Timestamp(track.last_time());
        let (rate, span) = match track.rate {
            0 => self.silent(links_of(track), last),
            rate => {
                let (from, to) = track.span();
                (track.bounds.of(rate), (Timestamp(from), Timestamp(to)))
            }
        };
        Some(Rated { rate, ethernet: addresses(track.ports.ethernet), basis: basis(track), span })
    }

    /// Advances the time to `now`.
    #[inline(always)]
    pub(super) fn advance(&mut self, now: Timestamp) {
        if now.0 >= self.next_tick {
            self.tick(now);
        } else if now.0.saturating_add(TURNED_BACK) < self.next_tick {
            self.rewind(now);
        }
        if now >= self.era_ends {
            self.begin_era(now);
        }
        self.now = self.now.max(now);
    }

    /// Marks silent flows as idle and evaluates rules that wait.
    #[cold]
    fn tick(&mut self, now: Timestamp) {
        let tick = now.0 / TICK.0;
        self.next_tick = (tick + 1).saturating_mul(TICK.0);
        let mut removed = [0; 32];
        while let tracks @ [_, ..] = self.idle_order.remove_before(tick, &mut removed) {
            for track in tracks {
                prefetch(&self.tracks[*track as usize]);
            }
            for track in tracks {
                self.check_idle(*track, now);
            }
        }
        self.frames.advance(now.0);
        self.adapt_to_frames();
        self.unseen.advance(now.0);
        self.links.advance(now);
        self.links.turn_peaks(now);
        for link in 0..self.links.len() {
            if self.links.must_evaluate(link) || self.links.repeats(link) {
                self.evaluate_rules(link, now);
            }
        }
        self.context.is_all = self.ratio.at(now.0).is_some_and(|ratio| ratio.is_all());
    }

    /// Scales bursts and queueing delay with the frames that arrive.
    fn adapt_to_frames(&mut self) {
        let largest = f64::from(self.frames.largest_frame());
        let framing = self.frames.framing();
        self.bursts = self.frames.scaled(&self.configured_bursts);
        self.full_frame =
            if framing == Framing::PLAIN { largest } else { f64::from(frame_sizes::FULL_FRAME) };
        self.jitter = self
            .monitor
            .map(|MonitorPort { rate, buffer }| 8e9 * (buffer.0 as f64 + largest) / rate.0.max(1) as f64);
        self.context.jitter_ns = self.jitter.unwrap_or(0.0) as u64;
        self.context.framing = framing;
    }

    /// Handles time that went backwards: a clock was set, a timestamp was wrong, or an older file is read. Timers far
    /// in the future expire now; flows last seen in the future are idle.
    #[cold]
    fn rewind(&mut self, now: Timestamp) {
        self.links.rewind(now);
        self.now = now;
        let mut removed = [0];
        while let &[track] = self.idle_order.remove_before(u64::MAX, &mut removed) {
            self.tracks[track as usize].ports.flags &= !flag::WAITS;
            self.set_rate(track, 0, now);
        }
        self.era_ends = Timestamp(0);
        self.tick(now);
    }

    fn check_idle(&mut self, number: u32, now: Timestamp) {
        self.tracks[number as usize].ports.flags &= !flag::WAITS;
        if self.tracks[number as usize].rate == 0 {
            return;
        }
        match self.idle_at(number) {
            until if until <= now.0 => self.set_rate(number, 0, now),
            until => self.schedule_check(number, until),
        }
    }

    /// Returns when a flow becomes idle without further samples.
    #[inline(always)]
    fn idle_at(&self, number: u32) -> u64 {
        let track = &self.tracks[number as usize];
        track.last_time().saturating_add(track.idle_timeout(&self.bursts).min(self.max_idle_timeout))
    }

    /// Schedules an idle check of a track.
    fn schedule_check(&mut self, number: u32, until: u64) {
        let flags = &mut self.tracks[number as usize].ports.flags;
        if *flags & flag::WAITS == 0 {
            *flags |= flag::WAITS;
            self.idle_order.put(number, until / TICK.0);
        }
    }

    /// Closes a span and updates the rate.
    #[inline]
    fn close(&mut self, number: u32, span: &Span, time: Timestamp) {
        let Measured { rate, lower, upper, basis } = self.measure(number, span, time);
        if self.is_implausible(rate, span) {
            self.counters.implausible += 1;
            return;
        }
        self.counters.estimates += 1;
        // A flow is no faster than its links, even where the queueing delay has shortened its span.
        let capacity = self.capacity(links_of(&self.tracks[number as usize]));
        let rate = rate.min(capacity);
        let (lower, upper) = match (lower.is_nan(), basis) {
            (true, _) => (lower, upper),
            (false, Basis::SamplesAlone) => (lower.min(rate), upper),
            (false, _) => (lower.min(rate), upper.min(PLAUSIBLE * capacity)),
        };
        let track = &mut self.tracks[number as usize];
        let flags = track.ports.flags;
        track.ports.flags = flags & !(7 << flag::BASIS) | flag::HAS_RATE | (basis as u32) << flag::BASIS;
        track.bounds =
            Bounds::new(lower, upper, !matches!(basis, Basis::SamplingRatio | Basis::Identification));
        if flags & flag::WAITS == 0 {
            self.schedule_check(number, self.idle_at(number));
        }
        self.set_rate(number, rate as u64, time);
    }

    /// Marks flows that appear to share a counter of identifications, until they complete a span.
    fn note_identification(&mut self, number: u32, packet: &Packet) {
        if let Some(other) = self.shared.note(number, packet) {
            self.tracks[number as usize].ports.flags |= flag::SHARED;
            self.tracks[other as usize].ports.flags |= flag::SHARED;
        }
    }

    /// Changes a rate, and the sums of the flow's links.
    #[inline(always)]
    fn set_rate(&mut self, number: u32, new: u64, now: Timestamp) {
        let track = &mut self.tracks[number as usize];
        let old = std::mem::replace(&mut track.rate, new);
        if new == 0 {
            track.bounds = Bounds::ZERO;
        }
        let (links, last_sample) = (links_of(track), Timestamp(track.last_time()));
        self.links.advance(now);
        let mut must_evaluate = [false; 2];
        for side in 0..2 {
            let Some(link) = links[side] else { continue };
            match (old > 0, new > 0) {
                (false, true) => self.members.join(link, number, side),
                (true, false) => {
                    self.members.leave(link, number, side);
                    self.links.note_silence(link, last_sample);
                }
                _ => {}
            }
            must_evaluate[side] = self.links.replace(link, old, new, now);
        }
        // Both sums must change before rules are evaluated.
        for side in 0..2 {
            if let (Some(link), true) = (links[side], must_evaluate[side]) {
                self.evaluate_rules(link, now);
            }
        }
    }

    /// Moves a direction and its rate to other ports. A link that it stays on does not change.
    fn set_ports(&mut self, number: u32, ports: [u16; 2], now: Timestamp) {
        let track = &mut self.tracks[number as usize];
        let (rate, before) = (track.rate, links_of(track));
        [track.ports.input, track.ports.output] = ports;
        let after = links_of(track);
        if rate == 0 {
            return;
        }
        self.links.advance(now);
        let mut loud = [None; 4];
        for side in (0..2).filter(|&side| before[side] != after[side]) {
            if let Some(link) = before[side] {
                self.members.leave(link, number, side);
                loud[side] = self.links.replace(link, rate, 0, now).then_some(link);
            }
            if let Some(link) = after[side] {
                self.members.join(link, number, side);
                loud[2 + side] = self.links.replace(link, 0, rate, now).then_some(link);
            }
        }
        for link in loud.into_iter().flatten() {
            self.evaluate_rules(link, now);
        }
    }

    /// Returns the ports of a direction, input first.
    pub(super) fn ports(track: &Track) -> [Option<PortIndex>; 2] {
        [track.ports.input, track.ports.output].map(|port| port.checked_sub(1).map(PortIndex))
    }
}

impl Observer for FlowRates {
    #[inline(always)]
    fn prefetch(&self, slot: u32, direction: Direction) {
        let track = &self.tracks[track_of(slot, direction) as usize];
        prefetch(track);
        prefetch(&track.rate);
    }

    #[inline(always)]
    fn packet(&mut self, slot: u32, direction: Direction, packet: &Packet) {
        let time = packet.time;
        self.advance(time);
        let number = track_of(slot, direction);
        let ports = &self.tracks[number as usize].ports;
        let ethernet = &packet.ethernet;
        let is_same =
            ports.ethernet[..6] == ethernet.destination.0 && ports.ethernet[6..] == ethernet.source.0;
        if !is_same || ports.version != self.era {
            self.infer(number, packet);
        }
        self.counters.samples += 1;
        self.frames.note(packet.ip_length);
        if packet.key.protocol != Protocol::TCP || time < self.identified_until {
            self.note_identification(number, packet);
        }
        let track = &mut self.tracks[number as usize];
        let flags = track.ports.flags;
        let sampled = track.sample(packet, &self.bursts, &self.context, &mut self.unseen);
        if flags & flag::UNUSUAL != 0 {
            self.count_unusual(flags);
        }
        match sampled {
            Sampled::Within | Sampled::First => {}
            Sampled::Began(span) => self.close(number, &span, time),
            Sampled::Repeated => self.counters.repeated += 1,
            Sampled::Late => self.counters.late += 1,
        }
    }

    fn end(&mut self, slot: u32, key: impl Fn(Direction) -> FlowKey) {
        let now = self.now;
        for direction in [Direction::Forward, Direction::Reverse] {
            let number = track_of(slot, direction);
            self.set_rate(number, 0, now);
            let of_it = |named: &&mut NamedFlow| named.track == number && named.key.is_none();
            let named = self.link_changes.iter_mut().flat_map(|change| &mut change.flows);
            named.filter(of_it).for_each(|named| named.key = Some(key(direction)));
            let waits = self.tracks[number as usize].ports.flags & flag::WAITS;
            self.tracks[number as usize] = bytemuck::Zeroable::zeroed();
            self.tracks[number as usize].ports.flags = waits;
        }
    }
}

/// Returns the index of a direction in all arrays.
#[inline(always)]
pub(super) fn track_of(slot: u32, direction: Direction) -> u32 {
    2 * slot + direction as u32
}

/// Returns the slot and the direction at an index.
pub(super) fn slot_of(track: u32) -> (u32, Direction) {
    (track / 2, [Direction::Forward, Direction::Reverse][track as usize % 2])
}

/// Returns the input and output links of a direction.
#[inline]
fn links_of(track: &Track) -> [Option<usize>; 2] {
    let [input, output] = FlowRates::ports(track);
    let side =
        |port: Option<PortIndex>, direction| port.map(|port| index_of(LinkDirection { port, direction }));
    [side(input, PortDirection::Input), side(output, PortDirection::Output)]
}

fn addresses(ethernet: [u8; 12]) -> EthernetAddresses {
    let [a, b, c, d, e, f, g, h, i, j, k, l] = ethernet;
    EthernetAddresses { destination: MacAddress([a, b, c, d, e, f]), source: MacAddress([g, h, i, j, k, l]) }
}

fn basis(track: &Track) -> Basis {
    match track.ports.flags >> flag::BASIS & 7 {
        0 => Basis::Nothing,
        1 => Basis::SequenceNumbers,
        2 => Basis::Identification,
        3 => Basis::SamplingRatio,
        _ => Basis::SamplesAlone,
    }
}
