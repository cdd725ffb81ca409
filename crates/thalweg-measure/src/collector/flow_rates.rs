//! What a collector keeps of every flow beside the flow table: its rate, and which links it is on.
//!
//! **One pass.** The flow table finds a packet's slot; the two cache lines here that belong to slot and direction are
//! fetched in the same breath. A sample within a burst writes to them and is done. The first sample of a burst closes a
//! span: the rate changes, and with it two sums of links.
//!
//! **Time** is that of packets. All that time does, it does when a packet passes the end of a [`TICK`], so that results
//! depend on packets and not on how they were put into batches.

use std::sync::Arc;

use thalweg_network::inference::{Case, Certainty, Inference};
use thalweg_network::versions::Versions;
use thalweg_network::{PortIndex, RouterId};
use thalweg_sketch::{Bound, Estimate};
use thalweg_wire::{BitRate, Direction, EthernetAddresses, Nanos, Packet, Timestamp};

use super::links::{Links, Told, index_of};
use super::options::{CollectorOptions, MonitorPort};
use super::report::{LinkReport, LinkSide, Way};
use crate::memory::{LargeArray, MemoryError, prefetch};
use crate::meter::ages::Ages;
use crate::meter::observer::Observer;
use crate::rates::burst::{Sampled, Span, Track};
use crate::rates::sampling::{CONFIDENCE, SamplingRatio, Z_95};
use crate::rates::{Basis, BurstOptions};

/// How often time is looked at: flows that have become idle, rules that wait.
pub(super) const TICK: Nanos = Nanos::from_micros(250);

/// A flow is idle after this at the latest. Less than the 1 s that a flow lingers after its end, so that what leaves the
/// flow table has left the links before.
const MOST_PATIENCE: u64 = 900_000_000;

/// Sequence numbers have as many values; a flow that may have sent more between two samples cannot be told.
const SEQUENCE_NUMBERS: f64 = 4_294_967_296.0;

/// A rate above this many times that of the fastest link was no rate: another connection has the same ports.
const PLAUSIBLE: f64 = 1.25;

/// A full-sized frame, and the payload of its TCP segment with time stamps.
const FULL_FRAME: f64 = 1_538.0;
const FULL_SEGMENT: f64 = 1_448.0;

/// Bits of [`crate::rates::burst::Way::flags`].
mod flag {
    /// Waits in the order of those who may become idle.
    pub(super) const WAITS: u32 = 1;
    /// There was an estimate.
    pub(super) const HAS_RATE: u32 = 1 << 1;
    /// The ports may be others: the forwarding state had just changed.
    pub(super) const AMBIGUOUS: u32 = 1 << 2;
    /// Where the basis begins, two bits.
    pub(super) const BASIS: u32 = 8;
    /// The forwarding state that would tell the ports has been forgotten.
    pub(super) const FORGOTTEN: u32 = 1 << 5;
    /// Where the number of the inference's case begins.
    pub(super) const CASE: u32 = 16;
    /// There is something to count.
    pub(super) const UNUSUAL: u32 = AMBIGUOUS | FORGOTTEN | u32::MAX << CASE;
}

/// What samples came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RateCounters {
    /// Samples looked at.
    pub samples: u64,
    /// Spans that gave a rate.
    pub estimates: u64,
    /// Samples of ranges that had been seen: sent again.
    pub repeated: u64,
    /// Samples that came after later ones, and that had not been seen.
    pub late: u64,
    /// Spans so long that sequence numbers may have gone round.
    pub wrapped: u64,
    /// Spans whose advance of sequence numbers would make a flow faster than any link: another connection with the
    /// same ports. Their samples are counted instead.
    pub implausible: u64,
    /// Samples whose ports may be others, since forwarding had just changed.
    pub ambiguous: u64,
    /// Samples so old that the forwarding state of their time has been forgotten.
    pub forgotten: u64,
    /// Samples by what could be inferred of their ports, in the order of [`Case::ALL`]; the first, for which all
    /// could, is not counted. Nothing is counted without a network.
    pub cases: [u64; Case::COUNT],
}

/// What a span comes to.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Measured {
    /// Bits per second.
    rate: u64,
    /// At least this; not a number if unknown.
    lower: f32,
    /// At most this; infinite if nobody knows.
    upper: f32,
    basis: Basis,
}

/// A rule's finding, with the rates as they were then.
#[derive(Clone, Debug)]
pub(super) struct Crossed {
    pub(super) told: Told,
    pub(super) link: LinkReport,
    pub(super) version: u64,
    pub(super) time: Timestamp,
    /// Flows on the link by track, the fastest first.
    pub(super) flows: Vec<(u32, Rated)>,
}

