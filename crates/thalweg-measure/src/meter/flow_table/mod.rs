//! The flow table: counts every packet exactly, in the one entry of its flow.
//!
//! **Life of an entry.** The first packet of a 5-tuple, in either direction, begins it; later ones are counted by
//! direction. It ends, and is exported as a [`FlowRecord`], when
//! - no packet arrived for the idle timeout ([`EndReason::Idle`]);
//! - TCP ended it, by RST or by FIN in both directions, and no packet arrived for the *linger* after that, so that
//!   the last acknowledgments do not begin a new flow; or a SYN begins the next connection ([`EndReason::Fin`],
//!   [`EndReason::Rst`]);
//! - the table is full, a new flow needs an entry and this one is the least recently used, to within 1/2048 of the
//!   idle timeout ([`EndReason::Evicted`]);
//! - the input ends ([`EndReason::EndOfInput`]).
//!
//! A flow that lasts longer than the active timeout is exported in parts ([`EndReason::Active`]).
//!
//! **Exact.** The packets and bytes of all records are those of all packets passed to the table. Timeouts are checked
//! at each packet of a flow. So as long as timestamps do not go backwards and the table is not full, records do not
//! depend on how packets are batched; only the moment of their export does. Records do not depend on the hash seed
//! either.
//!
//! **Time** is the latest timestamp seen, or passed to [`FlowTable::advance`]. It does not go backwards: a packet
//! with an earlier timestamp is counted as well, and extends its flow's first and last time. A timestamp that is
//! wrong and far ahead ends the current flows, and later flows end only when TCP ends them, when the table is full,
//! or at the end of input; counts stay exact.
//!
//! **A live source** ([`FlowTable::with_live_clock`]) has the clock of this machine, which may be set back. Until it had caught up, all
//! packets would arrive at one moment, as cheetah flows. So if the time goes back by more than [`SET_BACK`], all flows end
//! ([`EndReason::EndOfInput`]), and the table begins anew at the earlier time.
//!
//! **Memory** is fixed at construction, about 148 bytes per flow: 64 for the entry, 32 for IPv6 addresses, 32 for
//! active timeouts, 9 for the two orders of age, 11 for the index. **Cost** per packet: two cache lines, both
//! prefetched over groups of 32 packets.

mod life;
mod options;

pub use options::{FlowTableError, FlowTableOptions};

use super::ages::{Ages, SPAN};
use super::entry::{Entry, Exported, State, V6Addresses, Words};
use super::ethernet::FlowAddresses;
use super::observer::Observer;
use super::record::{EndReason, FlowRecord, Traffic};
use super::top::Progress;
use crate::detect::Finding;
use crate::detect::sliding_window::SlidingWindow;
use crate::memory::{LargeArray, prefetch};
use crate::slot_index::SlotIndex;
use thalweg_wire::{Bytes, Direction, FlowKey, HashSeed, Nanos, Packet, TcpFlags, Timestamp};

/// Packets per group. The misses of 32 packets keep all fill buffers of a core busy (10 to 16 of them) without
/// evicting each other from the first-level cache.
const GROUP: usize = 32;

/// A clock that is this much earlier than before was set back. Queues of a network card differ by far less.
const SET_BACK: Nanos = Nanos::from_secs(1);

/// The minimum time until that is noticed again, in case a source mixes packets of two clocks.
const SET_BACK_INTERVAL: Nanos = Nanos::from_secs(10);

/// No slot; the end of the free list.
const NONE: u32 = u32::MAX;

/// The output of the table; the caller clears it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Output {
    /// Ended flows, or parts of flows.
    pub records: Vec<FlowRecord>,
    /// The MAC addresses of each record, if an observer keeps them ([`FlowEthernet`](super::ethernet::FlowEthernet)).
    pub ethernet: Vec<FlowAddresses>,
    /// Cheetahs that began or ended.
    pub findings: Vec<Finding>,
    /// By how much the clock of a live source was set back, if it was: all flows have ended.
    pub set_back: Option<Nanos>,
}

/// Counters of a flow table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlowTableCounters {
    /// Flows begun.
    pub flows: u64,
    /// Records exported, by [`EndReason`] in the order of [`EndReason::ALL`].
    pub records: [u64; EndReason::ALL.len()],
    /// Flow directions found to be cheetahs.
    pub cheetahs: u64,
}

impl FlowTableCounters {
    /// Returns the number of records exported for one reason.
    pub fn ended(&self, reason: EndReason) -> u64 {
        self.records[reason as usize]
    }
}

