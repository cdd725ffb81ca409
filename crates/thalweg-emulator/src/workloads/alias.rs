//! Draws from a table of weights in constant time (Walker 1977, with the linear construction of Vose 1991).
//!
//! `n` columns of equal height each hold an item and, above a threshold, part of another one, its alias. A draw takes
//! one random number: its high part selects the column, the rest the item. Probabilities are off by at most `n *
//! 2^-52`, from rounding in the construction. 16 bytes per item, one of them read per draw.

use super::WorkloadError;
use super::random::scaled;

/// A table of weights.
#[derive(Clone, Debug)]
pub struct Alias {
    columns: Box<[Column]>,
}

#[derive(Clone, Copy, Debug)]
struct Column {
    /// The column's own item is drawn below this threshold, out of 2^64.
    threshold: u64,
    alias: u32,
}

impl Alias {
    /// A table in which item `i` has the weight `weights[i]`.
    ///
    /// # Errors
    /// [`WorkloadError::Weight`] unless the weights are finite and not negative, with one above zero.
    pub fn new(weights: &[f64]) -> Result<Alias, WorkloadError> {
        if let Some(&weight) = weights.iter().find(|weight| !(weight.is_finite() && **weight >= 0.0)) {
            return Err(WorkloadError::Weight(weight));
        }
        let sum: f64 = weights.iter().sum();
        if !(sum.is_finite() && sum > 0.0) {
            return Err(WorkloadError::Weight(sum));
        }
        let mut heights: Vec<f64> =
            weights.iter().map(|weight| weight / sum * weights.len() as f64).collect();
        let (mut short, mut tall): (Vec<usize>, Vec<usize>) =
            (0..heights.len()).partition(|&item| heights[item] < 1.0);
        let full = |item: usize| Column { threshold: u64::MAX, alias: item as u32 };
        let mut columns: Box<[Column]> = (0..heights.len()).map(full).collect();
        while let (Some(&low), Some(&high)) = (short.last(), tall.last()) {
            short.pop();
            // 2^64 * height; the conversion saturates.
            columns[low] = Column {
                threshold: (heights[low] * 18_446_744_073_709_551_616.0) as u64,
                alias: high as u32,
            };
            heights[high] -= 1.0 - heights[low];
            if heights[high] < 1.0 {
                tall.pop();
                short.push(high);
            }
        }
        Ok(Alias { columns })
    }

    /// The number of items.
    pub fn len(&self) -> usize {
        self.columns.len()
    }

    /// Whether there are no items, which cannot be: the weights have a positive sum.
    pub fn is_empty(&self) -> bool {
        self.columns.is_empty()
    }

    /// The item for these 64 random bits.
    #[inline]
    pub fn draw(&self, bits: u64) -> usize {
        let (item, rest) = scaled(bits, self.columns.len() as u64);
        let column = self.columns[item as usize];
        if rest < column.threshold { item as usize } else { column.alias as usize }
    }

    /// The probability of each item in the table.
    pub fn probabilities(&self) -> Vec<f64> {
        let mut sums = vec![0.0; self.columns.len()];
        for (item, column) in self.columns.iter().enumerate() {
            let own = column.threshold as f64 / 18_446_744_073_709_551_616.0;
            sums[item] += own;
            sums[column.alias as usize] += 1.0 - own;
        }
        sums.iter().map(|sum| sum / self.columns.len() as f64).collect()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::workloads::random::Random;

    proptest! {
        #[test]
        fn the_alias_table_reproduces_the_weights(weights in prop::collection::vec(0.0..1e6f64, 1..200)) {
            let sum: f64 = weights.iter().sum();
            prop_assume!(sum > 0.0);
            let alias = Alias::new(&weights).unwrap();
            for (probability, weight) in alias.probabilities().iter().zip(&weights) {
                prop_assert!((probability - weight / sum).abs() < 1e-12);
            }
        }
    }

    /// 2^16 draws of four items: no count is off by six standard deviations, with a false alarm rate below 1e-8. An
    /// item without weight is never drawn.
    #[test]
    fn items_are_drawn_by_weight() {
        let weights = [5.0, 0.0, 1.0, 2.0];
        let alias = Alias::new(&weights).unwrap();
        let mut random = Random::new(1, "alias", 0);
        let mut counts = [0.0f64; 4];
        for _ in 0..1 << 16 {
            counts[alias.draw(random.bits())] += 1.0;
        }
        assert_eq!(counts[1], 0.0);
        for (count, weight) in counts.iter().zip(weights) {
            let (n, p) = (65536.0, weight / 8.0);
            assert!((count - n * p).abs() <= 6.0 * (n * p * (1.0 - p)).sqrt(), "{counts:?}");
        }
    }

    #[test]
    fn invalid_weights_are_refused() {
        for weights in
            [&[][..], &[0.0, 0.0], &[1.0, -1.0], &[f64::NAN], &[f64::INFINITY], &[f64::MAX, f64::MAX]]
        {
            assert!(matches!(Alias::new(weights), Err(WorkloadError::Weight(_))), "{weights:?}");
        }
    }
}
