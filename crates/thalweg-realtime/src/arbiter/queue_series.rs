//! Queue lengths of some ports over time: the latest samples, in a ring whose memory is reserved at the start.

use std::collections::VecDeque;

use thalweg_emulator::Slot;
use thalweg_emulator::queues::backlog::Backlog;
use thalweg_network::{PortIndex, RouterId};

/// The samples that are kept, of all ports together: at one per millisecond, 17 minutes of one port. 32 MB.
pub const MAX_SAMPLES: usize = 1 << 20;

/// The queue of a port at one time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueSample {
    /// The slot.
    pub slot: Slot,
    /// The port.
    pub port: (RouterId, PortIndex),
    /// Its queue.
    pub backlog: Backlog,
}

/// The latest samples.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QueueSeries {
    ports: Vec<(RouterId, PortIndex)>,
    every: u64,
    last: Slot,
    samples: VecDeque<QueueSample>,
    capacity: usize,
    left_out: u64,
}

impl QueueSeries {
    /// A series of `ports`, one sample `every` so many slots, with the latest `capacity` samples.
    pub(super) fn new(ports: Vec<(RouterId, PortIndex)>, every: u64, capacity: usize) -> QueueSeries {
        QueueSeries {
            ports,
            every,
            last: Slot(0),
            samples: VecDeque::with_capacity(capacity),
            capacity,
            left_out: 0,
        }
    }

    /// Adds a sample of each port. Where samples are missing, the network was empty: the first and the last missing one are added.
    pub(super) fn add(&mut self, now: Slot, backlog: impl Fn(RouterId, PortIndex) -> Backlog) {
        if self.ports.is_empty() {
            return;
        }
        let Slot(last) = self.last;
        let missing = (now.0 - last).saturating_sub(1) / self.every;
        if missing > 0 {
            let (first, latest) = (last + self.every, last + missing * self.every);
            self.add_all(Slot(first), |_, _| Backlog::default());
            if latest > first {
                self.add_all(Slot(latest), |_, _| Backlog::default());
            }
        }
        self.add_all(now, backlog);
        self.last = now;
    }

    /// The samples, in the order of time.
    pub fn samples(&self) -> impl Iterator<Item = &QueueSample> {
        self.samples.iter()
    }

    /// Samples that were left out for later ones.
    pub fn left_out(&self) -> u64 {
        self.left_out
    }

    fn add_all(&mut self, slot: Slot, backlog: impl Fn(RouterId, PortIndex) -> Backlog) {
        for &port in &self.ports {
            if self.samples.len() >= self.capacity {
                self.samples.pop_front();
                self.left_out += 1;
            }
            self.samples.push_back(QueueSample { slot, port, backlog: backlog(port.0, port.1) });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PORTS: [(RouterId, PortIndex); 2] = [(RouterId(0), PortIndex(1)), (RouterId(3), PortIndex(0))];

    fn queue(packets: u32) -> Backlog {
        Backlog { packets, bytes: 0 }
    }

    fn lengths(series: &QueueSeries) -> Vec<(u64, u16, u32)> {
        series.samples().map(|it| (it.slot.0, it.port.0.0, it.backlog.packets)).collect()
    }

    #[test]
    fn the_network_was_empty_where_samples_are_missing() {
        let mut series = QueueSeries::new(PORTS[..1].to_vec(), 10, 100);
        series.add(Slot(10), |_, _| queue(3));
        series.add(Slot(21), |_, _| queue(4));
        // Slots 22 to 58 were skipped.
        series.add(Slot(59), |_, _| queue(5));
        series.add(Slot(71), |_, _| queue(6));
        let expected =
            [(10, 0, 3), (20, 0, 0), (21, 0, 4), (31, 0, 0), (51, 0, 0), (59, 0, 5), (69, 0, 0), (71, 0, 6)];
        assert_eq!(lengths(&series), expected);
    }

    #[test]
    fn the_latest_samples_are_kept() {
        let mut series = QueueSeries::new(PORTS.to_vec(), 10, 3);
        series.add(Slot(10), |router, _| queue(u32::from(router.0)));
        series.add(Slot(20), |router, _| queue(10 + u32::from(router.0)));
        assert_eq!((lengths(&series), series.left_out()), (vec![(10, 3, 3), (20, 0, 10), (20, 3, 13)], 1));
    }
}
