//! Reload of the configuration (SIGHUP). The whole file is checked first. An invalid file changes nothing and is logged.
//!
//! `docs/guides/collector.md` lists the keys that can change. Other changes are logged, and require a restart.
//!
//! Reloads have a thread of their own, because files and collectors may be slow. Neither collectors nor the watchdog wait for it.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use thalweg_linux::privileges::can_capture;

use super::collectors::Fleet;
use super::config::{CollectorConfig, Config};
use super::daemon::Daemon;
use super::log::Log;
use super::signals::{Signals, TICK};
use super::supervisor::Supervisor;
use thalweg_http::access::Access;

/// Interval of reports about suppressed log lines.
const LOG_INTERVAL: Duration = Duration::from_secs(1);

/// Applies changes of the configuration.
pub(super) struct Reloader {
    pub(super) path: PathBuf,
    /// The configuration at the start, for keys that require a restart.
    pub(super) at_start: Config,
    pub(super) config: Config,
    pub(super) daemon: Daemon,
    pub(super) access: Arc<Access>,
    pub(super) log: Log,
    /// Locked while collectors change, so that a stop waits for it.
    pub(super) fleet: Arc<Mutex<Fleet>>,
    pub(super) supervisor: Arc<Supervisor>,
}

impl Reloader {
    /// Runs until the daemon stops. Also reports suppressed log lines, since writing them may block too.
    pub(super) fn run(mut self, signals: &Signals) {
        let mut logged_at = Instant::now();
        while !signals.stop_requested() {
            std::thread::sleep(TICK);
            if signals.take_reload_request() {
                self.supervisor.notify_reloading();
                self.reload();
                self.supervisor.notify_ready(&self.daemon.status());
            }
            if logged_at.elapsed() >= LOG_INTERVAL {
                logged_at = Instant::now();
                self.log.report_suppressed();
            }
        }
    }

    /// Applies the file. If it is invalid, nothing changes.
    fn reload(&mut self) {
        let config = match self.load() {
            Ok(config) => config,
            Err(error) => {
                tracing::error!("invalid configuration, nothing changed: {error:#}");
                return;
            }
        };
        config.warnings.iter().for_each(|warning| tracing::warn!("{warning}"));
        for key in self.keys_requiring_restart(&config) {
            tracing::warn!(key, "change requires a restart");
        }
        self.log.set_level(config.log.level);
        self.daemon.dumps().set_options(config.samples.clone());
        let mut fleet = self.fleet.lock().unwrap_or_else(PoisonError::into_inner);
        let before = self.config.network.state.as_ref().map(|(_, state)| state);
        if let Some((_, state)) = &config.network.state
            && before != Some(state)
        {
            fleet.retain(&config.collectors);
            match self.daemon.set_network(Arc::clone(state)) {
                Ok(change) => {
                    tracing::info!(version = change.version, "topology changed");
                    for (collector, reason) in change.unconfirmed {
                        tracing::warn!(collector, reason, "the collector did not confirm the new topology");
                    }
                }
                Err(error) => tracing::error!(%error, "topology not changed"),
            }
        }
        fleet.reload(&config.collectors);
        drop(fleet);
        tracing::info!(collectors = config.collectors.len(), "configuration reloaded");
        self.config = config;
    }

    /// Reads and checks everything before any change. Tokens and certificates are applied here, when all else is valid.
    fn load(&self) -> anyhow::Result<Config> {
        let config = Config::load(&self.path)?;
        let before = self.config.network.state.as_ref().map(|(_, state)| state);
        match &config.network.state {
            Some((path, state)) if before != Some(state) => {
                self.daemon.network_versions().check(state).with_context(|| path.display().to_string())?;
            }
            // The network stays as it is. The API may have changed it since.
            _ => {
                let versions = self.daemon.network();
                let state = versions.as_ref().map(|versions| &*versions.newest().state);
                for collector in &config.collectors {
                    collector.options(state).with_context(|| format!("collector {}", collector.name))?;
                }
            }
        }
        if config.emulation != self.at_start.emulation {
            bail!("a change of [emulate] requires a restart");
        }
        check_privileges(&self.config, &config, can_capture())?;
        self.access.reload(&config.access)?;
        Ok(config)
    }

    /// Returns the changed keys that require a restart.
    fn keys_requiring_restart(&self, new: &Config) -> Vec<&'static str> {
        let old = &self.at_start;
        let changes = [
            ("api.listen", old.access.listen != new.access.listen),
            ("api.*", old.access.limits != new.access.limits),
            ("api.event_backlog", old.event_backlog != new.event_backlog),
            ("log.format", old.log.format != new.log.format),
            ("log.lines_per_second", old.log.lines_per_second != new.log.lines_per_second),
            ("process", old.process != new.process),
            ("network.topology", old.network.state.is_some() && new.network.state.is_none()),
            ("network.transition_time", old.network.transition_time != new.network.transition_time),
            ("control", old.control != new.control),
            ("isolation", old.isolation != new.isolation),
            ("poll", old.polls != new.polls),
            ("threshold", old.threshold != new.threshold),
            ("samples.on_event", old.samples.triggers != new.samples.triggers),
            ("alert", old.alerts != new.alerts),
            ("event_log", old.event_log != new.event_log),
            ("records.file", old.records != new.records),
            ("records.folder and records.ipfix", old.flow_export != new.flow_export),
            ("transfers", old.transfers != new.transfers),
            ("experiments", old.experiments != new.experiments),
        ];
        changes.into_iter().filter(|(_, has_changed)| *has_changed).map(|(key, _)| key).collect()
    }
}

/// Refuses new interfaces if the capability to open them is missing, instead of retrying to open them forever.
fn check_privileges(old: &Config, new: &Config, can_capture: bool) -> anyhow::Result<()> {
    let is_open = |new: &CollectorConfig| old.collectors.iter().any(|old| old.can_keep_source_of(new));
    let needs = new.collectors.iter().find(|collector| collector.source.is_live() && !is_open(collector));
    match needs {
        Some(collector) if !can_capture => bail!(
            "collector {}: cannot open {} without CAP_NET_RAW: restart the daemon. A reload can add interfaces if the daemon was \
             started with one, and with process.keep_capabilities",
            collector.name,
            collector.source.description(),
        ),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(collectors: &[(&str, &str)]) -> Config {
        let collectors =
            collectors.iter().map(|(name, rest)| format!("[[collector]]\nname = {name:?}\n{rest}\n"));
        let text: String = collectors.collect();
        Config::parse(&text, "test.toml", std::path::Path::new("/")).unwrap()
    }

    #[test]
    fn new_interfaces_require_the_capability() {
        let (eth1, eth2) = ("interface = \"eth1\"", "interface = \"eth2\"");
        let (file, other) = (("f", "file = \"f.pcap\""), ("g", "file = \"g.pcap\""));
        let old = config(&[("a", eth1), file]);
        let check = |new: &[(&str, &str)], can| check_privileges(&old, &config(new), can);
        let smoothed = "interface = \"eth1\"\nsmoothing = \"2ms\"";
        for allowed in [&[("a", eth1), other][..], &[("a", smoothed)], &[file]] {
            check(allowed, false).unwrap();
        }
        let filtered = "interface = \"eth1\"\ncapture_filter = \"tcp\"";
        for refused in [[("a", eth1), ("b", eth2)], [("a", eth2), file], [("a", filtered), file]] {
            check(&refused, true).unwrap();
            let error = check(&refused, false).unwrap_err().to_string();
            assert!(error.contains("without CAP_NET_RAW: restart the daemon"), "{error}");
        }
    }
}
