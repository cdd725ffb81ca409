//! Where a collector's thread puts what others write down: records of flows, and wishes for a dump of samples.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crossbeam_channel::Sender;
use thalweg_measure::meter::record::FlowRecord;

use super::notices::NoticeSender;
use super::tallies::Tallies;
use crate::config::Trigger;

/// Some records of one collector.
#[derive(Debug)]
pub(crate) struct Records {
    pub(crate) collector: Arc<str>,
    /// Where it is counted what becomes of them.
    pub(crate) tallies: Arc<Tallies>,
    pub(crate) records: Vec<FlowRecord>,
}

/// A wish for samples to be written.
#[derive(Debug)]
pub(crate) enum DumpSignal {
    /// For one collector's, since something happened at it.
    Event {
        /// The collector.
        collector: Arc<str>,
        /// What happened.
        trigger: Trigger,
    },
    /// For all collectors', since a signal came.
    Signal,
}

/// Where wishes are put. Those that find no room are counted.
#[derive(Clone, Debug)]
pub(crate) struct DumpQueue {
    sender: Sender<DumpSignal>,
    crowded: Arc<AtomicU64>,
}

/// The ends at which a collector puts something.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sinks {
    pub(crate) records: Option<Sender<Records>>,
    pub(crate) dump_queue: Option<DumpQueue>,
    /// Where the controller hears.
    pub(crate) control: Option<NoticeSender>,
    /// What makes samples be written.
    pub(crate) wanted: Vec<Trigger>,
}

impl DumpQueue {
    pub(crate) fn new(sender: Sender<DumpSignal>, crowded: Arc<AtomicU64>) -> DumpQueue {
        DumpQueue { sender, crowded }
    }

    pub(crate) fn put(&self, signal: DumpSignal) {
        if self.sender.try_send(signal).is_err() {
            self.crowded.fetch_add(1, Ordering::Relaxed);
        }
    }
}
