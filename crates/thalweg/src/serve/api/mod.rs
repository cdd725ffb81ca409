//! The HTTP API: what the daemon knows, for whoever asks.
//!
//! ```text
//!   connection ──► checks ──► route ──► handler ──► collectors' mailboxes
//!                  (access)  (ROUTES)       │
//!                                           └► hub ──► events, as they come
//! ```
//!
//! It has one thread, so that threads that measure are not disturbed, and a few more that wait for collectors. All that
//! can be asked is in one table ([`route::ROUTES`]): requests are answered by it, and the OpenAPI document and the
//! reference are written from it.
//!
//! **Bounded**: connections and requests a second, together and by peer, subscribers, the size of a body, and the time of
//! everything, of sending too.
//! What is over a bound is refused with a status that says so, and counted.
//!
//! | file | what it has |
//! |---|---|
//! | `route` | all that can be asked |
//! | `request`, `reply`, `problem` | a question, an answer, why there is none (RFC 9457) |
//! | `handlers` | from a question to an answer |
//! | `convert` | the daemon's values as the JSON types of `thalweg-api` |
//! | `events` | events as server-sent events |
//! | `server`, `service` | connections; checks |
//! | `places`, `stall` | how many connections; peers that do not read |
//! | `open_api`, `reference` | the same table as documents |

pub mod convert;
mod counts;
pub mod events;
mod handlers;
pub mod open_api;
mod places;
pub mod reference;
pub mod reply;
pub mod request;
pub mod route;
mod server;
mod service;
mod stall;

use std::sync::Arc;
use std::sync::atomic::Ordering;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

pub use counts::ApiCounts;
pub use server::{ApiError, Server};

use counts::Counters;

use super::access::{Access, Limits};
use super::daemon::Daemon;
use super::log::Log;

/// Threads that wait for collectors on behalf of requests, at most.
const WAITING_THREADS: usize = 8;

/// Capture files in memory, at most.
const CAPTURES: usize = 1;

/// What answers need. Cheap to clone: all clones are the same.
#[derive(Clone, Debug)]
pub struct Api(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    daemon: Daemon,
    access: Arc<Access>,
    limits: Limits,
    log: Option<Log>,
    counters: Counters,
    /// Threads that may wait for collectors on behalf of requests.
    waiting: Arc<Semaphore>,
    /// Capture files that may be in memory: each is twice a collector's samples while it is made, and stays until it is
    /// sent.
    captures: Arc<Semaphore>,
}

/// One of the places there are for subscribers; given back when it is dropped.
#[derive(Debug)]
pub struct SubscriberPass(Api);

impl Api {
    /// An API of a daemon, not yet listening.
    pub fn new(daemon: Daemon, access: Arc<Access>, limits: Limits, log: Option<Log>) -> Api {
        Api(Arc::new(Shared {
            daemon,
            access,
            limits,
            log,
            counters: Counters::default(),
            waiting: Arc::new(Semaphore::new(WAITING_THREADS)),
            captures: Arc::new(Semaphore::new(CAPTURES)),
        }))
    }

    /// The daemon.
    pub fn daemon(&self) -> &Daemon {
        &self.0.daemon
    }

    /// How much one may ask.
    pub fn limits(&self) -> &Limits {
        &self.0.limits
    }

    /// What tells this run of the daemon from others: when it was started.
    pub fn run(&self) -> u64 {
        self.0.daemon.started().0
    }

    /// What was answered and refused so far.
    pub fn counts(&self) -> ApiCounts {
        self.0.counters.read(self.0.log.as_ref().map_or(0, Log::suppressed))
    }

    fn counters(&self) -> &Counters {
        &self.0.counters
    }

    fn access(&self) -> &Access {
        &self.0.access
    }

    /// A thread to wait on, when there is one: requests queue here, where who goes away leaves the queue, and not in
    /// that of the runtime, where nobody does.
    async fn waiting_pass(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.0.waiting).acquire_owned().await.ok()
    }

    /// Room for a capture file, if there is any.
    fn capture_pass(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.0.captures).try_acquire_owned().ok()
    }

    /// A place for a subscriber, if there is one.
    fn subscriber_pass(&self) -> Option<SubscriberPass> {
        let most = self.0.limits.subscribers;
        let taken = &self.counters().subscribers;
        let more = |now: u64| (now < most).then_some(now + 1);
        taken
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, more)
            .ok()
            .map(|_| SubscriberPass(self.clone()))
    }
}

impl Drop for SubscriberPass {
    fn drop(&mut self) {
        self.0.counters().subscribers.fetch_sub(1, Ordering::Relaxed);
    }
}
