//! AlwaysLineRate: p from the arrival rate and a time budget.

use crate::probability::Probability;

/// The cost of updates and the time budget for them.
///
/// In each epoch the arrival rate gives the time available per packet: a share of a core, divided by packets per
/// second. A packet whose d rows are all updated takes d times the cost of a row. A packet whose rows are updated
/// with probability p takes d p times the cost of a sampled row, which is several times as much. The next epoch uses
/// p = 1 if that fits, else the largest p that does. So p falls with the logarithm of the rate, as in the paper
/// (section 4.2), but skips values that would cost more than p = 1: 1/2 and 1/4.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LineRate {
    /// The length of an epoch in nanoseconds.
    pub epoch_ns: u64,
    /// The part of a core's time that row updates may take, in 0..=1.
    pub share: f64,
    /// The time for the update of one row at p = 1, in nanoseconds.
    pub row_ns: f64,
    /// The time for the update of one sampled row, including its draw and its key's hash, in nanoseconds.
    pub sampled_row_ns: f64,
    /// The lower limit of p.
    pub min_probability: Probability,
}

/// The current epoch.
#[derive(Clone, Copy, Debug)]
pub(super) struct Epoch {
    begin_ns: u64,
    pub(super) packets: u64,
}

impl Epoch {
    pub(super) fn starting_at(begin_ns: u64) -> Epoch {
        Epoch { begin_ns, packets: 0 }
    }
}

/// 100 ms, a tenth of a core, 1.5 ns a row, 12 ns a sampled row, p down to 1/128.
impl Default for LineRate {
    fn default() -> LineRate {
        LineRate {
            epoch_ns: 100_000_000,
            share: 0.1,
            row_ns: 1.5,
            sampled_row_ns: 12.0,
            min_probability: Probability::PAPER_MIN,
        }
    }
}

impl LineRate {
    /// Returns p after an epoch of `packets` in `elapsed_ns`, for a sketch of `rows` rows.
    pub fn probability(&self, packets: u64, elapsed_ns: u64, rows: usize) -> Probability {
        if packets == 0 {
            return Probability::ONE;
        }
        let budget_ns = self.share * elapsed_ns as f64 / packets as f64;
        if budget_ns >= self.row_ns * rows as f64 {
            return Probability::ONE;
        }
        let probability = Probability::at_most(budget_ns / (self.sampled_row_ns * rows as f64));
        probability.max(self.min_probability)
    }

    /// Returns p of the next epoch if the current one has ended at `now_ns`; `epoch` then becomes the next one.
    pub(super) fn next(&self, epoch: &mut Epoch, now_ns: u64, rows: usize) -> Option<Probability> {
        let elapsed_ns = now_ns.saturating_sub(epoch.begin_ns);
        if elapsed_ns < self.epoch_ns.max(1) {
            return None;
        }
        let probability = self.probability(epoch.packets, elapsed_ns, rows);
        *epoch = Epoch::starting_at(now_ns);
        Some(probability)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn p_is_one_up_to_the_rate_that_a_core_handles_then_halves_as_the_rate_doubles() {
        let line_rate = LineRate { share: 0.15, row_ns: 3.0, sampled_row_ns: 24.0, ..LineRate::default() };
        // A packet's five rows take 15 ns: a 0.15 share of a core handles 10 million a second. Sampling with 1/8
        // takes as long, so 1/2 and 1/4 are never used.
        for (rate, expected) in
            [(0, 0), (1, 0), (10_000_000, 0), (10_000_001, 4), (20_000_000, 4), (40_000_000, 5)]
        {
            let probability = line_rate.probability(rate, 1_000_000_000, 5);
            assert_eq!(probability, Probability::new(expected).unwrap(), "{rate}");
        }
        assert_eq!(line_rate.probability(u64::MAX, 1, 5), Probability::PAPER_MIN);
    }
}
