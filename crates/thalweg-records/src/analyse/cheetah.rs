//! Cheetah flows: more than so many bytes within so long (dissertation section 2.2: 1 GB within a minute).

/// The rule.
#[derive(Clone, Copy, Debug)]
pub(super) struct CheetahRule {
    pub(super) threshold_bytes: i64,
    pub(super) window_us: i64,
}

/// When a record began and ended, and its scaled octets, spread evenly from one to the other.
#[derive(Clone, Copy, Debug)]
pub(super) struct Spread {
    pub(super) flow_start_us: i64,
    pub(super) flow_end_us: i64,
    pub(super) octets: i64,
}

impl Spread {
    /// Octets from `start` to `end`, both included; of a part of the record rounded down.
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

/// Up to so many records, all are looked at for each window.
const FEW: usize = 32;

impl CheetahRule {
    /// Whether some window holds more than the threshold, for records of one observation point ordered by their start.
    ///
    /// A window that holds the most can be moved until it begins where a record begins or ends where one ends, so only
    /// those are tried. Of many records that overlap, each window is first [estimated](Reach) in logarithmic time; only
    /// one so close to the threshold that what is rounded down may decide, an octet or so for each record that the window
    /// cuts, is worked out record by record.
    pub(super) fn holds(&self, records: &[Spread], scratch: &mut Reach) -> bool {
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
        if records.len() <= FEW {
            return windows.any(|(start, end)| self.passed(records, start, end));
        }
        scratch.fill(records);
        let threshold = i128::from(self.threshold_bytes);
        windows.any(|(start, end)| match scratch.bounds(start, end) {
            (least, _) if least > threshold => true,
            (_, most) if most <= threshold => false,
            _ => self.passed(records, start, end),
        })
    }

    fn passed(&self, records: &[Spread], start: i64, end: i64) -> bool {
        let octets = records.iter().map(|record| record.within(start, end));
        octets.fold(0i64, i64::saturating_add) > self.threshold_bytes
    }
}

/// What records sent up to any time, to within a bound, from sums over those that had begun and those that had ended.
///
/// A record that lasts sends at a rate; that, and the sums, are whole numbers of 2^-32 octets a microsecond. Sums wrap,
/// as the difference that counts is small again.
#[derive(Debug, Default)]
pub(super) struct Reach {
    begun: Sums,
    ended: Sums,
    /// What an estimate may be wrong by for each record that is cut, octets.
    slack: i128,
}

/// Sums over records in the order of a time.
#[derive(Debug, Default)]
struct Sums {
    times: Vec<i64>,
    /// Of the first so many: octets, rates, and rates times starts.
    sums: Vec<[u128; 3]>,
}

/// Bits after the point.
const FRACTION: u32 = 32;

impl Reach {
    fn fill(&mut self, records: &[Spread]) {
        let origin = records[0].flow_start_us;
        self.begun.fill(records.iter().map(|record| (record.flow_start_us, record)), origin);
        let mut by_end: Vec<&Spread> = records.iter().collect();
        by_end.sort_unstable_by_key(|record| record.flow_end_us);
        self.ended.fill(by_end.into_iter().map(|record| (record.flow_end_us, record)), origin);
        // Rounded down is the rate, by less than 2^-32 octets a microsecond; the octets, by less than one; and the double
        // that is rounded to them, by less than 2^-50 of it.
        let length = records.iter().map(|record| record.flow_end_us - record.flow_start_us).max();
        let octets = records.iter().map(|record| record.octets).max();
        self.slack = i128::from(2 + (length.unwrap_or(0) >> FRACTION) + (octets.unwrap_or(0) >> 50));
    }

    /// What the window from `start` to `end`, both included, holds at least and at most.
    fn bounds(&self, start: i64, end: i64) -> (i128, i128) {
        let (before, cut_before) = self.up_to(start, false);
        let (after, cut_after) = self.up_to(end, true);
        let octets = (after.wrapping_sub(before) as i128) >> FRACTION;
        // One more for the point cut off.
        let slack = (cut_before + cut_after) as i128 * self.slack + 1;
        (octets - slack, octets + slack)
    }

