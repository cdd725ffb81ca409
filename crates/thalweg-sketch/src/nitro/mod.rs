//! NitroSketch: samples row updates, so most packets cost nothing.
//!
//! Liu, Ben-Basat, Einziger, Kassner, Braverman, Friedman, Sekar 2019, "NitroSketch: robust and general sketch-based
//! monitoring in software switches". Each (packet, row) pair is updated with probability p, by 1/p of the weight.
//! Geometric gaps select the pairs, so the others are never read. p is a power of two, so 1/p is an integer and every
//! row is unbiased for every p. Each weight uses the p at its time, so changes of p keep rows unbiased.
//!
//! **Cost.** A batch is processed in groups of 64 sampled pairs, in three steps: draw the pairs and prefetch their
//! keys; hash the keys and prefetch the counters; add. Keys of other packets are never built. At p = 1 the batch is
//! hashed and added row by row without draws, with the same result as the sketch alone.
//!
//! **Guarantee.** See `noise`: a sketch knows from its statistics how it was sampled. Its estimates have bounds in every
//! mode, or are marked as not converged.
//!
//! **Modes** ([`Mode`]). *Fixed*: one p. *AlwaysLineRate*: p follows the arrival rate, once per epoch, so that the
//! row updates fit into a time budget. *AlwaysCorrect*: p = 1 until the [`convergence`] test shows that sampling
//! keeps the error below eps L2; the test is repeated, and p rises again if a later test fails.

use crate::digest::{Digest, Key};
use crate::stream_statistics::Sums;

mod batch;
pub mod convergence;
mod line_rate;
mod on_demand;
mod row_wise;
mod sampler;
mod tables;

pub use crate::probability::{ParseProbabilityError, Probability};
pub use batch::Batch;
pub use convergence::Target;
pub use line_rate::LineRate;
pub(crate) use row_wise::largest;
pub use row_wise::{CounterIndex, RowWise, WithTopK};
pub use sampler::table_bytes;
pub use tables::{GapTables, first_gap};

use line_rate::Epoch;
pub use on_demand::Offers;
use on_demand::WithoutKey;
use sampler::Sampler;

/// Sampled pairs per group.
const GROUP: usize = 64;

/// Packets per group at p = 1: the digests take 4 KiB.
const EXACT_GROUP: usize = 256;

/// Keys per cache line, approximately: the sampler prefetches one key per line, a group ahead.
const KEYS_PER_LINE: usize = 4;

/// How p is chosen.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Mode {
    /// A constant p.
    Fixed(Probability),
    /// p follows the arrival rate.
    AlwaysLineRate(LineRate),
    /// p follows the error.
    AlwaysCorrect(Target),
}

/// A sketch whose row updates are sampled.
#[derive(Clone, Debug)]
pub struct Nitro<S> {
    sketch: S,
    sampler: Sampler,
    mode: Mode,
    mode_state: ModeState,
    without_key: WithoutKey,
}

/// The state of the modes.
#[derive(Clone, Copy, Debug, Default)]
struct ModeState {
    /// AlwaysLineRate: the time and the current epoch.
    now_ns: Option<u64>,
    epoch: Option<Epoch>,
    /// AlwaysCorrect: packets so far, and when to test next.
    packets: u64,
    next_test: u64,
}

impl<S> Nitro<S> {
    /// Samples the updates of `sketch`, which may already have data. Equal seeds give equal draws.
    pub fn new(sketch: S, mode: Mode, seed: u64) -> Nitro<S> {
        let probability = match mode {
            Mode::Fixed(probability) => probability,
            Mode::AlwaysLineRate(_) | Mode::AlwaysCorrect(_) => Probability::ONE,
        };
        let sampler = Sampler::new(probability, seed);
        Nitro { sketch, sampler, mode, mode_state: ModeState::default(), without_key: WithoutKey::default() }
    }

    /// Returns the sketch, for queries.
    pub fn sketch(&self) -> &S {
        &self.sketch
    }

    /// Returns the sketch, for changes: to clear it at the end of a window, or to merge another into it.
    pub fn sketch_mut(&mut self) -> &mut S {
        &mut self.sketch
    }

    /// Returns the sketch and drops the sampler.
    pub fn into_sketch(self) -> S {
        self.sketch
    }

