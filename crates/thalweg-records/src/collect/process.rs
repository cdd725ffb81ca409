//! The collecting process: starts and stops its threads.

use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use thalweg_wire::flow_export::{CounterBatch, RecordBatch};
use thalweg_wire::{Nanos, Timestamp};

use super::exporters::Exporters;
use super::intake::{Intake, Snapshot};
use super::listen::Protocol;
use super::outlet::{Outlet, Shared, lock};
use super::receiver::{READ_TIMEOUT, Receiver, ReceiverCounts};
use super::socket::{self, BoundSocket};
use super::stream::Listener;
use super::templates::TemplateFile;
use super::{CollectError, CollectOptions, Listen, Report, SocketReport, Tap, kernel_drops};
use crate::geo::GeoDatabases;
use crate::kafka::Kafka;
use crate::store::{Recovered, Store, StoreOptions};

/// Queue length of interface counters in rows: one row for each interface of a large network.
const COUNTER_ROWS: usize = 1 << 17;

/// How often databases are checked for changes.
const GEO_REFRESH: Nanos = Nanos::from_secs(10);

/// A running collecting process: receiving threads and the store.
pub struct CollectingProcess {
    stop: Arc<AtomicBool>,
    receivers: Vec<RunningReceiver>,
    listeners: Vec<Listener>,
    outlets: Vec<Shared>,
    stores: Stores,
    templates: TemplateFile,
    geo: Option<Arc<GeoDatabases>>,
    /// When the databases are next checked for changes.
    next_geo_refresh: Timestamp,
}

/// A socket and its receiving thread.
struct RunningReceiver {
    listen: Listen,
    /// Kept open while the kernel's drop counter is needed.
    bound: BoundSocket,
    requested_buffer: usize,
    kernel_drops: u64,
    counts: Arc<ReceiverCounts>,
    snapshot: Arc<Mutex<Snapshot>>,
    thread: Option<JoinHandle<()>>,
}

/// The destinations of rows: the stores and Kafka.
pub(super) struct Stores {
    pub(super) flows: Store<RecordBatch>,
    pub(super) counters: Store<CounterBatch>,
    pub(super) kafka: Option<Kafka>,
    pub(super) recovered: Recovered,
    tap: Option<Arc<dyn Tap>>,
}

impl Stores {
    pub(super) fn open(
        options: &CollectOptions,
        tap: Option<Arc<dyn Tap>>,
        now: Timestamp,
    ) -> Result<Stores, CollectError> {
        // First, because it leaves nothing behind on failure.
        let kafka = options.kafka.as_ref().map(Kafka::start).transpose()?;
        let options = &options.store;
        let (flows, mut recovered) = Store::open(options.clone(), now)?;
        let queue_rows = options.queue_rows.min(COUNTER_ROWS);
        let (counters, recovered_counters) =
            Store::open(StoreOptions { queue_rows, ..options.clone() }, now)?;
        recovered.kept.extend(recovered_counters.kept);
        Ok(Stores { flows, counters, kafka, recovered, tap })
    }

    pub(super) fn outlet(&self) -> Shared {
        let (flows, counters) = (self.flows.appender().blocking(), self.counters.appender().blocking());
        let kafka = self.kafka.as_ref().map(Kafka::sender);
        Arc::new(Mutex::new(Outlet { flows, counters, kafka, tap: self.tap.clone() }))
    }

    pub(super) fn tick(&mut self, now: Timestamp) {
        self.flows.tick(now);
        self.counters.tick(now);
    }
}

impl CollectingProcess {
    /// Opens all sockets and the store, then starts receiving. `tap` observes every record.
    ///
    /// # Errors
    /// [`CollectError`]; nothing is left running.
    pub fn start(
        options: CollectOptions,
        tap: Option<Arc<dyn Tap>>,
    ) -> Result<CollectingProcess, CollectError> {
        let now = (options.clock)();
        let mut sockets = Vec::new();
        let mut listeners = Vec::new();
        for &listen in &options.listen {
            let failed = |source| CollectError::Listen { listen, source };
            match listen.protocol {
                Protocol::Udp => {
                    let count = options.receivers.get();
                    let group = socket::open_group(&listen, count, options.receive_buffer, READ_TIMEOUT);
                    sockets.extend(group.map_err(failed)?.into_iter().map(|bound| (listen, bound)));
                }
                Protocol::Tcp => listeners.push(Listener::bind(listen, None).map_err(failed)?),
                Protocol::Tls => {
                    let tls = options.tls.clone().ok_or(CollectError::NoCertificate { listen })?;
                    listeners.push(Listener::bind(listen, Some(tls)).map_err(failed)?);
                }
            }
        }
        let stores = Stores::open(&options, tap, now)?;
        // The store's lock protects it from other processes.
        let templates = TemplateFile::open(options.store.spool().join("templates"), options.limits, now);
        let mut process = CollectingProcess {
            stop: Arc::default(),
            receivers: Vec::new(),
            listeners: Vec::new(),
            outlets: Vec::new(),
            stores,
            templates,
            geo: options.geo.clone(),
            next_geo_refresh: now + GEO_REFRESH,
        };
        // From here on, dropping the process stops the threads already started.
        for (listen, bound) in sockets {
            process.receive(listen, bound, &options).map_err(CollectError::Thread)?;
        }
        for mut listener in listeners {
            let outlet = process.stores.outlet();
            process.outlets.push(outlet.clone());
            listener.start(&options, outlet, process.stop.clone()).map_err(CollectError::Thread)?;
            process.listeners.push(listener);
        }
        Ok(process)
    }

