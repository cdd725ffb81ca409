//! Where a collector's thread puts what others write down: records of flows, and wishes for a dump of samples.

use std::sync::Arc;

use crossbeam_channel::Sender;
use thalweg_measure::meter::record::FlowRecord;

use super::tallies::Tallies;
use crate::control::Ear;
use crate::samples::Trigger;

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
pub(crate) enum Wish {
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

/// The ends at which a collector puts something.
#[derive(Clone, Debug, Default)]
pub(crate) struct Outlets {
    pub(crate) records: Option<Sender<Records>>,
    pub(crate) wishes: Option<Sender<Wish>>,
    /// Where the controller hears.
    pub(crate) control: Option<Ear>,
    /// What makes samples be written.
    pub(crate) wanted: Vec<Trigger>,
}
