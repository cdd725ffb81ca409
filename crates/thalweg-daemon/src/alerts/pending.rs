//! Events of an alert that wait to be sent.

use thalweg_api::Event;
use thalweg_wire::{Nanos, Timestamp};

use super::MAX_EVENTS;

/// The time until a failed request is repeated, at first and at most.
const FIRST_RETRY: Nanos = Nanos::from_secs(1);
const LAST_RETRY: Nanos = Nanos::from_secs(300);

/// Events that wait.
#[derive(Debug)]
pub(super) struct Pending {
    events: Vec<Event>,
    /// Events for which there was no room, or that the hub had overwritten.
    omitted: u64,
    min_interval: Nanos,
    /// Nothing is sent before.
    not_before: Timestamp,
    retry: Nanos,
}

impl Pending {
    /// Nothing, with the least time between two requests.
    pub(super) fn new(min_interval: Nanos) -> Pending {
        Pending { events: Vec::new(), omitted: 0, min_interval, not_before: Timestamp(0), retry: FIRST_RETRY }
    }

    /// Adds an event.
    pub(super) fn add(&mut self, event: Event) {
        match self.events.len() < MAX_EVENTS {
            true => self.events.push(event),
            false => self.omitted += 1,
        }
    }

    /// Adds the number of events that were overwritten before they were read.
    pub(super) fn add_missing(&mut self, events: u64) {
        self.omitted += events;
    }

    /// The events, the oldest first.
    pub(super) fn events(&self) -> &[Event] {
        &self.events
    }

    /// The number of events that are missing among them.
    pub(super) fn omitted(&self) -> u64 {
        self.omitted
    }

    /// Whether nothing waits. Events that are missing alone wait for the next one.
    pub(super) fn is_empty(&self) -> bool {
        self.events.is_empty()
    }

    /// Whether a request should be sent.
    pub(super) fn is_due(&self, now: Timestamp) -> bool {
        !self.is_empty() && now >= self.not_before
    }

    /// All has been sent.
    pub(super) fn sent(&mut self, now: Timestamp) {
        *self = Pending { not_before: now + self.min_interval, ..Pending::new(self.min_interval) };
    }

    /// The request has failed.
    pub(super) fn failed(&mut self, now: Timestamp) {
        self.not_before = now + self.retry;
        self.retry = Nanos(self.retry.0.saturating_mul(2)).min(LAST_RETRY);
    }
}
