//! A router's flow cache behind a packet sampler: turns a flow's packets into records.
//!
//! Each packet is sampled independently with probability 1/interval (random sampling, RFC 5475 section 5.2.2). An entry
//! starts with a sampled packet. It ends at the active timeout, or after the inactive timeout without a sampled packet
//! (RFC 5470 section 5.1.1, flow expiration); the next sampled packet starts a new entry. The draws follow exactly this
//! process: the number of sampled packets between the first and last of an entry is binomial, the distance to the next
//! geometric. If the probability of an inactive timeout is below e^-40, whole entries are drawn at once; otherwise
//! single sampled packets.

use super::binomial::Trials;
use super::pace::Pace;
use crate::random::Random;

/// Expected sampled packets per inactive timeout above which at least one is taken for certain.
const CERTAIN_SAMPLES: f64 = 40.0;

/// Reason for the end of an entry, as numbered by `flowEndReason` (136).
pub(super) const IDLE: u8 = 1;
/// See [`IDLE`].
pub(super) const ACTIVE_TIMEOUT: u8 = 2;

/// The sampling and timeouts of a router.
#[derive(Clone, Copy, Debug)]
pub(super) struct FlowCache {
    pub sampling: Trials,
    pub active_timeout_ns: u64,
    pub inactive_timeout_ns: u64,
}

/// A finished entry of the flow cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    /// Number of the first and the last sampled packet, from 0.
    pub first: u64,
    pub last: u64,
    /// Number of sampled packets.
    pub packets: u64,
    /// When it ended, relative to the flow's first packet.
    pub expired_ns: u64,
    /// [`IDLE`] or [`ACTIVE_TIMEOUT`].
    pub end_reason: u8,
}

impl FlowCache {
    /// Returns the first sampled packet from packet number `from` on.
    #[inline]
    pub(super) fn first_sampled(&self, pace: &Pace, from: u64, random: &mut Random) -> Option<u64> {
        let index = from.saturating_add(self.sampling.failures(random));
        (index < pace.packets()).then_some(index)
    }

    /// Returns the entry that starts with packet `first`, and the first packet of the next entry.
    pub(super) fn entry(&self, pace: &Pace, first: u64, random: &mut Random) -> (Entry, Option<u64>) {
        let deadline_ns = pace.offset_ns(first) + self.active_timeout_ns;
        let sampled_in_timeout =
            self.inactive_timeout_ns as f64 / pace.longest_interval_ns() as f64 * self.sampling.probability();
        let (last, packets, next) = match sampled_in_timeout >= CERTAIN_SAMPLES {
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

    /// Draws everything up to the deadline at once: the last sampled packet from the end, then the number between.
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
    fn unsampled_flows_are_split_at_the_active_timeout() {
        // 130 s at 100 packets per second.
        let pace = Pace::even(13_000, SECOND / 100);
        let entries = entries(&cache(1), &pace, 1);
        let fields: Vec<_> = entries.iter().map(|e| (e.first, e.last, e.packets, e.end_reason)).collect();
        assert_eq!(
            fields,
            [
                (0, 5_999, 6_000, ACTIVE_TIMEOUT),
                (6_000, 11_999, 6_000, ACTIVE_TIMEOUT),
                (12_000, 12_999, 1_000, IDLE)
            ]
        );
        assert_eq!(entries[2].expired_ns, pace.span_ns() + 15 * SECOND);
    }

    #[test]
    fn an_inactive_timeout_ends_an_entry() {
        let pace = Pace::even(3, 15 * SECOND);
        let fields: Vec<_> = entries(&cache(1), &pace, 1).iter().map(|e| (e.packets, e.end_reason)).collect();
        assert_eq!(fields, [(1, IDLE); 3]);
        let pace = Pace::even(3, 15 * SECOND - 1);
        assert_eq!(entries(&cache(1), &pace, 1)[0].packets, 3);
    }

    /// Compares sampled packets, entries and the sum of their lengths over 2,000 flows drawn with each algorithm: means
    /// agree within six standard errors of their difference (a false alarm below 1e-8 for each of the three).
    #[test]
    fn jump_and_walk_draw_the_same_process() {
        const FLOWS: u64 = 2_000;
        let cache = cache(1_000);
        // 8,000 packets per second: 120 are sampled in an inactive timeout.
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
