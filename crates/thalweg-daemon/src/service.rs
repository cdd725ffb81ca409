//! The daemon as a service: prepare, start, stop. [`run`](fn@super::run) adds what belongs to a process: signals, the log, privileges and
//! systemd.
//!
//! A lab starts the service in its own process, with an ordinary configuration.

use std::fs::File;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::Context;
use crossbeam_channel::bounded;
use thalweg_records::handoff::Handoff;
use thalweg_wire::Secret;

use super::alerts::{Alert, run_alert};
use super::api::{Server, convert};
use super::collectors::background::TapSender;
use super::collectors::control_events::ControlEventSender;
use super::collectors::findings::FindingSender;
use super::collectors::sinks::{DumpQueue, DumpSignal, Sinks};
use super::collectors::{Fleet, PreparedCollector, SharedThread};
use super::config::{AlertConfig, Config, Threads};
use super::control::{Control, Injected, PreparedControl};
use super::daemon::Daemon;
use super::emulation::Emulation;
use super::event_log::{EventLog, run_event_log};
use super::experiments::Experiments;
use super::hub::Hub;
use super::isolation::{Isolation, PreparedIsolation, read_password, read_token};
use super::live::run_live;
use super::log::Log;
use super::parts::Parts;
use super::polls::PreparedPolls;
use super::record_store::RecordStore;
use super::records;
use super::samples::run_dump_thread;
use super::threshold::{PreparedThreshold, Threshold};
use super::transfers::Transfers;
use thalweg_http::Listener;
use thalweg_http::access::Access;
use thalweg_linux::clock::realtime;

/// Maximum duration of a stop, except for that of isolation: less than systemd's timeout in `packaging/thalweg.service`.
pub const STOP_LIMIT: Duration = Duration::from_secs(8);

/// Time of a stop for what isolation does besides waiting for others.
const ISOLATION_MARGIN: Duration = Duration::from_secs(2);

/// Interval at which a stop checks whether threads have ended.
const TICK: Duration = Duration::from_millis(20);

/// Capacity of the record queue, in batches.
const RECORD_QUEUE_CAPACITY: usize = 1_024;

/// Capacity of the dump queue.
const DUMP_QUEUE_CAPACITY: usize = 64;

/// A daemon whose sources are open, before the start. Privileges can be dropped now.
pub struct PreparedService {
    config: Config,
    access: Arc<Access>,
    listener: Listener,
    records: Option<File>,
    collectors: Vec<PreparedCollector>,
    daemon: Daemon,
    control: Option<(PreparedControl, ControlEventSender)>,
    isolation: Option<(PreparedIsolation, FindingSender)>,
    polls: PreparedPolls,
    alerts: Arc<[Alert]>,
    /// Password of the mail server of `[transfers]`.
    mail_password: Option<Secret>,
    threshold: Option<(PreparedThreshold, TapSender)>,
}

/// A running daemon. Dropping it stops the daemon.
pub struct Service {
    daemon: Daemon,
    control: Option<Control>,
    isolation: Option<Isolation>,
    fleet: Arc<Mutex<Fleet>>,
    /// `None` after the stop.
    server: Option<Server>,
    address: SocketAddr,
    access: Arc<Access>,
    dump_queue: DumpQueue,
    /// Threads that end after their input ends.
    writers: Vec<JoinHandle<()>>,
    /// The thread of isolation, until the stop.
    isolation_thread: Option<JoinHandle<Result<(), String>>>,
    has_stopped: Arc<AtomicBool>,
}

