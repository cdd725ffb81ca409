//! Events in a network: planned before a run, or arriving while it goes on.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use thalweg_network::routing::ForwardingTable;
use thalweg_network::{LinkId, RouterId};
use thiserror::Error;

/// An event in the network at the start of a slot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A link goes down.
    Fail(LinkId),
    /// A link comes up again.
    Repair(LinkId),
    /// Routers install shortest paths over the links that are up.
    Rewire,
    /// A router gets a forwarding table, or loses it.
    SetForwarding(RouterId, Option<ForwardingTable>),
}

/// Events that arrive while a network runs in real time. Each shard takes them at the start of its next slot, in order.
/// A shard that has nothing to take looks at one number and takes no lock.
#[derive(Debug)]
pub struct EventQueue {
    shards: Box<[ShardEvents]>,
}

#[derive(Debug, Default)]
struct ShardEvents {
    /// Events that wait.
    count: AtomicU64,
    events: Mutex<VecDeque<Event>>,
}

/// Too many events wait. The network does not run, or events arrive faster than slots.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error("{MAX_EVENTS} events wait for the network: it does not run, or events arrive faster than slots")]
pub struct TooManyEvents;

/// The largest number of events that wait for a shard.
pub const MAX_EVENTS: usize = 1_024;

impl EventQueue {
    /// An empty queue for a network of this many shards.
    pub fn new(shards: usize) -> EventQueue {
        EventQueue { shards: (0..shards).map(|_| ShardEvents::default()).collect() }
    }

    /// Appends an event for all shards, or for none.
    ///
    /// # Errors
    /// If [`MAX_EVENTS`] wait for a shard.
    pub fn push(&self, event: &Event) -> Result<(), TooManyEvents> {
        let lock = |shard: &'_ ShardEvents| shard.count.load(Ordering::Acquire) as usize >= MAX_EVENTS;
        if self.shards.iter().any(lock) {
            return Err(TooManyEvents);
        }
        for shard in &self.shards {
            let mut events = shard.events.lock().unwrap_or_else(PoisonError::into_inner);
            events.push_back(event.clone());
            shard.count.store(events.len() as u64, Ordering::Release);
        }
        Ok(())
    }

    /// Takes the next event of a shard.
    ///
    /// # Panics
    /// If there is no such shard.
    #[inline]
    pub fn take(&self, shard: usize) -> Option<Event> {
        let shard = &self.shards[shard];
        if shard.count.load(Ordering::Acquire) == 0 {
            return None;
        }
        let mut events = shard.events.lock().unwrap_or_else(PoisonError::into_inner);
        let event = events.pop_front();
        shard.count.store(events.len() as u64, Ordering::Release);
        event
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_shard_takes_all_events_in_order_and_too_many_are_refused() {
        let queue = EventQueue::new(2);
        queue.push(&Event::Fail(LinkId(3))).unwrap();
        queue.push(&Event::Rewire).unwrap();
        for shard in 0..2 {
            assert_eq!(queue.take(shard), Some(Event::Fail(LinkId(3))));
            assert_eq!(queue.take(shard), Some(Event::Rewire));
            assert_eq!(queue.take(shard), None);
        }
        (0..MAX_EVENTS).for_each(|_| queue.push(&Event::Rewire).unwrap());
        assert_eq!(queue.take(0), Some(Event::Rewire));
        assert_eq!(queue.push(&Event::Rewire), Err(TooManyEvents), "the other shard is full");
        let left = std::iter::from_fn(|| queue.take(0)).count();
        assert_eq!(left, MAX_EVENTS - 1, "no shard has taken the refused event");
    }
}
