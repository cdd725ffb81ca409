//! Workers: threads that read, meter, or do both, and tell the main thread what they found.
//!
//! | packets come from | threads |
//! |---|---|
//! | files, one worker | one reads and meters |
//! | files, N workers | one reads and deals packets out by a hash of their flow, N meter |
//! | interfaces | one a ring: each reads and meters what the kernel deals out to it |
//!
//! Workers share no flow; what they found is put together when it is shown.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, Sender};
use thalweg_measure::meter::flow_table::Output;
use thalweg_measure::meter::intake::{Intake, IntakeCounters};
use thalweg_measure::meter::record::FlowRecord;
use thalweg_measure::meter::top::Rates;
use thalweg_wire::{Bytes, HashSeed, Packet, Progress, Source, SourceCounters, Timestamp};

use super::inputs::Input;
use super::ledger::{History, Largest};
use super::live_view::{FlowRow, Query};
use super::meter::{Meter, MeterCounters};
use super::reader::{Consumer, Limits, Pace, read};

/// How often a worker shows what it has, at most.
const VIEW_INTERVAL: Duration = Duration::from_millis(250);

/// Records sent together.
const RECORDS_TOGETHER: usize = 512;

/// Packets on their way to a metering thread, at most, in batches.
pub(super) const BATCHES_IN_FLIGHT: usize = 64;

/// From a worker to the main thread.
#[derive(Debug)]
pub(super) enum Message {
    /// Findings, and records if they were asked for, as they happen.
    Output(Output),
    /// How things stand.
    View(Box<View>),
    /// The last word of a worker.
    Done(Box<Done>),
}

/// What one worker has at one moment.
#[derive(Clone, Debug, Default)]
pub(super) struct View {
    pub(super) worker: usize,
    pub(super) reading: Option<ReadingView>,
    pub(super) metering: Option<MeteringView>,
}

/// How reading stands.
#[derive(Clone, Debug, Default)]
pub(super) struct ReadingView {
    pub(super) intake: IntakeCounters,
    pub(super) history: History,
    pub(super) inputs: Vec<InputView>,
    pub(super) first: Timestamp,
}

/// How one input stands.
#[derive(Clone, Debug)]
pub(super) struct InputView {
    pub(super) name: String,
    pub(super) counters: SourceCounters,
    pub(super) progress: Option<Progress>,
    pub(super) is_down: bool,
    pub(super) ended: bool,
    pub(super) error: Option<String>,
}

/// How metering stands.
#[derive(Clone, Debug, Default)]
pub(super) struct MeteringView {
    pub(super) counters: MeterCounters,
    pub(super) now: Timestamp,
    pub(super) top: Vec<FlowRow>,
    pub(super) matching: u64,
    pub(super) frozen: Option<FlowRow>,
}

/// All that a worker did.
#[derive(Clone, Debug, Default)]
pub(super) struct Done {
    pub(super) reading: Option<ReadingView>,
    pub(super) counters: Option<MeterCounters>,
    pub(super) largest: Vec<FlowRecord>,
    pub(super) last: Timestamp,
}

/// What is wanted of workers.
#[derive(Clone, Debug)]
pub(super) struct Wants {
    /// Flow records as they end.
    pub(super) records: bool,
    /// Views, of the flows that the query asks for.
    pub(super) views: Option<Arc<Mutex<Query>>>,
    /// Rows of the list of largest flows.
    pub(super) largest: usize,
}

/// The reading side of a worker.
#[derive(Debug)]
pub(super) struct Reading {
    worker: usize,
    sender: Sender<Message>,
    intake: Intake,
    view: ReadingView,
}

/// The metering side of a worker.
#[derive(Debug)]
pub(super) struct Metering {
    worker: usize,
    sender: Sender<Message>,
    wants: Wants,
    meter: Meter,
    largest: Largest,
    rates: Rates,
    next_view: Instant,
}

impl Reading {
    pub(super) fn new(worker: usize, intake: Intake, sender: Sender<Message>) -> Reading {
        Reading { worker, sender, intake, view: ReadingView::default() }
    }

