//! When an endpoint releases packets, so that all have the same overhead.
//!
//! Source: Ousterhout et al., *Flexplane* (NSDI 2017), section 3.4. The overhead of a packet is the time from its submission
//! to its release, minus its [emulated delay](thalweg_wire::emulation_protocol::EmulatedDelay): the way to the arbiter and
//! back, and all waiting on both sides. It varies between endpoints and from packet to packet. With a configured overhead,
//! each packet waits after its answer until it has that overhead. A packet whose answer is later is released at once, and counted.
//!
//! We differ from the source: the sum there includes the unloaded delay of the real network from sender to receiver, which an
//! endpoint cannot measure.
//!
//! **Guarantee.** Packets of a flow are released in the order of their answers. So a packet waits for an earlier one of its flow.
//!
//! **Cost.** All memory is allocated at the start: about 100 bytes for each packet that can wait. A packet that waits takes two hash
//! lookups and O(log n) of a heap.

use std::cmp::Ordering;
use std::collections::hash_map::Entry;
use std::collections::{BinaryHeap, HashMap};

use thalweg_wire::emulation_protocol::Flow;
use thalweg_wire::{Nanos, Timestamp};

use super::flows::Fixed;

/// What is counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReleaseCounters {
    /// Packets whose answer came when the overhead was exceeded.
    pub above_overhead: u64,
    /// Packets released before they had the overhead, because too many waited.
    pub released_early: u64,
}

/// A packet to be sent now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Released<P> {
    /// The packet.
    pub packet: P,
    /// Its overhead.
    pub overhead: Nanos,
}

/// Packets with an answer that are not released yet.
#[derive(Debug)]
pub struct ReleaseQueue<P> {
    overhead: Option<Nanos>,
    /// The earliest release is the greatest.
    waiting: BinaryHeap<Waiting<P>>,
    /// Flows with packets that wait.
    flows: HashMap<Flow, FlowTail, Fixed>,
    max_packets: usize,
    /// The number of the next packet.
    next: u64,
    counters: ReleaseCounters,
}

#[derive(Debug)]
struct Waiting<P> {
    /// When it is released.
    at: Timestamp,
    /// In the order of answers.
    number: u64,
    flow: Flow,
    /// When it would have been released without any overhead.
    ideal: Timestamp,
    packet: P,
}

/// The packets of a flow that wait.
#[derive(Debug)]
struct FlowTail {
    packets: u32,
    /// When the last one is released.
    last: Timestamp,
}

impl<P> ReleaseQueue<P> {
    /// A queue for at most `max_packets`, 1 or more, each of which gets this overhead. Without an overhead, no packet waits.
    pub fn new(overhead: Option<Nanos>, max_packets: u32) -> ReleaseQueue<P> {
        let max_packets = if overhead.is_some() { max_packets.max(1) as usize } else { 0 };
        ReleaseQueue {
            overhead,
            waiting: BinaryHeap::with_capacity(max_packets),
            // A map that is at most half full never grows when entries come and go.
            flows: HashMap::with_capacity_and_hasher(2 * max_packets, Fixed::default()),
            max_packets,
            next: 0,
            counters: ReleaseCounters::default(),
        }
    }

    /// Takes a packet that is answered now. `ideal` is its submission plus its emulated delay. Returns the packet that is to be sent now, if any:
    /// this one, or the one that has the least time left if too many wait.
    pub fn push(&mut self, now: Timestamp, ideal: Timestamp, flow: Flow, packet: P) -> Option<Released<P>> {
        let Some(overhead) = self.overhead else {
            return Some(Released { packet, overhead: now - ideal });
        };
        let due = ideal + overhead;
        self.counters.above_overhead += u64::from(due < now);
        if due <= now && !self.flows.contains_key(&flow) {
            return Some(Released { packet, overhead: now - ideal });
        }
        let early = match self.waiting.len() < self.max_packets {
            true => None,
            false => {
                self.counters.released_early += 1;
                self.pop_first(now)
            }
        };
        let tail = self.flows.entry(flow).or_insert(FlowTail { packets: 0, last: due });
        tail.packets += 1;
        tail.last = tail.last.max(due);
        self.waiting.push(Waiting { at: tail.last, number: self.next, flow, ideal, packet });
        self.next += 1;
        early
    }

    /// Takes the next packet whose time has come.
    pub fn pop(&mut self, now: Timestamp) -> Option<Released<P>> {
        self.next_release().filter(|at| *at <= now)?;
        self.pop_first(now)
    }

    fn pop_first(&mut self, now: Timestamp) -> Option<Released<P>> {
        let Waiting { flow, ideal, packet, .. } = self.waiting.pop()?;
        if let Entry::Occupied(mut tail) = self.flows.entry(flow) {
            tail.get_mut().packets -= 1;
            if tail.get().packets == 0 {
                tail.remove();
            }
        }
        Some(Released { packet, overhead: now - ideal })
    }

    /// When the next packet is released.
    pub fn next_release(&self) -> Option<Timestamp> {
        self.waiting.peek().map(|waiting| waiting.at)
    }

    /// The number of packets that wait.
    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Whether no packet waits.
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// What has been counted.
    pub fn counters(&self) -> ReleaseCounters {
        self.counters
    }
}

impl<P> Waiting<P> {
    fn key(&self) -> (Timestamp, u64) {
        (self.at, self.number)
    }
}

