//! The HTTP API of the daemon.
//!
//! ```text
//!   request ──► route ──► handler ──► collectors' mailboxes
//!               (http)        │
//!                             └► hub ──► event streams
//! ```
//!
//! It has one thread, so that collectors are not disturbed, and a few more that wait for collectors. One list ([`routes::routes`])
//! defines all requests; the OpenAPI document and the reference are generated from it. The server is [`thalweg_http`], the JSON
//! types are in `thalweg-api`.
//!
//! | file | contents |
//! |---|---|
//! | `routes` | all requests |
//! | `handlers` | handlers of requests |
//! | `convert` | conversion of the daemon's values to the JSON types of `thalweg-api` |
//! | `events` | events as server-sent events |
//! | `live` | the live stream of a dashboard |
//! | `server` | the listening API |
//! | `open_api`, `reference` | generated documents |

pub mod convert;
pub mod events;
mod handlers;
mod live;
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

/// Maximum number of capture files in memory.
const MAX_CAPTURES: usize = 1;

/// The state of the API. Clones share it.
#[derive(Clone, Debug)]
pub struct Api(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    parts: Parts,
    max_subscribers: u64,
    subscribers: AtomicU64,
    log: Option<Log>,
    counters: Arc<Counters>,
    /// The number of events in the hub; changes wake subscribers.
    event_count: watch::Sender<u64>,
    /// Limits capture files in memory. Each temporarily needs twice the size of a sample ring, until it is sent.
    captures: Arc<Semaphore>,
}

/// The permit of a subscriber. Dropping it releases the permit.
#[derive(Debug)]
pub struct SubscriberPass(Api);

impl Api {
    /// Creates an API of these parts of a daemon, without listening.
    pub fn new(parts: Parts, limits: &Limits, log: Option<Log>) -> Api {
        Api(Arc::new(Shared {
            parts,
            max_subscribers: limits.subscribers,
            subscribers: AtomicU64::new(0),
            log,
            counters: Arc::default(),
            event_count: watch::Sender::new(0),
            captures: Arc::new(Semaphore::new(MAX_CAPTURES)),
        }))
    }

    /// Returns the parts of the daemon.
    pub fn parts(&self) -> &Parts {
        &self.0.parts
    }

    /// Returns the identifier of this run of the daemon: its start time.
    pub fn run(&self) -> u64 {
        self.0.parts.started.0
    }

    /// Returns the counters of the API.
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

    fn event_count(&self) -> &watch::Sender<u64> {
        &self.0.event_count
    }

    /// Returns a permit for a capture file, if one is free.
    fn capture_pass(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.0.captures).try_acquire_owned().ok()
    }

    /// Returns a permit for a subscriber, if one is free.
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
