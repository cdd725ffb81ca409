//! Workers: threads that read, meter, or do both, and send their results to the main thread.
//!
//! | packet source | threads |
//! |---|---|
//! | files, one worker | one thread reads and meters |
//! | files, N workers | one thread reads and distributes packets by flow hash, N threads meter |
//! | interfaces | one thread per ring reads and meters; the kernel distributes packets over rings |
//! | sketches in the kernel | one thread reads windows |
//!
//! Each flow belongs to one worker. Results are combined when they are shown.

mod distributor;
mod kernel;
mod metering;
mod reading;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use thalweg_measure::filter::FlowFilter;
use thalweg_wire::{Packet, Timestamp};

pub(crate) use distributor::{DistributedBatch, FlowDistributor};
pub(crate) use kernel::KernelWorker;
pub(crate) use metering::{Metering, keep_first};
pub(crate) use reading::{FrameObserver, Reading};

use crate::groups::Grouping;
use crate::message::{Done, ReadingView};
use crate::snapshot::Query;

/// Minimum time between two views of a worker.
const VIEW_INTERVAL: Duration = Duration::from_millis(250);

/// Capacity of the channel to a metering thread, in batches.
pub(crate) const BATCHES_IN_FLIGHT: usize = 64;

/// Outputs that workers must send.
#[derive(Clone, Debug)]
pub struct WorkerOptions {
    /// Whether to send flow records as flows end.
    pub records: bool,
    /// The query to answer with views; `None` sends no views.
    pub views: Option<Arc<Mutex<Query>>>,
    /// Length of the list of largest flows.
    pub largest: usize,
    /// Hosts or pairs to add up over the run; nothing for [`Grouping::Flow`].
    pub grouping: Grouping,
    /// Filter of both lists.
    pub filter: FlowFilter,
}

/// A consumer of the packets that a worker reads.
pub(crate) trait PacketSink {
    /// Processes packets in capture order.
    fn packets(&mut self, packets: &[Packet]);

    /// Advances packet time: no packet earlier than `now` will follow. `reading` is the state of reading.
    fn advance(&mut self, now: Timestamp, reading: &ReadingView);

    /// Ends the input and returns the results.
    fn finish(self) -> Done;
}
