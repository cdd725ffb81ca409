//! The daemon's life: start, run, stop.
//!
//! **Start.** The file is checked whole; interfaces are opened; privileges go; then threads begin. A source that cannot
//! be opened does not keep the others from starting.
//!
//! **Run.** The thread that tells systemd that all is well does nothing that may take long: reloads ([`super::reload`]) and
//! dumps have threads of their own.
//!
//! **Stop** (SIGTERM, SIGINT). Collectors hand on their flows and windows, records are written. What is not done within
//! [`STOP_LIMIT`] is told and left. A second signal ends the process at once.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::Context;
use crossbeam_channel::{Sender, bounded};
use thalweg_capture::privileges::{Keep, drop_privileges_except};
use thalweg_records::handoff::Handoff;

use super::access::Access;
use super::api::{Parts, Server};
use super::collectors::outlets::{Outlets, Wish};
use super::collectors::{Fleet, Ready, SharedThread};
use super::config::{Config, Threads};
use super::control::Control;
use super::daemon::{Daemon, Readiness, wall_clock};
use super::emulation::Emulation;
use super::hub::Hub;
use super::log::Log;
use super::pulse::Pulse;
use super::records;
use super::reload::Reloader;
use super::samples::{self, write_on_wishes};
use super::signals::Signals;
use super::supervisor::Supervisor;

/// How often signals are looked for.
pub(super) const TICK: Duration = Duration::from_millis(50);

/// How long stopping takes at most: less than systemd's patience in `packaging/thalweg.service`.
const STOP_LIMIT: Duration = Duration::from_secs(8);

/// Batches of records that wait to be written, at most.
const RECORDS_WAITING: usize = 1_024;

/// Wishes for dumps that wait, at most.
const WISHES_WAITING: usize = 64;

/// Runs the daemon until it is told to stop.
///
/// # Errors
/// If it cannot start: the file is wrong, the API cannot listen, memory does not suffice.
pub fn run(path: &Path) -> anyhow::Result<()> {
    let config = Config::load(path)?;
    let access = Arc::new(Access::new(&config.access)?);
    let log = Log::install(&config.log)?;
    let signals = Signals::register().context("cannot wait for signals")?;
    let supervisor = Arc::new(Supervisor::from_environment());
    let records = config.records.as_deref().map(|path| {
        records::open(path).with_context(|| format!("cannot write records to {}", path.display()))
    });
    let records = records.transpose()?;
    let ready: Vec<Ready> =
        config.collectors.iter().map(|collector| Ready::open(Arc::clone(collector))).collect();
    let daemon =
        Daemon::with_settle(config.versions(), config.network.settle, Hub::new(config.event_backlog));
    if let Some(emulation) = &config.emulation {
        daemon.set_emulation(Emulation::new(emulation));
    }
    let control = config.control.as_ref().map(|control| Control::prepare(control, &daemon)).transpose()?;
    give_up_privileges(&config)?;
    // As the user who will write there.
    if let Some(folder) = &config.samples.folder
        && let Err(error) = samples::can_write(folder)
    {
        tracing::warn!("samples will not be written: {error}");
    }

    let handoff = config.handoff.is_set().then(|| Handoff::start(config.handoff.options(), wall_clock));
    let handoff = handoff.transpose().context("flows cannot be handed on")?;
    let handed_on = handoff.as_ref().map(Handoff::ledger);
    daemon.dumps().set_options(config.samples.clone());
    let is_over = Arc::new(AtomicBool::new(false));
    let mut outlets = Outlets { wanted: config.samples.triggers.clone(), ..Outlets::default() };
    let mut writers = Vec::new();
    if records.is_some() || handoff.is_some() {
        let (sender, receiver) = bounded(RECORDS_WAITING);
        outlets.records = Some(sender);
        writers.push(thread("records", move || records::write(records, handoff, &receiver))?);
    }
    let (wishes, receiver) = bounded(WISHES_WAITING);
    outlets.wishes = Some(wishes.clone());
    {
        let (dumps, is_over) = (Arc::clone(daemon.dumps()), Arc::clone(&is_over));
        writers.push(thread("samples", move || {
            write_on_wishes(&dumps, &receiver, || is_over.load(Ordering::Relaxed));
        })?);
    }
    let prepared = control.map(|(prepared, ear)| {
        outlets.control = Some(ear);
        prepared
    });
    let parts = Parts {
        started: daemon.started(),
        hub: Arc::clone(daemon.hub()),
        collectors: daemon.collector_list().clone(),
        network: daemon.network_versions().clone(),
        dumps: Arc::clone(daemon.dumps()),
        life: daemon.life().clone(),
        control: prepared.as_ref().map(|prepared| prepared.control().clone()),
        handed_on,
    };
    let mut fleet = match config.process.threads {
        Threads::PerCollector => Fleet::new(daemon.clone(), outlets),
        Threads::One => {
            let shared = SharedThread::start().context("cannot start the thread of all collectors")?;
            writers.push(shared.1);
            Fleet::sharing(daemon.clone(), outlets, shared.0)
        }
    };
    fleet.start(ready)?;
    if let Some(prepared) = prepared {
        let failed = "cannot start the controller";
        match config.process.threads {
            Threads::PerCollector => writers.push(prepared.start(&daemon).context(failed)?),
            Threads::One => fleet.steer(prepared.begin(&daemon).context(failed)?),
        }
    }
    if let Some(emulation) = daemon.emulation() {
        writers.push(emulation.start()?);
    }
    let fleet = Arc::new(Mutex::new(fleet));
    let server = Server::start(parts, Arc::clone(&access), &config.access, Some(log.clone()))?;
    tracing::info!(
        version = daemon.version(),
        api = %server.address(),
        demands = access.policy().summary(),
        collectors = config.collectors.len(),
        "started"
    );
    let reloader = Reloader {
        path: path.to_owned(),
        at_start: config.clone(),
        config,
        daemon: daemon.clone(),
        access,
        log,
        fleet: Arc::clone(&fleet),
        supervisor: Arc::clone(&supervisor),
    };
    {
        let signals = signals.clone();
        thread("reload", move || reloader.go(&signals))?;
    }
    watch(&daemon, &signals, &supervisor, &wishes);
    supervisor.stops();
    daemon.stop();
    if let Some(emulation) = daemon.emulation() {
        emulation.stop();
    }
    tracing::info!("stops");
    let until = Instant::now() + STOP_LIMIT;
    let stopping = thread("stop", move || fleet.lock().unwrap_or_else(PoisonError::into_inner).stop())?;
    let are_stopped = has_ended(&stopping, until, &supervisor);
    is_over.store(true, Ordering::Relaxed);
    let have_written = writers.iter().filter(|writer| has_ended(writer, until, &supervisor)).count();
    tell_what_is_left(&daemon, are_stopped && have_written == writers.len());
    drop(server);
    tracing::info!("stopped");
    Ok(())
}

