//! The stores of the datasets of transfer hosts.

use std::io;
use std::time::Duration;

use thalweg_api::ReportRows;
use thalweg_records::schema::Dataset;
use thalweg_records::schema::connections::ConnectionBatch;
use thalweg_records::schema::host_metrics::HostMetricBatch;
use thalweg_records::schema::hosts::HostBatch;
use thalweg_records::schema::transfers::TransferBatch;
use thalweg_records::store::lookup::contains;
use thalweg_records::store::{Commit, CommitError, Statistics, Store, StoreError, StoreOptions};
use thalweg_wire::Timestamp;

use super::ledger::Announced;
use super::rows::{self, Origin};

/// Queue of each store in rows; commits wait for the disk, so it is never long.
const QUEUE_ROWS: usize = 1 << 16;

/// The stores.
pub(super) struct Stores {
    options: StoreOptions,
    transfers: Store<TransferBatch>,
    hosts: Store<HostBatch>,
    host_metrics: Store<HostMetricBatch>,
    connections: Store<ConnectionBatch>,
}

impl Stores {
    /// Opens all stores.
    ///
    /// # Errors
    /// If a directory cannot be used.
    pub(super) fn open(options: &StoreOptions, now: Timestamp) -> Result<Stores, StoreError> {
        let options = StoreOptions { queue_rows: QUEUE_ROWS, ..options.clone() };
        Ok(Stores {
            transfers: open(&options, now)?,
            hosts: open(&options, now)?,
            host_metrics: open(&options, now)?,
            connections: open(&options, now)?,
            options,
        })
    }

    /// Writes the rows of a report to the disk as a whole.
    ///
    /// # Errors
    /// If the store does not take them.
    pub(super) fn commit(
        &mut self,
        reported: ReportRows,
        origin: &Origin,
        now: Timestamp,
        timeout: Duration,
    ) -> Result<Commit, CommitError> {
        match reported {
            ReportRows::Transfers(of) => self.transfers.commit(rows::transfers(of, origin), now, timeout),
            ReportRows::Hosts(of) => self.hosts.commit(rows::hosts(of, origin), now, timeout),
            ReportRows::HostMetrics(of) => {
                self.host_metrics.commit(rows::host_metrics(of, origin), now, timeout)
            }
            ReportRows::Connections(of) => {
                self.connections.commit(rows::connections(of, origin), now, timeout)
            }
        }
    }

    /// Whether a report that an earlier run announced is stored.
    ///
    /// # Errors
    /// If a file cannot be read, or rows of the earlier run are not in files yet.
    pub(super) fn contains(
        &self,
        reported: &ReportRows,
        host: &str,
        announced: &Announced,
    ) -> io::Result<bool> {
        match reported {
            ReportRows::Transfers(_) => self.find(&self.transfers, host, announced),
            ReportRows::Hosts(_) => self.find(&self.hosts, host, announced),
            ReportRows::HostMetrics(_) => self.find(&self.host_metrics, host, announced),
            ReportRows::Connections(_) => self.find(&self.connections, host, announced),
        }
    }

    fn find<D: Dataset>(&self, store: &Store<D>, host: &str, announced: &Announced) -> io::Result<bool> {
        if store.statistics().pending_segments > 0 {
            return Err(io::Error::other("rows of an earlier run are not in files yet"));
        }
        let texts = [("reporter", host), ("queue", announced.queue.as_str())];
        let StoreOptions { directory, name, .. } = &self.options;
        contains::<D>(directory, name, announced.received_us, &texts, ("report", announced.number))
    }

    /// Does the periodic work of all stores.
    pub(super) fn tick(&mut self, now: Timestamp) {
        self.transfers.tick(now);
        self.hosts.tick(now);
        self.host_metrics.tick(now);
        self.connections.tick(now);
    }

    /// Writes all rows to files, and returns the counters of each dataset.
    pub(super) fn finish(&mut self, now: Timestamp) -> [(&'static str, Statistics); 4] {
        [
            (TransferBatch::NAME, self.transfers.finish(now)),
            (HostBatch::NAME, self.hosts.finish(now)),
            (HostMetricBatch::NAME, self.host_metrics.finish(now)),
            (ConnectionBatch::NAME, self.connections.finish(now)),
        ]
    }

    /// Returns the counters of each dataset.
    pub(super) fn statistics(&self) -> [(&'static str, Statistics); 4] {
        [
            (TransferBatch::NAME, self.transfers.statistics()),
            (HostBatch::NAME, self.hosts.statistics()),
            (HostMetricBatch::NAME, self.host_metrics.statistics()),
            (ConnectionBatch::NAME, self.connections.statistics()),
        ]
    }
}

fn open<D: Dataset>(options: &StoreOptions, now: Timestamp) -> Result<Store<D>, StoreError> {
    Store::open(options.clone(), now).map(|(store, _)| store)
}