impl std::ops::AddAssign for FlowTableCounters {
    fn add_assign(&mut self, other: FlowTableCounters) {
        self.flows += other.flows;
        for (count, others) in self.records.iter_mut().zip(other.records) {
            *count += others;
        }
        self.cheetahs += other.cheetahs;
    }
}

/// All live flows, in a fixed amount of memory.
#[derive(Debug)]
pub struct FlowTable {
    options: FlowTableOptions,
    seed: HashSeed,
    index: SlotIndex,
    entries: LargeArray<Entry>,
    v6: LargeArray<V6Addresses>,
    exported: LargeArray<Exported>,
    /// Flows by last use.
    ages: Ages,
    /// Flows that TCP has ended, by last use.
    closing: Ages,
    detector: Option<SlidingWindow>,
    /// The first of the free slots that have been used before.
    free: u32,
    /// Slots from here on have never been used.
    fresh: u32,
    live: u32,
    clock: Timestamp,
    is_live: bool,
    /// The time to which the clock was set back last.
    set_back_to: Option<Timestamp>,
    counters: FlowTableCounters,
}

/// One direction of a live flow.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DirectionCounts {
    /// The key, in its own direction.
    pub(crate) key: FlowKey,
    /// First and last packet of either direction.
    pub(crate) first: Timestamp,
    pub(crate) last: Timestamp,
    /// Packets of this direction (modulo 2^32) and their bytes.
    pub(crate) packets: u64,
    pub(crate) bytes: Bytes,
    /// Whether it is a cheetah.
    pub(crate) is_cheetah: bool,
}

/// The lookup of a packet's flow, between hash and entry.
#[derive(Clone, Copy)]
struct Lookup {
    words: Words,
    hash: u64,
    direction: Direction,
    candidate: u32,
}

impl FlowTable {
    /// Creates an empty table; `detector` checks its flows for cheetahs.
    ///
    /// # Errors
    /// If an option is out of range or memory is insufficient.
    pub fn new(
        options: FlowTableOptions,
        detector: Option<SlidingWindow>,
        seed: HashSeed,
    ) -> Result<Self, FlowTableError> {
        options.validate(detector.as_ref())?;
        // A flow must not end and restart within a window that the detector checks.
        let flight_duration = detector.as_ref().map_or(Nanos::ZERO, SlidingWindow::flight_duration);
        let options = FlowTableOptions { linger: options.linger.max(flight_duration), ..options };
        let capacity = options.capacity as usize;
        Ok(FlowTable {
            index: SlotIndex::new(capacity)?,
            entries: LargeArray::zeroed(capacity)?,
            v6: LargeArray::zeroed(capacity)?,
            exported: LargeArray::zeroed(capacity)?,
            ages: Ages::new(capacity)?,
            closing: Ages::new(capacity)?,
            detector,
            seed,
            free: NONE,
            fresh: 0,
            live: 0,
            clock: Timestamp::default(),
            is_live: false,
            set_back_to: None,
            counters: FlowTableCounters::default(),
            options,
        })
    }

    /// Sets whether packets have the time of this machine's clock, which may be set back. By default, as for files, time does not go
    /// backwards.
    pub fn with_live_clock(self, is_live: bool) -> FlowTable {
        FlowTable { is_live, ..self }
    }

    /// Returns the number of live flows.
    pub fn live(&self) -> u32 {
        self.live
    }

    /// Returns the options.
    pub fn options(&self) -> &FlowTableOptions {
        &self.options
    }

    /// Returns the counters.
    pub fn counters(&self) -> FlowTableCounters {
        self.counters
    }

    /// Returns the detector that checks its flows.
    pub fn detector(&self) -> Option<&SlidingWindow> {
        self.detector.as_ref()
    }

    /// Returns the latest time seen.
    pub fn clock(&self) -> Timestamp {
        self.clock
    }

    /// Replaces the detector, and returns the one before. Flows that were found stay cheetahs; the others are checked from now on.
    ///
    /// # Errors
    /// If its windows are longer than flows are kept.
    pub fn replace_detector(
        &mut self,
        mut detector: SlidingWindow,
    ) -> Result<Option<SlidingWindow>, FlowTableError> {
        self.options.validate(Some(&detector))?;
        if let Some(before) = &self.detector {
            detector.continue_from(before);
        }
        Ok(self.detector.replace(detector))
    }

    /// Returns the maximum memory of the table, its index and its detector.
    pub fn bytes(&self) -> Bytes {
        let arrays = [self.index.bytes(), self.entries.bytes(), self.v6.bytes(), self.exported.bytes()];
        let orders = [self.ages.bytes(), self.closing.bytes()];
        let detector = self.detector.as_ref().map(SlidingWindow::bytes);
        arrays.into_iter().chain(orders).chain(detector).fold(Bytes(0), |sum, part| sum + part)
    }

