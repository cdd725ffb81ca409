//! `[event_log]`: events on disk.

use std::path::PathBuf;

use thalweg_config::{Document, Problem};
use thalweg_wire::Bytes;

use super::alerts::unknown_type;
use super::table::EventLog;

/// The smallest size: segments are a sixteenth of it, and an event may have 64 KiB.
const MIN_SIZE: Bytes = Bytes(1 << 20);

/// Options of the event log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventLogOptions {
    /// Directory of the log.
    pub folder: PathBuf,
    /// The maximum size on disk.
    pub max_size: Bytes,
    /// Types of events to keep; `None`: all.
    pub types: Option<Vec<String>>,
}

/// Reads the section; `None` without a directory.
pub(super) fn read(document: &Document, problems: &mut Vec<Problem>) -> Option<EventLogOptions> {
    let entry = document.one::<EventLog>();
    if entry.max_size < MIN_SIZE {
        problems.push(entry.refuse(EventLog::max_size, format!("expected at least {MIN_SIZE}")));
    }
    problems.extend(unknown_type(entry.types.iter().flatten()).map(|why| entry.refuse(EventLog::types, why)));
    let folder = entry.folder.as_ref().map(|folder| document.folder.join(folder));
    if folder.is_none() && entry.types.is_some() {
        problems.push(entry.refuse(EventLog::types, "requires folder"));
    }
    Some(EventLogOptions { folder: folder?, max_size: entry.max_size, types: entry.types.clone() })
}
