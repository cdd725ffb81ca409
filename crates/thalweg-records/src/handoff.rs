//! Where flows go that are metered here: to a collector as IPFIX, into Parquet, or both.
//!
//! ```text
//!                      ┌──► queue ──► thread: export::Exporter ──► collector
//! flow records ──► rows┤
//!                      └──► store::Store ──► flows/date=.../hour=.../*.parquet
//! ```
//!
//! A live source is never waited for: what finds no room is counted as lost, by the [`Tallies`] of the exporter and the
//! [`Statistics`] of the store. A file is read as slowly as both can take it.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use thalweg_measure::meter::record::FlowRecord;
use thalweg_wire::Timestamp;
use thalweg_wire::flow_export::RecordBatch;
use thiserror::Error;

use crate::export::{self, Destination, ExportError, ExportOptions, Exporter, Outlet, Tallies};
use crate::metered::{self, Meter};
use crate::store::parquet::PAGE_ROWS;
use crate::store::{Statistics, Store, StoreError, StoreOptions};

/// Batches that wait for the exporter at most.
const BATCHES_WAITING: usize = 256;

/// How long to wait before looking again whether the store has room.
const NAP: Duration = Duration::from_millis(2);

/// Where to. Neither is no mistake: then nothing is done.
#[derive(Clone, Debug, Default)]
pub struct HandoffOptions {
    /// A collector.
    pub export: Option<ExportOptions>,
    /// Parquet.
    pub store: Option<StoreOptions>,
}

/// Why nothing can be handed on.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum HandoffError {
    /// There can be no exporter.
    #[error(transparent)]
    Export(#[from] ExportError),
    /// There can be no store.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// There can be no thread.
    #[error("cannot start the thread that exports: {0}")]
    Thread(io::Error),
}

/// What became of it all, for everybody to read.
#[derive(Debug, Default)]
pub struct Ledger {
    export: Option<(Destination, Arc<Tallies>)>,
    store: Option<Mutex<Statistics>>,
}

impl Ledger {
    /// The collector, and what was sent there.
    pub fn export(&self) -> Option<(&Destination, &Tallies)> {
        self.export.as_ref().map(|(destination, tallies)| (destination, &**tallies))
    }

    /// What was kept, as of the last [`Handoff::tick`].
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

/// Hands flows on.
pub struct Handoff {
    outlet: Option<Outlet>,
    thread: Option<JoinHandle<()>>,
    store: Option<(Store, usize)>,
    rows: RecordBatch,
    ledger: Arc<Ledger>,
}

impl Handoff {
    /// Starts a thread that exports, if there is to be an exporter, and opens the store, if there is to be one. `clock` is the
    /// time of day.
    ///
    /// # Errors
    /// If options make no sense, certificates or the store's folder cannot be used.
    pub fn start(
        options: HandoffOptions,
        clock: impl Fn() -> Timestamp + Send + 'static,
    ) -> Result<Handoff, HandoffError> {
        let now = clock();
        let mut handoff = Handoff {
            outlet: None,
            thread: None,
            store: None,
            rows: RecordBatch::default(),
            ledger: Arc::default(),
        };
        let mut ledger = Ledger::default();
        if let Some(options) = options.store {
            let queue_rows = options.queue_rows;
            let (store, _) = Store::open(options, now)?;
            ledger.store = Some(Mutex::new(store.statistics()));
            handoff.store = Some((store, queue_rows));
        }
        if let Some(options) = options.export {
            let tallies = Arc::new(Tallies::default());
            ledger.export = Some((options.destination.clone(), Arc::clone(&tallies)));
            let (outlet, batches) = export::queue(BATCHES_WAITING, Arc::clone(&tallies));
            let exporter = Exporter::new(options, tallies, now)?;
            let work = move || export::run(exporter, &batches, clock);
            let thread = std::thread::Builder::new().name("ipfix".to_owned()).spawn(work);
            handoff.thread = Some(thread.map_err(HandoffError::Thread)?);
            handoff.outlet = Some(outlet);
        }
        handoff.ledger = Arc::new(ledger);
        Ok(handoff)
    }

    /// What becomes of flows.
    pub fn ledger(&self) -> Arc<Ledger> {
        Arc::clone(&self.ledger)
    }

    /// Hands flows on. `waits` says that their source can: then nothing is lost for want of room.
    pub fn take(&mut self, flows: &[FlowRecord], meter: &Meter, waits: bool, now: Timestamp) {
        self.rows.clear();
        flows.iter().for_each(|flow| metered::rows(flow, meter, now, &mut self.rows));
        if let Some((store, queue_rows)) = &mut self.store {
            // A page that is being filled waits for rows, not for the disk.
            let room = (*queue_rows / 2).max(PAGE_ROWS) + self.rows.len();
            while waits && store.statistics().queued as usize + self.rows.len() > room {
                store.tick(now);
                std::thread::sleep(NAP);
            }
            store.append(&self.rows, now);
        }
        match &self.outlet {
            Some(outlet) if waits => outlet.put(std::mem::take(&mut self.rows)),
            Some(outlet) => outlet.offer(std::mem::take(&mut self.rows)),
            None => {}
        }
    }

    /// Lets time pass; to be called several times a second.
    pub fn tick(&mut self, now: Timestamp) {
        if let Some((store, _)) = &mut self.store {
            store.tick(now);
            self.ledger.set_store(store.statistics());
        }
    }

    /// Tells how many packets meters have left out of all flows so far, and their bytes.
    pub fn note_ignored(&self, packets: u64, octets: u64) {
        if let Some((_, tallies)) = &self.ledger.export {
            tallies.note_ignored(packets, octets);
        }
    }

    /// Waits until everything is sent and kept, as far as it can be, and says what became of it.
    pub fn finish(mut self, now: Timestamp) -> Arc<Ledger> {
        self.outlet = None;
        if let Some(thread) = self.thread.take()
            && let Err(panic) = thread.join()
        {
            std::panic::resume_unwind(panic);
        }
        if let Some((mut store, _)) = self.store.take() {
            self.ledger.set_store(store.finish(now));
        }
        self.ledger
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
    fn flows_go_to_the_collector_and_into_the_store_and_a_source_that_waits_loses_none() {
        let folder = tempfile::tempdir().unwrap();
        let collector = UdpSocket::bind("127.0.0.1:0").unwrap();
        let destination = collector.local_addr().unwrap().to_string().parse().unwrap();
        let options = HandoffOptions {
            export: Some(ExportOptions::new(destination)),
            // Room for half of the rows only.
            store: Some(StoreOptions { queue_rows: 100_000, ..StoreOptions::new(folder.path()) }),
        };
        let mut handoff = Handoff::start(options, || NOW).unwrap();
        for _ in 0..100 {
            handoff.take(&flows(1_000), &Meter::default(), true, NOW);
        }
        let ledger = handoff.finish(NOW);
        let (_, tallies) = ledger.export().unwrap();
        assert_eq!(tallies.sent().flow_records + tallies.not_sent_in_all().flow_records, 100_000);
        assert_eq!(tallies.sent().flow_records, 100_000, "{:?}", tallies.trouble());
        let store = ledger.store().unwrap();
        assert_eq!((store.records, store.written, store.lost.total()), (200_000, 200_000, 0));
    }

    #[test]
    fn who_hands_nothing_on_is_told_nothing() {
        let mut handoff = Handoff::start(HandoffOptions::default(), || NOW).unwrap();
        handoff.take(&flows(10), &Meter::default(), false, NOW);
        let ledger = handoff.finish(NOW);
        assert!(ledger.export().is_none() && ledger.store().is_none());
    }
}
