//! A calendar queue (Brown 1988): events in order of time, a constant cost each.
//!
//! Time is cut into days of equal length, `2^16` days are a year, and a day holds the events of that day of
//! every year. Days are so long that about 32 packets fall on one, since the mean rate of a trace is known
//! beforehand; so Brown's resizing is left out. The day that is being worked through is a small binary heap.
//! Memory: 256 KiB for the days and 24 bytes for each waiting event.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

const DAYS_PER_YEAR: usize = 1 << 16;
const EVENTS_PER_DAY: u64 = 32;
const NONE: u32 = u32::MAX;

/// Waiting events: a time in nanoseconds, and a number that says what is to happen then.
pub(super) struct Calendar {
    /// A day is `2^day_bits` ns.
    day_bits: u32,
    /// The day being worked through, counted from time zero.
    day: u64,
    /// Its events. Ties go by number, so that the order is always the same.
    today: BinaryHeap<Reverse<(u64, u32)>>,
    /// First waiting event of each day of the year, a list through `nodes`.
    days: Vec<u32>,
    nodes: Vec<Node>,
    free: u32,
    /// Events on lists.
    waiting: usize,
}

#[derive(Clone, Copy)]
struct Node {
    time: u64,
    event: u32,
    next: u32,
}

impl Calendar {
    /// For about `events` events spread over `duration_ns`.
    pub(super) fn new(events: u64, duration_ns: u64) -> Calendar {
        let day = (duration_ns / events.max(1)).saturating_mul(EVENTS_PER_DAY).max(1);
        Calendar {
            day_bits: day.ilog2(),
            day: 0,
            today: BinaryHeap::new(),
            days: vec![NONE; DAYS_PER_YEAR],
            nodes: Vec::new(),
            free: NONE,
            waiting: 0,
        }
    }

    /// Adds an event. One before the last that was popped comes next.
    #[inline]
    pub(super) fn push(&mut self, time: u64, event: u32) {
        if time >> self.day_bits <= self.day {
            self.today.push(Reverse((time, event)));
            return;
        }
        let place = (time >> self.day_bits) as usize % DAYS_PER_YEAR;
        let node = Node { time, event, next: self.days[place] };
        if self.free == NONE {
            self.days[place] = self.nodes.len() as u32;
            self.nodes.push(node);
        } else {
            self.days[place] = self.free;
            self.free = std::mem::replace(&mut self.nodes[self.free as usize], node).next;
        }
        self.waiting += 1;
    }

    /// Takes the earliest event.
    #[inline]
    pub(super) fn pop(&mut self) -> Option<(u64, u32)> {
        loop {
            if let Some(Reverse(event)) = self.today.pop() {
                return Some(event);
            }
            if self.waiting == 0 {
                return None;
            }
            self.day += 1;
            self.open_day();
        }
    }

    /// Moves this day's events from its list to the heap; those of later years stay.
    fn open_day(&mut self) {
        let place = self.day as usize % DAYS_PER_YEAR;
        let mut at = std::mem::replace(&mut self.days[place], NONE);
        while at != NONE {
            let node = self.nodes[at as usize];
            let list = if node.time >> self.day_bits == self.day {
                self.today.push(Reverse((node.time, node.event)));
                self.waiting -= 1;
                &mut self.free
            } else {
                &mut self.days[place]
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
    fn events_come_out_as_from_one_big_heap() {
        let mut random = Random::new(3);
        let mut calendar = Calendar::new(1_000, 1_000_000);
        let mut heap = BinaryHeap::new();
        let mut now = 0;
        for event in 0..20_000 {
            // Some on the same day, some years ahead.
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
