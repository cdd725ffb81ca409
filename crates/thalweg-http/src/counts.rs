//! What a server has answered and refused.

use std::sync::atomic::{AtomicU64, Ordering};

use thalweg_api::problem::Code;

/// What a server has answered and refused, while it goes on.
#[derive(Debug, Default)]
pub struct Counters {
    pub(super) answered: AtomicU64,
    pub(super) problems: [AtomicU64; Code::ALL.len()],
    pub(super) connections: AtomicU64,
    pub(super) connections_refused: AtomicU64,
    pub(super) handshakes_failed: AtomicU64,
    pub(super) connections_broken: AtomicU64,
}

/// What a server has answered and refused.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Requests that were answered.
    pub answered: u64,
    /// Requests that were not, by why, in the order of [`Code::ALL`].
    pub problems: [u64; Code::ALL.len()],
    /// Connections now.
    pub connections: u64,
    /// Connections closed at once, since there were as many as there may be, or as one peer may have.
    pub connections_refused: u64,
    /// TLS handshakes that failed, or took too long.
    pub handshakes_failed: u64,
    /// Connections that ended in an error: heads that took too long to come, answers that nobody took, bytes that are no
    /// HTTP.
    pub connections_broken: u64,
}

impl Counters {
    pub(super) fn count(&self, problem: Option<Code>) {
        match problem {
            Some(code) => self.problems[code as usize].fetch_add(1, Ordering::Relaxed),
            None => self.answered.fetch_add(1, Ordering::Relaxed),
        };
    }

    /// What it has counted so far.
    pub fn read(&self) -> Counts {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Counts {
            answered: read(&self.answered),
            problems: std::array::from_fn(|code| read(&self.problems[code])),
            connections: read(&self.connections),
            connections_refused: read(&self.connections_refused),
            handshakes_failed: read(&self.handshakes_failed),
            connections_broken: read(&self.connections_broken),
        }
    }
}