    /// Does periodic work, such as writing rows that are due. Call it at least every quarter of the store's sync interval.
    pub fn tick(&mut self, now: Timestamp) {
        self.outlets.iter().for_each(|outlet| lock(outlet).tick(now));
        self.stores.tick(now);
        self.templates.tick(now);
        if now >= self.next_geo_refresh || self.next_geo_refresh.since(now) > GEO_REFRESH {
            self.next_geo_refresh = now + GEO_REFRESH;
            self.geo.iter().for_each(|geo| geo.refresh());
        }
    }

    /// Returns what was recovered from the spool of flow records at the start.
    pub fn recovered(&self) -> Recovered {
        self.stores.recovered.clone()
    }

    /// Returns the addresses of UDP sockets and listeners, in the order of the options.
    pub fn addresses(&self) -> Vec<(Listen, SocketAddr)> {
        let sockets = self.receivers.iter().map(|socket| (socket.listen, socket.bound.address));
        sockets.chain(self.listeners.iter().map(|listener| (listener.listen(), listener.address()))).collect()
    }

    /// Returns whether a thread has ended unexpectedly; its panic message is on standard error.
    pub fn has_failed(&self) -> bool {
        let ended = |thread: &Option<JoinHandle<()>>| thread.as_ref().is_none_or(JoinHandle::is_finished);
        self.receivers.iter().any(|socket| ended(&socket.thread))
            || self.listeners.iter().any(|listener| ended(&listener.thread))
    }

    /// Returns the current report; decoder counters are up to 250 ms old.
    pub fn report(&mut self) -> Report {
        self.update_kernel_drops();
        let mut exporters = Exporters::default();
        for socket in &self.receivers {
            exporters.add(&lock(&socket.snapshot), usize::MAX);
        }
        self.listeners.iter().for_each(|listener| listener.add_exporters(&mut exporters));
        Report {
            totals: exporters.totals,
            last_fault: exporters.last_fault,
            exporters: exporters.rows(),
            sockets: self.receivers.iter().map(RunningReceiver::report).collect(),
            streams: self.listeners.iter().map(Listener::report).collect(),
            flows: self.stores.flows.statistics(),
            counters: self.stores.counters.statistics(),
            kafka: self.stores.kafka.as_ref().map(Kafka::statistics),
            templates: self.templates.report(),
            geo: self.geo.as_ref().map(|geo| geo.statistics()),
        }
    }

    /// Stops: decodes the datagrams left in the socket buffers, writes all records, and returns the final report. Further
    /// calls only return the report.
    pub fn finish(&mut self, now: Timestamp) -> Report {
        self.stop_threads();
        self.templates.write(now);
        self.stores.flows.finish(now);
        self.stores.counters.finish(now);
        // Last, because it may wait for brokers.
        let _ = self.stores.kafka.as_mut().map(Kafka::finish);
        self.report()
    }

    fn receive(&mut self, listen: Listen, bound: BoundSocket, options: &CollectOptions) -> io::Result<()> {
        let (counts, snapshot) = (Arc::<ReceiverCounts>::default(), Arc::<Mutex<Snapshot>>::default());
        let outlet = self.stores.outlet();
        let intake = Intake::new(options, outlet.clone(), snapshot.clone());
        let mut intake = intake.keep_templates(self.templates.keeper());
        let receiver = Receiver::new(bound.socket.try_clone()?, counts.clone());
        let (clock, stop) = (options.clock, self.stop.clone());
        let thread = std::thread::Builder::new()
            .name(format!("receive-{}", bound.address.port()))
            .spawn(move || receiver.run(&mut intake, clock, &stop))?;
        self.outlets.push(outlet);
        self.receivers.push(RunningReceiver {
            listen,
            bound,
            requested_buffer: options.receive_buffer,
            kernel_drops: 0,
            counts,
            snapshot,
            thread: Some(thread),
        });
        Ok(())
    }

    fn update_kernel_drops(&mut self) {
        // Without /proc, keep the last known values.
        let Ok(drops) = kernel_drops::by_inode() else { return };
        for socket in &mut self.receivers {
            socket.kernel_drops = drops.get(&socket.bound.inode).copied().unwrap_or(socket.kernel_drops);
        }
    }

    /// Stops all threads and closes the outlets.
    fn stop_threads(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let sockets = self.receivers.iter_mut().map(|socket| &mut socket.thread);
        for thread in sockets.chain(self.listeners.iter_mut().map(|listener| &mut listener.thread)) {
            // The thread's panic message is already on standard error.
            let _ = thread.take().map(JoinHandle::join);
        }
        self.outlets.clear();
    }
}

impl Drop for CollectingProcess {
    fn drop(&mut self) {
        self.stop_threads();
    }
}

impl RunningReceiver {
    fn report(&self) -> SocketReport {
        SocketReport {
            listen: self.listen,
            address: self.bound.address,
            receive_buffer_requested: self.requested_buffer,
            receive_buffer: self.bound.receive_buffer,
            datagrams: self.counts.datagrams.load(Ordering::Relaxed),
            bytes: self.counts.bytes.load(Ordering::Relaxed),
            kernel_drops: self.kernel_drops,
            errors: self.counts.errors.load(Ordering::Relaxed),
        }
    }
}
