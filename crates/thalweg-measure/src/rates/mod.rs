//! How fast flows are, from samples taken with an unknown and varying probability.
//!
//! An oversubscribed monitor port sends as many of the mirrored packets as it can, and drops the rest (Rasley et al.,
//! "Planck", SIGCOMM 2014, section 3.1). What share it drops nobody says. So the rate of a flow cannot be had by
//! multiplying samples; for TCP it is in the sequence numbers, which count bytes whether they were sampled or not
//! ([`burst`]). Flows without sequence numbers are measured by the share that TCP flows beside them show was
//! sampled ([`sampling`]).
//!
//! **What no estimator can undo** is the queue of the monitor port. A sample is seen when it has waited there, so rates are
//! those of some time ago: a fraction of a millisecond if the buffer is small, 3.5 ms with the 4 MB of the paper's switch
//! (section 5.3). And while a large buffer fills, because the port has just become oversubscribed, each sample waits longer
//! than the one before: time is stretched, and rates read too low by the factor of oversubscription until it is full. The
//! bounds take it in, if the collector has been told how large the buffer is.

pub(crate) mod bounds;
pub mod burst;
pub mod sampling;

use thalweg_wire::{BitRate, Nanos};

/// What the rate of a flow was derived from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Basis {
    /// Nothing yet.
    #[default]
    Nothing,
    /// Its TCP sequence numbers.
    SequenceNumbers,
    /// Its samples, and the share of packets that the TCP flows beside it show was sampled.
    SamplingRatio,
    /// Its samples alone: it is at least as fast as they are.
    SamplesAlone,
}

/// How samples are put together into bursts (Planck, section 3.2.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BurstOptions {
    /// Least time without a sample that separates two bursts. 200 us at 10 Gbit/s in the paper.
    pub gap: Nanos,
    /// Longest burst. 700 us in the paper.
    pub longest: Nanos,
}

impl Default for BurstOptions {
    fn default() -> Self {
        BurstOptions { gap: Nanos::from_micros(200), longest: Nanos::from_micros(700) }
    }
}

impl BurstOptions {
    /// What suits links of this rate: a gap of 200 us, but no less than eight full-sized frames take, and bursts of 3.5
    /// gaps at most. The paper has the same 200 us and 700 us at 10 Gbit/s and at 1 Gbit/s.
    pub fn for_rate(rate: BitRate) -> BurstOptions {
        let frames_bits = 8 * 1_538 * 8;
        let gap = (frames_bits * 1_000_000_000 / rate.0.max(1)).clamp(200_000, 1_000_000_000);
        BurstOptions { gap: Nanos(gap), longest: Nanos(gap * 7 / 2) }
    }
}
