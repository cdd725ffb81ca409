//! AlwaysLineRate: p from the arrival rate and a budget of time.

use crate::probability::Probability;

/// What keeping up costs, and how much of it there may be.
///
/// In each epoch the arrival rate gives the time that there is for a packet: a share of a core, divided by packets
/// a second. A packet whose d rows are all updated takes d times the cost of a row; one whose rows are updated with
/// probability p takes d p times the cost of a sampled row, which is several times as much. The next epoch has p = 1
/// if that fits, else the largest p that does, so p falls with the logarithm of the rate, as in the paper (section
/// 4.2), but skips those that would cost more than p = 1: 1/2 and 1/4.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LineRate {
    /// Length of an epoch in nanoseconds.
    pub epoch_ns: u64,
    /// Part of a core's time that row updates may take, in 0..=1.
    pub share: f64,
    /// Time that the update of one row takes at p = 1, in nanoseconds.
    pub row_ns: f64,
    /// Time that the update of one sampled row takes, its draw and its key's hash included, in nanoseconds.
    pub sampled_row_ns: f64,
    /// p does not fall below this.
    pub least: Probability,
}

/// An epoch under way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Epoch {
    begin_ns: u64,
    pub(super) packets: u64,
}

impl Epoch {
    pub(super) fn beginning(begin_ns: u64) -> Epoch {
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
            least: Probability::PAPER_LEAST,
        }
    }
}

impl LineRate {
    /// The p after an epoch of `packets` in `elapsed_ns`, for a sketch of `rows` rows.
    pub fn probability(&self, packets: u64, elapsed_ns: u64, rows: usize) -> Probability {
        if packets == 0 {
            return Probability::ONE;
        }
        let budget_ns = self.share * elapsed_ns as f64 / packets as f64;
        if budget_ns >= self.row_ns * rows as f64 {
            return Probability::ONE;
        }
        let probability = Probability::at_most(budget_ns / (self.sampled_row_ns * rows as f64));
        probability.max(self.least)
    }

    /// The p of the next epoch, if this one is over at `now_ns`; then `epoch` is the next one.
    pub(super) fn next(&self, epoch: &mut Epoch, now_ns: u64, rows: usize) -> Option<Probability> {
        let elapsed_ns = now_ns.saturating_sub(epoch.begin_ns);
        if elapsed_ns < self.epoch_ns.max(1) {
            return None;
        }
        let probability = self.probability(epoch.packets, elapsed_ns, rows);
        *epoch = Epoch::beginning(now_ns);
        Some(probability)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn twice_the_rate_has_half_the_probability() {
        let line_rate = LineRate { share: 0.15, row_ns: 3.0, sampled_row_ns: 24.0, ..LineRate::default() };
        // A packet's five rows take 15 ns: a 0.15 share of a core has 10 million a second of them. Sampled with 1/8
        // they take as much, so that there is no 1/2 and no 1/4.
        for (rate, expected) in
            [(0, 0), (1, 0), (10_000_000, 0), (10_000_001, 4), (20_000_000, 4), (40_000_000, 5)]
        {
            let probability = line_rate.probability(rate, 1_000_000_000, 5);
            assert_eq!(probability, Probability::new(expected).unwrap(), "{rate}");
        }
        assert_eq!(line_rate.probability(u64::MAX, 1, 5), Probability::PAPER_LEAST);
    }
}
