//! Counters of all connections, losses included.

use std::sync::atomic::{AtomicU64, Ordering};

macro_rules! counters {
    ($($(#[$meta:meta])* $name:ident,)+) => {
        /// Counts since the start, over all switches.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct Counters { $($(#[$meta])* pub $name: u64,)+ }

        /// Counters shared by all threads.
        #[derive(Debug, Default)]
        pub(crate) struct AtomicCounters { $(pub(super) $name: Counter,)+ }

        impl AtomicCounters {
            pub(crate) fn read(&self) -> Counters {
                Counters { $($name: self.$name.0.load(Ordering::Relaxed),)+ }
            }
        }
    };
}

counters! {
    /// Connections established.
    up,
    /// Connections not established: refused, failed, or over the limit.
    refused,
    /// Connections not accepted for lack of file descriptors or memory.
    accept_failures,
    /// Messages sent, barriers included.
    sent,
    /// Messages received.
    received,
    /// Batches carried out.
    done,
    /// Batches and requests refused by a switch.
    refusals,
    /// Batches and requests without an answer by their deadline.
    timed_out,
    /// Answers to no pending request, mostly after their deadline.
    unexpected_answers,
    /// Packets for the controller dropped because events were taken too slowly.
    packet_ins_dropped,
    /// Messages that could not be decoded, and were skipped.
    unreadable,
    /// Outcomes of batches dropped because their channel was full or closed.
    outcomes_dropped,
}

/// One counter.
#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    pub(crate) fn add(&self, count: u64) {
        // No other memory depends on the value.
        self.0.fetch_add(count, Ordering::Relaxed);
    }
}
