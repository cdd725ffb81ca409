//! The daemon's life: start, run, stop.
//!
//! **Start.** The file is checked whole; interfaces are opened; privileges go; then threads begin. A source that cannot
//! be opened does not keep the others from starting.
//!
//! **Run.** The thread that tells systemd that all is well does nothing that may take long: reloads ([`super::reload`]) and
//! dumps have threads of their own.
//!
//! **Stop** (SIGTERM, SIGINT). Collectors hand on their flows and windows, records are written. What is not done within
//! [`STOP_LIMIT`](super::service::STOP_LIMIT) is told and left. A second signal ends the process at once.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use anyhow::Context;
use thalweg_linux::privileges::{Keep, drop_privileges_except};

use super::config::{ActuatorConfig, Config};
use super::control::Injected;
use super::lifecycle::Readiness;
use super::log::{Log, LogLevel};
use super::reload::Reloader;
use super::samples;
use super::service::{Opened, Service, thread};
use super::signals::{Signals, TICK};
use super::supervisor::Supervisor;
use super::watchdog::Watchdog;

/// Runs the daemon until it is told to stop. `verbose` overrides the log level of the file until the next reload.
///
/// # Errors
/// If it cannot start: the file is wrong, the API cannot listen, memory does not suffice.
pub fn run(path: &Path, verbose: bool) -> anyhow::Result<()> {
    let mut config = Config::load(path)?;
    if verbose {
        config.log.level = LogLevel::Debug;
    }
    let log = Log::install(&config.log)?;
    let signals = Signals::register().context("cannot wait for signals")?;
    let supervisor = Arc::new(Supervisor::from_environment());
    check_namespace(&config)?;
    let opened = Opened::open(config.clone(), Injected::default())?;
    drop_privileges(&config)?;
    // As the user who will write there.
    if let Some(folder) = &config.samples.folder
        && let Err(error) = samples::can_write(folder)
    {
        tracing::warn!(%error, "cannot write samples");
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
        thread("reload", move || reloader.run(&signals))?;
    }
    watch(&service, &signals, &supervisor);
    supervisor.notify_stopping();
    tracing::info!("stopping");
    // Systemd is told that all is well meanwhile, as this does not last.
    service.stop(|| supervisor.notify_watchdog());
    tracing::info!("stopped");
    Ok(())
}

/// Goes on until the daemon is to stop: tells systemd how it does, and hands on the wish for a dump. Waits for nobody.
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

/// Connections to switches are made, and made again, after privileges have gone; another namespace cannot be entered then.
fn check_namespace(config: &Config) -> anyhow::Result<()> {
    let Some(control) = &config.control else { return Ok(()) };
    if let (ActuatorConfig::OpenFlow(_), Some(namespace)) = (&control.actuator, &control.namespace)
        && !namespace.is_current()
    {
        let name = namespace.name();
        anyhow::bail!(
            "control.namespace: switches in namespace {name:?} cannot be connected to from outside once privileges are given up: \
             start the daemon with `ip netns exec {name} thalweg serve ...`"
        );
    }
    Ok(())
}

/// Before any thread starts: capabilities belong to threads.
fn drop_privileges(config: &Config) -> anyhow::Result<()> {
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
