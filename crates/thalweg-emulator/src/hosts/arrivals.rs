//! Packets that have arrived at hosts and wait for the network stack's delay, by the slot in which they are due.

use thalweg_wire::{Nanos, Timestamp};

use crate::packet::Packet;
use crate::slot::{Slot, SlotClock};
use crate::ticks::Lag;

/// A packet that its host processes at `at`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrival {
    pub(super) at: Timestamp,
    pub(super) packet: Packet,
}

/// The waiting packets of all hosts.
#[derive(Clone, Debug)]
pub(super) struct Arrivals {
    stack_delay: Nanos,
    /// The stack delay in 2^-7 of a slot, rounded up.
    stack_delay_units: u64,
    /// The length of a slot in 2^-16 ns.
    slot: u64,
    /// Packets due in slot t are in bucket t modulo the number of buckets, a power of two.
    buckets: Vec<Vec<Arrival>>,
    waiting: usize,
}

impl Arrivals {
    /// For hosts that process a packet `stack_delay` after its arrival.
    pub(super) fn new(stack_delay: Nanos, clock: SlotClock) -> Arrivals {
        let slot = u128::from(clock.slot_bytes) * (8_000_000_000 << 16) / u128::from(clock.rate.0.max(1));
        let buckets = (clock.slots_in(stack_delay) as usize + 2).next_power_of_two();
        let slot = (slot as u64).max(1);
        Arrivals {
            stack_delay,
            stack_delay_units: (u128::from(stack_delay.0) << (16 + 7)).div_ceil(u128::from(slot)) as u64,
            slot,
            buckets: vec![Vec::new(); buckets],
            waiting: 0,
        }
    }

    /// The number of waiting packets.
    pub(super) fn len(&self) -> usize {
        self.waiting
    }

    /// Adds a packet that arrived by the start of slot `slot`, at `start`.
    #[inline]
    pub(super) fn push(&mut self, packet: Packet, slot: Slot, start: Timestamp) {
        let lag = (u64::from(packet.lag().0) * self.slot) >> (16 + 7);
        let at = Timestamp(start.0.saturating_sub(lag) + self.stack_delay.0);
        let slots = self.stack_delay_units.saturating_sub(u64::from(packet.lag().0)).div_ceil(1 << 7);
        self.waiting += 1;
        self.bucket(slot + slots).push(Arrival { at, packet });
    }

    /// Takes the packets that are due in slot `slot`. Return their buffer with [`give_back`](Arrivals::give_back).
    #[inline]
    pub(super) fn take(&mut self, slot: Slot) -> Vec<Arrival> {
        let due = std::mem::take(self.bucket(slot));
        self.waiting -= due.len();
        due
    }

    /// Keeps the empty buffer of slot `slot`.
    #[inline]
    pub(super) fn give_back(&mut self, slot: Slot, buffer: Vec<Arrival>) {
        *self.bucket(slot) = buffer;
    }

    /// The time at which a host with an idle network interface sent what it could send from `ready` on, and the lag of
    /// that time at `now`, limited to the largest lag.
    #[inline]
    pub(super) fn lag(&self, ready: Timestamp, now: Timestamp) -> (Timestamp, Lag) {
        let since = now.since(ready).0.min(self.slot >> (16 - 1));
        let units = (since << (16 + 7)) / self.slot;
        let lag = units.min(u64::from(u8::MAX)) as u8;
        (Timestamp(now.0 - ((u64::from(lag) * self.slot) >> (16 + 7))), Lag(lag))
    }

    #[inline]
    fn bucket(&mut self, slot: Slot) -> &mut Vec<Arrival> {
        let mask = self.buckets.len() - 1;
        &mut self.buckets[slot.0 as usize & mask]
    }
}
