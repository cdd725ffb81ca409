//! Estimates the rates of flows from samples taken with an unknown and varying probability.
//!
//! An oversubscribed monitor port sends as many of the mirrored packets as it can, and drops the rest (Rasley et al.,
//! "Planck", SIGCOMM 2014, section 3.1). The share that it drops is unknown, so the rate of a flow is not a multiple
//! of its samples. For TCP the rate is in the sequence numbers, which count bytes whether they were sampled or not
//! ([`burst`]). Many senders number the IPv4 packets of UDP flows, which counts packets in the same way. Flows without either
//! are measured with the sampling ratio of the TCP flows beside them ([`sampling`]).
//!
//! **The limit of any estimator** is the queue of the monitor port. A sample is seen after it has waited there, so
//! rates are delayed: by a fraction of a millisecond if the buffer is small, by 3.5 ms with the 4 MB of the paper's
//! switch (section 5.3). And while a large buffer fills, because the port has just become oversubscribed, each sample
//! waits longer than the previous one: time is stretched, and rates are too low by the factor of oversubscription
//! until it is full. The bounds include this, if the size of the buffer is configured.

pub(crate) mod bounds;
pub mod burst;
pub(crate) mod frame_sizes;
pub mod sampling;
pub(crate) mod shared_counters;
pub(crate) mod unseen;

use thalweg_wire::{BitRate, Nanos};

/// The source of a flow's rate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Basis {
    /// No rate yet.
    #[default]
    Nothing,
    /// Its TCP sequence numbers.
    SequenceNumbers,
    /// The identifications of its IPv4 headers, which count its packets ([`burst`]).
    Identification,
    /// Its samples, divided by the sampling ratio of the TCP flows beside it.
    SamplingRatio,
    /// Its samples alone: a lower bound.
    SamplesAlone,
}

/// How samples are grouped into bursts (Planck, section 3.2.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BurstOptions {
    /// The minimum time without a sample that separates two bursts. 200 us at 10 Gbit/s in the paper.
    pub gap: Nanos,
    /// The longest burst. 700 us in the paper.
    pub longest: Nanos,
}

impl Default for BurstOptions {
    fn default() -> Self {
        BurstOptions { gap: Nanos::from_micros(200), longest: Nanos::from_micros(700) }
    }
}

impl BurstOptions {
    /// Returns options for links of this rate: a gap of 200 us, but no less than eight full-sized frames take, and
    /// bursts of at most 3.5 gaps. The paper has the same 200 us and 700 us at 10 Gbit/s and at 1 Gbit/s.
    pub fn for_rate(rate: BitRate) -> BurstOptions {
        let frames_bits = 8 * 1_538 * 8;
        let gap = (frames_bits * 1_000_000_000 / rate.0.max(1)).clamp(200_000, 1_000_000_000);
        BurstOptions { gap: Nanos(gap), longest: Nanos(gap * 7 / 2) }
    }
}
