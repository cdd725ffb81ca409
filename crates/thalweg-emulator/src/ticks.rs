//! Time within a slot. Ports of any rate send packets of any length back to back. They count time in ticks of 2^-24 of
//! a slot.

use std::ops::Add;

use thalweg_wire::{BitRate, Nanos, Timestamp};

use crate::slot::{Slot, SlotClock};

const BITS: u32 = 24;

/// Ticks since the start of slot 0. They last for 2^40 slots: 15 days at 10 Gbit/s.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ticks(pub u64);

impl Ticks {
    /// One slot.
    pub const SLOT: Ticks = Ticks(1 << BITS);

    /// The start of a slot.
    #[inline(always)]
    pub const fn start_of(slot: Slot) -> Ticks {
        Ticks(slot.0 << BITS)
    }

    /// This time minus `lag`, which must not be before slot 0.
    #[inline(always)]
    pub const fn before(self, lag: Lag) -> Ticks {
        Ticks(self.0 - lag.ticks().0)
    }

    /// The first slot that starts at this time or later.
    #[inline(always)]
    pub const fn slot_after(self) -> Slot {
        Slot((self.0 + (Ticks::SLOT.0 - 1)) >> BITS)
    }

    /// This time in nanoseconds, in a network with this clock.
    pub fn time(self, clock: SlotClock) -> Timestamp {
        let slot = Slot(self.0 >> BITS);
        let start = clock.start_of(slot).0;
        let length = clock.start_of(slot + 1).0 - start;
        Timestamp(start + ((u128::from(length) * u128::from(self.0 % Ticks::SLOT.0)) >> BITS) as u64)
    }
}

impl Add for Ticks {
    type Output = Ticks;

    #[inline(always)]
    fn add(self, span: Ticks) -> Ticks {
        Ticks(self.0 + span.0)
    }
}

/// The time between a packet's arrival and the start of the slot that processes it, in 2^-7 of a slot: less than two
/// slots. Slots only decide when a packet is processed. A port sends it as of its arrival.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Lag(pub u8);

const LAG_BITS: u32 = 7;

impl Lag {
    /// One slot.
    const SLOT: u64 = 1 << LAG_BITS;

    /// The largest lag.
    const MAX: u64 = u8::MAX as u64;

    /// The lag of an event at `earlier` in the slot that starts at `start`, rounded down and limited to the largest
    /// lag.
    #[inline(always)]
    pub const fn between(earlier: Ticks, start: Ticks) -> Lag {
        let lag = start.0.saturating_sub(earlier.0) >> (BITS - LAG_BITS);
        Lag(if lag > Lag::MAX { Lag::MAX as u8 } else { lag as u8 })
    }

    /// The lag in ticks.
    #[inline(always)]
    pub const fn ticks(self) -> Ticks {
        Ticks((self.0 as u64) << (BITS - LAG_BITS))
    }
}

/// The propagation delay of a link, in 2^-7 of a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delay {
    units: u32,
    /// The time by which a packet may leave before its earliest slot without being [limited](Delay::clamped): it is not
    /// processed before that slot, and its lag is at most the largest.
    margin: u32,
}

impl Default for Delay {
    /// No delay.
    fn default() -> Self {
        Delay::of_units(0)
    }
}

impl Delay {
    /// Converts `span` to slots of `clock`, to the nearest 2^-7.
    pub fn new(clock: SlotClock, span: Nanos) -> Delay {
        let (bits, slot_bits) = (u128::from(clock.rate.0), u128::from(clock.slot_bytes) * 8_000_000_000);
        let units = (u128::from(span.0) * bits * u128::from(Lag::SLOT) + slot_bits / 2) / slot_bits;
        Delay::of_units(units.min(u128::from(u32::MAX)) as u32)
    }

    const fn of_units(units: u32) -> Delay {
        let margin = units as u64 + Lag::SLOT - 1;
        Delay { units, margin: if margin < Lag::MAX { margin } else { Lag::MAX } as u32 }
    }

    /// The number of slots by which a receiver may be ahead of a sender. A packet sent in slot t is processed in slot t
    /// + 1 + lookahead or later.
    pub const fn lookahead(self) -> u64 {
        (self.units as u64).saturating_sub(Lag::MAX).div_ceil(Lag::SLOT)
    }

    /// The slot that processes a packet at the other end, and its lag there, if its last byte leaves at `finish`: the
    /// first slot that starts after the arrival, not before `earliest`. If the lag would exceed the largest lag, the
    /// packet leaves later by the difference.
    #[inline(always)]
    pub(crate) const fn arrival(self, finish: Ticks, earliest: Ticks) -> (Slot, Lag) {
        let round = finish.0 + (1 << (BITS - LAG_BITS - 1));
        self.after(round >> (BITS - LAG_BITS), earliest.0 >> (BITS - LAG_BITS))
    }

