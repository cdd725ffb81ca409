//! The metering side of a worker.

use std::sync::PoisonError;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, Sender};
use thalweg_measure::filter::FlowFilter;
use thalweg_measure::meter::record::FlowRecord;
use thalweg_measure::meter::top::Rates;
use thalweg_wire::{Packet, Timestamp};

use super::distributor::DistributedBatch;
use super::{PacketSink, VIEW_INTERVAL, WorkerOptions};
use crate::clock::Clock;
use crate::groups::{GroupTable, GroupTotals, Grouping};
use crate::ledger::Largest;
use crate::message::{Done, Message, MeteringView, ReadingView, View, send_message};
use crate::meter::Meter;
use crate::snapshot::{FlowRow, Query};
use crate::tasks::TaskMonitor;

/// Records per message, unless [`MAX_RECORD_DELAY`] passes first.
const RECORD_BATCH: usize = 512;

/// Maximum number of hosts, and of pairs, in a view. Of more, those that are the first by the query's order in one worker are sent.
const MAX_GROUPS: usize = 16_384;

/// Maximum time that a record is pending.
const MAX_RECORD_DELAY: Duration = Duration::from_millis(50);

/// The metering side of a worker.
#[derive(Debug)]
pub(crate) struct Metering {
    worker: usize,
    sender: Sender<Message>,
    clock: Clock,
    worker_options: WorkerOptions,
    /// `None` without a flow table.
    meter: Option<Meter>,
    /// `None` without tasks.
    task_monitor: Option<TaskMonitor>,
    largest: Largest,
    /// Hosts or pairs of the run, if requested.
    groups: Option<GroupTotals>,
    rates: Rates,
    /// Memory for the hosts and the pairs of a view.
    tables: [(Grouping, GroupTable); 2],
    next_view: Instant,
    /// When records were last sent.
    records_sent_at: Instant,
}

impl Metering {
    pub(crate) fn new(
        worker: usize,
        meter: Option<Meter>,
        task_monitor: Option<TaskMonitor>,
        worker_options: WorkerOptions,
        sender: Sender<Message>,
        clock: Clock,
    ) -> Metering {
        let (largest, rates) = (Largest::new(worker_options.largest), Rates::default());
        let grouping = worker_options.grouping;
        let groups = (grouping != Grouping::Flow).then(|| GroupTotals::new(grouping));
        let now = clock.now();
        Metering {
            worker,
            sender,
            clock,
            worker_options,
            meter,
            task_monitor,
            largest,
            groups,
            rates,
            tables: [Grouping::Host, Grouping::Pair].map(|grouping| (grouping, GroupTable::default())),
            next_view: now,
            records_sent_at: now,
        }
    }

    /// Meters batches from a reading thread until the channel closes.
    pub(crate) fn run(mut self, batches: &Receiver<DistributedBatch>) -> Done {
        while let Ok(DistributedBatch { packets, now, latest }) = batches.recv() {
            self.packets(&packets);
            self.advance_to(now, None);
            if let Some(task_monitor) = &mut self.task_monitor {
                task_monitor.advance(latest);
            }
        }
        self.finish()
    }

    /// Advances packet time to `now` and sends pending output.
    fn advance_to(&mut self, now: Timestamp, reading: Option<&ReadingView>) {
        if let Some(meter) = &mut self.meter {
            meter.advance(now);
        }
        if let Some(task_monitor) = &mut self.task_monitor {
            task_monitor.advance(now);
        }
        self.send_due_output();
        self.send_due_view(reading);
    }

    /// Returns the query of the live view, if there is one.
    fn query(&self) -> Option<Query> {
        let views = self.worker_options.views.as_ref()?;
        Some(views.lock().unwrap_or_else(PoisonError::into_inner).clone())
    }

    /// Sends detections at once, and records when the batch is full or the maximum delay has passed.
    fn send_due_output(&mut self) {
        if self.clock.since(self.records_sent_at) < MAX_RECORD_DELAY {
            return self.send_output(RECORD_BATCH);
        }
        self.send_output(1);
        self.records_sent_at = self.clock.now();
    }

