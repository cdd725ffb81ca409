//! First-in, first-out queues, one per port, each in its own ring.
//!
//! An empty ring restarts at its first place, so the memory in use is as small as the queue: a port that is rarely
//! backlogged uses one or two cache lines whatever its capacity.

#![expect(unsafe_code, reason = "unchecked indices on the hottest path (decision 20)")]

use std::mem::MaybeUninit;

use thalweg_network::PortIndex;

use crate::queues::backlog::{Backlog, Queued};
use crate::queues::port_set::PortSet;

/// The ring of a queue: positions `head` to `tail`, which increase until it is empty, in the places from `base` on.
#[derive(Clone, Copy, Debug)]
struct Ring {
    head: u32,
    tail: u32,
    base: usize,
}

/// Queues of equal capacity, one per port.
#[derive(Clone, Debug)]
pub struct Fifos<T: Copy> {
    rings: Box<[Ring]>,
    /// Written only when an item is queued there: untouched memory costs nothing.
    places: Box<[MaybeUninit<T>]>,
    backlogged: PortSet,
    capacity: u32,
    /// The places of a ring minus one; their number is a power of two.
    mask: u32,
}

/// Places between rings. Rings restart at their first place. If they were a power of two apart, all first places would
/// be in the same set of the cache.
const SKEW: usize = 4;

/// The largest capacity of a queue.
pub const MAX_CAPACITY: u32 = 1 << 24;

impl<T: Queued> Fifos<T> {
    /// Empty queues for `capacity` packets each.
    ///
    /// # Panics
    /// If queues have no capacity or more than [`MAX_CAPACITY`].
    pub fn new(ports: usize, capacity: u32) -> Self {
        Fifos::of_every(1, 1, ports, capacity)
    }

    /// Empty queues at `used` of every `group` ports, and none at the others.
    pub(super) fn of_every(used: usize, group: usize, ports: usize, capacity: u32) -> Self {
        assert!((1..=MAX_CAPACITY).contains(&capacity), "1 to 2^24 packets a queue, not {capacity}");
        let stride = capacity.next_power_of_two();
        let apart = stride as usize + SKEW;
        let ring = |port: usize| {
            let number = port / group * used + (port % group).min(used - 1);
            Ring { head: 0, tail: 0, base: number * apart }
        };
        Fifos {
            rings: (0..ports).map(ring).collect(),
            places: Box::new_uninit_slice(ports.div_ceil(group) * used * apart),
            backlogged: PortSet::new(ports),
            capacity,
            mask: stride - 1,
        }
    }

    /// The place of `position` in `ring`.
    #[inline(always)]
    fn place(&self, ring: Ring, position: u32) -> usize {
        let place = ring.base + (position & self.mask) as usize;
        debug_assert!(place < self.places.len());
        place
    }

    /// The item at `position` of `ring`, which must be from its head up to its tail.
    #[inline(always)]
    fn at(&self, ring: Ring, position: u32) -> &T {
        // SAFETY: a ring starts at its number times a distance no less than the stride, and the mask keeps the position
        // below the stride. Each number has one such distance of places. `push` has written everything from head to
        // tail.
        unsafe { self.places.get_unchecked(self.place(ring, position)).assume_init_ref() }
    }

    /// Appends `item` to a queue. Returns whether there was room.
    ///
    /// # Panics
    /// If there is no such port.
    #[inline(always)]
    #[must_use = "what finds no room is dropped, and must be counted"]
    pub fn push(&mut self, port: PortIndex, item: T) -> bool {
        let ring = self.rings[port.index()];
        let room = ring.tail - ring.head < self.capacity;
        if room {
            let place = self.place(ring, ring.tail);
            self.rings[port.index()].tail = ring.tail + 1;
            // SAFETY: in bounds as in `at`.
            unsafe { self.places.get_unchecked_mut(place) }.write(item);
            self.backlogged.insert(port);
        }
        room
    }

    /// Removes the first item of a queue.
    ///
    /// # Panics
    /// If there is no such port.
    #[inline(always)]
    pub fn pop(&mut self, port: PortIndex) -> Option<T> {
        let ring = self.rings[port.index()];
        if ring.head == ring.tail {
            return None;
        }
        let item = *self.at(ring, ring.head);
        let head = ring.head + 1;
        let left = u32::from(head != ring.tail);
        let ring = &mut self.rings[port.index()];
        ring.head = head * left;
        ring.tail *= left;
        self.backlogged.remove_if(port, left == 0);
        Some(item)
    }

    /// The first item of a queue, which stays there.
    #[inline]
    pub fn first(&self, port: PortIndex) -> Option<&T> {
        let ring = self.rings[port.index()];
        (ring.head != ring.tail).then(|| self.at(ring, ring.head))
    }

    /// The items of a queue, first to last.
    pub fn iter(&self, port: PortIndex) -> impl Iterator<Item = &T> {
        let ring = self.rings[port.index()];
        (ring.head..ring.tail).map(move |position| self.at(ring, position))
    }

    /// Packets in a queue.
    #[inline]
    pub fn packets(&self, port: PortIndex) -> u32 {
        let ring = self.rings[port.index()];
        ring.tail - ring.head
    }

    /// The length of a queue. Iterates over it.
    pub fn backlog(&self, port: PortIndex) -> Backlog {
        Backlog { packets: self.packets(port), bytes: self.iter(port).map(T::length).sum() }
    }

    /// The ports with non-empty queues.
    #[inline]
    pub fn backlogged(&self) -> &PortSet {
        &self.backlogged
    }

    /// The capacity of a queue in packets.
    pub fn capacity(&self) -> u32 {
        self.capacity
    }
}
