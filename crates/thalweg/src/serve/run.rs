//! The daemon's life: start, reload, stop.
//!
//! **Start.** The file is checked whole; interfaces are opened; privileges go; then threads begin. A source that cannot
//! be opened does not keep the others from starting.
//!
//! **Reload** (SIGHUP). The file is read and checked whole; one that is wrong changes nothing, and the log says why.
//! What can change is listed in `docs/guides/collector.md`; what cannot is told in the log, and waits for the next start.
//!
//! **Stop** (SIGTERM, SIGINT). Collectors hand on their flows and windows, records are written. A second signal ends the
//! process at once.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::Context;
use crossbeam_channel::bounded;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR1};
use thalweg_capture::privileges::{Keep, drop_privileges_except};

use super::access::Access;
use super::api::Server;
use super::collectors::outlets::Outlets;
use super::collectors::{CollectorState, Fleet, Ready};
use super::config::Config;
use super::daemon::{Daemon, Readiness};
use super::hub::Hub;
use super::log::Log;
use super::records;
use super::samples::{self, Cause, DumpRequest, write_on_events};
use super::supervisor::Supervisor;

/// How often signals are looked for.
const TICK: Duration = Duration::from_millis(50);

/// How often the log says what it held back.
const LOG_INTERVAL: Duration = Duration::from_secs(1);

/// Batches of records that wait to be written, at most.
const RECORDS_WAITING: usize = 1_024;

/// Wishes for dumps that wait, at most.
const TRIGGERS_WAITING: usize = 64;

/// Runs the daemon until it is told to stop.
///
/// # Errors
/// If it cannot start: the file is wrong, the API cannot listen, memory does not suffice.
pub fn run(path: &Path) -> anyhow::Result<()> {
    let config = Config::load(path)?;
    let access = Arc::new(Access::new(&config.access)?);
    let log = Log::install(&config.log)?;
    let signals = Signals::register().context("cannot wait for signals")?;
    let supervisor = Supervisor::from_environment();
    let records = config.records.as_deref().map(|path| {
        records::open(path).with_context(|| format!("cannot write records to {}", path.display()))
    });
    let records = records.transpose()?;
    let ready: Vec<Ready> =
        config.collectors.iter().map(|collector| Ready::open(Arc::clone(collector))).collect();
    give_up_privileges(&config)?;
    // As the user who will write there.
    if let Some(folder) = &config.samples.folder
        && let Err(error) = samples::can_write(folder)
    {
        tracing::warn!("samples will not be written: {error}");
    }

    let daemon =
        Daemon::with_settle(config.versions(), config.network.settle, Hub::new(config.event_backlog));
    daemon.dumps().set_options(config.samples.clone());
    let is_over = Arc::new(AtomicBool::new(false));
    let mut outlets = Outlets { wanted: config.samples.triggers.clone(), ..Outlets::default() };
    let mut writers = Vec::new();
    if let Some(file) = records {
        let (sender, receiver) = bounded(RECORDS_WAITING);
        outlets.records = Some(sender);
        writers.push(thread("records", move || records::write(file, &receiver))?);
    }
    let (sender, triggers) = bounded(TRIGGERS_WAITING);
    outlets.triggers = Some(sender);
    {
        let (daemon, is_over) = (daemon.clone(), Arc::clone(&is_over));
        writers.push(thread("samples", move || {
            write_on_events(&daemon, &triggers, || is_over.load(Ordering::Relaxed));
        })?);
    }
    let mut fleet = Fleet::new(daemon.clone(), outlets);
    fleet.start(ready)?;
    let server = Server::start(daemon.clone(), Arc::clone(&access), &config.access, Some(log.clone()))?;
    tracing::info!(
        version = daemon.version(),
        api = %server.address(),
        demands = access.policy().summary(),
        collectors = config.collectors.len(),
        "started"
    );
    let at_start = config.clone();
    let mut life = Life { path: path.to_owned(), at_start, config, daemon, access, log, fleet, supervisor };
    life.go(&signals);
    life.supervisor.stops();
    life.daemon.stop();
    tracing::info!("stops");
    life.fleet.stop();
    // Its last outlets go with it, so that writers end.
    drop(life);
    is_over.store(true, Ordering::Relaxed);
    for writer in writers {
        // One that has panicked has said so.
        let _ = writer.join();
    }
    drop(server);
    tracing::info!("stopped");
    Ok(())
}

/// The daemon while it runs.
struct Life {
    path: PathBuf,
    /// What the daemon was started with: some of it stays.
    at_start: Config,
    config: Config,
    daemon: Daemon,
    access: Arc<Access>,
    log: Log,
    fleet: Fleet,
    supervisor: Supervisor,
}

impl Life {
    /// Goes on until it is told to stop.
    fn go(&mut self, signals: &Signals) {
        let mut well_at = Instant::now();
        let mut logged_at = Instant::now();
        let mut pulse = Pulse::default();
        let mut is_ready = false;
        let mut status = String::new();
        while !signals.stop.load(Ordering::Relaxed) {
            std::thread::sleep(TICK);
            if signals.reload.swap(false, Ordering::Relaxed) {
                self.supervisor.reloads();
                self.reload();
                self.supervisor.is_ready(&status);
            }
            if signals.dump.swap(false, Ordering::Relaxed) {
                self.dump();
            }
            let now = self.status();
            if !is_ready && self.daemon.readiness() == Readiness::Ready {
                is_ready = true;
                self.supervisor.is_ready(&now);
            } else if now != status {
                self.supervisor.status(&now);
            }
            status = now;
            if let Some(interval) = self.supervisor.interval()
                && well_at.elapsed() >= interval
            {
                well_at = Instant::now();
                if self.fleet.is_whole() && pulse.is_felt(&self.daemon) {
                    self.supervisor.is_well();
                }
            }
            if logged_at.elapsed() >= LOG_INTERVAL {
                logged_at = Instant::now();
                self.log.tell_suppressed();
            }
        }
    }

