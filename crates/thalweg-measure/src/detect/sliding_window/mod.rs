//! Detects cheetahs in any window, with constant memory per flow.
//!
//! The published algorithm cuts a flow into consecutive flights and so misses a burst that straddles two of them.
//! This detector checks every window `(t - T, t]`.
//!
//! **Idea.** Instead of bytes by time, keep time by bytes. Divide `V = R * T` into `K = 64` quanta of `q = floor(V /
//! K)` bytes (where `V` is under 64 bytes, into `V` quanta of one byte). *Milestone* `m` of a flow is passed by the
//! packet with which the flow's count of bytes first exceeds `m * q`. A ring keeps the times of the last `K`
//! milestones. Let `C` be the count at `t`, `m` the last milestone passed, and `i` the largest number with `i * q < C - V`.
//!
//! - *Proof:* if milestone `i` was passed after `t - T`, the flow moved at least `C - i * q > V` bytes in the window: its count
//!   before that packet was at most `i * q`.
//! - *Disproof:* if milestone `i + 1` was passed by `t - T`, it moved at most `V`: its count at `t - T` exceeded `(i + 1) * q >=
//!   C - V`.
//!
//! **Between the two** lies one quantum, 1/64 of `V`. Flows that could get there are *watched*: from the first quantum that took
//! at most `T / 8`, every packet of the direction is logged, until 8 quanta in a row took longer. The sum of the window is then
//! known to the byte as soon as the log is as old as the window. A flow younger than `T` needs no log: its count is the sum.
//!
//! **None is reported wrongly.** Only a proof, or an exact sum above `V`, reports a flow.
//!
//! **None is missed**, except those counted. A window that could have exceeded `V` or not marks its direction as undecided. If
//! no later packet proves that the flow is a cheetah, it is counted when it ends ([`SlidingWindow::undecided`]). That takes a
//! window which begins in the quantum before the log, for example in the first 1/64 of a flow that sends at just under `R` from
//! its beginning.
//!
//! **Memory.** A direction that never moves more than one quantum (9.8 kB at 50 Mbit/s and 100 ms), as nearly all do,
//! takes none. The others share a fixed number of tracks of 1.1 KiB (both directions). A track is stale if its flow
//! passed no milestone within `T`; another flow that needs a track then takes it. On average a link of `C` bit/s
//! passes `C * T / (8 * q)` milestones within `T`, which is the number of tracks that it needs. Adversarial traffic
//! can pass more, since a single byte may complete a milestone. If no track is available, the milestone is not kept
//! but counted. Logs take 24 bytes for each packet within `T`, in chunks of 32, of which there are as many as
//! tracks. Without a free chunk the flow is not watched, which may leave it undecided. Packets are logged together if they have
//! at most `V / 8192` bytes: a window that begins between two of them has an uncertainty of as much.
//!
//! **Requirements of the guarantee.** A flow is what the flow table considers one: it ends when it idles, when TCP
//! ends it, and when it is evicted, and restarts with a count of zero. [`SlidingWindow::untracked`] must be zero.
//! Timestamps must not go backwards; one that does counts as the latest time seen of its flow.
//!
//! **Cost.** Two multiplications and a comparison per packet; two cache lines per quantum. Packets of watched flows, which move
//! at an eighth of `R` or more, take a path of their own.

use super::{CheetahThreshold, ThresholdError};
use crate::memory::MemoryError;
use thalweg_wire::{BitRate, Bytes, Direction, Nanos, Timestamp};

mod packet_log;
mod tracks;

use packet_log::LogPool;
pub(crate) use tracks::NO_TRACK;
use tracks::{K, Tracks};

/// A quantum that took at most this part of `T` begins a watch.
const FAST_PART: u64 = 8;

/// So many longer quanta in a row end it.
const SLOW_QUANTA: u8 = 8;

/// Chunks of the log, at least: enough for a few flows of small packets.
const MIN_CHUNKS: usize = 1024;