/// Goes on until the daemon is to stop: tells systemd how it does, and hands on the wish for a dump. Waits for nobody.
fn watch(daemon: &Daemon, signals: &Signals, supervisor: &Supervisor, wishes: &Sender<Wish>) {
    let mut well_at = Instant::now();
    let mut pulse = Pulse::default();
    let mut is_ready = false;
    let mut status = String::new();
    while !signals.say_stop() {
        std::thread::sleep(TICK);
        if signals.say_dump() && wishes.try_send(Wish::Signal).is_err() {
            daemon.dumps().note_crowded(1);
        }
        let now = daemon.status();
        if !is_ready && daemon.readiness() == Readiness::Ready {
            is_ready = true;
            supervisor.is_ready(&now);
        } else if now != status {
            supervisor.status(&now);
        }
        status = now;
        if let Some(interval) = supervisor.interval()
            && well_at.elapsed() >= interval
        {
            well_at = Instant::now();
            if pulse.is_felt(&daemon.collectors()) {
                supervisor.is_well();
            }
        }
    }
}

/// Waits for a thread, but not beyond `until`; says whether it has ended. Systemd is told that all is well meanwhile, as
/// this does not last.
fn has_ended(thread: &JoinHandle<()>, until: Instant, supervisor: &Supervisor) -> bool {
    while !thread.is_finished() && Instant::now() < until {
        supervisor.is_well();
        std::thread::sleep(TICK);
    }
    thread.is_finished()
}

/// Says what was not handed on or written before the daemon ends.
fn tell_what_is_left(daemon: &Daemon, is_all_done: bool) {
    if !is_all_done {
        tracing::error!("not everything has ended within {} s, and is left", STOP_LIMIT.as_secs());
    }
    for collector in daemon.collectors() {
        let (lost, waiting) = (collector.records_lost(), collector.records_waiting());
        if lost.late + lost.failed + waiting > 0 {
            tracing::warn!(
                collector = collector.name(),
                late = lost.late,
                failed = lost.failed,
                left = waiting,
                "records were not written"
            );
        }
    }
}

/// Before any thread starts: capabilities belong to threads.
fn give_up_privileges(config: &Config) -> anyhow::Result<()> {
    let has_interface = config.collectors.iter().any(|collector| collector.source.is_live());
    let keep = match has_interface && config.process.keep_capabilities {
        true => Keep::Capture,
        false => Keep::Nothing,
    };
    let dropped = drop_privileges_except(keep, config.process.user.as_deref())
        .context("cannot give up the privileges that opening interfaces needed")?;
    tracing::info!("{dropped}");
    Ok(())
}

fn thread(name: &str, work: impl FnOnce() + Send + 'static) -> anyhow::Result<JoinHandle<()>> {
    std::thread::Builder::new()
        .name(name.to_owned())
        .spawn(work)
        .with_context(|| format!("cannot start the thread {name}"))
}