/// A rate as a track has it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rated {
    pub(super) rate: Estimate,
    pub(super) basis: Basis,
    pub(super) span: (Timestamp, Timestamp),
}

/// Places of a direction's flow among the members of its links.
type Places = [u32; 2];

/// Rates and links of all flows.
#[derive(Debug)]
pub(super) struct FlowRates {
    /// By slot, and within it by direction.
    tracks: LargeArray<Track>,
    places: LargeArray<Places>,
    idle_order: Ages,
    links: Links,
    ratio: SamplingRatio,
    bursts: BurstOptions,
    router: RouterId,
    network: Option<Arc<Versions>>,
    /// Changes whenever the same headers may mean other ports: a version begins, or its settling time is over.
    era: u32,
    era_ends: Timestamp,
    /// Nanoseconds of uncertainty that a sample's time has, if known.
    jitter: Option<f64>,
    /// One over the monitor port's rate in bits per second, if known, or else zero.
    per_monitor_rate: f64,
    longest_span: u64,
    fastest: f64,
    is_all: bool,
    next_tick: u64,
    counters: RateCounters,
    /// Most flows that a rule wants named.
    named: Vec<usize>,
    crossed: Vec<Crossed>,
}

impl FlowRates {
    /// Room for as many flows as the flow table has.
    pub(super) fn new(
        options: &CollectorOptions,
        network: Option<Arc<Versions>>,
    ) -> Result<Self, MemoryError> {
        let directions = 2 * options.flow_table.capacity as usize;
        let mut rates = FlowRates {
            tracks: LargeArray::zeroed(directions)?,
            places: LargeArray::zeroed(directions)?,
            idle_order: Ages::new(directions)?,
            links: Links::new(&[], &options.rules, options.smoothing),
            ratio: SamplingRatio::default(),
            bursts: options.bursts,
            router: options.router,
            network,
            era: 0,
            era_ends: Timestamp(0),
            jitter: options.monitor.map(|MonitorPort { rate, buffer }| {
                8e9 * (buffer.0 as f64 + FULL_FRAME) / rate.0.max(1) as f64
            }),
            per_monitor_rate: options.monitor.map_or(0.0, |monitor| 1.0 / monitor.rate.0.max(1) as f64),
            longest_span: 0,
            fastest: 0.0,
            is_all: false,
            next_tick: 0,
            counters: RateCounters::default(),
            named: options.rules.iter().map(|rule| rule.flows).collect(),
            crossed: Vec::new(),
        };
        rates.lay_links(options);
        Ok(rates)
    }

    /// Links as the newest topology has them.
    fn lay_links(&mut self, options: &CollectorOptions) {
        let capacities = capacities(self.network.as_deref(), self.router);
        let fastest = capacities.iter().copied().max().unwrap_or(super::UNKNOWN_CAPACITY);
        self.fastest = fastest.0 as f64;
        self.longest_span = (SEQUENCE_NUMBERS * 8e9 / self.fastest).min(1e18) as u64;
        self.links = Links::new(&capacities, &options.rules, options.smoothing);
    }

    /// A new version of the network: ports are inferred anew as packets come. If links are others than before, their
    /// sums begin anew too.
    pub(super) fn set_network(&mut self, options: &CollectorOptions, network: Option<Arc<Versions>>) {
        let ports = |network: &Option<Arc<Versions>>| capacities(network.as_deref(), self.router);
        let same = ports(&self.network) == ports(&network);
        self.network = network;
        self.era_ends = Timestamp(0);
        if !same {
            for track in 0..self.tracks.len() as u32 {
                self.leave_links(track);
            }
            self.lay_links(options);
        }
    }

    pub(super) fn counters(&self) -> RateCounters {
        self.counters
    }

    /// Number of link directions.
    pub(super) fn links(&self) -> usize {
        self.links.len()
    }

    /// A link as it is.
    pub(super) fn report(&self, link: usize, now: Timestamp) -> LinkReport {
        let rates = self.links.members(link).iter().filter_map(|&member| self.rated(member));
        self.links.report(link, now, rates.map(|rated| rated.rate))
    }

    /// Crossings that came too soon after another event of the link.
    pub(super) fn held_back(&self) -> u64 {
        self.links.held_back()
    }

    pub(super) fn ratio(&self) -> &SamplingRatio {
        &self.ratio
    }