/// The detector's parameters and tracks.
#[derive(Debug)]
pub struct SlidingWindow {
    threshold: CheetahThreshold,
    /// `V`, in bytes.
    volume: u64,
    /// The number of quanta: `K`, fewer only where `R * T` has fewer bytes.
    quanta: u64,
    quantum: u64,
    /// `2^64 / quantum`, rounded up: for a count below `exact_below`, the high half of the product is the number of
    /// quanta (its error is below `count / 2^64`, too little to reach the next quantum).
    reciprocal: u64,
    exact_below: u64,
    tracks: Tracks,
    logs: LogPool,
    untracked: u64,
    undecided: u64,
}

/// A packet, as counted in one direction of a flow.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Counted {
    /// The flow's slot.
    pub(crate) owner: u32,
    pub(crate) direction: Direction,
    /// The direction's count of bytes before and after the packet, since the flow began.
    pub(crate) before: u64,
    pub(crate) after: u64,
    /// The time of the packet, and of the flow's first.
    pub(crate) time: Timestamp,
    pub(crate) start: Timestamp,
}

/// A window in which more than the threshold passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Flight {
    /// Bytes that certainly passed within `T`: more than `R * T`.
    pub(crate) bytes: Bytes,
    /// These bytes over `T`, or higher if they took less: the rate between the first milestone in the window and now.
    pub(crate) rate: BitRate,
}

/// The result of checking one packet of a watched flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verified {
    /// Nothing to report.
    Unremarkable,
    /// The flow is not watched any more.
    Unwatched,
    /// The flow is a cheetah.
    Flight(Flight),
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

