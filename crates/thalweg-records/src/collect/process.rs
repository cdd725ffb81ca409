//! Threads, their start and their end.

use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use thalweg_wire::Timestamp;
use thalweg_wire::flow_export::{CounterBatch, RecordBatch};

use super::exporters::Exporters;
use super::intake::{Intake, Published};
use super::listen::Protocol;
use super::outlet::{Outlet, Shared, lock};
use super::receiver::{PATIENCE, Receiver, ReceiverCounts};
use super::socket::{self, Bound};
use super::stream::Listener;
use super::{CollectError, CollectOptions, Listen, Report, SocketReport, Tap, kernel_drops};
use crate::kafka::Kafka;
use crate::store::{Recovered, Store, StoreOptions};

/// Rows of interface counters that may wait for the disk: one for each interface of a large network.
const COUNTER_ROWS: usize = 1 << 17;

/// Sockets being read, and what is read being kept.
pub struct CollectingProcess {
    stop: Arc<AtomicBool>,
    receivers: Vec<Running>,
    listeners: Vec<Listener>,
    outlets: Vec<Shared>,
    stores: Stores,
}

/// A socket and its thread.
struct Running {
    listen: Listen,
    /// Open for as long as what the kernel dropped there is of interest.
    bound: Bound,
    asked: usize,
    kernel_drops: u64,
    counts: Arc<ReceiverCounts>,
    published: Arc<Mutex<Published>>,
    thread: Option<JoinHandle<()>>,
}

/// Where rows go: the stores, and Kafka.
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
        // First, for it leaves nothing behind if it cannot be.
        let kafka = options.kafka.as_ref().map(Kafka::start).transpose()?;
        let options = &options.store;
        let (flows, recovered) = Store::open(options.clone(), now)?;
        let queue_rows = options.queue_rows.min(COUNTER_ROWS);
        let (counters, _) = Store::open(StoreOptions { queue_rows, ..options.clone() }, now)?;
        Ok(Stores { flows, counters, kafka, recovered, tap })
    }

    pub(super) fn outlet(&self) -> Shared {
        let (flows, counters) = (self.flows.appender().waiting(), self.counters.appender().waiting());
        let kafka = self.kafka.as_ref().map(Kafka::outlet);
        Arc::new(Mutex::new(Outlet { flows, counters, kafka, tap: self.tap.clone() }))
    }

    pub(super) fn tick(&mut self, now: Timestamp) {
        self.flows.tick(now);
        self.counters.tick(now);
    }
}

impl CollectingProcess {
    /// Opens all sockets and the store, then starts to receive. `tap` is shown every record.
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
                    let group = socket::open_group(&listen, count, options.receive_buffer, PATIENCE);
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
        let mut process = CollectingProcess {
            stop: Arc::default(),
            receivers: Vec::new(),
            listeners: Vec::new(),
            outlets: Vec::new(),
            stores,
        };
        // From here on, dropping the process ends what has been started.
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

    /// Lets time pass: what is due to be written is. To be called at least every quarter of the store's loss bound.
    pub fn tick(&mut self, now: Timestamp) {
        self.outlets.iter().for_each(|outlet| lock(outlet).tick(now));
        self.stores.tick(now);
    }

    /// What an earlier run had left in the spool of flow records.
    pub fn recovered(&self) -> Recovered {
        self.stores.recovered
    }

    /// Where UDP sockets and listeners listen, in the order of the options.
    pub fn addresses(&self) -> Vec<(Listen, SocketAddr)> {
        let sockets = self.receivers.iter().map(|socket| (socket.listen, socket.bound.address));
        sockets.chain(self.listeners.iter().map(|listener| (listener.listen(), listener.address()))).collect()
    }

    /// Whether a thread ended that should not have: its message is on standard error.
    pub fn has_failed(&self) -> bool {
        let ended = |thread: &Option<JoinHandle<()>>| thread.as_ref().is_none_or(JoinHandle::is_finished);
        self.receivers.iter().any(|socket| ended(&socket.thread))
            || self.listeners.iter().any(|listener| ended(&listener.thread))
    }

    /// What became of everything so far; decoders' counts may be a quarter of a second old.
    pub fn report(&mut self) -> Report {
        self.look_for_kernel_drops();
        let mut exporters = Exporters::default();
        for socket in &self.receivers {
            exporters.add(&lock(&socket.published), usize::MAX);
        }
        self.listeners.iter().for_each(|listener| listener.add_exporters(&mut exporters));
        Report {
            totals: exporters.totals,
            last_fault: exporters.last_fault,
            exporters: exporters.rows(),
            sockets: self.receivers.iter().map(Running::report).collect(),
            streams: self.listeners.iter().map(Listener::report).collect(),
            flows: self.stores.flows.statistics(),
            counters: self.stores.counters.statistics(),
            kafka: self.stores.kafka.as_ref().map(Kafka::statistics),
        }
    }

    /// Stops: what is in the sockets' buffers is still decoded, all records are written. Says what became of everything; a
    /// second time, it only says.
    pub fn finish(&mut self, now: Timestamp) -> Report {
        self.end();
        self.stores.flows.finish(now);
        self.stores.counters.finish(now);
        // Last, for brokers may keep it waiting.
        let _ = self.stores.kafka.as_mut().map(Kafka::finish);
        self.report()
    }

    fn receive(&mut self, listen: Listen, bound: Bound, options: &CollectOptions) -> io::Result<()> {
        let (counts, published) = (Arc::<ReceiverCounts>::default(), Arc::<Mutex<Published>>::default());
        let outlet = self.stores.outlet();
        let mut intake = Intake::new(options, outlet.clone(), published.clone());
        let receiver = Receiver::new(bound.socket.try_clone()?, counts.clone());
        let (clock, stop) = (options.clock, self.stop.clone());
        let thread = std::thread::Builder::new()
            .name(format!("receive-{}", bound.address.port()))
            .spawn(move || receiver.run(&mut intake, clock, &stop))?;
        self.outlets.push(outlet);
        self.receivers.push(Running {
            listen,
            bound,
            asked: options.receive_buffer,
            kernel_drops: 0,
            counts,
            published,
            thread: Some(thread),
        });
        Ok(())
    }

    fn look_for_kernel_drops(&mut self) {
        // Without /proc nobody knows; what was known last stands.
        let Ok(drops) = kernel_drops::by_inode() else { return };
        for socket in &mut self.receivers {
            socket.kernel_drops = drops.get(&socket.bound.inode).copied().unwrap_or(socket.kernel_drops);
        }
    }

    /// Ends all threads and closes the ways to the stores.
    fn end(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let sockets = self.receivers.iter_mut().map(|socket| &mut socket.thread);
        for thread in sockets.chain(self.listeners.iter_mut().map(|listener| &mut listener.thread)) {
            // A panic has been told on standard error when it happened.
            let _ = thread.take().map(JoinHandle::join);
        }
        self.outlets.clear();
    }
}

impl Drop for CollectingProcess {
    fn drop(&mut self) {
        self.end();
    }
}

impl Running {
    fn report(&self) -> SocketReport {
        SocketReport {
            listen: self.listen,
            address: self.bound.address,
            receive_buffer_asked: self.asked,
            receive_buffer: self.bound.receive_buffer,
            datagrams: self.counts.datagrams.load(Ordering::Relaxed),
            bytes: self.counts.bytes.load(Ordering::Relaxed),
            kernel_drops: self.kernel_drops,
            errors: self.counts.errors.load(Ordering::Relaxed),
        }
    }
}