    pub(super) fn bytes(&self) -> u64 {
        self.tracks.bytes().0 + self.places.bytes().0 + self.idle_order.bytes().0
    }

    /// What rules have found since they were last asked.
    pub(super) fn crossed(&mut self) -> &mut Vec<Crossed> {
        &mut self.crossed
    }

    /// The track of a direction.
    pub(super) fn track(&self, slot: u32, direction: Direction) -> &Track {
        &self.tracks[track_of(slot, direction) as usize]
    }

    /// How fast a direction is, if that has been estimated.
    pub(super) fn rated(&self, track: u32) -> Option<Rated> {
        let track = &self.tracks[track as usize];
        if track.way.flags & flag::HAS_RATE == 0 {
            return None;
        }
        let value = track.rate as f64;
        let basis = basis(track);
        let confidence = if basis == Basis::SamplingRatio { CONFIDENCE } else { 1.0 };
        let rate = match track.lower.is_nan() {
            true => Estimate { value, bound: Bound::Unknown },
            false => Estimate::within(value, track.lower.into(), track.upper.into(), confidence),
        };
        let (from, to) = track.span();
        Some(Rated { rate, basis, span: (Timestamp(from), Timestamp(to)) })
    }

    /// Lets time pass, up to `now`.
    pub(super) fn advance(&mut self, now: Timestamp) {
        if now.0 >= self.next_tick {
            self.tick(now);
        }
    }

    /// Flows that have been silent for too long are idle; rules get their turn.
    #[cold]
    fn tick(&mut self, now: Timestamp) {
        let tick = now.0 / TICK.0;
        self.next_tick = (tick + 1) * TICK.0;
        let mut taken = [0; 32];
        while let tracks @ [_, ..] = self.idle_order.take_before(tick, &mut taken) {
            for track in tracks {
                prefetch(&self.tracks[*track as usize]);
            }
            for track in tracks {
                self.see_whether_idle(*track, now);
            }
        }
        for link in 0..self.links.len() {
            if self.links.advance(link, now) {
                self.ask(link, now);
            }
        }
        self.is_all = self.ratio.at(now.0).is_some_and(|ratio| ratio.is_all());
    }

    fn see_whether_idle(&mut self, number: u32, now: Timestamp) {
        let track = &mut self.tracks[number as usize];
        track.way.flags &= !flag::WAITS;
        if track.rate == 0 {
            return;
        }
        match track.last_time() + track.patience(&self.bursts).min(MOST_PATIENCE) {
            until if until <= now.0 => {
                (track.lower, track.upper) = (0.0, 0.0);
                self.set_rate(number, 0, now);
            }
            until => self.wait(number, until),
        }
    }

    /// Looks at a track again at a time.
    fn wait(&mut self, number: u32, until: u64) {
        let track = &mut self.tracks[number as usize];
        if track.way.flags & flag::WAITS == 0 {
            track.way.flags |= flag::WAITS;
            self.idle_order.put(number, until / TICK.0);
        }
    }

    /// A span is over: what its rate is.
    #[inline]
    fn close(&mut self, number: u32, span: Span, time: Timestamp) {
        if span.length == 0 {
            return;
        }
        let measured = match span.advance {
            0 => self.by_samples(number, span, time),
            _ if span.length > self.longest_span => {
                self.counters.wrapped += 1;
                return;
            }
            _ => self.by_sequence(number, span, time),
        };
        let Measured { rate, lower, upper, basis } = measured;
        if rate as f64 > PLAUSIBLE * self.fastest {
            self.counters.implausible += 1;
            return;
        }
        self.counters.estimates += 1;
        let track = &mut self.tracks[number as usize];
        let flags = track.way.flags;
        track.way.flags = flags & !(3 << flag::BASIS) | flag::HAS_RATE | (basis as u32) << flag::BASIS;
        (track.lower, track.upper) = (lower, upper);
        if flags & flag::WAITS == 0 {
            let until = track.last_time() + track.patience(&self.bursts).min(MOST_PATIENCE);
            self.wait(number, until);
        }
        self.set_rate(number, rate, time);
    }

