//! The daemon without its process: opened, started, stopped. What belongs to a process, such as signals, the log, privileges
//! and systemd, is [`super::run`]'s.
//!
//! A lab starts one in its own process, with a configuration that a user could write.

use std::fs::File;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::Context;
use crossbeam_channel::bounded;
use thalweg_records::handoff::Handoff;

use super::api::Server;
use super::clock::wall_clock;
use super::collectors::notices::NoticeSender;
use super::collectors::sinks::{DumpQueue, DumpSignal, Sinks};
use super::collectors::{Fleet, Ready, SharedThread};
use super::config::{Config, Threads};
use super::control::{Control, Injected, Prepared};
use super::daemon::Daemon;
use super::emulation::Emulation;
use super::hub::Hub;
use super::log::Log;
use super::parts::Parts;
use super::records;
use super::samples::run_dump_thread;
use thalweg_http::access::Access;

/// How long stopping takes at most: less than systemd's patience in `packaging/thalweg.service`.
pub const STOP_LIMIT: Duration = Duration::from_secs(8);

/// How often it is looked whether something has ended.
const TICK: Duration = Duration::from_millis(20);

/// Batches of records that wait to be written, at most.
const RECORDS_WAITING: usize = 1_024;

/// Wishes for dumps that wait, at most.
const DUMP_QUEUE_LENGTH: usize = 64;

/// A daemon whose sources are open, and that has not begun: privileges can go now.
pub struct Opened {
    config: Config,
    access: Arc<Access>,
    records: Option<File>,
    ready: Vec<Ready>,
    daemon: Daemon,
    control: Option<(Prepared, NoticeSender)>,
}

/// A daemon at work. It is stopped when this is dropped.
pub struct Service {
    daemon: Daemon,
    control: Option<Control>,
    fleet: Arc<Mutex<Fleet>>,
    /// Until it is stopped.
    server: Option<Server>,
    address: SocketAddr,
    access: Arc<Access>,
    dump_queue: DumpQueue,
    /// Threads that end when all that they wait for has come.
    writers: Vec<JoinHandle<()>>,
    is_over: Arc<AtomicBool>,
}

impl Opened {
    /// Opens what a configuration names. A source that cannot be opened is tried again later, and keeps no other from
    /// starting.
    ///
    /// # Errors
    /// If tokens, the file of records or what carries decisions out cannot be had.
    pub fn open(config: Config, injected: Injected) -> anyhow::Result<Opened> {
        let access = Arc::new(Access::new(&config.access)?);
        let records = config.records.as_deref().map(|path| {
            records::open(path).with_context(|| format!("cannot write records to {}", path.display()))
        });
        let records = records.transpose()?;
        let ready = config.collectors.iter().map(|collector| Ready::open(Arc::clone(collector))).collect();
        let hub = Hub::new(config.event_backlog);
        let daemon = Daemon::with_settle(config.versions(), config.network.settle, hub);
        if let Some(emulation) = &config.emulation {
            daemon.set_emulation(Emulation::new(emulation));
        }
        let control = config.control.as_ref();
        let control = control
            .map(|control| Control::prepare(control, &daemon.control_parts(), injected))
            .transpose()?;
        Ok(Opened { config, access, records, ready, daemon, control })
    }

