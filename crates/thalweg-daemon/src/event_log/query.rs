//! Reads the event log, the newest event first.

use std::io;
use std::path::Path;
use std::str::FromStr;
use std::time::{Duration, SystemTime};

use serde::Deserialize;
use thalweg_api::{Gap, LoggedEvent, LoggedEvents};
use thalweg_wire::Timestamp;
use thiserror::Error;

use super::segments;
use crate::event_id::EventId;

/// Which events to read.
#[derive(Clone, Debug, Default)]
pub struct Query {
    /// Types; `None`: all.
    pub types: Option<Vec<String>>,
    /// Name of the link that the event names; `None`: any.
    pub link: Option<String>,
    /// Name of the collector; `None`: any.
    pub collector: Option<String>,
    /// First time of publication.
    pub start: Option<Timestamp>,
    /// First time after those of the events.
    pub end: Option<Timestamp>,
    /// Only events before this one.
    pub before: Option<Position>,
    /// The maximum number of events.
    pub limit: usize,
}

/// A position in the log: run, then number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// The run of the daemon.
    pub run: u64,
    /// The number of the event in it.
    pub id: u64,
}

/// What of a line decides whether it is read.
#[derive(Deserialize)]
struct Head<'a> {
    event_id: String,
    emitted: thalweg_api::UtcTime,
    #[serde(default, borrow, rename = "type")]
    kind: Option<&'a str>,
    collector: Option<String>,
    link: Option<String>,
    missing_events: Option<u64>,
}

/// Text that is not the position of an event.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("invalid event id: expected RUN-NUMBER")]
pub struct ParsePositionError;

impl FromStr for Position {
    type Err = ParsePositionError;

    fn from_str(text: &str) -> Result<Position, ParsePositionError> {
        match text.parse() {
            Ok(EventId { run: Some(run), id }) => Ok(Position { run, id }),
            _ => Err(ParsePositionError),
        }
    }
}

impl Query {
    fn matches(&self, head: &Head<'_>) -> bool {
        let is_of = |wanted: &Option<String>, found: &Option<String>| wanted.is_none() || wanted == found;
        let kind = head.kind.unwrap_or_default();
        self.types.as_ref().is_none_or(|types| types.iter().any(|wanted| wanted == kind))
            && is_of(&self.link, &head.link)
            && is_of(&self.collector, &head.collector)
            && self.is_within(head)
    }

    fn is_within(&self, head: &Head<'_>) -> bool {
        let time = head.emitted.0;
        self.start.is_none_or(|start| time >= start) && self.end.is_none_or(|end| time < end)
    }
}

/// Reads events from the log in a folder.
///
/// # Errors
/// If a segment cannot be read.
pub(super) fn read(folder: &Path, query: &Query) -> io::Result<LoggedEvents> {
    let mut found = LoggedEvents { events: Vec::new(), gaps: Vec::new(), next: None, unreadable: 0 };
    // Nothing is published after it was written. A second for clocks of file systems.
    let since = query.start.map(|start| {
        SystemTime::UNIX_EPOCH + Duration::from_nanos(start.0).saturating_sub(Duration::from_secs(1))
    });
    for segment in segments::list(folder)?.into_iter().rev() {
        if query.before.is_some_and(|before| segment.run > before.run) {
            continue;
        }
        let Some(text) = segments::read(folder, segment, since)? else { continue };
        // The rest of a line that is being written, or that was never completed.
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        found.unreadable += u64::from(text.len() > whole.len() + 1);
        for line in whole.lines().rev() {
            if found.events.len() == query.limit {
                found.next = found.events.last().map(|event| event.event_id.clone());
                return Ok(found);
            }
            if !take(line, query, &mut found) {
                found.unreadable += 1;
            }
        }
    }
    Ok(found)
}

/// Takes what a line has. Returns whether it could be read.
fn take(line: &str, query: &Query, found: &mut LoggedEvents) -> bool {
    let Ok(head) = serde_json::from_str::<Head<'_>>(line) else { return false };
    let Ok(position) = head.event_id.parse::<Position>() else { return false };
    if query.before.is_some_and(|before| position >= before) {
        return true;
    }
    match head.missing_events {
        Some(missing_events) if query.is_within(&head) => {
            found.gaps.push(Gap { event_id: head.event_id, missing_events, emitted: head.emitted });
        }
        Some(_) => {}
        None if query.matches(&head) => match serde_json::from_str::<LoggedEvent>(line) {
            Ok(event) => found.events.push(event),
            Err(_) => return false,
        },
        None => {}
    }
    true
}