    /// The rate of a span whose sequence numbers went on. Headers and framing are counted as the samples have them.
    #[inline]
    fn by_sequence(&mut self, number: u32, span: Span, time: Timestamp) -> Measured {
        let (advance, wire, length) = (f64::from(span.advance), f64::from(span.wire), span.length as f64);
        let bits = match span.payload {
            0 => 8e9 * f64::max(advance * (FULL_FRAME / FULL_SEGMENT), wire),
            payload if payload == span.advance => 8e9 * wire,
            payload => 8e9 * advance * wire / f64::from(payload),
        };
        let rate = (bits / length) as u64;
        if rate as f64 > PLAUSIBLE * self.fastest {
            self.counters.implausible += 1;
            return self.by_samples(number, span, time);
        }
        // What was sent again has passed once, if it was lost before it came here.
        let sampled = match span.late {
            0 => span.payload,
            late => {
                (f64::from(span.payload) * f64::from(span.samples + late) / f64::from(span.samples)) as u32
            }
        };
        let load = self.load_of_port(number) as f64 * self.per_monitor_rate;
        self.ratio.add(time.0, sampled, span.advance, load);
        if span.late > 0 || span.payload < span.advance && self.is_short_of_samples(number, &span, rate, time)
        {
            return self.by_samples(number, span, time);
        }
        let (lower, upper) = match self.jitter {
            None => (f64::NAN, f64::NAN),
            Some(jitter) if jitter < length => (bits / (length + jitter), bits / (length - jitter)),
            Some(jitter) => (bits / (length + jitter), f64::INFINITY),
        };
        Measured { rate, lower: lower as f32, upper: upper as f32, basis: Basis::SequenceNumbers }
    }

    /// Whether part of what sequence numbers went on by was lost before it came here. Then they make the output link carry
    /// more than it can, and fewer packets were sampled than they promise, by more than three standard deviations. Where
    /// the link is not known, six will do.
    fn is_short_of_samples(&mut self, number: u32, span: &Span, rate: u64, time: Timestamp) -> bool {
        let track = &self.tracks[number as usize];
        let deviations = match links_of(track)[1] {
            Some(link) if self.links.would_overflow(link, track.rate, rate) => 3.0,
            Some(_) => return false,
            None => 6.0,
        };
        let Some(ratio) = self.ratio.at(time.0) else { return false };
        let expected = ratio.value * f64::from(span.advance);
        let packets = expected * f64::from(span.samples) / f64::from(span.payload.max(1));
        let missing = 1.0 - f64::from(span.payload) / expected;
        missing > deviations * ((1.0 - ratio.value) / packets).sqrt()
    }

    /// The rate of a span by its samples, over the share that is sampled. Of `n` samples drawn with probability `r`, the
    /// number of packets is known to within a standard deviation of `sqrt((1 - r) / n)` of itself.
    fn by_samples(&mut self, number: u32, span: Span, time: Timestamp) -> Measured {
        let samples = f64::from(span.samples + span.late);
        let wire = match span.late {
            0 => f64::from(span.wire),
            _ => f64::from(span.wire) * samples / f64::from(span.samples),
        };
        let sampled = 8e9 * wire / span.length as f64;
        let (rate, exactly) = (sampled as u64, sampled as f32);
        let Some(ratio) = self.ratio.at(time.0) else {
            return Measured { rate, lower: exactly, upper: f32::INFINITY, basis: Basis::SamplesAlone };
        };
        if ratio.is_all() {
            return Measured { rate, lower: exactly, upper: exactly, basis: Basis::SamplingRatio };
        }
        let drawn = Z_95 * Z_95 * (1.0 - ratio.value) / samples;
        let relative = (drawn + ratio.relative_error * ratio.relative_error).sqrt();
        let plain = sampled / ratio.value;
        let per_monitor_rate = self.per_monitor_rate;
        let rate = if per_monitor_rate > 0.0 {
            let others = self.load_of_port(number).saturating_sub(self.tracks[number as usize].rate);
            ratio.passed(sampled * per_monitor_rate, others as f64 * per_monitor_rate) / per_monitor_rate
        } else {
            plain
        };
        // The ratio of a quiet port, and that of a port as busy as those of TCP flows.
        let (least, most) = (rate.min(plain), rate.max(plain * (1.0 + ratio.value)));
        let (lower, upper) = ((least * (1.0 - relative)).max(sampled), most * (1.0 + relative));
        let (lower, upper) = (lower as f32, upper as f32);
        Measured { rate: rate as u64, lower, upper, basis: Basis::SamplingRatio }
    }

    /// What the output port of a flow carries; the flow's own rate if it is not known.
    #[inline]
    fn load_of_port(&self, number: u32) -> u64 {
        let track = &self.tracks[number as usize];
        let [_, output] = links_of(track);
        output.map_or(track.rate, |link| self.links.sum(link))
    }

