//! Combines the views of workers into the snapshot for the live view.

use std::collections::HashMap;

use thalweg_measure::meter::intake::IntakeCounters;
use thalweg_measure::meter::record::EndReason;
use thalweg_measure::tasks::PlannedTask;
use thalweg_wire::{BitRate, Bytes, SourceCounters, Timestamp};

use crate::groups::{GroupList, GroupTable};
use crate::ledger::History;
use crate::message::{InputView, MeteringView, ReadingView, View};
use crate::meter::MeterCounters;
use crate::snapshot::{
    CheetahRow, Counter, Query, RateSample, Severity, Snapshot, SourceRow, SourceState, TaskRow, TasksView,
};
use crate::tasks::{TaskHistory, TaskLedger};
use crate::totals::Totals;
use crate::worker::keep_first;

/// Maximum number of cheetah flows in a snapshot.
const CHEETAHS_SHOWN: usize = 500;

/// The latest views of all workers.
#[derive(Debug, Default)]
pub struct ViewFeed {
    reading: Vec<ReadingView>,
    metering: Vec<MeteringView>,
    replaying: bool,
    live: bool,
    has_table: bool,
}

impl ViewFeed {
    /// Creates an empty feed of `workers` views.
    pub fn new(workers: usize, live: bool, replaying: bool, has_table: bool) -> ViewFeed {
        let (reading, metering) =
            (vec![ReadingView::default(); workers], vec![MeteringView::default(); workers]);
        ViewFeed { reading, metering, replaying, live, has_table }
    }

    /// Adds the view of a worker.
    pub fn add(&mut self, view: View) {
        if let Some(reading) = view.reading {
            self.reading[view.worker] = reading;
        }
        if let Some(metering) = view.metering {
            self.metering[view.worker] = metering;
        }
    }

    /// Combines the latest views.
    pub fn snapshot(&self, query: &Query, totals: &Totals, ended: bool) -> Snapshot {
        let log = &totals.cheetahs;
        let mut merged_frames = 0;
        let (mut intake, mut source) = (IntakeCounters::default(), SourceCounters::default());
        let mut history = History::default();
        let mut start = Timestamp(u64::MAX);
        for reading in &self.reading {
            intake += reading.intake;
            history.merge(&reading.history);
            if let Some((first, _)) = reading.span {
                start = start.min(first);
            }
        }
        let mut meter = MeterCounters::default();
        let (mut top, mut matching, mut now) = (Vec::new(), 0, Timestamp::default());
        for metering in &self.metering {
            meter += metering.counters.unwrap_or_default();
            top.extend_from_slice(&metering.top);
            matching += metering.matching;
            now = now.max(metering.now);
        }
        keep_first(&mut top, query);
        let merge_all = |list: fn(&MeteringView) -> &GroupList| merge(self.metering.iter().map(list), query);
        let sources = self.sources();
        for input in self.reading.iter().flat_map(|reading| &reading.inputs) {
            source += input.counters;
            merged_frames += input.survey.merged;
        }
        let history: Vec<RateSample> = history.slices().map(|slice| rate_sample(*slice)).collect();
        // The last slice is incomplete.
        let current = history.iter().rev().nth(1).or(history.last()).copied().unwrap_or_default();
        let cheetahs = log.entries().rev().map(CheetahRow::from).filter(|row| query.filter.matches(row));
        let flows_ended = meter.table.records.iter().sum::<u64>() - meter.table.ended(EndReason::Active);
        Snapshot {
            now,
            start: if start.0 == u64::MAX { now } else { start },
            packets: intake.ip.packets,
            bytes: intake.ip.bytes,
            packet_rate: current.packet_rate,
            bit_rate: current.bit_rate,
            history,
            history_slice: History::SLICE,
            flows_live: meter.live,
            flow_capacity: meter.capacity,
            flows_ended,
            evicted: meter.table.ended(EndReason::Evicted),
            cheetahs_live: log.running() as u64,
            cheetahs_total: meter.cheetahs,
            cheetahs: cheetahs.take(CHEETAHS_SHOWN).collect(),
            top,
            matching,
            hosts: merge_all(|metering| &metering.hosts),
            pairs: merge_all(|metering| &metering.pairs),
            capture: None,
            tags: None,
            names: HashMap::new(),
            pinned: self.metering.iter().find_map(|metering| metering.pinned.clone()),
            counters: counters(
                &intake,
                &source,
                merged_frames,
                self.has_table.then_some(&meter),
                totals.tasks.as_ref(),
            ),
            sources,
            tasks: totals.tasks.as_ref().map(TasksView::from),
            no_table: !self.has_table,
            ended,
        }
    }

