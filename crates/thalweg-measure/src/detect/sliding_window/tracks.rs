//! Tracks: what the detector keeps of a flow that moves more than a quantum.

use bytemuck::{Pod, Zeroable};

use super::packet_log::PacketLog;
use crate::memory::{LargeArray, MemoryError};
use thalweg_wire::{Bytes, Direction, Nanos, Timestamp};

/// The number of milestones kept of a direction, and the maximum number of quanta of `R * T`.
pub(super) const K: usize = 64;

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

/// The milestones of a flow. Arrays are indexed by [`Direction`].
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C, align(64))]
pub(super) struct Track {
    /// The time of the newest milestone of either direction.
    newest: u64,
    /// The first milestone kept of each direction; [`NEVER`] if none. Earlier ones in the ring belong to another
    /// flow.
    first_kept: [u64; 2],
    /// The time of the milestone that the newest one replaced in the ring.
    replaced: [u64; 2],
    /// The slot of the flow that has the track, or [`NOBODY`].
    owner: u32,
    /// Whether the packets of a direction are logged.
    pub(super) watched: [u8; 2],
    /// Whether a direction had a window that could have exceeded the threshold or not.
    pub(super) undecided: [u8; 2],
    /// The quanta in a row that took long.
    pub(super) slow: [u8; 2],
    reserved: [u8; 14],
    pub(super) logs: [PacketLog; 2],
    /// The times of the last `K` milestones of each direction, milestone `m` at `m % K`.
    milestones: [[u64; K]; 2],
}

impl Track {
    /// Records that milestones `from` to `to` were passed at `time`. Returns the time of the milestone before them,
    /// if it is kept.
    pub(super) fn pass(&mut self, direction: Direction, (from, to): (u64, u64), time: u64) -> Option<u64> {
        let side = direction as usize;
        let before = self.passed(direction, from, from.saturating_sub(1));
        self.newest = self.newest.max(time);
        self.first_kept[side] = from.min(self.first_kept[side]);
        for milestone in from.max((to + 1).saturating_sub(K as u64))..=to {
            let place = &mut self.milestones[side][milestone as usize % K];
            self.replaced[side] = std::mem::replace(place, time);
        }
        before
    }

    /// Returns the oldest milestone in the ring and its time, where `next` is the first not passed yet.
    pub(super) fn oldest(&self, direction: Direction, next: u64) -> Option<(u64, u64)> {
        let milestone = next.saturating_sub(RING).max(self.first_kept[direction as usize]);
        self.passed(direction, next, milestone).map(|passed| (milestone, passed))
    }

    /// Returns the time at which `milestone` was passed, if that is known. `next` is the first milestone not passed yet.
    pub(super) fn passed(&self, direction: Direction, next: u64, milestone: u64) -> Option<u64> {
        let side = direction as usize;
        match next.checked_sub(milestone)? {
            _ if milestone < self.first_kept[side] => None,
            1..=RING => Some(self.milestones[side][milestone as usize % K]),
            REPLACED => Some(self.replaced[side]),
            _ => None,
        }
    }
}

/// Distances from the first milestone not passed yet.
const RING: u64 = K as u64;
const REPLACED: u64 = RING + 1;

/// All tracks.
#[derive(Debug)]
pub(super) struct Tracks {
    /// Track 0 is unused: a flow without a track has track number zero.
    tracks: LargeArray<Track>,
    /// Tracks from here on have never been used. As few as possible are in use, so that they stay in the cache.
    fresh: usize,
    /// Where the search for a track continues.
    hand: usize,
    /// A track without milestones within this time is stale.
    stale_after: Nanos,
}

impl Tracks {
    pub(super) fn new(tracks: usize, stale_after: Nanos) -> Result<Tracks, MemoryError> {
        let tracks = LargeArray::zeroed(tracks.clamp(1, u32::MAX as usize - 1) + 1)?;
        Ok(Tracks { tracks, fresh: 1, hand: 0, stale_after })
    }

    /// Returns the memory if all tracks are in use.
    pub(super) fn bytes(&self) -> Bytes {
        self.tracks.bytes()
    }

    /// Returns the track with this number, if it still belongs to `owner`. The number may be one of an earlier detector.
    pub(super) fn get(&mut self, owner: u32, number: u32) -> Option<&mut Track> {
        let is_used = number != NO_TRACK && (number as usize) < self.fresh;
        let track = is_used.then(|| &mut self.tracks[number as usize])?;
        (track.owner == owner).then_some(track)
    }

    /// Returns the number of a free or stale track.
    pub(super) fn find(&mut self, now: Timestamp) -> Option<u32> {
        let looks = if self.fresh < self.tracks.len() { SEARCH } else { LONG_SEARCH };
        let mut looks = 0..looks.min(self.fresh - 1);
        match looks.find_map(|_| self.next_if_stale(now)) {
            Some(number) => Some(number as u32),
            None if self.fresh < self.tracks.len() => {
                self.fresh += 1;
                Some(self.fresh as u32 - 1)
            }
            None => None,
        }
    }

    /// Gives a track to `owner`, without milestones. Its logs must be empty.
    pub(super) fn give(&mut self, number: u32, owner: u32, now: Timestamp) {
        let track = &mut self.tracks[number as usize];
        (track.newest, track.first_kept, track.owner) = (now.0, [NEVER; 2], owner);
        (track.watched, track.undecided, track.slow) = ([0; 2], [0; 2], [0; 2]);
    }

    /// Moves the hand to the next track in use, and returns it if it is free or stale.
    fn next_if_stale(&mut self, now: Timestamp) -> Option<usize> {
        self.hand = self.hand % (self.fresh - 1) + 1;
        let track = &self.tracks[self.hand];
        let is_stale = now - Timestamp(track.newest) >= self.stale_after;
        (track.owner == NOBODY || is_stale).then_some(self.hand)
    }

    /// Returns a track by its number.
    pub(super) fn at(&mut self, number: u32) -> &mut Track {
        &mut self.tracks[number as usize]
    }

    /// Frees a track. Its logs must be empty.
    pub(super) fn free(&mut self, number: u32) {
        self.tracks[number as usize].owner = NOBODY;
    }
}
