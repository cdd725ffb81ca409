//! Counters of a server.

use std::sync::atomic::{AtomicU64, Ordering};

use thalweg_api::problem::Code;

/// The counters of a running server.
#[derive(Debug, Default)]
pub struct Counters {
    pub(super) answered: AtomicU64,
    pub(super) problems: [AtomicU64; Code::ALL.len()],
    pub(super) connections: AtomicU64,
    pub(super) connections_refused: AtomicU64,
    pub(super) connections_evicted: AtomicU64,
    pub(super) handshakes_failed: AtomicU64,
    pub(super) connections_broken: AtomicU64,
}

/// A snapshot of the counters of a server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Successful requests.
    pub answered: u64,
    /// Failed requests by problem, in the order of [`Code::ALL`].
    pub problems: [u64; Code::ALL.len()],
    /// Open connections.
    pub connections: u64,
    /// New connections closed because the limit in total or per peer was reached, and all others were being answered.
    pub connections_refused: u64,
    /// Connections closed while they waited for their clients, because a new one needed their place.
    pub connections_evicted: u64,
    /// TLS handshakes that failed or timed out.
    pub handshakes_failed: u64,
    /// Connections that ended in an error: header timeout, write timeout, or invalid HTTP.
    pub connections_broken: u64,
}

impl Counters {
    pub(super) fn count(&self, problem: Option<Code>) {
        match problem {
            Some(code) => self.problems[code as usize].fetch_add(1, Ordering::Relaxed),
            None => self.answered.fetch_add(1, Ordering::Relaxed),
        };
    }

    /// Returns a snapshot.
    pub fn read(&self) -> Counts {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Counts {
            answered: read(&self.answered),
            problems: std::array::from_fn(|code| read(&self.problems[code])),
            connections: read(&self.connections),
            connections_refused: read(&self.connections_refused),
            connections_evicted: read(&self.connections_evicted),
            handshakes_failed: read(&self.handshakes_failed),
            connections_broken: read(&self.connections_broken),
        }
    }
}
