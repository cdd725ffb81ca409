//! Events from the threads that measure to whoever wants to know.
//!
//! One ring of the last events, with consecutive numbers from 1. A subscriber is a position in it and nothing else: what
//! it has not read yet costs no memory of its own, and how many there are is nothing to a publisher. Who falls so far
//! behind that its next event was overwritten is told how many it lost, and goes on with the oldest that is left.
//!
//! **Publishing never waits**: an atomic addition, a swap of one pointer, and, if the API thread sleeps, one byte
//! written to a socket that does not block. Readers take a counted reference to an event and work on that; nothing is
//! locked meanwhile. Places are [`ArcSwapOption`]s, whose writers do not wait for readers.
//!
//! Memory: `capacity` events. One names at most as many flows as its rule allows, and its text is kept with it once it
//! has been written, so that a thousand subscribers cost one encoding.

use std::fmt;
use std::io::Write;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use arc_swap::ArcSwapOption;
use hyper::body::Bytes;

use super::event::Event;

/// The ring of the last events.
#[derive(Debug)]
pub struct Hub {
    slots: Box<[ArcSwapOption<Published>]>,
    /// Events that have a number.
    numbered: AtomicU64,
    /// Events that have been put in their slot, or found a newer one there.
    stored: AtomicU64,
    /// Events that subscribers were told they had lost, each counted once a subscriber.
    lost: AtomicU64,
    /// Whether whoever listens at the wakeup_socket is about to sleep.
    is_waiting: AtomicBool,
    wakeup_socket: OnceLock<UnixStream>,
}

/// An event that has its number.
#[derive(Debug)]
pub struct Published {
    /// Its number: 1 for the first, no gaps.
    pub id: u64,
    /// What happened.
    pub event: Event,
    text: OnceLock<Bytes>,
}

/// A position in the ring.
#[derive(Debug)]
pub struct Subscriber {
    /// Number of the next event to read.
    next: u64,
    lost: u64,
}

/// What a subscriber reads.
#[derive(Clone, Debug)]
pub enum Delivery {
    /// The next event.
    Event(Arc<Published>),
    /// Events that were overwritten before they were read.
    Lost {
        /// How many they were.
        count: u64,
        /// Number of the last of them.
        last: u64,
    },
}

/// Why nothing can be read from the wakeup_socket.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WakeupError {
    /// The wakeup_socket has a listener already.
    #[error("the hub's wakeup_socket has a listener already")]
    Taken,
    /// No socket could be had.
    #[error("cannot make the socket that wakes the API: {0}")]
    Socket(#[from] std::io::Error),
}

impl Hub {
    /// Events kept unless configured otherwise.
    pub const DEFAULT_CAPACITY: usize = 4_096;

    /// A ring of the last `capacity` events; of one if that is zero.
    pub fn new(capacity: usize) -> Hub {
        Hub {
            slots: (0..capacity.max(1)).map(|_| ArcSwapOption::empty()).collect(),
            numbered: AtomicU64::new(0),
            stored: AtomicU64::new(0),
            lost: AtomicU64::new(0),
            is_waiting: AtomicBool::new(false),
            wakeup_socket: OnceLock::new(),
        }
    }

    /// Gives the event the next number, and tells whoever listens. Never waits. Returns the number.
    pub fn publish(&self, event: Event) -> u64 {
        let id = self.numbered.fetch_add(1, Ordering::SeqCst) + 1;
        self.store(Arc::new(Published { id, event, text: OnceLock::new() }));
        self.stored.fetch_add(1, Ordering::SeqCst);
        // After the store, as the listener looks after it has said that it will sleep: one of both sees the other.
        if self.is_waiting.swap(false, Ordering::SeqCst) {
            self.ring();
        }
        id
    }

    /// Puts an event in its slot, unless another thread has lapped this one and put a newer there.
    fn store(&self, published: Arc<Published>) {
        let slot = self.slot(published.id);
        let mut current = slot.load();
        while current.as_ref().is_none_or(|kept| kept.id < published.id) {
            let previous = slot.compare_and_swap(&*current, Some(Arc::clone(&published)));
            let was_stored = match (&*previous, &*current) {
                (Some(found), Some(expected)) => Arc::ptr_eq(found, expected),
                (found, expected) => found.is_none() && expected.is_none(),
            };
            if was_stored {
                return;
            }
            current = previous;
        }
    }

