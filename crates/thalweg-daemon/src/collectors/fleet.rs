//! Starts, reconfigures and stops all collectors of the daemon.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use crossbeam_channel::Receiver;
use thalweg_measure::samples::{SampleRing, SampleRingError};
use thiserror::Error;

use super::event_publisher::EventPublisher;
use super::handle::{CollectorHandle, CollectorRequestError, Description};
use super::list::CollectorList;
use super::network::Network;
use super::pipeline::Pipeline;
use super::replacement::{ReconfigureError, Replacement};
use super::shared_thread::{EventLoop, SharedThread};
use super::sinks::Sinks;
use super::source::{OpenedSource, SourceError};
use super::stats::CollectorStats;
use super::worker::Worker;
use crate::config::CollectorConfig;
use crate::hub::Hub;

/// Timeout of a collector for applying a new configuration.
const REPLY_TIMEOUT: Duration = Duration::from_secs(2);

/// The parts of the daemon that collectors use.
#[derive(Clone, Debug)]
pub struct FleetParts {
    /// The list of running collectors.
    pub collectors: CollectorList,
    /// The network.
    pub network: Network,
    /// The event hub.
    pub hub: Arc<Hub>,
}

/// All collectors.
#[derive(Debug)]
pub struct Fleet {
    parts: FleetParts,
    sinks: Sinks,
    /// The thread of all collectors; `None` if each has its own.
    shared: Option<SharedThread>,
    running: Vec<Running>,
    /// By name: of running collectors, and of those that a reload is replacing.
    stats: BTreeMap<Arc<str>, Arc<CollectorStats>>,
}

/// A running collector.
#[derive(Debug)]
struct Running {
    config: Arc<CollectorConfig>,
    handle: CollectorHandle,
    /// Exports the flows of replaced flow tables.
    event_publisher: EventPublisher,
    stop: Arc<AtomicBool>,
    thread: Option<Thread>,
}

/// The thread of a collector.
#[derive(Debug)]
enum Thread {
    /// A thread of its own.
    Own(JoinHandle<()>),
    /// The shared thread. The channel disconnects when the collector has ended.
    Shared(Receiver<()>),
}

/// A collector that has not started, with its source if that was opened early.
pub struct PreparedCollector {
    config: Arc<CollectorConfig>,
    opened: Option<Result<OpenedSource, SourceError>>,
}

/// Why a collector cannot be started.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum StartError {
    /// The collector cannot be created.
    #[error("collector {collector}: {source}")]
    Collector {
        /// Name of the collector.
        collector: String,
        /// The reason.
        source: ReconfigureError,
    },
    /// The sample ring cannot be created.
    #[error("collector {collector}: {source}")]
    Samples {
        /// Name of the collector.
        collector: String,
        /// The reason.
        source: SampleRingError,
    },
    /// The thread cannot be started.
    #[error("collector {collector}: cannot start its thread: {source}")]
    Thread {
        /// Name of the collector.
        collector: String,
        /// Error of the system.
        source: std::io::Error,
    },
}

impl PreparedCollector {
    /// Opens the source if it is an interface, which may need privileges that are dropped later. A failed source is retried
    /// when the collector runs.
    pub fn open(config: Arc<CollectorConfig>) -> PreparedCollector {
        let opened = config.source.is_live().then(|| OpenedSource::open(&config, None));
        PreparedCollector { config, opened }
    }

    /// Returns the error of a source that could not be opened.
    pub fn failure(&self) -> Option<&SourceError> {
        self.opened.as_ref().and_then(|opened| opened.as_ref().err())
    }
}

impl Fleet {
    /// Creates a fleet without collectors, whose collectors publish events and answer requests, and write no files.
    pub fn without_writers(parts: FleetParts) -> Fleet {
        Fleet::new(parts, Sinks::default())
    }

    /// Creates a fleet without collectors.
    pub(crate) fn new(parts: FleetParts, sinks: Sinks) -> Fleet {
        Fleet { parts, sinks, shared: None, running: Vec::new(), stats: BTreeMap::new() }
    }

    /// Creates a fleet whose collectors share `thread`.
    pub(crate) fn sharing(parts: FleetParts, sinks: Sinks, thread: SharedThread) -> Fleet {
        let mut fleet = Fleet::new(parts, sinks);
        fleet.shared = Some(thread);
        fleet
    }

    /// Runs the control loop on the shared thread. Does nothing if there is no such thread.
    pub(crate) fn add_control(&self, control: Box<dyn EventLoop>) {
        if let Some(shared) = &self.shared {
            shared.add_control(control);
        }
    }

    /// Starts additional collectors.
    ///
    /// # Errors
    /// If one cannot be started. Those before it run.
    pub fn start(&mut self, collectors: Vec<PreparedCollector>) -> Result<(), StartError> {
        for ready in collectors {
            let running = self.start_collector(ready)?;
            self.running.push(running);
        }
        self.update_list();
        Ok(())
    }

    /// Applies `configs`: stops removed collectors and starts new ones. Changed rules and thresholds are applied in place; other
    /// changes restart the collector. Unchanged collectors are not touched.
    pub fn reload(&mut self, configs: &[Arc<CollectorConfig>]) {
        let mut before = std::mem::take(&mut self.running);
        for config in configs {
            let place = before.iter().position(|running| running.config.name == config.name);
            let kept = place.map(|place| before.remove(place));
            let kept = kept.and_then(|running| running.change(config, &self.parts.network));
            let started =
                kept.map_or_else(|| self.start_collector(PreparedCollector::open(Arc::clone(config))), Ok);
            match started {
                Ok(running) => self.running.push(running),
                Err(error) => tracing::error!(%error, "collector not started"),
            }
        }
        self.running.append(&mut before);
        self.retain(configs);
        self.stats.retain(|name, _| configs.iter().any(|config| config.name == *name));
    }

