//! Detects cheetahs in any window, with constant memory per flow.
//!
//! The published algorithm cuts a flow into consecutive flights and so misses a burst that straddles two of them.
//! This detector checks every window `(t - T, t]`.
//!
//! **Idea.** Instead of bytes by time, keep time by bytes. Divide `V = R * T` into `K = 64` quanta of `q = floor(V /
//! K)` bytes (where `V` is under 64 bytes, into `V` quanta of one byte). *Milestone* `m` of a flow is passed by the
//! packet with which the flow's count of bytes first exceeds `m * q`. A ring keeps the times of the last `K`
//! milestones. When milestone `m >= K` is passed at `t`, check milestone `j = m + 1 - K`: if that was passed after `t
//! - T`, the flow is a cheetah.
//!
//! **None is missed.** Let a flow move more than `V >= K * q` bytes in `(t - T, t]`, let `C` be its count at `t` and
//! `m` the last milestone passed, so `K * q < C <= (m + 1) * q` and `m >= K`. Its count at `t - T` was less than `C -
//! K * q <= j * q`, so milestone `j` was passed after `t - T`. At the time `s <= t` when `m` was passed, `s - T <= t
//! - T`, so the test succeeded then: the flow is reported at `s`, no later than the packet that makes it a cheetah.
//!
//! **Slack.** If the test succeeds, the count exceeded `m * q` at `t` and was at most `j * q` at `t - T`. So every
//! reported flow moved more than `(K - 1) * q` bytes within `T`: 63/64 of `V`, minus at most `K` bytes of rounding.
//!
//! **Memory.** A direction that never moves more than one quantum (9.8 kB at 50 Mbit/s and 100 ms), as nearly all do,
//! takes none. The others share a fixed number of tracks of 1 KiB (both directions). A track is stale if its flow
//! passed no milestone within `T`; another flow that needs a track then takes it. On average a link of `C` bit/s
//! passes `C * T / (8 * q)` milestones within `T`, which is the number of tracks that it needs. Adversarial traffic
//! can pass more, since a single byte may complete a milestone. If no track is available, the milestone is not kept
//! but counted.
//!
//! **Requirements of the guarantee.** A flow is what the flow table considers one: it ends when it idles, when TCP
//! ends it, and when it is evicted, and restarts with a count of zero. [`SlidingWindow::untracked`] must be zero.
//! Timestamps must not go backwards; one that does counts as the latest time seen of its flow.
//!
//! **Cost.** Two multiplications and a comparison per packet; two cache lines per quantum.

use bytemuck::{Pod, Zeroable};

use super::{CheetahThreshold, ThresholdError};
use crate::memory::{LargeArray, MemoryError};
use thalweg_wire::{BitRate, Bytes, Direction, Nanos, Timestamp};

/// The maximum number of quanta of `R * T`.
const K: usize = 64;

/// The track number of a flow without a track.
pub(crate) const NO_TRACK: u32 = 0;

/// Tracks to check for a stale one before a fresh one is used.
const SEARCH: usize = 8;

/// Tracks to check if no fresh one is left, before a milestone is dropped.
const LONG_SEARCH: usize = 64;

/// The owner of a free track; no slot has this number.
const NOBODY: u32 = u32::MAX;

/// No milestone was kept yet.
const NEVER: u64 = u64::MAX;

#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C, align(64))]
struct Track {
    /// The time of the newest milestone of either direction.
    newest: u64,
    /// The first milestone kept of each direction; [`NEVER`] if none. Earlier ones in the ring belong to another
    /// flow.
    first_kept: [u64; 2],
    /// The slot of the flow that has the track, or [`NOBODY`].
    owner: u32,
    reserved: [u32; 9],
    /// The times of the last `K` milestones of each direction, milestone `m` at `m % K`.
    milestones: [[u64; K]; 2],
}