    /// Sends detections at once, and records if there are at least `min_records`.
    fn send_output(&mut self, min_records: usize) {
        let Some(Meter { output, .. }) = &mut self.meter else { return };
        if output.records.is_empty() && output.findings.is_empty() {
            return;
        }
        let filter = &self.worker_options.filter;
        let mut keep = |record: &FlowRecord| {
            if filter.matches(record) {
                self.largest.add(record);
            }
            if let Some(groups) = self.groups.as_mut().filter(|_| filter.matches_part(record)) {
                groups.add(record);
            }
        };
        if !self.worker_options.records {
            output.records.drain(..).for_each(|record| keep(&record));
            output.ethernet.clear();
        }
        if !output.findings.is_empty() || output.records.len() >= min_records.max(1) {
            output.records.iter().for_each(keep);
            send_message(&self.sender, Message::Output(std::mem::take(output)));
        }
    }

    /// Sends a view if one is due.
    fn send_due_view(&mut self, reading: Option<&ReadingView>) {
        let started = self.clock.now();
        if self.worker_options.views.is_none() || started < self.next_view {
            return;
        }
        let Some(query) = self.query() else { return };
        let metering = Some(self.view(&query));
        let view = View { worker: self.worker, reading: reading.cloned(), metering };
        send_message(&self.sender, Message::View(Box::new(view)));
        // Scanning millions of flows takes a while: spend at most a tenth of the time on it.
        self.next_view = started + VIEW_INTERVAL.max(self.clock.since(started) * 10);
    }

    fn view(&mut self, query: &Query) -> MeteringView {
        let counters = self.meter.as_ref().map(Meter::counters);
        let now = self.now();
        let Some(meter) = self.meter.as_ref().filter(|_| query.limit > 0) else {
            return MeteringView { counters, now, ..MeteringView::default() };
        };
        let (mut top, mut matching, mut pinned) = (Vec::new(), 0, None);
        let pinned_key = query.pinned.map(|key| key.canonical().0);
        self.tables.iter_mut().for_each(|(_, table)| table.clear());
        let tables = &mut self.tables;
        self.rates.look(&meter.table, now, |rate| {
            let row = FlowRow::from(rate);
            if pinned_key == Some(row.key.canonical().0) {
                pinned = Some(row.clone());
            }
            for (grouping, table) in tables.iter_mut().filter(|(grouping, _)| query.needs(*grouping)) {
                if query.matches_part(&row) {
                    table.add_flow(*grouping, &row.key, row.traffic, row.cheetah);
                }
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
        // The filter's terms on amounts select sums over all workers.
        let all = Query { filter: FlowFilter::default(), ..query.clone() };
        let [hosts, pairs] =
            [0, 1].map(|place| all.first_groups(&self.tables[place].1, MAX_GROUPS.max(query.limit)));
        MeteringView { counters, now, top, matching, hosts, pairs, pinned }
    }
}

impl Metering {
    /// Returns the latest known packet time.
    fn now(&self) -> Timestamp {
        let clock = self.task_monitor.as_ref().map(TaskMonitor::clock);
        self.meter.as_ref().map(|meter| meter.table.clock()).max(clock).unwrap_or_default()
    }
}

/// Sorts rows by the query and keeps the first.
pub(crate) fn keep_first(rows: &mut Vec<FlowRow>, query: &Query) {
    rows.sort_by(|a, b| query.compare(a, b));
    rows.truncate(query.limit);
}

impl PacketSink for Metering {
    fn packets(&mut self, packets: &[Packet]) {
        if let Some(meter) = &mut self.meter {
            meter.packets(packets);
        }
        if let Some(task_monitor) = &mut self.task_monitor {
            task_monitor.packets(packets);
        }
        self.send_output(RECORD_BATCH);
    }

    fn advance(&mut self, now: Timestamp, reading: &ReadingView) {
        self.advance_to(now, Some(reading));
    }

    fn finish(mut self) -> Done {
        if let Some(query) = self.query() {
            let query = if query.limit > 0 { query.last() } else { query };
            let metering = Some(self.view(&query));
            send_message(
                &self.sender,
                Message::View(Box::new(View { worker: self.worker, reading: None, metering })),
            );
        }
        if let Some(meter) = &mut self.meter {
            meter.finish();
        }
        if let Some(task_monitor) = &mut self.task_monitor {
            task_monitor.finish();
        }
        self.send_output(1);
        let counters = self.meter.as_ref().map(Meter::counters);
        let (largest, groups) = (self.largest.sorted(), self.groups);
        Done { reading: None, counters, has_metered: true, largest, groups, in_kernel: None }
    }
}
