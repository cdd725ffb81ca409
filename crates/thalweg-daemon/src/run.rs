//! The daemon process: start, run, stop.
//!
//! **Start.** The file is checked, interfaces are opened, privileges are dropped, then threads start. A source that cannot be opened
//! does not affect the others.
//!
//! **Run.** The main thread notifies systemd's watchdog and never blocks. Reloads ([`super::reload`]) and dumps have threads of their
//! own.
//!
//! **Stop** (SIGTERM, SIGINT). Collectors export their flows and windows, and records are written. After
//! [`STOP_LIMIT`](super::service::STOP_LIMIT) the process logs what is unfinished, and ends. Isolation has
//! [a limit of its own](Service::stop_limit). A second signal ends it immediately.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use anyhow::Context;
use thalweg_linux::privileges::{Keep, drop_privileges_except};

use super::config::{ActuatorConfig, Config, IsolatorConfig, PollSource};
use super::control::Injected;
use super::file_access;
use super::host;
use super::lifecycle::Readiness;
use super::log::{Log, LogLevel};
use super::reload::Reloader;
use super::samples;
use super::service::{PreparedService, Service, spawn_thread};
use super::signals::{Signals, TICK};
use super::supervisor::Supervisor;
use super::watchdog::Watchdog;

/// Runs the daemon until a stop signal. `verbose` overrides the log level of the file until the next reload.
///
/// # Errors
/// If the daemon cannot start: the file is invalid, the API cannot listen, or memory does not suffice. After the stop, if flows may still be
/// redirected.
pub fn run(path: &Path, verbose: bool) -> anyhow::Result<()> {
    let mut config = host::load(path)?;
    if verbose {
        config.log.level = LogLevel::Debug;
    }
    let log = Log::install(&config.log)?;
    config.warnings.iter().for_each(|warning| tracing::warn!("{warning}"));
    let signals = Signals::register().context("cannot register signal handlers")?;
    let supervisor = Arc::new(Supervisor::from_environment());
    check_namespace(&config)?;
    file_access::prepare_folders(&config).map_err(anyhow::Error::msg)?;
    let opened = PreparedService::open(config.clone(), Injected::default())?;
    drop_privileges(&config)?;
    // With the privileges of the user that will read and write them.
    for problem in file_access::unreadable_at_reload(&config) {
        tracing::warn!("{problem}");
    }
    if let Some(folder) = &config.samples.folder
        && let Err(error) = samples::can_write(folder)
    {
        tracing::warn!(%error, "samples will not be written");
    }
    let service = opened.start(Some(log.clone()))?;
    tracing::info!(
        version = service.daemon().version(),
        api = %service.address(),
        access = service.access().policy().summary(),
        collectors = config.collectors.len(),
        "started"
    );
    let reloader = Reloader {
        path: path.to_owned(),
        at_start: config.clone(),
        config,
        daemon: service.daemon().clone(),
        access: Arc::clone(service.access()),
        log,
        fleet: Arc::clone(service.fleet()),
        supervisor: Arc::clone(&supervisor),
    };
    {
        let signals = signals.clone();
        spawn_thread("reload", move || reloader.run(&signals))?;
    }
    watch(&service, &signals, &supervisor);
    supervisor.notify_stopping(service.stop_limit());
    tracing::info!("stopping");
    // A stop has its own limit, so the watchdog is notified until it ends.
    let stopped = service.stop(|| supervisor.notify_watchdog());
    tracing::info!("stopped");
    stopped
}

/// Runs until a stop signal: notifies systemd, and forwards dump requests. Never blocks.
fn watch(service: &Service, signals: &Signals, supervisor: &Supervisor) {
    let daemon = service.daemon();
    let mut last_watchdog = Instant::now();
    let mut watchdog = Watchdog::default();
    let mut is_ready = false;
    let mut status = String::new();
    while !signals.stop_requested() {
        std::thread::sleep(TICK);
        if signals.take_dump_request() {
            service.request_dump();
        }
        let now = daemon.status();
        if !is_ready && daemon.readiness() == Readiness::Ready {
            is_ready = true;
            supervisor.notify_ready(&now);
        } else if now != status {
            supervisor.notify_status(&now);
        }
        status = now;
        if let Some(watchdog_interval) = supervisor.watchdog_interval()
            && last_watchdog.elapsed() >= watchdog_interval
        {
            last_watchdog = Instant::now();
            if watchdog.is_alive(&daemon.collectors()) {
                supervisor.notify_watchdog();
            }
        }
    }
}

/// Checks the namespace of OpenFlow switches. Connections are opened after privileges are dropped, when another namespace cannot
/// be entered.
fn check_namespace(config: &Config) -> anyhow::Result<()> {
    let control = config.control.as_ref().and_then(|control| match control.actuator {
        ActuatorConfig::OpenFlow(_) => Some(("control", control.namespace.as_ref()?)),
        _ => None,
    });
    let isolation = config.isolation.as_ref().and_then(|isolation| match &isolation.isolator {
        IsolatorConfig::OpenFlow(config) => Some(("isolation", config.namespace.as_ref()?)),
        _ => None,
    });
    let polls = config.polls.iter().filter_map(|poll| match &poll.source {
        PollSource::OpenFlow { endpoint, .. } => Some(("poll", endpoint.namespace.as_ref()?)),
        _ => None,
    });
    let other =
        control.into_iter().chain(isolation).chain(polls).find(|(_, namespace)| !namespace.is_current());
    if let Some((section, namespace)) = other {
        let name = namespace.name();
        anyhow::bail!(
            "{section}.namespace: cannot connect to switches in namespace {name:?} from outside after privileges are dropped: start \
             the daemon with `ip netns exec {name} thalweg serve ...`"
        );
    }
    Ok(())
}

/// Drops privileges. Must run before any thread starts, because capabilities belong to threads.
fn drop_privileges(config: &Config) -> anyhow::Result<()> {
    let has_interface = config.collectors.iter().any(|collector| collector.source.is_live());
    let isolates = config.isolation.as_ref().is_some_and(|isolation| isolation.isolator.needs_capabilities());
    let keep = match (has_interface && config.process.keep_capabilities, isolates) {
        (true, true) => Keep::CaptureAndIsolation,
        (true, false) => Keep::Capture,
        (false, true) => Keep::Isolation,
        (false, false) => Keep::Nothing,
    };
    let dropped = drop_privileges_except(keep, config.process.user.as_deref())
        .context("cannot drop the privileges that opening interfaces needed")?;
    tracing::info!("{dropped}");
    Ok(())
}
