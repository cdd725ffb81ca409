//! Queue lengths of ports, sampled at an interval (Ousterhout et al., "Flexplane", NSDI 2017, Table 2: every millisecond).
//!
//! Samples are exact counts by length in packets, so median and deviation are exact. Memory: 8 bytes per port and packet of
//! the longest queue seen.

use thalweg_network::{PortIndex, RouterId};

use crate::slot::Slot;

/// The samples of one queue.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Occupancy {
    /// By length in packets, the number of samples.
    counts: Vec<u64>,
    samples: u64,
}

impl Occupancy {
    /// Adds `count` samples of a queue with `packets`.
    pub fn add(&mut self, packets: u32, count: u64) {
        let packets = packets as usize;
        if self.counts.len() <= packets {
            self.counts.resize(packets + 1, 0);
        }
        self.counts[packets] += count;
        self.samples += count;
    }

    /// The number of samples.
    pub fn samples(&self) -> u64 {
        self.samples
    }

    /// The length in packets below or at which the share `quantile` (0 to 1) of the samples is; 0 without samples.
    pub fn quantile(&self, quantile: f64) -> u32 {
        let rank = (quantile.clamp(0.0, 1.0) * self.samples as f64).ceil().max(1.0) as u64;
        let mut sum = 0;
        let found = self.counts.iter().position(|count| {
            sum += count;
            sum >= rank
        });
        found.unwrap_or_default() as u32
    }

    /// The mean length in packets.
    pub fn mean(&self) -> f64 {
        self.weighted(|packets| packets) / self.samples.max(1) as f64
    }

    /// The standard deviation of the samples in packets.
    pub fn deviation(&self) -> f64 {
        let mean = self.mean();
        (self.weighted(|packets| (packets - mean).powi(2)) / self.samples.max(1) as f64).sqrt()
    }

    /// The longest sampled queue in packets.
    pub fn max(&self) -> u32 {
        self.counts.len().saturating_sub(1) as u32
    }

    fn weighted(&self, of: impl Fn(f64) -> f64) -> f64 {
        self.counts.iter().enumerate().map(|(packets, &count)| of(packets as f64) * count as f64).sum()
    }
}

/// Samples the queues of some ports every so many slots.
#[derive(Clone, Debug)]
pub struct Sampler {
    every: u64,
    next: Slot,
    ports: Vec<(RouterId, PortIndex, Occupancy)>,
}

impl Sampler {
    /// A sampler of these ports. The first sample is in slot `every`, which is at least 1.
    pub fn new(every: u64, ports: impl IntoIterator<Item = (RouterId, PortIndex)>) -> Sampler {
        let ports = ports.into_iter().map(|(router, port)| (router, port, Occupancy::default())).collect();
        Sampler { every: every.max(1), next: Slot(every.max(1)), ports }
    }

    /// Samples if it is time, and returns whether it was. `packets` returns the length of a queue.
    #[inline]
    pub fn slot(&mut self, now: Slot, packets: impl FnMut(RouterId, PortIndex) -> u32) -> bool {
        let is_time = now >= self.next;
        if is_time {
            self.sample(now, packets);
        }
        is_time
    }

    /// Slots were skipped while all queues were empty: each missed sample found nothing.
    fn sample(&mut self, now: Slot, mut packets: impl FnMut(RouterId, PortIndex) -> u32) {
        let missed = (now.0 - self.next.0) / self.every;
        for (router, port, occupancy) in &mut self.ports {
            if missed > 0 {
                occupancy.add(0, missed);
            }
            occupancy.add(packets(*router, *port), 1);
        }
        self.next = self.next + (missed + 1) * self.every;
    }

    /// The samples so far, by port.
    pub fn ports(&self) -> &[(RouterId, PortIndex, Occupancy)] {
        &self.ports
    }

    /// The samples, by port.
    pub fn into_ports(self) -> Vec<(RouterId, PortIndex, Occupancy)> {
        self.ports
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn median_and_deviation_are_those_of_the_samples() {
        let mut occupancy = Occupancy::default();
        for packets in [2, 4, 4, 4, 5, 5, 7, 9] {
            occupancy.add(packets, 1);
        }
        assert_eq!((occupancy.mean(), occupancy.deviation()), (5.0, 2.0));
        assert_eq!((occupancy.quantile(0.5), occupancy.quantile(0.0), occupancy.quantile(1.0)), (4, 2, 9));
        assert_eq!(Occupancy::default().quantile(0.5), 0);
    }

    #[test]
    fn skipped_slots_count_as_samples_of_empty_queues() {
        let mut sampler = Sampler::new(10, [(RouterId(0), PortIndex(0))]);
        for slot in 0..=30 {
            sampler.slot(Slot(slot), |_, _| 3);
        }
        sampler.slot(Slot(75), |_, _| 1);
        let occupancy = &sampler.ports()[0].2;
        assert_eq!(occupancy.counts, [3, 1, 0, 3], "40, 50 and 60 were skipped");
    }
}
