//! The life cycle of an entry: how flows begin, are split, restart and end.

use super::{FlowTable, Lookup, NONE, Output};
use crate::detect::sliding_window::{Counted, Flight, NO_TRACK, Verified};
use crate::detect::{Cheetah, CheetahEnd, Finding};
use crate::memory::prefetch;
use crate::meter::entry::{Entry, Exported, State, V6Addresses};
use crate::meter::observer::Observer;
use crate::meter::record::{EndReason, FlowRecord};
use thalweg_wire::{Bytes, Direction, FlowKey, Packet, TcpFlags, Timestamp};

impl FlowTable {
    /// Handles a slot removed from the order of ages: its flow ends if it was last used before the tick `before`;
    /// otherwise the slot is added back.
    pub(super) fn process_aged(
        &mut self,
        slot: u32,
        before: u64,
        reason: EndReason,
        output: &mut Output,
        observer: &mut impl Observer,
    ) {
        let tick = self.age_tick(self.entries[slot as usize].last);
        let entry = &mut self.entries[slot as usize];
        entry.clear(State::AGED);
        match entry.is(State::OCCUPIED) {
            true if tick < before => self.end(slot, reason, output, observer),
            true => self.put_aged(slot, tick),
            false => {}
        }
    }

    /// Handles a slot removed from the order of flows that TCP has ended: its linger is over, or it is added back.
    pub(super) fn process_lingering(
        &mut self,
        slot: u32,
        lingered_before: u64,
        output: &mut Output,
        observer: &mut impl Observer,
    ) {
        let tick = self.linger_tick(self.entries[slot as usize].last);
        let entry = &mut self.entries[slot as usize];
        entry.clear(State::LINGERING);
        match entry.is(State::CLOSING) {
            true if tick < lingered_before => self.end(slot, EndReason::Fin, output, observer),
            true => self.put_lingering(slot, tick),
            false => {}
        }
    }

    fn put_aged(&mut self, slot: u32, tick: u64) {
        let entry = &mut self.entries[slot as usize];
        if !entry.is(State::AGED) {
            entry.set(State::AGED);
            self.ages.put(slot, tick);
        }
    }

    fn put_lingering(&mut self, slot: u32, tick: u64) {
        let entry = &mut self.entries[slot as usize];
        if !entry.is(State::LINGERING) {
            entry.set(State::LINGERING);
            self.closing.put(slot, tick);
        }
    }

    /// Prefetches the memory for ending these flows.
    pub(super) fn prefetch_ends(&self, slots: &[u32]) {
        for slot in slots {
            prefetch(&self.entries[*slot as usize]);
        }
        for slot in slots {
            self.index.prefetch(self.entries[*slot as usize].words().hash(&self.seed));
        }
    }

    /// Creates an entry without packets for a new flow.
    pub(super) fn begin(
        &mut self,
        packet: &Packet,
        lookup: &Lookup,
        output: &mut Output,
        observer: &mut impl Observer,
    ) -> u32 {
        if self.live == self.options.capacity {
            self.evict(output, observer);
        }
        let slot = self.take_slot();
        let now = packet.time.0;
        let entry = &mut self.entries[slot as usize];
        entry.wipe();
        (entry.low, entry.high) = (lookup.words.low, lookup.words.high);
        (entry.first, entry.last) = (now, now);
        entry.track = NO_TRACK;
        entry.set(State::OCCUPIED);
        entry.set_initiator(packet, lookup.direction);
        if lookup.words.is_v6() {
            self.v6[slot as usize] = V6Addresses::of(&packet.key);
        }
        self.index.insert(lookup.hash, slot);
        let tick = self.age_tick(now.max(self.clock.0));
        self.put_aged(slot, tick);
        self.live += 1;
        self.counters.flows += 1;
        slot
    }

    fn take_slot(&mut self) -> u32 {
        if self.free == NONE {
            self.fresh += 1;
            return self.fresh - 1;
        }
        let slot = self.free;
        self.free = self.entries[slot as usize].track;
        slot
    }

    /// Ends the least recently used flow; only called for a full table.
    #[cold]
    fn evict(&mut self, output: &mut Output, observer: &mut impl Observer) {
        while let [slot] = *self.ages.remove_before(u64::MAX, &mut [0]) {
            let live = self.live;
            self.process_aged(slot, self.ages.oldest() + 1, EndReason::Evicted, output, observer);
            if self.live < live {
                return;
            }
        }
        unreachable!("every flow of the table is in the order of ages");
    }

