//! Publishes the output of a collector: events to subscribers and the controller, flow records to the writer, dump triggers to the
//! sample writer.
//!
//! A live source does not wait for the writer: records that find the queue full are lost and counted. Other sources are read as
//! slowly as records are written. The last records of every collector wait too, at most [`LAST_RECORDS`].

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crossbeam_channel::SendTimeoutError;
use thalweg_measure::collector::{Collector, Counters, Output};
use thalweg_measure::detect::Finding;
use thalweg_measure::meter::record::FlowRecord;
use thalweg_wire::Timestamp;

use super::control_events::ControlEvent;
use super::fleet::FleetParts;
use super::handle::Description;
use super::sinks::{DumpSignal, Records, Sinks};
use super::stats::{CollectorStats, Totals};
use crate::config::Trigger;
use crate::event::{Event, EventKind};
use crate::hub::Hub;
use thalweg_linux::clock::realtime;

/// Maximum time that a stopping collector waits to queue its last records.
const LAST_RECORDS: Duration = Duration::from_secs(3);

/// Maximum time before a stop is noticed.
const STOP_CHECK_INTERVAL: Duration = Duration::from_millis(20);

/// Publishes the output of a collector.
#[derive(Clone, Debug)]
pub(super) struct EventPublisher {
    name: Arc<str>,
    switch: Arc<str>,
    is_live: bool,
    hub: Arc<Hub>,
    sinks: Sinks,
    stats: Arc<CollectorStats>,
    stop: Arc<AtomicBool>,
    /// Whether the output is the last of a flow table.
    is_last: bool,
    /// Deadline of the last records, once the collector stops.
    until: Option<Instant>,
}

impl EventPublisher {
    /// Creates a publisher for a collector that `stop` stops.
    pub(super) fn new(
        description: &Description,
        parts: &FleetParts,
        sinks: Sinks,
        stats: Arc<CollectorStats>,
        stop: Arc<AtomicBool>,
    ) -> EventPublisher {
        EventPublisher {
            name: Arc::clone(&description.name),
            switch: Arc::clone(&description.switch),
            is_live: description.is_live,
            hub: Arc::clone(&parts.hub),
            sinks,
            stats,
            stop,
            is_last: false,
            until: None,
        }
    }

    /// Returns the counters of the collector.
    pub(super) fn stats(&self) -> &CollectorStats {
        &self.stats
    }

    /// Publishes output in the order of packet time. `arrived` is when the packets arrived; `None` if time alone caused it.
    #[inline]
    pub(super) fn publish_output(&mut self, output: &mut Output, arrived: Option<Instant>) {
        let Output { events, address_changes, flows, .. } = &*output;
        if !events.is_empty() || !address_changes.is_empty() || !flows.findings.is_empty() {
            self.publish_events(output, arrived);
        }
        if !output.arrivals.is_empty() {
            self.send_arrivals(output);
        }
        if !output.flows.records.is_empty() {
            self.send_records(&mut output.flows.records);
        }
    }

    /// Publishes the last output of a flow table: the records of all its flows.
    pub(super) fn finish(&mut self, collector: &mut Collector, output: &mut Output) {
        collector.finish(output);
        self.is_last = true;
        self.publish_output(output, None);
        self.is_last = false;
    }

    /// Publishes the last output of a replaced flow table. Its counters have been added already, except for these records.
    pub(super) fn finish_replaced(&mut self, mut collector: Collector) {
        let before = collector.counters().flow_table.records;
        self.finish(&mut collector, &mut Output::default());
        let mut rest = Counters::default();
        let after = collector.counters().flow_table.records;
        for (count, (after, before)) in rest.flow_table.records.iter_mut().zip(after.into_iter().zip(before))
        {
            *count = after - before;
        }
        self.stats.end(Totals { collector: rest, ..Totals::default() });
    }

    /// Publishes one event.
    pub(super) fn publish(&self, time: Timestamp, kind: EventKind) {
        publish(&self.hub, [&self.name, &self.switch], self.is_live, time, kind);
    }

