//! NitroSketch: row updates left to chance, so that most packets cost nothing.
//!
//! Liu, Ben-Basat, Einziger, Kassner, Braverman, Friedman, Sekar 2019, "NitroSketch: robust and general
//! sketch-based monitoring in software switches". Of the sequence of all (packet, row) pairs each is updated with
//! probability p, and then by 1/p of the weight; which ones is drawn as geometric gaps, so that the rest is never
//! looked at. p is a power of two, so that 1/p is a whole number and every row is unbiased for every p;
//! weights enter with the p of their moment, so that changes of p keep it so.
//!
//! **Cost.** A batch goes through in groups of 64 sampled pairs, in three steps: draw the pairs, asking for their keys'
//! cache lines; hash the keys, asking for the counters' lines; add. Keys of other packets are not even made. At p = 1 the batch is hashed and
//! added row by row without draws, to the same state as the sketch alone would have.
//!
//! **Guarantee.** See `noise`: the account of a sketch knows how it was sampled, so that its estimates carry
//! bounds in every mode, or say that it has not converged.
//!
//! **Modes** ([`Mode`]). *Fixed*: one p. *AlwaysLineRate*: p follows the arrival rate, once an epoch, so that the
//! rows' updates fit into a budget of time. *AlwaysCorrect*: p = 1 until the [`convergence`] test says that sampling
//! keeps the error below eps L2; the test is repeated, and p goes back up if a stream turns so that it fails.

use crate::digest::Digest;

mod batch;
pub mod convergence;
mod line_rate;
mod row_wise;
mod sampler;

pub use crate::probability::{ParseProbabilityError, Probability};
pub use batch::Batch;
pub use convergence::Target;
pub use line_rate::LineRate;
pub(crate) use row_wise::largest;
pub use row_wise::{Place, RowWise, WithTopK};
pub use sampler::table_bytes;

use line_rate::Epoch;
use sampler::Sampler;

/// Sampled pairs that go through together.
const GROUP: usize = 64;

/// Packets that go through together at p = 1: the digests take 4 KiB.
const EXACT_GROUP: usize = 256;

/// Keys that are about a cache line: one is asked for, a group ahead.
const A_LINE: usize = 4;

/// How p is chosen.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Mode {
    /// Always this.
    Fixed(Probability),
    /// As the arrival rate demands.
    AlwaysLineRate(LineRate),
    /// As the error allows.
    AlwaysCorrect(Target),
}

/// A sketch whose row updates are sampled.
#[derive(Clone, Debug)]
pub struct Nitro<S> {
    sketch: S,
    sampler: Sampler,
    mode: Mode,
    pace: Pace,
}

/// What the modes have seen.
#[derive(Clone, Copy, Debug, Default)]
struct Pace {
    /// AlwaysLineRate: the time, and the epoch under way.
    now_ns: Option<u64>,
    epoch: Option<Epoch>,
    /// AlwaysCorrect: packets so far, and when to test next.
    packets: u64,
    next_test: u64,
}

impl<S> Nitro<S> {
    /// Samples the updates of `sketch`, which may have been fed before. Equal seeds draw equally.
    pub fn new(sketch: S, mode: Mode, seed: u64) -> Nitro<S> {
        let probability = match mode {
            Mode::Fixed(probability) => probability,
            Mode::AlwaysLineRate(_) | Mode::AlwaysCorrect(_) => Probability::ONE,
        };
        Nitro { sketch, sampler: Sampler::new(probability, seed), mode, pace: Pace::default() }
    }

    /// The sketch, to ask.
    pub fn sketch(&self) -> &S {
        &self.sketch
    }

    /// The sketch, to change: to empty it when a window ends, or to take another in.
    pub fn sketch_mut(&mut self) -> &mut S {
        &mut self.sketch
    }

    /// The sketch alone.
    pub fn into_sketch(self) -> S {
        self.sketch
    }

    /// How p is chosen.
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// The p of now.
    pub fn probability(&self) -> Probability {
        self.sampler.probability()
    }

    /// A new window begins with an empty sketch: AlwaysCorrect begins anew, AlwaysLineRate keeps its pace.
    pub fn begin_window(&mut self) {
        if let Mode::AlwaysCorrect(_) = self.mode {
            (self.pace.packets, self.pace.next_test) = (0, 0);
            self.sampler.set_probability(Probability::ONE);
        }
    }