    /// Begins: from now on it measures, steers and answers. What the API says of the log is taken from `log`.
    ///
    /// # Errors
    /// If the API cannot listen, memory does not suffice, or there are no more threads.
    pub fn start(self, log: Option<Log>) -> anyhow::Result<Service> {
        let Opened { config, access, records, ready, daemon, control } = self;
        let handoff =
            config.flow_export.is_set().then(|| Handoff::start(config.flow_export.options(), wall_clock));
        let handoff = handoff.transpose().context("flows cannot be handed on")?;
        let handed_on = handoff.as_ref().map(Handoff::status);
        daemon.dumps().set_options(config.samples.clone());
        let is_over = Arc::new(AtomicBool::new(false));
        let mut sinks = Sinks { wanted: config.samples.triggers.clone(), ..Sinks::default() };
        let mut writers = Vec::new();
        if records.is_some() || handoff.is_some() {
            let (sender, receiver) = bounded(RECORDS_WAITING);
            sinks.records = Some(sender);
            writers.push(thread("records", move || records::write(records, handoff, &receiver))?);
        }
        let (sender, receiver) = bounded(DUMP_QUEUE_LENGTH);
        let dump_queue = DumpQueue::new(sender, daemon.dumps().crowded());
        sinks.dump_queue = Some(dump_queue.clone());
        {
            let (dumps, is_over) = (Arc::clone(daemon.dumps()), Arc::clone(&is_over));
            writers.push(thread("samples", move || {
                run_dump_thread(&dumps, &receiver, || is_over.load(Ordering::Relaxed));
            })?);
        }
        let prepared = control.map(|(prepared, notice_sender)| {
            sinks.control = Some(notice_sender);
            prepared
        });
        let control = prepared.as_ref().map(|prepared| prepared.control().clone());
        let parts = Parts { control: control.clone(), handed_on, ..daemon.api_parts() };
        let mut fleet = match config.process.threads {
            Threads::PerCollector => Fleet::new(daemon.fleet_parts(), sinks),
            Threads::One => {
                let shared = SharedThread::start().context("cannot start the thread of all collectors")?;
                writers.push(shared.1);
                Fleet::sharing(daemon.fleet_parts(), sinks, shared.0)
            }
        };
        fleet.start(ready)?;
        if let Some(prepared) = prepared {
            let failed = "cannot start the controller";
            match config.process.threads {
                Threads::PerCollector => writers.push(prepared.start().context(failed)?),
                Threads::One => fleet.steer(Box::new(prepared.begin().context(failed)?)),
            }
        }
        if let Some(emulation) = daemon.emulation() {
            writers.push(emulation.start()?);
        }
        let server = Server::start(parts, Arc::clone(&access), &config.access, log)?;
        let (address, server) = (server.address(), Some(server));
        let fleet = Arc::new(Mutex::new(fleet));
        Ok(Service { daemon, control, fleet, server, address, access, dump_queue, writers, is_over })
    }
}

impl Service {
    /// Its parts.
    pub fn daemon(&self) -> &Daemon {
        &self.daemon
    }

    /// The controller, if there is one.
    pub fn control(&self) -> Option<&Control> {
        self.control.as_ref()
    }

    /// Where the API listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The collectors, to be changed.
    pub(super) fn fleet(&self) -> &Arc<Mutex<Fleet>> {
        &self.fleet
    }

    /// Who may ask.
    pub(super) fn access(&self) -> &Arc<Access> {
        &self.access
    }

    /// Wishes for samples to be written; counts it if there is no room for another.
    pub(super) fn request_dump(&self) {
        self.dump_queue.put(DumpSignal::Signal);
    }

    /// Stops: collectors hand on their flows and windows, records are written. Whoever waits meanwhile is asked to `beat`. What is
    /// not done within [`STOP_LIMIT`] is told, and left.
    pub fn stop(mut self, beat: impl Fn()) {
        self.end(&beat);
    }

    fn end(&mut self, beat: &dyn Fn()) {
        let Some(server) = self.server.take() else { return };
        self.daemon.stop();
        if let Some(emulation) = self.daemon.emulation() {
            emulation.stop();
        }
        let until = Instant::now() + STOP_LIMIT;
        let fleet = Arc::clone(&self.fleet);
        let stopping = thread("stop", move || fleet.lock().unwrap_or_else(PoisonError::into_inner).stop());
        let are_stopped = match &stopping {
            Ok(stopping) => has_ended(stopping, until, beat),
            Err(_) => false,
        };
        self.is_over.store(true, Ordering::Relaxed);
        let have_written = self.writers.iter().filter(|writer| has_ended(writer, until, beat)).count();
        tell_what_is_left(&self.daemon, are_stopped && have_written == self.writers.len());
        drop(server);
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        self.end(&|| ());
    }
}

/// Waits for a thread, but not beyond `until`; says whether it has ended.
fn has_ended(thread: &JoinHandle<()>, until: Instant, beat: &dyn Fn()) -> bool {
    while !thread.is_finished() && Instant::now() < until {
        beat();
        std::thread::sleep(TICK);
    }
    thread.is_finished()
}

/// Says what was not handed on or written before the daemon ends.
fn tell_what_is_left(daemon: &Daemon, is_all_done: bool) {
    if !is_all_done {
        tracing::error!(limit_s = STOP_LIMIT.as_secs(), "stop timed out");
    }
    for collector in daemon.collectors() {
        let (lost, waiting) = (collector.records_lost(), collector.records_waiting());
        if lost.late + lost.failed + waiting > 0 {
            tracing::warn!(
                collector = collector.name(),
                late = lost.late,
                failed = lost.failed,
                left = waiting,
                "records not written"
            );
        }
    }
}

/// A thread of this name.
///
/// # Errors
/// If the system has no more.
pub(super) fn thread(name: &str, work: impl FnOnce() + Send + 'static) -> anyhow::Result<JoinHandle<()>> {
    std::thread::Builder::new()
        .name(name.to_owned())
        .spawn(work)
        .with_context(|| format!("cannot start the thread {name}"))
}
