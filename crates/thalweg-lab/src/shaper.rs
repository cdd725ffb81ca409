//! The queue in front of a link: a token bucket filter (tc-tbf(8)) of the link's rate.
//! Veth pairs have no rate of their own; the shaper in front of each limits it. Its bucket holds [`BURST`] of data,
//! which may pass at once after a pause. The queue behind it holds the given buffer; more is dropped and counted.

use thalweg_linux::tc::TokenBucket;
use thalweg_wire::{BitRate, Bytes, Nanos};

/// Data that may pass at once, as time at the link's rate: 10 kB at 100 Mbit/s. A shaper that passes single frames sets
/// a timer for each, and timers cost more than forwarding.
const BURST: Nanos = Nanos::from_micros(800);

/// Minimum size of a bucket and of a queue, in frames of maximum length.
const MIN_FRAMES: u64 = 2;

/// Length of an Ethernet header in bytes.
const HEADER: u64 = 14;

/// Returns a shaper for `rate` whose queue holds what the link carries in `buffer`.
pub(crate) fn shaper(rate: BitRate, buffer: Nanos, mtu: u32) -> TokenBucket {
    let least = Bytes(MIN_FRAMES * (u64::from(mtu) + HEADER));
    let (burst, limit) = (rate.amount_in(BURST).max(least), rate.amount_in(buffer).max(least));
    TokenBucket { rate, framing: 0, burst, limit }
}
