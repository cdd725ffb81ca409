//! What a side has to send reliably: items that are ready, and items in datagrams that are not acknowledged yet.

use thalweg_wire::emulation_protocol::{Acknowledgement, Sequence};
use thalweg_wire::{Nanos, Timestamp};

use super::LinkOptions;
use super::chains::Chains;
use super::round_trip::RoundTrip;

/// The maximum number of datagrams that are not acknowledged. Twice what an acknowledgement covers, so that a burst
/// larger than that is acknowledged while it arrives.
const MAX_IN_FLIGHT: usize = 64;

/// The chain of items that are ready. Those after it are the items of datagrams in flight.
const READY: u32 = 0;

/// A datagram in flight.
#[derive(Clone, Copy)]
struct InFlight {
    sequence: Sequence,
    sent_at: Timestamp,
    chain: u32,
}

/// Items are slots in the table of the side that owns them. An item is ready, in flight in one datagram, or neither.
pub(super) struct Outbox {
    chains: Chains,
    /// Oldest first.
    in_flight: Vec<InFlight>,
    /// A bit for each chain of a datagram that is not used, from the lowest.
    free_chains: u64,
    round_trip: RoundTrip,
    batch: u32,
    batch_delay: Nanos,
    /// Since when the oldest ready item waits, if there is one.
    ready_since: Timestamp,
    /// Ready items do not wait for a batch: they have been sent before.
    is_urgent: bool,
}

impl Outbox {
    pub(super) fn new(items: u32, options: &LinkOptions) -> Outbox {
        Outbox {
            chains: Chains::new(items, 1 + MAX_IN_FLIGHT as u32),
            in_flight: Vec::with_capacity(MAX_IN_FLIGHT),
            free_chains: u64::MAX,
            round_trip: RoundTrip::new(options),
            batch: options.batch,
            batch_delay: options.batch_delay,
            ready_since: Timestamp(0),
            is_urgent: false,
        }
    }

    /// Makes an item ready.
    pub(super) fn add(&mut self, now: Timestamp, item: u32) {
        if self.chains.is_empty(READY) {
            self.ready_since = now;
        }
        self.chains.push_back(READY, item);
    }

    /// Makes all items ready again, these only, in this order: the peer is another one.
    pub(super) fn restart(&mut self, now: Timestamp, items: impl Iterator<Item = u32>) {
        self.clear();
        items.for_each(|item| self.add(now, item));
        self.is_urgent = !self.chains.is_empty(READY);
    }

    /// Forgets all items and what is known of the peer.
    pub(super) fn clear(&mut self) {
        while self.chains.pop_front(READY).is_some() {}
        for datagram in self.in_flight.drain(..) {
            while self.chains.pop_front(datagram.chain).is_some() {}
        }
        self.free_chains = u64::MAX;
        self.is_urgent = false;
        self.round_trip.reset();
    }

    /// Forgets an item.
    pub(super) fn remove(&mut self, item: u32) {
        self.chains.remove(item);
    }

    /// The items that are ready, in order.
    pub(super) fn ready(&self) -> impl Iterator<Item = u32> + '_ {
        std::iter::successors(self.chains.first(READY), |item| self.chains.after(*item))
    }

    /// The number of items that are ready.
    pub(super) fn ready_count(&self) -> u32 {
        self.chains.length(READY)
    }

    /// Whether another datagram may be in flight.
    pub(super) fn has_room(&self) -> bool {
        self.in_flight.len() < MAX_IN_FLIGHT
    }

    /// The time at which ready items are sent.
    pub(super) fn send_time(&self) -> Option<Timestamp> {
        match self.chains.length(READY) {
            0 => None,
            _ if !self.has_room() => None,
            ready if ready >= self.batch || self.is_urgent => Some(self.ready_since),
            _ => Some(self.ready_since + self.batch_delay),
        }
    }

    /// A datagram with these items, which were ready, is sent. There has been room for it.
    pub(super) fn sent(&mut self, now: Timestamp, sequence: Sequence, items: impl Iterator<Item = u32>) {
        let free = self.free_chains.trailing_zeros();
        self.free_chains &= !(1 << free);
        let chain = 1 + free;
        items.for_each(|item| self.chains.push_back(chain, item));
        self.in_flight.push(InFlight { sequence, sent_at: now, chain });
        match self.chains.is_empty(READY) {
            true => self.is_urgent = false,
            false => self.ready_since = now,
        }
    }

    /// Takes an acknowledgement. Calls `acknowledged` for each item, which is then neither ready nor in flight.
    pub(super) fn acknowledge(
        &mut self,
        now: Timestamp,
        arrived: &Acknowledgement,
        mut acknowledged: impl FnMut(u32),
    ) {
        let Outbox { chains, free_chains, round_trip, .. } = self;
        self.in_flight.retain(|datagram| {
            if !arrived.covers(datagram.sequence) {
                return true;
            }
            round_trip.progressed();
            // Of the others, the acknowledgement may have waited for later datagrams or been lost.
            if datagram.sequence == arrived.highest {
                round_trip.measured(now - datagram.sent_at);
            }
            while let Some(item) = chains.pop_front(datagram.chain) {
                acknowledged(item);
            }
            *free_chains |= 1 << (datagram.chain - 1);
            false
        });
    }

    /// The smoothed round-trip time, once one has been measured.
    pub(super) fn round_trip(&self) -> Option<Nanos> {
        self.round_trip.smoothed()
    }

    /// The time at which the oldest datagram in flight is lost.
    pub(super) fn timeout_time(&self) -> Option<Timestamp> {
        self.in_flight.first().map(|datagram| datagram.sent_at + self.round_trip.timeout())
    }

    /// Makes the items of lost datagrams ready, before all others, if `keep` says so. Otherwise they are neither
    /// ready nor in flight. Returns the number of lost datagrams.
    pub(super) fn time_out(&mut self, now: Timestamp, mut keep: impl FnMut(u32) -> bool) -> u64 {
        let timeout = self.round_trip.timeout();
        let lost = self.in_flight.iter().take_while(|datagram| datagram.sent_at + timeout <= now).count();
        if lost == 0 {
            return 0;
        }
        self.round_trip.timed_out();
        let Outbox { chains, in_flight, free_chains, .. } = self;
        for datagram in in_flight.drain(..lost).rev() {
            while let Some(item) = chains.last(datagram.chain) {
                chains.remove(item);
                if keep(item) {
                    chains.push_front(READY, item);
                    (self.ready_since, self.is_urgent) = (now, true);
                }
            }
            *free_chains |= 1 << (datagram.chain - 1);
        }
        lost as u64
    }
}
