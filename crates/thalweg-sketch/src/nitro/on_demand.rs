//! Packets whose keys are read on demand: a switch parses only those that are sampled.
//!
//! Parsing a packet costs more than sampling it. There are two ways to avoid it. [`Nitro::update_on_demand`] asks for
//! the key of each sampled packet of a batch. [`Nitro::unsampled`] tells how many packets pass before the next sampled
//! one, and [`Nitro::skip`] lets them pass, for programs that see packets one by one.

use super::{CounterIndex, Divisor, Nitro, RowWise};
use crate::digest::{Digest, Hasher, Key};
use crate::estimate::Estimate;
use crate::probability::Probability;
use crate::shape::Shape;
use crate::stream_statistics::{StreamStatistics, Sums};
use crate::uncounted::Uncounted;

/// Sampled pairs per group: few, because a burst of a switch has few of them. The last packet may add all its rows.
const GROUP: usize = 8;

/// Keys that wait to be offered to the top-k.
const OFFERS: usize = 16;

/// Keys on their way to the top-k: those of sampled packets, and of these the ones that wait to be offered. Estimates of many
/// keys together cost less than one by one, and a burst has few. Keep it beside the sketch, and give it to every call.
#[derive(Clone, Debug)]
pub struct Offers<K> {
    waiting: Keys<K, OFFERS>,
    /// Of the present group.
    sampled: Keys<K, GROUP>,
}

#[derive(Clone, Debug)]
struct Keys<K, const N: usize> {
    keys: [K; N],
    digests: [Digest; N],
    filled: usize,
}

impl<K: Key + Default, const N: usize> Default for Keys<K, N> {
    fn default() -> Self {
        Keys { keys: [K::default(); N], digests: [Digest::default(); N], filled: 0 }
    }
}

impl<K: Key, const N: usize> Keys<K, N> {
    /// Reads a key with `read` and hashes it. Returns its digest, or `None` if there is no key.
    #[inline(always)]
    fn read(&mut self, hasher: Hasher, read: impl FnOnce(&mut K) -> bool) -> Option<Digest> {
        let key = &mut self.keys[self.filled];
        read(key).then(|| {
            let digest = hasher.digest(key.as_bytes());
            self.digests[self.filled] = digest;
            self.filled += 1;
            digest
        })
    }
}

impl<K: Key + Default> Default for Offers<K> {
    fn default() -> Offers<K> {
        Offers { waiting: Keys::default(), sampled: Keys::default() }
    }
}

impl<K: Key> Offers<K> {
    /// Forgets them, when the sketch is emptied.
    pub fn clear(&mut self) {
        self.waiting.filled = 0;
    }

    /// Adds a key of the present group.
    #[inline(always)]
    fn push<S: RowWise<K>>(&mut self, number: usize, sketch: &mut S) {
        if self.waiting.filled == OFFERS {
            self.flush(sketch);
        }
        let slot = self.waiting.filled;
        sketch.prefetch_offer(self.sampled.digests[number]);
        self.waiting.keys[slot] = self.sampled.keys[number];
        self.waiting.digests[slot] = self.sampled.digests[number];
        self.waiting.filled += 1;
    }

    #[inline(always)]
    fn flush<S: RowWise<K>>(&mut self, sketch: &mut S) {
        let waiting = &mut self.waiting;
        sketch.offer(&waiting.digests[..waiting.filled], |number| waiting.keys[number]);
        waiting.filled = 0;
    }
}

/// A sampled pair of a group.
#[derive(Clone, Copy, Debug, Default)]
struct Pair {
    packet: usize,
    /// The number of its key in the group.
    key: usize,
    position: CounterIndex,
}

/// What was recorded of packets without a key.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct WithoutKey {
    uncounted: Uncounted,
    /// The sum of weight / p over the sampled pairs, and how much of it, divided by the rows, was subtracted from the
    /// stream's totals.
    weighted: u64,
    withdrawn: u64,
}

impl WithoutKey {
    fn record_pair(&mut self, weight: i64, probability: Probability) {
        self.uncounted.record(1, probability);
        let weighted = weight.unsigned_abs().saturating_mul(probability.inverse());
        self.weighted = self.weighted.saturating_add(weighted);
    }

    /// Subtracts the estimated weight of these packets, as far as that was not done.
    #[inline(always)]
    fn withdraw_from(&mut self, statistics: &mut StreamStatistics, rows: u64) {
        if self.weighted == 0 {
            return;
        }
        let more = (self.weighted / rows - self.withdrawn).min(statistics.magnitude());
        statistics.withdraw(more);
        self.withdrawn += more;
    }
}

impl<S> Nitro<S> {
    /// Returns how many packets pass before the next sampled one: 0 if that is the next packet, as always at p = 1.
    #[inline(always)]
    pub fn unsampled<K: Key>(&self) -> u64
    where
        S: RowWise<K>,
    {
        if self.sampler.probability() == Probability::ONE {
            return 0;
        }
        self.sampler.skip() / self.sketch.depth() as u64
    }

    /// Counts up to `packets` packets of weight 1 that are not sampled, without their keys. Returns how many: the next
    /// packet is sampled if fewer than asked.
    #[inline(always)]
    pub fn skip<K: Key>(&mut self, packets: u64) -> u64
    where
        S: RowWise<K>,
    {
        let skipped = packets.min(self.unsampled::<K>());
        if skipped > 0 {
            self.sampler.pass(skipped * self.sketch.depth() as u64);
            let sums = Sums::ones(usize::try_from(skipped).unwrap_or(usize::MAX));
            self.sketch.account_mut().record(&sums, self.sampler.probability());
            self.count_arrivals(skipped);
        }
        skipped
    }

