//! What the benchmark needs of an emulated network: hosts as network namespaces, and what it recorded.

use std::path::PathBuf;

/// A running network.
pub trait Network {
    /// Returns the files of the hosts' network namespaces; the last host is the receiver.
    fn hosts(&self) -> &[PathBuf];

    /// Returns the processes that emulate, whose processor time is counted.
    fn processes(&self) -> Processes;

    /// Ends the network, and returns what it recorded.
    ///
    /// # Errors
    /// If it has failed meanwhile, or the record cannot be read.
    fn finish(self: Box<Self>) -> anyhow::Result<Record>;
}

/// The processes that emulate. None where the kernel does.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Processes {
    /// Those of the network: the arbiter, or the simulator.
    pub core: Vec<u32>,
    /// Those of the hosts: endpoints.
    pub endpoints: Vec<u32>,
}

/// What a network recorded from its start to its end.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Record {
    /// The queue to the receiver, in the order of time.
    pub queue: Vec<QueueSample>,
    /// How late it was.
    pub lateness: Lateness,
    /// Packets dropped by the queue to the receiver, or by all queues.
    pub dropped: u64,
    /// Packets that it was asked to carry, if it counts them.
    pub packets: Option<u64>,
}

/// A sample of the queue.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct QueueSample {
    /// Time since 1970 in nanoseconds.
    pub time_ns: u64,
    /// Packets of the largest size.
    pub packets: f64,
}

/// How late an emulation was.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Lateness {
    /// It cannot know.
    #[default]
    Unknown,
    /// The share of timeslots that started more than 50 us late, from 0 to 1, and the longest delay in nanoseconds.
    Slots {
        /// The share.
        late_share: f64,
        /// The longest delay.
        worst_ns: u64,
    },
    /// Samples of the delay: time since 1970 and delay, both in nanoseconds.
    Samples(Vec<(u64, u64)>),
}

/// The delay from which an emulation is late, in nanoseconds: the default of `thalweg emulate --real-time`.
pub const LATE_NS: u64 = 50_000;

impl Lateness {
    /// Returns the share that was late within `window`, and the longest delay in nanoseconds. Slots count from start to end.
    pub fn within(&self, window: &std::ops::Range<u64>) -> Option<(f64, u64)> {
        match self {
            Lateness::Unknown => None,
            Lateness::Slots { late_share, worst_ns } => Some((*late_share, *worst_ns)),
            Lateness::Samples(samples) => {
                let delays =
                    samples.iter().filter(|(time, _)| window.contains(time)).map(|(_, delay)| *delay);
                let delays: Vec<u64> = delays.collect();
                let late = delays.iter().filter(|delay| **delay > LATE_NS).count();
                let worst = delays.iter().copied().max()?;
                Some((late as f64 / delays.len() as f64, worst))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_samples_of_the_window_count() {
        let samples =
            Lateness::Samples(vec![(1, 900_000), (10, 50_000), (11, 50_001), (12, 70_000), (13, 0), (20, 9)]);
        assert_eq!(samples.within(&(10..20)), Some((0.5, 70_000)));
        assert_eq!(samples.within(&(30..40)), None);
        assert_eq!(Lateness::Unknown.within(&(10..20)), None);
    }
}
