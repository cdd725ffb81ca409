//! Findings from collectors to isolation: cheetah flows that began or ended.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crossbeam_channel::{Receiver, Sender, bounded};
use thalweg_measure::detect::Finding;

/// Capacity of the queue: the findings of a second in which 16,384 flows become cheetah flows.
const QUEUE_CAPACITY: usize = 16_384;

/// The finding of a collector.
pub(crate) type CollectorFinding = (Arc<str>, Finding);

/// The sender of findings to isolation. Never blocks.
#[derive(Clone, Debug)]
pub(crate) struct FindingSender {
    sender: Sender<CollectorFinding>,
    /// The collectors whose findings are sent; `None` for all.
    collectors: Option<Vec<String>>,
    lost: Arc<AtomicU64>,
}

impl FindingSender {
    pub(crate) fn new(collectors: Option<Vec<String>>) -> (FindingSender, Receiver<CollectorFinding>) {
        let (sender, receiver) = bounded(QUEUE_CAPACITY);
        (FindingSender { sender, collectors, lost: Arc::default() }, receiver)
    }

    /// Sends a finding, if the collector is one of those configured and the queue has room.
    pub(crate) fn send(&self, collector: &Arc<str>, finding: &Finding) {
        let is_selected =
            self.collectors.as_ref().is_none_or(|names| names.iter().any(|name| **name == **collector));
        if is_selected && self.sender.try_send((Arc::clone(collector), *finding)).is_err() {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(crate) fn lost(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.lost)
    }
}

#[cfg(test)]
mod tests {
    use thalweg_measure::detect::CheetahEnd;
    use thalweg_wire::{Bytes, Timestamp};

    use super::*;

    #[test]
    fn findings_of_other_collectors_are_left_out_and_those_without_room_are_counted() {
        let (sender, receiver) = FindingSender::new(Some(vec!["tor0".to_owned()]));
        let finding = Finding::Ended(CheetahEnd {
            key: "tcp 10.0.0.1:1 > 10.0.0.2:2".parse().unwrap(),
            first: Timestamp(0),
            last: Timestamp(1),
            packets: 1,
            bytes: Bytes(1),
        });
        sender.send(&"tor1".into(), &finding);
        assert_eq!((receiver.len(), sender.lost().load(Ordering::Relaxed)), (0, 0));
        for _ in 0..QUEUE_CAPACITY + 3 {
            sender.send(&"tor0".into(), &finding);
        }
        assert_eq!((receiver.len(), sender.lost().load(Ordering::Relaxed)), (QUEUE_CAPACITY, 3));
    }
}