    /// Counts `packets` packets, and asks for the keys of the sampled ones only: `read(i, key)` writes the key of packet i, or
    /// returns false if it has none, which is recorded ([`Nitro::uncounted`]). Weights are 1, or `weights[i]`.
    ///
    /// # Panics
    /// If there are weights, but not one for each packet.
    pub fn update_on_demand<K: Key>(
        &mut self,
        packets: usize,
        weights: Option<&[i64]>,
        offers: &mut Offers<K>,
        mut read: impl FnMut(usize, &mut K) -> bool,
    ) where
        S: RowWise<K>,
    {
        assert!(weights.is_none_or(|weights| weights.len() == packets), "one weight for each packet");
        let sums = |from: usize, to: usize| match weights {
            None => Sums::ones(to - from),
            Some(weights) => Sums::of(weights[from..to].iter().copied()),
        };
        let weight = |packet: usize| weights.map_or(1, |weights| weights[packet]);
        self.in_parts::<K>(packets, sums, |nitro, from, to| {
            if nitro.sampler.probability() == Probability::ONE {
                nitro.all_on_demand(from, to, &weight, offers, &mut read);
            } else {
                nitro.sketch.account_mut().record(&sums(from, to), nitro.sampler.probability());
                nitro.sampled_on_demand(from, to, &weight, offers, &mut read);
            }
        });
    }

    /// Estimates how many packets had no key since the start or the last [`Nitro::begin_window`]; exact at p = 1.
    ///
    /// The total of the statistics is the weight of the others, as far as that is known: this estimate, times their
    /// weight, is subtracted.
    pub fn uncounted<K: Key>(&self) -> Estimate
    where
        S: RowWise<K>,
    {
        let statistics = self.sketch.statistics();
        let used = [Probability::ONE, self.sampler.probability(), statistics.min_probability()];
        let used = if statistics.is_sampled() { &used[..] } else { &used[..1] };
        self.without_key.uncounted.estimate(self.sketch.depth(), used)
    }

    fn all_on_demand<K: Key>(
        &mut self,
        from: usize,
        to: usize,
        weight: &impl Fn(usize) -> i64,
        offers: &mut Offers<K>,
        read: &mut impl FnMut(usize, &mut K) -> bool,
    ) where
        S: RowWise<K>,
    {
        let hasher = self.sketch.hasher();
        let mut weights = [0; OFFERS];
        offers.flush(&mut self.sketch);
        let mut packet = from;
        while packet < to {
            let begin = packet;
            let waiting = &mut offers.waiting;
            while packet < to && waiting.filled < OFFERS {
                if waiting.read(hasher, |key| read(packet, key)).is_some() {
                    weights[waiting.filled - 1] = weight(packet);
                }
                packet += 1;
            }
            let filled = waiting.filled;
            let missing = (packet - begin - filled) as u64;
            self.without_key.uncounted.record(missing * self.sketch.depth() as u64, Probability::ONE);
            let sums = Sums::of(weights[..filled].iter().copied());
            self.sketch.account_mut().record(&sums, Probability::ONE);
            self.sketch.add_all(&waiting.digests[..filled], &sums, |position| weights[position]);
            offers.flush(&mut self.sketch);
        }
    }

    #[inline(always)]
    fn sampled_on_demand<K: Key>(
        &mut self,
        from: usize,
        to: usize,
        weight: &impl Fn(usize) -> i64,
        offers: &mut Offers<K>,
        read: &mut impl FnMut(usize, &mut K) -> bool,
    ) where
        S: RowWise<K>,
    {
        let hasher = self.sketch.hasher();
        let probability = self.sampler.probability();
        let (depth, increment) = (self.sketch.depth() as u64, probability.inverse() as i64);
        let rows = Divisor::new(depth);
        let pairs = (to - from) as u64 * depth;
        let mut position = 0;
        let mut group = [Pair::default(); GROUP + Shape::MAX_ROWS];
        let mut filled = 0;
        // The last packet, and its digest if it has a key.
        let mut last = (usize::MAX, None);
        while let Some(pair) = self.sampler.next(&mut position, pairs) {
            let (packet, row) = rows.divide(pair);
            let packet = from + packet as usize;
            if last.0 != packet {
                if filled >= GROUP {
                    self.add_group(&group[..filled], increment, weight, offers);
                    filled = 0;
                }
                last = (packet, offers.sampled.read(hasher, |key| read(packet, key)));
            }
            let Some(digest) = last.1 else {
                self.without_key.record_pair(weight(packet), probability);
                continue;
            };
            let position = self.sketch.locate(row as usize, digest);
            self.sketch.prefetch(position);
            group[filled] = Pair { packet, key: offers.sampled.filled - 1, position };
            filled += 1;
        }
        self.add_group(&group[..filled], increment, weight, offers);
        self.without_key.withdraw_from(self.sketch.account_mut(), depth);
    }

    /// Adds the pairs of a group, and empties it.
    #[inline(always)]
    fn add_group<K: Key>(
        &mut self,
        group: &[Pair],
        increment: i64,
        weight: &impl Fn(usize) -> i64,
        offers: &mut Offers<K>,
    ) where
        S: RowWise<K>,
    {
        for pair in group {
            if self.sketch.add_at(pair.position, weight(pair.packet).saturating_mul(increment)) {
                offers.push(pair.key, &mut self.sketch);
            }
        }
        offers.sampled.filled = 0;
    }
}