impl PreparedService {
    /// Opens sources and files of a configuration, and binds the API's address. A source that cannot be opened is retried later, and
    /// does not affect others.
    ///
    /// # Errors
    /// If the API cannot listen, or tokens, the record file, the actuator, or credentials of a poll cannot be opened.
    pub fn open(config: Config, injected: Injected) -> anyhow::Result<PreparedService> {
        let access = Arc::new(Access::new(&config.access)?);
        let listener = Server::bind(&config.access)?;
        let records = config.records.as_deref().map(|path| {
            records::open(path).with_context(|| format!("cannot write records to {}", path.display()))
        });
        let records = records.transpose()?;
        let collectors = config
            .collectors
            .iter()
            .map(|collector| PreparedCollector::open(Arc::clone(collector)))
            .collect();
        let hub = Hub::new(config.event_backlog);
        let daemon = Daemon::with_transition_time(config.versions(), config.network.transition_time, hub);
        if let Some(emulation) = &config.emulation {
            daemon.set_emulation(Emulation::new(emulation));
        }
        let control = config.control.as_ref();
        let control = control
            .map(|control| Control::prepare(control, &daemon.control_parts(), injected))
            .transpose()?;
        let prepare = |isolation| {
            let (hub, lifecycle) = (Arc::clone(daemon.hub()), daemon.lifecycle().clone());
            Isolation::prepare(isolation, daemon.emulation(), hub, lifecycle)
        };
        let isolation = config.isolation.as_ref().map(prepare).transpose().map_err(anyhow::Error::msg)?;
        let polls = PreparedPolls::open(&config.polls).map_err(anyhow::Error::msg)?;
        let mail = config.transfers.as_ref().and_then(|transfers| transfers.mail.as_ref());
        let password_file = mail.and_then(|mail| mail.credentials.as_ref()).map(|(_, file)| file);
        let mail_password =
            password_file.map(|file| read_password(file)).transpose().map_err(anyhow::Error::msg)?;
        let alert = |alert: &AlertConfig| {
            let token = alert.token_file.as_deref().map(read_token).transpose();
            Ok(Alert::new(alert.clone(), token.map_err(anyhow::Error::msg)?))
        };
        let alerts = config.alerts.iter().map(alert).collect::<anyhow::Result<_>>()?;
        let threshold = config.threshold.as_ref().map(|threshold| {
            let (collectors, lifecycle) = (daemon.collector_list().clone(), daemon.lifecycle().clone());
            Threshold::prepare(threshold, collectors, lifecycle, polls.polls().clone())
        });
        Ok(PreparedService {
            config,
            access,
            listener,
            records,
            collectors,
            daemon,
            control,
            isolation,
            polls,
            alerts,
            mail_password,
            threshold,
        })
    }

