//! Several queues at each port.

use thalweg_network::PortIndex;

use crate::queues::backlog::{Backlog, Queued};
use crate::queues::fifos::Fifos;
use crate::queues::port_set::PortSet;

/// The largest number of queues per port: the bits of a word.
pub const MAX_QUEUES: usize = 64;

/// First-in, first-out queues, the same number and capacity at each port.
#[derive(Clone, Debug)]
pub struct QueueBank<T: Copy> {
    /// Queue q of port p has the number 64 p + q, so each port has a word with a bit per non-empty queue.
    queues: Fifos<T>,
    queues_per_port: usize,
    backlogged: PortSet,
}

impl<T: Queued> QueueBank<T> {
    /// Empty queues: `queues` at each of `ports` ports, each for `capacity` packets.
    ///
    /// # Panics
    /// If there are no queues or more than [`MAX_QUEUES`] at a port, more than 1,024 ports, or queues have no capacity or
    /// more than [`MAX_CAPACITY`](super::fifos::MAX_CAPACITY).
    pub fn new(ports: usize, queues: usize, capacity: u32) -> Self {
        assert!((1..=MAX_QUEUES).contains(&queues), "1 to 64 queues a port, not {queues}");
        assert!(ports <= 1 << 10, "{ports} ports: queues have numbers of 16 bits");
        QueueBank {
            queues: Fifos::of_every(queues, MAX_QUEUES, ports * MAX_QUEUES, capacity),
            queues_per_port: queues,
            backlogged: PortSet::new(ports),
        }
    }

    #[inline(always)]
    fn number(&self, port: PortIndex, queue: usize) -> PortIndex {
        debug_assert!(queue < self.queues_per_port);
        PortIndex((port.index() * MAX_QUEUES + queue) as u16)
    }

    /// Appends `item` to a queue. Returns whether there was room.
    ///
    /// # Panics
    /// If there is no such port.
    #[inline(always)]
    #[must_use = "what finds no room is dropped, and must be counted"]
    pub fn push(&mut self, port: PortIndex, queue: usize, item: T) -> bool {
        let room = self.queues.push(self.number(port, queue), item);
        if room {
            self.backlogged.insert(port);
        }
        room
    }

    /// Removes the first item of a queue.
    ///
    /// # Panics
    /// If there is no such port.
    #[inline(always)]
    pub fn pop(&mut self, port: PortIndex, queue: usize) -> Option<T> {
        let item = self.queues.pop(self.number(port, queue))?;
        self.backlogged.remove_if(port, self.occupied(port) == 0);
        Some(item)
    }

    /// The first item of a queue, which stays there.
    #[inline]
    pub fn first(&self, port: PortIndex, queue: usize) -> Option<&T> {
        self.queues.first(self.number(port, queue))
    }

    /// The items of a queue, first to last.
    pub fn iter(&self, port: PortIndex, queue: usize) -> impl Iterator<Item = &T> {
        self.queues.iter(self.number(port, queue))
    }

    /// Packets in a queue.
    #[inline]
    pub fn packets(&self, port: PortIndex, queue: usize) -> u32 {
        self.queues.packets(self.number(port, queue))
    }

    /// The non-empty queues of a port: bit q for queue q.
    #[inline]
    pub fn occupied(&self, port: PortIndex) -> u64 {
        self.queues.backlogged().word(port.index())
    }

    /// The length of all queues of a port. Iterates over them.
    pub fn backlog(&self, port: PortIndex) -> Backlog {
        (0..self.queues_per_port).map(|queue| self.queues.backlog(self.number(port, queue))).fold(
            Backlog::default(),
            |sum, queue| Backlog { packets: sum.packets + queue.packets, bytes: sum.bytes + queue.bytes },
        )
    }

    /// The ports with non-empty queues.
    #[inline]
    pub fn backlogged(&self) -> &PortSet {
        &self.backlogged
    }

    /// Queues per port.
    pub fn queues(&self) -> usize {
        self.queues_per_port
    }

    /// The capacity of a queue in packets.
    pub fn capacity(&self) -> u32 {
        self.queues.capacity()
    }
}