    /// `3 collectors: 2 running, 1 failed`.
    fn status(&self) -> String {
        let collectors = self.daemon.collectors();
        let states: Vec<&str> = collectors.iter().map(|collector| collector.state().name()).collect();
        let parts = CollectorState::NAMES.iter().filter_map(|name| {
            let count = states.iter().filter(|state| *state == name).count();
            (count > 0).then(|| format!("{count} {name}"))
        });
        format!("{} collectors: {}", states.len(), parts.collect::<Vec<_>>().join(", "))
    }

    fn dump(&self) {
        let request = DumpRequest { collector: None, format: None, cause: Cause::Signal };
        match self.daemon.dump(&request) {
            Ok(files) => {
                for file in files {
                    let path = file.path.display().to_string();
                    tracing::info!(
                        collector = file.collector,
                        path,
                        packets = file.packets,
                        "samples written"
                    );
                }
            }
            Err(error) => tracing::warn!("{error}"),
        }
    }

    /// Takes up what the file says now; if it is wrong, nothing changes.
    fn reload(&mut self) {
        let config = match self.check_anew() {
            Ok(config) => config,
            Err(error) => {
                tracing::error!("the configuration is wrong, nothing changes: {error:#}");
                return;
            }
        };
        for key in self.waits_for_restart(&config) {
            tracing::warn!(key, "this changes when the daemon is started again");
        }
        self.log.set_level(config.log.level);
        self.daemon.dumps().set_options(config.samples.clone());
        let before = self.config.network.state.as_ref().map(|(_, state)| state);
        if let Some((_, state)) = &config.network.state
            && before != Some(state)
        {
            self.fleet.retain(&config.collectors);
            match self.daemon.set_network(Arc::clone(state)) {
                Ok(change) => {
                    tracing::info!(version = change.version, "the network has changed");
                    for (collector, reason) in change.unconfirmed {
                        tracing::warn!(collector, "has not taken it up yet: {reason}");
                    }
                }
                Err(error) => tracing::error!("the network stays as it was: {error}"),
            }
        }
        self.fleet.reload(&config.collectors);
        tracing::info!(collectors = config.collectors.len(), "the configuration was read again");
        self.config = config;
    }

    /// Reads and checks everything that can be wrong before anything is changed; tokens and certificates are the last
    /// that is checked and the first that changes.
    fn check_anew(&self) -> anyhow::Result<Config> {
        let config = Config::load(&self.path)?;
        let before = self.config.network.state.as_ref().map(|(_, state)| state);
        match &config.network.state {
            Some((path, state)) if before != Some(state) => {
                self.daemon.check_network(state).with_context(|| path.display().to_string())?;
            }
            // The network stays as it is, which may be as the API was told since.
            _ => {
                let versions = self.daemon.network();
                let state = versions.as_ref().map(|versions| &*versions.newest().state);
                for collector in &config.collectors {
                    collector.options(state).with_context(|| format!("collector {}", collector.name))?;
                }
            }
        }
        self.access.reload(&config.access)?;
        Ok(config)
    }

    /// Keys that have changed and take no effect while the daemon runs.
    fn waits_for_restart(&self, new: &Config) -> Vec<&'static str> {
        let old = &self.at_start;
        let changes = [
            ("api.listen", old.access.listen != new.access.listen),
            ("api limits", old.access.limits != new.access.limits),
            ("api.event_backlog", old.event_backlog != new.event_backlog),
            ("log.format", old.log.format != new.log.format),
            ("log.lines_per_second", old.log.lines_per_second != new.log.lines_per_second),
            ("process", old.process != new.process),
            ("network.topology", old.network.state.is_some() && new.network.state.is_none()),
            ("network.settle", old.network.settle != new.network.settle),
            ("samples.on_event", old.samples.triggers != new.samples.triggers),
            ("records.file", old.records != new.records),
        ];
        changes.into_iter().filter(|(_, has_changed)| *has_changed).map(|(key, _)| key).collect()
    }
}

/// Heartbeats of collectors, as they were at the last look.
#[derive(Default)]
struct Pulse {
    beats: Vec<(String, u64)>,
}

impl Pulse {
    /// Whether every collector has done something since the last look.
    fn is_felt(&mut self, daemon: &Daemon) -> bool {
        let beats: Vec<(String, u64)> = daemon
            .collectors()
            .iter()
            .map(|collector| (collector.name().to_owned(), collector.heartbeat()))
            .collect();
        let before = std::mem::replace(&mut self.beats, beats);
        !self.beats.iter().any(|beat| before.contains(beat))
    }
}

/// What signals say.
struct Signals {
    stop: Arc<AtomicBool>,
    reload: Arc<AtomicBool>,
    dump: Arc<AtomicBool>,
}

impl Signals {
    fn register() -> std::io::Result<Signals> {
        let [stop, reload, dump] = std::array::from_fn(|_| Arc::new(AtomicBool::new(false)));
        for signal in [SIGINT, SIGTERM] {
            // A second one, while stopping takes its time, ends the process.
            signal_hook::flag::register_conditional_shutdown(signal, 128 + signal, Arc::clone(&stop))?;
            signal_hook::flag::register(signal, Arc::clone(&stop))?;
        }
        signal_hook::flag::register(SIGHUP, Arc::clone(&reload))?;
        signal_hook::flag::register(SIGUSR1, Arc::clone(&dump))?;
        Ok(Signals { stop, reload, dump })
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
