//! Detects cheetah flows while they run.
//!
//! A **cheetah flow** moves more than `R * T` bytes within a time of length `T`: it exceeds the rate threshold `R` on
//! average over the flight duration `T` (the heavy-hitter dissertation, University of Virginia 2018, section
//! 3.2.1, equation 3.1). Rates are per direction of a flow, in bytes of the IP layer.
//!
//! - [`sliding_window`]: our own detector and the default. Checks *every* window of length `T`; misses none, and names no other.
//! - [`cfinf`]: Algorithms 1 to 4 of the dissertation as published; checks consecutive flights.

pub mod cfinf;
pub mod sliding_window;

use thiserror::Error;

use thalweg_wire::{BitRate, Bytes, FlowKey, Nanos, Timestamp};

/// The threshold for a cheetah flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CheetahThreshold {
    /// `T`, the length of a flight. 100 ms in the dissertation's evaluation (section 3.4).
    pub flight_duration: Nanos,
    /// `R`, the mean rate over `T` above which a flow is a cheetah. 50 Mbit/s in the dissertation's evaluation.
    pub rate_threshold: BitRate,
}

impl Default for CheetahThreshold {
    fn default() -> Self {
        CheetahThreshold { flight_duration: Nanos::from_millis(100), rate_threshold: BitRate(50_000_000) }
    }
}

impl CheetahThreshold {
    /// Returns `R * T`: a flow that moves more than this within `T` is a cheetah.
    pub fn volume(&self) -> Bytes {
        self.rate_threshold.amount_in(self.flight_duration)
    }

    /// Checks that the threshold is at least one byte.
    ///
    /// # Errors
    /// If `T` is zero or `R * T` is less than one byte.
    pub fn validate(&self) -> Result<(), ThresholdError> {
        if self.volume().0 == 0 { Err(ThresholdError { threshold: *self }) } else { Ok(()) }
    }
}

/// The threshold is below one byte, so every packet would exceed it.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error(
    "a flight of {} at {} is less than one byte. Raise the flight duration or the rate threshold; \
     a rate without a unit is in bit/s, so write 50mbps or 1.5gbps",
    threshold.flight_duration, threshold.rate_threshold
)]
pub struct ThresholdError {
    /// The requested threshold.
    pub threshold: CheetahThreshold,
}

/// A detector's finding about a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finding {
    /// A flow has become a cheetah.
    Began(Cheetah),
    /// A cheetah has ended, or its state was evicted.
    Ended(CheetahEnd),
}

/// A flow found to be a cheetah.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cheetah {
    /// The direction that is a cheetah.
    pub key: FlowKey,
    /// The time of the flow's first packet (of its flight's, for [`cfinf`], which forgets the flow in between).
    pub first: Timestamp,
    /// The time of the packet with which it was found. [`sliding_window`]: the one that exceeded the threshold; a later one if
    /// its window was undecided. [`cfinf`]: the first at least `T` after the start of the flight.
    pub detected: Timestamp,
    /// The flight rate. With [`sliding_window`], the larger of `bytes` over `T` and the rate since the oldest milestone in the
    /// window. With [`cfinf`], `bytes` over the time from the first to the last packet of the flight, which is at least `T`.
    pub rate: BitRate,
    /// The bytes of the flight that exceeded the threshold: more than `R * T`. [`sliding_window`]: what certainly was sent
    /// within `T`. [`cfinf`]: those of the flight.
    pub bytes: Bytes,
}

/// The end of a cheetah.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CheetahEnd {
    /// The direction that was a cheetah.
    pub key: FlowKey,
    /// The time of its first packet, as [`Cheetah::first`].
    pub first: Timestamp,
    /// The time of its last packet; with [`sliding_window`], of the flow's last packet in either direction.
    pub last: Timestamp,
    /// The packets from first to last (modulo 2^32 with [`sliding_window`]).
    pub packets: u64,
    /// The bytes from first to last.
    pub bytes: Bytes,
}
