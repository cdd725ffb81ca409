//! Workers: threads that read, meter, or do both, and tell the main thread what they found.
//!
//! | packets come from | threads |
//! |---|---|
//! | files, one worker | one reads and meters |
//! | files, N workers | one reads and deals packets out by a hash of their flow, N meter |
//! | interfaces | one a ring: each reads and meters what the kernel deals out to it |
//!
//! Workers share no flow; what they found is put together when it is shown.

mod distributor;
mod metering;
mod reading;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use thalweg_measure::filter::FlowFilter;
use thalweg_wire::{Packet, Timestamp};

pub(crate) use distributor::{DistributedBatch, FlowDistributor};
pub(crate) use metering::{Metering, keep_first};
pub(crate) use reading::Reading;

use crate::message::{Done, ReadingView};
use crate::snapshot::Query;

/// How often a worker shows what it has, at most.
const VIEW_INTERVAL: Duration = Duration::from_millis(250);

/// Packets on their way to a metering thread, at most, in batches.
pub(crate) const BATCHES_IN_FLIGHT: usize = 64;

/// What is wanted of workers.
#[derive(Clone, Debug)]
pub struct Wants {
    /// Flow records as they end.
    pub records: bool,
    /// Views, of the flows that the query asks for.
    pub views: Option<Arc<Mutex<Query>>>,
    /// Rows of the list of largest flows.
    pub largest: usize,
    /// Which flows can be in that list.
    pub filter: FlowFilter,
}

/// Where the packets read go.
pub(crate) trait Target {
    fn packets(&mut self, packets: &[Packet]);

    /// No packet before `now` is to be expected; `reading` is how reading stands.
    fn advance(&mut self, now: Timestamp, reading: &ReadingView);

    /// There are no more packets.
    fn finish(self) -> Done;
}
