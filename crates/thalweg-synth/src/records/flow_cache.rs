//! A router's flow cache behind a packet sampler: which records become of a flow's packets.
//!
//! Each packet is sampled with probability 1/interval by itself (random sampling, RFC 5475 section 5.2.2). An entry
//! begins with a sampled packet. It ends when it is as old as the active time-out, or when no packet was sampled for the
//! inactive time-out (RFC 5470 section 5.1.1 calls these reasons of flow expiration); the next sampled packet begins
//! another. The draws are of exactly this process: between the sampled packets that bound an entry, the number sampled
//! is binomial, the distance to the next geometric. A flow whose packets are sampled often enough that an inactive
//! time-out without one has a probability below e^-40 is drawn an entry at a time, others a sampled packet at a time.

use super::binomial::Trials;
use super::pace::Pace;
use crate::random::Random;

/// Packets expected to be sampled in an inactive time-out from which on it is taken for granted that one is.
const CERTAIN: f64 = 40.0;

/// Why an entry ended, as `flowEndReason` (136) numbers it.
pub(super) const IDLE: u8 = 1;
/// See [`IDLE`].
pub(super) const ACTIVE_TIMEOUT: u8 = 2;

/// What a router does to flows.
#[derive(Clone, Copy, Debug)]
pub(super) struct FlowCache {
    pub sampling: Trials,
    pub active_timeout_ns: u64,
    pub inactive_timeout_ns: u64,
}

/// What an entry had counted when it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    /// Number of the first and of the last packet sampled, from 0.
    pub first: u64,
    pub last: u64,
    /// Packets sampled.
    pub packets: u64,
    /// When it ended, after the flow's first packet.
    pub expired_ns: u64,
    /// [`IDLE`] or [`ACTIVE_TIMEOUT`].
    pub end_reason: u8,
}

impl FlowCache {
    /// The first packet that is sampled from packet number `from` on.
    #[inline]
    pub(super) fn first_sampled(&self, pace: &Pace, from: u64, random: &mut Random) -> Option<u64> {
        let index = from.saturating_add(self.sampling.failures(random));
        (index < pace.packets()).then_some(index)
    }

    /// The entry that packet `first` begins, and the packet that begins the next.
    pub(super) fn entry(&self, pace: &Pace, first: u64, random: &mut Random) -> (Entry, Option<u64>) {
        let deadline_ns = pace.offset_ns(first) + self.active_timeout_ns;
        let sampled_in_timeout =
            self.inactive_timeout_ns as f64 / pace.longest_interval_ns() as f64 * self.sampling.probability();
        let (last, packets, next) = match sampled_in_timeout >= CERTAIN {
            true => self.jump(pace, first, deadline_ns, random),
            false => self.walk(pace, first, deadline_ns, random),
        };
        let idle_ns = pace.offset_ns(last) + self.inactive_timeout_ns;
        let (expired_ns, end_reason) = match idle_ns < deadline_ns {
            true => (idle_ns, IDLE),
            false => (deadline_ns, ACTIVE_TIMEOUT),
        };
        (Entry { first, last, packets, expired_ns, end_reason }, next)
    }

    /// All until the deadline at once: the last sampled packet is found from the end, those between are counted.
    fn jump(
        &self,
        pace: &Pace,
        first: u64,
        deadline_ns: u64,
        random: &mut Random,
    ) -> (u64, u64, Option<u64>) {
        let end = pace.before(deadline_ns);
        let others = end - first - 1;
        let behind_last = self.sampling.failures(random);
        let (last, packets) = match behind_last < others {
            true => (end - 1 - behind_last, 2 + self.sampling.successes(others - behind_last - 1, random)),
            false => (first, 1),
        };
        (last, packets, self.first_sampled(pace, end, random))
    }

