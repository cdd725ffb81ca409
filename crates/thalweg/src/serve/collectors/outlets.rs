//! Where a collector's thread puts what others write down: records of flows, and wishes for a dump of samples.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crossbeam_channel::Sender;
use thalweg_measure::meter::record::FlowRecord;

use crate::serve::samples::Trigger;

/// Some records of one collector.
#[derive(Debug)]
pub(crate) struct Records {
    pub(crate) collector: Arc<str>,
    pub(crate) records: Vec<FlowRecord>,
}

/// Something happened at a collector that makes its samples be written.
#[derive(Debug)]
pub(crate) struct Triggered {
    pub(crate) collector: Arc<str>,
    pub(crate) trigger: Trigger,
}

/// The ends at which a collector puts something.
#[derive(Clone, Debug, Default)]
pub(crate) struct Outlets {
    pub(crate) records: Option<Sender<Records>>,
    pub(crate) triggers: Option<Sender<Triggered>>,
    /// What makes samples be written.
    pub(crate) wanted: Vec<Trigger>,
    pub(crate) lost: Arc<AtomicU64>,
}

impl Outlets {
    /// Hands records on, or throws them away if nobody wants them. Of a live source those are lost that find no room;
    /// any other is read as slowly as they are written.
    pub(super) fn records(&self, collector: &Arc<str>, records: &mut Vec<FlowRecord>, is_live: bool) {
        let Some(sender) = &self.records else { return records.clear() };
        let count = records.len() as u64;
        let message = Records { collector: Arc::clone(collector), records: std::mem::take(records) };
        let is_sent = match is_live {
            true => sender.try_send(message).is_ok(),
            false => sender.send(message).is_ok(),
        };
        if !is_sent {
            self.lost.fetch_add(count, Ordering::Relaxed);
        }
    }

    /// Records that found no room.
    pub(super) fn records_lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }

    /// Wishes for a dump, if this is to make one. When there is no room, one is under way.
    pub(super) fn trigger(&self, collector: &Arc<str>, trigger: Trigger) {
        if let Some(sender) = &self.triggers
            && self.wanted.contains(&trigger)
        {
            let _ = sender.try_send(Triggered { collector: Arc::clone(collector), trigger });
        }
    }
}