    /// Lets time pass, in nanoseconds of any clock that does not go back; call it about every batch.
    /// Only AlwaysLineRate looks at it, when the next batch comes.
    pub fn advance(&mut self, now_ns: u64) {
        self.pace.now_ns = Some(now_ns);
    }

    /// Counts a batch.
    #[inline(always)]
    pub fn update<B>(&mut self, batch: &B)
    where
        B: Batch + ?Sized,
        S: RowWise<B::Key>,
    {
        if let Mode::AlwaysCorrect(target) = self.mode {
            return self.update_correctly(batch, target);
        }
        if let (Mode::AlwaysLineRate(line_rate), Some(now_ns)) = (self.mode, self.pace.now_ns) {
            let epoch = self.pace.epoch.get_or_insert(Epoch::beginning(now_ns));
            if let Some(probability) = line_rate.next(epoch, now_ns, self.sketch.depth()) {
                self.sampler.set_probability(probability);
            }
            epoch.packets += batch.len() as u64;
        }
        self.update_part(batch, 0, batch.len());
    }

    /// AlwaysCorrect: cuts the batch where tests are due.
    fn update_correctly<B>(&mut self, batch: &B, target: Target)
    where
        B: Batch + ?Sized,
        S: RowWise<B::Key>,
    {
        let mut from = 0;
        while from < batch.len() {
            if self.pace.packets >= self.pace.next_test {
                let interval = target.interval(self.pace.packets);
                let probability = target.probability(&self.sketch.noise(), self.sketch.account(), interval);
                self.sampler.set_probability(probability);
                self.pace.next_test = self.pace.packets + interval;
            }
            let left = usize::try_from(self.pace.next_test - self.pace.packets).unwrap_or(usize::MAX);
            let to = batch.len().min(from.saturating_add(left));
            if !self.was_tested_for(batch, from, to) {
                self.sampler.set_probability(Probability::ONE);
                self.pace.next_test = self.pace.packets + (to - from) as u64;
            }
            self.update_part(batch, from, to);
            self.pace.packets += (to - from) as u64;
            from = to;
        }
    }

    /// Whether the test spoke of such weights: none negative, none heavier than all before. If not, they are counted
    /// exactly, and the test is asked again.
    fn was_tested_for<B>(&self, batch: &B, from: usize, to: usize) -> bool
    where
        B: Batch + ?Sized,
        S: RowWise<B::Key>,
    {
        if self.sampler.probability() == Probability::ONE {
            return true;
        }
        let sums = batch.sums(from, to);
        !sums.has_negative && sums.heaviest as f64 <= self.sketch.account().heaviest()
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
            self.sketch.account_mut().enter(&batch.sums(from, to), self.sampler.probability());
            self.update_sampled(batch, from, to);
        }
    }

    /// Every row of every packet.
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
            for (first, digests) in (begin..).step_by(A_LINE).zip(digests.chunks_mut(A_LINE)) {
                batch.prefetch((first + EXACT_GROUP).min(to - 1));
                for (number, digest) in (first..).zip(digests) {
                    *digest = batch.digest(number, hasher);
                }
            }
            let sums = batch.sums(begin, end);
            self.sketch.account_mut().enter(&sums, Probability::ONE);
            self.sketch.add_all(digests, &sums, |place| batch.weight(begin + place));
            self.sketch.offer(digests, |place| batch.key(begin + place));
        }
    }

    /// The pairs that chance chooses.
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
                group[filled] = Sampled { packet, row: row as usize, place: Place::default() };
                filled += 1;
            }
            for (sampled, digest) in group[..filled].iter_mut().zip(&mut digests) {
                *digest = batch.digest(sampled.packet, hasher);
                sampled.place = self.sketch.place(sampled.row, *digest);
                self.sketch.prefetch(sampled.place);
                self.sketch.prefetch_offer(*digest);
            }
            for sampled in &group[..filled] {
                let weight = batch.weight(sampled.packet).saturating_mul(increment);
                self.sketch.add_at(sampled.place, weight);
            }
            self.sketch.offer(&digests[..filled], |place| batch.key(group[place].packet));
            if filled < GROUP {
                return;
            }
        }
    }
}

/// A pair on its way from its hash to its counter.
#[derive(Clone, Copy, Debug, Default)]
struct Sampled {
    packet: usize,
    row: usize,
    place: Place,
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