    fn walk(
        &self,
        pace: &Pace,
        first: u64,
        deadline_ns: u64,
        random: &mut Random,
    ) -> (u64, u64, Option<u64>) {
        let (mut last, mut packets) = (first, 1);
        loop {
            let next = self.first_sampled(pace, last + 1, random);
            let Some(index) = next else { return (last, packets, None) };
            let time_ns = pace.offset_ns(index);
            let is_idle = time_ns - pace.offset_ns(last) >= self.inactive_timeout_ns;
            if is_idle || time_ns >= deadline_ns {
                return (last, packets, next);
            }
            (last, packets) = (index, packets + 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn cache(interval: u32) -> FlowCache {
        FlowCache {
            sampling: Trials::one_in(interval),
            active_timeout_ns: 60 * SECOND,
            inactive_timeout_ns: 15 * SECOND,
        }
    }

    fn entries(cache: &FlowCache, pace: &Pace, seed: u64) -> Vec<Entry> {
        let mut random = Random::new(seed);
        let mut entries = Vec::new();
        let mut next = cache.first_sampled(pace, 0, &mut random);
        while let Some(first) = next {
            let (entry, after) = cache.entry(pace, first, &mut random);
            entries.push(entry);
            next = after;
        }
        entries
    }

    #[test]
    fn without_sampling_every_packet_is_in_an_entry_of_at_most_the_active_timeout() {
        // 130 s of 100 packets a second.
        let pace = Pace::even(13_000, SECOND / 100);
        let entries = entries(&cache(1), &pace, 1);
        let told: Vec<_> = entries.iter().map(|e| (e.first, e.last, e.packets, e.end_reason)).collect();
        assert_eq!(
            told,
            [
                (0, 5_999, 6_000, ACTIVE_TIMEOUT),
                (6_000, 11_999, 6_000, ACTIVE_TIMEOUT),
                (12_000, 12_999, 1_000, IDLE)
            ]
        );
        assert_eq!(entries[2].expired_ns, pace.span_ns() + 15 * SECOND);
    }

    #[test]
    fn silence_of_the_inactive_timeout_ends_an_entry() {
        let pace = Pace::even(3, 15 * SECOND);
        let told: Vec<_> = entries(&cache(1), &pace, 1).iter().map(|e| (e.packets, e.end_reason)).collect();
        assert_eq!(told, [(1, IDLE); 3]);
        let pace = Pace::even(3, 15 * SECOND - 1);
        assert_eq!(entries(&cache(1), &pace, 1)[0].packets, 3);
    }

    /// Packets sampled, entries and the sum of their lengths, over 2,000 flows drawn both ways: means agree within six
    /// standard errors of their difference (a false alarm below 1e-8 for each of the three).
    #[test]
    fn an_entry_at_a_time_and_a_packet_at_a_time_are_one_process() {
        const FLOWS: u64 = 2_000;
        let cache = cache(1_000);
        // 8,000 packets a second: 120 are sampled in an inactive time-out.
        let pace = Pace::even(8_000 * 100, SECOND / 8_000);
        let totals = |jumps: bool| -> Vec<[f64; 3]> {
            let flow = |seed| {
                let mut random = Random::new(seed);
                let mut totals = [0.0; 3];
                let mut next = cache.first_sampled(&pace, 0, &mut random);
                while let Some(first) = next {
                    let deadline_ns = pace.offset_ns(first) + cache.active_timeout_ns;
                    let (last, packets, after) = match jumps {
                        true => cache.jump(&pace, first, deadline_ns, &mut random),
                        false => cache.walk(&pace, first, deadline_ns, &mut random),
                    };
                    let length = pace.offset_ns(last) - pace.offset_ns(first);
                    for (total, one) in totals.iter_mut().zip([packets as f64, 1.0, length as f64 / 1e9]) {
                        *total += one;
                    }
                    next = after;
                }
                totals
            };
            (0..FLOWS).map(|number| flow(2 * number + u64::from(jumps))).collect()
        };
        let (jumped, walked) = (totals(true), totals(false));
        for quantity in 0..3 {
            let moments = |flows: &[[f64; 3]]| {
                let mean = flows.iter().map(|flow| flow[quantity]).sum::<f64>() / FLOWS as f64;
                let square = flows.iter().map(|flow| (flow[quantity] - mean).powi(2)).sum::<f64>();
                (mean, square / (FLOWS * (FLOWS - 1)) as f64)
            };
            let ((jumped, its_square), (walked, other_square)) = (moments(&jumped), moments(&walked));
            let error = (its_square + other_square).sqrt();
            assert!((jumped - walked).abs() <= 6.0 * error, "{quantity}: {jumped} {walked} {error}");
        }
    }
}
