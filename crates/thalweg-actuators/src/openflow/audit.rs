//! When to compare the entries of a connected switch with those that were sent.
//!
//! Others may delete, change or add entries. A switch reports deletions only, so its table is also read periodically.
//! An entry sent while a read is in progress may be missing from the answer, so it is not compared.

use std::collections::BTreeSet;

use thalweg_wire::openflow::multipart::FlowStats;
use thalweg_wire::{Nanos, Timestamp};

use super::PendingFlows;

/// The reads of one connection.
#[derive(Debug)]
pub(super) struct Audit<K> {
    due: Due,
    reading: Option<PendingFlows>,
    /// Entries sent since the request.
    touched: BTreeSet<K>,
}

impl<K> Default for Audit<K> {
    fn default() -> Audit<K> {
        Audit { due: Due::default(), reading: None, touched: BTreeSet::new() }
    }
}

/// When to read the table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Due {
    /// One interval after the first step: the handshake has just read the table.
    #[default]
    Unset,
    /// As soon as possible: an entry was removed.
    Now,
    /// At this time.
    At(Timestamp),
}

/// The next step of an audit.
#[derive(Debug)]
pub(super) enum AuditStep<K> {
    /// Nothing to do.
    Wait,
    /// Request the table, and pass it to [`Audit::begin`].
    Read,
    /// The table, and the entries not to compare. `None` if the switch did not answer.
    Answer(Option<Vec<FlowStats>>, BTreeSet<K>),
}

impl<K: Ord> Audit<K> {
    /// Requests a read as soon as possible.
    pub(super) fn request(&mut self) {
        self.due = Due::Now;
    }

    /// Records that an entry was sent.
    pub(super) fn touch(&mut self, key: K) {
        if self.reading.is_some() {
            self.touched.insert(key);
        }
    }

    /// Abandons a read in progress.
    pub(super) fn abandon(&mut self) {
        self.reading = None;
        self.touched.clear();
    }

    /// Records that the table was requested.
    pub(super) fn begin(&mut self, reading: PendingFlows, now: Timestamp, interval: Nanos) {
        (self.reading, self.due) = (Some(reading), Due::At(now + interval));
    }

    /// Returns the next step. Call it periodically.
    pub(super) fn step(&mut self, now: Timestamp, interval: Nanos) -> AuditStep<K> {
        match (&self.reading, self.due) {
            (Some(reading), _) => match reading.take() {
                None => AuditStep::Wait,
                Some(answer) => {
                    self.reading = None;
                    if self.due != Due::Now {
                        self.due = Due::At(now + interval);
                    }
                    AuditStep::Answer(answer.ok(), std::mem::take(&mut self.touched))
                }
            },
            (None, Due::Now) => AuditStep::Read,
            (None, Due::At(at)) if at <= now => AuditStep::Read,
            (None, Due::At(_)) => AuditStep::Wait,
            (None, Due::Unset) => {
                self.due = Due::At(now + interval);
                AuditStep::Wait
            }
        }
    }
}