    /// Counts a packet of a flow that may be complete, or a part, or is watched by the detector.
    #[cold]
    #[inline(never)]
    pub(super) fn count_exceptional(
        &mut self,
        slot: u32,
        packet: &Packet,
        direction: Direction,
        output: &mut Output,
        observer: &mut impl Observer,
    ) {
        self.end_or_split(slot, packet, direction, output, observer);
        let before = self.entries[slot as usize].bytes[direction as usize];
        self.add(slot, packet, direction, output);
        let entry = &self.entries[slot as usize];
        if entry.is(State::WATCHED) && !entry.is(State::cheetah(direction)) {
            let counted = self.counted(slot, direction, (before, entry.bytes[direction as usize]));
            let track = entry.track;
            match self.detector.as_mut().map(|detector| detector.verify(track, &counted)) {
                Some(Verified::Unremarkable) | None => {}
                Some(Verified::Unwatched) => self.conclude(slot, packet.key, direction, None, output),
                Some(Verified::Flight(flight)) => {
                    self.conclude(slot, packet.key, direction, Some(flight), output);
                }
            }
        }
    }

    /// Passes a packet that completed a quantum to the detector.
    #[cold]
    #[inline(never)]
    pub(super) fn pass_milestone(
        &mut self,
        slot: u32,
        key: FlowKey,
        direction: Direction,
        counts: (u64, u64),
        output: &mut Output,
    ) {
        let counted = self.counted(slot, direction, counts);
        let track = &mut self.entries[slot as usize].track;
        let flight = self.detector.as_mut().and_then(|detector| detector.observe(track, &counted));
        self.conclude(slot, key, direction, flight, output);
    }

    fn counted(&self, slot: u32, direction: Direction, (before, after): (u64, u64)) -> Counted {
        let time = Timestamp(self.entries[slot as usize].last);
        Counted { owner: slot, direction, before, after, time, start: self.start_time(slot) }
    }

    /// Reports what the detector found, and notes whether it watches the flow.
    fn conclude(
        &mut self,
        slot: u32,
        key: FlowKey,
        direction: Direction,
        flight: Option<Flight>,
        output: &mut Output,
    ) {
        if let Some(flight) = flight {
            self.report_cheetah(slot, key, direction, flight, output);
        }
        let entry = &mut self.entries[slot as usize];
        entry.clear(State::WATCHED);
        if self.detector.as_mut().is_some_and(|detector| detector.watches(slot, entry.track)) {
            entry.set(State::WATCHED);
        }
    }

    /// Called before `packet` is counted: the packets so far may be a complete flow or part.
    fn end_or_split(
        &mut self,
        slot: u32,
        packet: &Packet,
        direction: Direction,
        output: &mut Output,
        observer: &mut impl Observer,
    ) {
        let entry = &self.entries[slot as usize];
        let quiet = packet.time - Timestamp(entry.last);
        let idle = quiet > self.options.idle_timeout;
        let syn = packet.tcp_flags.contains(TcpFlags::SYN);
        let closed = entry.is(State::CLOSING) && (syn || quiet > self.options.linger);
        if idle || closed {
            observer.end(slot, |direction| self.key(slot, direction));
            self.restart(slot, packet, direction, output, observer);
        } else if packet.time - Timestamp(entry.first) >= self.options.active_timeout {
            self.split(slot, EndReason::Active, output, observer);
        } else {
            return;
        }
        let entry = &mut self.entries[slot as usize];
        (entry.first, entry.last) = (packet.time.0, packet.time.0);
    }

    /// Restarts the slot for the next flow of the same 5-tuple; nothing is carried over.
    fn restart(
        &mut self,
        slot: u32,
        packet: &Packet,
        direction: Direction,
        output: &mut Output,
        observer: &mut impl Observer,
    ) {
        let reason = self.entries[slot as usize].reason(EndReason::Idle);
        self.report_end(slot, output);
        self.split(slot, reason, output, observer);
        let entry = &mut self.entries[slot as usize];
        if let Some(detector) = &mut self.detector {
            detector.release(slot, &mut entry.track);
        }
        (entry.bytes, entry.packets) = ([0; 2], [0; 2]);
        entry.set_initiator(packet, direction);
        entry.clear(State::SPLIT);
        entry.clear(State::EXCEPTIONAL);
        for direction in [Direction::Forward, Direction::Reverse] {
            entry.clear(State::cheetah(direction));
        }
        self.counters.flows += 1;
    }

