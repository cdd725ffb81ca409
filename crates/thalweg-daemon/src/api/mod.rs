//! The HTTP API: what the daemon knows, for whoever asks.
//!
//! ```text
//!   request ──► route ──► handler ──► collectors' mailboxes
//!               (http)        │
//!                             └► hub ──► events, as they come
//! ```
//!
//! It has one thread, so that threads that measure are not disturbed, and a few more that wait for collectors. All that
//! can be asked is in one list ([`routes::routes`]): requests are answered by it, and the OpenAPI document and the
//! reference are written from it. The server below it is [`thalweg_http`], what answers look like is `thalweg-api`.
//!
//! | file | what it has |
//! |---|---|
//! | `routes` | all that can be asked |
//! | `handlers` | from a question to an answer |
//! | `convert` | the daemon's values as the JSON types of `thalweg-api` |
//! | `events` | events as server-sent events |
//! | `server` | the API, listening |
//! | `open_api`, `reference` | the same list as documents |

pub mod convert;
pub mod events;
mod handlers;
pub mod open_api;
pub mod reference;
pub mod routes;
mod server;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

pub use server::{ApiError, Server};

use super::log::Log;
use super::metrics::ApiCounts;
use super::parts::Parts;
use thalweg_http::Counters;
use thalweg_http::access::Limits;

/// Capture files in memory, at most.
const MAX_CAPTURES: usize = 1;

/// What answers need. Cheap to clone: all clones are the same.
#[derive(Clone, Debug)]
pub struct Api(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    parts: Parts,
    max_subscribers: u64,
    subscribers: AtomicU64,
    log: Option<Log>,
    counters: Arc<Counters>,
    /// How many events the hub has, whenever there are more.
    news: watch::Sender<u64>,
    /// Capture files that may be in memory: each is twice a collector's samples while it is made, and stays until it is
    /// sent.
    captures: Arc<Semaphore>,
}

/// One of the places there are for subscribers; given back when it is dropped.
#[derive(Debug)]
pub struct SubscriberPass(Api);

impl Api {
    /// An API of these parts of a daemon, not yet listening.
    pub fn new(parts: Parts, limits: &Limits, log: Option<Log>) -> Api {
        Api(Arc::new(Shared {
            parts,
            max_subscribers: limits.subscribers,
            subscribers: AtomicU64::new(0),
            log,
            counters: Arc::default(),
            news: watch::Sender::new(0),
            captures: Arc::new(Semaphore::new(MAX_CAPTURES)),
        }))
    }

    /// What it answers from.
    pub fn parts(&self) -> &Parts {
        &self.0.parts
    }

    /// What tells this run of the daemon from others: when it was started.
    pub fn run(&self) -> u64 {
        self.0.parts.started.0
    }

    /// What was answered and refused so far.
    pub fn counts(&self) -> ApiCounts {
        ApiCounts {
            http: self.0.counters.read(),
            subscribers: self.0.subscribers.load(Ordering::Relaxed),
            log_suppressed: self.0.log.as_ref().map_or(0, Log::suppressed),
        }
    }

    fn counters(&self) -> &Arc<Counters> {
        &self.0.counters
    }

    fn news(&self) -> &watch::Sender<u64> {
        &self.0.news
    }

    /// Room for a capture file, if there is any.
    fn capture_pass(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.0.captures).try_acquire_owned().ok()
    }

    /// A place for a subscriber, if there is one.
    fn subscriber_pass(&self) -> Option<SubscriberPass> {
        let most = self.0.max_subscribers;
        let more = |now: u64| (now < most).then_some(now + 1);
        self.0
            .subscribers
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, more)
            .ok()
            .map(|_| SubscriberPass(self.clone()))
    }
}

impl Drop for SubscriberPass {
    fn drop(&mut self) {
        self.0.0.subscribers.fetch_sub(1, Ordering::Relaxed);
    }
}
