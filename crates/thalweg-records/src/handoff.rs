//! Sends locally metered flows to a collector (IPFIX), to Parquet files, or to both.
//!
//! ```text
//!                      ┌──► queue ──► thread: export::Exporter ──► collector
//! flow records ──► rows┤
//!                      └──► store::Store ──► flows/date=.../hour=.../*.parquet
//! ```
//!
//! A live source never blocking: rows that find a full queue are dropped and counted, by [`ExportCounters`] for the exporter and
//! by [`Statistics`] for the store. A file is read as fast as both can keep up.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use thalweg_measure::meter::ethernet::FlowAddresses;
use thalweg_measure::meter::record::FlowRecord;
use thalweg_wire::Timestamp;
use thalweg_wire::flow_export::RecordBatch;
use thiserror::Error;

use crate::export::{self, BatchSender, Destination, ExportCounters, ExportError, ExportOptions, Exporter};
use crate::metered::{self, Meter};
use crate::store::parquet::PAGE_ROWS;
use crate::store::{Statistics, Store, StoreError, StoreOptions};

/// Maximum number of batches in the exporter's queue.
const MAX_QUEUED_BATCHES: usize = 256;

/// Interval between checks for room in the store.
const POLL_INTERVAL: Duration = Duration::from_millis(2);

/// Destinations of metered flows; with neither, flows are discarded.
#[derive(Clone, Debug, Default)]
pub struct HandoffOptions {
    /// The collector.
    pub export: Option<ExportOptions>,
    /// The Parquet store.
    pub store: Option<StoreOptions>,
}

/// Why a [`Handoff`] cannot start.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum HandoffError {
    /// The exporter cannot be created.
    #[error(transparent)]
    Export(#[from] ExportError),
    /// The store cannot be opened.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The thread cannot be started.
    #[error("cannot start the export thread: {0}")]
    Thread(io::Error),
}

/// Counters of a [`Handoff`], shared with readers.
#[derive(Debug, Default)]
pub struct HandoffStatus {
    export: Option<(Destination, Arc<ExportCounters>)>,
    store: Option<Mutex<Statistics>>,
}

impl HandoffStatus {
    /// Returns the collector and the counters of the exporter.
    pub fn export(&self) -> Option<(&Destination, &ExportCounters)> {
        self.export.as_ref().map(|(destination, counters)| (destination, &**counters))
    }

    /// Returns the counters of the store, as of the last [`Handoff::tick`].
    pub fn store(&self) -> Option<Statistics> {
        let statistics = self.store.as_ref()?;
        Some(statistics.lock().unwrap_or_else(PoisonError::into_inner).clone())
    }

    fn set_store(&self, now: Statistics) {
        if let Some(statistics) = &self.store {
            *statistics.lock().unwrap_or_else(PoisonError::into_inner) = now;
        }
    }
}

/// Sends flows to their destinations.
pub struct Handoff {
    sender: Option<BatchSender>,
    thread: Option<JoinHandle<()>>,
    store: Option<(Store, usize)>,
    rows: RecordBatch,
    status: Arc<HandoffStatus>,
}

impl Handoff {
    /// Starts the export thread and opens the store, as far as configured. `clock` returns the time of day.
    ///
    /// # Errors
    /// If options are invalid, or certificates or the store's folder cannot be used.
    pub fn start(
        options: HandoffOptions,
        clock: impl Fn() -> Timestamp + Send + 'static,
    ) -> Result<Handoff, HandoffError> {
        let now = clock();
        let mut handoff = Handoff {
            sender: None,
            thread: None,
            store: None,
            rows: RecordBatch::default(),
            status: Arc::default(),
        };
        let mut status = HandoffStatus::default();
        if let Some(options) = options.store {
            let queue_rows = options.queue_rows;
            let (store, _) = Store::open(options, now)?;
            status.store = Some(Mutex::new(store.statistics()));
            handoff.store = Some((store, queue_rows));
        }
        if let Some(options) = options.export {
            let counters = Arc::new(ExportCounters::default());
            status.export = Some((options.destination.clone(), Arc::clone(&counters)));
            let (sender, batches) = export::queue(MAX_QUEUED_BATCHES, Arc::clone(&counters));
            let exporter = Exporter::new(options, counters, now)?;
            let work = move || export::run(exporter, &batches, clock);
            let thread = std::thread::Builder::new().name("ipfix".to_owned()).spawn(work);
            handoff.thread = Some(thread.map_err(HandoffError::Thread)?);
            handoff.sender = Some(sender);
        }
        handoff.status = Arc::new(status);
        Ok(handoff)
    }

