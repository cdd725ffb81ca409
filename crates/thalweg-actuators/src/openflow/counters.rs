//! What has come to pass, and what was lost.

use std::sync::atomic::{AtomicU64, Ordering};

macro_rules! counters {
    ($($(#[$meta:meta])* $name:ident,)+) => {
        /// Counts since the start, over all switches.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct Counters { $($(#[$meta])* pub $name: u64,)+ }

        /// Counters that all threads add to.
        #[derive(Debug, Default)]
        pub(super) struct Counting { $(pub(super) $name: Counter,)+ }

        impl Counting {
            pub(super) fn read(&self) -> Counters {
                Counters { $($name: self.$name.0.load(Ordering::Relaxed),)+ }
            }
        }
    };
}

counters! {
    /// Connections that came up.
    up,
    /// Connections that never came up: refused, failed, or one too many.
    refused,
    /// Connections that could not be accepted, for want of files or memory.
    accept_failures,
    /// Messages sent, barriers included.
    sent,
    /// Messages received.
    received,
    /// Batches that were carried out.
    done,
    /// Batches, and questions, that a switch refused.
    refusals,
    /// Batches, and questions, without an answer by their deadline.
    late,
    /// Answers that nobody waited for: most came after their deadline.
    unexpected_answers,
    /// Packets for the controller that were dropped because events were not taken fast enough.
    packet_ins_dropped,
    /// Messages that could not be decoded, and were passed over.
    unreadable,
    /// Outcomes of batches whose channel was full or closed.
    outcomes_dropped,
}

/// One counter.
#[derive(Debug, Default)]
pub(super) struct Counter(AtomicU64);

impl Counter {
    pub(super) fn add(&self, count: u64) {
        // Nothing else hangs on what it says.
        self.0.fetch_add(count, Ordering::Relaxed);
    }
}