    /// Returns how p is chosen.
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// Returns the current p.
    pub fn probability(&self) -> Probability {
        self.sampler.probability()
    }

    /// Starts a new window with an empty sketch: AlwaysCorrect restarts at p = 1, AlwaysLineRate keeps its p.
    pub fn begin_window(&mut self) {
        self.without_key = WithoutKey::default();
        if let Mode::AlwaysCorrect(_) = self.mode {
            (self.mode_state.packets, self.mode_state.next_test) = (0, 0);
            self.sampler.set_probability(Probability::ONE);
        }
    }

    /// Sets the current time in nanoseconds of any monotonic clock; call it about once per batch. Only AlwaysLineRate
    /// uses it, at the next batch.
    pub fn advance(&mut self, now_ns: u64) {
        self.mode_state.now_ns = Some(now_ns);
    }

    /// Counts a batch.
    #[inline(always)]
    pub fn update<B>(&mut self, batch: &B)
    where
        B: Batch + ?Sized,
        S: RowWise<B::Key>,
    {
        let sums = |from, to| batch.sums(from, to);
        self.in_parts::<B::Key>(batch.len(), sums, |nitro, from, to| nitro.update_part(batch, from, to));
    }

    /// Calls `part` with the ranges of a batch between which p may change; `sums(from, to)` are the totals of a range.
    #[inline(always)]
    fn in_parts<K: Key>(
        &mut self,
        packets: usize,
        sums: impl Fn(usize, usize) -> Sums,
        mut part: impl FnMut(&mut Self, usize, usize),
    ) where
        S: RowWise<K>,
    {
        if let Mode::AlwaysCorrect(target) = self.mode {
            return self.in_tested_parts::<K>(packets, target, sums, part);
        }
        if let (Mode::AlwaysLineRate(line_rate), Some(now_ns)) = (self.mode, self.mode_state.now_ns) {
            let epoch = self.mode_state.epoch.get_or_insert(Epoch::starting_at(now_ns));
            if let Some(probability) = line_rate.next(epoch, now_ns, self.sketch.depth()) {
                self.sampler.set_probability(probability);
            }
        }
        part(self, 0, packets);
        self.count_arrivals(packets as u64);
    }

    /// Counts packets for the modes that change p.
    #[inline(always)]
    fn count_arrivals(&mut self, packets: u64) {
        match self.mode {
            Mode::Fixed(_) => {}
            Mode::AlwaysLineRate(_) => {
                self.mode_state.epoch.iter_mut().for_each(|epoch| epoch.packets += packets);
            }
            Mode::AlwaysCorrect(_) => self.mode_state.packets += packets,
        }
    }

    /// AlwaysCorrect: splits a batch where tests are due.
    fn in_tested_parts<K: Key>(
        &mut self,
        packets: usize,
        target: Target,
        sums: impl Fn(usize, usize) -> Sums,
        mut part: impl FnMut(&mut Self, usize, usize),
    ) where
        S: RowWise<K>,
    {
        let mut from = 0;
        while from < packets {
            if self.mode_state.packets >= self.mode_state.next_test {
                let interval = target.interval(self.mode_state.packets);
                let probability =
                    target.probability(&self.sketch.noise(), self.sketch.statistics(), interval);
                self.sampler.set_probability(probability);
                self.mode_state.next_test = self.mode_state.packets + interval;
            }
            let left =
                usize::try_from(self.mode_state.next_test - self.mode_state.packets).unwrap_or(usize::MAX);
            let to = packets.min(from.saturating_add(left));
            if !self.last_test_covers::<K>(&sums, from, to) {
                self.sampler.set_probability(Probability::ONE);
                self.mode_state.next_test = self.mode_state.packets + (to - from) as u64;
            }
            part(self, from, to);
            self.count_arrivals((to - from) as u64);
            from = to;
        }
    }

    /// Whether the last test covers these weights: none negative, none heavier than all before. If not, they are
    /// counted exactly, and the test runs again.
    fn last_test_covers<K: Key>(&self, sums: impl Fn(usize, usize) -> Sums, from: usize, to: usize) -> bool
    where
        S: RowWise<K>,
    {
        if self.sampler.probability() == Probability::ONE {
            return true;
        }
        let sums = sums(from, to);
        !sums.has_negative && sums.max_weight as f64 <= self.sketch.statistics().max_weight()
    }

