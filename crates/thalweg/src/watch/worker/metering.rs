//! The metering side of a worker.

use std::sync::PoisonError;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, Sender};
use thalweg_measure::meter::top::Rates;
use thalweg_wire::{Packet, Timestamp};

use super::dealer::Dealt;
use super::{Done, Message, MeteringView, ReadingView, Target, VIEW_INTERVAL, View, Wants, tell};
use crate::watch::ledger::Largest;
use crate::watch::live_view::{FlowRow, Query};
use crate::watch::meter::Meter;

/// Records sent together, if so many come within [`RECORD_PATIENCE`].
const RECORDS_TOGETHER: usize = 512;

/// How long a record waits for others.
const RECORD_PATIENCE: Duration = Duration::from_millis(50);

/// The metering side of a worker.
#[derive(Debug)]
pub(in crate::watch) struct Metering {
    worker: usize,
    sender: Sender<Message>,
    wants: Wants,
    meter: Meter,
    largest: Largest,
    rates: Rates,
    next_view: Instant,
    /// When records were sent last.
    records_sent: Instant,
}

impl Metering {
    pub(in crate::watch) fn new(
        worker: usize,
        meter: Meter,
        wants: Wants,
        sender: Sender<Message>,
    ) -> Metering {
        let (largest, rates) = (Largest::new(wants.largest), Rates::default());
        let now = Instant::now();
        Metering { worker, sender, wants, meter, largest, rates, next_view: now, records_sent: now }
    }

    /// Meters what a reading thread deals out, until there is no more.
    pub(in crate::watch) fn run(mut self, batches: &Receiver<Dealt>) -> Done {
        while let Ok(Dealt { packets, now }) = batches.recv() {
            self.packets(&packets);
            self.go_on(now, None);
        }
        self.finish()
    }

    /// Lets time pass, and tells what there is to tell.
    fn go_on(&mut self, now: Timestamp, reading: Option<&ReadingView>) {
        self.meter.advance(now);
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
        if self.records_sent.elapsed() < RECORD_PATIENCE {
            return self.hand_over(RECORDS_TOGETHER);
        }
        self.hand_over(1);
        self.records_sent = Instant::now();
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
        let begun = Instant::now();
        if self.wants.views.is_none() || begun < self.next_view {
            return;
        }
        let Some(query) = self.query() else { return };
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
pub(in crate::watch) fn keep_first(rows: &mut Vec<FlowRow>, query: &Query) {
    rows.sort_by(|a, b| query.compare(a, b));
    rows.truncate(query.limit);
}

impl Target for Metering {
    fn packets(&mut self, packets: &[Packet]) {
        self.meter.packets(packets);
        self.hand_over(RECORDS_TOGETHER);
    }

    fn advance(&mut self, now: Timestamp, reading: &ReadingView) {
        self.go_on(now, Some(reading));
    }

    fn finish(mut self) -> Done {
        if let Some(query) = self.query() {
            let metering = Some(self.view(&query));
            tell(
                &self.sender,
                Message::View(Box::new(View { worker: self.worker, reading: None, metering })),
            );
        }
        self.meter.finish();
        self.hand_over(1);
        let counters = Some(self.meter.counters());
        Done { reading: None, counters, largest: self.largest.sorted() }
    }
}
