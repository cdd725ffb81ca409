//! Channels from a collector to the writer threads: flow records and dump requests.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crossbeam_channel::Sender;
use thalweg_measure::meter::record::FlowRecord;

use super::background::TapSender;
use super::control_events::ControlEventSender;
use super::findings::FindingSender;
use super::stats::CollectorStats;
use crate::config::Trigger;

/// Flow records of one collector.
#[derive(Debug)]
pub(crate) struct Records {
    pub(crate) collector: Arc<str>,
    /// The counters of the collector.
    pub(crate) stats: Arc<CollectorStats>,
    pub(crate) records: Vec<FlowRecord>,
}

/// A request to write samples.
#[derive(Debug)]
pub(crate) enum DumpSignal {
    /// Those of one collector, because of an event.
    Event {
        /// The collector.
        collector: Arc<str>,
        /// The event.
        trigger: Trigger,
    },
    /// Those of all collectors, because of a signal.
    Signal,
}

/// The queue of dump requests. Counts those that find it full.
#[derive(Clone, Debug)]
pub(crate) struct DumpQueue {
    sender: Sender<DumpSignal>,
    queue_full: Arc<AtomicU64>,
}

/// The outputs of a collector.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sinks {
    pub(crate) records: Option<Sender<Records>>,
    pub(crate) dump_queue: Option<DumpQueue>,
    /// Events for the controller.
    pub(crate) control: Option<ControlEventSender>,
    /// Cheetah flows for isolation.
    pub(crate) findings: Option<FindingSender>,
    /// Background packets for the adaptation of the rate threshold.
    pub(crate) background: Option<TapSender>,
    /// Events that dump samples.
    pub(crate) dump_triggers: Vec<Trigger>,
}

impl DumpQueue {
    pub(crate) fn new(sender: Sender<DumpSignal>, queue_full: Arc<AtomicU64>) -> DumpQueue {
        DumpQueue { sender, queue_full }
    }

    pub(crate) fn put(&self, signal: DumpSignal) {
        if self.sender.try_send(signal).is_err() {
            self.queue_full.fetch_add(1, Ordering::Relaxed);
        }
    }
}