    /// Returns the shared counters.
    pub fn status(&self) -> Arc<HandoffStatus> {
        Arc::clone(&self.status)
    }

    /// Sends flows, with their MAC addresses as far as these are known. If `blocking` is set, the call blocks for room and no flow is dropped.
    ///
    /// The rows are stored as `received` then: for packets of an interface `now`, for those of a capture file a time of the
    /// capture.
    pub fn send(
        &mut self,
        flows: &[FlowRecord],
        addresses: &[FlowAddresses],
        meter: &Meter,
        blocking: bool,
        received: Timestamp,
        now: Timestamp,
    ) {
        self.rows.clear();
        let known = addresses.iter().copied().chain(std::iter::repeat(FlowAddresses::default()));
        for (flow, addresses) in flows.iter().zip(known) {
            metered::rows(flow, addresses, meter, received, &mut self.rows);
        }
        if let Some((store, queue_rows)) = &mut self.store {
            // A page being filled blocking for more rows, not for the disk.
            let room = (*queue_rows / 2).max(PAGE_ROWS) + self.rows.len();
            while blocking && store.statistics().queued as usize + self.rows.len() > room {
                store.tick(now);
                std::thread::sleep(POLL_INTERVAL);
            }
            store.append(&self.rows, now);
        }
        match &self.sender {
            Some(sender) if blocking => sender.send(std::mem::take(&mut self.rows)),
            Some(sender) => sender.try_send(std::mem::take(&mut self.rows)),
            None => {}
        }
    }

    /// Does periodic work. Call it several times a second.
    pub fn tick(&mut self, now: Timestamp) {
        if let Some((store, _)) = &mut self.store {
            store.tick(now);
            self.status.set_store(store.statistics());
        }
    }

    /// Sets the totals of packets and bytes that the meters ignored.
    pub fn set_ignored(&self, packets: u64, bytes: u64) {
        if let Some((_, counters)) = &self.status.export {
            counters.set_ignored(packets, bytes);
        }
    }

    /// Waits until everything is sent and stored, as far as possible, and returns the final counters.
    pub fn finish(mut self, now: Timestamp) -> Arc<HandoffStatus> {
        self.sender = None;
        if let Some(thread) = self.thread.take()
            && let Err(panic) = thread.join()
        {
            std::panic::resume_unwind(panic);
        }
        if let Some((mut store, _)) = self.store.take() {
            self.status.set_store(store.finish(now));
        }
        self.status
    }
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;

    use thalweg_measure::meter::record::{EndReason, Traffic};
    use thalweg_wire::{Bytes, FlowKey, Protocol};

    use super::*;

    const NOW: Timestamp = Timestamp::new(1_795_352_400, 0);

    fn flows(count: u32) -> Vec<FlowRecord> {
        let traffic = |packets| Traffic { packets, bytes: Bytes(100 * packets), ..Traffic::default() };
        let flow = |number| FlowRecord {
            key: FlowKey::v4(number, 1, 2, 3, Protocol::UDP),
            first: NOW,
            last: NOW,
            forward: traffic(2),
            reverse: traffic(1),
            end_reason: EndReason::Idle,
        };
        (0..count).map(flow).collect()
    }

    #[test]
    fn a_blocking_source_loses_no_flows() {
        let folder = tempfile::tempdir().unwrap();
        let collector = UdpSocket::bind("127.0.0.1:0").unwrap();
        let destination = collector.local_addr().unwrap().to_string().parse().unwrap();
        let options = HandoffOptions {
            export: Some(ExportOptions::new(destination)),
            // Room for half of the rows.
            store: Some(StoreOptions { queue_rows: 100_000, ..StoreOptions::new(folder.path()) }),
        };
        let mut handoff = Handoff::start(options, || NOW).unwrap();
        for _ in 0..100 {
            handoff.send(&flows(1_000), &[], &Meter::default(), true, NOW, NOW);
        }
        let status = handoff.finish(NOW);
        let (_, counters) = status.export().unwrap();
        assert_eq!(counters.sent().flow_records + counters.total_not_sent().flow_records, 100_000);
        assert_eq!(counters.sent().flow_records, 100_000, "{:?}", counters.last_error());
        let store = status.store().unwrap();
        assert_eq!((store.records, store.written, store.lost.total()), (200_000, 200_000, 0));
    }

    #[test]
    fn without_destinations_the_status_is_empty() {
        let mut handoff = Handoff::start(HandoffOptions::default(), || NOW).unwrap();
        handoff.send(&flows(10), &[], &Meter::default(), false, NOW, NOW);
        let status = handoff.finish(NOW);
        assert!(status.export().is_none() && status.store().is_none());
    }
}
