//! `[[alert]]`: events that are sent to webhooks.

use std::collections::BTreeSet;
use std::path::PathBuf;

use thalweg_api::EventBody;
use thalweg_config::{Document, Problem};
use thalweg_wire::{Nanos, WebUrl};

use super::table::Alert;

/// Maximum number of alerts. Each has a thread.
const MAX_ALERTS: usize = 64;

/// An alert.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AlertConfig {
    /// Its name.
    pub name: String,
    /// Types of events; `None`: all.
    pub types: Option<Vec<String>>,
    /// Name of the link that events must name; `None`: any.
    pub link: Option<String>,
    /// Name of the collector; `None`: any.
    pub collector: Option<String>,
    /// Where events are sent.
    pub webhook: WebUrl,
    /// File with the token in the header `Authorization: Bearer`, if any.
    pub token_file: Option<PathBuf>,
    /// The least time between two requests that succeed.
    pub min_interval: Nanos,
}

/// Reads the sections.
pub(super) fn read(document: &Document, problems: &mut Vec<Problem>) -> Vec<AlertConfig> {
    let (mut alerts, mut names) = (Vec::new(), BTreeSet::new());
    for entry in document.all::<Alert>() {
        if alerts.len() == MAX_ALERTS {
            problems.push(entry.refuse(Alert::name, format!("expected at most {MAX_ALERTS} alerts")));
            break;
        }
        if !names.insert(entry.name.clone()) {
            problems
                .push(entry.refuse(Alert::name, format!("another alert is also called {:?}", entry.name)));
        }
        problems
            .extend(unknown_type(entry.types.iter().flatten()).map(|why| entry.refuse(Alert::types, why)));
        alerts.push(AlertConfig {
            name: entry.name.clone(),
            types: entry.types.clone(),
            link: entry.link.clone(),
            collector: entry.collector.clone(),
            webhook: entry.webhook.clone(),
            token_file: entry.token_file.as_ref().map(|file| document.folder.join(file)),
            min_interval: entry.min_interval,
        });
    }
    alerts
}

/// Returns why types of events are invalid; `None` if they are not.
pub(super) fn unknown_type<'a>(names: impl IntoIterator<Item = &'a String>) -> Option<String> {
    let unknown = names.into_iter().find(|name| !EventBody::TYPES.contains(&name.as_str()))?;
    Some(format!("unknown type {unknown:?}: expected some of {}", EventBody::TYPES.join(", ")))
}
