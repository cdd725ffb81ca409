//! The queue in front of a link: a token bucket filter (tc-tbf(8)) of the link's rate.
//!
//! Links have no rate of their own here; the shaper in front of each is what makes one of so many bits a second. Its
//! bucket holds [`BURST`] of data, which may pass at once after a pause; behind it wait as many bytes as the buffer is
//! given, and what is more is dropped and counted.

use thalweg_linux::tc::TokenBucket;
use thalweg_wire::{BitRate, Bytes, Nanos};

/// Data that may pass at once, as time at the link's rate: 10 kB at 100 Mbit/s. A shaper that lets through one frame at
/// a time sets a timer for each, and timers cost more than forwarding.
const BURST: Nanos = Nanos::from_micros(800);

/// Frames of the longest length that a bucket and a queue hold at the least.
const LEAST_FRAMES: u64 = 2;

/// Ethernet header.
const HEADER: u64 = 14;

/// A shaper of `rate` whose queue holds what the link carries in `buffer`.
pub(crate) fn shaper(rate: BitRate, buffer: Nanos, mtu: u32) -> TokenBucket {
    let least = Bytes(LEAST_FRAMES * (u64::from(mtu) + HEADER));
    TokenBucket { rate, burst: rate.amount_in(BURST).max(least), limit: rate.amount_in(buffer).max(least) }
}