    /// Reads the inputs one after the other.
    pub(super) fn run(
        mut self,
        inputs: Vec<Input>,
        mut pace: Option<Pace>,
        limits: Limits<'_>,
        target: impl Target,
    ) -> Done {
        self.view.inputs = inputs.iter().map(InputView::waiting).collect();
        let mut both = Both { view: self.view, target, input: 0 };
        for (number, mut input) in inputs.into_iter().enumerate() {
            both.input = number;
            let result = read(&mut input, &mut self.intake, pace.as_mut(), limits, &mut both);
            let view = &mut both.view.inputs[number];
            view.counters = input.counters();
            view.ended = true;
            view.error = result.err().map(|error| error.to_string());
        }
        both.view.intake = self.intake.counters();
        let mut done = both.target.finish();
        done.reading = Some(both.view.clone());
        let view = View { worker: self.worker, reading: Some(both.view), metering: None };
        tell(&self.sender, Message::View(Box::new(view)));
        done
    }
}

impl InputView {
    fn waiting(input: &Input) -> InputView {
        let (counters, progress) = (SourceCounters::default(), input.progress());
        InputView { name: input.name.clone(), counters, progress, is_down: false, ended: false, error: None }
    }
}

/// Where the packets read go.
pub(super) trait Target {
    fn packets(&mut self, packets: &[Packet]);

    /// No packet before `now` is to be expected; `reading` is how reading stands.
    fn advance(&mut self, now: Timestamp, reading: &ReadingView);

    /// There are no more packets.
    fn finish(self) -> Done;
}

/// Keeps account of what is read, and passes it on.
struct Both<T> {
    view: ReadingView,
    target: T,
    input: usize,
}

impl<T: Target> Consumer for Both<T> {
    fn packets(&mut self, packets: &[Packet]) {
        if let (Some(first), Some(last)) = (packets.first(), packets.last()) {
            if self.view.first == Timestamp::default() {
                self.view.first = first.time;
            }
            let bytes = packets.iter().map(|packet| u64::from(packet.ip_length)).sum();
            self.view.history.add(last.time, packets.len() as u64, Bytes(bytes));
            self.target.packets(packets);
        }
    }

    fn pause(&mut self, input: &mut Input, intake: &Intake, now: Timestamp) {
        self.view.intake = intake.counters();
        let view = &mut self.view.inputs[self.input];
        view.counters = input.counters();
        view.progress = input.progress();
        view.is_down = input.is_down();
        self.target.advance(now, &self.view);
    }
}

impl Metering {
    pub(super) fn new(worker: usize, meter: Meter, wants: Wants, sender: Sender<Message>) -> Metering {
        let (largest, rates) = (Largest::new(wants.largest), Rates::default());
        Metering { worker, sender, wants, meter, largest, rates, next_view: Instant::now() }
    }

    /// Meters what a reading thread deals out, until there is no more.
    pub(super) fn run(mut self, batches: &Receiver<Dealt>) -> Done {
        while let Ok(Dealt { packets, now }) = batches.recv() {
            self.packets(&packets);
            self.advance_alone(now);
        }
        self.finish()
    }

    fn advance_alone(&mut self, now: Timestamp) {
        self.meter.advance(now);
        self.hand_over(1);
        self.show(None);
    }

    /// Sends what was found, once there are enough records to send.
    fn hand_over(&mut self, least_records: usize) {
        let output = &mut self.meter.output;
        if output.records.is_empty() && output.findings.is_empty() {
            return;
        }
        if !self.wants.records {
            for record in output.records.drain(..) {
                self.largest.add(&record);
            }
        }
        if !output.findings.is_empty() || output.records.len() >= least_records.max(1) {
            for record in &output.records {
                self.largest.add(record);
            }
            tell(&self.sender, Message::Output(std::mem::take(output)));
        }
    }

    /// Sends how things stand, if it is time to.
    fn show(&mut self, reading: Option<&ReadingView>) {
        let Some(query) = &self.wants.views else { return };
        let begun = Instant::now();
        if begun < self.next_view {
            return;
        }
        let query = query.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let metering = Some(self.view(&query));
        let view = View { worker: self.worker, reading: reading.cloned(), metering };
        tell(&self.sender, Message::View(Box::new(view)));
        // A look at millions of flows takes a while: no more than a tenth of the time goes into looking.
        self.next_view = begun + VIEW_INTERVAL.max(begun.elapsed() * 10);
    }