    /// Starts collectors, controller and API. The API reads the count of suppressed lines from `log`.
    ///
    /// Isolation starts last, because it changes an interface or a switch: nothing can fail after it.
    ///
    /// # Errors
    /// If memory does not suffice, isolation cannot be set up, or a thread cannot be started.
    pub fn start(self, log: Option<Log>) -> anyhow::Result<Service> {
        let PreparedService {
            config,
            access,
            listener,
            records,
            collectors,
            daemon,
            control,
            isolation,
            polls,
            alerts,
            mail_password,
            threshold,
        } = self;
        let handoff =
            config.flow_export.is_set().then(|| Handoff::start(config.flow_export.options(), realtime));
        let handoff = handoff.transpose().context("cannot export flows")?;
        let export_ledger = handoff.as_ref().map(Handoff::status);
        daemon.dumps().set_options(config.samples.clone());
        let has_stopped = Arc::new(AtomicBool::new(false));
        let mut sinks = Sinks { dump_triggers: config.samples.triggers.clone(), ..Sinks::default() };
        let mut writers = Vec::new();
        if records.is_some() || handoff.is_some() {
            let (sender, receiver) = bounded(RECORD_QUEUE_CAPACITY);
            sinks.records = Some(sender);
            writers.push(spawn_thread("records", move || records::write(records, handoff, &receiver))?);
        }
        let (sender, receiver) = bounded(DUMP_QUEUE_CAPACITY);
        let dump_queue = DumpQueue::new(sender, daemon.dumps().queue_full());
        sinks.dump_queue = Some(dump_queue.clone());
        {
            let (dumps, has_stopped) = (Arc::clone(daemon.dumps()), Arc::clone(&has_stopped));
            writers.push(spawn_thread("samples", move || {
                run_dump_thread(&dumps, &receiver, || has_stopped.load(Ordering::Relaxed));
            })?);
        }
        let event_log = config.event_log.map(|options| Arc::new(EventLog::new(options, daemon.started())));
        if let Some(log) = event_log.clone() {
            // Before the first event.
            let (hub, subscriber) = (Arc::clone(daemon.hub()), daemon.hub().subscribe(Some(0)));
            let has_stopped = Arc::clone(&has_stopped);
            writers.push(spawn_thread("event-log", move || {
                run_event_log(&log, &hub, subscriber, convert::event, || has_stopped.load(Ordering::Relaxed));
            })?);
        }
        for number in 0..alerts.len() {
            let (hub, subscriber) = (Arc::clone(daemon.hub()), daemon.hub().subscribe(Some(0)));
            let (alerts, has_stopped) = (Arc::clone(&alerts), Arc::clone(&has_stopped));
            // A webhook that does not answer must not delay the stop.
            spawn_thread("alert", move || {
                let is_over = || has_stopped.load(Ordering::Relaxed);
                run_alert(&alerts[number], &hub, subscriber, convert::event, is_over);
            })?;
        }
        let prepared = control.map(|(prepared, event_sender)| {
            sinks.control = Some(event_sender);
            prepared
        });
        let control = prepared.as_ref().map(|prepared| prepared.control().clone());
        let isolation = isolation.map(|(prepared, sender)| {
            sinks.findings = Some(sender);
            prepared
        });
        let threshold = threshold.map(|(prepared, sender)| {
            sinks.background = Some(sender);
            prepared
        });
        let running = isolation.as_ref().map(|prepared| prepared.isolation().clone());
        let stored = config.flow_export.options().store;
        let transfers = match (&config.transfers, &stored) {
            (Some(options), Some(store)) => Some(Transfers::open(store, options.clone(), mail_password)?),
            _ => None,
        };
        let record_store = config.flow_export.folder.clone().map(|folder| {
            let timeout = config.access.limits.request_timeout;
            Arc::new(RecordStore::new(folder, export_ledger.clone(), timeout))
        });
        let experiments = config.experiments.clone().map(|folder| Arc::new(Experiments::new(folder)));
        let parts = Parts {
            control: control.clone(),
            threshold: threshold.as_ref().map(|prepared| prepared.threshold().clone()),
            isolation: running.clone(),
            polls: polls.polls().clone(),
            event_log,
            alerts,
            transfers: transfers.clone(),
            record_store,
            experiments,
            export_ledger,
            ..daemon.api_parts()
        };
        {
            let (parts, has_stopped) = (parts.clone(), Arc::clone(&has_stopped));
            writers.push(spawn_thread("live", move || {
                let status = |now, packet_time| convert::live_status(&parts, now, packet_time);
                run_live(&parts.live, &parts.collectors, status, || has_stopped.load(Ordering::Relaxed));
            })?);
        }
        if let Some(transfers) = transfers {
            let lifecycle = daemon.lifecycle().clone();
            let (deliverer, until) = (transfers.clone(), lifecycle.clone());
            writers.push(spawn_thread("transfers", move || transfers.run(&lifecycle))?);
            // A mail server that does not answer must not delay the stop.
            spawn_thread("reports", move || deliverer.deliver(&until))?;
        }
        writers.extend(polls.start(stored, Arc::clone(daemon.hub()), daemon.lifecycle().clone())?);
        if let Some(prepared) = threshold {
            writers.push(prepared.start().context("cannot start the adaptation of the threshold")?);
        }
        let mut fleet = match config.process.threads {
            Threads::PerCollector => Fleet::new(daemon.fleet_parts(), sinks),
            Threads::One => {
                let shared = SharedThread::start().context("cannot start the shared collector thread")?;
                writers.push(shared.1);
                Fleet::sharing(daemon.fleet_parts(), sinks, shared.0)
            }
        };
        fleet.start(collectors)?;
        if let Some(prepared) = prepared {
            let failed = "cannot start the controller";
            match config.process.threads {
                Threads::PerCollector => writers.push(prepared.start().context(failed)?),
                Threads::One => fleet.add_control(Box::new(prepared.begin().context(failed)?)),
            }
        }
        if let Some(emulation) = daemon.emulation() {
            writers.push(emulation.start()?);
        }
        let server =
            Server::start(listener, parts, Arc::clone(&access), &config.access, config.dashboard, log)?;
        let (address, server) = (server.address(), Some(server));
        let fleet = Arc::new(Mutex::new(fleet));
        // From here on, an error stops what was started.
        let mut service = Service {
            daemon,
            control,
            isolation: running,
            fleet,
            server,
            address,
            access,
            dump_queue,
            writers,
            isolation_thread: None,
            has_stopped,
        };
        service.isolation_thread =
            isolation.map(PreparedIsolation::start).transpose().context("cannot start isolation")?;
        Ok(service)
    }
}

impl Service {
    /// Returns the parts of the daemon.
    pub fn daemon(&self) -> &Daemon {
        &self.daemon
    }

    /// Returns the controller, if any.
    pub fn control(&self) -> Option<&Control> {
        self.control.as_ref()
    }

    /// Returns isolation, if any.
    pub fn isolation(&self) -> Option<&Isolation> {
        self.isolation.as_ref()
    }

