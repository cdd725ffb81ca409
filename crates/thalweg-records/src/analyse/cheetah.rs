//! Cheetah flows: more than so many bytes within so long (dissertation section 2.2: 1 GB within a minute).

/// The rule.
#[derive(Clone, Copy, Debug)]
pub(super) struct CheetahRule {
    pub(super) threshold_octets: i64,
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

impl CheetahRule {
    /// Whether some window holds more than the threshold, for records of one observation point ordered by their start.
    ///
    /// A window that holds the most can be moved until it begins where a record begins or ends where one ends, so only
    /// those are tried. For each, the records that may reach into it are a stretch of the order, found through the
    /// latest end so far; where all of theirs together is too little the window is not worked out.
    pub(super) fn holds(&self, records: &[Spread], scratch: &mut Reach) -> bool {
        let total = records.iter().fold(0i64, |sum, record| sum.saturating_add(record.octets));
        if total <= self.threshold_octets {
            return false;
        }
        if let [record] = records {
            let end = record.flow_start_us.saturating_add(self.window_us);
            return record.within(record.flow_start_us, end) > self.threshold_octets;
        }
        scratch.fill(records);
        records.iter().any(|record| {
            self.passed(records, scratch, record.flow_start_us)
                || self.passed(records, scratch, record.flow_end_us.saturating_sub(self.window_us))
        })
    }

    fn passed(&self, records: &[Spread], reach: &Reach, start: i64) -> bool {
        let end = start.saturating_add(self.window_us);
        let first = reach.latest_end.partition_point(|&latest| latest < start);
        let last = records.partition_point(|record| record.flow_start_us <= end);
        if first >= last || reach.sums[last].saturating_sub(reach.sums[first]) <= self.threshold_octets {
            return false;
        }
        let sum = records[first..last]
            .iter()
            .fold(0i64, |sum, record| sum.saturating_add(record.within(start, end)));
        sum > self.threshold_octets
    }
}

/// For records in order: how far those so far reach, and what they sum up to.
#[derive(Debug, Default)]
pub(super) struct Reach {
    latest_end: Vec<i64>,
    sums: Vec<i64>,
}

impl Reach {
    fn fill(&mut self, records: &[Spread]) {
        self.latest_end.clear();
        self.sums.clear();
        self.sums.push(0);
        let (mut latest, mut sum) = (i64::MIN, 0i64);
        for record in records {
            latest = latest.max(record.flow_end_us);
            sum = sum.saturating_add(record.octets);
            self.latest_end.push(latest);
            self.sums.push(sum);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULE: CheetahRule = CheetahRule { threshold_octets: 1_000, window_us: 60 };

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
}
