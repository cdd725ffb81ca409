//! Everything that is counted, in Prometheus' text format (version 0.0.4).
//!
//! One table has all metrics: what they are called, what they mean, and where they come from. The page that scrapers
//! read is written from it, and so is the reference; a test holds the dashboard to it. Names are those of Prometheus'
//! conventions: the program first, base units, `_total` for what only grows.
//!
//! `thalweg collect` has a table of its own, and writes it by the same means.
//!
//! A scrape asks each collector two questions. One that does not answer in time has only the metrics that need no
//! answer, and is counted in `thalweg_questions_late_total`.
//!
//! | file | what it has |
//! |---|---|
//! | `table` | all metrics |
//! | `text` | the text format |
//! | `reference` | the table as a page |

mod reference;
mod table;
#[cfg(test)]
mod tests;
mod text;

use std::time::Duration;

use thalweg_http::Counts;
use thalweg_measure::collector::LinkReport;
use thalweg_records::export::{Destination, ExportCounters};
use thalweg_records::store::Statistics;

pub use reference::{reference, rows};
pub use table::METRICS;
pub use text::Samples;

use super::collectors::{CollectorCounters, CollectorHandle};
use super::parts::Parts;

/// Something that is counted, of an `S` that has all counts.
#[derive(Debug)]
pub struct Metric<S: 'static = Snapshot> {
    /// Its name.
    pub name: &'static str,
    /// How its values are meant.
    pub kind: Kind,
    /// What it means.
    pub help: &'static str,
    /// What its values are told apart by.
    pub labels: &'static [&'static str],
    /// Its values.
    pub read: fn(&S, &mut Samples<'_>),
}

/// How values of a metric are meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Only grows, until the daemon is started anew.
    Counter,
    /// Is what it is now.
    Gauge,
    /// Counts by size.
    Histogram,
}

/// Everything that is counted, at about one moment.
#[derive(Debug)]
pub struct Snapshot {
    parts: Parts,
    api: ApiCounts,
    collectors: Vec<CollectorSnapshot>,
}

/// What the API has answered and refused.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ApiCounts {
    /// Requests and connections.
    pub http: Counts,
    /// Subscribers now.
    pub subscribers: u64,
    /// Lines that the log has held back.
    pub log_suppressed: u64,
}

#[derive(Debug)]
struct CollectorSnapshot {
    handle: CollectorHandle,
    counters: Option<CollectorCounters>,
    links: Vec<LinkReport>,
}

impl Kind {
    /// As in the text format.
    pub const fn name(self) -> &'static str {
        match self {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Histogram => "histogram",
        }
    }
}

impl Snapshot {
    /// What was sent as IPFIX, if anything is to be.
    fn exported(&self) -> Option<(&Destination, &ExportCounters)> {
        self.parts.handed_on.as_ref()?.export()
    }

    /// What was kept as Parquet, if anything is to be.
    fn kept(&self) -> Option<Statistics> {
        self.parts.handed_on.as_ref()?.store()
    }

    /// Asks all collectors; `patience` is how long the next of them may take.
    pub fn take(parts: &Parts, api: &ApiCounts, patience: impl Fn() -> Duration) -> Snapshot {
        let collectors = parts.collectors.all().into_iter().map(|handle| {
            let counters = handle.counters(patience()).ok().map(|asked| asked.value);
            // One that is silent now will be silent in a moment.
            let links = counters.as_ref().and_then(|_| handle.links(patience()).ok());
            CollectorSnapshot { handle, counters, links: links.map(|asked| asked.value).unwrap_or_default() }
        });
        Snapshot { parts: parts.clone(), api: api.clone(), collectors: collectors.collect() }
    }
}

/// The page that scrapers read, of these metrics.
pub fn exposition<S>(metrics: &[Metric<S>], snapshot: &S) -> String {
    let mut page = String::new();
    for metric in metrics {
        (metric.read)(snapshot, &mut Samples::new(metric, &mut page));
    }
    page
}
