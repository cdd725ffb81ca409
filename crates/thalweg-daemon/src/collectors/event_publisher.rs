//! Tells what a collector finds: events to whoever listens, records of flows to the file, and what happens to who writes
//! samples.
//!
//! The packets of a live source do not wait: records that find no room are lost, and counted. Any other source is read as
//! slowly as records are written. So are the last records of any collector, but not for longer than [`LAST_RECORDS`].

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crossbeam_channel::SendTimeoutError;
use thalweg_measure::collector::{Collector, Counters, Output};
use thalweg_measure::detect::Finding;
use thalweg_measure::meter::record::FlowRecord;
use thalweg_wire::Timestamp;

use super::fleet::FleetParts;
use super::handle::Description;
use super::notices::Notice;
use super::sinks::{DumpSignal, Records, Sinks};
use super::tallies::{Tallies, Totals};
use crate::clock::wall_clock;
use crate::config::Trigger;
use crate::event::{Event, EventKind};
use crate::hub::Hub;

/// How long a collector that stops waits for its last records to find room.
const LAST_RECORDS: Duration = Duration::from_secs(3);

/// How long a stop may go unnoticed.
const NAP: Duration = Duration::from_millis(20);

/// Tells what a collector finds.
#[derive(Clone, Debug)]
pub(super) struct EventPublisher {
    name: Arc<str>,
    switch: Arc<str>,
    is_live: bool,
    hub: Arc<Hub>,
    sinks: Sinks,
    tallies: Arc<Tallies>,
    stop: Arc<AtomicBool>,
    /// Whether what it tells is the last of a flow table.
    is_last: bool,
    /// Once the collector stops: until when records are waited for.
    until: Option<Instant>,
}

impl EventPublisher {
    /// Of a collector that is to end when `stop` says so.
    pub(super) fn new(
        description: &Description,
        parts: &FleetParts,
        sinks: Sinks,
        tallies: Arc<Tallies>,
        stop: Arc<AtomicBool>,
    ) -> EventPublisher {
        EventPublisher {
            name: Arc::clone(&description.name),
            switch: Arc::clone(&description.switch),
            is_live: description.is_live,
            hub: Arc::clone(&parts.hub),
            sinks,
            tallies,
            stop,
            is_last: false,
            until: None,
        }
    }

    /// Where everything is counted.
    pub(super) fn tallies(&self) -> &Tallies {
        &self.tallies
    }

    /// Tells what was found, in the order of its packets' times; what packets that came in `begun` gave rise to, or what
    /// time alone did.
    #[inline]
    pub(super) fn tell(&mut self, output: &mut Output, begun: Option<Instant>) {
        let Output { events, address_changes, flows, .. } = &*output;
        if !events.is_empty() || !address_changes.is_empty() || !flows.findings.is_empty() {
            self.tell_events(output, begun);
        }
        if !output.arrivals.is_empty() {
            self.tell_arrivals(output);
        }
        if !output.flows.records.is_empty() {
            self.hand_on(&mut output.flows.records);
        }
    }

    /// Tells the last that a flow table has to tell: all its flows.
    pub(super) fn finish(&mut self, collector: &mut Collector, output: &mut Output) {
        collector.finish(output);
        self.is_last = true;
        self.tell(output, None);
        self.is_last = false;
    }

    /// The same of a flow table in whose place there is another, which is counted already but for its last records.
    pub(super) fn retire(&mut self, mut collector: Collector) {
        let before = collector.counters().flow_table.records;
        self.finish(&mut collector, &mut Output::default());
        let mut rest = Counters::default();
        let after = collector.counters().flow_table.records;
        for (count, (after, before)) in rest.flow_table.records.iter_mut().zip(after.into_iter().zip(before))
        {
            *count = after - before;
        }
        self.tallies.end(Totals { collector: rest, ..Totals::default() });
    }

    /// Tells one thing.
    pub(super) fn publish(&self, time: Timestamp, kind: EventKind) {
        let emitted = if self.is_live { wall_clock() } else { time };
        let (collector, switch) = (Arc::clone(&self.name), Arc::clone(&self.switch));
        self.hub.publish(Event { collector, switch, time, emitted, kind });
    }

    #[cold]
    fn tell_events(&self, output: &mut Output, begun: Option<Instant>) {
        let Output { events, address_changes, flows, .. } = output;
        let events = std::mem::take(events).into_iter().map(|event| (event.time, EventKind::Link(event)));
        let changes = std::mem::take(address_changes).into_iter();
        let changes = changes.map(|change| (change.time, EventKind::AddressChange(change)));
        let findings = std::mem::take(&mut flows.findings).into_iter().map(|finding| {
            let time = match &finding {
                Finding::Began(cheetah) => cheetah.detected,
                Finding::Ended(end) => end.last,
            };
            (time, EventKind::Cheetah(finding))
        });
        let mut told: Vec<(Timestamp, EventKind)> = events.chain(changes).chain(findings).collect();
        told.sort_by_key(|(time, _)| *time);
        for (time, kind) in told {
            // First of all: it is the one who is in a hurry.
            if let Some(notice_sender) = &self.sinks.control {
                notice_sender.tell(&self.switch, &kind);
            }
            if let Some(trigger) = kind.trigger() {
                self.request_dump(trigger);
            }
            self.publish(time, kind);
            if let Some(begun) = begun {
                self.tallies.decision.record(begun.elapsed());
                if self.is_live {
                    self.tallies.arrival.record((wall_clock() - time).into());
                }
            }
        }
    }

    /// Only the controller has asked for these.
    #[cold]
    fn tell_arrivals(&self, output: &mut Output) {
        for report in output.arrivals.drain(..) {
            if let Some(notice_sender) = &self.sinks.control {
                notice_sender.hear(Notice::Arrival(report));
            }
        }
    }

    /// Wishes for a dump, if this is to make one.
    fn request_dump(&self, trigger: Trigger) {
        if let Some(dump_queue) = &self.sinks.dump_queue
            && self.sinks.wanted.contains(&trigger)
        {
            dump_queue.put(DumpSignal::Event { collector: Arc::clone(&self.name), trigger });
        }
    }

    /// Hands records on, or throws them away if nobody wants them.
    fn hand_on(&mut self, records: &mut Vec<FlowRecord>) {
        let Some(sender) = &self.sinks.records else { return records.clear() };
        let count = records.len() as u64;
        let mut message = Records {
            collector: Arc::clone(&self.name),
            tallies: Arc::clone(&self.tallies),
            records: std::mem::take(records),
        };
        self.tallies.note_handed_on(count);
        if self.is_live && !self.is_last {
            if sender.try_send(message).is_err() {
                self.tallies.note_late(count);
            }
            return;
        }
        loop {
            message = match sender.send_timeout(message, NAP) {
                Ok(()) => return,
                Err(SendTimeoutError::Timeout(message)) => message,
                Err(SendTimeoutError::Disconnected(_)) => return self.tallies.note_late(count),
            };
            // A slow disk is no fault of this thread.
            self.tallies.beat();
            if self.is_last || self.stop.load(Ordering::Relaxed) {
                let now = Instant::now();
                if now >= *self.until.get_or_insert(now + LAST_RECORDS) {
                    return self.tallies.note_late(count);
                }
            }
        }
    }
}
