//! Time within a slot. A port of any rate sends packets of any length one after the other; when each has left
//! is counted in ticks, of which a slot has 2^24, and slots come of it by rounding up.

use std::ops::Add;

use thalweg_wire::{BitRate, Timestamp};

use crate::slot::{Slot, SlotClock};

const BITS: u32 = 24;

/// Ticks since the beginning of slot 0. They last 2^40 slots: 15 days of 10 Gbit/s.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ticks(pub u64);

impl Ticks {
    /// One slot.
    pub const SLOT: Ticks = Ticks(1 << BITS);

    /// When a slot begins.
    #[inline(always)]
    pub const fn start_of(slot: Slot) -> Ticks {
        Ticks(slot.0 << BITS)
    }

    /// The first slot that begins at this time or later.
    #[inline(always)]
    pub const fn slot_after(self) -> Slot {
        Slot((self.0 + (Ticks::SLOT.0 - 1)) >> BITS)
    }

    /// This time in nanoseconds, in a network of this clock.
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

/// How fast a port is: ticks a byte in 2^-16, rounded up. A packet of 65,535 bytes is off by one tick at most, and a
/// packet that takes one slot takes exactly one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace(u64);

impl Pace {
    /// The pace of a port of this rate.
    ///
    /// # Panics
    /// If the clock's slots are empty.
    pub fn new(clock: SlotClock, rate: BitRate) -> Pace {
        let slot = u128::from(clock.slot_bytes) * u128::from(rate.0.max(1));
        let pace = (u128::from(clock.rate.0) << (BITS + 16)).div_ceil(slot);
        // Slower links are refused before (`MAX_TRANSMISSION`); on the fastest the shortest packet takes a tick.
        Pace(pace.clamp(1 << 10, 1 << 48) as u64)
    }

    /// How long `bytes` take.
    #[inline(always)]
    pub const fn span(self, bytes: u16) -> Ticks {
        Ticks((self.0 * bytes as u64) >> 16)
    }

    /// How long any number of bytes takes.
    pub fn long_span(self, bytes: u64) -> Ticks {
        Ticks(((u128::from(self.0) * u128::from(bytes)) >> 16).min(1 << 62) as u64)
    }

    /// How many bytes go into a span, to the nearest.
    pub fn bytes_in(self, span: Ticks) -> u64 {
        let pace = u128::from(self.0);
        (((u128::from(span.0) << 16) + pace / 2) / pace) as u64
    }
}
