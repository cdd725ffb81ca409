//! Elephant flows: flows that send more than a threshold within a window (dissertation section 2.2: 1 GB within a minute).

/// Threshold and window.
#[derive(Clone, Copy, Debug)]
pub(super) struct ElephantRule {
    pub(super) threshold_bytes: i64,
    pub(super) window_us: i64,
}

/// Times and scaled octets of a record. Its octets are assumed to be spread evenly over its duration.
#[derive(Clone, Copy, Debug)]
pub(super) struct Spread {
    pub(super) flow_start_us: i64,
    pub(super) flow_end_us: i64,
    pub(super) octets: i64,
}

impl Spread {
    /// Returns the octets from `start` to `end` inclusive; a partial record is rounded down.
    #[inline]
    fn within(&self, start: i64, end: i64) -> i64 {
        let (first, last) = (self.flow_start_us.max(start), self.flow_end_us.min(end));
        if first > last {
            0
        } else if first == self.flow_start_us && last == self.flow_end_us {
            self.octets
        } else {
            let length = self.flow_end_us - self.flow_start_us;
            (self.octets as f64 * (last - first) as f64 / length as f64).floor() as i64
        }
    }
}

/// Maximum number of records for which each window is computed exactly.
const MAX_EXACT: usize = 32;

impl ElephantRule {
    /// Returns whether some window holds more than the threshold. The records are of one observation point, ordered by start.
    ///
    /// A window with the maximum can be shifted until it starts at the start of a record or ends at the end of one, so only
    /// those are tested. With many records, each window is first [estimated](WindowEstimator) in logarithmic time. It is
    /// computed exactly only if rounding could decide, that is, within about one octet per record that the window cuts.
    pub(super) fn holds(&self, records: &[Spread], scratch: &mut WindowEstimator) -> bool {
        let total = records.iter().fold(0i64, |sum, record| sum.saturating_add(record.octets));
        if total <= self.threshold_bytes {
            return false;
        }
        if let [record] = records {
            let end = record.flow_start_us.saturating_add(self.window_us);
            return record.within(record.flow_start_us, end) > self.threshold_bytes;
        }
        let mut windows = records
            .iter()
            .flat_map(|record| [record.flow_start_us, record.flow_end_us.saturating_sub(self.window_us)])
            .map(|start| (start, start.saturating_add(self.window_us)));
        if records.len() <= MAX_EXACT {
            return windows.any(|(start, end)| self.exceeds_threshold(records, start, end));
        }
        scratch.fill(records);
        let threshold = i128::from(self.threshold_bytes);
        windows.any(|(start, end)| match scratch.bounds(start, end) {
            (min, _) if min > threshold => true,
            (_, max) if max <= threshold => false,
            _ => self.exceeds_threshold(records, start, end),
        })
    }

    fn exceeds_threshold(&self, records: &[Spread], start: i64, end: i64) -> bool {
        let octets = records.iter().map(|record| record.within(start, end));
        octets.fold(0i64, i64::saturating_add) > self.threshold_bytes
    }
}

/// Estimates the octets in a window with error bounds, from prefix sums over record starts and over record ends.
///
/// The rate of a record and the sums are multiples of 2^-32 octets per microsecond. Sums wrap around; their differences
/// are small again.
#[derive(Debug, Default)]
pub(super) struct WindowEstimator {
    started: Sums,
    ended: Sums,
    /// Maximum error for each record that a window cuts, in octets.
    slack: i128,
}

/// Prefix sums over records, ordered by a time.
#[derive(Debug, Default)]
struct Sums {
    times: Vec<i64>,
    /// Sums over a prefix: octets, rates, and rates times starts.
    sums: Vec<[u128; 3]>,
}

/// Number of fractional bits.
const FRACTION: u32 = 32;

impl WindowEstimator {
    fn fill(&mut self, records: &[Spread]) {
        let origin = records[0].flow_start_us;
        self.started.fill(records.iter().map(|record| (record.flow_start_us, record)), origin);
        let mut by_end: Vec<&Spread> = records.iter().collect();
        by_end.sort_unstable_by_key(|record| record.flow_end_us);
        self.ended.fill(by_end.into_iter().map(|record| (record.flow_end_us, record)), origin);
        // Rounding errors: the rate, below 2^-32 octets per microsecond; the octets, below one; the conversion from double,
        // below 2^-50 of the octets.
        let length = records.iter().map(|record| record.flow_end_us - record.flow_start_us).max();
        let octets = records.iter().map(|record| record.octets).max();
        self.slack = i128::from(2 + (length.unwrap_or(0) >> FRACTION) + (octets.unwrap_or(0) >> 50));
    }

    /// Returns the minimum and maximum of the octets from `start` to `end` inclusive.
    fn bounds(&self, start: i64, end: i64) -> (i128, i128) {
        let (before, cut_before) = self.up_to(start, false);
        let (after, cut_after) = self.up_to(end, true);
        let octets = (after.wrapping_sub(before) as i128) >> FRACTION;
        // One more for the truncated fraction.
        let slack = (cut_before + cut_after) as i128 * self.slack + 1;
        (octets - slack, octets + slack)
    }