    /// Returns one row per source. The rings of an interface form one source.
    fn sources(&self) -> Vec<SourceRow> {
        let mut rows: Vec<SourceRow> = Vec::new();
        for input in self.reading.iter().flat_map(|reading| &reading.inputs) {
            match rows.iter_mut().find(|row| self.live && row.name == input.name) {
                Some(row) => {
                    row.kernel_drops += input.counters.kernel_drops;
                    row.freezes += input.counters.kernel_freezes;
                    row.merged += input.survey.merged;
                }
                None => rows.push(SourceRow {
                    name: input.name.clone(),
                    state: self.state(input),
                    kernel_drops: input.counters.kernel_drops,
                    freezes: input.counters.kernel_freezes,
                    progress: input.progress,
                    merged: input.survey.merged,
                }),
            }
        }
        rows
    }

    fn state(&self, input: &InputView) -> SourceState {
        match &input.error {
            Some(error) => SourceState::Failed(error.clone()),
            None if input.ended => SourceState::Ended,
            None if input.is_down => SourceState::Down,
            None if self.live => SourceState::Live,
            None if self.replaying => SourceState::Replaying,
            None => SourceState::Reading,
        }
    }
}

/// Adds up the hosts or the pairs of all workers.
fn merge<'a>(lists: impl Iterator<Item = &'a GroupList>, query: &Query) -> GroupList {
    let mut table = GroupTable::default();
    let mut not_sent = 0;
    for list in lists {
        not_sent += list.matching - list.rows.len() as u64;
        list.rows.iter().for_each(|row| table.add(row.clone()));
    }
    let mut list = query.first_groups(&table, query.limit);
    if query.filter.is_empty() {
        list.matching += not_sent;
    }
    list
}

fn rate_sample((packets, bytes): (u64, Bytes)) -> RateSample {
    let packet_rate = packets as f64 / History::SLICE.as_secs_f64();
    RateSample { bit_rate: BitRate::of(bytes, History::SLICE), packet_rate }
}

fn counters(
    intake: &IntakeCounters,
    source: &SourceCounters,
    merged: u64,
    meter: Option<&MeterCounters>,
    tasks: Option<&TaskLedger>,
) -> Vec<Counter> {
    use Severity::{Loss, Note, Warning};
    let counter = |label, count, severity| Counter { label, count, severity };
    let table_counters = meter.map(|meter| {
        [
            counter("untracked", meter.untracked, Loss),
            counter("undecided", meter.undecided, Note),
            counter("evicted", meter.table.ended(EndReason::Evicted), Warning),
        ]
    });
    let task_counters = tasks.map(|tasks| {
        [counter("late", tasks.tally.late, Warning), counter("saturated", tasks.saturations, Warning)]
    });
    let [untracked, undecided, evicted] = table_counters.map_or([None; 3], |counters| counters.map(Some));
    let [late, saturated] = task_counters.map_or([None; 2], |counters| counters.map(Some));
    let all = [
        Some(counter("kernel drops", source.kernel_drops, Loss)),
        untracked,
        undecided,
        Some(counter("malformed", intake.malformed_total().packets, Warning)),
        evicted,
        late,
        saturated,
        Some(counter("out of order", intake.backwards, Warning)),
        Some(counter("unknown link", intake.unsupported_link.packets, Warning)),
        Some(counter("bad length", intake.length_beyond_frame, Warning)),
        Some(counter("merged (GRO/TSO)", merged, Note)),
        Some(counter("non-IP", intake.non_ip.packets, Note)),
        Some(counter("no ports", intake.ports_not_captured + intake.portless_fragments, Note)),
        Some(counter("decapsulated", intake.decapsulated, Note)),
        Some(counter("filtered", source.filtered, Note)),
    ];
    all.into_iter().flatten().collect()
}

impl From<&TaskLedger> for TasksView {
    fn from(ledger: &TaskLedger) -> TasksView {
        let row = |(planned, history): (&PlannedTask, &TaskHistory)| TaskRow {
            spec: planned.spec,
            size: planned.size,
            latest: history.latest.as_ref().map(|answer| answer.result.table()),
            start: history.latest.as_ref().map_or(Timestamp::default(), |answer| answer.start),
            end: history.latest.as_ref().map_or(Timestamp::default(), |answer| answer.end),
            sampled: history.latest.as_ref().and_then(|answer| answer.health.sampled),
            figures: history.figures.iter().copied().collect(),
        };
        TasksView {
            rows: ledger.plan.tasks().iter().zip(&ledger.tasks).map(row).collect(),
            window: ledger.window(),
            windows: ledger.windows,
            empty_windows: ledger.empty_windows,
            packets: ledger.last.as_ref().map_or(0, |last| last.report.tally.packets),
            memory: ledger.plan.bytes(),
            memory_bound: ledger.plan.options().memory,
        }
    }
}