    #[inline(always)]
    fn update_part<B>(&mut self, batch: &B, from: usize, to: usize)
    where
        B: Batch + ?Sized,
        S: RowWise<B::Key>,
    {
        if self.sampler.probability() == Probability::ONE {
            self.update_all(batch, from, to);
        } else {
            self.sketch.account_mut().record(&batch.sums(from, to), self.sampler.probability());
            self.update_sampled(batch, from, to);
        }
    }

    /// Updates every row of every packet.
    fn update_all<B>(&mut self, batch: &B, from: usize, to: usize)
    where
        B: Batch + ?Sized,
        S: RowWise<B::Key>,
    {
        let hasher = self.sketch.hasher();
        let mut digests = [Digest::default(); EXACT_GROUP];
        for begin in (from..to).step_by(EXACT_GROUP) {
            let end = to.min(begin + EXACT_GROUP);
            let digests = &mut digests[..end - begin];
            for (first, digests) in (begin..).step_by(KEYS_PER_LINE).zip(digests.chunks_mut(KEYS_PER_LINE)) {
                batch.prefetch((first + EXACT_GROUP).min(to - 1));
                for (number, digest) in (first..).zip(digests) {
                    *digest = batch.digest(number, hasher);
                }
            }
            let sums = batch.sums(begin, end);
            self.sketch.account_mut().record(&sums, Probability::ONE);
            self.sketch.add_all(digests, &sums, |position| batch.weight(begin + position));
            self.sketch.offer(digests, |position| batch.key(begin + position));
        }
    }

    /// Updates the sampled pairs.
    #[inline(always)]
    fn update_sampled<B>(&mut self, batch: &B, from: usize, to: usize)
    where
        B: Batch + ?Sized,
        S: RowWise<B::Key>,
    {
        let hasher = self.sketch.hasher();
        let increment = self.sampler.probability().inverse() as i64;
        let rows = Divisor::new(self.sketch.depth() as u64);
        let pairs = (to - from) as u64 * rows.divisor;
        let mut position = 0;
        let mut group = [Sampled::default(); GROUP];
        let mut digests = [Digest::default(); GROUP];
        loop {
            let mut filled = 0;
            while filled < GROUP {
                let Some(pair) = self.sampler.next(&mut position, pairs) else { break };
                let (packet, row) = rows.divide(pair);
                let packet = from + packet as usize;
                batch.prefetch(packet);
                group[filled] = Sampled { packet, row: row as usize, position: CounterIndex::default() };
                filled += 1;
            }
            for (sampled, digest) in group[..filled].iter_mut().zip(&mut digests) {
                *digest = batch.digest(sampled.packet, hasher);
                sampled.position = self.sketch.locate(sampled.row, *digest);
                self.sketch.prefetch(sampled.position);
            }
            // The pairs whose keys are offered move to the front.
            let mut offered = 0;
            for number in 0..filled {
                let (Sampled { packet, position, .. }, digest) = (group[number], digests[number]);
                let weight = batch.weight(packet).saturating_mul(increment);
                if self.sketch.add_at(position, weight) {
                    self.sketch.prefetch_offer(digest);
                    (group[offered], digests[offered]) = (group[number], digest);
                    offered += 1;
                }
            }
            self.sketch.offer(&digests[..offered], |position| batch.key(group[position].packet));
            if filled < GROUP {
                return;
            }
        }
    }
}

/// A pair between its hash and its counter.
#[derive(Clone, Copy, Debug, Default)]
struct Sampled {
    packet: usize,
    row: usize,
    position: CounterIndex,
}

/// Division by the number of rows, as a multiplication: exact for numbers below 2^40.
#[derive(Clone, Copy, Debug)]
struct Divisor {
    divisor: u64,
    inverse: u64,
}

impl Divisor {
    const SHIFT: u32 = 46;

    fn new(divisor: u64) -> Divisor {
        Divisor { divisor, inverse: (1 << Self::SHIFT) / divisor + 1 }
    }

    #[inline(always)]
    fn divide(self, number: u64) -> (u64, u64) {
        let quotient = ((u128::from(number) * u128::from(self.inverse)) >> Self::SHIFT) as u64;
        (quotient, number - quotient * self.divisor)
    }
}

#[cfg(test)]
mod tests;