/// What is known of the bytes in a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Sum {
    at_least: u64,
    /// Whether it may exceed `V`.
    may_exceed: bool,
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
        Ok(SlidingWindow {
            threshold,
            volume,
            quanta,
            quantum,
            reciprocal: (u64::MAX / quantum).saturating_add(1),
            exact_below: if quantum == 1 { 0 } else { u64::MAX / quantum },
            tracks: Tracks::new(tracks, threshold.flight_duration)?,
            logs: LogPool::new(tracks.max(MIN_CHUNKS), volume)?,
            untracked: 0,
            undecided: 0,
        })
    }

    /// Continues counting after another detector, whose flows this one takes over without what was known of them: a window that
    /// begins before is not checked.
    pub(crate) fn continue_from(&mut self, other: &SlidingWindow) {
        self.untracked += other.untracked;
        self.undecided += other.undecided;
    }

    /// Returns the number of milestones without a track: up to as many flows were checked with a gap. Zero means that
    /// the guarantee holds.
    pub fn untracked(&self) -> u64 {
        self.untracked
    }

    /// Returns the number of directions of ended flows that came within 1/64 of the threshold and were not reported, because it
    /// is unknown whether they exceeded it. If this and [`SlidingWindow::untracked`] are zero, exactly the cheetahs were
    /// reported.
    pub fn undecided(&self) -> u64 {
        self.undecided
    }

    /// Returns the threshold.
    pub fn threshold(&self) -> CheetahThreshold {
        self.threshold
    }

    /// Returns the memory if all tracks and logs are in use.
    pub fn bytes(&self) -> Bytes {
        self.tracks.bytes() + self.logs.bytes()
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

    /// Records that a packet passed a milestone. `track` is the number of the flow's track, which may change. Returns a flight
    /// if that is proven. If the flow was [watched](SlidingWindow::watches) before, the packet is to be
    /// [verified](SlidingWindow::verify) as well.
    pub(crate) fn observe(&mut self, track: &mut u32, packet: &Counted) -> Option<Flight> {
        if self.tracks.get(packet.owner, *track).is_none() {
            match self.take_track(packet.owner, packet.time) {
                Some(taken) => *track = taken,
                None => {
                    self.untracked += 1;
                    // Even without a track a young flow is detected, or a flight within one packet.
                    let sum = if self.is_young(packet) { packet.after } else { packet.bytes() };
                    return (sum > self.volume).then(|| self.flight(packet, sum, None));
                }
            }
        }
        if !self.record(*track, packet) {
            return None;
        }
        let sum = self.sum_by_milestones(*track, packet, self.next_milestone(packet));
        self.decide(*track, packet, sum)
    }

    /// Returns the count at the next milestone: nothing checks the packets of an unwatched direction until then.
    fn next_milestone(&self, packet: &Counted) -> u64 {
        (self.quanta_in(packet.after - 1) + 1) * self.quantum
    }

    /// Whether packets of a flow are to be [verified](SlidingWindow::verify).
    pub(crate) fn watches(&mut self, owner: u32, track: u32) -> bool {
        self.tracks.get(owner, track).is_some_and(|track| track.watched != [0; 2])
    }

    /// Checks the window that ends with a packet, if its direction is watched.
    pub(crate) fn verify(&mut self, number: u32, packet: &Counted) -> Verified {
        let side = packet.direction as usize;
        let Some(track) = self.tracks.get(packet.owner, number) else { return Verified::Unwatched };
        match track.watched {
            [0, 0] => return Verified::Unwatched,
            watched if watched[side] == 0 => return Verified::Unremarkable,
            _ => {}
        }
        let log = &mut track.logs[side];
        if !self.logs.add(log, (packet.before, packet.after), packet.time.0) {
            self.unwatch(number, packet.direction);
            let sum = self.sum_by_milestones(number, packet, self.next_milestone(packet));
            let flight = self.decide(number, packet, sum);
            return flight.map_or(Verified::Unwatched, Verified::Flight);
        }
        let flight_duration = self.threshold.flight_duration;
        let is_older = packet.time - Timestamp(log.since()) >= flight_duration;
        // All that was logged, also before the window. Mostly this is enough, and nothing needs to expire yet.
        if packet.after - log.base() <= self.volume && (is_older || packet.after <= self.volume) {
            return Verified::Unremarkable;
        }
        let oldest = self.logs.expire(log, packet.time.0, flight_duration.0);
        let base = log.base();
        let logged = match packet.time - Timestamp(oldest.first) < flight_duration {
            true => packet.after - base,
            false => packet.after - oldest.after,
        };
        let sum = match is_older {
            true => Sum { at_least: logged, may_exceed: packet.after - base > self.volume },
            false => {
                let sum = self.sum_by_milestones(number, packet, packet.after);
                Sum { at_least: sum.at_least.max(logged), ..sum }
            }
        };
        self.decide(number, packet, sum).map_or(Verified::Unremarkable, Verified::Flight)
    }

    /// Records the milestones that a packet passed, and whether its direction is to be watched. Returns `false` if it was watched
    /// before and still is: then this packet is in no log yet.
    fn record(&mut self, number: u32, packet: &Counted) -> bool {
        let Counted { direction, before, after, time, start, .. } = *packet;
        let (side, from) = (direction as usize, self.quanta_in(before.saturating_sub(1)) + 1);
        let to = self.quanta_in(after - 1);
        let track = self.tracks.at(number);
        let kept = track.pass(direction, (from, to), time.0);
        let previous = if from == 1 { Some(start.0) } else { kept };
        let fast = Nanos(self.threshold.flight_duration.0 / FAST_PART);
        let is_fast = previous.is_some_and(|previous| time - Timestamp(previous) <= fast);
        track.slow[side] = if is_fast { 0 } else { track.slow[side].saturating_add(1) };
        match track.watched[side] != 0 {
            true if track.slow[side] < SLOW_QUANTA => return false,
            true => self.unwatch(number, direction),
            false if is_fast => {
                track.watched[side] = u8::from(self.logs.add(&mut track.logs[side], (before, after), time.0));
            }
            false => {}
        }
        true
    }

    /// Bounds the bytes of the window that ends with `packet`, or with a later one that raises the count to `until` at most.
    fn sum_by_milestones(&mut self, number: u32, packet: &Counted, until: u64) -> Sum {
        let Counted { direction, after, time, .. } = *packet;
        if self.is_young(packet) {
            return Sum { at_least: after, may_exceed: until > self.volume };
        }
        let (volume, quantum, flight_duration) = (self.volume, self.quantum, self.threshold.flight_duration);
        let next = self.quanta_in(after - 1) + 1;
        // `i` of the module's doc: a milestone whose passing, if it is in the window, proves that `count` exceeds it.
        let proof = |count: u64| count.checked_sub(volume + 1).map(|excess| self.quanta_in(excess));
        let (of_after, of_until) = (proof(after), proof(until));
        let oldest = next.saturating_sub(self.quanta);
        let track = self.tracks.at(number);
        let is_within = |milestone: u64| {
            let passed = track.passed(direction, next, milestone);
            passed.is_some_and(|passed| time - Timestamp(passed) < flight_duration)
        };
        let proven = of_after.filter(|milestone| is_within(*milestone));
        let at_least = proven.map_or(0, |milestone| after - milestone * quantum).max(packet.bytes());
        Sum { at_least, may_exceed: of_until.is_some_and(|milestone| is_within((milestone + 1).max(oldest))) }
    }

    /// Reports a flight that is certain; marks a direction that is undecided.
    fn decide(&mut self, number: u32, packet: &Counted, sum: Sum) -> Option<Flight> {
        let side = packet.direction as usize;
        if sum.at_least > self.volume {
            self.unwatch(number, packet.direction);
            self.tracks.at(number).undecided[side] = 0;
            return Some(self.flight(packet, sum.at_least, Some(number)));
        }
        self.tracks.at(number).undecided[side] |= u8::from(sum.may_exceed);
        None
    }

    /// Whether the flow began in the window that ends with this packet.
    fn is_young(&self, packet: &Counted) -> bool {
        packet.time - packet.start < self.threshold.flight_duration
    }

    #[cold]
    fn flight(&mut self, packet: &Counted, bytes: u64, track: Option<u32>) -> Flight {
        let flight_duration = self.threshold.flight_duration;
        let over_all = BitRate::of(Bytes(bytes), flight_duration);
        let next = self.quanta_in(packet.after - 1) + 1;
        let track = track.map(|number| self.tracks.at(number));
        let oldest = track.and_then(|track| track.oldest(packet.direction, next));
        let rate = match oldest.map(|(milestone, passed)| (milestone, packet.time - Timestamp(passed))) {
            Some((milestone, ago)) if ago > Nanos::ZERO && ago < flight_duration => {
                over_all.max(BitRate::of(Bytes(packet.after - milestone * self.quantum), ago))
            }
            _ => over_all,
        };
        Flight { bytes: Bytes(bytes), rate }
    }

    /// Ends a watch.
    fn unwatch(&mut self, number: u32, direction: Direction) {
        let side = direction as usize;
        let track = self.tracks.at(number);
        (track.watched[side], track.slow[side]) = (0, 0);
        self.logs.clear(&mut track.logs[side]);
    }

    /// Gives a free or stale track to `owner`.
    fn take_track(&mut self, owner: u32, now: Timestamp) -> Option<u32> {
        let number = self.tracks.find(now)?;
        self.forget(number);
        self.tracks.give(number, owner, now);
        Some(number)
    }

    /// Releases the track of a flow that ended.
    pub(crate) fn release(&mut self, owner: u32, track: &mut u32) {
        if self.tracks.get(owner, *track).is_some() {
            self.forget(*track);
            self.tracks.free(*track);
        }
        *track = NO_TRACK;
    }

    /// Ends the watches of a track, and counts what stays undecided.
    fn forget(&mut self, number: u32) {
        for direction in [Direction::Forward, Direction::Reverse] {
            self.unwatch(number, direction);
            let undecided = &mut self.tracks.at(number).undecided[direction as usize];
            self.undecided += u64::from(std::mem::take(undecided));
        }
    }

    /// Returns `T`.
    pub(crate) fn flight_duration(&self) -> Nanos {
        self.threshold.flight_duration
    }
}

impl Counted {
    fn bytes(&self) -> u64 {
        self.after - self.before
    }
}

#[cfg(test)]
mod tests;