    /// Stops collectors that `configs` lacks, or has at another switch.
    pub fn retain(&mut self, configs: &[Arc<CollectorConfig>]) {
        let is_kept = |running: &mut Running| {
            let Running { config, .. } = running;
            let stays =
                configs.iter().any(|other| other.name == config.name && other.switch == config.switch);
            if !stays {
                tracing::info!(collector = running.handle.name(), "removed from the configuration, stopping");
                running.stop();
            }
            stays
        };
        self.running.retain_mut(is_kept);
        self.update_list();
    }

    /// Stops all collectors. Each exports its flows and its current window. Then the channels to the writers close.
    pub fn stop(&mut self) {
        for running in &self.running {
            running.stop.store(true, Ordering::Relaxed);
        }
        self.running.drain(..).for_each(|mut running| running.stop());
        self.sinks = Sinks::default();
        self.shared = None;
    }

    fn update_list(&self) {
        self.parts.collectors.set(self.running.iter().map(|running| running.handle.clone()).collect());
    }

    fn start_collector(&mut self, ready: PreparedCollector) -> Result<Running, StartError> {
        let PreparedCollector { config, opened } = ready;
        let collector = || config.name.to_string();
        let ring = config.samples.map(SampleRing::new).transpose();
        let ring = ring.map_err(|source| StartError::Samples { collector: collector(), source })?;
        let (writer, samples) = ring.unzip();
        let description = Description {
            name: Arc::clone(&config.name),
            switch: Arc::clone(&config.switch),
            source: config.source.description(),
            is_live: config.source.is_live(),
        };
        let replace = Replacement::new(Arc::clone(&config), self.parts.network.versions())
            .map_err(|source| StartError::Collector { collector: collector(), source })?;
        let stats = Arc::clone(self.stats.entry(Arc::clone(&config.name)).or_default());
        let stop = Arc::new(AtomicBool::new(false));
        let sinks = self.sinks.clone();
        let event_publisher =
            EventPublisher::new(&description, &self.parts, sinks, Arc::clone(&stats), Arc::clone(&stop));
        let (handle, mailbox) = CollectorHandle::with_stats(description, samples, stats);
        let is_live = config.source.is_live();
        let tap = self.sinks.background.as_ref().and_then(|sender| sender.tap(&config.name, is_live));
        let network = self.parts.network.clone();
        let pipeline = Pipeline::new(replace, network, mailbox, event_publisher.clone(), writer, tap);
        let worker = Worker { pipeline, stop: Arc::clone(&stop) };
        let thread = match &self.shared {
            Some(shared) => Thread::Shared(shared.join(worker, opened)),
            None => {
                // The kernel keeps 15 bytes of the name.
                let thread = std::thread::Builder::new().name(format!("c {}", config.name));
                let thread = thread.spawn(move || worker.run(opened));
                let failed = |source| StartError::Thread { collector: collector(), source };
                Thread::Own(thread.map_err(failed)?)
            }
        };
        Ok(Running { config, handle, event_publisher, stop, thread: Some(thread) })
    }
}

impl Drop for Fleet {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Running {
    /// Applies `config` in place. Returns `None` if that needs a restart, after stopping the collector.
    fn change(mut self, config: &Arc<CollectorConfig>, network: &Network) -> Option<Running> {
        if self.config == *config {
            return Some(self);
        }
        let name = &*config.name;
        if self.config.can_keep_source_of(config) {
            let replace = match Replacement::new(Arc::clone(config), network.versions()) {
                Ok(replace) => replace,
                Err(error) => {
                    tracing::error!(collector = name, %error, "configuration not applied");
                    return Some(self);
                }
            };
            if self.replace(replace) {
                tracing::info!(collector = name, "configuration applied");
                self.config = Arc::clone(config);
                return Some(self);
            }
        }
        tracing::info!(collector = name, "configuration changed, restarting");
        self.stop();
        None
    }

    /// Replaces the collector of the pipeline, and exports the flows of the old one. Returns whether it succeeded. On a timeout
    /// the collector is stopped.
    fn replace(&mut self, replace: Replacement) -> bool {
        let answer = match self.handle.replace(replace) {
            Ok(answer) => answer,
            Err(error) => {
                tracing::warn!(collector = self.handle.name(), %error, "configuration not applied");
                return false;
            }
        };
        let in_time = answer.recv_timeout(REPLY_TIMEOUT);
        let is_done = in_time.is_ok();
        let old = in_time.ok().or_else(|| {
            tracing::warn!(collector = self.handle.name(), error = %CollectorRequestError::TimedOut, "configuration not applied in time, restarting");
            self.event_publisher.stats().requests_timed_out.fetch_add(1, Ordering::Relaxed);
            self.stop();
            // The replacement may have been its last request.
            answer.try_recv().ok()
        });
        if let Some(old) = old {
            self.event_publisher.clone().finish_replaced(old.value);
        }
        is_done
    }

    fn stop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        match self.thread.take() {
            Some(Thread::Own(thread)) => {
                let ended = thread.join();
                if ended.is_err() {
                    tracing::error!(collector = self.handle.name(), "thread panicked");
                }
            }
            // Nothing is ever sent: the channel disconnects at the end.
            Some(Thread::Shared(ended)) => drop(ended.recv()),
            None => {}
        }
    }
}
