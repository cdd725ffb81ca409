//! The table of all metrics, by subject.

mod collectors;
mod control;
mod daemon;
mod isolation;
mod transfers;

use super::{Kind, Metric, Samples, Snapshot};

/// All metrics, in the order of the reference.
const TABLES: [&[Metric]; 7] = [
    daemon::ABOUT,
    collectors::COLLECTORS,
    control::CONTROL,
    isolation::ISOLATION,
    transfers::TRANSFERS,
    collectors::TASKS_AND_SAMPLES,
    daemon::EVENTS_AND_API,
];

/// Returns all metrics, in the order of the reference.
pub fn metrics() -> impl Iterator<Item = &'static Metric> {
    TABLES.into_iter().flatten()
}

/// Labels of a collector's metrics.
const COLLECTOR: &[&str] = &["collector"];

const fn counter(
    name: &'static str,
    labels: &'static [&'static str],
    help: &'static str,
    read: fn(&Snapshot, &mut Samples<'_>),
) -> Metric {
    Metric { name, kind: Kind::Counter, help, labels, read }
}

const fn gauge(
    name: &'static str,
    labels: &'static [&'static str],
    help: &'static str,
    read: fn(&Snapshot, &mut Samples<'_>),
) -> Metric {
    Metric { name, kind: Kind::Gauge, help, labels, read }
}

const fn histogram(
    name: &'static str,
    labels: &'static [&'static str],
    help: &'static str,
    read: fn(&Snapshot, &mut Samples<'_>),
) -> Metric {
    Metric { name, kind: Kind::Histogram, help, labels, read }
}
