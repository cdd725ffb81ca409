//! Packets per flow: a bounded, discrete Pareto distribution with an exact sum.
//!
//! Sizes are taken at evenly spaced quantiles, not drawn. Of `F` flows, the one of rank `r` (0 is the largest) has the
//! size that a share `(r + 1/2) / F` of a Pareto distribution exceeds: Zipf's law of rank and size with exponent
//! `1 / shape`, the same for every seed. The remaining packets, about a percent, are spread in proportion to size. After
//! any number of flows, the allotted packets are the rounded-down proportional share, so the last flow completes the
//! exact total, in constant memory and in any order of flows.

use libm::pow;

/// Shapes searched for a given mean. The mean falls as the shape rises.
const SHAPES: std::ops::Range<f64> = 0.05..16.0;

/// Sizes of a population of flows.
pub(super) struct FlowSizes {
    flows: u64,
    packets: u64,
    shape: f64,
    /// `H^-shape` for the largest size `H`.
    tail: f64,
    /// Sum of the weights of all ranks; a weight is an unscaled size minus one.
    total_weight: u64,
    /// Weight, and packets beyond the first, of the flows allotted so far.
    allotted_weight: u64,
    allotted: u64,
}

impl FlowSizes {
    /// Distributes `packets` over `flows` (at least one, at most `packets`), no flow much above `largest`. Without a
    /// `shape`, fits it to the mean.
    pub(super) fn new(flows: u64, packets: u64, largest: u64, shape: Option<f64>) -> FlowSizes {
        let largest = largest.max(2);
        let shape = shape.unwrap_or_else(|| fit_shape(packets as f64 / flows as f64, largest));
        let tail = pow(largest as f64, -shape);
        let mut sizes =
            FlowSizes { flows, packets, shape, tail, total_weight: 0, allotted_weight: 0, allotted: 0 };
        sizes.total_weight = (0..flows).map(|rank| sizes.weight(rank)).sum();
        sizes
    }

    /// Returns the packets of the flow of `rank`, at least one. Call it once per rank.
    pub(super) fn allot(&mut self, rank: u64) -> u64 {
        self.allotted_weight += self.weight(rank);
        let spare = u128::from(self.packets - self.flows);
        let due = (u128::from(self.allotted_weight) * spare / u128::from(self.total_weight)) as u64;
        1 + due - std::mem::replace(&mut self.allotted, due)
    }

    fn weight(&self, rank: u64) -> u64 {
        let exceeding = (rank as f64 + 0.5) / self.flows as f64;
        let size = pow(exceeding * (1.0 - self.tail) + self.tail, -1.0 / self.shape);
        // The largest flow has at least two packets, so the sum of weights is not zero.
        (size as u64 - 1).max(u64::from(rank == 0))
    }
}

/// Returns the shape in [`SHAPES`] with the mean closest to `mean`.
fn fit_shape(mean: f64, largest: u64) -> f64 {
    let (mut low, mut high) = (SHAPES.start, SHAPES.end);
    for _ in 0..50 {
        let middle = (low + high) / 2.0;
        if mean_size(middle, largest) > mean { low = middle } else { high = middle }
    }
    (low + high) / 2.0
}

/// Returns the mean of the distribution: the sum over `k` of the share of flows with at least `k` packets,
/// `(k^-shape - H^-shape) / (1 - H^-shape)`; an integral from `k = 64` on.
fn mean_size(shape: f64, largest: u64) -> f64 {
    let tail = pow(largest as f64, -shape);
    let head = largest.min(64);
    let mut powers: f64 = (1..=head).map(|k| pow(k as f64, -shape)).sum();
    let (from, to) = (head as f64 + 0.5, largest as f64 + 0.5);
    powers += match 1.0 - shape {
        exponent if exponent.abs() < 1e-9 => libm::log(to / from),
        exponent => (pow(to, exponent) - pow(from, exponent)) / exponent,
    };
    (powers - largest as f64 * tail) / (1.0 - tail)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(flows: u64, packets: u64, largest: u64, shape: Option<f64>) -> Vec<u64> {
        let mut sizes = FlowSizes::new(flows, packets, largest, shape);
        (0..flows).map(|rank| sizes.allot(rank)).collect()
    }

    #[test]
    fn sizes_sum_to_the_exact_total() {
        for (flows, packets) in
            [(1, 1), (1, 9), (7, 7), (7, 8), (1_000, 1_001), (1_000, 25_333), (3, 1_000_000), (5_000, 6_000)]
        {
            for shape in [None, Some(0.8), Some(1.2)] {
                let sizes = all(flows, packets, 10_000, shape);
                assert_eq!(sizes.iter().sum::<u64>(), packets, "{flows} flows");
                assert!(sizes.iter().all(|&size| size >= 1));
            }
        }
    }

    #[test]
    fn the_fitted_shape_needs_little_scaling() {
        let sizes = all(100_000, 2_533_333, 100_000, None);
        let largest = *sizes.iter().max().unwrap();
        assert!((60_000..120_000).contains(&largest), "{largest}");
        let single = sizes.iter().filter(|&&size| size == 1).count();
        assert!((30_000..60_000).contains(&single), "{single}");
    }

    /// Rank times size^shape is constant for a Pareto tail: within a tenth over two decades.
    #[test]
    fn rank_and_size_follow_zipf() {
        let sizes = all(1_000_000, 20_000_000, 1_000_000, Some(1.0));
        let at = |rank: u64| (rank as f64 + 0.5) * sizes[rank as usize] as f64;
        for rank in [1_000, 3_000, 10_000] {
            assert!((at(rank) / at(30_000) - 1.0).abs() < 0.1, "{} {}", at(rank), at(30_000));
        }
    }
}