    /// Changes a rate, and the sums of the links that the flow is on.
    #[inline(always)]
    fn set_rate(&mut self, number: u32, new: u64, now: Timestamp) {
        let track = &mut self.tracks[number as usize];
        let old = std::mem::replace(&mut track.rate, new);
        match (old > 0, new > 0) {
            (true, true) => {
                for link in links_of(track).into_iter().flatten() {
                    self.change(link, old, new, now);
                }
            }
            (false, true) => self.join_links(number, now),
            (true, false) => self.leave_links_with(number, old, now),
            (false, false) => {}
        }
    }

    /// Changes a flow's part in one link.
    #[inline(always)]
    fn change(&mut self, link: usize, old: u64, new: u64, now: Timestamp) {
        if self.links.replace(link, old, new, now) {
            self.ask(link, now);
        }
    }

    fn join_links(&mut self, number: u32, now: Timestamp) {
        let track = &self.tracks[number as usize];
        let (rate, links) = (track.rate, links_of(track));
        for (place, link) in links.into_iter().enumerate() {
            let Some(link) = link else { continue };
            self.places[number as usize][place] = self.links.join(link, number);
            self.change(link, 0, rate, now);
        }
    }

    /// Takes a flow off its links, in which it has this part.
    fn leave_links_with(&mut self, number: u32, rate: u64, now: Timestamp) {
        for (place, link) in links_of(&self.tracks[number as usize]).into_iter().enumerate() {
            let Some(link) = link else { continue };
            let freed = self.places[number as usize][place];
            if let Some(moved) = self.links.leave(link, freed) {
                // Who moved has the link as its input or as its output, not as both.
                let theirs = links_of(&self.tracks[moved as usize]);
                let place = usize::from(theirs[0] != Some(link));
                self.places[moved as usize][place] = freed;
            }
            self.change(link, rate, 0, now);
        }
    }

    /// Takes a flow off its links; its rate is zero from now on.
    fn leave_links(&mut self, number: u32) {
        let rate = self.tracks[number as usize].rate;
        if rate > 0 {
            self.leave_links_with(number, rate, Timestamp(self.next_tick));
        }
        let track = &mut self.tracks[number as usize];
        (track.rate, track.lower, track.upper) = (0, 0.0, 0.0);
        (track.way.input, track.way.output) = (0, 0);
    }

    /// Asks a link's rules what they have to tell.
    #[cold]
    fn ask(&mut self, link: usize, now: Timestamp) {
        while let Some(told) = self.links.ask(link, now) {
            self.tell(link, told, now);
        }
    }

    fn tell(&mut self, link: usize, told: Told, now: Timestamp) {
        let mut flows: Vec<(u64, u32)> =
            self.links.members(link).iter().map(|&track| (self.tracks[track as usize].rate, track)).collect();
        let fastest_first = |a: &(u64, u32), b: &(u64, u32)| b.cmp(a);
        let named = self.named[told.rule].min(flows.len());
        if named < flows.len() {
            flows.select_nth_unstable_by(named, fastest_first);
            flows.truncate(named);
        }
        flows.sort_unstable_by(fastest_first);
        let flows = flows.into_iter().filter_map(|(_, track)| Some((track, self.rated(track)?)));
        let crossed = Crossed {
            told,
            link: self.report(link, now),
            version: self.network.as_ref().map_or(0, |network| network.phase(now).newest),
            time: now,
            flows: flows.collect(),
        };
        self.crossed.push(crossed);
    }

    /// A direction has other addresses than before, or they may mean something else by now.
    #[cold]
    fn infer(&mut self, number: u32, packet: &Packet) {
        let now = packet.time;
        let (ethernet, key) = (&packet.ethernet, &packet.key);
        let inferred = self.network.as_ref().map(|network| network.infer(self.router, ethernet, key, now));
        let (ports, case) = inferred.map_or_else(Default::default, |it| (it.ports, it.case.index() as u32));
        let certainty = inferred.map_or(Certainty::Certain, |Inference { certainty, .. }| certainty);
        let links = self.links.len() / 2;
        let name =
            |port: Option<PortIndex>| port.filter(|port| port.index() < links).map_or(0, |port| port.0 + 1);
        let (input, output) = (name(ports.input), name(ports.output));
        let track = &self.tracks[number as usize];
        let rate = track.rate;
        let moves = rate > 0 && (track.way.input, track.way.output) != (input, output);
        if moves {
            self.leave_links_with(number, rate, now);
        }
        let era = self.era;
        let way = &mut self.tracks[number as usize].way;
        let EthernetAddresses { destination, source } = packet.ethernet;
        way.ethernet[..6].copy_from_slice(&destination.0);
        way.ethernet[6..].copy_from_slice(&source.0);
        way.version = era;
        (way.input, way.output) = (input, output);
        way.flags &= ((1 << flag::CASE) - 1) & !(flag::AMBIGUOUS | flag::FORGOTTEN);
        way.flags |= case << flag::CASE;
        way.flags |= match certainty {
            Certainty::Ambiguous => flag::AMBIGUOUS,
            Certainty::Forgotten => flag::FORGOTTEN,
            _ => 0,
        };
        if moves {
            self.join_links(number, now);
        }
    }

