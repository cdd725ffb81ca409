//! A report with its rates, for all output formats.

use std::time::Duration;

use thalweg_records::collect::Report;
use thalweg_wire::Timestamp;

/// A report and its rates.
#[derive(Clone, Debug, Default)]
pub(super) struct Status {
    /// Time of the report.
    pub(super) time: Timestamp,
    /// Time since the start.
    pub(super) elapsed: Duration,
    pub(super) report: Report,
    pub(super) rates: Rates,
}

/// Rates per second since the previous status.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Rates {
    pub(super) records: f64,
    pub(super) datagrams: f64,
    /// Bytes of UDP payload.
    pub(super) bytes: f64,
    /// Bytes of Parquet files.
    pub(super) written: f64,
}

/// One second.
const SECOND: Duration = Duration::from_secs(1);

impl Status {
    /// Creates a status with rates since `before`.
    pub(super) fn after(before: &Status, report: Report, elapsed: Duration, time: Timestamp) -> Status {
        let span = elapsed.saturating_sub(before.elapsed).max(SECOND / 1000).as_secs_f64();
        let rate = |of: fn(&Report) -> u64| of(&report).saturating_sub(of(&before.report)) as f64 / span;
        let rates = Rates {
            records: rate(Report::records),
            datagrams: rate(Report::datagrams),
            bytes: rate(|report| report.sockets.iter().map(|socket| socket.bytes).sum()),
            written: rate(|report| report.flows.bytes + report.counters.bytes),
        };
        Status { time, elapsed, report, rates }
    }

    /// Creates the last status, with the rates of the whole run.
    pub(super) fn last(report: Report, elapsed: Duration, time: Timestamp) -> Status {
        Status::after(&Status::default(), report, elapsed, time)
    }
}
