//! Metrics in the Prometheus text format (version 0.0.4).
//!
//! One table defines name, labels, help text and source of each metric. The exposition and the reference are generated from it, and a
//! test checks the dashboard against it. Names follow Prometheus conventions: program name first, base units, `_total` for counters.
//!
//! `thalweg collect` has its own table, and uses the same exposition.
//!
//! A scrape sends two requests to each collector. A collector that times out has only the metrics that need no request, and is
//! counted in `thalweg_collector_requests_timed_out_total`.
//!
//! | file | contents |
//! |---|---|
//! | `table` | all metrics, a file for each subject |
//! | `text` | the text format |
//! | `reference` | the reference page |

mod reference;
mod table;
#[cfg(test)]
mod tests;
mod text;

use std::time::Duration;

use thalweg_api::TransferHost;
use thalweg_control::isolate::RedirectionId;
use thalweg_http::Counts;
use thalweg_measure::collector::LinkReport;
use thalweg_records::export::{Destination, ExportCounters};
use thalweg_records::store::Statistics;

pub use reference::{reference, rows};
pub use table::metrics;
pub use text::Samples;

use super::collectors::{CollectorCounters, CollectorHandle};
use super::isolation::IsolationReport;
use super::parts::Parts;
use super::polls::PollReport;
use super::threshold::ThresholdReport;
use super::transfers::Transfers;

/// A metric, read from a snapshot `S`.
#[derive(Debug)]
pub struct Metric<S: 'static = Snapshot> {
    /// Name.
    pub name: &'static str,
    /// Type.
    pub kind: Kind,
    /// Help text.
    pub help: &'static str,
    /// Names of its labels.
    pub labels: &'static [&'static str],
    /// Writes its samples.
    pub read: fn(&S, &mut Samples<'_>),
}

/// Type of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Only increases until the program restarts.
    Counter,
    /// A current value.
    Gauge,
    /// Counts by bucket.
    Histogram,
}

/// A snapshot of everything that metrics read.
#[derive(Debug)]
pub struct Snapshot {
    parts: Parts,
    api: ApiCounts,
    collectors: Vec<CollectorSnapshot>,
    /// Without ended redirections.
    isolation: Option<IsolationReport>,
    /// Each poll by its name.
    polls: Vec<(String, PollReport)>,
    /// Hosts that report transfers.
    transfer_hosts: Vec<TransferHost>,
    /// The store of each of their datasets.
    transfer_stores: Vec<(&'static str, Statistics)>,
    threshold: Option<ThresholdReport>,
}

/// Counters of the API.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ApiCounts {
    /// Requests and connections.
    pub http: Counts,
    /// Current subscribers.
    pub subscribers: u64,
    /// Suppressed log lines.
    pub log_suppressed: u64,
}

#[derive(Debug)]
struct CollectorSnapshot {
    handle: CollectorHandle,
    counters: Option<CollectorCounters>,
    links: Vec<LinkReport>,
}

impl Kind {
    /// Returns the name in the text format.
    pub const fn name(self) -> &'static str {
        match self {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Histogram => "histogram",
        }
    }
}

impl Snapshot {
    /// Returns the statistics of the IPFIX export, if configured.
    fn ipfix_export(&self) -> Option<(&Destination, &ExportCounters)> {
        self.parts.export_ledger.as_ref()?.export()
    }

    /// Returns the statistics of the Parquet store, if configured.
    fn flow_store(&self) -> Option<Statistics> {
        self.parts.export_ledger.as_ref()?.store()
    }

    /// Queries all collectors. `timeout` returns the timeout of the next one.
    pub fn take(parts: &Parts, api: &ApiCounts, timeout: impl Fn() -> Duration) -> Snapshot {
        let collectors = parts.collectors.all().into_iter().map(|handle| {
            let counters = handle.counters(timeout()).ok().map(|reply| reply.value);
            // After one timeout, a second request would time out too.
            let links = counters.as_ref().and_then(|_| handle.links(timeout()).ok());
            CollectorSnapshot { handle, counters, links: links.map(|reply| reply.value).unwrap_or_default() }
        });
        let isolation =
            parts.isolation.as_ref().map(|isolation| isolation.state().report(RedirectionId(0), 0, 0));
        let polls = parts.polls.all().iter().map(|poll| (poll.name().to_owned(), poll.latest())).collect();
        let threshold = parts.threshold.as_ref().and_then(|threshold| threshold.report());
        Snapshot {
            parts: parts.clone(),
            api: api.clone(),
            collectors: collectors.collect(),
            isolation,
            polls,
            transfer_hosts: parts.transfers.as_ref().map(Transfers::hosts).unwrap_or_default(),
            transfer_stores: parts.transfers.iter().flat_map(Transfers::statistics).collect(),
            threshold,
        }
    }
}

/// Returns the exposition of a table of metrics.
pub fn exposition<S: 'static>(metrics: impl IntoIterator<Item = &'static Metric<S>>, snapshot: &S) -> String {
    let mut page = String::new();
    for metric in metrics {
        (metric.read)(snapshot, &mut Samples::new(metric, &mut page));
    }
    page
}
