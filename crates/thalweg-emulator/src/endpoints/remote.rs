//! Endpoints outside of the emulation: a communication core exchanges their requests and outcomes with a shard over two
//! rings (Ousterhout et al., "Flexplane", NSDI 2017, section 3.4).
//!
//! A shard takes at most [`MAX_REQUESTS`] requests in a slot, so that a burst cannot make it late. The others stay in the ring.
//! Outcomes that find the ring full wait at the shard: no more than packets are in the network. Each says for how many slots its
//! packet was in the network.

use std::collections::VecDeque;

use rtrb::{Consumer, Producer, RingBuffer};

use super::entry_slots::EntrySlots;
use super::{Attachment, Endpoints};
use crate::outcome::{Outcome, Request};

/// Requests or outcomes per ring.
pub const REMOTE_RING: usize = 1 << 14;

/// The largest number of requests that a shard takes in a slot.
pub const MAX_REQUESTS: usize = 1_024;

/// An outcome, and the slots that its packet was in the network.
pub type TimedOutcome = (Outcome, u64);

/// The side of the shard.
pub struct RemoteEndpoints {
    requests: Consumer<Request>,
    outcomes: Producer<TimedOutcome>,
    waiting: VecDeque<TimedOutcome>,
    entered: EntrySlots,
    batch: Vec<Request>,
}

/// The side of the communication core.
pub struct RemoteShard {
    requests: Producer<Request>,
    outcomes: Consumer<TimedOutcome>,
}

/// Both sides.
pub fn remote() -> (RemoteEndpoints, RemoteShard) {
    let (request_in, request_out) = RingBuffer::new(REMOTE_RING);
    let (outcome_in, outcome_out) = RingBuffer::new(REMOTE_RING);
    let endpoints = RemoteEndpoints {
        requests: request_out,
        outcomes: outcome_in,
        waiting: VecDeque::new(),
        entered: EntrySlots::default(),
        batch: Vec::with_capacity(MAX_REQUESTS),
    };
    (endpoints, RemoteShard { requests: request_in, outcomes: outcome_out })
}

impl Endpoints for RemoteEndpoints {
    fn slot(&mut self, network: &mut dyn Attachment) {
        let (entered, now) = (&mut self.entered, network.now());
        let timed = |outcome: &Outcome| (*outcome, entered.since(outcome.packet.id(), now));
        self.waiting.extend(network.outcomes().iter().map(timed));
        while let Some(&outcome) = self.waiting.front() {
            if self.outcomes.push(outcome).is_err() {
                break;
            }
            self.waiting.pop_front();
        }
        self.batch.clear();
        while self.batch.len() < MAX_REQUESTS
            && let Ok(request) = self.requests.pop()
        {
            self.entered.enter(request.packet.id(), now);
            self.batch.push(request);
        }
        if !self.batch.is_empty() {
            network.inject(&self.batch);
        }
    }
}

impl RemoteShard {
    /// Sends a request to the shard of its source.
    ///
    /// # Errors
    /// The request, if the ring is full: the shard is behind.
    pub fn request(&mut self, request: Request) -> Result<(), Request> {
        self.requests.push(request).map_err(|rtrb::PushError::Full(request)| request)
    }

    /// The next outcome.
    pub fn outcome(&mut self) -> Option<TimedOutcome> {
        self.outcomes.pop().ok()
    }
}
