//! The event hub: from publishers (collectors, the controller) to subscribers of the API.
//!
//! A ring keeps the last events, numbered from 1. A subscriber is only a position in the ring, so unread events need no memory per
//! subscriber, and the number of subscribers does not affect publishers. If the next event of a slow subscriber was overwritten, it
//! receives the number of lost events and continues with the oldest one kept.
//!
//! **Publishing never blocks**: atomic operations, and, if the thread of HTTP connections sleeps, a write of one byte to a
//! non-blocking socket. Readers take a counted reference to an event and hold no lock. Slots are [`ArcSwapOption`]s, whose writers do
//! not wait for readers.
//!
//! Memory: `capacity` events, each with at most as many flows as its congestion rule allows. The text of an event is encoded once, for all
//! subscribers.

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
    /// Number of the last event.
    last_id: AtomicU64,
    /// Number of events whose store has finished.
    store_count: AtomicU64,
    /// Events that subscribers lost: one that two of them lost counts twice.
    lost: AtomicU64,
    /// Whether the receiver of wakeups is about to sleep.
    is_sleeping: AtomicBool,
    wakeup_socket: OnceLock<UnixStream>,
}

/// A published event.
#[derive(Debug)]
pub struct Published {
    /// Number of the event: 1 for the first, no gaps.
    pub id: u64,
    /// The event.
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

/// An item that a subscriber reads.
#[derive(Clone, Debug)]
pub enum Delivery {
    /// The next event.
    Event(Arc<Published>),
    /// Events that were overwritten before they were read.
    Lost {
        /// Number of lost events.
        count: u64,
        /// Number of the last lost event.
        last: u64,
    },
}

/// Why a receiver of wakeups could not be created.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WakeupError {
    /// There is already one.
    #[error("the event hub already has a receiver of wakeups")]
    AlreadyTaken,
    /// The socket could not be created.
    #[error("cannot create the socket that wakes the API: {0}")]
    Socket(#[from] std::io::Error),
}

impl Hub {
    /// Default number of events to keep.
    pub const DEFAULT_CAPACITY: usize = 4_096;

    /// Creates a ring of `capacity` events, at least one.
    pub fn new(capacity: usize) -> Hub {
        Hub {
            slots: (0..capacity.max(1)).map(|_| ArcSwapOption::empty()).collect(),
            last_id: AtomicU64::new(0),
            store_count: AtomicU64::new(0),
            lost: AtomicU64::new(0),
            is_sleeping: AtomicBool::new(false),
            wakeup_socket: OnceLock::new(),
        }
    }

    /// Publishes an event, and wakes the receiver. Never blocks. Returns the number of the event.
    pub fn publish(&self, event: Event) -> u64 {
        let id = self.last_id.fetch_add(1, Ordering::SeqCst) + 1;
        self.store(Arc::new(Published { id, event, text: OnceLock::new() }));
        self.store_count.fetch_add(1, Ordering::SeqCst);
        // The flag is read after the store, and the receiver checks for events after setting the flag: one of them sees the other.
        if self.is_sleeping.swap(false, Ordering::SeqCst) {
            self.wake();
        }
        id
    }

    /// Stores an event in its slot, unless another thread has stored a newer one there.
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

    /// Wakes the receiver. Errors are ignored: a full socket wakes it too.
    fn wake(&self) {
        if let Some(mut wakeup_socket) = self.wakeup_socket.get() {
            let _ = wakeup_socket.write(&[1]);
        }
    }

    fn slot(&self, id: u64) -> &ArcSwapOption<Published> {
        &self.slots[(id % self.slots.len() as u64) as usize]
    }

    /// Returns the number of the last event; zero before the first.
    pub fn last_id(&self) -> u64 {
        self.last_id.load(Ordering::SeqCst)
    }

    /// Returns the number of the oldest event kept; 1 before the first.
    pub fn oldest_id(&self) -> u64 {
        self.last_id().saturating_sub(self.slots.len() as u64) + 1
    }

    /// Returns the maximum number of events kept.
    pub fn capacity(&self) -> usize {
        self.slots.len()
    }

    /// Returns the number of lost events, counted once per subscriber.
    pub fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }

    /// Subscribes to the events after number `after`, or to future events if `None`. A number that does not exist yet counts as the
    /// last.
    pub fn subscribe(&self, after: Option<u64>) -> Subscriber {
        let last = self.last_id();
        Subscriber { next: after.unwrap_or(last).min(last) + 1, lost: 0 }
    }

    /// Returns a non-blocking socket that receives a byte when an event is published after [`Hub::prepare_sleep`].
    ///
    /// # Errors
    /// If there is a receiver already, or no socket can be created.
    pub fn wakeup_receiver(&self) -> Result<UnixStream, WakeupError> {
        let (ours, theirs) = UnixStream::pair()?;
        ours.set_nonblocking(true)?;
        theirs.set_nonblocking(true)?;
        self.wakeup_socket.set(ours).map_err(|_| WakeupError::AlreadyTaken)?;
        Ok(theirs)
    }

    /// Requests a wakeup. Returns false if there are events beyond `seen`, so that the receiver must not sleep. Pass the
    /// [`Hub::store_count`] read before the last check.
    pub fn prepare_sleep(&self, seen: u64) -> bool {
        self.is_sleeping.store(true, Ordering::SeqCst);
        self.store_count() == seen
    }

    /// Returns the number of events stored so far, overwritten ones included.
    pub fn store_count(&self) -> u64 {
        self.store_count.load(Ordering::SeqCst)
    }
}

impl Default for Hub {
    fn default() -> Self {
        Hub::new(Hub::DEFAULT_CAPACITY)
    }
}

impl Published {
    /// Returns the text of the event. The first call creates it with `write`.
    pub fn text(&self, write: impl FnOnce(&Published) -> Bytes) -> Bytes {
        self.text.get_or_init(|| write(self)).clone()
    }
}

impl Subscriber {
    /// Returns the next item of the hub, if there is one. Never blocks.
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

    /// Skips to the oldest event kept, after the next one was overwritten.
    fn skip(&mut self, hub: &Hub) -> Delivery {
        let oldest = hub.oldest_id().max(self.next + 1);
        let count = oldest - self.next;
        self.lost += count;
        hub.lost.fetch_add(count, Ordering::Relaxed);
        self.next = oldest;
        Delivery::Lost { count, last: oldest - 1 }
    }

    /// Returns the number of the last event read, lost, or published before the subscription.
    pub fn position(&self) -> u64 {
        self.next - 1
    }

    /// Returns the number of events lost since the subscription.
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