/// The detector's parameters and tracks.
#[derive(Debug)]
pub struct SlidingWindow {
    threshold: CheetahThreshold,
    /// The number of quanta: `K`, fewer only where `R * T` has fewer bytes.
    quanta: u64,
    quantum: u64,
    /// `2^64 / quantum`, rounded up: for a count below `exact_below`, the high half of the product is the number of
    /// quanta (its error is below `count / 2^64`, too little to reach the next quantum).
    reciprocal: u64,
    exact_below: u64,
    /// Track 0 is unused: a flow without a track has track number zero.
    tracks: LargeArray<Track>,
    /// Tracks from here on have never been used. As few as possible are in use, so that they stay in the cache.
    fresh: usize,
    /// Where the search for a track continues.
    hand: usize,
    untracked: u64,
}

/// A window in which more than the threshold passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Flight {
    /// The bytes since the milestone before the one that begins the window: more than `R * T`, and at most 1/64 of
    /// that (and 64 bytes) more than passed within `T`.
    pub(crate) bytes: Bytes,
    /// These bytes over `T`, or higher if they took less: the rate between the first milestone in the window and now.
    pub(crate) rate: BitRate,
}

/// Why a detector could not be created.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SlidingWindowError {
    /// The threshold is invalid.
    #[error(transparent)]
    Threshold(#[from] ThresholdError),
    /// The tracks did not fit into memory.
    #[error(transparent)]
    Memory(#[from] MemoryError),
}

impl SlidingWindow {
    /// Creates a detector for up to `tracks` concurrent flows that move more than a quantum in each `T`.
    ///
    /// # Errors
    /// If the threshold is below one byte, or memory is insufficient.
    pub fn new(threshold: CheetahThreshold, tracks: usize) -> Result<Self, SlidingWindowError> {
        threshold.validate()?;
        let volume = threshold.volume().0;
        let quanta = volume.min(K as u64);
        let quantum = volume / quanta;
        let tracks = LargeArray::zeroed(tracks.clamp(1, u32::MAX as usize - 1) + 1)?;
        Ok(SlidingWindow {
            threshold,
            quanta,
            quantum,
            reciprocal: (u64::MAX / quantum).saturating_add(1),
            exact_below: if quantum == 1 { 0 } else { u64::MAX / quantum },
            tracks,
            fresh: 1,
            hand: 0,
            untracked: 0,
        })
    }

    /// Returns the number of milestones without a track: up to as many flows were checked with a gap. Zero means that
    /// the guarantee holds.
    pub fn untracked(&self) -> u64 {
        self.untracked
    }

    /// Returns the threshold.
    pub fn threshold(&self) -> CheetahThreshold {
        self.threshold
    }

    /// Returns the memory if all tracks are in use.
    pub fn bytes(&self) -> Bytes {
        self.tracks.bytes()
    }

    /// Whether a count of bytes that grows from `before` to `after` passes a milestone. One branch that is rarely
    /// taken: whether a flow is fast is unpredictable per packet, whether it completes a quantum is not.
    #[inline(always)]
    pub(crate) fn passes_milestone(&self, before: u64, after: u64) -> bool {
        after > (self.quanta_in(before.saturating_sub(1)) + 1) * self.quantum
    }

    /// Returns the whole quanta in a count of bytes, `bytes / quantum`, without a division wherever that is exact.
    #[inline(always)]
    fn quanta_in(&self, bytes: u64) -> u64 {
        if bytes < self.exact_below {
            ((u128::from(bytes) * u128::from(self.reciprocal)) >> 64) as u64
        } else {
            bytes / self.quantum
        }
    }

    /// Records that a direction's count of bytes grew from `before` to `after` at `time`, and passed a milestone.
    ///
    /// `owner` identifies the flow, `track` is its track number, which may change.
    pub(crate) fn observe(
        &mut self,
        owner: u32,
        track: &mut u32,
        direction: Direction,
        (before, after): (u64, u64),
        time: Timestamp,
    ) -> Option<Flight> {
        let from = self.quanta_in(before.saturating_sub(1)) + 1;
        let (since, passed) = self.pass(owner, track, direction, (from, self.quanta_in(after - 1)), time)?;
        Some(self.flight(after, since, time - passed))
    }

    /// The flight from milestone `since`, which was passed `ago`, to a count of `after`.
    #[cold]
    fn flight(&self, after: u64, since: u64, ago: Nanos) -> Flight {
        let rounding = self.threshold.volume().0 - self.quanta * self.quantum;
        let bytes = Bytes(after - (since - 1) * self.quantum + rounding);
        let over_all = BitRate::of(bytes, self.threshold.flight_duration);
        let rate = match ago {
            Nanos::ZERO => over_all,
            ago => over_all.max(BitRate::of(Bytes(after - since * self.quantum), ago)),
        };
        Flight { bytes, rate }
    }

    /// Records that milestones `from` to `to` were passed at `time`. Returns the milestone at which a flight begins,
    /// if there is one, and its time.
    fn pass(
        &mut self,
        owner: u32,
        number: &mut u32,
        direction: Direction,
        (from, to): (u64, u64),
        time: Timestamp,
    ) -> Option<(u64, Timestamp)> {
        if *number == NO_TRACK || self.tracks[*number as usize].owner != owner {
            match self.take_track(owner, time) {
                Some(taken) => *number = taken,
                None => {
                    self.untracked += 1;
                    // Even without a track a flight within one packet is detected.
                    return (to + 1 - from >= self.quanta).then_some((from, time));
                }
            }
        }
        let track = &mut self.tracks[*number as usize];
        track.newest = track.newest.max(time.0);
        let first_kept = &mut track.first_kept[direction as usize];
        *first_kept = from.min(*first_kept);
        let first_kept = *first_kept;
        let milestones = &mut track.milestones[direction as usize];
        for milestone in from.max((to + 1).saturating_sub(K as u64))..=to {
            milestones[milestone as usize % K] = time.0;
        }
        let since = (to + 1).checked_sub(self.quanta).filter(|since| *since >= first_kept)?;
        let passed = Timestamp(milestones[since as usize % K]);
        (time - passed < self.threshold.flight_duration).then_some((since.min(from), passed))
    }

    /// Returns a free or stale track.
    fn take_track(&mut self, owner: u32, now: Timestamp) -> Option<u32> {
        let looks = if self.fresh < self.tracks.len() { SEARCH } else { LONG_SEARCH };
        let mut looks = 0..looks.min(self.fresh - 1);
        let number = match looks.find_map(|_| self.next_if_stale(now)) {
            Some(number) => number,
            None if self.fresh < self.tracks.len() => {
                self.fresh += 1;
                self.fresh - 1
            }
            None => return None,
        };
        let track = &mut self.tracks[number];
        (track.newest, track.first_kept, track.owner) = (now.0, [NEVER; 2], owner);
        Some(number as u32)
    }

    /// Moves the hand to the next track in use, and returns it if it is free or stale.
    fn next_if_stale(&mut self, now: Timestamp) -> Option<usize> {
        self.hand = self.hand % (self.fresh - 1) + 1;
        let track = &self.tracks[self.hand];
        let is_stale = now - Timestamp(track.newest) >= self.threshold.flight_duration;
        (track.owner == NOBODY || is_stale).then_some(self.hand)
    }

    /// Releases the track of a flow that ended.
    pub(crate) fn release(&mut self, owner: u32, track: &mut u32) {
        if *track != NO_TRACK && self.tracks[*track as usize].owner == owner {
            self.tracks[*track as usize].owner = NOBODY;
        }
        *track = NO_TRACK;
    }

    /// Returns `T`.
    pub(crate) fn flight_duration(&self) -> Nanos {
        self.threshold.flight_duration
    }
}

#[cfg(test)]
mod tests;
