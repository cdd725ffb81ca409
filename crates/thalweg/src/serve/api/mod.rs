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
//! **Bounded**: connections, subscribers, requests a second by peer, the size of a body, and the time of everything.
//! What is over a bound is refused with a status that says so, and counted.
//!
//! | file | what it has |
//! |---|---|
//! | `route` | all that can be asked |
//! | `request`, `reply`, `problem` | a question, an answer, why there is none (RFC 9457) |
//! | `handlers` | from a question to an answer |
//! | `json` | what answers look like |
//! | `events` | events as server-sent events |
//! | `server`, `service` | connections; checks |
//! | `open_api`, `reference` | the same table as documents |

mod counts;
pub mod events;
mod handlers;
pub mod json;
pub mod open_api;
pub mod problem;
pub mod reference;
pub mod reply;
pub mod request;
pub mod route;
mod server;
mod service;

use std::sync::Arc;
use std::sync::atomic::Ordering;

pub use counts::ApiCounts;
pub use server::{ApiError, Server};

use counts::Counters;

use super::access::{Access, Limits};
use super::daemon::Daemon;
use super::log::Log;

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
}

/// One of the places there are for subscribers; given back when it is dropped.
#[derive(Debug)]
pub struct SubscriberPass(Api);

impl Api {
    /// An API of a daemon, not yet listening.
    pub fn new(daemon: Daemon, access: Arc<Access>, limits: Limits, log: Option<Log>) -> Api {
        Api(Arc::new(Shared { daemon, access, limits, log, counters: Counters::default() }))
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
