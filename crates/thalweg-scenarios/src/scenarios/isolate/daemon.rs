//! The daemon of a run: collectors at the router's ingress, isolation at the link. It starts from a configuration that a
//! user could write, in the scenario's process.
//!
//! Collectors listen at the ingress. At `wan` itself, AF_PACKET sees packets after its queue, so a full queue would delay
//! the detection of the flow that fills it.

use std::fmt::{self, Write as _};
use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use thalweg_control::isolate::RedirectionId;
use thalweg_daemon::collectors::CollectorHandle;
use thalweg_daemon::config::Config;
use thalweg_daemon::control::Injected;
use thalweg_daemon::event::CollectorState;
use thalweg_daemon::isolation::{Isolation as Isolating, IsolationReport};
use thalweg_daemon::service::{PreparedService, Service};
use thalweg_lab::router::switch::{self, CONTROLLER};
use thalweg_lab::router::{LINK_INTERFACE, sender_interface};
use thalweg_lab::{Prefix, RouterLab};
use thalweg_wire::FlowKey;

use super::{Actuator, BACKGROUND, FLOW, Isolation, PING, Parameters, SCAVENGER_SHARE};
use crate::error::ScenarioError;

/// Timeout for the collectors to start.
const START_TIMEOUT: Duration = Duration::from_secs(20);

/// Timeout for a collector to answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(1);

/// Ended redirections to read.
const ENDED: usize = 1_000;

/// What the collectors of a daemon detect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detects {
    /// Cheetah flows.
    Cheetahs,
    /// Nothing: flows are redirected by hand.
    Nothing,
}

/// Returns the configuration of the daemon.
pub fn configuration(
    prefix: &Prefix,
    parameters: &Parameters,
    isolation: Isolation,
    detects: Detects,
) -> String {
    let mut text = String::new();
    write(&mut text, prefix, parameters, isolation, detects).expect("writing to a string succeeds");
    text
}

fn write(
    text: &mut String,
    prefix: &Prefix,
    parameters: &Parameters,
    isolation: Isolation,
    detects: Detects,
) -> fmt::Result {
    let router = RouterLab::router_of(prefix);
    writeln!(text, "# thalweg serve -c FILE, on the router of `thalweg lab run isolate`.\n")?;
    writeln!(text, "[api]\nlisten = \"127.0.0.1:0\"")?;
    for host in [PING, BACKGROUND, FLOW] {
        writeln!(text, "\n[[collector]]\nname = \"from-h{host}\"")?;
        writeln!(text, "interface = \"{}\"", sender_interface(host))?;
        writeln!(text, "namespace = \"{}\"\nbackend = \"prompt\"", router.name())?;
        writeln!(
            text,
            "ring_size = \"4MiB\"\nflow_capacity = 4096\nidle_timeout = \"5s\"\nkeep_samples = false"
        )?;
        match detects {
            Detects::Nothing => writeln!(text, "cheetahs = false")?,
            Detects::Cheetahs => {
                writeln!(text, "flight_duration = \"{}ns\"", parameters.flight_duration.0)?;
                writeln!(text, "rate_threshold = \"{}bps\"", parameters.rate_threshold.0)?;
            }
        }
    }
    writeln!(text, "\n[isolation]\nactuator = \"{}\"", parameters.actuator.name())?;
    writeln!(text, "namespace = \"{}\"", router.name())?;
    if parameters.actuator == Actuator::OpenFlow {
        writeln!(text, "switch = \"{:x}\"\nopenflow_connect = \"{CONTROLLER}\"", switch::DATAPATH_ID)?;
        writeln!(text, "port = \"{LINK_INTERFACE}\"\nqueue = {}", switch::SCAVENGER_QUEUE)?;
        return match isolation {
            Isolation::None => writeln!(text, "dry_run = true"),
            // Open vSwitch has the queues.
            Isolation::Borrow | Isolation::Strict => Ok(()),
        };
    }
    writeln!(text, "interface = \"{LINK_INTERFACE}\"")?;
    writeln!(text, "link_rate = \"{}bps\"", parameters.link_rate.0)?;
    match isolation {
        // The same queues, but no flow is redirected.
        Isolation::None => writeln!(text, "queueing = \"strict\"\ndry_run = true")?,
        Isolation::Borrow => {
            writeln!(text, "queueing = \"borrow\"\nscavenger_share = {SCAVENGER_SHARE}")?;
        }
        Isolation::Strict => writeln!(text, "queueing = \"strict\"")?,
    }
    writeln!(text, "primary_queue = \"{0}B\"\nscavenger_queue = \"{0}B\"", parameters.queue.0)
}

/// A running daemon; it stops on drop.
pub struct Daemon {
    service: Option<Service>,
    isolation: Isolating,
    folder: PathBuf,
}