    /// Returns the octets sent before `time`, or until `time` inclusive, and the number of records that it cuts.
    fn up_to(&self, time: i64, with: bool) -> (u128, usize) {
        let count = |sums: &Sums| sums.times.partition_point(|&other| other < time || with && other == time);
        let (started, ended) = (count(&self.started), count(&self.ended));
        let ([_, rates, offsets], [octets, ended_rates, ended_offsets]) =
            (self.started.sums[started], self.ended.sums[ended]);
        let since = i128::from(time) - i128::from(self.started.times[0]);
        let cut = rates.wrapping_sub(ended_rates).wrapping_mul(since as u128);
        let cut = cut.wrapping_sub(offsets.wrapping_sub(ended_offsets));
        ((octets << FRACTION).wrapping_add(cut), started - ended)
    }
}

impl Sums {
    fn fill<'a>(&mut self, records: impl Iterator<Item = (i64, &'a Spread)>, origin: i64) {
        self.times.clear();
        self.sums.clear();
        let mut sums = [0u128; 3];
        self.sums.push(sums);
        for (time, record) in records {
            let octets = record.octets as u128;
            let length = (record.flow_end_us - record.flow_start_us) as u128;
            // A record without duration is never cut.
            let rate = (octets << FRACTION).checked_div(length).unwrap_or(0);
            let offset = rate.wrapping_mul((record.flow_start_us - origin) as u128);
            for (sum, more) in sums.iter_mut().zip([octets, rate, offset]) {
                *sum = sum.wrapping_add(more);
            }
            self.times.push(time);
            self.sums.push(sums);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const RULE: ElephantRule = ElephantRule { threshold_bytes: 1_000, window_us: 60 };

    fn elephant(records: &[(i64, i64, i64)]) -> bool {
        let spread = |&(flow_start_us, flow_end_us, octets)| Spread { flow_start_us, flow_end_us, octets };
        RULE.holds(&records.iter().map(spread).collect::<Vec<_>>(), &mut WindowEstimator::default())
    }

    #[test]
    fn an_elephant_exceeds_the_threshold_in_a_window() {
        assert!(!elephant(&[(0, 60, 1_000)]));
        assert!(elephant(&[(0, 60, 1_001)]));
        assert!(elephant(&[(5, 5, 1_001)]));
        // Both ends belong to the window.
        assert!(elephant(&[(0, 0, 500), (60, 60, 501)]));
        assert!(!elephant(&[(0, 0, 500), (61, 61, 501)]));
    }

    #[test]
    fn the_bytes_of_a_record_partly_in_a_window_are_rounded_down() {
        // 60 of 120: half of 2002 is 1001; half of 2001 is 1000.5, which is not more than 1000.
        assert!(elephant(&[(0, 120, 2_002)]));
        assert!(!elephant(&[(0, 120, 2_001)]));
    }

    #[test]
    fn windows_may_end_with_a_record() {
        // From 40 to 100: 60 of 80 of the first record (750), and the second.
        assert!(elephant(&[(20, 100, 1_000), (100, 100, 251)]));
        assert!(!elephant(&[(20, 100, 1_000), (100, 100, 250)]));
    }

    #[test]
    fn overlapping_records_are_spread_separately() {
        assert!(elephant(&[(0, 1_000_000, 1_000), (10, 20, 600), (15, 40, 401)]));
        assert!(!elephant(&[(0, 1_000_000, 1_000), (10, 20, 600), (15, 40, 400)]));
    }

    proptest! {
        /// Parameters for which many windows differ by less than an octet.
        #[test]
        fn estimates_agree_with_exact_windows(
            mut records in prop::collection::vec((-300i64..300, 0i64..200, 0i64..3_000), MAX_EXACT + 1..200),
            window_us in 0i64..300,
            share in 0.0..1.2f64,
        ) {
            records.sort_unstable();
            let records: Vec<Spread> = records
                .into_iter()
                .map(|(start, length, octets)| Spread {
                    flow_start_us: start,
                    flow_end_us: start + length,
                    octets,
                })
                .collect();
            let in_window = |start: i64| {
                records.iter().map(|record| record.within(start, start + window_us)).sum::<i64>()
            };
            let starts = records.iter().flat_map(|r| [r.flow_start_us, r.flow_end_us - window_us]);
            let max = starts.clone().map(in_window).max().unwrap();
            let mut estimator = WindowEstimator::default();
            for threshold_bytes in [max - 1, max, (max as f64 * share) as i64] {
                let rule = ElephantRule { threshold_bytes, window_us };
                prop_assert_eq!(rule.holds(&records, &mut estimator), max > threshold_bytes);
            }
            for start in starts {
                let (min, max) = estimator.bounds(start, start + window_us);
                prop_assert!((min..=max).contains(&in_window(start).into()));
            }
        }
    }

    /// Exact windows would take 10^11 steps.
    #[test]
    fn many_overlapping_records_are_fast() {
        let records: Vec<Spread> = (0..200_000)
            .map(|n| Spread { flow_start_us: n, flow_end_us: 1 << 40, octets: 1 << 20 })
            .collect();
        let total = 200_000i64 << 20;
        let rule = ElephantRule { threshold_bytes: total / 1_000, window_us: 60_000_000 };
        assert!(!rule.holds(&records, &mut WindowEstimator::default()));
        let all = ElephantRule { threshold_bytes: total - 200_000 * 8, window_us: 1 << 40 };
        assert!(all.holds(&records, &mut WindowEstimator::default()));
    }
}