    /// Returns a function that publishes events of this collector, for another thread.
    pub(super) fn event_sender(&self) -> impl Fn(Timestamp, EventKind) + Send + 'static {
        let (hub, is_live) = (Arc::clone(&self.hub), self.is_live);
        let names = [Arc::clone(&self.name), Arc::clone(&self.switch)];
        move |time, kind| publish(&hub, names.each_ref(), is_live, time, kind)
    }

    #[cold]
    fn publish_events(&self, output: &mut Output, arrived: Option<Instant>) {
        let Output { events, address_changes, flows, .. } = output;
        let events =
            std::mem::take(events).into_iter().map(|event| (event.time, EventKind::Congestion(event)));
        let changes = std::mem::take(address_changes).into_iter();
        let changes = changes.map(|change| (change.time, EventKind::AddressChange(change)));
        let findings = std::mem::take(&mut flows.findings).into_iter().map(|finding| {
            let time = match &finding {
                Finding::Began(cheetah) => cheetah.detected,
                Finding::Ended(end) => end.last,
            };
            (time, EventKind::Cheetah(finding))
        });
        let mut ordered: Vec<(Timestamp, EventKind)> = events.chain(changes).chain(findings).collect();
        ordered.sort_by_key(|(time, _)| *time);
        for (time, kind) in ordered {
            // The controller first: its latency matters most.
            if let Some(event_sender) = &self.sinks.control {
                event_sender.send_event(&self.switch, &kind);
            }
            if let (Some(sender), EventKind::Cheetah(finding)) = (&self.sinks.findings, &kind) {
                sender.send(&self.name, finding);
            }
            if let Some(trigger) = kind.trigger() {
                self.request_dump(trigger);
            }
            self.publish(time, kind);
            if let Some(arrived) = arrived {
                self.stats.decision.record(arrived.elapsed());
                if self.is_live {
                    self.stats.arrival.record((realtime() - time).into());
                }
            }
        }
    }

    /// Sends arrivals of observed packets to the controller, which requested them.
    #[cold]
    fn send_arrivals(&self, output: &mut Output) {
        for report in output.arrivals.drain(..) {
            if let Some(event_sender) = &self.sinks.control {
                event_sender.send(ControlEvent::Arrival(report));
            }
        }
    }

    /// Requests a dump if `trigger` is configured.
    fn request_dump(&self, trigger: Trigger) {
        if let Some(dump_queue) = &self.sinks.dump_queue
            && self.sinks.dump_triggers.contains(&trigger)
        {
            dump_queue.put(DumpSignal::Event { collector: Arc::clone(&self.name), trigger });
        }
    }

    /// Sends records to the writer, or discards them if there is none.
    fn send_records(&mut self, records: &mut Vec<FlowRecord>) {
        let Some(sender) = &self.sinks.records else { return records.clear() };
        let count = records.len() as u64;
        let mut message = Records {
            collector: Arc::clone(&self.name),
            stats: Arc::clone(&self.stats),
            records: std::mem::take(records),
        };
        self.stats.note_queued(count);
        if self.is_live && !self.is_last {
            if sender.try_send(message).is_err() {
                self.stats.note_queue_full(count);
            }
            return;
        }
        loop {
            message = match sender.send_timeout(message, STOP_CHECK_INTERVAL) {
                Ok(()) => return,
                Err(SendTimeoutError::Timeout(message)) => message,
                Err(SendTimeoutError::Disconnected(_)) => return self.stats.note_queue_full(count),
            };
            // A slow disk is not a hang of this thread.
            self.stats.beat();
            if self.is_last || self.stop.load(Ordering::Relaxed) {
                let now = Instant::now();
                if now >= *self.until.get_or_insert(now + LAST_RECORDS) {
                    return self.stats.note_queue_full(count);
                }
            }
        }
    }
}

/// Publishes an event of a collector at a switch.
fn publish(hub: &Hub, [collector, switch]: [&Arc<str>; 2], is_live: bool, time: Timestamp, kind: EventKind) {
    let emitted = if is_live { realtime() } else { time };
    let (collector, switch) = (Arc::clone(collector), Arc::clone(switch));
    hub.publish(Event { collector, switch, time, emitted, kind });
}
