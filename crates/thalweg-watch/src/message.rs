//! Messages from workers to the main thread.

use crossbeam_channel::Sender;
use thalweg_measure::meter::flow_table::Output;
use thalweg_measure::meter::intake::IntakeCounters;
use thalweg_measure::meter::record::FlowRecord;
use thalweg_measure::tasks::WindowState;
use thalweg_wire::{Progress, SourceCounters, Timestamp};

use crate::groups::{GroupList, GroupTotals};
use crate::in_kernel::InKernelTotals;
use crate::ledger::History;
use crate::meter::MeterCounters;
use crate::snapshot::FlowRow;
use crate::survey::Survey;

/// A message from a worker to the main thread.
#[derive(Debug)]
pub enum Message {
    /// Detected cheetah flows, and flow records if requested.
    Output(Output),
    /// The current state of a worker.
    View(Box<View>),
    /// A finished window, and the empty windows after it if there are any.
    Windows(Vec<WindowState>),
    /// This worker sends no more windows.
    NoMoreWindows(usize),
    /// The last message of a worker.
    Done(Box<Done>),
}

/// The state of one worker at one moment.
#[derive(Clone, Debug, Default)]
pub struct View {
    /// Index of the worker.
    pub worker: usize,
    /// State of reading, if the worker reads.
    pub reading: Option<ReadingView>,
    /// State of metering, if the worker meters.
    pub metering: Option<MeteringView>,
}

/// State of reading.
#[derive(Clone, Debug, Default)]
pub struct ReadingView {
    /// Counters of frames by kind.
    pub intake: IntakeCounters,
    /// Packets and bytes per slice of packet time.
    pub history: History,
    /// State of each input.
    pub inputs: Vec<InputView>,
    /// Earliest and latest timestamp; `None` before the first frame.
    pub span: Option<(Timestamp, Timestamp)>,
}

/// State of one input.
#[derive(Clone, Debug)]
pub struct InputView {
    /// Name of the input.
    pub name: String,
    /// Counters of the source.
    pub counters: SourceCounters,
    /// What its frames look like.
    pub survey: Survey,
    /// Progress, if the length of the input is known.
    pub progress: Option<Progress>,
    /// Whether the input is an interface that is down.
    pub is_down: bool,
    /// Whether reading has ended, at the end of the input or at an error.
    pub ended: bool,
    /// The error that ended reading.
    pub error: Option<String>,
}

/// State of metering.
#[derive(Clone, Debug, Default)]
pub struct MeteringView {
    /// `None` without a flow table.
    pub counters: Option<MeterCounters>,
    /// The latest packet time.
    pub now: Timestamp,
    /// The first flows in the order of the query.
    pub top: Vec<FlowRow>,
    /// Number of flows that match the query.
    pub matching: u64,
    /// Hosts of the flows that the query's filter selects, by the order of the query; without its terms on amounts.
    pub hosts: GroupList,
    /// Pairs of hosts, likewise.
    pub pairs: GroupList,
    /// The pinned flow of the query, if it is in the table.
    pub pinned: Option<FlowRow>,
}

/// The results of a worker.
#[derive(Clone, Debug, Default)]
pub struct Done {
    /// Final state of reading, if the worker read.
    pub reading: Option<ReadingView>,
    /// `None` without a flow table.
    pub counters: Option<MeterCounters>,
    /// Whether the worker metered packets.
    pub has_metered: bool,
    /// The largest flow records, largest first.
    pub largest: Vec<FlowRecord>,
    /// Hosts or pairs, if requested.
    pub groups: Option<GroupTotals>,
    /// `None` unless the sketches are in the kernel.
    pub in_kernel: Option<InKernelTotals>,
}

/// Sends a message, unless the main thread is exiting and has closed the channel.
pub(crate) fn send_message(sender: &Sender<Message>, message: Message) {
    let _ = sender.send(message);
}
