//! Packets whose keys are read on demand: a switch parses only those that are sampled.
//!
//! Parsing a packet costs more than sampling it. There are two ways to avoid it. [`Nitro::update_on_demand`] asks for
//! the key of each sampled packet of a batch. [`Nitro::unsampled`] tells how many packets pass before the next sampled
//! one, and [`Nitro::skip`] lets them pass, for programs that see packets one by one.

use super::{EXACT_GROUP, Nitro, RowWise, Sampled};
use crate::digest::{Digest, Key};
use crate::estimate::Estimate;
use crate::probability::Probability;
use crate::stream_statistics::{StreamStatistics, Sums};
use crate::uncounted::Uncounted;

/// Sampled pairs per group: few, because a burst of a switch has few of them, and each has room for a key.
const GROUP: usize = 8;

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
    fn withdraw_from(&mut self, statistics: &mut StreamStatistics, rows: u64) {
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

    /// Counts `packets` packets, and asks for the keys of the sampled ones only: `key(i)` returns `None` if packet i
    /// has no key, which is recorded ([`Nitro::uncounted`]). Weights are 1, or `weights[i]`.
    ///
    /// A sampled packet may be asked for more than once.
    ///
    /// # Panics
    /// If there are weights, but not one for each packet.
    pub fn update_on_demand<K: Key>(
        &mut self,
        packets: usize,
        weights: Option<&[i64]>,
        mut key: impl FnMut(usize) -> Option<K>,
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
                nitro.all_on_demand(from, to, &weight, &mut key);
            } else {
                nitro.sketch.account_mut().record(&sums(from, to), nitro.sampler.probability());
                nitro.sampled_on_demand(from, to, &weight, &mut key);
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
        key: &mut impl FnMut(usize) -> Option<K>,
    ) where
        S: RowWise<K>,
    {
        let hasher = self.sketch.hasher();
        let mut digests = [Digest::default(); EXACT_GROUP];
        let mut counted = [(0, None); EXACT_GROUP];
        for begin in (from..to).step_by(EXACT_GROUP) {
            let end = to.min(begin + EXACT_GROUP);
            let mut filled = 0;
            for packet in begin..end {
                let Some(key) = key(packet) else { continue };
                digests[filled] = hasher.digest(key.as_bytes());
                counted[filled] = (packet, Some(key));
                filled += 1;
            }
            let (digests, counted) = (&digests[..filled], &counted[..filled]);
            let missing = (end - begin - filled) as u64;
            self.without_key.uncounted.record(missing * self.sketch.depth() as u64, Probability::ONE);
            let sums = Sums::of(counted.iter().map(|&(packet, _)| weight(packet)));
            self.sketch.account_mut().record(&sums, Probability::ONE);
            self.sketch.add_all(digests, &sums, |position| weight(counted[position].0));
            self.sketch.offer(digests, |position| counted[position].1.expect("a counted packet has a key"));
        }
    }

    fn sampled_on_demand<K: Key>(
        &mut self,
        from: usize,
        to: usize,
        weight: &impl Fn(usize) -> i64,
        key: &mut impl FnMut(usize) -> Option<K>,
    ) where
        S: RowWise<K>,
    {
        let hasher = self.sketch.hasher();
        let probability = self.sampler.probability();
        let (rows, increment) = (self.sketch.depth() as u64, probability.inverse() as i64);
        let pairs = (to - from) as u64 * rows;
        let mut position = 0;
        let mut group = [Sampled::default(); GROUP];
        let mut digests = [Digest::default(); GROUP];
        let mut keys = [None; GROUP];
        loop {
            let (mut filled, mut drawn) = (0, 0);
            let mut last = None;
            let mut last_key = None;
            while drawn < GROUP {
                let Some(pair) = self.sampler.next(&mut position, pairs) else { break };
                drawn += 1;
                let packet = from + (pair / rows) as usize;
                if last != Some(packet) {
                    last_key = key(packet);
                    last = Some(packet);
                }
                let Some(key) = last_key else {
                    self.without_key.record_pair(weight(packet), probability);
                    continue;
                };
                let digest = hasher.digest(key.as_bytes());
                let row = (pair % rows) as usize;
                let position = self.sketch.locate(row, digest);
                self.sketch.prefetch(position);
                self.sketch.prefetch_offer(digest);
                group[filled] = Sampled { packet, row, position };
                (digests[filled], keys[filled]) = (digest, Some(key));
                filled += 1;
            }
            for sampled in &group[..filled] {
                self.sketch.add_at(sampled.position, weight(sampled.packet).saturating_mul(increment));
            }
            self.sketch
                .offer(&digests[..filled], |position| keys[position].expect("a counted packet has a key"));
            if drawn < GROUP {
                self.without_key.withdraw_from(self.sketch.account_mut(), rows);
                return;
            }
        }
    }
}