    /// The same for a packet that a link without delay would have delivered `lag` before slot `slot`.
    #[inline(always)]
    pub(crate) const fn arrival_after(self, slot: Slot, lag: Lag, earliest: Slot) -> (Slot, Lag) {
        self.after(slot.0 * Lag::SLOT - lag.0 as u64, earliest.0 * Lag::SLOT)
    }

    /// As [`arrival`](Delay::arrival), if the delay is longer by `extra` units of 2^-7 slots, which depends on the time at which the
    /// last byte leaves, in the same units.
    pub(crate) fn varied_arrival(
        self,
        finish: Ticks,
        earliest: Ticks,
        extra: impl FnOnce(u64) -> u32,
    ) -> (Slot, Lag) {
        let round = finish.0 + (1 << (BITS - LAG_BITS - 1));
        self.varied_after(round >> (BITS - LAG_BITS), earliest.0 >> (BITS - LAG_BITS), extra)
    }

    /// As [`arrival_after`](Delay::arrival_after), likewise.
    pub(crate) fn varied_arrival_after(
        self,
        slot: Slot,
        lag: Lag,
        earliest: Slot,
        extra: impl FnOnce(u64) -> u32,
    ) -> (Slot, Lag) {
        self.varied_after(slot.0 * Lag::SLOT - lag.0 as u64, earliest.0 * Lag::SLOT, extra)
    }

    fn varied_after(self, finish: u64, earliest: u64, extra: impl FnOnce(u64) -> u32) -> (Slot, Lag) {
        // A packet that is limited leaves at this time, and a link without delay has already limited it.
        let finish = finish.max(earliest.saturating_sub(Lag::MAX));
        Delay::of_units(self.units + extra(finish)).after(finish, earliest)
    }

    /// By how many units of 2^-7 slots this delay is longer than `shorter`.
    pub(crate) const fn units_above(self, shorter: Delay) -> u32 {
        self.units - shorter.units
    }

    /// All times in 2^-7 of a slot.
    #[inline(always)]
    const fn after(self, finish: u64, earliest: u64) -> (Slot, Lag) {
        if finish + (self.margin as u64) < earliest {
            return self.clamped(finish, earliest);
        }
        let arrival = finish + self.units as u64;
        let slot = (arrival + (Lag::SLOT - 1)) >> LAG_BITS;
        (Slot(slot), Lag((arrival.wrapping_neg() & (Lag::SLOT - 1)) as u8))
    }

    /// The same if the packet would be processed before `earliest`, or its lag would exceed the largest lag.
    #[cold]
    #[inline(never)]
    const fn clamped(self, finish: u64, earliest: u64) -> (Slot, Lag) {
        let floor = earliest.saturating_sub(Lag::MAX);
        let arrival = if finish > floor { finish } else { floor } + self.units as u64;
        let slot = arrival.div_ceil(Lag::SLOT);
        let slot = if slot > earliest / Lag::SLOT { slot } else { earliest / Lag::SLOT };
        (Slot(slot), Lag((slot * Lag::SLOT - arrival) as u8))
    }
}

/// The speed of a port: ticks per byte in 2^-16, rounded up. The error for 65,535 bytes is at most one tick, and a
/// packet that takes one slot takes exactly one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace(u64);

impl Pace {
    /// The pace of a port with this rate.
    ///
    /// # Panics
    /// If the clock's slots are empty.
    pub fn new(clock: SlotClock, rate: BitRate) -> Pace {
        let slot = u128::from(clock.slot_bytes) * u128::from(rate.0.max(1));
        let pace = (u128::from(clock.rate.0) << (BITS + 16)).div_ceil(slot);
        // Slower links were refused before (`MAX_TRANSMISSION`). On the fastest link the shortest packet takes one
        // tick.
        Pace(pace.clamp(1 << 10, 1 << 48) as u64)
    }

    /// The transmission time of `bytes`.
    #[inline(always)]
    pub const fn span(self, bytes: u16) -> Ticks {
        Ticks((self.0 * bytes as u64) >> 16)
    }

    /// The transmission time of any number of bytes.
    pub fn long_span(self, bytes: u64) -> Ticks {
        Ticks(((u128::from(self.0) * u128::from(bytes)) >> 16).min(1 << 62) as u64)
    }

    /// The number of bytes sent in a span, to the nearest.
    pub fn bytes_in(self, span: Ticks) -> u64 {
        let pace = u128::from(self.0);
        (((u128::from(span.0) << 16) + pace / 2) / pace) as u64
    }
}
