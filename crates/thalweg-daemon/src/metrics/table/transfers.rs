//! Metrics of reports from transfer hosts.

use super::{counter, gauge};
use crate::metrics::{Metric, Samples, Snapshot};

/// Labels of a host's metrics.
const HOST: &[&str] = &["host"];

/// Puts a number of each host.
fn of_hosts(
    snapshot: &Snapshot,
    out: &mut Samples<'_>,
    number: impl Fn(&thalweg_api::TransferHostCounts) -> u64,
) {
    for host in &snapshot.transfer_hosts {
        out.put(&[&host.host], number(&host.counts));
    }
}

/// Reports of transfer hosts.
pub(super) const TRANSFERS: &[Metric] = &[
    counter(
        "thalweg_transfer_reports_total",
        HOST,
        "Reports of a transfer host that were stored.",
        |s, out| {
            of_hosts(s, out, |counts| counts.reports);
        },
    ),
    counter("thalweg_transfer_rows_total", HOST, "Rows of a transfer host that were stored.", |s, out| {
        of_hosts(s, out, |counts| counts.rows);
    }),
    counter(
        "thalweg_transfer_reports_duplicate_total",
        HOST,
        "Reports of a transfer host that had been stored before.",
        |s, out| of_hosts(s, out, |counts| counts.duplicates),
    ),
    counter(
        "thalweg_transfer_reports_missing_total",
        HOST,
        "Reports that the agent of a transfer host dropped because its queue was full.",
        |s, out| of_hosts(s, out, |counts| counts.missing),
    ),
    counter(
        "thalweg_transfer_reports_refused_total",
        HOST,
        "Reports of a transfer host that were invalid, or beyond its limit of rows.",
        |s, out| of_hosts(s, out, |counts| counts.refused),
    ),
    gauge(
        "thalweg_transfer_host_clock_difference_seconds",
        HOST,
        "Time of this daemon's clock minus that of the host's at its latest report, transit included.",
        |s, out| {
            for host in &s.transfer_hosts {
                if let Some(difference) = host.clock_difference_us {
                    out.put(&[&host.host], difference as f64 / 1e6);
                }
            }
        },
    ),
    gauge(
        "thalweg_transfer_host_last_report_seconds",
        HOST,
        "Time of the latest report of a transfer host, in seconds since 1970-01-01 UTC.",
        |s, out| {
            for host in &s.transfer_hosts {
                out.put(&[&host.host], host.received.0.0 as f64 / 1e9);
            }
        },
    ),
    counter(
        "thalweg_transfer_store_rows_total",
        &["dataset"],
        "Rows of transfer hosts in Parquet files.",
        |s, out| {
            for (dataset, statistics) in &s.transfer_stores {
                out.put(&[dataset], statistics.written);
            }
        },
    ),
    gauge(
        "thalweg_transfer_store_spool_rows",
        &["dataset"],
        "Rows of transfer hosts on the disk that are not in Parquet files yet.",
        |s, out| {
            for (dataset, statistics) in &s.transfer_stores {
                out.put(&[dataset], statistics.in_spool);
            }
        },
    ),
    counter(
        "thalweg_transfer_store_errors_total",
        &["dataset"],
        "Failed writes of rows of transfer hosts. The rows are kept.",
        |s, out| {
            for (dataset, statistics) in &s.transfer_stores {
                out.put(&[dataset], statistics.errors);
            }
        },
    ),
];
