//! Samples that wait for a report.

use std::time::Instant;

use serde::Serialize;
use thalweg_api::{ConnectionSample, HostSample, MAX_REPORT_ROWS, ReportRows};

use super::REPORT_INTERVAL;
use crate::queue::{Queue, QueueError};

/// Maximum size of the rows of a report in bytes of JSON. The maximum of a request is 4 MiB by default.
const MAX_REPORT_BYTES: usize = 2 << 20;

/// Maximum number of samples of a kind that wait while the queue cannot be written.
const MAX_WAITING: usize = 2 * MAX_REPORT_ROWS;

/// Samples that wait for a report.
#[derive(Debug)]
pub(super) struct Samples {
    since: Instant,
    pub(super) host: Vec<HostSample>,
    pub(super) connections: Vec<ConnectionSample>,
    /// Samples that were dropped because too many waited.
    pub(super) dropped: u64,
}

impl Default for Samples {
    fn default() -> Samples {
        Samples { since: Instant::now(), host: Vec::new(), connections: Vec::new(), dropped: 0 }
    }
}

impl Samples {
    /// Whether they have waited long enough, or are many.
    pub(super) fn is_due(&self) -> bool {
        self.since.elapsed() >= REPORT_INTERVAL || self.connections.len() >= MAX_REPORT_ROWS / 2
    }

    /// Puts all samples into the queue, in reports that fit into requests.
    ///
    /// # Errors
    /// If the queue cannot be written. The samples that are not in it go on waiting.
    pub(super) fn push(&mut self, queue: &mut Queue) -> Result<(), QueueError> {
        self.since = Instant::now();
        push(queue, &mut self.host, ReportRows::HostMetrics)?;
        push(queue, &mut self.connections, ReportRows::Connections)
    }

    /// Drops the oldest samples if too many wait.
    pub(super) fn limit(&mut self) {
        self.dropped += drop_oldest(&mut self.host) + drop_oldest(&mut self.connections);
    }
}

fn push<R: Clone + Serialize>(
    queue: &mut Queue,
    rows: &mut Vec<R>,
    report: fn(Vec<R>) -> ReportRows,
) -> Result<(), QueueError> {
    while !rows.is_empty() {
        let count = fitting(rows);
        queue.push_samples(report(rows[..count].to_vec()))?;
        rows.drain(..count);
    }
    Ok(())
}

/// Returns how many of these rows fit into a report: the first one in any case.
fn fitting<R: Serialize>(rows: &[R]) -> usize {
    let mut bytes = 0;
    let fits = |row: &&R| {
        // With a comma.
        bytes += serde_json::to_vec(row).map_or(0, |text| text.len() + 1);
        bytes <= MAX_REPORT_BYTES
    };
    rows.iter().take(MAX_REPORT_ROWS).take_while(fits).count().max(1)
}

fn drop_oldest<R>(rows: &mut Vec<R>) -> u64 {
    let excess = rows.len().saturating_sub(MAX_WAITING);
    rows.drain(..excess);
    excess as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(time_us: i64) -> HostSample {
        HostSample { time_us, disk: "d".repeat(1_000), ..HostSample::default() }
    }

    #[test]
    fn reports_fit_into_requests_and_have_all_samples() {
        let folder = tempfile::tempdir().unwrap();
        let mut queue = Queue::open(folder.path(), 1 << 30).unwrap();
        let mut samples = Samples::default();
        samples.host.extend((0..5_000).map(sample));
        samples.push(&mut queue).unwrap();
        assert!(samples.host.is_empty());
        let mut times = Vec::new();
        while let Some((number, rows)) = queue.first().unwrap() {
            let size = serde_json::to_vec(&rows).unwrap().len();
            assert!(size < MAX_REPORT_BYTES + 100, "{size}");
            let ReportRows::HostMetrics(rows) = rows else { panic!("samples of the host") };
            times.extend(rows.iter().map(|row| row.time_us));
            queue.acknowledge(number).unwrap();
        }
        assert_eq!(times, (0..5_000).collect::<Vec<i64>>());
    }

    #[test]
    fn the_oldest_samples_are_dropped_and_counted_if_too_many_wait() {
        let mut samples = Samples::default();
        samples.host.extend((0..MAX_WAITING as i64 + 7).map(sample));
        samples.limit();
        assert_eq!((samples.host.len(), samples.host[0].time_us, samples.dropped), (MAX_WAITING, 7, 7));
        samples.limit();
        assert_eq!(samples.dropped, 7);
    }
}