    /// What was sent before `time`, or up to and with it, and how many records it cuts.
    fn up_to(&self, time: i64, with: bool) -> (u128, usize) {
        let came = |sums: &Sums| sums.times.partition_point(|&other| other < time || with && other == time);
        let (begun, ended) = (came(&self.begun), came(&self.ended));
        let ([_, rates, offsets], [octets, ended_rates, ended_offsets]) =
            (self.begun.sums[begun], self.ended.sums[ended]);
        let since = i128::from(time) - i128::from(self.begun.times[0]);
        let cut = rates.wrapping_sub(ended_rates).wrapping_mul(since as u128);
        let cut = cut.wrapping_sub(offsets.wrapping_sub(ended_offsets));
        ((octets << FRACTION).wrapping_add(cut), begun - ended)
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
            // What takes no time is never cut.
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

    const RULE: CheetahRule = CheetahRule { threshold_bytes: 1_000, window_us: 60 };

    fn cheetah(records: &[(i64, i64, i64)]) -> bool {
        let spread = |&(flow_start_us, flow_end_us, octets)| Spread { flow_start_us, flow_end_us, octets };
        RULE.holds(&records.iter().map(spread).collect::<Vec<_>>(), &mut Reach::default())
    }

    #[test]
    fn strictly_more_than_the_threshold_in_a_window_is_a_cheetah() {
        assert!(!cheetah(&[(0, 60, 1_000)]));
        assert!(cheetah(&[(0, 60, 1_001)]));
        assert!(cheetah(&[(5, 5, 1_001)]));
        // Both ends belong to the window.
        assert!(cheetah(&[(0, 0, 500), (60, 60, 501)]));
        assert!(!cheetah(&[(0, 0, 500), (61, 61, 501)]));
    }

    #[test]
    fn a_record_is_spread_evenly_and_its_part_rounded_down() {
        // 60 of 120: half of 2002 is 1001; half of 2001 is 1000.5, which is not more than 1000.
        assert!(cheetah(&[(0, 120, 2_002)]));
        assert!(!cheetah(&[(0, 120, 2_001)]));
    }

    #[test]
    fn the_window_that_ends_with_a_record_counts_as_well() {
        // From 40 on to 100: 60 of 80 of the first (750), and the second.
        assert!(cheetah(&[(20, 100, 1_000), (100, 100, 251)]));
        assert!(!cheetah(&[(20, 100, 1_000), (100, 100, 250)]));
    }

    #[test]
    fn records_that_overlap_are_spread_each_on_its_own() {
        assert!(cheetah(&[(0, 1_000_000, 1_000), (10, 20, 600), (15, 40, 401)]));
        assert!(!cheetah(&[(0, 1_000_000, 1_000), (10, 20, 600), (15, 40, 400)]));
    }

    proptest! {
        /// Times, octets and thresholds of which many windows are within an octet of each other.
        #[test]
        fn windows_over_many_records_hold_what_they_hold_record_by_record(
            mut records in prop::collection::vec((-300i64..300, 0i64..200, 0i64..3_000), FEW + 1..200),
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
            let most = starts.clone().map(in_window).max().unwrap();
            let mut reach = Reach::default();
            for threshold_bytes in [most - 1, most, (most as f64 * share) as i64] {
                let rule = CheetahRule { threshold_bytes, window_us };
                prop_assert_eq!(rule.holds(&records, &mut reach), most > threshold_bytes);
            }
            for start in starts {
                let (least, most) = reach.bounds(start, start + window_us);
                prop_assert!((least..=most).contains(&in_window(start).into()));
            }
        }
    }

    /// Record by record this would take 10^11 looks.
    #[test]
    fn records_that_all_overlap_are_not_each_held_against_each() {
        let records: Vec<Spread> = (0..200_000)
            .map(|n| Spread { flow_start_us: n, flow_end_us: 1 << 40, octets: 1 << 20 })
            .collect();
        let total = 200_000i64 << 20;
        let rule = CheetahRule { threshold_bytes: total / 1_000, window_us: 60_000_000 };
        assert!(!rule.holds(&records, &mut Reach::default()));
        let all = CheetahRule { threshold_bytes: total - 200_000 * 8, window_us: 1 << 40 };
        assert!(all.holds(&records, &mut Reach::default()));
    }
}