    /// Returns the listen address of the API.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the fleet of collectors.
    pub(super) fn fleet(&self) -> &Arc<Mutex<Fleet>> {
        &self.fleet
    }

    /// Returns the access control of the API.
    pub(super) fn access(&self) -> &Arc<Access> {
        &self.access
    }

    /// Requests a dump of samples. Counts it if the queue is full.
    pub(super) fn request_dump(&self) {
        self.dump_queue.put(DumpSignal::Signal);
    }

    /// Returns the maximum duration of a stop: [`STOP_LIMIT`], or longer if isolation may need it.
    pub fn stop_limit(&self) -> Duration {
        let isolation = self.isolation.as_ref().map(|isolation| isolation.stop_limit() + ISOLATION_MARGIN);
        STOP_LIMIT.max(isolation.unwrap_or_default())
    }

    /// Stops the daemon: flows are released, collectors export their flows and windows, and records are written. Calls `beat` while it waits.
    /// After [`STOP_LIMIT`], and with isolation after [`stop_limit`](Self::stop_limit), it logs what is unfinished, and returns.
    ///
    /// # Errors
    /// If flows may still be redirected.
    pub fn stop(mut self, beat: impl Fn()) -> anyhow::Result<()> {
        self.end(&beat)
    }

    fn end(&mut self, beat: &dyn Fn()) -> anyhow::Result<()> {
        let Some(server) = self.server.take() else { return Ok(()) };
        let isolation_until = Instant::now() + self.stop_limit();
        self.daemon.stop();
        if let Some(emulation) = self.daemon.emulation() {
            emulation.stop();
        }
        let until = Instant::now() + STOP_LIMIT;
        let fleet = Arc::clone(&self.fleet);
        let stopping =
            spawn_thread("stop", move || fleet.lock().unwrap_or_else(PoisonError::into_inner).stop());
        let are_stopped = match &stopping {
            Ok(stopping) => wait_until(stopping, until, beat),
            Err(_) => false,
        };
        self.has_stopped.store(true, Ordering::Relaxed);
        let have_written = self.writers.iter().filter(|writer| wait_until(writer, until, beat)).count();
        log_unfinished(&self.daemon, are_stopped && have_written == self.writers.len());
        let isolation = self.end_isolation(isolation_until, beat);
        drop(server);
        isolation
    }

    /// Waits until isolation has stopped.
    fn end_isolation(&mut self, until: Instant, beat: &dyn Fn()) -> anyhow::Result<()> {
        let Some(thread) = self.isolation_thread.take() else { return Ok(()) };
        let result = match wait_until(&thread, until, beat) {
            true => thread.join().unwrap_or_else(|_| Err("its thread has panicked".to_owned())),
            false => {
                let limit_s = self.stop_limit().as_secs();
                tracing::error!(limit_s, "stop of isolation timed out: flows may still be redirected");
                Err(format!("it has not stopped within {limit_s} s"))
            }
        };
        result
            .map_err(|error| anyhow::anyhow!("isolation not removed, flows may still be redirected: {error}"))
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        // What is wrong is in the log.
        let _ = self.end(&|| ());
    }
}

/// Waits for a thread until `until`. Returns whether it has ended.
fn wait_until<T>(thread: &JoinHandle<T>, until: Instant, beat: &dyn Fn()) -> bool {
    while !thread.is_finished() && Instant::now() < until {
        beat();
        std::thread::sleep(TICK);
    }
    thread.is_finished()
}

/// Logs what was not exported or written before the end.
fn log_unfinished(daemon: &Daemon, is_finished: bool) {
    if !is_finished {
        tracing::error!(limit_s = STOP_LIMIT.as_secs(), "stop timed out");
    }
    for collector in daemon.collectors() {
        let (lost, waiting) = (collector.records_lost(), collector.records_waiting());
        if lost.queue_full + lost.write_failed + waiting > 0 {
            tracing::warn!(
                collector = collector.name(),
                queue_full = lost.queue_full,
                write_failed = lost.write_failed,
                unwritten = waiting,
                "records not written"
            );
        }
    }
}

/// Starts a thread of this name.
///
/// # Errors
/// If the thread cannot be started.
pub(super) fn spawn_thread(
    name: &str,
    work: impl FnOnce() + Send + 'static,
) -> anyhow::Result<JoinHandle<()>> {
    std::thread::Builder::new()
        .name(name.to_owned())
        .spawn(work)
        .with_context(|| format!("cannot start thread {name}"))
}
