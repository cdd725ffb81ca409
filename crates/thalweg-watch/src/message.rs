//! What workers tell the main thread.

use crossbeam_channel::Sender;
use thalweg_measure::meter::flow_table::Output;
use thalweg_measure::meter::intake::IntakeCounters;
use thalweg_measure::meter::record::FlowRecord;
use thalweg_measure::tasks::WindowState;
use thalweg_wire::{Progress, SourceCounters, Timestamp};

use crate::ledger::History;
use crate::meter::MeterCounters;
use crate::snapshot::FlowRow;

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
    /// Which worker.
    pub worker: usize,
    /// How reading stands, if it reads.
    pub reading: Option<ReadingView>,
    /// How metering stands, if it meters.
    pub metering: Option<MeteringView>,
}

/// How reading stands.
#[derive(Clone, Debug, Default)]
pub struct ReadingView {
    /// What the frames were.
    pub intake: IntakeCounters,
    /// Packets and bytes by slice of packet time.
    pub history: History,
    /// How each input stands.
    pub inputs: Vec<InputView>,
    /// Earliest and latest time stamp, if there was a frame.
    pub span: Option<(Timestamp, Timestamp)>,
}

/// How one input stands.
#[derive(Clone, Debug)]
pub struct InputView {
    /// Its name.
    pub name: String,
    /// What it counts.
    pub counters: SourceCounters,
    /// How far it has come, if its length is known.
    pub progress: Option<Progress>,
    /// Whether it is an interface that is down.
    pub is_down: bool,
    /// Whether it was read to its end, or as far as it goes.
    pub ended: bool,
    /// Why it could not go on.
    pub error: Option<String>,
}

/// How metering stands.
#[derive(Clone, Debug, Default)]
pub struct MeteringView {
    /// `None` without a flow table.
    pub counters: Option<MeterCounters>,
    /// The latest packet time heard of.
    pub now: Timestamp,
    /// The first flows in the order of the query.
    pub top: Vec<FlowRow>,
    /// Flows that match the query.
    pub matching: u64,
    /// The flow that the query names, if it is in the table.
    pub frozen: Option<FlowRow>,
}

/// All that a worker did.
#[derive(Clone, Debug, Default)]
pub struct Done {
    /// How reading ended, if it read.
    pub reading: Option<ReadingView>,
    /// `None` without a flow table.
    pub counters: Option<MeterCounters>,
    /// Whether it had packets to count.
    pub has_metered: bool,
    /// The largest flow records, the largest first.
    pub largest: Vec<FlowRecord>,
}

/// Nobody listens any more when the main thread is on its way out; then nothing is to be told.
pub(crate) fn tell(sender: &Sender<Message>, message: Message) {
    let _ = sender.send(message);
}
