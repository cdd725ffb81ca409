//! Writes events to the log.

use std::thread;
use std::time::Duration;

use serde::Serialize;
use thalweg_api::{Event, Gap, LoggedEvent};
use thalweg_linux::clock::realtime;

use super::EventLog;
use super::segments::Segments;
use crate::event_id::EventId;
use crate::hub::{Delivery, Hub, Published, Subscriber};

/// The pause between two looks for events, in which the hub keeps them.
const PAUSE: Duration = Duration::from_millis(100);

/// The pause after a failed write.
const RETRY: Duration = Duration::from_secs(1);

/// Events that are written at once.
const BATCH: usize = 256;

/// Lines that are not written yet.
#[derive(Default)]
struct Batch {
    lines: Vec<u8>,
    /// Events in them.
    events: u64,
}

impl Batch {
    fn add(&mut self, line: &impl Serialize) {
        // Our own types can be written as JSON, which has no line breaks.
        if serde_json::to_writer(&mut self.lines, line).is_ok() {
            self.lines.push(b'\n');
        }
    }

    /// Takes what the hub has, up to a limit.
    fn fill(
        &mut self,
        log: &EventLog,
        hub: &Hub,
        subscriber: &mut Subscriber,
        convert: &impl Fn(&Published) -> Event,
    ) {
        let event_id = |id| EventId { run: Some(log.run), id }.to_string();
        for _ in 0..BATCH {
            match subscriber.next_delivery(hub) {
                None => return,
                Some(Delivery::Lost { count, last }) => {
                    log.counters.add_lost(count);
                    self.add(&Gap {
                        event_id: event_id(last),
                        missing_events: count,
                        emitted: realtime().into(),
                    });
                }
                Some(Delivery::Event(published)) if log.keeps(published.event.kind.type_name()) => {
                    let event = convert(&published);
                    self.add(&LoggedEvent { event_id: event_id(published.id), event });
                    self.events += 1;
                }
                Some(Delivery::Event(_)) => {}
            }
        }
    }
}

/// Writes all events of the hub until `is_over`, then those that are left. If a write fails, it is tried again, and meanwhile the hub keeps
/// events; those that it has to overwrite are counted as lost. `convert` returns an event as the API has it.
pub(crate) fn run_event_log(
    log: &EventLog,
    hub: &Hub,
    mut subscriber: Subscriber,
    convert: impl Fn(&Published) -> Event,
    is_over: impl Fn() -> bool,
) {
    let mut segments: Option<Segments> = None;
    let mut batch = Batch::default();
    loop {
        // Before the hub is read, so that the last events are read.
        let is_last = is_over();
        if batch.lines.is_empty() {
            batch.fill(log, hub, &mut subscriber, &convert);
        }
        if batch.lines.is_empty() {
            if is_last {
                return;
            }
            thread::sleep(PAUSE);
            continue;
        }
        match append(&mut segments, log, &batch.lines) {
            Ok(()) => {
                log.counters.add_written(batch.events);
                batch = Batch::default();
            }
            Err(error) => {
                log.counters.add_failure();
                tracing::warn!(folder = %log.options.folder.display(), %error, "cannot write the event log");
                // The folder may have been removed: it is created again.
                segments = None;
                if is_last {
                    log.counters.add_lost(batch.events);
                    return;
                }
                thread::sleep(RETRY);
            }
        }
    }
}

fn append(segments: &mut Option<Segments>, log: &EventLog, lines: &[u8]) -> std::io::Result<()> {
    if segments.is_none() {
        *segments = Some(Segments::open(&log.options.folder, log.options.max_size, log.run)?);
    }
    segments.as_mut().expect("opened above").append(lines)
}
