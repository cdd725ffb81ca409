//! Workers: threads that read, meter, or do both, and tell the main thread what they found.
//!
//! | packets come from | threads |
//! |---|---|
//! | files, one worker | one reads and meters |
//! | files, N workers | one reads and deals packets out by a hash of their flow, N meter |
//! | interfaces | one a ring: each reads and meters what the kernel deals out to it |
//!
//! Workers share no flow; what they found is put together when it is shown.

mod dealer;
mod metering;
mod reading;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use crossbeam_channel::Sender;
use thalweg_measure::meter::flow_table::Output;
use thalweg_measure::meter::intake::IntakeCounters;
use thalweg_measure::meter::record::FlowRecord;
use thalweg_measure::tasks::WindowState;
use thalweg_wire::{Packet, Progress, SourceCounters, Timestamp};

pub use dealer::{Dealer, Dealt};
pub use metering::{Metering, keep_first};
pub use reading::Reading;

use super::ledger::History;
use super::meter::MeterCounters;
use super::snapshot::{FlowRow, Query};

/// How often a worker shows what it has, at most.
const VIEW_INTERVAL: Duration = Duration::from_millis(250);

/// Packets on their way to a metering thread, at most, in batches.
pub const BATCHES_IN_FLIGHT: usize = 64;

/// From a worker to the main thread.
#[derive(Debug)]
pub enum Message {
    /// Findings, and records if they were asked for, as they happen.
    Output(Output),
    /// How things stand.
    View(Box<View>),
    /// What a worker hands on at the end of a window: that, and a stretch without packets if one follows.
    Windows(Vec<WindowState>),
    /// A worker that will end no more windows.
    NoMoreWindows(usize),
    /// The last word of a worker.
    Done(Box<Done>),
}

/// What one worker has at one moment.
#[derive(Clone, Debug, Default)]
pub struct View {
    pub worker: usize,
    pub reading: Option<ReadingView>,
    pub metering: Option<MeteringView>,
}

/// How reading stands.
#[derive(Clone, Debug, Default)]
pub struct ReadingView {
    pub intake: IntakeCounters,
    pub history: History,
    pub inputs: Vec<InputView>,
    /// Earliest and latest time stamp, if there was a frame.
    pub span: Option<(Timestamp, Timestamp)>,
}

/// How one input stands.
#[derive(Clone, Debug)]
pub struct InputView {
    pub name: String,
    pub counters: SourceCounters,
    pub progress: Option<Progress>,
    pub is_down: bool,
    pub ended: bool,
    pub error: Option<String>,
}

/// How metering stands.
#[derive(Clone, Debug, Default)]
pub struct MeteringView {
    /// `None` without a flow table.
    pub counters: Option<MeterCounters>,
    pub now: Timestamp,
    pub top: Vec<FlowRow>,
    pub matching: u64,
    pub frozen: Option<FlowRow>,
}

/// All that a worker did.
#[derive(Clone, Debug, Default)]
pub struct Done {
    pub reading: Option<ReadingView>,
    /// `None` without a flow table.
    pub counters: Option<MeterCounters>,
    /// Whether it had packets to count.
    pub has_metered: bool,
    pub largest: Vec<FlowRecord>,
}

/// What is wanted of workers.
#[derive(Clone, Debug)]
pub struct Wants {
    /// Flow records as they end.
    pub records: bool,
    /// Views, of the flows that the query asks for.
    pub views: Option<Arc<Mutex<Query>>>,
    /// Rows of the list of largest flows.
    pub largest: usize,
}

/// Where the packets read go.
pub trait Target {
    fn packets(&mut self, packets: &[Packet]);

    /// No packet before `now` is to be expected; `reading` is how reading stands.
    fn advance(&mut self, now: Timestamp, reading: &ReadingView);

    /// There are no more packets.
    fn finish(self) -> Done;
}

/// Nobody listens any more when the main thread is on its way out; then nothing is to be told.
pub fn tell(sender: &Sender<Message>, message: Message) {
    let _ = sender.send(message);
}