    /// Exports the counts since the last record.
    pub(super) fn split(
        &mut self,
        slot: u32,
        reason: EndReason,
        output: &mut Output,
        observer: &mut impl Observer,
    ) {
        let record = self.record(slot, reason);
        self.export(slot, record, output, observer);
        let begun = self.start_time(slot).0;
        let entry = &mut self.entries[slot as usize];
        self.exported[slot as usize] = Exported { bytes: entry.bytes, packets: entry.packets, first: begun };
        if reason != EndReason::Active {
            entry.tcp_flags = [0; 2];
        }
        entry.first = entry.last;
        entry.set(State::SPLIT);
    }

    /// Ends a flow and frees its slot.
    pub(super) fn end(
        &mut self,
        slot: u32,
        reason: EndReason,
        output: &mut Output,
        observer: &mut impl Observer,
    ) {
        observer.end(slot, |direction| self.key(slot, direction));
        let reason = self.entries[slot as usize].reason(reason);
        self.report_end(slot, output);
        let record = self.record(slot, reason);
        if record.packets() > 0 {
            self.export(slot, record, output, observer);
        }
        let entry = &mut self.entries[slot as usize];
        if let Some(detector) = &mut self.detector {
            detector.release(slot, &mut entry.track);
        }
        let hash = entry.words().hash(&self.seed);
        entry.wipe();
        entry.track = self.free;
        self.free = slot;
        self.index.remove(hash, slot);
        self.live -= 1;
    }

    fn export(&mut self, slot: u32, record: FlowRecord, output: &mut Output, observer: &mut impl Observer) {
        self.counters.records[record.end_reason as usize] += 1;
        output.records.push(record);
        observer.record(slot, self.entries[slot as usize].initiator(), output);
    }

    fn report_cheetah(
        &mut self,
        slot: u32,
        key: FlowKey,
        direction: Direction,
        flight: Flight,
        output: &mut Output,
    ) {
        self.counters.cheetahs += 1;
        let first = self.start_time(slot);
        let entry = &mut self.entries[slot as usize];
        entry.set(State::cheetah(direction));
        let detected = Timestamp(entry.last);
        let cheetah = Cheetah { key, first, detected, rate: flight.rate, bytes: flight.bytes };
        output.findings.push(Finding::Began(cheetah));
    }

    /// Reports the end of each direction that was a cheetah.
    fn report_end(&self, slot: u32, output: &mut Output) {
        let entry = &self.entries[slot as usize];
        for direction in [Direction::Forward, Direction::Reverse] {
            if entry.is(State::cheetah(direction)) {
                let key = self.key(slot, direction);
                let side = direction as usize;
                let (first, last) = (self.start_time(slot), Timestamp(entry.last));
                let (packets, bytes) = (u64::from(entry.packets[side]), Bytes(entry.bytes[side]));
                output.findings.push(Finding::Ended(CheetahEnd { key, first, last, packets, bytes }));
            }
        }
    }

    /// Handles a FIN or RST: if it ended the flow, the linger begins.
    #[cold]
    pub(super) fn note_end(&mut self, slot: u32) {
        let entry = &mut self.entries[slot as usize];
        if entry.tcp_ended() {
            entry.set(State::CLOSING);
            let tick = self.linger_tick(self.entries[slot as usize].last);
            self.put_lingering(slot, tick);
        }
    }
}

impl Entry {
    /// The initiator sends the first packet, unless that is a SYN/ACK.
    fn set_initiator(&mut self, packet: &Packet, direction: Direction) {
        let answers = packet.tcp_flags.contains(TcpFlags::SYN | TcpFlags::ACK);
        let initiator = if answers { direction.opposite() } else { direction };
        self.clear(State::INITIATOR_IS_HIGH);
        if initiator == Direction::Reverse {
            self.set(State::INITIATOR_IS_HIGH);
        }
    }

    /// Returns why a flow ends: TCP's reason takes precedence over the table's.
    fn reason(&self, otherwise: EndReason) -> EndReason {
        let flags = TcpFlags(self.tcp_flags[0] | self.tcp_flags[1]);
        match self.is(State::CLOSING) {
            true if flags.contains(TcpFlags::RST) => EndReason::Rst,
            true => EndReason::Fin,
            false => otherwise,
        }
    }
}