    /// Counts packets in order, and exports flows that ended meanwhile.
    ///
    /// Groups of packets go through three stages, each a group behind the previous one, so that the memory that one
    /// stage needs is fetched while the others compute.
    pub fn update(&mut self, packets: &[Packet], output: &mut Output) {
        self.update_with(packets, output, &mut ());
    }

    /// Like [`FlowTable::update`], with an observer of each packet and the slot of its flow.
    pub fn update_with(&mut self, packets: &[Packet], output: &mut Output, observer: &mut impl Observer) {
        let groups = packets.len().div_ceil(GROUP);
        let group = |number: usize| &packets[number * GROUP..packets.len().min((number + 1) * GROUP)];
        let mut lookups = [[Lookup::NOTHING; GROUP]; 3];
        for step in 0..groups + 2 {
            if step < groups {
                self.prepare(group(step), &mut lookups[step % 3]);
            }
            if (1..=groups).contains(&step) {
                let number = step - 1;
                self.locate(&mut lookups[number % 3][..group(number).len()], observer);
            }
            if step >= 2 {
                let number = step - 2;
                self.count_all(group(number), &lookups[number % 3], output, observer);
            }
        }
    }

    /// Advances the time: exports the flows whose idle timeout or linger is over.
    pub fn advance(&mut self, now: Timestamp, output: &mut Output) {
        self.advance_with(now, output, &mut ());
    }

    /// Like [`FlowTable::advance`], with an observer of the slots that become free.
    pub fn advance_with(&mut self, now: Timestamp, output: &mut Output, observer: &mut impl Observer) {
        self.check_clock(now, output, observer);
        if now <= self.clock {
            return;
        }
        self.clock = now;
        let mut removed = [0; GROUP];
        let idle_before = self.age_tick(now.saturating_sub(self.options.idle_timeout).0);
        while let slots @ [_, ..] = self.ages.remove_before(idle_before, &mut removed) {
            self.prefetch_ends(slots);
            for slot in slots {
                self.process_aged(*slot, idle_before, EndReason::Idle, output, observer);
            }
        }
        let lingered_before = self.linger_tick(now.saturating_sub(self.options.linger).0);
        while let slots @ [_, ..] = self.closing.remove_before(lingered_before, &mut removed) {
            self.prefetch_ends(slots);
            for slot in slots {
                self.process_lingering(*slot, lingered_before, output, observer);
            }
        }
    }

    /// Exports every remaining flow, in the order of their slots, and leaves the table empty.
    pub fn finish(&mut self, output: &mut Output) {
        self.finish_with(output, &mut ());
    }

    /// Like [`FlowTable::finish`], with an observer of the slots that become free.
    pub fn finish_with(&mut self, output: &mut Output, observer: &mut impl Observer) {
        for slot in 0..self.fresh {
            if self.entries[slot as usize].is(State::OCCUPIED) {
                self.end(slot, EndReason::EndOfInput, output, observer);
            }
        }
    }

