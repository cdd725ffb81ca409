//! `[event_log]`: events on disk.

use thalweg_api::EventBody;
use thalweg_config::{Document, Problem};
use thalweg_wire::Bytes;

use super::table::EventLog;
use crate::event_log::EventLogOptions;

/// The smallest size: segments are a sixteenth of it, and an event may have 64 KiB.
const MIN_SIZE: Bytes = Bytes(1 << 20);

/// Reads the section; `None` without a directory.
pub(super) fn read(document: &Document, problems: &mut Vec<Problem>) -> Option<EventLogOptions> {
    let entry = document.one::<EventLog>();
    if entry.max_size < MIN_SIZE {
        problems.push(entry.refuse(EventLog::max_size, format!("expected at least {MIN_SIZE}")));
    }
    for name in entry.types.iter().flatten() {
        if !EventBody::TYPES.contains(&name.as_str()) {
            let known = EventBody::TYPES.join(", ");
            problems.push(
                entry.refuse(EventLog::types, format!("unknown type {name:?}: expected some of {known}")),
            );
        }
    }
    let folder = entry.folder.as_ref().map(|folder| document.folder.join(folder));
    if folder.is_none() && entry.types.is_some() {
        problems.push(entry.refuse(EventLog::types, "requires folder"));
    }
    Some(EventLogOptions { folder: folder?, max_size: entry.max_size, types: entry.types.clone() })
}
