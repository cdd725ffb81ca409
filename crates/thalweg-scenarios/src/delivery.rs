//! Faulty delivery of reports from collectors to the controller.

use thalweg_emulator::workloads::random::Random;

/// How reports are delivered.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) enum Delivery {
    /// All arrive, in order.
    #[default]
    InOrder,
    /// Each report is lost with this probability.
    Lossy(f64),
    /// Reports arrive in random order within windows of this many; a window ends early after a pause.
    Reordered(usize),
}

/// A queue that delivers, loses or reorders what is sent.
#[derive(Debug)]
pub(super) struct FaultyDelivery<T> {
    delivery: Delivery,
    random: Random,
    held: Vec<T>,
    sent: u64,
    lost: u64,
    /// Items that arrived out of order.
    reordered: u64,
}

/// Delivers everything in order until [`set`](FaultyDelivery::set) is called.
impl<T> Default for FaultyDelivery<T> {
    fn default() -> FaultyDelivery<T> {
        let (delivery, random) = (Delivery::InOrder, stream(0));
        FaultyDelivery { delivery, random, held: Vec::new(), sent: 0, lost: 0, reordered: 0 }
    }
}

/// Returns the random numbers for a seed.
fn stream(seed: u64) -> Random {
    Random::new(seed, "delivery", 0)
}

impl<T> FaultyDelivery<T> {
    /// Changes the delivery. Items held back arrive with the next [`flush`](Self::flush).
    pub(super) fn set(&mut self, delivery: Delivery, seed: u64) {
        (self.delivery, self.random) = (delivery, stream(seed));
    }

    /// Sends an item and returns the items that arrive now.
    pub(super) fn send(&mut self, item: T) -> Vec<T> {
        self.sent += 1;
        match self.delivery {
            Delivery::InOrder => {
                let mut arrived = self.flush();
                arrived.push(item);
                arrived
            }
            Delivery::Lossy(share) if self.random.unit() < share => {
                self.lost += 1;
                Vec::new()
            }
            Delivery::Lossy(_) => vec![item],
            Delivery::Reordered(window) => {
                self.held.push(item);
                if self.held.len() >= window { self.flush() } else { Vec::new() }
            }
        }
    }

    /// Returns all items held back.
    pub(super) fn flush(&mut self) -> Vec<T> {
        let mut order: Vec<usize> = (0..self.held.len()).collect();
        self.random.shuffle(&mut order);
        self.reordered += order.iter().enumerate().filter(|&(place, &from)| place != from).count() as u64;
        let mut held: Vec<Option<T>> = self.held.drain(..).map(Some).collect();
        order.into_iter().filter_map(|place| held[place].take()).collect()
    }

    /// Returns the numbers of items sent, lost and reordered.
    pub(super) fn counts(&self) -> [u64; 3] {
        [self.sent, self.lost, self.reordered]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(delivery: Delivery, seed: u64) -> (Vec<u32>, [u64; 3]) {
        let mut faulty = FaultyDelivery::default();
        faulty.set(delivery, seed);
        let mut arrived: Vec<u32> = (0..1_000).flat_map(|item| faulty.send(item)).collect();
        arrived.extend(faulty.flush());
        (arrived, faulty.counts())
    }

    #[test]
    fn lossy_delivery_loses_a_fifth_and_keeps_order() {
        let (arrived, [sent_, lost, reordered]) = sent(Delivery::Lossy(0.2), 1);
        assert_eq!((sent_, reordered), (1_000, 0));
        assert_eq!(arrived.len() as u64, 1_000 - lost);
        assert!(arrived.is_sorted());
        // 1,000 draws of 0.2: a standard deviation of 12.6; four of them are exceeded once in 16,000 seeds.
        assert!((150..=250).contains(&lost), "{lost}");
        assert_ne!(sent(Delivery::Lossy(0.2), 2).0, arrived, "the seed decides which");
    }

    #[test]
    fn reordered_items_all_arrive_within_the_window() {
        let (mut arrived, [.., reordered]) = sent(Delivery::Reordered(8), 1);
        assert!(!arrived.is_sorted() && reordered > 500, "{reordered}");
        assert!(arrived.iter().enumerate().all(|(place, &item)| (place as u32).abs_diff(item) < 8));
        arrived.sort_unstable();
        assert_eq!(arrived, (0..1_000).collect::<Vec<_>>());
    }

    #[test]
    fn default_delivery_keeps_every_item_in_order() {
        assert_eq!(sent(Delivery::InOrder, 1), ((0..1_000).collect(), [1_000, 0, 0]));
    }
}