    /// Returns the live flows with their slots, as [`FlowTable::finish`] would export them now.
    pub fn flows(&self) -> impl Iterator<Item = (u32, FlowRecord)> + '_ {
        (0..self.fresh)
            .filter(|slot| self.entries[*slot as usize].is(State::OCCUPIED))
            .map(|slot| (slot, self.record(slot, EndReason::EndOfInput)))
    }

    /// Returns the flow of this key, in either direction, as [`FlowTable::finish`] would export it now.
    pub fn get(&self, key: &FlowKey) -> Option<FlowRecord> {
        let (slot, _) = self.slot_of(key)?;
        Some(self.record(slot, EndReason::EndOfInput))
    }

    /// Returns the traffic from and to the initiator since the flow of a slot began, and its begin; for rates between
    /// two queries.
    pub(super) fn progress(&self, slot: u32) -> (Progress, Timestamp) {
        let entry = &self.entries[slot as usize];
        let from_initiator = entry.initiator();
        let directions = [from_initiator, from_initiator.opposite()];
        let progress = Progress {
            bytes: directions.map(|direction| entry.bytes[direction as usize]),
            packets: directions.map(|direction| entry.packets[direction as usize]),
        };
        (progress, self.start_time(slot))
    }

    /// Returns the number of slots that have ever been used: they are the first ones.
    pub(crate) fn slots(&self) -> u32 {
        self.fresh
    }

    /// Returns the slot of this key's flow, and the direction of the key.
    pub(crate) fn slot_of(&self, key: &FlowKey) -> Option<(u32, Direction)> {
        let (words, direction) = Words::of(key, &self.seed);
        let lookup = Lookup { words, hash: words.hash(&self.seed), direction, candidate: NONE };
        Some((self.find(key, &lookup)?, direction))
    }

    /// Returns the counts of one direction of a slot's flow; `None` if it has no packets.
    pub(crate) fn direction_counts(&self, slot: u32, direction: Direction) -> Option<DirectionCounts> {
        let entry = self.entries.get(slot as usize).filter(|entry| entry.is(State::OCCUPIED))?;
        let side = direction as usize;
        (entry.packets[side] > 0).then(|| DirectionCounts {
            key: self.key(slot, direction),
            first: self.start_time(slot),
            last: Timestamp(entry.last),
            packets: u64::from(entry.packets[side]),
            bytes: Bytes(entry.bytes[side]),
            is_cheetah: entry.is(State::cheetah(direction)),
        })
    }

    /// Prefetches the entry of a flow.
    pub(crate) fn prefetch(&self, slot: u32) {
        if let Some(entry) = self.entries.get(slot as usize) {
            prefetch(entry);
        }
    }

    /// First stage: from packets to the buckets of their flows.
    #[inline(always)]
    fn prepare(&self, packets: &[Packet], lookups: &mut [Lookup; GROUP]) {
        for (packet, lookup) in packets.iter().zip(lookups) {
            let (words, direction) = Words::of(&packet.key, &self.seed);
            let hash = words.hash(&self.seed);
            self.index.prefetch(hash);
            *lookup = Lookup { words, hash, direction, candidate: NONE };
        }
    }

    /// Second stage: from buckets to entries, most likely the right ones.
    #[inline(always)]
    fn locate(&self, lookups: &mut [Lookup], observer: &impl Observer) {
        for lookup in lookups {
            if let Some(slot) = self.index.candidate(lookup.hash) {
                lookup.candidate = slot;
                prefetch(&self.entries[slot as usize]);
                if lookup.words.is_v6() {
                    prefetch(&self.v6[slot as usize]);
                }
                observer.prefetch(slot, lookup.direction);
            }
        }
    }

    /// Third stage: counts packets and advances the time.
    #[inline(always)]
    fn count_all(
        &mut self,
        packets: &[Packet],
        lookups: &[Lookup; GROUP],
        output: &mut Output,
        observer: &mut impl Observer,
    ) {
        if let Some(first) = packets.first() {
            self.check_clock(first.time, output, observer);
        }
        let mut latest = self.clock;
        for (packet, lookup) in packets.iter().zip(lookups) {
            let slot = self.count(packet, lookup, output, observer);
            observer.packet(slot, lookup.direction, packet);
            latest = latest.max(packet.time);
        }
        self.advance_with(latest, output, observer);
    }

    /// Begins anew if the clock of a live source was set back.
    #[inline(always)]
    fn check_clock(&mut self, now: Timestamp, output: &mut Output, observer: &mut impl Observer) {
        if self.is_live && now + SET_BACK < self.clock {
            self.begin_anew(now, output, observer);
        }
    }

    /// Ends all flows, and sets the time to `now`. Does nothing if that happened a moment ago, or `now` is zero: unknown.
    #[cold]
    fn begin_anew(&mut self, now: Timestamp, output: &mut Output, observer: &mut impl Observer) {
        let is_recent = |to: Timestamp| (to.saturating_sub(SET_BACK)..to + SET_BACK_INTERVAL).contains(&now);
        if now == Timestamp::default() || self.set_back_to.is_some_and(is_recent) {
            return;
        }
        output.set_back = Some(self.clock - now);
        self.finish_with(output, observer);
        // Slots keep their place in the orders of age when their flows end; these are in the future now.
        let mut removed = [0; GROUP];
        while let slots @ [_, ..] = self.ages.remove_before(u64::MAX, &mut removed) {
            slots.iter().for_each(|slot| self.entries[*slot as usize].clear(State::AGED));
        }
        while let slots @ [_, ..] = self.closing.remove_before(u64::MAX, &mut removed) {
            slots.iter().for_each(|slot| self.entries[*slot as usize].clear(State::LINGERING));
        }
        (self.clock, self.set_back_to) = (now, Some(now));
    }

    /// Counts one packet in its flow's entry; returns its slot.
    #[inline(always)]
    fn count(
        &mut self,
        packet: &Packet,
        lookup: &Lookup,
        output: &mut Output,
        observer: &mut impl Observer,
    ) -> u32 {
        let slot = if lookup.candidate != NONE && self.holds(lookup.candidate, &packet.key, lookup) {
            lookup.candidate
        } else if let Some(slot) = self.find(&packet.key, lookup) {
            slot
        } else {
            self.begin(packet, lookup, output, observer)
        };
        let now = packet.time.0;
        let entry = &self.entries[slot as usize];
        let idle = now.saturating_sub(entry.last) > self.options.idle_timeout.0;
        let active = now.saturating_sub(entry.first) >= self.options.active_timeout.0;
        match idle | active | entry.is(State::EXCEPTIONAL) {
            true => self.count_exceptional(slot, packet, lookup.direction, output, observer),
            false => self.add(slot, packet, lookup.direction, output),
        }
        slot
    }

    #[inline(always)]
    fn add(&mut self, slot: u32, packet: &Packet, direction: Direction, output: &mut Output) {
        let entry = &mut self.entries[slot as usize];
        let side = direction as usize;
        let before = entry.bytes[side];
        let after = before + u64::from(packet.ip_length);
        entry.first = entry.first.min(packet.time.0);
        entry.last = entry.last.max(packet.time.0);
        entry.bytes[side] = after;
        entry.packets[side] = entry.packets[side].wrapping_add(1);
        entry.tcp_flags[side] |= packet.tcp_flags.0;
        // A part of a flow never has 2^32 packets in one direction, so its 32-bit counts are exact.
        let is_long = entry.packets[side] & 0x7FFF_FFFF == 0;
        if let Some(detector) = &self.detector
            && detector.passes_milestone(before, after)
            && !entry.is(State::cheetah(direction))
        {
            self.pass_milestone(slot, packet.key, direction, (before, after), output);
        }
        if packet.tcp_flags.intersects(TcpFlags::FIN | TcpFlags::RST) {
            self.note_end(slot);
        }
        if is_long {
            self.split(slot, EndReason::Active, output, &mut ());
        }
    }

    /// Whether `slot` has the flow of `key`.
    #[inline(always)]
    fn holds(&self, slot: u32, key: &FlowKey, lookup: &Lookup) -> bool {
        let entry = &self.entries[slot as usize];
        entry.words() == lookup.words
            && entry.is(State::OCCUPIED)
            && (!lookup.words.is_v6() || self.v6[slot as usize] == V6Addresses::of(key))
    }

    fn find(&self, key: &FlowKey, lookup: &Lookup) -> Option<u32> {
        self.index.find(lookup.hash, |slot| self.holds(slot, key, lookup))
    }

    /// Returns the record of what was counted since the last one.
    fn record(&self, slot: u32, end_reason: EndReason) -> FlowRecord {
        let entry = &self.entries[slot as usize];
        let exported =
            if entry.is(State::SPLIT) { self.exported[slot as usize] } else { Exported::default() };
        let traffic = |direction: Direction| {
            let side = direction as usize;
            Traffic {
                packets: u64::from(entry.packets[side].wrapping_sub(exported.packets[side])),
                bytes: Bytes(entry.bytes[side] - exported.bytes[side]),
                tcp_flags: TcpFlags(entry.tcp_flags[side]),
                cheetah: entry.is(State::cheetah(direction)),
            }
        };
        let initiator = entry.initiator();
        FlowRecord {
            key: self.key(slot, initiator),
            first: Timestamp(entry.first),
            last: Timestamp(entry.last),
            forward: traffic(initiator),
            reverse: traffic(initiator.opposite()),
            end_reason,
        }
    }

    /// Returns the time of the flow's first packet, regardless of earlier records.
    fn start_time(&self, slot: u32) -> Timestamp {
        let entry = &self.entries[slot as usize];
        Timestamp(if entry.is(State::SPLIT) { self.exported[slot as usize].first } else { entry.first })
    }

    fn key(&self, slot: u32, direction: Direction) -> FlowKey {
        let key = self.entries[slot as usize].words().key(&self.v6[slot as usize]);
        if direction == Direction::Forward { key } else { key.reversed() }
    }

    /// The tick of [`FlowTable::ages`]: 1/2048 of the idle timeout.
    #[inline]
    fn age_tick(&self, time: u64) -> u64 {
        time / (self.options.idle_timeout.0 / SPAN).max(1)
    }

    /// The tick of [`FlowTable::closing`]: 1/64 of the linger.
    fn linger_tick(&self, time: u64) -> u64 {
        time / (self.options.linger.0 / 64).max(1)
    }
}

impl Lookup {
    const NOTHING: Lookup =
        Lookup { words: Words { low: 0, high: 0 }, hash: 0, direction: Direction::Forward, candidate: NONE };
}

#[cfg(test)]
mod tests;
