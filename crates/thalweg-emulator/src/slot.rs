//! Timeslots: the emulator's unit of time (Flexplane, section 3.2).

use std::ops::Add;

use thalweg_wire::{BitRate, Nanos, Timestamp};

/// A timeslot, counted from the start of the emulation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Slot(pub u64);

impl Add<u64> for Slot {
    type Output = Slot;

    #[inline]
    fn add(self, slots: u64) -> Slot {
        Slot(self.0 + slots)
    }
}

/// The length of a slot: the time of `slot_bytes` at `rate`. Two numbers, so that slots do not drift against
/// nanoseconds: slot n starts at floor(n * slot_bytes * 8e9 / rate) ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlotClock {
    /// Bytes that pass at `rate` in one slot, framing included.
    pub slot_bytes: u32,
    /// The rate of the fastest endpoint's link.
    pub rate: BitRate,
}

impl SlotClock {
    /// The start of `slot`. Virtual time starts at zero.
    ///
    /// # Panics
    /// If the rate is zero.
    #[inline]
    pub fn start_of(&self, slot: Slot) -> Timestamp {
        let nanos =
            u128::from(slot.0) * u128::from(self.slot_bytes) * 8_000_000_000 / u128::from(self.rate.0);
        Timestamp(nanos as u64)
    }

    /// The first slot that starts at or after `time`.
    ///
    /// # Panics
    /// If slots have no bytes.
    pub fn slot_at(&self, time: Timestamp) -> Slot {
        let bits = u128::from(time.0) * u128::from(self.rate.0);
        Slot(bits.div_ceil(u128::from(self.slot_bytes) * 8_000_000_000) as u64)
    }

    /// The number of slots that cover `span`; at least one unless the span is empty.
    pub fn slots_in(&self, span: Nanos) -> u64 {
        self.slot_at(Timestamp(span.0)).0
    }

    /// The length of a slot in seconds.
    pub fn seconds(&self) -> f64 {
        f64::from(self.slot_bytes) * 8.0 / self.rate.0 as f64
    }
}