    /// A full socket has bytes enough to wake whoever reads it, so that failing to write one more is no loss.
    fn ring(&self) {
        if let Some(mut wakeup_socket) = self.wakeup_socket.get() {
            let _ = wakeup_socket.write(&[1]);
        }
    }

    fn slot(&self, id: u64) -> &ArcSwapOption<Published> {
        &self.slots[(id % self.slots.len() as u64) as usize]
    }

    /// Number of the last event; zero before the first.
    pub fn last_id(&self) -> u64 {
        self.numbered.load(Ordering::SeqCst)
    }

    /// Number of the oldest event that is still kept; 1 before the first.
    pub fn oldest_id(&self) -> u64 {
        self.last_id().saturating_sub(self.slots.len() as u64) + 1
    }

    /// Events that are kept at most.
    pub fn capacity(&self) -> usize {
        self.slots.len()
    }

    /// Events that subscribers were told they had lost, each counted once for each subscriber.
    pub fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }

    /// A subscriber to what follows number `after`; to what comes from now on if there is none. A number that has not
    /// been given yet counts as the last.
    pub fn subscribe(&self, after: Option<u64>) -> Subscriber {
        let last = self.last_id();
        Subscriber { next: after.unwrap_or(last).min(last) + 1, lost: 0 }
    }

    /// The socket at which a byte arrives after each event that came while [`Hub::will_sleep`] held; it does not block.
    ///
    /// # Errors
    /// If it was taken before, or there is no socket to be had.
    pub fn listen(&self) -> Result<UnixStream, WakeupError> {
        let (ours, theirs) = UnixStream::pair()?;
        ours.set_nonblocking(true)?;
        theirs.set_nonblocking(true)?;
        self.wakeup_socket.set(ours).map_err(|_| WakeupError::Taken)?;
        Ok(theirs)
    }

    /// Announces that the listener is going to sleep; false if more than `seen` events are there, so that it should not.
    /// Pass what [`Hub::stored`] said before it last looked.
    pub fn will_sleep(&self, seen: u64) -> bool {
        self.is_waiting.store(true, Ordering::SeqCst);
        self.stored() == seen
    }

    /// Events that can be read, or could be.
    pub fn stored(&self) -> u64 {
        self.stored.load(Ordering::SeqCst)
    }
}

impl Default for Hub {
    fn default() -> Self {
        Hub::new(Hub::DEFAULT_CAPACITY)
    }
}

impl Published {
    /// Its text, which is written once, by whoever asks first.
    pub fn text(&self, write: impl FnOnce(&Published) -> Bytes) -> Bytes {
        self.text.get_or_init(|| write(self)).clone()
    }
}

impl Subscriber {
    /// What comes next in the hub it has subscribed to, if it is there. Never waits.
    pub fn next_delivery(&mut self, hub: &Hub) -> Option<Delivery> {
        let kept = hub.slot(self.next).load_full()?;
        match kept.id.cmp(&self.next) {
            std::cmp::Ordering::Less => None,
            std::cmp::Ordering::Equal => {
                self.next += 1;
                Some(Delivery::Event(kept))
            }
            std::cmp::Ordering::Greater => Some(self.skip(hub)),
        }
    }

    /// To the oldest event that is left; its next one was overwritten, so that there is something to skip.
    fn skip(&mut self, hub: &Hub) -> Delivery {
        let oldest = hub.oldest_id().max(self.next + 1);
        let count = oldest - self.next;
        self.lost += count;
        hub.lost.fetch_add(count, Ordering::Relaxed);
        self.next = oldest;
        Delivery::Lost { count, last: oldest - 1 }
    }

    /// Number of the last event that it has read, lost, or came too late for.
    pub fn position(&self) -> u64 {
        self.next - 1
    }

    /// Events it has lost since it subscribed.
    pub fn lost(&self) -> u64 {
        self.lost
    }
}

impl fmt::Display for Delivery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Delivery::Event(published) => write!(f, "event {}", published.id),
            Delivery::Lost { count, last } => write!(f, "{count} lost up to {last}"),
        }
    }
}

#[cfg(test)]
mod tests;
