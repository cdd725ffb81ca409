use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use thalweg_wire::Bytes;

use super::*;
use crate::api::convert;
use crate::event::{CollectorState, Event, EventKind};
use crate::hub::Hub;

fn event(collector: &str, seconds: u64, kind: EventKind) -> Event {
    let time = Timestamp(seconds * 1_000_000_000);
    Event { collector: collector.into(), switch: "tor0".into(), time, emitted: time, kind }
}

fn running(collector: &str, seconds: u64) -> Event {
    event(collector, seconds, EventKind::State(CollectorState::Running))
}

fn link(seconds: u64) -> Event {
    event("control", seconds, EventKind::Link { name: "leaf0:p2 - spine0:p0".to_owned(), is_up: false })
}

fn options(folder: &Path) -> EventLogOptions {
    EventLogOptions { folder: folder.to_owned(), max_size: Bytes(1 << 20), types: None }
}

/// Logs events as a run of the daemon.
fn run(options: EventLogOptions, started: u64, events: impl IntoIterator<Item = Event>) -> EventLog {
    let log = EventLog::new(options, Timestamp(started));
    let hub = Hub::new(8);
    let subscriber = hub.subscribe(Some(0));
    events.into_iter().for_each(|event| assert!(hub.publish(event) > 0));
    run_event_log(&log, &hub, subscriber, convert::event, || true);
    log
}

fn all() -> Query {
    Query { limit: 100, ..Query::default() }
}

fn ids(events: &LoggedEvents) -> Vec<&str> {
    events.events.iter().map(|event| event.event_id.as_str()).collect()
}

#[test]
fn events_of_earlier_runs_are_read_the_newest_first() {
    let folder = tempfile::tempdir().unwrap();
    run(options(folder.path()), 1, [running("tor0", 10), link(20)]);
    let log = run(options(folder.path()), 2, [running("tor1", 30)]);
    assert_eq!(log.counts(), EventLogCounts { written: 1, ..EventLogCounts::default() });
    let events = log.read(&all()).unwrap();
    let [second, link, first] = ["0000000000000002-1", "0000000000000001-2", "0000000000000001-1"];
    assert_eq!(ids(&events), [second, link, first]);
    assert_eq!((events.next, events.unreadable, events.gaps.len()), (None, 0, 0));

    let read = |query: Query| log.read(&query).unwrap();
    let page = read(Query { limit: 2, ..all() });
    assert_eq!((ids(&page), page.next.as_deref()), (vec![second, link], Some(link)));
    let page = read(Query { before: link.parse().ok(), ..all() });
    assert_eq!((ids(&page), &page.next), (vec![first], &None));
    assert_eq!(ids(&read(Query { collector: Some("tor1".to_owned()), ..all() })), [second]);
    assert_eq!(ids(&read(Query { types: Some(vec!["link".to_owned()]), ..all() })), [link]);
    let of_link = |name: &str| read(Query { link: Some(name.to_owned()), ..all() }).events.len();
    assert_eq!((of_link("leaf0:p2 - spine0:p0"), of_link("leaf0:p3 - spine0:p0")), (1, 0));
    let between = |start: u64, end: u64| {
        let [start, end] = [start, end].map(|seconds| Some(Timestamp(seconds * 1_000_000_000)));
        read(Query { start, end, ..all() }).events.len()
    };
    assert_eq!([between(10, 30), between(20, 31), between(11, 20)], [2, 2, 0]);
}

#[test]
fn only_the_chosen_types_are_kept() {
    let folder = tempfile::tempdir().unwrap();
    let options = EventLogOptions { types: Some(vec!["link".to_owned()]), ..options(folder.path()) };
    let log = run(options, 1, [running("tor0", 10), link(20)]);
    assert_eq!(ids(&log.read(&all()).unwrap()), ["0000000000000001-2"]);
}

/// The hub keeps eight.
#[test]
fn events_that_came_too_fast_are_a_gap() {
    let folder = tempfile::tempdir().unwrap();
    let log = run(options(folder.path()), 1, (0..20).map(link));
    let counts = log.counts();
    assert_eq!((counts.written, counts.lost), (8, 12));
    let events = log.read(&all()).unwrap();
    assert_eq!((events.events.len(), events.gaps.len()), (8, 1));
    let gap = &events.gaps[0];
    assert_eq!((gap.event_id.as_str(), gap.missing_events), ("0000000000000001-12", 12));
}

#[test]
fn damaged_and_incomplete_lines_are_counted() {
    let folder = tempfile::tempdir().unwrap();
    let log = run(options(folder.path()), 1, [link(1), link(2)]);
    let path = folder.path().join("events-0000000000000001-00000001.jsonl");
    let mut text = fs::read_to_string(&path).unwrap();
    let beginning = text[..text.len() / 3].to_owned();
    text.push_str("{}\n");
    text.push_str(&beginning);
    fs::write(&path, text).unwrap();
    let events = log.read(&all()).unwrap();
    assert_eq!((events.events.len(), events.unreadable), (2, 2));
}

#[test]
fn what_cannot_be_written_is_written_later_or_counted() {
    let folder = tempfile::tempdir().unwrap();
    // A file where the folder should be.
    let place = folder.path().join("log");
    fs::write(&place, "").unwrap();
    let log = run(options(&place), 1, [link(1), link(2)]);
    assert_eq!(log.counts(), EventLogCounts { written: 0, lost: 2, failures: 1 });

    let log = EventLog::new(options(&place), Timestamp(2));
    let hub = Arc::new(Hub::new(8));
    let subscriber = hub.subscribe(Some(0));
    hub.publish(link(3));
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            run_event_log(&log, &hub, subscriber, convert::event, || is_over.load(Ordering::Relaxed))
        });
        while log.counts().failures == 0 {
            std::thread::yield_now();
        }
        fs::remove_file(&place).unwrap();
        while log.counts().written == 0 {
            std::thread::yield_now();
        }
        is_over.store(true, Ordering::Relaxed);
    });
    assert_eq!(log.read(&all()).unwrap().events.len(), 1);
}
