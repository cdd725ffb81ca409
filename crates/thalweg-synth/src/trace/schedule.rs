//! A calendar queue (Brown 1988): returns events in order of time, at constant cost per event.
//!
//! Time is divided into days of equal length, `2^16` days are a year, and a day holds the events of that day of every
//! year. The length of a day gives about 32 packets per day; the mean rate of a trace is known in advance, so Brown's
//! resizing is left out. The current day is a small binary heap. Memory: 256 KiB for the days and 24 bytes per pending
//! event.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

const DAYS_PER_YEAR: usize = 1 << 16;
const EVENTS_PER_DAY: u64 = 32;
const NONE: u32 = u32::MAX;

/// Pending events: a time in nanoseconds, and a number that identifies the event.
pub(super) struct Calendar {
    /// A day is `2^day_bits` ns.
    day_bits: u32,
    /// The current day, counted from time zero.
    day: u64,
    /// Its events. Ties are ordered by number, so the order is deterministic.
    today: BinaryHeap<Reverse<(u64, u32)>>,
    /// First pending event of each day of the year, a linked list in `nodes`.
    days: Vec<u32>,
    nodes: Vec<Node>,
    free: u32,
    /// Number of events on lists.
    pending: usize,
}

#[derive(Clone, Copy)]
struct Node {
    time: u64,
    event: u32,
    next: u32,
}

impl Calendar {
    /// Returns a calendar for about `events` events over `duration_ns`.
    pub(super) fn new(events: u64, duration_ns: u64) -> Calendar {
        let day = (duration_ns / events.max(1)).saturating_mul(EVENTS_PER_DAY).max(1);
        Calendar {
            day_bits: day.ilog2(),
            day: 0,
            today: BinaryHeap::new(),
            days: vec![NONE; DAYS_PER_YEAR],
            nodes: Vec::new(),
            free: NONE,
            pending: 0,
        }
    }

    /// Adds an event. An event earlier than the last one popped comes next.
    #[inline]
    pub(super) fn push(&mut self, time: u64, event: u32) {
        if time >> self.day_bits <= self.day {
            self.today.push(Reverse((time, event)));
            return;
        }
        let index = (time >> self.day_bits) as usize % DAYS_PER_YEAR;
        let node = Node { time, event, next: self.days[index] };
        if self.free == NONE {
            self.days[index] = self.nodes.len() as u32;
            self.nodes.push(node);
        } else {
            self.days[index] = self.free;
            self.free = std::mem::replace(&mut self.nodes[self.free as usize], node).next;
        }
        self.pending += 1;
    }

    /// Removes and returns the earliest event.
    #[inline]
    pub(super) fn pop(&mut self) -> Option<(u64, u32)> {
        loop {
            if let Some(Reverse(event)) = self.today.pop() {
                return Some(event);
            }
            if self.pending == 0 {
                return None;
            }
            self.day += 1;
            self.open_day();
        }
    }

    /// Moves this day's events from its list to the heap; events of later years stay.
    fn open_day(&mut self) {
        let index = self.day as usize % DAYS_PER_YEAR;
        let mut at = std::mem::replace(&mut self.days[index], NONE);
        while at != NONE {
            let node = self.nodes[at as usize];
            let list = if node.time >> self.day_bits == self.day {
                self.today.push(Reverse((node.time, node.event)));
                self.pending -= 1;
                &mut self.free
            } else {
                &mut self.days[index]
            };
            self.nodes[at as usize].next = std::mem::replace(list, at);
            at = node.next;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    #[test]
    fn events_are_in_the_order_of_a_binary_heap() {
        let mut random = Random::new(3);
        let mut calendar = Calendar::new(1_000, 1_000_000);
        let mut heap = BinaryHeap::new();
        let mut now = 0;
        for event in 0..20_000 {
            // Some are on the same day, some years ahead.
            let time = now + random.octave(36);
            calendar.push(time, event);
            heap.push(Reverse((time, event)));
            if random.chance(0.4) {
                let popped = calendar.pop();
                assert_eq!(popped, heap.pop().map(|Reverse(event)| event));
                now = popped.map_or(now, |(time, _)| time);
            }
        }
        while let Some(Reverse(event)) = heap.pop() {
            assert_eq!(calendar.pop(), Some(event));
        }
        assert_eq!(calendar.pop(), None);
    }
}