    fn view(&mut self, query: &Query) -> MeteringView {
        let now = self.meter.table.clock();
        let counters = self.meter.counters();
        if query.limit == 0 {
            return MeteringView { counters, now, ..MeteringView::default() };
        }
        let (mut top, mut matching, mut frozen) = (Vec::new(), 0, None);
        let frozen_key = query.frozen.map(|key| key.canonical().0);
        self.rates.look(&self.meter.table, now, |rate| {
            let row = FlowRow::from(rate);
            if frozen_key == Some(row.key.canonical().0) {
                frozen = Some(row.clone());
            }
            if query.matches(&row) {
                matching += 1;
                top.push(row);
                if top.len() >= 2 * query.limit.max(1) {
                    keep_first(&mut top, query);
                }
            }
        });
        keep_first(&mut top, query);
        MeteringView { counters, now, top, matching, frozen }
    }
}

/// Keeps the first rows in the order of the query.
pub(super) fn keep_first(rows: &mut Vec<FlowRow>, query: &Query) {
    rows.sort_by(|a, b| query.compare(a, b));
    rows.truncate(query.limit);
}

impl Target for Metering {
    fn packets(&mut self, packets: &[Packet]) {
        self.meter.packets(packets);
        self.hand_over(RECORDS_TOGETHER);
    }

    fn advance(&mut self, now: Timestamp, reading: &ReadingView) {
        self.meter.advance(now);
        self.hand_over(RECORDS_TOGETHER);
        self.show(Some(reading));
    }

    fn finish(mut self) -> Done {
        let last = self.meter.table.clock();
        if let Some(query) = self.wants.views.clone() {
            let query = query.lock().unwrap_or_else(PoisonError::into_inner).clone();
            let metering = Some(self.view(&query));
            tell(&self.sender, Message::View(Box::new(View { worker: self.worker, reading: None, metering })));
        }
        self.meter.finish();
        self.hand_over(1);
        let counters = Some(self.meter.counters());
        Done { reading: None, counters, largest: self.largest.sorted(), last }
    }
}

/// Packets dealt out to one metering thread, and the time up to which there are no others.
#[derive(Debug)]
pub(super) struct Dealt {
    packets: Vec<Packet>,
    now: Timestamp,
}

/// Deals packets out to metering threads, by a hash that both directions of a flow share.
#[derive(Debug)]
pub(super) struct Dealer {
    worker: usize,
    seed: HashSeed,
    /// What each metering thread is dealt next.
    hands: Vec<Vec<Packet>>,
    meters: Vec<Sender<Dealt>>,
    sender: Sender<Message>,
    views: bool,
    next_view: Instant,
}

/// Packets dealt out to a thread at a time.
const HAND: usize = 1024;

impl Target for Dealer {
    fn packets(&mut self, packets: &[Packet]) {
        let workers = self.meters.len() as u64;
        for packet in packets {
            let hash = packet.key.symmetric_hash(&self.seed) >> 32;
            self.hands[(hash * workers >> 32) as usize].push(*packet);
        }
    }

    fn advance(&mut self, now: Timestamp, reading: &ReadingView) {
        for number in 0..self.meters.len() {
            if self.hands[number].len() >= HAND {
                self.deal(number, now);
            }
        }
        if self.views && Instant::now() >= self.next_view {
            for number in 0..self.meters.len() {
                self.deal(number, now);
            }
            let view = View { worker: self.worker, reading: Some(reading.clone()), metering: None };
            tell(&self.sender, Message::View(Box::new(view)));
            self.next_view = Instant::now() + VIEW_INTERVAL;
        }
    }

    fn finish(mut self) -> Done {
        for number in 0..self.meters.len() {
            self.deal(number, Timestamp::default());
        }
        Done::default()
    }
}

impl Dealer {
    pub(super) fn new(
        worker: usize,
        seed: HashSeed,
        meters: Vec<Sender<Dealt>>,
        sender: Sender<Message>,
        views: bool,
    ) -> Dealer {
        let hands = meters.iter().map(|_| Vec::with_capacity(2 * HAND)).collect();
        Dealer { worker, seed, hands, meters, sender, views, next_view: Instant::now() }
    }

    fn deal(&mut self, number: usize, now: Timestamp) {
        let packets = std::mem::replace(&mut self.hands[number], Vec::with_capacity(2 * HAND));
        // A metering thread that is gone has panicked; the main thread will notice.
        let _ = self.meters[number].send(Dealt { packets, now });
    }
}

/// Nobody listens any more when the main thread is on its way out; then nothing is to be told.
pub(super) fn tell(sender: &Sender<Message>, message: Message) {
    let _ = sender.send(message);
}