impl<P> PartialEq for Waiting<P> {
    fn eq(&self, other: &Waiting<P>) -> bool {
        self.key() == other.key()
    }
}

impl<P> Eq for Waiting<P> {}

impl<P> PartialOrd for Waiting<P> {
    fn partial_cmp(&self, other: &Waiting<P>) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<P> Ord for Waiting<P> {
    /// Reversed: the heap has the greatest first.
    fn cmp(&self, other: &Waiting<P>) -> Ordering {
        other.key().cmp(&self.key())
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    fn at(micros: u64) -> Timestamp {
        Timestamp(micros * 1_000)
    }

    fn flow(number: u32) -> Flow {
        Flow { source: 0, destination: 1, number }
    }

    /// What is released until `now`, and its overhead in us.
    fn released(queue: &mut ReleaseQueue<u32>, now: u64) -> Vec<(u32, u64)> {
        std::iter::from_fn(|| queue.pop(at(now))).map(|one| (one.packet, one.overhead.0 / 1_000)).collect()
    }

    #[test]
    fn packets_wait_until_they_have_the_overhead_and_late_ones_do_not() {
        let mut queue = ReleaseQueue::new(Some(Nanos::from_micros(100)), 10);
        // Answered after 30 us, 100 us and 130 us of overhead.
        assert_eq!(queue.push(at(130), at(100), flow(1), 1), None);
        let in_time = queue.push(at(130), at(30), flow(2), 2);
        assert_eq!(in_time, Some(Released { packet: 2, overhead: Nanos::from_micros(100) }));
        let late = queue.push(at(130), at(0), flow(3), 3);
        assert_eq!(late, Some(Released { packet: 3, overhead: Nanos::from_micros(130) }));
        assert_eq!((queue.next_release(), queue.counters().above_overhead), (Some(at(200)), 1));
        assert_eq!(released(&mut queue, 199), []);
        assert_eq!(released(&mut queue, 200), [(1, 100)]);
        assert!(queue.is_empty() && queue.next_release().is_none());
    }

    #[test]
    fn a_packet_never_overtakes_one_of_its_flow_but_those_of_others() {
        let mut queue = ReleaseQueue::new(Some(Nanos::from_micros(100)), 10);
        assert_eq!(queue.push(at(50), at(50), flow(1), 1), None);
        // Late, and due before the first one.
        assert_eq!(queue.push(at(130), at(10), flow(1), 2), None);
        assert_eq!(queue.push(at(130), at(40), flow(1), 3), None);
        assert_eq!(queue.push(at(130), at(40), flow(2), 4), None);
        assert_eq!(released(&mut queue, 1_000), [(4, 960), (1, 950), (2, 990), (3, 960)]);
    }

    #[test]
    fn without_room_the_packet_with_the_least_time_left_is_released() {
        let mut queue = ReleaseQueue::new(Some(Nanos::from_micros(100)), 2);
        assert_eq!(queue.push(at(1), at(1), flow(1), 1), None);
        assert_eq!(queue.push(at(1), at(0), flow(2), 2), None);
        let early = queue.push(at(2), at(2), flow(3), 3);
        assert_eq!(early, Some(Released { packet: 2, overhead: Nanos::from_micros(2) }));
        assert_eq!((queue.len(), queue.counters().released_early), (2, 1));
    }

    #[test]
    fn without_an_overhead_no_packet_waits() {
        let mut queue = ReleaseQueue::new(None, 10);
        let now = queue.push(at(7), at(3), flow(1), 1);
        assert_eq!(now, Some(Released { packet: 1, overhead: Nanos::from_micros(4) }));
    }

    proptest! {
        /// An arrival: time since the one before, ideal release before now, flow.
        #[test]
        fn every_packet_leaves_once_in_the_order_of_its_flow(
            arrivals in vec((0_u64..40, 0_u64..200, 0_u32..4), 1..100),
            max_packets in 1_u32..40,
        ) {
            let mut queue = ReleaseQueue::new(Some(Nanos(100)), max_packets);
            let capacity = (queue.waiting.capacity(), queue.flows.capacity());
            let (mut now, mut left, mut early) = (Timestamp(1_000), Vec::new(), 0);
            for (number, (step, before, of_flow)) in (0_u32..).zip(&arrivals) {
                now = now + Nanos(*step);
                left.extend(std::iter::from_fn(|| queue.pop(now)));
                let before_push = queue.counters().released_early;
                let ideal = now.saturating_sub(Nanos(*before));
                if let Some(released) = queue.push(now, ideal, flow(*of_flow), (number, *of_flow)) {
                    left.push(released);
                }
                early += queue.counters().released_early - before_push;
                prop_assert!(queue.len() <= max_packets as usize);
            }
            left.extend(std::iter::from_fn(|| queue.pop(now + Nanos(1_000))));
            prop_assert_eq!(left.len(), arrivals.len());
            for of_flow in 0..4 {
                let numbers = left.iter().filter(|one| one.packet.1 == of_flow).map(|one| one.packet.0);
                prop_assert!(numbers.is_sorted());
            }
            let below = left.iter().filter(|one| one.overhead < Nanos(100)).count() as u64;
            prop_assert!(below <= early, "{below} released early, {early} counted");
            prop_assert!(queue.flows.is_empty());
            prop_assert_eq!((queue.waiting.capacity(), queue.flows.capacity()), capacity);
        }
    }
}
