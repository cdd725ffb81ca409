//! The loss over the last N intervals.

use std::collections::VecDeque;

use crate::Loss;

/// The sums of the last N usable intervals. The loss is drops divided by packets, not a mean of the losses of each interval,
/// which an interval with few packets would dominate.
#[derive(Clone, Debug)]
pub struct LossWindow {
    capacity: usize,
    intervals: VecDeque<Loss>,
}

impl LossWindow {
    /// Creates an empty window of `capacity` intervals, at least one.
    pub fn new(capacity: usize) -> LossWindow {
        LossWindow { capacity: capacity.max(1), intervals: VecDeque::new() }
    }

    /// Adds an interval. The oldest makes room.
    pub fn add(&mut self, loss: Loss) {
        if self.intervals.len() == self.capacity {
            self.intervals.pop_front();
        }
        self.intervals.push_back(loss);
    }

    /// Returns the sum of all intervals; `None` if there is none.
    pub fn sum(&self) -> Option<Loss> {
        self.intervals.iter().copied().reduce(|sum, loss| Loss {
            packets: sum.packets + loss.packets,
            drops: sum.drops + loss.drops,
            bytes: sum.bytes + loss.bytes,
            seconds: sum.seconds + loss.seconds,
        })
    }

    /// Returns the number of intervals.
    pub fn len(&self) -> usize {
        self.intervals.len()
    }

    /// Returns whether there are no intervals.
    pub fn is_empty(&self) -> bool {
        self.intervals.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loss_is_a_ratio_of_sums_over_the_last_intervals() {
        let mut window = LossWindow::new(2);
        assert!(window.is_empty() && window.sum().is_none());
        let loss = |packets, drops| Loss { packets, drops, bytes: 0, seconds: 10.0 };
        window.add(loss(1_000_000, 1_000_000));
        window.add(loss(10, 1));
        window.add(loss(999_990, 0));
        let sum = window.sum().unwrap();
        assert_eq!((window.len(), sum.packets, sum.drops, sum.seconds), (2, 1_000_000, 1, 20.0));
        assert_eq!(sum.rate(), Some(1e-6));
    }
}