impl Daemon {
    /// Starts a daemon, and waits until its collectors run.
    ///
    /// # Errors
    /// If it cannot start.
    pub fn start(
        prefix: &Prefix,
        parameters: &Parameters,
        isolation: Isolation,
        detects: Detects,
    ) -> Result<Daemon, ScenarioError> {
        let folder = std::env::temp_dir().join(format!("thalweg-{prefix}isolate-{}", std::process::id()));
        let failed = |error: &dyn fmt::Display| ScenarioError::Daemon(format!("{error:#}"));
        let text = configuration(prefix, parameters, isolation, detects);
        let file = folder.join("thalweg.toml");
        let written = fs::create_dir_all(&folder).and_then(|()| fs::write(&file, text));
        let config = written.map_err(|error| failed(&error));
        let config = config.and_then(|()| Config::load(&file).map_err(|error| failed(&error)));
        let service = config.and_then(|config| {
            let opened = PreparedService::open(config, Injected::default());
            opened.and_then(|opened| opened.start(None)).map_err(|error| failed(&error))
        });
        let service = service.inspect_err(|_| remove(&folder))?;
        let isolation = service.isolation().cloned().expect("the configuration has isolation");
        let daemon = Daemon { service: Some(service), isolation, folder };
        daemon.await_start()?;
        if parameters.actuator == Actuator::OpenFlow {
            daemon.await_switch()?;
        }
        Ok(daemon)
    }

    fn await_start(&self) -> Result<(), ScenarioError> {
        let until = Instant::now() + START_TIMEOUT;
        loop {
            let collectors = self.collectors();
            for collector in &collectors {
                if let CollectorState::Failed { error, .. } = collector.state() {
                    return Err(ScenarioError::Monitoring(format!(
                        "collector {}: {error}",
                        collector.name()
                    )));
                }
            }
            match () {
                () if collectors.iter().all(|collector| collector.state() == CollectorState::Running) => {
                    return Ok(());
                }
                () if Instant::now() >= until => {
                    return Err(ScenarioError::Monitoring("collectors did not start within 20 s".to_owned()));
                }
                () => std::thread::sleep(Duration::from_millis(1)),
            }
        }
    }

    /// Waits until the counters of the switch's queues are read, so that rules can be added.
    fn await_switch(&self) -> Result<(), ScenarioError> {
        let until = Instant::now() + START_TIMEOUT;
        loop {
            let report = self.report();
            match (report.queues, report.error) {
                (Some(_), None) => return Ok(()),
                (_, error) if Instant::now() >= until => {
                    let error = error.unwrap_or_else(|| "its queues were not read within 20 s".to_owned());
                    return Err(ScenarioError::Switches(error));
                }
                _ => std::thread::sleep(Duration::from_millis(5)),
            }
        }
    }

    fn collectors(&self) -> Vec<CollectorHandle> {
        self.service.as_ref().map(|service| service.daemon().collectors()).unwrap_or_default()
    }

    /// Returns the frames that collectors lost so far.
    pub fn lost_frames(&self) -> u64 {
        // Skip a collector that does not answer.
        let counters = self.collectors().into_iter().filter_map(|it| it.counters(ANSWER_TIMEOUT).ok());
        counters.map(|answer| answer.value.source.kernel_drops).sum()
    }

    /// Returns redirections and queues. Times are of the wall clock.
    pub fn report(&self) -> IsolationReport {
        self.isolation.state().report(RedirectionId(0), usize::MAX, ENDED)
    }

    /// Redirects a flow by hand.
    ///
    /// # Errors
    /// If the flow cannot be redirected.
    pub fn redirect(&self, key: FlowKey) -> Result<(), ScenarioError> {
        let pinned = self.isolation.state().pin(key);
        pinned.map(drop).map_err(|error| ScenarioError::Daemon(error.to_string()))
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        if let Some(service) = self.service.take() {
            // What is wrong is in the log.
            let _ = service.stop(|| ());
        }
        remove(&self.folder);
    }
}

/// Removes the configuration; the system cleans its temporary folder if this fails.
fn remove(folder: &std::path::Path) {
    let _ = fs::remove_dir_all(folder);
}

#[cfg(test)]
mod tests {
    use thalweg_wire::{BitRate, Nanos};

    use super::*;
    use crate::scenarios::isolate::Options;

    #[test]
    fn the_daemon_accepts_every_configuration() {
        let folder = std::env::temp_dir().join(format!("thalweg-isolate-files-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let actuators =
            Actuator::ALL.into_iter().flat_map(|actuator| Isolation::ALL.map(|it| (actuator, it)));
        for (actuator, isolation) in actuators {
            let options = Options {
                trials: 1,
                duration: Duration::from_secs(1),
                flight_duration: Nanos::from_millis(10),
                seed: 1,
                actuator,
            };
            let parameters = Parameters::new(BitRate(200_000_000), &options);
            for detects in [Detects::Cheetahs, Detects::Nothing] {
                let text = configuration(&Prefix::default(), &parameters, isolation, detects);
                let file = folder.join("thalweg.toml");
                fs::write(&file, &text).unwrap();
                let config = Config::load(&file).unwrap_or_else(|error| panic!("{error}\n{text}"));
                assert_eq!(config.collectors.len(), 3);
                assert_eq!(config.isolation.unwrap().options.dry_run, isolation == Isolation::None);
            }
        }
        fs::remove_dir_all(&folder).unwrap();
    }
}
