//! How what collectors find gets to the controller: all of it in order, or not.

use thalweg_emulator::workloads::random::Random;

/// What becomes of what is under way.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) enum Delivery {
    /// It arrives, in order.
    #[default]
    Whole,
    /// Each of them is lost with this probability.
    Lossy(f64),
    /// So many at a time arrive in any order, or fewer when none is sent for a while.
    Shuffled(usize),
}

/// What carries it.
#[derive(Debug)]
pub(super) struct FaultyDelivery<T> {
    delivery: Delivery,
    random: Random,
    held: Vec<T>,
    sent: u64,
    lost: u64,
    /// Those that arrived before one that was sent earlier, or after one that was sent later.
    displaced: u64,
}

/// Delivers everything in order, until it is told otherwise.
impl<T> Default for FaultyDelivery<T> {
    fn default() -> FaultyDelivery<T> {
        let (delivery, random) = (Delivery::Whole, stream(0));
        FaultyDelivery { delivery, random, held: Vec::new(), sent: 0, lost: 0, displaced: 0 }
    }
}

/// The chance that it is left to.
fn stream(seed: u64) -> Random {
    Random::new(seed, "delivery", 0)
}

impl<T> FaultyDelivery<T> {
    /// Delivers otherwise from now on. What was held back comes with the next [`flush`](Self::flush).
    pub(super) fn set(&mut self, delivery: Delivery, seed: u64) {
        (self.delivery, self.random) = (delivery, stream(seed));
    }

    /// Takes one, and gives what arrives now.
    pub(super) fn send(&mut self, item: T) -> Vec<T> {
        self.sent += 1;
        match self.delivery {
            Delivery::Whole => {
                let mut arrived = self.flush();
                arrived.push(item);
                arrived
            }
            Delivery::Lossy(share) if self.random.unit() < share => {
                self.lost += 1;
                Vec::new()
            }
            Delivery::Lossy(_) => vec![item],
            Delivery::Shuffled(window) => {
                self.held.push(item);
                if self.held.len() >= window { self.flush() } else { Vec::new() }
            }
        }
    }

    /// Gives all that is held back.
    pub(super) fn flush(&mut self) -> Vec<T> {
        let mut order: Vec<usize> = (0..self.held.len()).collect();
        self.random.shuffle(&mut order);
        self.displaced += order.iter().enumerate().filter(|&(place, &from)| place != from).count() as u64;
        let mut held: Vec<Option<T>> = self.held.drain(..).map(Some).collect();
        order.into_iter().filter_map(|place| held[place].take()).collect()
    }

    /// How many were sent, how many of them were lost, and how many arrived in another place than their own.
    pub(super) fn counts(&self) -> [u64; 3] {
        [self.sent, self.lost, self.displaced]
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
    fn a_fifth_is_lost_and_the_rest_arrives_in_order() {
        let (arrived, [sent_, lost, displaced]) = sent(Delivery::Lossy(0.2), 1);
        assert_eq!((sent_, displaced), (1_000, 0));
        assert_eq!(arrived.len() as u64, 1_000 - lost);
        assert!(arrived.is_sorted());
        // 1,000 draws of 0.2: a standard deviation of 12.6; four of them are exceeded once in 16,000 seeds.
        assert!((150..=250).contains(&lost), "{lost}");
        assert_ne!(sent(Delivery::Lossy(0.2), 2).0, arrived, "the seed decides which");
    }

    #[test]
    fn what_is_shuffled_arrives_whole_and_not_long_after_its_time() {
        let (mut arrived, [.., displaced]) = sent(Delivery::Shuffled(8), 1);
        assert!(!arrived.is_sorted() && displaced > 500, "{displaced}");
        assert!(arrived.iter().enumerate().all(|(place, &item)| (place as u32).abs_diff(item) < 8));
        arrived.sort_unstable();
        assert_eq!(arrived, (0..1_000).collect::<Vec<_>>());
    }

    #[test]
    fn unless_told_otherwise_everything_arrives_as_it_was_sent() {
        assert_eq!(sent(Delivery::Whole, 1), ((0..1_000).collect(), [1_000, 0, 0]));
    }
}
