//! Many queues per port in one pool of places: linked lists in flat arrays.
//!
//! The configuration bounds the memory: a place for each packet of a port's limit plus one, and 64 bytes per queue.
//! Push and pop cost O(1). Finding the longest queue reads a number for each queue of a port.

use thalweg_network::PortIndex;

use super::codel::CoDel;
use crate::packet::Packet;
use crate::queues::backlog::{Backlog, Queued};
use crate::queues::port_set::PortSet;
use crate::router::Store;
use crate::schemes::stamped::Stamped;

/// The end of a list.
const NONE: u32 = u32::MAX;

/// A packet and the place of the next one.
#[derive(Clone, Copy, Debug, Default)]
struct Place<C> {
    stamped: Stamped<C>,
    next: u32,
}

/// The ends of a linked list.
#[derive(Clone, Copy, Debug)]
struct List {
    first: u32,
    last: u32,
}

const EMPTY: List = List { first: NONE, last: NONE };

/// The lists in which the queues of a port take turns (RFC 8290, section 4.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turns {
    /// Queues that were empty recently.
    New,
    /// The others.
    Old,
}

/// A flow queue.
#[derive(Clone, Copy, Debug)]
struct Flow {
    packets: List,
    /// The next queue in the list.
    next: u32,
    /// Whether the queue is in one of the lists.
    is_listed: bool,
    /// Bytes that the queue may still send in this turn; negative if it has sent more.
    credits: i32,
    codel: CoDel,
}

const IDLE: Flow = Flow { packets: EMPTY, next: NONE, is_listed: false, credits: 0, codel: CoDel::IDLE };

/// The pool and the lists of a port.
#[derive(Clone, Copy, Debug)]
struct Pool {
    /// The list of freed places.
    free: u32,
    /// Places from here on were never used.
    fresh: u32,
    waiting: u32,
    turns: [List; 2],
}

/// Stamped packets in `flows` queues per port.
#[derive(Clone, Debug)]
pub struct FlowQueues<C> {
    pools: Box<[Pool]>,
    /// Place i of port p has the index p * (limit + 1) + i.
    places: Box<[Place<C>]>,
    /// Queue f of port p has the index p * flows + f, here and in `bytes`.
    queues: Box<[Flow]>,
    bytes: Box<[u32]>,
    backlogged: PortSet,
    flows: usize,
    limit: u32,
}

impl<C: Copy + Default> FlowQueues<C> {
    /// Empty queues: `flows` at each of `ports` ports, for `limit` packets per port.
    pub fn new(ports: usize, flows: usize, limit: u32) -> Self {
        let pool = Pool { free: NONE, fresh: 0, waiting: 0, turns: [EMPTY; 2] };
        FlowQueues {
            pools: vec![pool; ports].into_boxed_slice(),
            places: vec![Place::default(); ports * (limit as usize + 1)].into_boxed_slice(),
            queues: vec![IDLE; ports * flows].into_boxed_slice(),
            bytes: vec![0; ports * flows].into_boxed_slice(),
            backlogged: PortSet::new(ports),
            flows,
            limit,
        }
    }

    #[inline]
    fn number(&self, port: PortIndex, flow: usize) -> usize {
        debug_assert!(flow < self.flows);
        port.index() * self.flows + flow
    }

    #[inline]
    fn place(&mut self, port: PortIndex, place: u32) -> &mut Place<C> {
        &mut self.places[port.index() * (self.limit as usize + 1) + place as usize]
    }

    /// Appends a packet to a queue. There is room for one more than the limit; the caller must then make room.
    ///
    /// # Panics
    /// If there is no room.
    #[inline]
    pub fn push(&mut self, port: PortIndex, flow: usize, stamped: Stamped<C>) {
        let number = self.number(port, flow);
        let pool = &mut self.pools[port.index()];
        assert!(pool.waiting <= self.limit, "a packet was added to a port beyond its limit");
        pool.waiting += 1;
        let place = if pool.free == NONE { pool.fresh } else { pool.free };
        if pool.free == NONE {
            pool.fresh += 1;
        } else {
            self.pools[port.index()].free = self.place(port, place).next;
        }
        *self.place(port, place) = Place { stamped, next: NONE };
        let last = self.queues[number].packets.last;
        if last == NONE {
            self.queues[number].packets.first = place;
        } else {
            self.place(port, last).next = place;
        }
        self.queues[number].packets.last = place;
        self.bytes[number] += stamped.length() as u32;
        self.backlogged.insert(port);
    }