    /// Packets from now on may go other ways.
    #[cold]
    fn turn_era(&mut self, now: Timestamp) {
        self.era += 1;
        let network = self.network.as_deref();
        let changes = network.into_iter().flat_map(|network| {
            network.iter().flat_map(|version| [version.from, version.from + network.settle()])
        });
        self.era_ends = changes.filter(|change| *change > now).min().unwrap_or(Timestamp(u64::MAX));
    }

    #[cold]
    fn note_unusual(&mut self, flags: u32) {
        self.counters.ambiguous += u64::from(flags & flag::AMBIGUOUS != 0);
        self.counters.forgotten += u64::from(flags & flag::FORGOTTEN != 0);
        if flags >> flag::CASE != 0 {
            self.counters.cases[(flags >> flag::CASE) as usize] += 1;
        }
    }

    /// The ports of a direction, input first.
    pub(super) fn ports(track: &Track) -> [Option<PortIndex>; 2] {
        [track.way.input, track.way.output].map(|port| port.checked_sub(1).map(PortIndex))
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
        if time.0 >= self.next_tick {
            self.tick(time);
        }
        if time >= self.era_ends {
            self.turn_era(time);
        }
        let number = track_of(slot, direction);
        let way = &self.tracks[number as usize].way;
        let ethernet = &packet.ethernet;
        let is_same = way.ethernet[..6] == ethernet.destination.0 && way.ethernet[6..] == ethernet.source.0;
        if !is_same || way.version != self.era {
            self.infer(number, packet);
        }
        self.counters.samples += 1;
        let track = &mut self.tracks[number as usize];
        let flags = track.way.flags;
        if flags & flag::UNUSUAL != 0 {
            self.note_unusual(flags);
        }
        let track = &mut self.tracks[number as usize];
        match track.sample(packet, &self.bursts, self.is_all) {
            Sampled::Within | Sampled::First => {}
            Sampled::Began(span) => self.close(number, span, time),
            Sampled::Repeated => self.counters.repeated += 1,
            Sampled::Late => self.counters.late += 1,
        }
    }

    fn end(&mut self, slot: u32) {
        for direction in [Direction::Forward, Direction::Reverse] {
            let number = track_of(slot, direction);
            self.leave_links(number);
            let waits = self.tracks[number as usize].way.flags & flag::WAITS;
            self.tracks[number as usize] = bytemuck::Zeroable::zeroed();
            self.tracks[number as usize].way.flags = waits;
        }
    }
}

/// The place of a direction in all arrays.
#[inline(always)]
pub(super) fn track_of(slot: u32, direction: Direction) -> u32 {
    2 * slot + direction as u32
}

/// The directions of all ports of a switch have these capacities; none if the network does not know the switch.
fn capacities(network: Option<&Versions>, router: RouterId) -> Vec<BitRate> {
    let Some(network) = network else { return Vec::new() };
    let topology = network.newest().state.topology();
    if router.index() >= topology.routers().len() {
        return Vec::new();
    }
    let ports = (0..topology.ports(router) as u16).map(PortIndex);
    ports.map(|port| topology.links()[topology.link_at(router, port).index()].rate).collect()
}

/// Where a direction comes in and where it goes out.
#[inline]
fn links_of(track: &Track) -> [Option<usize>; 2] {
    let [input, output] = FlowRates::ports(track);
    let side = |port: Option<PortIndex>, way| port.map(|port| index_of(LinkSide { port, way }));
    [side(input, Way::Input), side(output, Way::Output)]
}

fn basis(track: &Track) -> Basis {
    match track.way.flags >> flag::BASIS & 3 {
        0 => Basis::Nothing,
        1 => Basis::SequenceNumbers,
        2 => Basis::SamplingRatio,
        _ => Basis::SamplesAlone,
    }
}
