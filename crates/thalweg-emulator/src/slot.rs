//! Timeslots: the emulator's unit of time (Flexplane, section 3.2).

use std::ops::Add;

use thalweg_wire::{BitRate, Nanos, Timestamp};

/// A timeslot, counted from the beginning of the emulation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Slot(pub u64);

impl Add<u64> for Slot {
    type Output = Slot;

    #[inline]
    fn add(self, slots: u64) -> Slot {
        Slot(self.0 + slots)
    }
}

/// How long a slot is: the time that `slot_bytes` take at `rate`. Kept as the two numbers, so that slots do not
/// drift against nanoseconds: slot n begins at floor(n * slot_bytes * 8e9 / rate) ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlotClock {
    /// Bytes of a full-size packet on a link, framing included.
    pub slot_bytes: u32,
    /// The rate at which such a packet takes one slot.
    pub rate: BitRate,
}

impl SlotClock {
    /// When `slot` begins, with virtual time beginning at zero.
    ///
    /// # Panics
    /// If the rate is zero.
    #[inline]
    pub fn start_of(&self, slot: Slot) -> Timestamp {
        let nanos =
            u128::from(slot.0) * u128::from(self.slot_bytes) * 8_000_000_000 / u128::from(self.rate.0);
        Timestamp(nanos as u64)
    }

    /// The first slot that begins at or after `time`.
    ///
    /// # Panics
    /// If the clock's slots have no bytes.
    pub fn slot_at(&self, time: Timestamp) -> Slot {
        let bits = u128::from(time.0) * u128::from(self.rate.0);
        Slot(bits.div_ceil(u128::from(self.slot_bytes) * 8_000_000_000) as u64)
    }

    /// Slots that cover `span`, at least one if the span is not empty.
    pub fn slots_in(&self, span: Nanos) -> u64 {
        self.slot_at(Timestamp(span.0)).0
    }

    /// Length of a slot in seconds.
    pub fn seconds(&self) -> f64 {
        f64::from(self.slot_bytes) * 8.0 / self.rate.0 as f64
    }
}