    /// Removes the first packet of a queue. Returns the bytes left in the queue, too.
    #[inline]
    pub fn pop(&mut self, port: PortIndex, flow: usize) -> Option<(Stamped<C>, u32)> {
        let number = self.number(port, flow);
        let first = self.queues[number].packets.first;
        if first == NONE {
            return None;
        }
        let free = self.pools[port.index()].free;
        let place = self.place(port, first);
        let Place { stamped, next } = std::mem::replace(place, Place { next: free, ..*place });
        let queue = &mut self.queues[number].packets;
        queue.first = next;
        if next == NONE {
            queue.last = NONE;
        }
        let pool = &mut self.pools[port.index()];
        pool.free = first;
        pool.waiting -= 1;
        self.backlogged.remove_if(port, pool.waiting == 0);
        self.bytes[number] -= stamped.length() as u32;
        Some((stamped, self.bytes[number]))
    }

    /// The queue with the most bytes, the first among equals.
    pub fn longest(&self, port: PortIndex) -> usize {
        let bytes = &self.bytes[port.index() * self.flows..][..self.flows];
        let most = bytes.iter().copied().max().unwrap_or(0);
        bytes.iter().position(|&bytes| bytes == most).unwrap_or(0)
    }

    /// The number of packets in a queue. Iterates over it.
    pub fn packets(&self, port: PortIndex, flow: usize) -> u32 {
        let places = &self.places[port.index() * (self.limit as usize + 1)..];
        let mut place = self.queues[self.number(port, flow)].packets.first;
        let mut packets = 0;
        while place != NONE {
            place = places[place as usize].next;
            packets += 1;
        }
        packets
    }

    /// Packets at a port.
    #[inline]
    pub fn waiting(&self, port: PortIndex) -> u32 {
        self.pools[port.index()].waiting
    }

    /// The limit of a port in packets.
    pub fn limit(&self) -> u32 {
        self.limit
    }

    /// The queue whose turn it is: the first new one, otherwise the first old one.
    #[inline]
    pub fn turn(&self, port: PortIndex) -> Option<(usize, Turns)> {
        let [new, old] = self.pools[port.index()].turns;
        match (new.first, old.first) {
            (NONE, NONE) => None,
            (NONE, flow) => Some((flow as usize, Turns::Old)),
            (flow, _) => Some((flow as usize, Turns::New)),
        }
    }

    /// Appends a queue that is in no list to one.
    #[inline]
    pub fn list(&mut self, port: PortIndex, flow: usize, turns: Turns) {
        let number = self.number(port, flow);
        self.queues[number].next = NONE;
        self.queues[number].is_listed = true;
        let last = self.pools[port.index()].turns[turns as usize].last;
        if last != NONE {
            let last = self.number(port, last as usize);
            self.queues[last].next = flow as u32;
        }
        let list = &mut self.pools[port.index()].turns[turns as usize];
        list.last = flow as u32;
        if last == NONE {
            list.first = flow as u32;
        }
    }

    /// Removes the first queue of a list.
    #[inline]
    pub fn unlist(&mut self, port: PortIndex, turns: Turns) {
        let first = self.pools[port.index()].turns[turns as usize].first;
        if first == NONE {
            return;
        }
        let number = self.number(port, first as usize);
        self.queues[number].is_listed = false;
        let next = self.queues[number].next;
        let list = &mut self.pools[port.index()].turns[turns as usize];
        list.first = next;
        if next == NONE {
            list.last = NONE;
        }
    }

    /// Whether a queue is in one of the lists.
    #[inline]
    pub fn is_listed(&self, port: PortIndex, flow: usize) -> bool {
        self.queues[self.number(port, flow)].is_listed
    }

    /// Bytes that a queue may still send in this turn.
    #[inline]
    pub fn credits(&mut self, port: PortIndex, flow: usize) -> &mut i32 {
        let number = self.number(port, flow);
        &mut self.queues[number].credits
    }

    /// CoDel's state of a queue.
    #[inline]
    pub fn codel(&mut self, port: PortIndex, flow: usize) -> &mut CoDel {
        let number = self.number(port, flow);
        &mut self.queues[number].codel
    }
}

impl<C: Copy + Default + Send> Store for FlowQueues<C> {
    #[inline]
    fn backlogged(&self) -> &PortSet {
        &self.backlogged
    }

    fn backlog(&self, port: PortIndex) -> Backlog {
        let bytes = &self.bytes[port.index() * self.flows..][..self.flows];
        Backlog { packets: self.waiting(port), bytes: bytes.iter().map(|&bytes| u64::from(bytes)).sum() }
    }

    fn take_any(&mut self, port: PortIndex) -> Option<Packet> {
        while let Some((flow, turns)) = self.turn(port) {
            match self.pop(port, flow) {
                Some((stamped, _)) => return Some(stamped.packet.with_custom(())),
                None => self.unlist(port, turns),
            }
        }
        None
    }
}

#[cfg(test)]
mod tests;
