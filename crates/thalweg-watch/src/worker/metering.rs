//! The metering side of a worker.

use std::sync::PoisonError;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, Sender};
use thalweg_measure::meter::top::Rates;
use thalweg_wire::{Packet, Timestamp};

use super::distributor::DistributedBatch;
use super::{Target, VIEW_INTERVAL, Wants};
use crate::clock::Clock;
use crate::ledger::Largest;
use crate::message::{Done, Message, MeteringView, ReadingView, View, tell};
use crate::meter::Meter;
use crate::snapshot::{FlowRow, Query};
use crate::tasks::Monitoring;

/// Records sent together, if so many come within [`RECORD_PATIENCE`].
const RECORDS_TOGETHER: usize = 512;

/// How long a record waits for others.
const RECORD_PATIENCE: Duration = Duration::from_millis(50);

/// The metering side of a worker.
#[derive(Debug)]
pub(crate) struct Metering {
    worker: usize,
    sender: Sender<Message>,
    clock: Clock,
    wants: Wants,
    /// `None` without a flow table.
    meter: Option<Meter>,
    /// `None` without tasks.
    monitoring: Option<Monitoring>,
    largest: Largest,
    rates: Rates,
    next_view: Instant,
    /// When records were sent last.
    records_sent: Instant,
}

impl Metering {
    pub(crate) fn new(
        worker: usize,
        meter: Option<Meter>,
        monitoring: Option<Monitoring>,
        wants: Wants,
        sender: Sender<Message>,
        clock: Clock,
    ) -> Metering {
        let (largest, rates) = (Largest::new(wants.largest), Rates::default());
        let now = clock.now();
        Metering {
            worker,
            sender,
            clock,
            wants,
            meter,
            monitoring,
            largest,
            rates,
            next_view: now,
            records_sent: now,
        }
    }

    /// Meters what a reading thread deals out, until there is no more.
    pub(crate) fn run(mut self, batches: &Receiver<DistributedBatch>) -> Done {
        while let Ok(DistributedBatch { packets, now, latest }) = batches.recv() {
            self.packets(&packets);
            self.go_on(now, None);
            if let Some(monitoring) = &mut self.monitoring {
                monitoring.advance(latest);
            }
        }
        self.finish()
    }

    /// Lets time pass, and tells what there is to tell.
    fn go_on(&mut self, now: Timestamp, reading: Option<&ReadingView>) {
        if let Some(meter) = &mut self.meter {
            meter.advance(now);
        }
        if let Some(monitoring) = &mut self.monitoring {
            monitoring.advance(now);
        }
        self.hand_over_in_time();
        self.show(reading);
    }

    /// What the live view asks for, if there is one.
    fn query(&self) -> Option<Query> {
        let views = self.wants.views.as_ref()?;
        Some(views.lock().unwrap_or_else(PoisonError::into_inner).clone())
    }

    /// Sends what was found; records once there are many, or have waited for a while.
    fn hand_over_in_time(&mut self) {
        if self.clock.since(self.records_sent) < RECORD_PATIENCE {
            return self.hand_over(RECORDS_TOGETHER);
        }
        self.hand_over(1);
        self.records_sent = self.clock.now();
    }

    /// Sends what was found, once there are enough records to send.
    fn hand_over(&mut self, least_records: usize) {
        let Some(Meter { output, .. }) = &mut self.meter else { return };
        if output.records.is_empty() && output.findings.is_empty() {
            return;
        }
        if !self.wants.records {
            for record in output.records.drain(..).filter(|record| self.wants.filter.matches(record)) {
                self.largest.add(&record);
            }
        }
        if !output.findings.is_empty() || output.records.len() >= least_records.max(1) {
            for record in output.records.iter().filter(|record| self.wants.filter.matches(*record)) {
                self.largest.add(record);
            }
            tell(&self.sender, Message::Output(std::mem::take(output)));
        }
    }

    /// Sends how things stand, if it is time to.
    fn show(&mut self, reading: Option<&ReadingView>) {
        let begun = self.clock.now();
        if self.wants.views.is_none() || begun < self.next_view {
            return;
        }
        let Some(query) = self.query() else { return };
        let metering = Some(self.view(&query));
        let view = View { worker: self.worker, reading: reading.cloned(), metering };
        tell(&self.sender, Message::View(Box::new(view)));
        // A look at millions of flows takes a while: no more than a tenth of the time goes into looking.
        self.next_view = begun + VIEW_INTERVAL.max(self.clock.since(begun) * 10);
    }

    fn view(&mut self, query: &Query) -> MeteringView {
        let counters = self.meter.as_ref().map(Meter::counters);
        let now = self.now();
        let Some(meter) = self.meter.as_ref().filter(|_| query.limit > 0) else {
            return MeteringView { counters, now, ..MeteringView::default() };
        };
        let (mut top, mut matching, mut frozen) = (Vec::new(), 0, None);
        let frozen_key = query.frozen.map(|key| key.canonical().0);
        self.rates.look(&meter.table, now, |rate| {
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

impl Metering {
    /// The latest time that was heard of.
    fn now(&self) -> Timestamp {
        let clock = self.monitoring.as_ref().map(Monitoring::clock);
        self.meter.as_ref().map(|meter| meter.table.clock()).max(clock).unwrap_or_default()
    }
}

/// Keeps the first rows in the order of the query.
pub(crate) fn keep_first(rows: &mut Vec<FlowRow>, query: &Query) {
    rows.sort_by(|a, b| query.compare(a, b));
    rows.truncate(query.limit);
}

impl Target for Metering {
    fn packets(&mut self, packets: &[Packet]) {
        if let Some(meter) = &mut self.meter {
            meter.packets(packets);
        }
        if let Some(monitoring) = &mut self.monitoring {
            monitoring.packets(packets);
        }
        self.hand_over(RECORDS_TOGETHER);
    }

    fn advance(&mut self, now: Timestamp, reading: &ReadingView) {
        self.go_on(now, Some(reading));
    }

    fn finish(mut self) -> Done {
        if let Some(query) = self.query() {
            let query = if query.limit > 0 { query.last() } else { query };
            let metering = Some(self.view(&query));
            tell(
                &self.sender,
                Message::View(Box::new(View { worker: self.worker, reading: None, metering })),
            );
        }
        if let Some(meter) = &mut self.meter {
            meter.finish();
        }
        if let Some(monitoring) = &mut self.monitoring {
            monitoring.finish();
        }
        self.hand_over(1);
        let counters = self.meter.as_ref().map(Meter::counters);
        Done { reading: None, counters, has_metered: true, largest: self.largest.sorted() }
    }
}
